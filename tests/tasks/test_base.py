"""The protocol's rules in the scores that mteb's public calls return, with values worked out by hand."""

import json
import math
import warnings

import mteb
import pytest

from coreb_tasks.wrappers import SearchError

LOG3 = 1 / math.log2(3)  # nDCG of a relevant document at rank 2: .63093


def judged(rows, query_id="q1"):
    return [{"query_id": query_id, "doc_id": document, "relevance": grade} for document, grade in rows.items()]


@pytest.fixture
def one_query(hub):
    """Leaves the tiny data one T2C query with the given grades."""

    def one_query(grades):
        hub.tables["text2code_queries"] = hub.tables["text2code_queries"][:1]
        hub.tables["text2code_qrels"] = judged(grades)
        hub.write()
        hub.pin("T2C")

    return one_query


def test_hard_negatives_have_no_gain_but_take_up_their_rank(evaluate, stubs, one_query):
    one_query({"a": 1, "b": 2, "c": 0})
    scores = evaluate(stubs.search({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}))
    assert scores["ndcg_at_1"] == 0
    assert scores["ndcg_at_10"] == scores["main_score"] == round(LOG3, 5)
    assert (scores["mrr_at_10"], scores["precision_at_1"], scores["map_at_10"]) == (0.5, 0, 0.5)
    assert scores["hit_rate_at_1"] == 0
    assert scores["recall_at_3"] == 1
    assert (scores["hard_negative_intrusion_at_10"], scores["hard_negative_intrusion_n"]) == (1, 1)
    assert scores["relevance_level"] == 2


def test_a_query_with_only_hard_negatives_scores_zero_in_every_metric(evaluate, stubs, hub):
    hub.tables["text2code_qrels"] = [*judged({"a": 1}), *judged({"c": 2}, "q2")]
    hub.write()
    hub.pin("T2C")
    scores = evaluate(stubs.search({"q1": {"a": 1.0}, "q2": {"c": 1.0}}))
    for metric in ("ndcg", "map", "recall", "mrr", "hit_rate"):
        assert scores[f"{metric}_at_10"] == 0.5, metric
    assert (scores["n_queries"], scores["n_queries_without_positive"]) == (2, 1)
    assert (scores["positive_only/ndcg_at_10"], scores["positive_only/n_queries"]) == (1, 1)
    assert "hard_negative_intrusion_at_10" not in scores


@pytest.mark.parametrize("run", [{"q1": {"a": 1.0}}, {"q1": {"a": 1.0}, "q2": {}}], ids=["missing", "empty"])
def test_a_query_without_results_counts_as_zero(evaluate, stubs, run):
    scores = evaluate(stubs.search(run))
    assert (scores["ndcg_at_10"], scores["mrr_at_10"], scores["recall_at_100"]) == (0.5, 0.5, 0.5)
    assert (scores["n_queries"], scores["n_queries_answered"]) == (2, 1)


@pytest.mark.parametrize("anchor_score", [9.0, 1.5, 0.1], ids=["best", "second", "last"])
def test_the_anchor_is_removed_before_every_cut(evaluate, stubs, anchor_score):
    scores = evaluate(stubs.search({"q1": {"d": anchor_score, "a": 2.0, "b": 1.0}}), "C2C")
    assert (scores["ndcg_at_1"], scores["ndcg_at_10"], scores["mrr_at_1"]) == (1, 1, 1)
    assert scores["hard_negative_intrusion_at_10"] == 0


def test_an_anchor_with_the_id_of_its_query_is_removed_too(evaluate, stubs, hub):
    hub.tables["code_corpus"][3]["code_id"] = "q1"
    hub.tables["code2code_queries"][0]["meta_anchor_code_id"] = "q1"
    hub.write()
    hub.pin("C2C")
    assert evaluate(stubs.search({"q1": {"q1": 1.0, "a": 0.9, "b": 0.0}}), "C2C")["ndcg_at_1"] == 1


def test_a_relevant_document_with_the_id_of_its_query_stays(evaluate, stubs, hub):
    hub.tables["code_corpus"][0]["code_id"] = "5"
    hub.tables["text2code_queries"] = [{**hub.tables["text2code_queries"][0], "query_id": 5}]
    hub.tables["text2code_qrels"] = judged({"5": 2}, "5")
    hub.write()
    hub.pin("T2C")
    assert evaluate(stubs.search({"5": {"5": 1.0, "b": 0.5}}))["ndcg_at_10"] == 1


def test_ties_are_broken_by_document_id_descending_in_every_metric(evaluate, stubs, one_query):
    one_query({"a": 2, "b": 0})
    scores = evaluate(stubs.search({"q1": {"a": 1.0, "b": 1.0}}))
    assert (scores["ndcg_at_10"], scores["map_at_10"], scores["mrr_at_10"]) == (round(LOG3, 5), 0.5, 0.5)


