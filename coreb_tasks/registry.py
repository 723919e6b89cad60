"""The only room that knows mteb's private names: makes mteb know the tasks, and not return stale results.

mteb is imported within the functions, because the start-up hook loads this module while `import mteb` ends.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from functools import wraps
from importlib.metadata import requires, version
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from mteb.results import TaskResult

    from coreb_tasks.tasks.base import ProtocolRetrieval

logger = logging.getLogger(__name__)


class RegistrationError(ImportError):
    """mteb does not know all of our tasks, and why."""


def register() -> None:
    """Make mteb know every task. Doing it twice is harmless.

    Raises:
        RegistrationError: mteb is of a version that is not supported, or has a task of the same name (the other
            tasks are registered all the same).
    """
    _check_version()
    from coreb_tasks.tasks.table import TASKS

    _guard_stored_results()
    # By import_module, because mteb's functions of the same names hide the modules.
    home: Any = importlib.import_module("mteb.get_tasks")
    taken = {name: home._TASKS_REGISTRY[name] for name in TASKS if name in home._TASKS_REGISTRY}
    new = tuple(task for name, task in TASKS.items() if name not in taken)
    home.TASK_LIST += new
    home._TASKS_REGISTRY.update({task.metadata.name: task for task in new})
    for original, similar in home._create_similar_tasks(new).items():
        home._SIMILAR_TASKS[original].extend(similar)
    conflicts = [
        f"{name} ({taken[name].__module__}, ours is {TASKS[name].__module__})"
        for name in taken
        if taken[name] is not TASKS[name]
    ]
    if conflicts:
        raise RegistrationError(
            f"mteb already has tasks of these names: {', '.join(conflicts)}. They stay mteb's; "
            "a newer coreb-tasks or another mteb is needed for ours."
        )


def _check_version() -> None:
    needed = next(r for r in map(Requirement, requires("coreb-tasks") or []) if r.name == "mteb")
    found = version("mteb")
    if not needed.specifier.contains(found, prereleases=True):
        raise RegistrationError(f"mteb {found} is not supported, expected {needed}: pip install '{needed}'.")


def _guard_stored_results() -> None:
    """mteb returns a stored result whatever its dataset revision. Ours must be of the task's data and level."""
    from mteb.deprecated_evaluator import MTEB

    _wrap_once(importlib.import_module("mteb.evaluate"), "_check_cache", _check_cache)
    _wrap_once(MTEB, "_get_missing_evaluations", _get_missing_evaluations)


def _wrap_once(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)
    if getattr(original, "coreb_tasks_wrapper", None) is None:
        replacement: Any = wraps(original)(lambda *args, **kwargs: wrapper(original, *args, **kwargs))
        replacement.coreb_tasks_wrapper = wrapper
        setattr(owner, name, staticmethod(replacement) if isinstance(owner, type) else replacement)


def _check_cache(original: Callable[..., Any], task: Any, meta: Any, cache: Any, overwrite_strategy: Any) -> Any:
    from coreb_tasks.tasks.base import ProtocolRetrieval

    if cache is not None and isinstance(task, ProtocolRetrieval):
        cache = _CurrentResults(cache, task, may_run=overwrite_strategy.value in ("always", "only-missing"))
    return original(task, meta, cache, overwrite_strategy)


class _CurrentResults:
    """The part of a ``ResultCache`` that mteb's check reads, without a stale result of one task."""

    def __init__(self, cache: Any, task: ProtocolRetrieval, *, may_run: bool) -> None:
        self.cache, self.task, self.may_run = cache, task, may_run

    def load_task_result(self, *args: Any, **kwargs: Any) -> TaskResult | None:
        result: TaskResult | None = self.cache.load_task_result(*args, **kwargs)
        why = None if result is None else self.task.why_stale(result)
        if result is None or why is None:
            return result
        if not self.may_run:
            raise ValueError(
                f"the stored result of {result.task_name} is not of this task: {why}. "
                "Use the overwrite strategy 'only-missing' or 'always', or another cache."
            )
        _warn_of_stale(result, why)
        return None


def _warn_of_stale(result: TaskResult, why: str) -> None:
    logger.warning("The stored result of %s is not of this task: %s. It is run again.", result.task_name, why)


def _get_missing_evaluations(original: Callable[..., Any], existing_results: Any, *args: Any, **kwargs: Any) -> Any:
    from coreb_tasks.tasks.table import TASKS

    task = TASKS.get(existing_results.task_name) if existing_results else None
    why = None if task is None else task().why_stale(existing_results)
    if why is not None:
        _warn_of_stale(existing_results, why)
        existing_results = None
    return original(existing_results, *args, **kwargs)
