"""Reranking: candidates of a first stage, what a reader needs to judge a reranker, and errors."""

import json
import logging

import mteb
import numpy as np
import pytest
import torch
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.models.model_implementations import MODEL_REGISTRY

from coreb_tasks.data import PredictionsError, load
from coreb_tasks.facts import TASKS
from coreb_tasks.wrappers import SearchError

SAMPLES = [name for name, task in TASKS.items() if task.sample and task.reranks]
# q1: relevant a stands third of three candidates (nDCG .5); q2: relevant c is no candidate.
FIRST = {"q1": {"b": 3.0, "d": 2.0, "a": 1.0}, "q2": {"d": 2.0, "b": 1.0}}
A_FIRST = {"q1": {"a": 3.0, "b": 2.0, "d": 1.0}, "q2": {"b": 2.0, "d": 1.0}}


def compared(scores, part=""):
    names = ("ndcg_at_10", "first_stage/ndcg_at_10", "rerank_delta/ndcg_at_10", "pool_ceiling/ndcg_at_10")
    return [scores[part + name] for name in names]


# The scores


def test_a_first_stage_that_is_known_by_hand(rerank, stubs):
    scores = rerank(stubs.search(A_FIRST), FIRST)
    assert compared(scores) == [0.5, 0.25, 0.25, 0.5]
    assert compared(scores, "language=none/") == [1.0, 0.5, 0.5, 1.0]
    assert compared(scores, "language=go/") == [0.0, 0.0, 0.0, 0.0]
    assert [scores[f"{part}/mrr_at_10"] for part in ("first_stage", "rerank_delta", "pool_ceiling")] == [
        0.16667,  # 1/3 and 0
        0.33333,
        0.5,
    ]
    assert scores["pool_depth"] == 3
    assert scores["n_queries"] == 2
    assert scores["n_queries_without_candidates"] == 0
    assert scores["first_stage_model"] == "run"
    assert len(scores["first_stage_run_hash"]) == 64


def test_a_reranker_can_lose(rerank, stubs):
    worse = {"q1": {"b": 3.0, "a": 2.0, "d": 1.0}, "q2": {}}
    assert compared(rerank(stubs.search(worse), {"q1": {"a": 2.0, "b": 1.0}})) == [0.31546, 0.5, -0.18454, 0.5]


def test_a_positive_outside_the_pool_stays_in_the_denominators(hub, rerank, stubs):
    """Of two relevant documents one is a candidate, and the reranker is perfect."""
    hub.tables["text2code_queries"] = hub.tables["text2code_queries"][:1]
    hub.tables["text2code_qrels"] = [{"query_id": "q1", "doc_id": d, "relevance": 2} for d in "ac"]
    hub.write()
    hub.pin("T2C")
    scores = rerank(stubs.search({"q1": {"a": 1.0, "b": 0.0}}), {"q1": {"b": 1.0, "a": 0.0}})
    assert compared(scores) == [
        0.61315,
        0.38685,
        0.22629,
        0.61315,
    ]  # 0.226294, from the metrics before they are rounded
    assert scores["recall_at_10"] == scores["pool_ceiling/recall_at_10"] == 0.5


def test_cut_offs_deeper_than_the_pool_are_not_reported(rerank, stubs):
    scores = rerank(stubs.search(A_FIRST), FIRST)
    assert {"ndcg_at_1", "ndcg_at_10", "recall_at_5", "language=go/map_at_10", "nauc_mrr_at_3_max"} <= scores.keys()
    assert [key for key in scores if "_at_20" in key or "_at_100" in key] == []


def test_the_pool_is_the_candidates_of_the_query_and_no_others(rerank, stubs):
    """The model would put c first for q1, which only q2 has as a candidate."""
    run = {"q1": {"c": 9.0, "a": 1.0}, "q2": {"c": 9.0, "a": 8.0}}
    scores = rerank(stubs.search(run), {"q1": {"a": 1.0}, "q2": {"c": 1.0}})
    assert compared(scores) == [1.0, 1.0, 0.0, 1.0]


