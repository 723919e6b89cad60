"""Search with models of every kind of mteb gives a clean run."""

import mteb
import numpy as np
import pytest
import torch
from datasets import Dataset
from mteb.models import HybridSearch, SearchEncoderWrapper
from mteb.models.model_meta import ModelMeta

from coreb_tasks.wrappers import SearchError, protocol_search
from coreb_tasks.wrappers.search import SEARCH_DEPTH

TASK = mteb.get_task("CoREB-T2C-Sample").metadata
RERANKING = mteb.get_task("CoREB-T2C-Reranking-Sample").metadata


class Encoder:
    """The vector of a text is the number that it ends with."""

    mteb_model_meta = ModelMeta.create_empty({"name": "stub/encoder", "revision": "1"})

    def encode(self, inputs, *, prompt_type, **kwargs):
        return np.array([[float(text.split()[-1])] for batch in inputs for text in batch["text"]], dtype=np.float32)

    def similarity(self, embeddings1, embeddings2):
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1, embeddings2):
        return (embeddings1 * embeddings2).sum(axis=1)


class Own:
    """Brings its own search; keeps the depth that it was asked for."""

    mteb_model_meta = Encoder.mteb_model_meta

    def index(self, corpus, **kwargs):
        self.ids = corpus["id"]

    def search(self, queries, *, top_k, **kwargs):
        self.top_k = top_k
        return {query: dict.fromkeys(self.ids, 1.0) for query in queries["id"]}


def run(model, documents, excluded=None):
    searcher = protocol_search(model, excluded or {})
    common = {"task_metadata": TASK, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {"batch_size": 8}}
    corpus = Dataset.from_dict({"id": list(documents), "text": list(documents.values())})
    searcher.index(corpus, **common, num_proc=None)
    queries = Dataset.from_dict({"id": ["q1", "q2"], "text": ["query 1", "query -1"]})
    return searcher.search(queries, top_k=10, **common, num_proc=None)


def test_an_encoders_run_is_ordered_and_lacks_what_is_excluded():
    found = run(Encoder(), {"a": "text 1", "b": "text 3", "c": "text 2"}, {"q1": {"b"}})
    assert {query: list(ranked.items()) for query, ranked in found.items()} == {
        "q1": [("c", 2.0), ("a", 1.0)],
        "q2": [("a", -1.0), ("c", -2.0), ("b", -3.0)],
    }


def test_a_search_encoder_wrapper_is_taken_as_it_is():
    assert list(run(SearchEncoderWrapper(Encoder()), {"a": "text 1", "b": "text 3"})["q1"]) == ["b", "a"]


def test_the_exclusion_leaves_a_full_ranking():
    model = Own()
    documents = {f"d{number:04}": "text 1" for number in range(SEARCH_DEPTH + 50)}
    found = run(model, documents, {"q1": {"d0007", "d0008"}})
    assert model.top_k == SEARCH_DEPTH + 2
    assert {query: len(ranked) for query, ranked in found.items()} == {"q1": 10, "q2": 10}
    assert list(found["q2"])[:2] == ["d1049", "d1048"]
    assert not {"d0007", "d0008"} & found["q1"].keys()


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="expected an mteb encoder, cross-encoder or search model, got str"):
        protocol_search("model", {})


class NotFinite(Encoder):
    """The vector of a document that ends with 7 is NaN."""

    def encode(self, inputs, *, prompt_type, **kwargs):
        vectors = super().encode(inputs, prompt_type=prompt_type, **kwargs)
        return np.where(vectors == 7, np.nan, vectors)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda encoder: encoder,
        SearchEncoderWrapper,
        lambda encoder: HybridSearch([encoder, encoder], None, 10, "rrf"),
        lambda encoder: HybridSearch([encoder, SearchEncoderWrapper(encoder)], None, 10, "rrf"),
    ],
    ids=["encoder", "search wrapper", "fusion of ranks", "fusion with a wrapper"],
)
def test_a_vector_that_is_not_finite_is_an_error_whatever_searches_with_it(wrap):
    with pytest.raises(SearchError, match=r"CoREB-T2C-Sample: the score of query 'q1' and document 'b' is nan"):
        run(wrap(NotFinite()), {"a": "text 1", "b": "text 7", "c": "text 2"})
    assert run(wrap(NotFinite()), {"a": "text 1", "c": "text 2"})["q1"]


def test_the_model_that_was_given_is_left_as_it_was():
    encoder = Encoder()
    given = SearchEncoderWrapper(encoder)
    run(given, {"a": "text 1"})
    assert given.model is encoder


@pytest.mark.parametrize("score", [None, "high", [1.0]])
def test_a_score_that_is_no_number_names_the_query(score):
    class Broken(Own):
        def search(self, queries, **kwargs):
            return {"q2": {"a": score}}

    with pytest.raises(SearchError, match="CoREB-T2C-Sample: a score of query 'q2' is not a number"):
        run(Broken(), {"a": "text 1"})


