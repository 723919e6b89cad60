"""The tasks' data and protocol for programs that do not rank with mteb. Does not import mteb.

    from coreb_tasks import interop

    corpus, queries, qrels = interop.beir("CoREB-C2C")
    results = my_search(corpus, queries)
    interop.score("CoREB-C2C", results)["ndcg_at_10"]

Functions take a task's name and, where it has several, the name of a subset. They raise ``UnknownTaskError`` for a name
that is none, ``DataError`` for a fault of the data, ``PredictionsError`` for one of a run; all are ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coreb_tasks import scoring
from coreb_tasks.data import DataError, PredictionsError, RetrievalData, load_subsets
from coreb_tasks.facts import Task
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task
from coreb_tasks.interop.dictionaries import BeirData, beir_data
from coreb_tasks.interop.dictionaries import beir_results as _beir_results
from coreb_tasks.interop.exports import export as _export
from coreb_tasks.interop.qrels import read_qrels
from coreb_tasks.interop.runs import read_run as _read_run
from coreb_tasks.interop.runs import take_run
from coreb_tasks.interop.scores import subset_scores

__all__ = [
    "BeirData",
    "DataError",
    "PredictionsError",
    "UnknownTaskError",
    "beir",
    "beir_results",
    "export",
    "read_qrels",
    "read_run",
    "score",
]


def beir(task: str, subset: str = "default", *, graded: bool = False) -> BeirData:
    """A task's corpus, queries and judgments, as BEIR's ``GenericDataLoader.load`` returns them.

    Judgments are 1 at the relevance level and above and 0 below, so that BEIR's metrics are the protocol's; with
    ``graded`` they are those of the data. Where a query has the id of a document, the ids of all queries get a prefix.
    """
    facts, data = _load(task, subset)
    return beir_data(data, None if graded else facts.benchmark.relevance_level)


def beir_results(
    task: str, results: Mapping[Any, Mapping[Any, Any]], subset: str = "default"
) -> dict[str, dict[str, float]]:
    """Results (query id -> document id -> score) without excluded documents, for BEIR's ``EvaluateRetrieval.evaluate``.

    A query without any gets a document that does not exist: BEIR takes means over the queries with results only.
    """
    _, data = _load(task, subset)
    return _beir_results(take_run(results, {subset: data}, "the results").runs[subset], data)


def score(task: str, results: Mapping[Any, Mapping[Any, Any]], subset: str = "default") -> dict[str, Any]:
    """Scores of results (query id -> document id -> score) by the task's protocol, by the keys of docs/scores.md."""
    facts, data = _load(task, subset)
    run = take_run(results, {subset: data}, "the results").runs[subset]
    return subset_scores(scoring.score(run, data, facts.benchmark.relevance_level), facts, subset, data)


def read_run(task: str, file: Path | str, subset: str = "default") -> dict[str, dict[str, float]]:
    """A run file (TREC, BEIR's JSON or MTEB's predictions) as query id -> document id -> score, in the data's ids."""
    facts, data = _load(task, subset)
    return _read_run(Path(file), facts, {subset: data}).runs[subset]


def export(task: str, kind: str, out: Path | str, subsets: Sequence[str] | None = None) -> None:
    """Write a task's data to a new folder, as ``coreb-tasks export``: ``kind`` is beir, trec or mteb."""
    facts = find_task(task)
    _export(facts, kind, Path(out), find_subsets(facts, subsets))


def _load(task: str, subset: str) -> tuple[Task, RetrievalData]:
    facts = find_task(task)
    (subset,) = find_subsets(facts, [subset])
    return facts, load_subsets(facts, [subset])[subset]
