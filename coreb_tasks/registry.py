"""The only room that knows mteb's private names: makes mteb know the tasks, and not return stale results.

mteb is imported within the functions, because the start-up hook loads this module while `import mteb` ends.
"""

from __future__ import annotations

import importlib
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from importlib.metadata import requires, version
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from coreb_tasks.data import DataError
from coreb_tasks.facts import SUITES, Suite

if TYPE_CHECKING:
    from mteb import Benchmark
    from mteb.models import ModelMeta
    from mteb.results import ModelResult, TaskResult

    from coreb_tasks.tasks.base import ProtocolRetrieval

logger = logging.getLogger(__name__)


class RegistrationError(ImportError):
    """mteb does not know all of our tasks, and why."""


def register() -> None:
    """Make mteb know every task and benchmark. Doing it twice is harmless.

    Raises:
        RegistrationError: mteb is of a version that is not supported, or has a task of the same name (the others are
            registered all the same). A benchmark of the same name is a warning when mteb is asked for benchmarks.
    """
    _check_version()
    from coreb_tasks.models.table import MODELS
    from coreb_tasks.tasks.table import OVERALL_TASKS, TASKS

    add_models(MODELS)
    _guard_stored_results()
    _wrap_once(importlib.import_module("mteb.benchmarks.get_benchmark"), "_build_registry", _build_registry)
    conflicts = _register_tasks({**TASKS, **OVERALL_TASKS})
    if conflicts:
        raise RegistrationError(
            f"mteb already has tasks of these names: {', '.join(conflicts)}. They stay mteb's; "
            "a newer coreb-tasks or another mteb is needed for ours."
        )


def add_models(metas: Mapping[str, ModelMeta]) -> None:
    """Let ``mteb.get_model`` and ``mteb run -m`` know models by these names. Those that mteb knows stay mteb's."""
    known = importlib.import_module("mteb.models.model_implementations").MODEL_REGISTRY
    for name, meta in metas.items():
        known.setdefault(name, meta)


def _register_tasks(tasks: Mapping[str, Any]) -> list[str]:
    """Add tasks to mteb's; returns those whose name another task has."""
    # By import_module, because mteb's functions of the same names hide the modules.
    home: Any = importlib.import_module("mteb.get_tasks")
    taken = {name: home._TASKS_REGISTRY[name] for name in tasks if name in home._TASKS_REGISTRY}
    new = tuple(task for name, task in tasks.items() if name not in taken)
    home.TASK_LIST += new
    home._TASKS_REGISTRY.update({task.metadata.name: task for task in new})
    for original, similar in home._create_similar_tasks(new).items():
        home._SIMILAR_TASKS[original].extend(similar)
    return [
        f"{name} ({taken[name].__module__}, ours is {tasks[name].__module__})"
        for name in taken
        if taken[name] is not tasks[name]
    ]


def _build_registry(original: Callable[..., dict[str, Benchmark]]) -> dict[str, Benchmark]:
    """mteb's benchmarks and ours. mteb builds its own when it is first asked for one, and keeps the dict."""
    registry = original()
    for name, suite in SUITES.items():
        if name not in registry:
            registry[name] = _benchmark(suite)
        elif registry[name].reference != suite.benchmark.reference:
            logger.warning("mteb already has a benchmark %s (%s); it stays mteb's.", name, registry[name].reference)
    return registry


def _benchmark(suite: Suite) -> Benchmark:
    import mteb

    return mteb.Benchmark(
        name=suite.name,
        tasks=mteb.get_tasks(tasks=list(suite.tasks)),
        description=suite.description,
        reference=suite.benchmark.reference,
        citation=suite.benchmark.bibtex_citation,
    )


def _check_version() -> None:
    needed = next(r for r in map(Requirement, requires("coreb-tasks") or []) if r.name == "mteb")
    found = version("mteb")
    if not needed.specifier.contains(found, prereleases=True):
        raise RegistrationError(f"mteb {found} is not supported, expected {needed}: pip install '{needed}'.")


def _guard_stored_results() -> None:
    """mteb returns a stored result whatever its dataset revision. Ours must be of the task's data and level."""
    from mteb import MTEB, ResultCache

    _wrap_once(importlib.import_module("mteb.evaluate"), "_check_cache", _check_cache)
    _wrap_once(MTEB, "_get_missing_evaluations", _get_missing_evaluations)
    _wrap_once(ResultCache, "load_results", _load_results)


