"""Search with models of every kind of mteb gives a clean run."""

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.models import SearchEncoderWrapper
from mteb.models.model_meta import ModelMeta

from coreb_tasks.wrappers import SEARCH_DEPTH, protocol_search

TASK = mteb.get_task("CoREB-T2C-Sample").metadata


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
    assert {query: len(ranked) for query, ranked in found.items()} == {"q1": SEARCH_DEPTH, "q2": SEARCH_DEPTH}
    assert list(found["q2"])[:2] == ["d1049", "d1048"]
    assert not {"d0007", "d0008"} & found["q1"].keys()


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="expected an mteb encoder, cross-encoder or search model, got str"):
        protocol_search("model", {})
