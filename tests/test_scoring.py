"""Scores of runs, worked out by hand, and of what is cut before it is scored."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreb_tasks import rules, scoring
from coreb_tasks.data import RetrievalData

LOG3 = 1 / math.log2(3)


def data(qrels, excluded=None):
    documents = {document for judged in qrels.values() for document in judged}
    return RetrievalData(dict.fromkeys(documents, "d"), dict.fromkeys(qrels, "q"), qrels, "0", excluded or {})


def scores_of(run, qrels, level=2, excluded=None):
    return scoring.summary(scoring.score(run, data(qrels, excluded), level))


def test_the_level_counts_in_every_metric():
    scores = scores_of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": 1, "b": 2, "c": 0}})
    assert (scores["ndcg_at_1"], scores["ndcg_at_10"]) == (0, round(LOG3, 5))
    assert (scores["mrr_at_10"], scores["precision_at_1"], scores["map_at_10"]) == (0.5, 0, 0.5)
    assert scores_of({"q": {"a": 3.0}}, {"q": {"a": 1}})["hit_rate_at_10"] == 0


@pytest.mark.parametrize("anchor", ["q1", "anchor"])
def test_an_excluded_document_is_gone_before_the_cut_whatever_its_id(anchor):
    run, qrels = {"q1": {anchor: 1.0, "d1": 0.9, "d2": 0.0}}, {"q1": {"d1": 2, "d2": 1}}
    without = scores_of(run, qrels, level=1, excluded={"q1": frozenset({anchor})})
    assert (without["ndcg_at_10"], without["ndcg_at_1"], without["mrr_at_10"]) == (1, 1, 1)
    assert scores_of(run, qrels, level=1)["mrr_at_10"] == 0.5


@pytest.mark.parametrize("missing", [{}, {"q2": {}}])
def test_queries_without_results_score_0(missing):
    scores = scores_of({"q1": {"a": 1.0}, **missing}, {"q1": {"a": 2}, "q2": {"a": 2}})
    assert (scores["ndcg_at_10"], scores["n_queries"], scores["n_queries_answered"]) == (0.5, 2, 1)


def test_queries_without_a_relevant_document_count_and_are_told_apart():
    queries = scoring.score({"q1": {"a": 1.0}, "q2": {"b": 1.0}}, data({"q1": {"a": 2}, "q2": {"b": 1}}), 2)
    assert scoring.summary(queries)["n_queries_without_positive"] == 1
    parts = scoring.parts(queries, {"half": ["q2"]})
    assert (parts["half/ndcg_at_10"], parts["positive_only/ndcg_at_10"], parts["positive_only/n_queries"]) == (0, 1, 1)


scores = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.0, -1.0]))


@given(scores, st.sets(st.text("abc", min_size=1, max_size=3)), st.integers(1, 6))
def test_the_best_are_the_first_of_the_whole_ranking(scores, excluded, depth):
    ranked = sorted(set(scores) - excluded, key=lambda d: (np.float32(scores[d]), d), reverse=True)
    found = scoring.best(scores, frozenset(excluded), depth)
    assert list(found) == ranked[:depth]
    assert all(found[d] == np.float32(scores[d]) for d in found)


def test_fusion_takes_anchors_out_before_ranks_are_counted_and_documents_are_cut():
    one, other = {"q": {"anchor": 9.0, "a": 3.0, "b": 2.0}}, {"q": {"b": 5.0, "anchor": 4.0, "a": 3.0}}
    excluded = {"q": frozenset({"anchor"})}
    held = data({"q": {"a": 2}}, excluded)
    fused = scoring.fuse([one, other], held, k=60, depth=2)
    assert fused == {"q": {"b": 1 / 62 + 1 / 61, "a": 1 / 61 + 1 / 62}}
    assert scoring.fuse([one, other], held, depth=1) == {"q": {"b": 1 / 61, "a": 1 / 61}}


def test_fusion_keeps_a_query_that_one_run_has_and_one_that_none_has():
    held = data({"q1": {"a": 2}, "q2": {"a": 2}})
    assert scoring.fuse([{"q1": {"a": 1.0}}, {"q2": {}}], held) == {"q1": {"a": 1 / 61}, "q2": {}}


def test_in_the_precision_that_scores_are_compared_in_sums_of_two_rankings_tie_where_they_are_equal():
    """And there only: in double precision 11 pairs that are equal as fractions differ."""
    shares = [Fraction(0), *(Fraction(1, rules.FUSION_K + rank) for rank in range(1, rules.FUSION_DEPTH + 1))]
    exact = {one + other: np.float32(float(one) + float(other)) for one in shares for other in shares}
    assert len(set(exact.values())) == len(exact)
