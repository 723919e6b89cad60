"""Tables of benchmarks, data and tasks. A new benchmark is a module here and a row in ``TASKS``."""

from coreb_tasks.facts import coreb
from coreb_tasks.facts.schema import Benchmark, Layout, Task

__all__ = ["DATA_VARIABLE", "PACKAGED", "TASKS", "Benchmark", "Layout", "Task"]

DATA_VARIABLE = "COREB_TASKS_DATA"
PACKAGED = "coreb-tasks/"  # hub paths below it are data that this package ships

TASKS: dict[str, Task] = {task.name: task for task in coreb.TASKS}