def test_the_excluded_document_is_no_candidate_and_the_pool_is_refilled(rerank, stubs):
    model = stubs.cross_encoder()
    scores = rerank(model, {"q1": {"d": 9.0, "b": 3.0, "a": 2.0, "c": 1.0}}, kind="C2C", depth=2)
    assert {document for _, document in model.seen} == {"code b", "code a"}
    assert scores["pool_depth"] == 2
    assert compared(scores) == [0.63093, 0.63093, 0.0, 1.0]  # b before a by the order of ids, and by the first stage


def test_a_query_without_candidates_scores_0_and_counts(rerank, stubs):
    scores = rerank(stubs.cross_encoder({("find a", "code a"): 1.0}), {"q1": {"a": 1.0, "b": 2.0}})
    assert compared(scores) == [0.5, 0.31546, 0.18454, 0.5]
    assert (scores["n_queries"], scores["n_queries_answered"], scores["n_queries_without_candidates"]) == (2, 1, 1)


def test_no_candidates_at_all(rerank, stubs):
    scores = rerank(stubs.search({}), {"q1": {}})
    assert compared(scores) == [0.0, 0.0, 0.0, 0.0]
    assert (scores["pool_depth"], scores["n_queries_without_candidates"]) == (0, 2)


def test_candidates_without_a_score_count_as_not_retrieved_and_are_told(rerank, stubs, caplog):
    scores = rerank(stubs.search({"q1": {"b": 1.0}}), FIRST)
    assert scores["n_candidates_without_score"] == 4
    assert compared(scores) == [0.0, 0.25, -0.25, 0.5]
    assert "stub/model gave no score to 4 candidates (query 'q1': 2 of 3)" in caplog.text


# Models of every kind


def test_a_cross_encoder_sees_the_pairs_as_they_stand_in_the_data(hub, rerank, stubs):
    hub.tables["code_corpus"][0]["code"] = "    indented\n"
    hub.write()
    hub.pin("T2C")
    model = stubs.cross_encoder()
    rerank(model, FIRST)
    assert sorted(model.seen) == [
        ("find a", "    indented\n"),
        ("find a", "code b"),
        ("find a", "code d"),
        ("find c", "code b"),
        ("find c", "code d"),
    ]


def test_an_encoder_reranks_by_its_similarities_and_with_prompts_of_retrieval(rerank, stubs):
    types = set()

    class Encoder(stubs.encoder):
        def encode(self, inputs, *, task_metadata, **kwargs):
            types.add((task_metadata.name, task_metadata.type))
            return super().encode(inputs, **kwargs)

    encoder = Encoder({"find a": (1, 0), "code a": (3, 0), "code b": (2, 0), "code d": (1, 0)})
    assert compared(rerank(encoder, FIRST)) == [0.5, 0.25, 0.25, 0.5]
    assert types == {("Tiny-T2C-Reranking", "Retrieval")}


@pytest.mark.parametrize("name", SAMPLES)
def test_bm25_on_the_candidates_of_bm25_changes_nothing(name):
    result = mteb.evaluate(mteb.get_model("mteb/baseline-bm25s"), mteb.get_task(name), cache=None, co2_tracker=False)
    for scores in result.task_results[0].scores["test"]:
        deltas = {key: value for key, value in scores.items() if "rerank_delta/" in key}
        assert deltas
        assert set(deltas.values()) == {0.0}
        assert scores["ndcg_at_10"] == scores["first_stage/ndcg_at_10"] > 0


class Oracle:
    """The perfect reranker: the score is the grade."""

    mteb_model_meta = ModelMeta.create_empty({"name": "stub/oracle", "revision": "1"})

    def __init__(self, name):
        self.task = TASKS[name]

    def predict(self, inputs1, inputs2, *, hf_subset, **kwargs):
        qrels, level = load(self.task, hf_subset).qrels, self.task.benchmark.relevance_level
        ids = zip(inputs1.dataset["id"], inputs2.dataset["id"], strict=True)
        return np.array([float(qrels[query].get(document, 0) >= level) for query, document in ids])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_perfect_reranker_reaches_the_ceiling_exactly(name):
    task = mteb.get_task(name)
    task.pool_depth = 5
    result = mteb.evaluate(Oracle(name), task, cache=None, co2_tracker=False, show_progress_bar=False)
    for scores in result.task_results[0].scores["test"]:
        ceilings = [key for key in scores if "pool_ceiling/" in key]
        assert ceilings
        for key in ceilings:
            # mteb leaves its own MRR unrounded
            assert scores[key] == round(scores[key.replace("pool_ceiling/", "")], 5), key
        assert scores["rerank_delta/ndcg_at_10"] >= 0
        assert scores["pool_depth"] == 5


