"""BM25 Okapi: worked by hand, against an oracle in plain Python, and its ways with ties and candidates."""

import math
import re
import sys

import mteb
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from mteb.models import SearchProtocol

from coreb_tasks.wrappers import protocol_search
from coreb_tasks.wrappers.okapi import BM25Okapi

pytest.importorskip("bm25s")

COMMON = {
    "task_metadata": mteb.get_task("1C-Ebench-Sample").metadata,
    "hf_split": "test",
    "hf_subset": "forum",
    "encode_kwargs": {},
    "num_proc": None,
}


def table(texts, **columns):
    return Dataset.from_dict({"id": list(texts), "text": list(texts.values()), **columns})


def run(documents, queries, top_k=10, model=None, **options):
    model = model or BM25Okapi()
    model.index(table(documents), **COMMON)
    return model.search(table(queries), top_k=top_k, **COMMON, **options)


def oracle(documents, query, k1=1.2, b=0.75, epsilon=0.25):
    """rank_bm25's BM25Okapi, term by term."""
    words = {document: re.findall(r"\w+", text.lower()) for document, text in documents.items()}
    vocabulary = {word for own in words.values() for word in own}
    counts = {word: sum(word in own for own in words.values()) for word in vocabulary}
    idf = {w: math.log(len(documents) - n + 0.5) - math.log(n + 0.5) for w, n in counts.items()}
    floor = epsilon * sum(idf.values()) / max(1, len(idf))
    idf = {word: floor if value < 0 else value for word, value in idf.items()}
    mean = sum(map(len, words.values())) / len(words)
    scores = dict.fromkeys(documents, 0.0)
    for document, own in words.items():
        for word in re.findall(r"\w+", query.lower()):
            tf = own.count(word)
            if tf:
                scores[document] += idf[word] * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(own) / mean))
    return scores


# Scores


def test_three_documents_by_hand():
    """Lengths 2, 3, 1, mean 2: the norms are 1.2, 1.65 and 0.75.

    "sort" is in one of three documents: idf = ln(2.5 / 1.5) = 0.510826. "list" is in two, idf = ln(1.5 / 2.5) =
    -0.510826, so that it gets a quarter of the mean of (sort, list, a tree, none) = (0.510826 - 0.510826 + 0.510826
    + 0.510826) / 4 = 0.255413, which is 0.063853.
    """
    documents = {"a": "Sort list", "b": "a list, list", "c": "tree"}
    sort, listed = 0.5108256237659907, 0.5108256237659907 / 8
    scores = run(documents, {"q": "sort LIST"})["q"]
    assert scores == pytest.approx(
        {
            "a": sort * 2.2 / (1 + 1.2) + listed * 2.2 / (1 + 1.2),
            "b": listed * 2 * 2.2 / (2 + 1.65),
            "c": 0.0,
        }
    )
    assert list(scores) == ["a", "b", "c"]
    assert scores["a"] == pytest.approx(0.574679, abs=1e-6)


WORDS = st.lists(st.sampled_from(["if", "then", "Сумма", "x1", "a_b", "rare", "End"]), max_size=8).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=7), query=WORDS, top_k=st.integers(1, 9))
def test_scores_and_ranks_are_the_oracles(texts, query, top_k):
    documents = {f"d{i}": text for i, text in enumerate(texts)}
    found = run(documents, {"q": query}, top_k)["q"]
    expected = oracle(documents, query)
    assert found == pytest.approx({document: expected[document] for document in found}, abs=1e-9)
    assert len(found) == min(top_k, len(documents))
    left_out = [score for document, score in expected.items() if document not in found]
    assert max(left_out, default=-math.inf) <= min(found.values()) + 1e-9
    order = [(score, document) for document, score in found.items()]
    assert order == sorted(order, reverse=True)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=7), query=WORDS)
def test_with_epsilon_0_the_scores_are_bm25ss_own_but_for_a_constant(texts, query):
    import bm25s

    documents = {f"d{i}": text for i, text in enumerate(texts)}
    found = run(documents, {"q": query}, model=BM25Okapi(epsilon=0))["q"]
    tokens = [re.findall(r"\w+", text.lower()) for text in texts]
    if any(tokens):
        theirs = bm25s.BM25(k1=1.2, b=0.75, method="robertson", dtype="float64")
        theirs.index(tokens, show_progress=False)
        words = re.findall(r"\w+", query.lower())
        scores = theirs.get_scores(words) if words else [0.0] * len(texts)
        assert found == pytest.approx({f"d{i}": 2.2 * score for i, score in enumerate(scores)}, abs=1e-9)


