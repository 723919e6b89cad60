import hashlib
import shutil
import socket

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coreb_tasks.data import DataError, RetrievalData, load, measure, pinned_hash
from coreb_tasks.data.retrieval import content_hash
from coreb_tasks.task_metadata import Pin

QUICK = settings(max_examples=40, deadline=None)
ROWS = st.lists(st.tuples(st.text(), st.text(), st.integers(0, 2)), max_size=6)


def error_of(call, *arguments):
    with pytest.raises(DataError) as caught:
        call(*arguments)
    return str(caught.value)


def fault(hub, config, row, fields, kind="T2C"):
    """Change fields of a row (counted from 1; ... removes a field), load, and return the error."""
    changed = {**hub.tables[config][row - 1], **fields}
    hub.tables[config][row - 1] = {name: value for name, value in changed.items() if value is not ...}
    hub.write()
    return error_of(load, hub.task(kind))


# What comes out


def test_a_task_loads_by_id(hub):
    assert load(hub.task()) == RetrievalData(
        corpus={"a": "code a", "b": "code b", "c": "code c", "d": "code d"},
        queries={"q1": "find a", "q2": "find c"},
        qrels={"q1": {"a": 2, "b": 1}, "q2": {"c": 2}},
        data_hash=pinned_hash(hub.task()),
        slices={"t2c_search_any": ["q1", "q2"], "language=go": ["q2"], "language=none": ["q1"]},
        commit=None,
    )


def test_an_anchor_task_excludes_the_anchor_of_each_query(hub):
    data = load(hub.task("C2C"))
    assert data.excluded == {"q1": frozenset({"d"})}
    assert data.slices == {"c2c_cross_lang": ["q1"], "language=go": ["q1"]}


def test_the_first_language_column_that_is_filled_counts(hub):
    hub.tables["text2code_queries"][0].update(anchor_language="java", language_constraint="python")
    hub.tables["text2code_queries"][1].update(anchor_language=None)
    hub.write()
    hub.pin()
    assert set(load(hub.task()).slices) == {"t2c_search_any", "language=java", "language=go"}


def test_whole_numbers_as_ids_become_strings(hub):
    hub.tables["code_corpus"].append({"code_id": 7, "code": "seven"})
    hub.tables["text2code_queries"][0]["query_id"] = 1
    for judgment in hub.tables["text2code_qrels"][:2]:
        judgment["query_id"] = 1
    hub.tables["text2code_qrels"][0]["doc_id"] = 7
    hub.write()
    hub.pin()
    data = load(hub.task())
    assert data.corpus["7"] == "seven"
    assert data.queries == {"1": "find a", "q2": "find c"}
    assert data.qrels["1"] == {"7": 2, "b": 1}


def test_007_and_7_stay_distinct(hub):
    hub.tables["code_corpus"] += [{"code_id": "007", "code": "bond"}, {"code_id": 7, "code": "seven"}]
    hub.tables["text2code_qrels"] += [
        {"query_id": "q2", "doc_id": "007", "relevance": 0},
        {"query_id": "q2", "doc_id": 7, "relevance": 1},
    ]
    hub.write()
    hub.pin()
    data = load(hub.task())
    assert (data.corpus["007"], data.corpus["7"]) == ("bond", "seven")
    assert data.qrels["q2"] == {"c": 2, "007": 0, "7": 1}


def test_text_is_neither_stripped_nor_normalised(hub):
    text = "\t def й():\r\n\x0c\u2028 "
    hub.tables["code_corpus"][0]["code"] = text
    hub.write()
    hub.pin()
    assert load(hub.task()).corpus["a"] == text


def test_a_whole_number_is_a_grade_as_int_or_float(hub):
    given = [0, 1, 2, 0.0, -0.0, 1.0, 2.0]
    hub.tables["code_corpus"] = [{"code_id": str(number), "code": "x"} for number in range(7)]
    hub.tables["text2code_qrels"] = [
        {"query_id": query, "doc_id": str(number), "relevance": grade}
        for query in ("q1", "q2")
        for number, grade in enumerate(given)
    ]
    hub.write()
    hub.pin()
    grades = list(load(hub.task()).qrels["q1"].values())
    assert grades == [0, 1, 2, 0, 0, 1, 2]
    assert {type(grade) for grade in grades} == {int}