def test_a_constant_encoder_scores_the_same_in_both_orders_of_the_corpus(hub, stubs, task_of):
    hub.tables["code_corpus"] = [{"code_id": f"d{n:04}", "code": f"code {n}"} for n in range(1500)]
    hub.tables["text2code_qrels"] = [*judged({"d1495": 2}), *judged({"d0003": 2, "d1490": 1}, "q2")]
    hub.write()
    hub.pin("T2C")
    found = []
    for order in (range(1500), reversed(range(1500))):
        task = task_of()
        task.load_data()
        data = task.dataset["default"]["test"]
        data["corpus"] = data["corpus"].select(order)
        result = mteb.evaluate(stubs.encoder(), task, cache=None, co2_tracker=False, show_progress_bar=False)
        scores = result.task_results[0].scores["test"][0]
        found.append({key: value for key, value in scores.items() if "nauc" not in key})
    assert found[0] == found[1]
    assert found[0]["mrr_at_10"] == 0.1  # q1: d1495 is fifth of the tied; q2: d0003 is far down


def test_slices_have_every_metric_and_their_own_counts(evaluate, stubs):
    scores = evaluate(stubs.search({"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 1.0}}))
    assert scores["language=go/ndcg_at_10"] == 1
    assert scores["language=none/ndcg_at_10"] == round(LOG3, 5)
    assert scores["language=none/hard_negative_intrusion_at_10"] == 1
    assert "language=go/hard_negative_intrusion_at_10" not in scores
    assert scores["language=go/hard_negative_intrusion_n"] == 0
    assert scores["t2c_search_any/n_queries"] == 2
    for metric in ("ndcg_at_100", "map_at_10", "recall_at_5", "precision_at_3", "hit_rate_at_20", "mrr_at_10"):
        assert scores[f"t2c_search_any/{metric}"] == pytest.approx(scores[metric], abs=1e-5), metric


def test_cut_offs_are_the_papers(evaluate, stubs):
    scores = evaluate(stubs.search({"q1": {"a": 1.0}}))
    cut_offs = sorted({int(key.rsplit("_", 1)[1]) for key in scores if key.startswith("ndcg_at_")})
    assert cut_offs == [1, 3, 5, 10, 20, 100]


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_similarity_that_is_not_finite_names_task_query_and_document(evaluate, stubs, value):
    with pytest.raises(SearchError, match=r"Tiny-T2C.*'q1'.*'c'"):
        evaluate(stubs.encoder({"code c": (value, 0.0)}))
    with pytest.raises(SearchError, match=r"Tiny-T2C.*'q2'.*'a'"):
        evaluate(stubs.search({"q2": {"a": value}}))


@pytest.mark.parametrize(("run", "named"), [({"q1": {"zz": 1.0}}, "zz"), ({"q9": {"a": 1.0}}, "q9")])
def test_a_run_with_unknown_ids_is_refused(evaluate, stubs, run, named):
    with pytest.raises(SearchError, match=named):
        evaluate(stubs.search(run))


def test_prediction_files_hold_the_cleaned_ranking(evaluate, stubs, tmp_path):
    evaluate(stubs.search({"q1": {"d": 9.0, "b": 1.0, "a": 2.0}}), "C2C", prediction_folder=tmp_path)
    predictions = json.loads((tmp_path / "Tiny-C2C_predictions.json").read_text(encoding="utf-8"))
    assert predictions["default"]["test"] == {"q1": {"a": 2.0, "b": 1.0}}
    assert predictions["mteb_model_meta"]["model_name"] == "stub/model"


def test_documents_arrive_as_they_stand_in_the_corpus_and_queries_too(evaluate, stubs, hub):
    code = "    return 1\n\tб\u2028\f\n"
    hub.tables["code_corpus"][0]["code"] = code
    hub.tables["text2code_queries"][0]["query"] = " find a\n"
    hub.write()
    hub.pin("T2C")
    encoder = stubs.encoder()
    evaluate(encoder)
    assert encoder.seen == {"query": [" find a\n", "find c"], "document": [code, "code b", "code c", "code d"]}


def test_the_result_says_what_it_stands_on_and_takes_no_commit_from_a_folder(evaluate, stubs, task_of):
    task = task_of()
    scores = evaluate(stubs.search({"q1": {"a": 1.0}}))
    assert scores["data_hash"] == task.data_hash("default")
    assert task.metadata.revision == f"sha256:{scores['data_hash']}"
    assert "dataset_commit" not in scores


def test_bm25_runs_on_a_corpus_that_is_smaller_than_its_depth(evaluate):
    scores = evaluate(mteb.get_model("mteb/baseline-bm25s"))
    assert scores["n_queries"] == 2


def test_a_task_can_be_unloaded_and_run_again(stubs, task_of):
    task = task_of()
    for _ in range(2):
        result = mteb.evaluate(stubs.search({"q1": {"a": 1.0}}), task, cache=None, co2_tracker=False)
        assert result.task_results[0].scores["test"][0]["ndcg_at_10"] == 0.5
        assert not task.data_loaded


def test_metadata_is_complete_and_raises_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for name in ("CoREB-T2C", "CoREB-C2C-v202602", "CoREB-C2T-Sample"):
            assert mteb.get_task(name).metadata.is_filled()