def test_words_are_taken_as_the_paper_takes_them():
    """No stop words, no stemmer; a word is letters, digits and underscores in lower case."""
    documents = {"a": "The СУММА_Документа(x)", "b": "суммы", "c": "-- ++", "d": "other", "e": "words"}
    scores = run(documents, {"the": "the", "case": "сумма_документа", "stem": "сумма"})
    assert [document for document, score in scores["the"].items() if score > 0] == ["a"]
    assert [document for document, score in scores["case"].items() if score > 0] == ["a"]
    assert set(scores["stem"].values()) == {0.0}


def test_a_word_counts_as_often_as_the_query_has_it():
    documents = {"a": "one", "b": "two", "c": "three"}
    scores = run(documents, {"once": "one", "twice": "one one"})
    assert scores["twice"]["a"] == pytest.approx(2 * scores["once"]["a"])


def test_a_title_stands_before_the_text():
    model = BM25Okapi()
    model.index(table({"a": "text", "b": "other"}, title=["", "Name"]), **COMMON)
    scores = model.search(table({"q": "name", "r": "other"}), top_k=2, **COMMON)
    assert [next(iter(ranked)) for ranked in scores.values()] == ["b", "b"]


# Ranking


@pytest.mark.parametrize("query", ["nothing of it", "", "-- !", "same"])
def test_ties_are_broken_by_document_id_descending_also_at_the_cut(query):
    documents = dict.fromkeys(("d2", "d10", "d1", "d3"), "same text")
    assert list(run(documents, {"q": query}, top_k=2)["q"]) == ["d3", "d2"]


def test_a_query_without_a_known_word_scores_every_document_0():
    assert run({"a": "one", "b": ""}, {"q": ""})["q"] == {"b": 0.0, "a": 0.0}


def test_a_corpus_without_a_word_is_searched_all_the_same():
    assert run({"a": "", "b": "-"}, {"q": "word"})["q"] == {"b": 0.0, "a": 0.0}


def test_more_documents_than_there_are_is_all_of_them():
    assert list(run({"a": "two", "b": "one", "c": "one"}, {"q": "two"}, top_k=1000)["q"]) == ["a", "c", "b"]


# Candidates


def test_candidates_get_their_true_scores_whatever_their_rank():
    documents = {f"d{i:03}": "word " * (i % 7 + 1) + "filler " * i for i in range(300)}
    documents |= {f"e{i:03}": "other" for i in range(400)}
    whole = run(documents, {"q": "word", "r": "word"}, top_k=1000)
    last = list(whole["q"])[299]
    pools = {"q": ["d005", last, "e001", "d005"], "r": []}
    found = run(documents, {"q": "word", "r": "word", "missing": "word"}, top_k=1, top_ranked=pools)
    assert found == {
        "q": {document: whole["q"][document] for document in ("d005", last, "e001")},
        "r": {},
        "missing": {},
    }
    assert list(found["q"]) == ["d005", last, "e001"]


def test_a_candidate_that_is_not_in_the_corpus_is_an_error():
    with pytest.raises(ValueError, match=r"candidate 'z' of query 'q' is not in the corpus \(1 of them are not\)"):
        run({"a": "one"}, {"q": "one"}, top_ranked={"q": ["a", "z"]})


# As a model of mteb


def test_it_brings_its_own_search():
    model = BM25Okapi()
    assert isinstance(model, SearchProtocol)
    searcher = protocol_search(model, {"q": {"a"}})
    searcher.index(table({"a": "one", "b": "two", "c": "three"}), **COMMON)
    assert list(searcher.search(table({"q": "one two"}), top_k=1, **COMMON)["q"]) == ["b"]
    assert list(searcher.run["q"]) == ["b", "c"]


def test_other_parameters_are_an_experiment():
    assert BM25Okapi().mteb_model_meta.experiment_name is None
    assert BM25Okapi(k1=1.5).mteb_model_meta.experiment_kwargs == {"k1": 1.5}


def test_nothing_can_be_searched_before_it_is_indexed():
    with pytest.raises(ValueError, match=r"call index\(corpus\) first"):
        BM25Okapi().search(table({"q": "one"}), top_k=1, **COMMON)


def test_without_bm25s_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"pip install 'coreb-tasks\[bm25\]'"):
        run({"a": "one"}, {"q": "one"})
