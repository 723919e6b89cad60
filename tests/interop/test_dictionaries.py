"""BEIR itself on our data: its searches, its loader and its evaluation give the task's numbers."""

import numpy as np
import pytest
from beir.retrieval.evaluation import EvaluateRetrieval
from beir.retrieval.search.dense import DenseRetrievalExactSearch

from coreb_tasks import interop
from coreb_tasks.data import PredictionsError, load
from coreb_tasks.facts import TASKS
from coreb_tasks.facts.find import UnknownTaskError
from coreb_tasks.rules import CUT_OFFS

SAMPLES = [
    (name, subset) for name, task in TASKS.items() if task.sample and task.reranks is None for subset in task.subsets
]


def by_beir(qrels, results, *, allow_equal_ids=False):
    """BEIR's metrics under mteb's names."""
    results = {query: dict(found) for query, found in results.items()}
    tables = EvaluateRetrieval.evaluate(qrels, results, list(CUT_OFFS), ignore_identical_ids=not allow_equal_ids)
    names = {"NDCG": "ndcg", "MAP": "map", "Recall": "recall", "P": "precision"}
    found = {}
    for key, value in (item for table in tables for item in table.items()):
        metric, cut_off = key.split("@")
        found[f"{names[metric]}_at_{cut_off}"] = value
    return found


@pytest.mark.parametrize(("name", "subset"), SAMPLES)
def test_beir_gives_the_scores_of_the_task(name, subset, random_run):
    """With its default too, under which it drops documents that have their query's id."""
    run = random_run(load(TASKS[name], subset), 60)
    scores = interop.score(name, run, subset)
    qrels = interop.beir(name, subset).qrels
    ready = interop.beir_results(name, run, subset)
    assert scores["n_queries_answered"] == scores["n_queries"] - 1
    for allow in (True, False):
        found = by_beir(qrels, ready, allow_equal_ids=allow)
        assert found == {key: scores[key] for key in found}


def test_a_documents_id_that_is_its_querys_does_not_cost_it_in_beir():
    """A perfect run of 1C-Ebench, whose relevant documents have their queries' ids."""
    data = load(TASKS["1C-Ebench-Sample"], "forum")
    perfect = {query: {query: 1.0} for query in data.queries}
    assert interop.score("1C-Ebench-Sample", perfect, "forum")["ndcg_at_10"] == 1
    ready = interop.beir_results("1C-Ebench-Sample", perfect, "forum")
    assert by_beir(interop.beir("1C-Ebench-Sample", "forum").qrels, ready)["ndcg_at_10"] == 1


class StubModel:
    """A model of BEIR: a vector for each text, by hashing its characters."""

    def encode_queries(self, queries, **kwargs):
        return self._encode(queries)

    def encode_corpus(self, corpus, **kwargs):
        return self._encode([(document["title"] + " " + document["text"]).strip() for document in corpus])

    def _encode(self, texts):
        import torch

        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for one, other in zip(text.strip(), text.strip()[1:], strict=False):
                vectors[row, (31 * ord(one) + ord(other)) % 64] += 1
        return torch.from_numpy(vectors)


@pytest.mark.filterwarnings("ignore:.*__array__ implementation doesn't accept a copy keyword:DeprecationWarning")
def test_dense_search_of_beir_runs_on_the_data_and_its_anchors_are_taken_out():
    corpus, queries, qrels = interop.beir("CoREB-C2C-Sample")
    retriever = EvaluateRetrieval(DenseRetrievalExactSearch(StubModel(), batch_size=16), k_values=[101])
    results = retriever.retrieve(corpus, queries)
    data = load(TASKS["CoREB-C2C-Sample"])
    assert all(excluded <= results[query].keys() for query, excluded in data.excluded.items())  # it equals the query
    scores = interop.score("CoREB-C2C-Sample", results)
    raw = by_beir(qrels, results)
    ready = by_beir(qrels, interop.beir_results("CoREB-C2C-Sample", results))
    assert ready == {key: scores[key] for key in ready}
    assert raw["ndcg_at_1"] == 0  # what stock harnesses report
    assert ready["ndcg_at_10"] > raw["ndcg_at_10"]


def test_grades_are_at_the_level_unless_they_are_asked_for(tiny):
    tiny("C2C")
    assert interop.beir("Tiny-C2C").qrels == {"q1": {"a": 1, "b": 0}}
    corpus, queries, qrels = interop.beir("Tiny-C2C", graded=True)
    assert qrels == {"q1": {"a": 2, "b": 1}}
    assert (corpus["a"], queries) == ({"title": "", "text": "code a"}, {"q1": "code d"})


def test_an_unanswered_query_counts_in_beir_too(tiny):
    tiny("T2C")
    run = {"q1": {"a": 1.0}}
    assert interop.score("Tiny-T2C", run)["ndcg_at_10"] == 0.5
    ready = interop.beir_results("Tiny-T2C", run)
    assert by_beir(interop.beir("Tiny-T2C").qrels, ready)["ndcg_at_10"] == 0.5


def test_names_and_runs_that_are_none_are_refused():
    with pytest.raises(UnknownTaskError, match="unknown task CoREB-T2D, did you mean CoREB-T2C"):
        interop.beir("CoREB-T2D")
    with pytest.raises(UnknownTaskError, match="1C-Ebench-Sample has no subset default; it has forum, fastcode"):
        interop.beir("1C-Ebench-Sample")
    with pytest.raises(UnknownTaskError, match="name CoREB-C2C-Sample"):
        interop.score("CoREB-C2C-Reranking-Sample", {})
    with pytest.raises(UnknownTaskError, match="name one of CoREB-T2C, CoREB-C2C, CoREB-C2T"):
        interop.score("CoREB-Overall", {})
    with pytest.raises(PredictionsError, match="expected a run: query id -> document id -> score, got 3"):
        interop.score("CoREB-C2C-Sample", 3)


def test_a_run_file_reads_in_the_ids_of_the_data(tmp_path):
    query, document = next(iter(load(TASKS["1C-Ebench-Sample"], "forum").qrels.items()))
    (tmp_path / "run.json").write_text(f'{{"query-{query}": {{"{next(iter(document))}": 1}}}}')
    assert interop.read_run("1C-Ebench-Sample", tmp_path / "run.json", "forum") == {query: {next(iter(document)): 1.0}}