def test_grades_as_floats_are_the_same_data_as_grades_as_ints(hub):
    for judgment in hub.tables["text2code_qrels"]:
        judgment["relevance"] = float(judgment["relevance"])
    hub.write()
    assert load(hub.task()).qrels == {"q1": {"a": 2, "b": 1}, "q2": {"c": 2}}


def test_parquet_shards_are_the_same_data_as_one_jsonl_file(hub):
    expected = load(hub.task("C2C"))
    card = hub.folder / "README.md"
    for config, rows in hub.tables.items():
        for shard, part in enumerate((rows[:1], rows[1:])):
            if part:
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), hub.folder / f"{config}-{shard}.parquet")
        (hub.folder / f"{config}.jsonl").unlink()
    card.write_text(card.read_text(encoding="utf-8").replace(".jsonl", "-*.parquet"), encoding="utf-8")
    assert load(hub.task("C2C")) == expected


@pytest.mark.parametrize(
    "meta", [{"meta": {"anchor_code_id": "d"}}, {"meta": "{'anchor_code_id': 'd'}"}, {"meta_anchor_code_id": "d"}]
)
def test_the_anchor_is_found_in_each_shape_of_meta(meta, hub):
    query = hub.tables["code2code_queries"][0]
    del query["meta_anchor_code_id"]
    query.update(meta)
    hub.write()
    assert load(hub.task("C2C")).excluded == {"q1": frozenset({"d"})}


# Ids


@pytest.mark.parametrize(
    ("config", "column", "kind"),
    [
        ("code_corpus", "code_id", "T2C"),
        ("text2code_queries", "query_id", "T2C"),
        ("text2code_qrels", "query_id", "T2C"),
        ("text2code_qrels", "doc_id", "T2C"),
        ("code2code_queries", "meta_anchor_code_id", "C2C"),
    ],
)
def test_an_id_that_is_neither_string_nor_whole_number_is_refused(config, column, kind, hub):
    for value in (None, "", True, 1.0, ["a"], {"a": 1}):
        message = fault(hub, config, 1, {column: value}, kind)
        assert message.startswith(f"{config}.jsonl, row 1: {column} is {value!r}, expected a string or a whole number")


@pytest.mark.parametrize(
    ("config", "columns", "kind"),
    [
        ("code_corpus", ("code_id", "code"), "T2C"),
        ("text2code_queries", ("query_id", "query", "subtask"), "T2C"),
        ("text2code_qrels", ("query_id", "doc_id", "relevance"), "T2C"),
        ("code2code_queries", ("meta_anchor_code_id",), "C2C"),
    ],
)
def test_a_missing_column_is_an_error_that_names_those_found(config, columns, kind, hub):
    row = hub.tables[config][0]
    for column in columns:
        message = fault(hub, config, 1, {column: ...}, kind)
        found = ", ".join(name for name in row if name != column)
        assert message.startswith(f"{config}.jsonl, row 1: column {column!r} is missing; found: {found}. ")
        hub.tables[config][0] = row


def test_a_document_id_may_not_stand_twice_whatever_the_text(hub):
    hub.tables["code_corpus"].append({"code_id": "a"})
    for text in ("code a", "other"):
        message = fault(hub, "code_corpus", 5, {"code": text})
        assert message.startswith("code_corpus.jsonl, row 5: code_id 'a' stands a second time")


def test_a_query_id_may_not_stand_twice(hub):
    message = fault(hub, "text2code_queries", 2, {"query_id": "q1"})
    assert message.startswith("text2code_queries.jsonl, row 2: query_id 'q1' stands a second time")


def test_a_number_and_its_digits_are_the_same_id(hub):
    hub.tables["code_corpus"] += [{"code_id": 7, "code": "x"}, {"code_id": "7", "code": "y"}]
    hub.write()
    assert error_of(load, hub.task()).startswith("code_corpus.jsonl, row 6: code_id '7' stands a second time")


