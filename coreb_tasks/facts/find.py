"""Tasks by the names that people type."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from coreb_tasks.facts import OVERALLS, TASKS, Task


class UnknownTaskError(ValueError):
    """No such task, or none that can be used here. Says what to name instead."""


def find_task(name: str) -> Task:
    """A retrieval task by its name.

    Raises:
        UnknownTaskError: there is none of that name, or it has no data of its own.
    """
    if name in OVERALLS:
        parts = ", ".join(OVERALLS[name].parts)
        raise UnknownTaskError(f"{name} is a score over tasks and has no data of its own; name one of {parts}")
    if name not in TASKS:
        by_letters = {known.lower(): known for known in TASKS}
        close = get_close_matches(name.lower(), by_letters, n=1)
        hint = f", did you mean {by_letters[close[0]]}?" if close else "; `coreb-tasks list` shows the names"
        raise UnknownTaskError(f"unknown task {name}{hint}")
    task = TASKS[name]
    if task.reranks is not None:
        raise UnknownTaskError(f"{name} reranks what a run found, on the data of {task.reranks}: name {task.reranks}")
    return task


def find_subsets(task: Task, names: Sequence[str] | None) -> list[str]:
    """The subsets that are named, each once; all of the task's where none is.

    Raises:
        UnknownTaskError: the task has no such subset.
    """
    unknown = [name for name in names or () if name not in task.subsets]
    if unknown:
        raise UnknownTaskError(f"{task.name} has no subset {', '.join(unknown)}; it has {', '.join(task.subsets)}")
    return list(dict.fromkeys(names or task.subsets))
