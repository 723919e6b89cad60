"""What is reported together: the scores of one benchmark, or of one packaged sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from coreb_tasks import rules
from coreb_tasks.facts import MAIN_SCORE, OVERALLS, SUITES, TASKS, Suite, Task
from coreb_tasks.facts.coreb import CODES
from coreb_tasks.reports.scores import Run, Scores, published_scores, run_names

LANGUAGES = ("none", "any", *CODES)  # of slices: "none" of language=none, "any" of t2c_search_any


def _samples() -> dict[str, Suite]:
    """The packaged sample of each benchmark. They are no benchmarks for mteb."""
    suites = {}
    for suite in SUITES.values():
        name, benchmark = f"{suite.benchmark.title}(sample)", suite.benchmark
        tasks = [task for task in TASKS.values() if task.sample and task.benchmark == benchmark and not task.reranks]
        description = f"The packaged sample of {benchmark.title}."
        suites[name] = replace(suite, name=name, tasks=tuple(task.name for task in tasks), description=description)
    return suites


REPORTED: dict[str, Suite] = {**SUITES, **_samples()}


@dataclass(frozen=True)
class Section:
    """The scores on one benchmark.

    Attributes:
        suite: the benchmark.
        held: run -> task and subset -> scores under a result's keys. Runs stand in the order of their names.
        names: what each run is called, the same in every section of a report.
    """

    suite: Suite
    held: Mapping[Run, Mapping[tuple[str, str], Mapping[str, Any]]]
    names: Mapping[Run, str]

    @cached_property
    def tasks(self) -> list[Task]:
        """All tasks on the benchmark's data: its own, those of its subtasks, and those that rerank."""
        return _on_the_data_of(self.suite)

    @property
    def main_parts(self) -> list[tuple[str, str]]:
        """Task and subset of every score that the benchmark's means are over."""
        return [(task, subset) for task in self.suite.tasks for subset in TASKS[task].subsets]

    def value(self, run: Run, part: tuple[str, str], key: str) -> Any:
        """A score, or None where the run has none."""
        return self.held[run].get(part, {}).get(key)

    def score(self, part: tuple[str, str], run: Run) -> Any:
        """The main score, or None where the run has none."""
        return self.value(run, part, MAIN_SCORE)

    def mean(self, run: Run, kind: str, metric: str) -> float | None:
        """Macro or micro mean over the benchmark's tasks; None over a hole. Of a paper's run what the paper states."""
        if run.source is not None:
            return run.means.get(kind, {}).get(metric)
        parts: list[list[tuple[Any, Any]]] = [[] for _ in self.suite.tasks]
        for part in self.main_parts:
            scored = (self.value(run, part, metric), self.value(run, part, "n_queries"))
            parts[self.suite.tasks.index(part[0])].append(scored)
        return mean(parts, weighted=kind == "micro")

    @cached_property
    def subtasks(self) -> dict[Run, dict[str, dict[str, Mapping[str, Any]]]]:
        """Scores of each run by subtask and language ("" where it has none).

        They are slices of a main task's result, else the result of the subtask's own task.
        """
        return {run: self._subtasks(run) for run in self.held}

    def _subtasks(self, run: Run) -> dict[str, dict[str, Mapping[str, Any]]]:
        slices: dict[str, Mapping[str, Any]] = {}
        for part in self.main_parts:
            slices |= slices_of(self.held[run].get(part, {}))
        for name, part in self._subtask_parts.items():
            if part in self.held[run]:
                slices.setdefault(name, self.held[run][part])
        found: dict[str, dict[str, Mapping[str, Any]]] = {}
        for name, values in slices.items():
            subtask, language = _subtask(name)
            found.setdefault(subtask, {})[language] = values
        return found

    @cached_property
    def _subtask_parts(self) -> dict[str, tuple[str, str]]:
        """Task and subset that hold just the queries of a slice, by the slice."""
        return {
            name: (task.name, subset)
            for task in self.tasks
            for subset, facts in task.subsets.items()
            for name in facts.subtasks or ()
        }

    def subtask_score(self, run: Run, subtask: str, metric: str) -> float | None:
        """A subtask's mean over all queries of its languages; None over a hole. Of a paper's what the paper states."""
        languages = self.subtasks[run].get(subtask, {})
        if run.source is not None:
            return languages.get("", {}).get(metric)
        expected = {language for group, language in map(_subtask, self._subtask_parts) if group == subtask}
        if not languages or expected - languages.keys():
            return None
        return mean([[(values.get(metric), values.get("n_queries")) for values in languages.values()]], weighted=True)


def sections(found: Iterable[Scores], suites: Collection[Suite], *, reference: bool) -> list[Section]:
    """A section for each benchmark that there are scores on, with ``reference`` the published ones too."""
    found = list(found)
    published = {suite.name: published_scores(suite) if reference else [] for suite in suites}
    every = [*found, *(scores for stated in published.values() for scores in stated)]
    names = run_names({scores.run: None for scores in every})
    made = []
    for suite in suites:
        tasks = {task.name for task in _on_the_data_of(suite)}
        scores = [scores for scores in found if scores.task in tasks]
        scores += published[suite.name]
        held: dict[Run, dict[tuple[str, str], Mapping[str, Any]]] = {}
        for one in sorted(scores, key=_place):
            held.setdefault(one.run, {})[one.task, one.subset] = one.values
        if held:
            made.append(Section(suite, held, names))
    return made


@cache
def suite_of(task: str) -> str:
    """Name of the benchmark or sample that a task, or a score over tasks, belongs to."""
    part = OVERALLS[task].parts[0] if task in OVERALLS else task
    return next(name for name, suite in REPORTED.items() if part in {facts.name for facts in _on_the_data_of(suite)})


def mean(parts: list[list[tuple[Any, Any]]], *, weighted: bool) -> float | None:
    """``rules.overall_score`` over the scores and query counts of each part's subsets; None where one is missing."""
    every = [pair for part in parts for pair in part]
    if not every or any(score is None or (weighted and queries is None) for score, queries in every):
        return None
    return rules.overall_score(parts, weighted=weighted)


def slices_of(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The scores of a result's subtasks, by the subtask's name in the data, under a result's keys."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        part, _, metric = key.rpartition("/")
        if part and part not in _OTHER_PARTS and "/" not in part and not part.startswith("language="):
            found.setdefault(part, {})[metric] = value
    return found


_OTHER_PARTS = {"positive_only", "first_stage", "rerank_delta", "pool_ceiling"}


def _place(scores: Scores) -> tuple[str, ...]:
    """One's own runs first, by their names."""
    run = scores.run
    return run.source or "", run.model, run.revision, run.experiment or ""


def _subtask(name: str) -> tuple[str, str]:
    """Subtask and language of a slice."""
    subtask, _, language = name.rpartition("_")
    return (subtask, language) if language in LANGUAGES else (name, "")


def _on_the_data_of(suite: Suite) -> list[Task]:
    data = {(TASKS[task].path, TASKS[task].release) for task in suite.tasks}
    return [task for task in TASKS.values() if (task.path, task.release) in data]