# First stages


@pytest.fixture
def stub_stage(monkeypatch, stubs):
    """Registers a stub first stage under a name; returns the list of its searches."""
    searches = []

    def register(name, run, revision="1"):
        class Stage(stubs.search):
            def search(self, queries, **kwargs):
                searches.append((name, kwargs["task_metadata"].name, kwargs["task_metadata"].type))
                return super().search(queries, **kwargs)

        meta = ModelMeta.create_empty({"name": name, "revision": revision, "loader": lambda *_, **__: Stage(run)})
        monkeypatch.setitem(MODEL_REGISTRY, name, meta)
        return searches

    return register


def test_a_model_as_first_stage_searches_under_the_retrieval_task(rerank, stubs, stub_stage):
    searches = stub_stage("stub/first", FIRST, revision="7")
    scores = rerank(stubs.search(A_FIRST), "stub/first")
    assert compared(scores) == [0.5, 0.25, 0.25, 0.5]
    assert searches == [("stub/first", "Tiny-T2C", "Retrieval")]
    assert (scores["first_stage_model"], scores["first_stage_revision"]) == ("stub/first", "7")
    assert "first_stage_run_hash" not in scores


def test_the_environment_names_the_first_stage(rerank, stubs, stub_stage, monkeypatch):
    stub_stage("stub/first", FIRST)
    monkeypatch.setenv("COREB_TASKS_FIRST_STAGE", "stub/first")
    assert rerank(stubs.search(A_FIRST), None)["first_stage_model"] == "stub/first"
    monkeypatch.delenv("COREB_TASKS_FIRST_STAGE")
    assert rerank(stubs.search(A_FIRST), None)["first_stage_model"] == "mteb/baseline-bm25s"


def test_candidates_are_searched_once_and_kept_beside_the_results(rerank, stubs, stub_stage, tmp_path):
    searches = stub_stage("stub/first", FIRST)
    cache = ResultCache(tmp_path)
    other = stubs.search(A_FIRST)
    other.mteb_model_meta = other.mteb_model_meta.model_copy(update={"name": "stub/other"})
    first = rerank(stubs.search(A_FIRST), "stub/first", cache=cache)
    second = rerank(other, "stub/first", cache=cache)
    assert len(searches) == 1
    assert compared(first) == compared(second)
    kept = list(tmp_path.glob("first_stage/stub__first/1/Tiny-T2C_top128_*_predictions.json"))
    assert len(kept) == 1
    assert json.loads(kept[0].read_text())["default"]["test"] == FIRST
    assert (
        first["pool_hash"]
        == second["pool_hash"]
        == json.loads(kept[0].read_text())["coreb_tasks"]["run_hash"]["default"]
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept["default"]["test"]["q1"].update(b=0.5),
        lambda kept: kept["default"]["test"].pop("q2"),
        lambda kept: kept.pop("coreb_tasks"),
    ],
    ids=["scores", "queries", "header"],
)
def test_kept_candidates_that_were_changed_are_refused(rerank, stubs, stub_stage, tmp_path, change):
    stub_stage("stub/first", FIRST)
    cache = ResultCache(tmp_path)
    rerank(stubs.search(A_FIRST), "stub/first", cache=cache)
    (file,) = tmp_path.glob("first_stage/**/*.json")
    kept = json.loads(file.read_text())
    change(kept)
    file.write_text(json.dumps(kept))
    with pytest.raises(PredictionsError, match=r"were changed since they were kept. Remove the file"):
        rerank(stubs.search(A_FIRST), "stub/first", cache=cache, overwrite_strategy="always")