# Texts


@pytest.mark.parametrize(
    ("config", "column", "row", "name"),
    [("code_corpus", "code", 3, "c"), ("text2code_queries", "query", 2, "q2")],
)
def test_a_text_that_is_none_or_empty_is_refused(config, column, row, name, hub):
    for value in ("", " \t\r\n\u2028", None, 5, ["x"], True):
        message = fault(hub, config, row, {column: value})
        given = "empty" if isinstance(value, str) else repr(value)
        assert message.startswith(f"{config}.jsonl, row {row}: {column} of {name!r} is {given}, expected a text")


SURROGATE = "a\\ud800b"  # as JSON escapes it


@pytest.mark.parametrize(
    ("config", "column", "row", "name"),
    [
        ("code_corpus", "code_id", 3, "\\ud800"),
        ("text2code_queries", "query_id", 2, "\\ud800"),
        pytest.param("code_corpus", "code", 3, "'c'"),
        pytest.param("text2code_queries", "query", 2, "'q2'"),
        *(pytest.param("text2code_queries", column, 2, "") for column in ("subtask", "language_constraint")),
    ],
)
def test_a_lone_surrogate_is_refused(config, column, row, name, hub):
    lines = hub.tables[config]
    lines[row - 1][column] = "SURROGATE"
    hub.write()
    file = hub.folder / f"{config}.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("SURROGATE", SURROGATE), encoding="utf-8")
    message = error_of(load, hub.task())
    assert message.startswith(f"{config}.jsonl, row {row}: {column} ")
    assert "not valid Unicode" in message
    assert name in message


def test_a_subtask_without_a_name_is_refused(hub):
    for value in (None, "", 5):
        message = fault(hub, "text2code_queries", 2, {"subtask": value})
        assert message.startswith(f"text2code_queries.jsonl, row 2: subtask is {value!r}, expected a name")


def test_a_query_without_a_language_is_refused(hub):
    for value in (None, ...):
        message = fault(hub, "text2code_queries", 2, {"language_constraint": value})
        assert message.startswith(
            "text2code_queries.jsonl, row 2: none of the columns anchor_language, language_constraint is filled"
        )


def test_a_language_without_a_name_is_refused(hub):
    for value in ("", 5, ["go"]):
        message = fault(hub, "text2code_queries", 2, {"language_constraint": value})
        assert message.startswith(f"text2code_queries.jsonl, row 2: language_constraint is {value!r}, expected a name")


# Judgments


def test_a_grade_that_is_not_a_whole_number_from_0_to_2_is_refused(hub):
    for value in (1.5, True, False, "2", "", None, 3, -1, 2.0000001, 10**30, [2]):
        message = fault(hub, "text2code_qrels", 2, {"relevance": value})
        assert message.startswith(
            f"text2code_qrels.jsonl, row 2: relevance of ('q1', 'b') is {value!r}, expected a whole number in [0, 1, 2]"
        )


def test_a_grade_of_a_parquet_file_is_checked_too(hub):
    card = hub.folder / "README.md"
    text = card.read_text(encoding="utf-8").replace("text2code_qrels.jsonl", "text2code_qrels.parquet")
    card.write_text(text, encoding="utf-8")
    rows = [{**row, "relevance": float(row["relevance"])} for row in hub.tables["text2code_qrels"]]
    for value in (float("nan"), float("inf"), 1.5):
        rows[1]["relevance"] = value
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), hub.folder / "text2code_qrels.parquet")
        message = error_of(load, hub.task())
        assert message.startswith(f"text2code_qrels.parquet, row 2: relevance of ('q1', 'b') is {value!r}, expected")


def test_a_pair_may_not_be_judged_twice_whatever_the_grade(hub):
    hub.tables["text2code_qrels"].append(dict(hub.tables["text2code_qrels"][0]))
    for grade in (2, 0):
        message = fault(hub, "text2code_qrels", 4, {"relevance": grade})
        assert message.startswith("text2code_qrels.jsonl, row 4: ('q1', 'a') is judged a second time")


