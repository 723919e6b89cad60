"""The rules of the papers that mteb's own scoring lacks, one function each. Knows no mteb.

A ranking lists document ids, best first; a run maps query ids to document ids to scores; qrels map query ids to
document ids to grades. Shares and metrics lie in 0..1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Scores = TypeVar("Scores", float, "NDArray[np.float64]")
Qrels = Mapping[str, Mapping[str, int]]
CUT_OFFS = (1, 3, 5, 10, 20, 100)
# Reciprocal rank fusion: 1C-Ebench (arXiv:2608.19957), hybrid search
FUSION_DEPTH, FUSION_K = 100, 60
POOL_DEPTH = 128  # candidates of a query that a reranker sorts. CoREB (arXiv:2605.04615), reranking protocol
_DIGITS = 5  # as mteb rounds

# pytrec_eval's names of the metrics of a query, and mteb's
_PYTREC = {"ndcg_cut": "ndcg", "map_cut": "map", "recall": "recall", "P": "precision", "success": "hit_rate"}
PYTREC_MEASURES = tuple(_PYTREC)
METRICS = (*_PYTREC.values(), "mrr")


def at_level(qrels: Qrels, level: int) -> dict[str, dict[str, int]]:
    """Judgments with every grade of ``level`` or more as 1 and every other as 0.

    CoREB (arXiv:2605.04615), protocol of tables 3 and 14: recall, MAP, precision, MRR and hit rate count only grade 2;
    for nDCG grade 1 becomes 0, so that a hard negative has no gain but takes up its rank. nDCG is linear in the gain,
    so that one relevant grade may as well be 1. A query without a relevant document keeps its zeros: it scores 0 and
    counts (negative pairs of ``c2t_match``).
    """
    return {
        query: {document: int(grade >= level) for document, grade in documents.items()}
        for query, documents in qrels.items()
    }


def ranking(scores: Mapping[str, float]) -> list[str]:
    """Document ids, best first; ties by document id descending, as trec_eval breaks them."""
    return [document for document, _ in sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)]


def reciprocal_rank(ranked: Sequence[str], relevant: Iterable[str], cut_off: int) -> float:
    """One over the rank of the first relevant document of the first ``cut_off``; 0 without one."""
    relevant = set(relevant)
    return next((1 / rank for rank, document in enumerate(ranked[:cut_off], start=1) if document in relevant), 0.0)


def hard_negative_intrudes(
    ranked: Sequence[str], grades: Mapping[str, int], level: int, cut_off: int = 10
) -> bool | None:
    """Whether the best hard negative of the first ``cut_off`` ranks above the best relevant document.

    None where these do not hold one of each. Hard negatives are judged above 0 and below ``level``.
    CoREB (arXiv:2605.04615), intrusion rate at 10.
    """
    first: dict[bool, int] = {}
    for rank, document in enumerate(ranked[:cut_off]):
        if grades.get(document, 0) > 0:
            first.setdefault(grades[document] >= level, rank)
    return first[False] < first[True] if len(first) == 2 else None


def query_metrics(
    pytrec_scores: Mapping[str, float], ranked: Sequence[str], relevant: Iterable[str]
) -> dict[str, float]:
    """One query's metrics under mteb's names, from pytrec_eval's of the same query."""
    relevant = set(relevant)
    metrics = {f"mrr_at_{cut_off}": reciprocal_rank(ranked, relevant, cut_off) for cut_off in CUT_OFFS}
    for name, value in pytrec_scores.items():
        metric, cut_off = name.rsplit("_", maxsplit=1)
        metrics[f"{_PYTREC[metric]}_at_{cut_off}"] = value
    return metrics


def mean_metrics(queries: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of each metric over queries (all of them have the same metrics), in mteb's arithmetic: a plain sum."""
    # + 0.0 makes a zero of -0.0, which a small loss rounds to.
    return {
        metric: round(sum(query[metric] for query in queries) / len(queries), _DIGITS) + 0.0 for metric in queries[0]
    }


def intrusion_rate(intrusions: Iterable[bool | None]) -> dict[str, float]:
    """Share of intruded queries, and the number of queries it is taken over; no rate over no query."""
    decided = [intruded for intruded in intrusions if intruded is not None]
    rate = {"hard_negative_intrusion_at_10": round(sum(decided) / len(decided), _DIGITS)} if decided else {}
    return {**rate, "hard_negative_intrusion_n": len(decided)}


def ideal_order(candidates: Iterable[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The scores that a perfect reranker gives the candidates of a query: the ceiling of what reranking can reach."""
    return {document: float(grades.get(document, 0)) for document in candidates}


def reciprocal_rank_fusion(rankings: Iterable[Sequence[str]], k: int = FUSION_K) -> dict[str, float]:
    """Sum over rankings of 1 / (k + rank), ranks from 1; a ranking without a document gives it nothing.

    1C-Ebench (arXiv:2608.19957), hybrid search. Sums do not depend on the order of the rankings, so that documents tie
    where their ranks are the same in another order.
    """
    shares: dict[str, list[float]] = {}
    for ranked in rankings:
        for rank, document in enumerate(ranked, start=1):
            shares.setdefault(document, []).append(1 / (k + rank))
    return {document: math.fsum(parts) for document, parts in shares.items()}


def within_pool(scores: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Scores without those at cut-offs deeper than the pool, which say nothing of a reranker.

    The protocol's own cut-off of 10 stays, however few the candidates are.
    """
    cut_offs = {key: re.search(r"_at_(\d+)(?!\d)", key) for key in scores}
    return {key: scores[key] for key, found in cut_offs.items() if found is None or int(found[1]) <= max(depth, 10)}


def overall_score(parts: Sequence[Sequence[tuple[float, int]]], *, weighted: bool) -> float:
    """Score over parts, as ``mean_over_parts``, rounded as mteb rounds."""
    return round(mean_over_parts(parts, weighted=weighted), _DIGITS)


def mean_over_parts(parts: Sequence[Sequence[tuple[Scores, int]]], *, weighted: bool) -> Scores:
    """Mean over parts, of each of which every subset has a score (or an array of scores) and a number of queries.

    Weighted: mean over all queries. CoREB (arXiv:2605.04615), overall score of tables 3 and 14; 1C-Ebench
    (arXiv:2608.19957), micro average. Else the mean over parts of the mean over subsets: CPRet (arXiv:2505.12925),
    average of table 3.
    """
    if weighted:
        every = [scored for part in parts for scored in part]
        return _sum(score * queries for score, queries in every) / sum(queries for _, queries in every)
    return _sum(_sum(score for score, _ in part) / len(part) for part in parts) / len(parts)


def _sum(scores: Iterable[Scores]) -> Scores:
    return cast(Scores, sum(scores))