def test_kept_candidates_of_another_model_are_refused(rerank, stubs, stub_stage, tmp_path):
    stub_stage("stub/first", FIRST)
    cache = ResultCache(tmp_path)
    rerank(stubs.search(A_FIRST), "stub/first", cache=cache)
    (kept,) = tmp_path.glob("first_stage/**/*.json")
    kept.write_text(kept.read_text().replace('"stub/first"', '"stub/else"'))
    with pytest.raises(PredictionsError, match=r"predictions of stub/else \(1\), expected stub/first \(1\)"):
        rerank(stubs.search(A_FIRST), "stub/first", cache=cache, overwrite_strategy="always")


def test_a_stored_result_on_other_candidates_is_not_returned(rerank, stubs, stub_stage, tmp_path, caplog):
    stub_stage("stub/first", FIRST)
    stub_stage("stub/second", A_FIRST)
    cache = ResultCache(tmp_path)
    assert compared(rerank(stubs.search(A_FIRST), "stub/first", cache=cache))[2] == 0.25
    assert compared(rerank(stubs.search(A_FIRST), "stub/second", cache=cache))[2] == 0.0
    assert "its first_stage_model is 'stub/first', the task's is 'stub/second'. It is run again" in caplog.text
    assert compared(rerank(stubs.search(FIRST), A_FIRST, cache=cache))[2] == -0.25
    assert compared(rerank(stubs.search({}), "stub/second", cache=cache))[2] == -0.5  # a run hash where none is now
    caplog.clear()
    assert compared(rerank(stubs.search(FIRST), "stub/second", cache=cache))[2] == -0.5  # stored, as asked for
    assert caplog.text == ""


def test_a_changed_run_of_one_name_is_another_first_stage(rerank, stubs, tmp_path):
    cache = ResultCache(tmp_path)
    assert compared(rerank(stubs.search(A_FIRST), FIRST, cache=cache))[1] == 0.25
    assert compared(rerank(stubs.search(A_FIRST), A_FIRST, cache=cache))[1] == 0.5


def test_a_stored_result_of_another_depth_is_not_returned(rerank, stubs, stub_stage, tmp_path):
    stub_stage("stub/first", FIRST)
    cache = ResultCache(tmp_path)
    assert rerank(stubs.search(A_FIRST), "stub/first", cache=cache)["pool_depth"] == 3
    scores = rerank(stubs.search(A_FIRST), "stub/first", cache=cache, depth=2)
    assert (scores["pool_depth"], scores["first_stage_depth"]) == (2, 2)


def test_the_first_stage_can_change_while_the_data_stay_loaded(reranking_of, stubs, stub_stage):
    task = reranking_of("T2C")
    task.load_data()
    for given, delta in ((FIRST, 0.25), (A_FIRST, 0.0)):
        task.first_stage = given
        result = mteb.evaluate(stubs.search(A_FIRST), task, cache=None, co2_tracker=False, show_progress_bar=False)
        assert result.task_results[0].scores["test"][0]["rerank_delta/ndcg_at_10"] == delta
        task.load_data()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_mtebs_older_runner_does_not_return_a_result_on_other_candidates(stubs, tmp_path):
    found = []
    for stage in ("mteb/baseline-bm25s", "mteb/baseline-random-encoder"):
        task = mteb.get_task("CPRet-P2Dup-Reranking-Sample")
        task.first_stage = stage
        model = mteb.get_model("mteb/baseline-random-cross-encoder")
        (result,) = mteb.MTEB(tasks=[task]).run(model, output_folder=str(tmp_path), co2_tracker=False, verbosity=0)
        found.append(result.scores["test"][0]["first_stage_model"])
    assert found == ["mteb/baseline-bm25s", "mteb/baseline-random-encoder"]