def test_a_judged_document_must_be_in_the_corpus(hub):
    for document in ("zz", "A", "a ", "á"):
        message = fault(hub, "text2code_qrels", 3, {"doc_id": document})
        assert message.startswith(f"text2code_qrels.jsonl, row 3: judged document {document!r} is not in code_corpus")


def test_a_judged_query_must_be_in_the_queries_whatever_the_grade(hub):
    hub.tables["text2code_qrels"].append({"query_id": "q3", "doc_id": "a", "relevance": 0})
    for grade in (0, 2):
        message = fault(hub, "text2code_qrels", 4, {"relevance": grade})
        assert message.startswith("text2code_qrels.jsonl, row 4: judged query 'q3' is not in text2code_queries")


def test_a_query_of_another_task_is_no_query_of_this_one(hub):
    hub.tables["code2code_qrels"].append({"query_id": "q2", "doc_id": "a", "relevance": 2})
    hub.write()
    message = error_of(load, hub.task("C2C"))
    assert message.startswith("code2code_qrels.jsonl, row 3: judged query 'q2' is not in code2code_queries")


def test_queries_without_a_judgment_are_counted_and_the_first_named(hub):
    first = hub.tables["text2code_queries"][0]
    hub.tables["text2code_queries"] += [{**first, "query_id": "q3"}, {**first, "query_id": "q4"}]
    hub.write()
    message = error_of(load, hub.task())
    assert message.startswith(
        "tests/tiny, config text2code_qrels, split r1: "
        "2 queries of text2code_queries have no judgment, the first: ['q3', 'q4']"
    )


def test_an_excluded_document_must_be_in_the_corpus(hub):
    message = fault(hub, "code2code_queries", 1, {"meta_anchor_code_id": "zz"}, "C2C")
    assert message.startswith(
        "code2code_queries.jsonl, row 1: query 'q1' excludes document 'zz', which code_corpus does not hold"
    )


def test_an_excluded_document_may_not_be_relevant(hub):
    message = fault(hub, "code2code_queries", 1, {"meta_anchor_code_id": "a"}, "C2C")
    assert message.startswith(
        "code2code_qrels.jsonl, row 1: document 'a' is both relevant to and excluded from query 'q1'"
    )


def test_an_excluded_document_may_be_judged_below_the_relevance_level(hub):
    hub.tables["code2code_queries"][0]["meta_anchor_code_id"] = "b"
    hub.write()
    hub.pin("C2C")
    assert load(hub.task("C2C")).excluded == {"q1": frozenset({"b"})}


# Order and version


def test_the_order_of_the_rows_does_not_change_the_data_or_their_order(hub):
    tasks = [hub.task("T2C"), hub.task("C2C")]
    before = [(load(task), measure(task)) for task in tasks]
    for reorder in (lambda rows: rows.reverse(), lambda rows: rows.append(rows.pop(0))):
        for rows in hub.tables.values():
            reorder(rows)
        hub.write()
        for task, (data, pins) in zip(tasks, before, strict=True):
            found = load(task)
            assert found == data
            assert list(found.corpus) == list(data.corpus) == sorted(data.corpus)
            assert list(found.queries) == list(data.queries) == sorted(data.queries)
            assert list(found.qrels) == list(data.qrels) == sorted(data.qrels)
            assert list(found.slices) == list(data.slices)
            assert measure(task) == pins


def test_the_judgments_of_a_query_come_in_the_order_of_their_ids(hub):
    hub.tables["text2code_qrels"].reverse()
    hub.write()
    assert list(load(hub.task()).qrels["q1"]) == ["a", "b"]


def change_text(tables):
    tables["code_corpus"][0]["code"] += " "


def drop_document(tables):
    del tables["code_corpus"][3]


def add_document(tables):
    tables["code_corpus"].append({"code_id": "e", "code": "code e"})


def swap_ids(tables):
    tables["code_corpus"][0]["code_id"], tables["code_corpus"][1]["code_id"] = "b", "a"


def change_query(tables):
    tables["text2code_queries"][1]["query"] = "find C"


