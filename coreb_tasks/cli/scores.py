"""Runs that were scored: as a table on the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coreb_tasks.cli.console import print_table
from coreb_tasks.data import RetrievalData
from coreb_tasks.facts import MAIN_SCORE, SPLIT, Task

if TYPE_CHECKING:
    from coreb_tasks.data.predictions import Run
    from coreb_tasks.scoring import QueryScores

SHOWN = {
    "queries": "n_queries",
    "nDCG@10": MAIN_SCORE,
    "Recall@10": "recall_at_10",
    "MRR@10": "mrr_at_10",
    "intrusion": "hard_negative_intrusion_at_10",
}


@dataclass(frozen=True)
class Scored:
    """One run: the scores of each subset, as in a result of mteb, and of each query of it."""

    run: str
    model: str | None
    subsets: list[dict[str, Any]]
    queries: dict[str, dict[str, QueryScores]]


def score_run(
    name: str, model: str | None, runs: Mapping[str, Run], task: Task, data: Mapping[str, RetrievalData]
) -> Scored:
    """Score a run of each subset by the task's protocol."""
    from coreb_tasks import scoring
    from coreb_tasks.interop.scores import subset_scores

    level = task.benchmark.relevance_level
    queries = {subset: scoring.score(runs[subset], of_subset, level) for subset, of_subset in data.items()}
    subsets = [subset_scores(queries[subset], task, subset, of_subset) for subset, of_subset in data.items()]
    return Scored(name, model, subsets, queries)


def as_json(task: Task, scored: Iterable[Scored]) -> dict[str, Any]:
    """All scores of runs of a task, by the keys of an mteb result."""
    from coreb_tasks.interop.scores import main_score

    return {
        "task_name": task.name,
        "relevance_level": task.benchmark.relevance_level,
        "runs": [
            {"run": one.run, "model": one.model, "main_score": main_score(one.subsets), "scores": {SPLIT: one.subsets}}
            for one in scored
        ],
    }


def print_scored(scored: Iterable[Scored], *, slices: bool) -> None:
    """Print a row for each run and subset, and, if wanted, for each slice."""
    columns = ["run", "subset", *(["slice"] if slices else []), *SHOWN]
    print_table(columns, _rows(scored, slices=slices), numbers=range(len(columns) - len(SHOWN), len(columns)))


def _rows(scored: Iterable[Scored], *, slices: bool) -> Iterator[list[str]]:
    for one in scored:
        for scores in one.subsets:
            head = [one.run, scores["hf_subset"]]
            yield [*head, *([""] if slices else []), *_cells(scores, "")]
            if slices:
                for part in dict.fromkeys(key.rsplit("/", 1)[0] for key in scores if "/" in key):
                    yield [*head, part, *_cells(scores, f"{part}/")]


def _cells(scores: Mapping[str, Any], prefix: str) -> list[str]:
    found = (scores.get(prefix + key) for key in SHOWN.values())
    return ["-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.5f}" for value in found]