def test_the_options_of_the_reranker_are_not_the_first_stages(rerank, stubs, monkeypatch):
    seen = []

    class Stage(stubs.search):
        def search(self, queries, *, encode_kwargs, **kwargs):
            seen.append(encode_kwargs)
            return super().search(queries, **kwargs)

    meta = ModelMeta.create_empty({"name": "stub/first", "revision": "1", "loader": lambda *_, **__: Stage(FIRST)})
    monkeypatch.setitem(MODEL_REGISTRY, "stub/first", meta)
    rerank(stubs.search(A_FIRST), "stub/first", encode_kwargs={"batch_size": 3, "truncate_dim": 2})
    assert seen == [{"batch_size": 3}]


def predictions(tmp_path, task, run, stubs, name="stub/first"):
    model = stubs.search(run)
    model.mteb_model_meta = model.mteb_model_meta.model_copy(update={"name": name})
    mteb.evaluate(model, task, cache=None, co2_tracker=False, prediction_folder=tmp_path)
    return tmp_path / f"{task.metadata.name}_predictions.json"


@pytest.mark.parametrize("as_file", [True, False], ids=["file", "folder"])
def test_predictions_of_an_earlier_evaluation(task_of, rerank, stubs, tmp_path, as_file):
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    scores = rerank(stubs.search(A_FIRST), str(file if as_file else tmp_path))
    assert compared(scores) == [0.5, 0.25, 0.25, 0.5]
    assert (scores["first_stage_model"], scores["first_stage_revision"]) == ("stub/first", "1")
    assert len(scores["first_stage_run_hash"]) == 64


def test_mtebs_own_way_to_name_predictions(hub, task_of, stubs, tmp_path):
    predictions(tmp_path, task_of("C2C"), {"q1": {"b": 3.0, "a": 2.0, "c": 1.0}}, stubs)
    with pytest.raises(TypeError, match=r"Tiny-C2C stays a retrieval task. Use mteb.get_task\('CoREB-C2C-Reranking'\)"):
        task_of("C2C").convert_to_reranking(tmp_path)
    sample = mteb.get_task("CoREB-C2C-Reranking-Sample").convert_to_reranking(tmp_path, top_k=7)
    assert (sample.first_stage, sample.pool_depth) == (tmp_path, 7)


def test_a_run_by_subset():
    run = {
        subset: {query: {query: 1.0} for query in load(TASKS["1C-Ebench-Sample"], subset).queries}
        for subset in ("forum", "fastcode")
    }
    task = mteb.get_task("1C-Ebench-Reranking-Sample")
    task.first_stage = run
    result = mteb.evaluate(mteb.get_model("mteb/baseline-random-encoder"), task, cache=None, co2_tracker=False)
    assert [compared(scores) for scores in result.task_results[0].scores["test"]] == [[1.0, 1.0, 0.0, 1.0]] * 2


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int64, int])
def test_a_run_in_python_can_have_the_numbers_of_numpy(rerank, stubs, number):
    run = {query: {document: number(score) for document, score in scores.items()} for query, scores in FIRST.items()}
    assert compared(rerank(stubs.search(A_FIRST), run)) == [0.5, 0.25, 0.25, 0.5]


def test_an_empty_run_is_no_default(rerank, stubs):
    scores = rerank(stubs.search(A_FIRST), {})
    assert scores["first_stage_model"] == "run"
    assert scores["n_queries_without_candidates"] == scores["n_queries_with_short_pool"] == 2


# Errors


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"q1": {"zz": 1.0}}, "candidate 'zz' of query 'q1' is not in the corpus"),
        ({"q9": {"a": 1.0}}, r"query 'q9' \(1 in all\) is not among the task's queries"),
        ({"q1": {"a": float("nan")}}, "the score of query 'q1' and document 'a' is nan, expected a number"),
        (
            {"q1": {"a": 1e39}},
            "query 'q1' and document 'a' is 1e.39, expected a number that is finite in single precis",
        ),
        ({"q1": {"a": None}}, "the score of query 'q1' and document 'a' is None, expected a number"),
        ({"q1": {"a": "1"}}, "the score of query 'q1' and document 'a' is '1', expected a number"),
        ({"q1": ["a", "b"]}, "query 'q1' has a list, expected a mapping of document ids to scores"),
        ({"q1": None}, "query 'q1' has a NoneType, expected a mapping"),
    ],
)
def test_a_run_that_cannot_be_of_the_data(rerank, stubs, run, message):
    with pytest.raises(PredictionsError, match=message):
        rerank(stubs.search(A_FIRST), run)