def change_subtask(tables):
    tables["text2code_queries"][1]["subtask"] = "t2c_search_go"


def change_language(tables):
    tables["text2code_queries"][1]["language_constraint"] = "java"


def drop_judgment(tables):
    del tables["text2code_qrels"][1]


def change_grade(tables):
    tables["text2code_qrels"][1]["relevance"] = 0


@pytest.mark.parametrize(
    ("change", "config", "rows"),
    [
        (change_text, "code_corpus", (4, 4)),
        (add_document, "code_corpus", (4, 5)),
        (swap_ids, "code_corpus", (4, 4)),
        (change_query, "text2code_queries", (2, 2)),
        (change_subtask, "text2code_queries", (2, 2)),
        (change_language, "text2code_queries", (2, 2)),
        (change_grade, "text2code_qrels", (3, 3)),
    ],
)
def test_other_data_than_the_pinned_are_an_error_with_what_was_expected_and_found(change, config, rows, hub):
    expected = measure(hub.task())[config]
    change(hub.tables)
    hub.write()
    found = measure(hub.task())[config]
    message = error_of(load, hub.task())
    assert (expected.rows, found.rows) == rows
    assert expected.sha256 != found.sha256
    assert message.startswith(f"tests/tiny, config {config}, split r1 ({hub.folder}): ")
    assert (
        f"not the data that Tiny-T2C is scored on: expected {expected.rows} rows with content hash "
        f"{expected.sha256[:12]}, got {found.rows} rows with content hash {found.sha256[:12]}. Copy or fetch"
    ) in message


@pytest.mark.parametrize(
    ("change", "config", "expected"),
    [
        (drop_document, "code_corpus", "expected 4 rows with content hash"),
        (drop_judgment, "text2code_qrels", "expected 4 rows with content hash"),
    ],
)
def test_missing_rows_are_named_before_what_refers_to_them(change, config, expected, hub):
    of_the_last_document = {**hub.tables["text2code_qrels"][2], "doc_id": "d", "relevance": 1}
    hub.tables["text2code_qrels"].append(of_the_last_document)
    hub.write()
    hub.pin("T2C")
    change(hub.tables)
    hub.write()
    message = error_of(load, hub.task())
    assert message.startswith(f"tests/tiny, config {config}, split r1 ({hub.folder}): not the data that Tiny-T2C")
    assert expected in message
    assert ", got 3 rows. Copy or fetch" in message


def test_another_anchor_is_other_data(hub):
    message = fault(hub, "code2code_queries", 1, {"meta_anchor_code_id": "c"}, "C2C")
    assert "config code2code_queries, split r1" in message
    assert "expected 1 rows with content hash" in message


def test_a_column_that_is_not_scored_does_not_change_the_data(hub):
    expected = load(hub.task())
    hub.tables["code_corpus"][0]["note"] = "new"
    hub.write()
    assert load(hub.task()) == expected


def test_half_a_file_is_an_error(hub):
    file = hub.folder / "code_corpus.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2 + 5])
    assert error_of(load, hub.task()).startswith("code_corpus.jsonl, row 3: not a JSON object in UTF-8")


def test_the_configs_of_other_tasks_are_not_read(hub):
    expected = load(hub.task())
    (hub.folder / "code2code_queries.jsonl").unlink()
    assert load(hub.task()) == expected


def test_measure_gives_the_pins_of_the_tasks_configs_and_checks_the_form(hub):
    assert measure(hub.task())["text2code_qrels"] == Pin(
        3, content_hash([("q1", "a", 2), ("q1", "b", 1), ("q2", "c", 2)])
    )
    assert set(measure(hub.task("C2C"))) == {"code_corpus", "code2code_queries", "code2code_qrels"}
    hub.tables["code_corpus"][1]["code"] = ""
    hub.write()
    assert error_of(measure, hub.task()).startswith("code_corpus.jsonl, row 2: code of 'b' is empty")


