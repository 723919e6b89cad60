"""Scoring of a run by a benchmark's protocol: the metrics of each query, and what a result says of all of them.

The tasks and the scorer of run files share it, so that both give the same numbers. Knows no mteb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytrec_eval

from coreb_tasks import rules
from coreb_tasks.data import RetrievalData
from coreb_tasks.data.predictions import Run

DEPTH = max(rules.CUT_OFFS)  # deeper ranks move no metric


@dataclass(frozen=True)
class QueryScores:
    """What one query scores.

    Attributes:
        metrics: by mteb's names (``ndcg_at_10``), in 0..1.
        intruded: whether a hard negative stands before every relevant document; None where that is not decided.
        relevant: number of relevant documents in the data.
        retrieved: number of documents in the run, down to where it was cut.
    """

    metrics: Mapping[str, float]
    intruded: bool | None
    relevant: int
    retrieved: int


def best(scores: Mapping[str, float], excluded: Set[str] = frozenset(), depth: int = DEPTH) -> dict[str, float]:
    """The first documents of a query's ranking, best first, without those that are no candidates.

    In single precision, with ties by document id descending, as pytrec_eval and the tasks rank. Documents are removed
    before the cut: CoREB (arXiv:2605.04615), anchor exclusion.
    """
    documents = list(scores)
    values = np.fromiter(scores.values(), float, len(documents)).astype(np.float32)
    wanted = depth + len(excluded)
    if wanted < len(documents):
        at_least = np.partition(values, -wanted)[-wanted]
        kept = np.flatnonzero(values >= at_least)
        documents, values = [documents[position] for position in kept], values[kept]
    ranked = sorted(zip(values.tolist(), documents, strict=True), reverse=True)
    return dict([(document, score) for score, document in ranked if document not in excluded][:depth])


def fuse(
    runs: Sequence[Run], data: RetrievalData, k: int = rules.FUSION_K, depth: int = rules.FUSION_DEPTH
) -> dict[str, dict[str, float]]:
    """Reciprocal rank fusion of the first ``depth`` documents of each run, best first.

    Excluded documents are removed before anything is ranked. A query that no run has anything of has an empty entry.
    """
    fused = {}
    for query in data.queries:
        excluded = data.excluded.get(query, frozenset())
        rankings = [list(best(run.get(query, {}), excluded, depth)) for run in runs]
        scores = rules.reciprocal_rank_fusion(rankings, k)
        fused[query] = {document: scores[document] for document in rules.ranking(scores)}
    return fused


def metrics(run: Run, qrels: rules.Qrels, cut_offs: Sequence[int] = rules.CUT_OFFS) -> dict[str, dict[str, float]]:
    """The metrics of each judged query by mteb's names; 0 for a query of which the run has nothing.

    Args:
        run: in single precision.
        qrels: judgments at the relevance level.
        cut_offs: of nDCG, MAP, recall, precision and hit rate; MRR has all of the protocol's.
    """
    measures = {f"{measure}.{','.join(map(str, cut_offs))}" for measure in rules.PYTREC_MEASURES}
    judged = {query: dict(documents) for query, documents in qrels.items()}
    found = {query: dict(run.get(query, {})) for query in qrels}
    pytrec_scores = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(found)
    return by_query(pytrec_scores, rankings(run, qrels), qrels, cut_offs)


def rankings(run: Run, queries: Iterable[str]) -> dict[str, list[str]]:
    """Document ids of each query, best first; none where the run has nothing of it."""
    return {query: rules.ranking(run.get(query, {})) for query in queries}


def by_query(
    pytrec_scores: Mapping[str, Mapping[str, float]],
    ranked: Mapping[str, Sequence[str]],
    qrels: rules.Qrels,
    cut_offs: Sequence[int] = rules.CUT_OFFS,
) -> dict[str, dict[str, float]]:
    """As ``metrics``, from what pytrec_eval gave. It leaves out queries of which the run has nothing: they score 0."""
    nothing = {f"{measure}_{cut_off}": 0.0 for measure in rules.PYTREC_MEASURES for cut_off in cut_offs}
    return {
        query: rules.query_metrics(pytrec_scores.get(query, nothing), ranked[query], _relevant(documents))
        for query, documents in qrels.items()
    }


def query_scores(
    ranked: Mapping[str, Sequence[str]],
    data: RetrievalData,
    level: int,
    metrics_of: Mapping[str, Mapping[str, float]],
) -> dict[str, QueryScores]:
    """Each judged query's scores.

    Args:
        ranked: documents of each query without excluded ones, at least as deep as the cut-off of intrusion.
        data: with all grades.
        level: the lowest grade that counts as relevant.
        metrics_of: ``metrics`` of each query.
    """
    return {
        query: QueryScores(
            metrics=metrics_of[query],
            intruded=rules.hard_negative_intrudes(ranked[query], grades, level),
            relevant=sum(grade >= level for grade in grades.values()),
            retrieved=len(ranked[query]),
        )
        for query, grades in data.qrels.items()
    }


def score(run: Run, data: RetrievalData, level: int) -> dict[str, QueryScores]:
    """Each judged query's scores in any run: excluded documents are removed, missing queries score 0."""
    clean = {query: best(run.get(query, {}), data.excluded.get(query, frozenset())) for query in data.qrels}
    ranked = {query: list(scores) for query, scores in clean.items()}
    return query_scores(ranked, data, level, metrics(clean, rules.at_level(data.qrels, level)))


def summary(queries: Mapping[str, QueryScores]) -> dict[str, Any]:
    """A result's scores over all queries: the mean of every metric, intrusion, and numbers of queries."""
    return {
        **_part(queries.values()),
        "n_queries_answered": sum(scores.retrieved > 0 for scores in queries.values()),
        "n_queries_without_positive": sum(scores.relevant == 0 for scores in queries.values()),
    }


def parts(queries: Mapping[str, QueryScores], slices: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A result's scores over each slice, and over the queries that can be answered, where these are not all."""
    answerable = [query for query, scores in queries.items() if scores.relevant]
    named = dict(slices)
    if 0 < len(answerable) < len(queries):
        named["positive_only"] = answerable
    return {
        f"{part}/{key}": value
        for part, held in named.items()
        for key, value in _part([queries[query] for query in held]).items()
    }


def _part(queries: Collection[QueryScores]) -> dict[str, Any]:
    return {
        **rules.mean_metrics([scores.metrics for scores in queries]),
        **rules.intrusion_rate(scores.intruded for scores in queries),
        "n_queries": len(queries),
    }


def _relevant(documents: Mapping[str, int]) -> list[str]:
    return [document for document, grade in documents.items() if grade > 0]