def test_a_candidate_or_a_query_twice(task_of, rerank, stubs, tmp_path):
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    whole = file.read_text()
    file.write_text(whole.replace('"d": 2.0, "a": 1.0', '"d": 2.0, "d": 1.0'))
    with pytest.raises(PredictionsError, match=r"query 'q1': a document stands twice: 'd'"):
        rerank(stubs.search(A_FIRST), file)
    file.write_text(whole.replace('"q2"', '"q1"'))
    with pytest.raises(PredictionsError, match=r"a query stands twice: 'q1'"):
        rerank(stubs.search(A_FIRST), file)


def test_predictions_for_other_data_are_refused_with_both_named(hub, task_of, rerank, stubs, tmp_path):
    file = predictions(tmp_path, task_of("C2C"), {"q1": {"a": 1.0}}, stubs)
    with pytest.raises(PredictionsError, match=r"predictions for Tiny-C2C on data with hash \w{12}, expected Tiny-T2C"):
        rerank(stubs.search(A_FIRST), file)
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    hub.tables["code_corpus"][0]["code"] += " "
    hub.write()
    hub.pin("T2C")
    with pytest.raises(PredictionsError, match=r"Tiny-T2C on data with hash \w{12}, expected Tiny-T2C on"):
        rerank(stubs.search(A_FIRST), file)


def test_predictions_of_a_subtask_are_refused(rerank, task_of, stubs, tmp_path):
    """It is of the same data, in the same subset."""
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    file.write_text(file.read_text().replace('"task": "Tiny-T2C"', '"task": "Tiny-T2C-Search"'))
    with pytest.raises(PredictionsError, match=r"holds predictions for Tiny-T2C-Search, expected Tiny-T2C "):
        rerank(stubs.search(A_FIRST), file)


def test_predictions_of_the_reranking_task_can_be_reranked_again(hub, rerank, stubs, tmp_path):
    rerank(stubs.search(A_FIRST), FIRST, prediction_folder=tmp_path)
    scores = rerank(stubs.search(A_FIRST), tmp_path / "Tiny-T2C-Reranking_predictions.json")
    assert compared(scores) == [0.5, 0.5, 0.0, 0.5]


def test_a_subset_without_a_run():
    task = mteb.get_task("1C-Ebench-Reranking-Sample")
    task.first_stage = {"forum": {}}
    with pytest.raises(PredictionsError, match="has no run for subset fastcode"):
        mteb.evaluate(mteb.get_model("mteb/baseline-random-encoder"), task, cache=None, co2_tracker=False)


def test_predictions_that_do_not_say_their_data_are_taken_with_a_warning(task_of, rerank, stubs, tmp_path, caplog):
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    content = json.loads(file.read_text())
    del content["coreb_tasks"]
    file.write_text(json.dumps(content))
    assert compared(rerank(stubs.search(A_FIRST), file))[1] == 0.25
    assert "does not say which data its predictions are of" in caplog.text


def test_no_predictions_where_they_should_be(task_of, rerank, stubs, tmp_path):
    predictions(tmp_path, task_of("C2C"), {}, stubs)
    with pytest.raises(
        FileNotFoundError, match=r"Tiny-T2C_predictions.json; the folder holds Tiny-C2C_predictions.json"
    ):
        rerank(stubs.search(A_FIRST), str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"there is no such file. Run Tiny-T2C with --prediction-folder"):
        rerank(stubs.search(A_FIRST), str(tmp_path / "none.json"))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"mteb_model_meta": {}}', '{"mteb_model_meta": 1, "default": 2}'])
def test_what_is_no_prediction_file(rerank, stubs, tmp_path, content):
    file = tmp_path / "broken.json"
    file.write_text(content)
    with pytest.raises(PredictionsError, match=r"broken.json: "):
        rerank(stubs.search(A_FIRST), file)