def _wrap_once(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)
    if getattr(original, "coreb_tasks_wrapper", None) is None:
        replacement: Any = wraps(original)(lambda *args, **kwargs: wrapper(original, *args, **kwargs))
        replacement.coreb_tasks_wrapper = wrapper
        static = isinstance(vars(owner)[name], staticmethod)
        setattr(owner, name, staticmethod(replacement) if static else replacement)


def _check_cache(original: Callable[..., Any], task: Any, meta: Any, cache: Any, overwrite_strategy: Any) -> Any:
    from coreb_tasks.tasks.base import ProtocolRetrieval
    from coreb_tasks.tasks.overall import OverallScore
    from coreb_tasks.tasks.reranking import ProtocolReranking

    if isinstance(task, OverallScore):
        cache = None  # its parts are looked up; a stored mean may be of others
    if isinstance(task, ProtocolReranking):
        task.results_folder = None if cache is None else cache.cache_path
    if cache is not None and isinstance(task, ProtocolRetrieval):
        cache = _CurrentResults(cache, task, may_run=overwrite_strategy.value in ("always", "only-missing"))
    return original(task, meta, cache, overwrite_strategy)


class _CurrentResults:
    """The part of a ``ResultCache`` that mteb's check reads, without a stale result of one task."""

    def __init__(self, cache: Any, task: ProtocolRetrieval, *, may_run: bool) -> None:
        self.cache, self.task, self.may_run = cache, task, may_run

    def load_task_result(self, *args: Any, **kwargs: Any) -> TaskResult | None:
        result: TaskResult | None = self.cache.load_task_result(*args, **kwargs)
        if result is None:
            return None
        try:
            why = self.task.why_stale(result, load=True)
        except DataError as error:
            logger.warning(
                "Whether the stored result of %s is of the task's data is not known: %s", result.task_name, error
            )
            return result
        if why is None:
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
    why = None if existing_results is None else _why_stale(existing_results)
    if existing_results is not None and why is None:
        why = _reranks(existing_results)
    if why is not None:
        _warn_of_stale(existing_results, why)
        existing_results = None
    return original(existing_results, *args, **kwargs)


def _reranks(result: TaskResult) -> str | None:
    """mteb asks here without the task, which alone knows its first stage."""
    from coreb_tasks.tasks.table import TASKS

    ours = TASKS.get(result.task_name)
    return None if ours is None or ours.facts.reranks is None else "its first stage may be another one"


def _load_results(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Results that are read back say what they are of; one that is not of the task's data or level is named."""
    results = original(*args, **kwargs)
    for result in (result for model in results for result in model):
        why = _why_stale(result)
        if why is not None:
            logger.warning("A stored result of %s is not of this task: %s.", result.task_name, why)
    return results


def _why_stale(result: TaskResult) -> str | None:
    from coreb_tasks.tasks.table import TASKS

    task = TASKS.get(result.task_name)
    known = importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY.get(result.task_name)
    return task().why_stale(result) if task is not None and task is known else None


def known_tasks() -> Collection[str]:
    """The names of mteb's tasks and of ours."""
    names: Mapping[str, Any] = importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY
    return names.keys()


def parse_run(arguments: Sequence[str]) -> Namespace:
    """What ``mteb run`` makes of its arguments; exits where it would."""
    parsed: Namespace = importlib.import_module("mteb.cli.build_cli").build_cli().parse_args(["run", *arguments])
    return parsed


def run_mteb(arguments: Sequence[str]) -> ModelResult:
    """``mteb run``, in this process. Returns what its evaluation does, of which mteb's command says nothing.

    Raises:
        ValueError: no task is left to run.
    """
    import mteb

    results: list[ModelResult] = []

    def evaluate(model: Any, tasks: Any, **kwargs: Any) -> ModelResult:
        if not tasks:
            raise ValueError("no task is left by the options given (languages, splits, types)")
        results.append(original(model, tasks, **kwargs))
        return results[-1]

    original, argv = mteb.evaluate, sys.argv
    try:
        mteb.evaluate, sys.argv = evaluate, ["coreb-tasks", "run", *arguments]
        importlib.import_module("mteb.cli").main()
    finally:
        mteb.evaluate, sys.argv = original, argv
    return results[-1]