@pytest.mark.parametrize("score", [1e39, -3.4028234663852886e38])
def test_a_score_beyond_single_precision_is_refused(score):
    class Huge(Own):
        def search(self, queries, **kwargs):
            return {"q1": {"a": score}}

    with pytest.raises(SearchError, match="query 'q1' and document 'a'"):
        run(Huge(), {"a": "text 1"})


def test_scores_are_compared_as_pytrec_eval_compares_them():
    class Close(Own):
        def search(self, queries, **kwargs):
            return {"q1": {"a": 1.0 + 1e-12, "b": 1.0}}

    assert list(run(Close(), {"a": "text 1", "b": "text 1"})["q1"]) == ["b", "a"]


def test_a_tie_that_reaches_into_the_scored_ranks_is_searched_to_its_end():
    """All of 1,200 documents tie; the first ranks are the last ids, wherever they stand in the corpus."""
    constant = {f"d{number:04}": "text 1" for number in range(SEARCH_DEPTH + 200)}
    for documents in (constant, dict(reversed(constant.items()))):
        assert list(run(Encoder(), documents)["q1"])[:3] == ["d1199", "d1198", "d1197"]


def test_tied_queries_are_searched_in_parts_that_fit(monkeypatch):
    constant = {f"d{number:04}": "text 1" for number in range(SEARCH_DEPTH + 200)}
    whole = run(Encoder(), constant)
    monkeypatch.setattr("coreb_tasks.wrappers.exact._SCORES_AT_ONCE", 1)
    assert run(Encoder(), constant) == whole
    assert {len(ranked) for ranked in whole.values()} == {10}


# Reranking


class CutsFirst(Own):
    """Ranks by the number at the end of a document's text, cuts, and only then looks for the candidates (as BM25)."""

    def __init__(self):
        self.calls = []

    def index(self, corpus, **kwargs):
        self.scores = {row["id"]: float(row["text"].split()[-1]) for row in corpus}

    def search(self, queries, *, top_k, top_ranked, **kwargs):
        self.calls.append((list(queries["id"]), top_k))
        best = sorted(self.scores, key=self.scores.get, reverse=True)[:top_k]
        return {query: {d: self.scores[d] for d in best if d in top_ranked[query]} for query in queries["id"]}


def rerank(model, documents, pools):
    searcher = protocol_search(model, {})
    common = {
        "task_metadata": RERANKING,
        "hf_split": "test",
        "hf_subset": "default",
        "encode_kwargs": {"batch_size": 8},
    }
    corpus = Dataset.from_dict({"id": list(documents), "text": list(documents.values())})
    searcher.index(corpus, **common, num_proc=None)
    queries = Dataset.from_dict({"id": ["q1", "q2"], "text": ["query 1", "query -1"]})
    return searcher.search(queries, top_k=10, top_ranked=pools, **common, num_proc=None), searcher


def test_candidates_beyond_the_depth_of_a_models_own_search_are_reached():
    documents = {f"d{number:04}": f"text {-number}" for number in range(SEARCH_DEPTH + 200)}
    model = CutsFirst()
    found, searcher = rerank(model, documents, {"q1": ["d1199", "d0003"], "q2": ["d0001"]})
    assert {query: list(ranked.items()) for query, ranked in found.items()} == {
        "q1": [("d0003", -3.0), ("d1199", -1199.0)],
        "q2": [("d0001", -1.0)],
    }
    assert model.calls == [(["q1", "q2"], SEARCH_DEPTH), (["q1"], SEARCH_DEPTH + 200)]
    assert searcher.measured == {}


@pytest.mark.parametrize(
    "wrap",
    [lambda encoder: encoder, SearchEncoderWrapper, lambda encoder: HybridSearch([encoder, encoder], None, 10, "rrf")],
    ids=["encoder", "search wrapper", "fusion"],
)
def test_an_encoder_reranks_the_candidates_only(wrap):
    found, _ = rerank(wrap(Encoder()), {"a": "text 1", "b": "text 3", "c": "text 2"}, {"q1": ["a", "c"], "q2": []})
    assert {query: list(ranked) for query, ranked in found.items()} == {"q1": ["c", "a"], "q2": []}


def test_bm25_reranks_documents_that_it_would_not_have_found():
    documents = {f"d{number:04}": "common words" for number in range(SEARCH_DEPTH + 200)} | {"z": "query"}
    pools = {"q1": ["d0000", "d0600", "d1199", "z"], "q2": ["d0001", "d1100"]}
    found, _ = rerank(mteb.get_model("mteb/baseline-bm25s"), documents, pools)
    assert {query: sorted(ranked) for query, ranked in found.items()} == {q: sorted(pool) for q, pool in pools.items()}
    assert next(iter(found["q1"])) == "z"


class SparseEncoder(Encoder):
    def encode(self, inputs, **kwargs):
        return torch.tensor(super().encode(inputs, **kwargs)).to_sparse()


def test_a_sparse_encoder_reranks():
    found, _ = rerank(SparseEncoder(), {"a": "text 1", "b": "text 3"}, {"q1": ["a", "b"], "q2": ["a"]})
    assert {query: list(ranked) for query, ranked in found.items()} == {"q1": ["b", "a"], "q2": ["a"]}