def test_an_unknown_first_stage_is_named(rerank, stubs):
    with pytest.raises(
        ValueError, match=r"first stage 'nobody/nothing' cannot be loaded .* Expected a model that mteb"
    ):
        rerank(stubs.search(A_FIRST), "nobody/nothing")


def test_a_cross_encoder_cannot_be_a_first_stage(rerank, stubs):
    with pytest.raises(TypeError, match=r"first stage of Tiny-T2C-Reranking: .* cannot search a corpus: name another"):
        rerank(stubs.search(A_FIRST), "mteb/baseline-random-cross-encoder")


def test_a_cross_encoder_on_a_retrieval_task_is_told_the_reranking_task(evaluate, stubs):
    with pytest.raises(TypeError, match=r"stub/cross-encoder is a cross-encoder, .* Run it on CoREB-C2C-Reranking"):
        evaluate(stubs.cross_encoder(), "C2C")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_of_a_cross_encoder_that_is_not_finite(rerank, stubs, bad):
    with pytest.raises(SearchError, match=rf"query 'q2' and document 'b' is {bad}"):
        rerank(stubs.cross_encoder({("find c", "code b"): bad}), FIRST)


def test_a_cross_encoder_that_loses_pairs(rerank, stubs):
    class Short(stubs.cross_encoder):
        def predict(self, *inputs, **kwargs):
            return super().predict(*inputs, **kwargs)[:-1]

    with pytest.raises(SearchError, match=r"the model gave scores of shape \(4,\) for 5 pairs"):
        rerank(Short(), FIRST)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: scores.reshape(-1, 1), None),
        (lambda scores: torch.tensor(scores, dtype=torch.bfloat16), None),
        (list, None),
        (lambda scores: np.stack([scores, scores], axis=1), r"scores of shape \(5, 2\) for 5 pairs"),
        (lambda scores: [None for _ in scores], "query 'q1' and document 'b' is nan"),
        (lambda scores: ["high" for _ in scores], "expected a number for each of 5 pairs"),
    ],
    ids=["column", "bf16", "list", "two columns", "None", "words"],
)
def test_the_forms_of_scores(rerank, stubs, change, message):
    class Other(stubs.cross_encoder):
        def predict(self, *inputs, **kwargs):
            return change(super().predict(*inputs, **kwargs))

    model = Other({("find a", "code a"): 1.0})
    if message:
        with pytest.raises(SearchError, match=message):
            rerank(model, FIRST)
    else:
        assert compared(rerank(model, FIRST)) == [0.5, 0.25, 0.25, 0.5]


def test_a_cross_encoder_is_not_asked_for_nothing():
    task = mteb.get_task("CPRet-P2Dup-Reranking-Sample")
    task.first_stage = {}
    model = mteb.get_model("mteb/baseline-random-cross-encoder")
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    assert result.task_results[0].get_score() == 0


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_similarity_of_an_encoder_that_is_not_finite(rerank, stubs):
    with pytest.raises(SearchError, match="query 'q1' and document 'd' is nan"):
        rerank(stubs.encoder({"code d": (np.nan, 0.0)}), FIRST)
    rerank(stubs.encoder({"code c": (np.nan, 0.0)}), FIRST)  # no candidate of any query


def test_predictions_of_two_models_do_not_share_a_file(task_of, stubs, tmp_path):
    """Before any search, and whichever comes first stays."""
    file = predictions(tmp_path, task_of(), FIRST, stubs)
    before = file.read_text()
    predictions(tmp_path, task_of(), FIRST, stubs)
    assert file.read_text() == before
    with pytest.raises(PredictionsError, match=r"predictions of stub/first \(1\), expected stub/second \(1\)"):
        predictions(tmp_path, task_of(), A_FIRST, stubs, name="stub/second")
    assert file.read_text() == before


def test_reading_results_back_does_not_ask_for_the_first_stage(rerank, stubs, tmp_path, caplog):
    cache = ResultCache(tmp_path)
    rerank(stubs.search(A_FIRST), FIRST, cache=cache)
    with caplog.at_level(logging.WARNING):
        assert len(cache.load_results(include_remote=False).model_results) == 1
    assert "is not of this task" not in caplog.text
