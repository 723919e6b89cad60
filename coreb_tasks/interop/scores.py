"""Scores of a run in the shape of an mteb result, and of each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coreb_tasks import rules, scoring
from coreb_tasks.data import RetrievalData
from coreb_tasks.facts import MAIN_SCORE, Task
from coreb_tasks.scoring import QueryScores

PER_QUERY = (
    "subset",
    "query",
    "relevant",
    "retrieved",
    "hard_negative_intrusion_at_10",
    *(f"{metric}_at_{cut_off}" for metric in rules.METRICS for cut_off in rules.CUT_OFFS),
)


def subset_scores(queries: Mapping[str, QueryScores], task: Task, subset: str, data: RetrievalData) -> dict[str, Any]:
    """A subset's scores by the keys of an mteb result (docs/scores.md)."""
    scores = scoring.summary(queries)
    return {
        "hf_subset": subset,
        "main_score": scores[MAIN_SCORE],
        **scores,
        **scoring.parts(queries, data.slices),
        "relevance_level": task.benchmark.relevance_level,
        "data_hash": data.data_hash,
    }


def main_score(subsets: list[dict[str, Any]]) -> float:
    """A task's score: the mean over its subsets, as mteb takes it."""
    return float(sum(scores["main_score"] for scores in subsets) / len(subsets))


def query_rows(queries: Mapping[str, QueryScores], subset: str) -> Iterator[dict[str, Any]]:
    """A row for each query, with the columns ``PER_QUERY``. Intrusion is 1 or 0, empty where it is not decided."""
    for query, scores in queries.items():
        yield {
            "subset": subset,
            "query": query,
            "relevant": scores.relevant,
            "retrieved": scores.retrieved,
            "hard_negative_intrusion_at_10": None if scores.intruded is None else int(scores.intruded),
            **scores.metrics,
        }
