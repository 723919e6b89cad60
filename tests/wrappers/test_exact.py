"""Exact search finds what sorting everything finds, ties by document id descending, in blocks of any size."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coreb_tasks.wrappers import SearchError, exact
from coreb_tasks.wrappers.exact import ExactIndex


def dot(queries, documents):
    return torch.as_tensor(queries) @ torch.as_tensor(documents).T


def search(queries, documents, top_k, similarity=dot, pools=None):
    """``queries`` and ``documents``: vectors by id."""
    vectors = [np.array(list(side.values()), dtype=np.float32) for side in (queries, documents)]
    index = ExactIndex(list(documents), vectors[1])
    return index.search(list(queries), vectors[0], top_k, similarity, pools=pools, task="Task")


numbers = st.sampled_from([-1.0, 0.0, 0.5, 1.0])  # few, so that many tie
ids = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), ids, st.integers(1, 15), st.integers(1, 30))
def test_it_finds_the_first_of_the_whole_ranking(monkeypatch, data, names, top_k, block):
    monkeypatch.setattr(exact, "_SCORES_AT_ONCE", block)
    documents = {name: [data.draw(numbers), data.draw(numbers)] for name in names}
    queries = {f"q{number}": [data.draw(numbers), data.draw(numbers)] for number in range(3)}
    run = search(queries, documents, top_k)
    for query, vector in queries.items():
        scores = {name: float(np.dot(vector, other)) for name, other in documents.items()}
        expected = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)[:top_k]
        assert list(run[query].items()) == expected


def test_where_everything_ties_the_last_ids_are_found():
    documents = {f"d{number:04}": [1.0] for number in reversed(range(3000))}
    assert list(search({"q": [1.0]}, documents, 3)["q"]) == ["d2999", "d2998", "d2997"]


def test_candidates_are_scored_one_pool_a_query():
    documents = {"a": [1.0], "b": [2.0], "c": [3.0]}
    run = search(
        {"q1": [1.0], "q2": [-1.0], "q3": [1.0]}, documents, 1, pools={"q1": ["c", "a"], "q2": ["b"], "q3": []}
    )
    assert run == {"q1": {"c": 3.0, "a": 1.0}, "q2": {"b": -2.0}, "q3": {}}


@pytest.mark.parametrize("pools", [None, {"q": ["a", "b"]}], ids=["corpus", "pool"])
def test_a_similarity_that_is_not_finite_names_query_and_document(pools):
    with pytest.raises(SearchError, match="Task: the score of query 'q' and document 'b' is inf"):
        search({"q": [1.0]}, {"a": [1.0], "b": [np.inf]}, 1, pools=pools)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, np.float16])
def test_half_precision_is_summed_in_single(dtype):
    """4096 times 1/64 of 1 is 64, which a sum in half precision misses by far."""
    values = np.full((1, 4096), 1 / 64)
    vectors = values.astype(dtype) if dtype is np.float16 else torch.tensor(values, dtype=dtype)
    seen = []
    run = ExactIndex(["d"], vectors).search(
        ["q"], vectors, 1, lambda a, b: seen.append((a.dtype, b.dtype)) or dot(a, b)
    )
    assert run == {"q": {"d": 1.0}}
    assert {str(kind).removeprefix("torch.") for kind in seen[0]} == {"float32"}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_vectors():
    index = ExactIndex(["a", "b", "c"], torch.eye(3).to_sparse())
    vectors = torch.tensor([[0.0, 1, 2], [3, 0, 0]]).to_sparse()
    run = index.search(["q1", "q2"], vectors, 2, lambda a, b: torch.mm(a, b.t()).to_dense())
    assert run == {"q1": {"c": 2.0, "b": 1.0}, "q2": {"a": 3.0, "c": 0.0}}


def test_no_more_than_a_block_of_scores_is_asked_for(monkeypatch):
    monkeypatch.setattr(exact, "_SCORES_AT_ONCE", 10)
    shapes = []

    def similarity(queries, documents):
        shapes.append((len(queries), len(documents)))
        return dot(queries, documents)

    search({f"q{n}": [1.0] for n in range(7)}, {f"d{n}": [1.0] for n in range(5)}, 2, similarity)
    assert shapes == [(2, 5), (2, 5), (2, 5), (1, 5)]