def test_the_data_hash_follows_the_pins_and_no_data(hub):
    before = {kind: pinned_hash(hub.task(kind)) for kind in ("T2C", "C2C")}
    assert before["T2C"] != before["C2C"]
    change_text(hub.tables)
    hub.write()
    assert pinned_hash(hub.task()) == before["T2C"]
    hub.pin("T2C")
    assert pinned_hash(hub.task()) not in before.values()
    shutil.rmtree(hub.folder)
    assert len(pinned_hash(hub.task())) == 64


# The hub and the network


@pytest.fixture
def cached(hub, tmp_path, monkeypatch):
    """Puts what the hub folder holds into the hub client's cache, as a commit that ``main`` names."""

    def put(commit):
        storage = tmp_path / "cache" / "datasets--tests--tiny"
        (storage / "refs").mkdir(parents=True, exist_ok=True)
        (storage / "refs" / "main").write_text(commit)
        shutil.copytree(hub.folder, storage / "snapshots" / commit)

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("COREB_TASKS_DATA")
    return put


def test_data_of_the_hub_are_those_of_a_folder_and_name_their_commit(hub, cached, monkeypatch):
    cached("a" * 40)
    from_hub = load(hub.task("C2C"))
    monkeypatch.setenv("COREB_TASKS_DATA", str(hub.root))
    from_folder = load(hub.task("C2C"))
    assert (from_hub.commit, from_folder.commit) == ("a" * 40, None)
    assert vars(from_hub) | {"commit": None} == vars(from_folder)


def test_another_commit_of_the_hub_is_an_error_that_names_it(hub, cached):
    cached("a" * 40)
    change_grade(hub.tables)
    hub.write()
    cached("b" * 40)
    message = error_of(load, hub.task())
    assert message.startswith(f"tests/tiny, config text2code_qrels, split r1 (commit {'b' * 40} of the hub): ")
    assert "expected 3 rows with content hash" in message
    assert "got 3 rows with" in message


def test_data_of_the_hub_are_checked_as_those_of_a_folder(hub, cached):
    hub.tables["code_corpus"][1]["code"] = ""
    hub.write()
    cached("a" * 40)
    assert error_of(load, hub.task()).startswith("code_corpus.jsonl, row 2: code of 'b' is empty")


def test_a_folder_is_loaded_with_sockets_blocked(hub, monkeypatch):
    expected = load(hub.task("C2C"))

    def blocked(*arguments, **options):
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, blocked)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert load(hub.task("C2C")) == expected


# The content hash


def test_the_content_hash_is_one_of_sorted_json_lines():
    lines = b'["a", "\xd0\xb6", 2]\n["b", "x\\n", null]\n'
    assert content_hash([("b", "x\n", None), ("a", "ж", 2)]) == hashlib.sha256(lines).hexdigest()


@QUICK
@given(rows=ROWS, data=st.data())
def test_the_content_hash_does_not_depend_on_the_order_of_the_rows(rows, data):
    assert content_hash(data.draw(st.permutations(rows))) == content_hash(rows)


@QUICK
@given(rows=ROWS.filter(bool), data=st.data())
def test_the_content_hash_changes_with_any_character(rows, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    name, text, grade = rows[row]
    place = data.draw(st.integers(0, len(text)))
    changed = text[:place] + data.draw(st.characters(codec="utf-8")) + text[place + 1 :]
    assume(changed != text)
    assert content_hash([*rows[:row], (name, changed, grade), *rows[row + 1 :]]) != content_hash(rows)


@QUICK
@given(rows=ROWS, row=st.tuples(st.text(), st.text(), st.integers(0, 2)))
def test_the_content_hash_changes_with_a_row_more_even_one_that_is_there(rows, row):
    assert content_hash([*rows, row]) != content_hash(rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("ab", "c")], [("a", "bc")]),
        ([("a", "b\nc")], [("a", "b"), ("a", "c")]),
        ([("a", None)], [("a", "null")]),
        ([("7",)], [("007",)]),
        ([("\u0439",)], [("\u0438\u0306",)]),
        ([("a", 'x", "y')], [("a", "x", "y")]),
    ],
)
def test_the_content_hash_tells_alike_rows_apart(one, other):
    assert content_hash(one) != content_hash(other)
