"""Ids in files: distinct, readable back, and as they are wherever the format can hold them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreb_tasks.data import DataError, RetrievalData
from coreb_tasks.interop.names import escape, names, unescape

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Документ_Заказ", "Документ_Заказ"),
        ("Модуль Объекта", "Модуль%20Объекта"),
        ("a\tb\u2028c\xa0", "a%09b%E2%80%A8c%C2%A0"),
        ("100%", "100%25"),
        ("a%20b", "a%2520b"),
        ('"it\'s"', "%22it%27s%22"),
        ("\ufeffbom", "%EF%BB%BFbom"),
        ("code/v1#2", "code/v1#2"),
    ],
)
def test_only_what_readers_stumble_over_is_escaped(name, written):
    assert escape(name) == written
    assert unescape(written) == name


@given(ids)
def test_escaped_ids_are_one_word_and_read_back(name):
    written = escape(name)
    assert written.split() == [written]
    assert written.encode().split() == [written.encode()]
    assert unescape(written) == name


@given(ids, ids)
def test_escaped_ids_stay_distinct(one, other):
    assert (escape(one) == escape(other)) == (one == other)


@pytest.mark.parametrize("name", ["100%", "a%2Fb", "%zz", "%C3"])
def test_what_was_never_escaped_stays_as_it_is(name):
    assert unescape(name) == name


def data(queries, documents):
    return RetrievalData(dict.fromkeys(documents, "d"), dict.fromkeys(queries, "q"), {q: {} for q in queries}, "0")


def test_beir_queries_get_a_prefix_only_where_one_has_the_id_of_a_document():
    assert names(data(["5", "6"], ["7"]), "beir").queries == {"5": "5", "6": "6"}
    known = names(data(["5", "6"], ["5"]), "beir")
    assert (known.queries, known.documents) == ({"5": "query-5", "6": "query-6"}, {"5": "5"})
    assert known.query_of == {"5": "5", "6": "6", "query-5": "5", "query-6": "6"}


def test_the_prefix_is_repeated_until_no_query_has_the_id_of_a_document():
    assert names(data(["5"], ["5", "query-5"]), "beir").queries == {"5": "query-query-5"}
    known = names(data(["5", "query-5"], ["5"]), "beir")  # nor that of another query
    assert known.queries == {"5": "query-query-5", "query-5": "query-query-query-5"}


@pytest.mark.parametrize("kind", ["trec", "beir", "mteb"])
def test_ids_of_every_formats_export_are_understood(kind):
    known = names(data(["a b", "7"], ["7", "c%"]), kind)
    for form in ("a b", "a%20b", "query-a b", "query-a%20b"):
        assert known.query_of[form] == "a b"
    assert known.document_of == {"7": "7", "c%": "c%", "c%25": "c%"}


@pytest.mark.parametrize("kind", ["trec", "mteb"])
def test_other_formats_keep_equal_ids(kind):
    assert names(data(["5"], ["5"]), kind).queries == {"5": "5"}


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", "a\x00b", "a\x85b"])
def test_beir_refuses_control_characters_and_names_the_id(name):
    with pytest.raises(DataError, match=r"has a control character.*Export as trec"):
        names(data(["q"], [name]), "beir")
