"""A task's data and runs in the dictionaries of BEIR, for its searches and its ``EvaluateRetrieval``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coreb_tasks import rules, scoring
from coreb_tasks.data import RetrievalData
from coreb_tasks.data.predictions import Run
from coreb_tasks.interop.names import names


class BeirData(NamedTuple):
    """What BEIR's ``GenericDataLoader.load`` returns, in its order."""

    corpus: dict[str, dict[str, str]]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


def beir_data(data: RetrievalData, level: int | None = None) -> BeirData:
    """Data in BEIR's dictionaries, with the ids of the BEIR export. Titles are empty.

    Args:
        data: of one subset.
        level: grades of this and above become 1, others 0; None: they stay as they are.

    Raises:
        DataError: an id that BEIR cannot hold.
    """
    known = names(data, "beir")
    qrels = data.qrels if level is None else rules.at_level(data.qrels, level)
    return BeirData(
        {known.documents[document]: {"title": "", "text": text} for document, text in data.corpus.items()},
        {known.queries[query]: text for query, text in data.queries.items()},
        {
            known.queries[query]: {known.documents[document]: grade for document, grade in judged.items()}
            for query, judged in qrels.items()
        },
    )


def beir_results(run: Run, data: RetrievalData) -> dict[str, dict[str, float]]:
    """A run as BEIR's ``EvaluateRetrieval.evaluate`` must get it to give the protocol's metrics.

    Excluded documents are removed, and a query without results has one that does not exist: BEIR takes the mean over
    the queries that have any.
    """
    known = names(data, "beir")
    nothing = {_no_document(data): 0.0}
    results = {}
    for query, name in known.queries.items():
        scores: Mapping[str, float] = run.get(query, {})
        ranked = scoring.best(scores, data.excluded.get(query, frozenset()), len(scores))
        results[name] = {known.documents[document]: score for document, score in ranked.items()} or dict(nothing)
    return results


def _no_document(data: RetrievalData) -> str:
    name = "no document"
    while name in data.corpus:
        name += "."
    return name
