"""The rules on runs worked out by hand, and against pytrec_eval and the official harness on random runs."""

import math

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from coreb_tasks import rules

DOCUMENTS = [f"d{number}" for number in range(8)]
runs = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([0, 1, 2]), min_size=1)


def test_at_level_keeps_hard_negatives_as_zeros():
    assert rules.at_level({"q": {"a": 1, "b": 2, "c": 0}}, 2) == {"q": {"a": 0, "b": 1, "c": 0}}


def test_ranking_breaks_ties_by_document_id_descending():
    assert rules.ranking({"a": 0.5, "c": 0.5, "b": 0.5, "d": 0.1}) == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("cut_off", "expected"), [(1, 0.0), (2, 0.5), (100, 0.5)], ids=["before it", "just reached", "beyond the run"]
)
def test_reciprocal_rank_counts_within_the_cut_off(cut_off, expected):
    assert rules.reciprocal_rank(["x", "a", "b"], {"a", "b"}, cut_off) == expected


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (["bad", "good"], True),
        (["good", "bad"], False),
        (["good", "other"], None),
        (["bad", "other"], None),
        (["zero", "good", "bad"], False),
        (["bad", *(f"x{n}" for n in range(9)), "good"], None),
    ],
    ids=["above", "below", "no hard negative", "no positive", "a judged zero is no hard negative", "positive at 11"],
)
def test_intrusion_compares_the_best_hard_negative_with_the_best_positive(ranked, expected):
    assert rules.hard_negative_intrudes(ranked, {"good": 2, "bad": 1, "zero": 0}, level=2) is expected


def test_intrusion_rate_is_absent_over_no_query():
    assert rules.intrusion_rate([None, None]) == {"hard_negative_intrusion_n": 0}
    assert rules.intrusion_rate([True, None, False, False]) == {
        "hard_negative_intrusion_at_10": 0.33333,
        "hard_negative_intrusion_n": 3,
    }


@given(run=runs, qrels=grades)
def test_reciprocal_rank_equals_pytrec_eval(run, qrels):
    binary = rules.at_level({"q": qrels}, 2)
    oracle = pytrec_eval.RelevanceEvaluator(binary, {"recip_rank"}).evaluate({"q": run})["q"]["recip_rank"]
    relevant = [document for document, grade in binary["q"].items() if grade]
    assert math.isclose(rules.reciprocal_rank(rules.ranking(run), relevant, 100), oracle, abs_tol=1e-9)


@given(run=runs, qrels=grades)
def test_a_relevance_level_for_pytrec_eval_gives_what_binary_grades_give(run, qrels):
    """The level moves only the binary metrics of pytrec_eval; on binary grades nDCG follows as well."""
    measures = {"map_cut.5", "recall.5", "P.5", "success.5"}
    graded = pytrec_eval.RelevanceEvaluator({"q": qrels}, measures, relevance_level=2).evaluate({"q": run})
    binary = pytrec_eval.RelevanceEvaluator(rules.at_level({"q": qrels}, 2), measures).evaluate({"q": run})
    assert binary == graded


def test_scores_at_cut_offs_deeper_than_the_pool_go_but_those_of_the_protocol_stay():
    scores = dict.fromkeys(["ndcg_at_10", "recall_at_20", "go/map_at_100", "nauc_mrr_at_20_diff1", "n_queries"], 0)
    assert list(rules.within_pool(scores, 100)) == list(scores)
    assert list(rules.within_pool(scores, 99)) == ["ndcg_at_10", "recall_at_20", "nauc_mrr_at_20_diff1", "n_queries"]
    assert list(rules.within_pool(scores, 3)) == ["ndcg_at_10", "n_queries"]


def test_the_ideal_order_puts_relevant_candidates_first():
    assert rules.ranking(rules.ideal_order(["a", "z", "b"], {"b": 1, "c": 1})) == ["b", "z", "a"]


def test_a_small_loss_is_no_negative_zero():
    assert math.copysign(1, rules.mean_metrics([{"delta": -1e-7}])["delta"]) == 1


def test_fusion_counts_ranks_from_1_and_gives_nothing_for_an_absent_document():
    fused = rules.reciprocal_rank_fusion([["X", "a", "Y"], ["b", "c", "Y"]])
    assert rules.ranking(fused) == ["Y", "b", "X", "c", "a"]
    assert fused["Y"] == pytest.approx(0.031746, abs=5e-7)
    assert fused["X"] == fused["b"] == pytest.approx(0.016393, abs=5e-7)
    assert fused["a"] == fused["c"] == 1 / 62
    assert rules.reciprocal_rank_fusion([["a"]], k=0) == {"a": 1.0}


@given(st.lists(st.permutations("abcd"), min_size=1, max_size=4), st.randoms())
def test_fusion_does_not_depend_on_the_order_of_the_rankings(rankings, chance):
    shuffled = chance.sample(rankings, len(rankings))
    assert rules.reciprocal_rank_fusion(shuffled) == rules.reciprocal_rank_fusion(rankings)
