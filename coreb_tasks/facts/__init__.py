"""Tables of benchmarks, data and tasks. A new benchmark is a module here and a word in ``_BENCHMARKS``."""

from coreb_tasks.facts import coreb, cpret, onec
from coreb_tasks.facts.schema import Benchmark, Layout, Overall, Subset, Suite, Task

__all__ = [
    "DATA_VARIABLE",
    "FIRST_STAGE",
    "FIRST_STAGE_VARIABLE",
    "MAIN_SCORE",
    "OVERALLS",
    "PACKAGED",
    "SAMPLE_LICENSE",
    "SPLIT",
    "SUITES",
    "TASKS",
    "Benchmark",
    "Layout",
    "Overall",
    "Subset",
    "Suite",
    "Task",
]

DATA_VARIABLE = "COREB_TASKS_DATA"
FIRST_STAGE_VARIABLE = "COREB_TASKS_FIRST_STAGE"
FIRST_STAGE = "mteb/baseline-bm25s"  # where the variable is not set
PACKAGED = "coreb-tasks/"  # hub paths below it are data that this package ships
SPLIT = "test"  # mteb's name of the one split of every task
MAIN_SCORE = "ndcg_at_10"
SAMPLE_LICENSE = "apache-2.0"  # these data are the project's own

_BENCHMARKS = (coreb, cpret, onec)
TASKS: dict[str, Task] = {task.name: task for benchmark in _BENCHMARKS for task in benchmark.TASKS}
OVERALLS: dict[str, Overall] = {overall.name: overall for benchmark in _BENCHMARKS for overall in benchmark.OVERALLS}
SUITES: dict[str, Suite] = {suite.name: suite for benchmark in _BENCHMARKS for suite in benchmark.SUITES}
