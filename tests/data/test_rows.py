import json
from dataclasses import dataclass

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreb_tasks.data import DataError
from coreb_tasks.data.rows import read
from coreb_tasks.data.source import Source

GOOD = b'{"id": "a", "text": "x"}\n'
META = {"anchor_code_id": "d", "level": 2}
TEXTS = {
    "line-separators": "a\u2028b\u2029c\x85d",
    "form-feed": "a\x0cb\x0bc\x1cd",
    "white-space": "\tif x:\r\n\t\treturn\n ",
    "NUL": "a\x00b",
    "Cyrillic": "Если НЕ Документ.Проведен Тогда",
    "Chinese": "二分查找",
    "Japanese": "配列を逆順にする",
    "beyond-the-BMP": "𝛼 😀",
    "composed": "\u0439 \u00e9",
    "decomposed": "\u0438\u0306 e\u0301",
    "joined-and-right-to-left": "a\u200db\u202ec\ufeffd",
    "escapes": '"\\n\\u0041\\"',
}


@dataclass(frozen=True)
class Declared(Source):
    """A source that needs no README: ``names`` are its files, whatever the config and the split."""

    names: tuple[str, ...] = ()

    def files(self, config, split):
        return [self.folder / name for name in self.names]


def read_docs(folder, *names):
    return read(Declared("tests/docs", folder, names=names), "docs", "r1")


@pytest.fixture
def read_files(tmp_path):
    def write_and_read(**files):
        """Write files (bytes, or rows for parquet) by their names, ``_`` for the dot, and read them as ``docs``."""
        files = {name.replace("_", "."): content for name, content in files.items()}
        for name, content in files.items():
            if isinstance(content, bytes):
                (tmp_path / name).write_bytes(content)
            else:
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), tmp_path / name)
        return read_docs(tmp_path, *files)

    return write_and_read


def jsonl(*rows, ascii_only=False):
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode("utf-8")


def error_of(call, **files):
    with pytest.raises(DataError) as caught:
        call(**files)
    return str(caught.value)


# jsonl


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(b'{"id": "b", "text": "y"\n', "not a JSON object in UTF-8", id="no-end"),
        pytest.param(b'{"id": "b", "te', "not a JSON object in UTF-8", id="half-a-line"),
        pytest.param(b"{'id': 'b'}\n", "not a JSON object in UTF-8", id="a-dict's-repr"),
        pytest.param(b'{"id": "b"} {"id": "c"}\n', "Extra data", id="two-objects"),
        pytest.param(b'{"id": "a\tb"}\n', "Invalid control character", id="raw-tab"),
        pytest.param(b'\xef\xbb\xbf{"id": "b"}\n', "not a JSON object in UTF-8", id="BOM"),
        pytest.param(b'{"id": "b", "grade": NaN}\n', "NaN is not JSON", id="NaN"),
        pytest.param(b'{"id": "b", "grade": Infinity}\n', "Infinity is not JSON", id="Infinity"),
        pytest.param(b'{"id": "b", "grade": [-Infinity]}\n', "-Infinity is not JSON", id="nested-Infinity"),
        pytest.param(b'{"id": "b", "id": "c"}\n', "a key stands twice in ['id', 'id']", id="key-twice"),
        pytest.param(b'{"id": "b", "meta": {"k": 1, "k": 1}}\n', "a key stands twice", id="nested-key-twice"),
        pytest.param(b'["b", "y"]\n', "expected a JSON object, got list", id="list"),
        pytest.param(b'"b"\n', "expected a JSON object, got str", id="string"),
        pytest.param(b"null\n", "expected a JSON object, got NoneType", id="null"),
        pytest.param(b"\n", "not a JSON object in UTF-8", id="blank"),
        pytest.param(b" \t\n", "not a JSON object in UTF-8", id="white-space"),
        pytest.param(b'{"id": "\xff"}\n', "not a JSON object in UTF-8", id="invalid-UTF-8"),
        pytest.param('{"id": "ж"}\n'.encode("cp1251"), "not a JSON object in UTF-8", id="cp1251"),
        pytest.param(b'{"id": "\xed\xa0\x80"}\n', "not a JSON object in UTF-8", id="encoded-surrogate"),
    ],
)
def test_a_malformed_line_is_an_error_that_names_file_and_row(line, problem, read_files):
    message = error_of(read_files, docs_jsonl=GOOD + line)
    assert message.startswith("docs.jsonl, row 2: ")
    assert problem in message


@pytest.mark.parametrize(
    ("content", "row"),
    [
        pytest.param(b"\xef\xbb\xbf" + GOOD, 1, id="BOM"),
        pytest.param(b"\n" + GOOD, 1, id="blank-line-first"),
        pytest.param(GOOD + b"\n" + GOOD, 2, id="blank-line-between"),
        pytest.param(GOOD + GOOD + b"\n", 3, id="blank-line-last"),
        pytest.param(json.dumps([{"id": "a"}], indent=1).encode(), 1, id="json-not-jsonl"),
        pytest.param(GOOD.decode().encode("utf-16"), 1, id="UTF-16"),
    ],
)
def test_the_row_of_a_fault_is_counted_from_1(content, row, read_files):
    assert error_of(read_files, docs_jsonl=content).startswith(f"docs.jsonl, row {row}: ")


def test_rows_are_counted_for_each_file(read_files):
    message = error_of(read_files, one_jsonl=GOOD * 3, two_jsonl=GOOD + b"{\n")
    assert message.startswith("two.jsonl, row 2: ")


def test_each_row_knows_its_place_and_files_follow_in_their_declared_order(read_files):
    rows = read_files(z_jsonl=GOOD * 2, a_parquet=[{"id": "b"}])
    assert [row.place for row in rows] == ["z.jsonl, row 1", "z.jsonl, row 2", "a.parquet, row 1"]


@pytest.mark.parametrize("content", [GOOD + GOOD.rstrip(b"\n"), GOOD.replace(b"\n", b"\r\n") * 2])
def test_the_last_newline_may_be_missing_and_lines_may_end_in_crlf(content, read_files):
    assert [row.fields for row in read_files(docs_jsonl=content)] == [{"id": "a", "text": "x"}] * 2


def test_a_missing_column_is_named_with_the_row_and_the_columns_found(read_files):
    row = read_files(docs_jsonl=GOOD)[0]
    with pytest.raises(DataError, match=r"docs\.jsonl, row 1: column 'code' is missing; found: id, text\."):
        row.get("code")


# Text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_survives_to_the_character(text, read_files):
    rows = [{"id": text, "text": text}, {"id": "b", "text": "y"}]
    assert [row.fields for row in read_files(raw_jsonl=jsonl(*rows))] == rows
    assert [row.fields for row in read_files(escaped_jsonl=jsonl(*rows, ascii_only=True))] == rows
    assert [row.fields for row in read_files(docs_parquet=rows)] == rows


def test_composed_and_decomposed_letters_stay_distinct(read_files):
    rows = read_files(docs_jsonl=jsonl({"id": TEXTS["composed"]}, {"id": TEXTS["decomposed"]}))
    assert rows[0].fields != rows[1].fields


@given(texts=st.lists(st.text(), min_size=1, max_size=5), ascii_only=st.booleans())
@settings(max_examples=30, deadline=None)
def test_any_text_comes_back_as_written(texts, ascii_only, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "docs.jsonl").write_bytes(jsonl(*({"text": text} for text in texts), ascii_only=ascii_only))
    assert [row.fields["text"] for row in read_docs(folder, "docs.jsonl")] == texts


# parquet and other files


def test_parquet_and_jsonl_give_the_same_rows(read_files):
    rows = [
        {"id": "007", "number": 7, "grade": 2.0, "none": None, "meta": {"anchor_code_id": "d"}},
        {"id": "7", "number": -1, "grade": 0.5, "none": "x", "meta": {"anchor_code_id": "é"}},
    ]
    from_parquet, from_jsonl = read_files(docs_parquet=rows), read_files(docs_jsonl=jsonl(*rows))
    assert [row.fields for row in from_parquet] == [row.fields for row in from_jsonl]
    assert [row.place for row in from_parquet] == ["docs.parquet, row 1", "docs.parquet, row 2"]


def test_a_parquet_file_that_cannot_be_read_is_named(read_files, tmp_path):
    read_files(docs_parquet=[{"id": "a", "text": "x" * 100}])
    whole = (tmp_path / "docs.parquet").read_bytes()
    for broken in (b"", b"no parquet", whole[: len(whole) // 2], whole[4:]):
        message = error_of(read_files, docs_parquet=broken)
        assert message.startswith("docs.parquet: not a readable parquet file")


def test_invalid_utf_8_in_a_parquet_file_is_named(read_files, tmp_path):
    read_files(docs_parquet=[{"id": "a", "text": "XXXX"}])
    broken = (tmp_path / "docs.parquet").read_bytes().replace(b"XXXX", b"\xff\xfe\xff\xfe")
    assert error_of(read_files, docs_parquet=broken).startswith("docs.parquet")


@pytest.mark.parametrize(
    ("name", "kind"), [("docs_csv", ".csv"), ("docs_json", ".json"), ("docs_jsonl_gz", ".gz"), ("docs", "none")]
)
def test_a_file_of_another_kind_is_refused(name, kind, read_files):
    message = error_of(read_files, **{name: GOOD})
    assert message.startswith(f"{name.replace('_', '.')}: files of kind {kind} are not read")
    assert "expected .jsonl or .parquet" in message


@pytest.mark.parametrize("files", [{"docs_jsonl": b""}, {"one_jsonl": b"", "two_parquet": []}])
def test_a_config_without_rows_is_an_error(files, read_files):
    message = error_of(read_files, **files)
    assert "config docs has no rows" in message
    assert all(name.replace("_", ".") in message for name in files)


# meta


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({f"meta_{key}": value for key, value in META.items()}, id="columns"),
        pytest.param({"meta": META}, id="dict"),
        pytest.param({"meta": {f"meta_{key}": value for key, value in META.items()}}, id="dict-of-columns"),
        pytest.param({"meta": repr(META)}, id="repr"),
        pytest.param({"meta": json.dumps(META)}, id="json"),
        pytest.param({"meta": META, "meta_level": 2}, id="both"),
    ],
)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_meta_reads_the_same_in_each_of_its_shapes(fields, kind, read_files):
    row = {"id": "q1", **fields}
    rows = read_files(docs_jsonl=jsonl(row)) if kind == "jsonl" else read_files(docs_parquet=[row])
    assert rows[0].fields == {"id": "q1", "meta_anchor_code_id": "d", "meta_level": 2}
    assert rows[0].place == f"docs.{kind}, row 1"


def test_rows_may_hold_meta_in_different_shapes(read_files):
    rows = read_files(docs_jsonl=jsonl({"meta_level": 2}, {"meta": {"level": 2}}, {"meta": "{'level': 2}"}))
    assert [row.fields for row in rows] == [{"meta_level": 2}] * 3


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"meta": META, "meta_level": 3}, "'meta' and 'meta_level' differ: 2 and 3", id="column"),
        pytest.param({"meta": META, "meta_level": None}, "differ: 2 and None", id="null-column"),
        pytest.param({"meta": {"level": 1, "meta_level": 2}}, "'meta_level' differ: 2 and 1", id="prefix"),
        pytest.param({"meta": "{'level': "}, "not the repr of a Python dict", id="half-a-repr"),
        pytest.param({"meta": "level=2"}, "not the repr of a Python dict", id="no-repr"),
        pytest.param({"meta": "dict(level=2)"}, "not the repr of a Python dict", id="call"),
        pytest.param({"meta": ""}, "not the repr of a Python dict", id="empty"),
        pytest.param({"meta": "['level', 2]"}, "column 'meta' holds list", id="repr-of-a-list"),
        pytest.param({"meta": ["level"]}, "column 'meta' holds list", id="list"),
        pytest.param({"meta": 2}, "column 'meta' holds int", id="number"),
        pytest.param({"meta": "{'level': 2, 'level': 3}"}, "column 'meta'", id="key-twice"),
        pytest.param({"meta": "{[]: 2}"}, "not the repr of a Python dict", id="unhashable-key"),
    ],
)
def test_a_faulty_or_conflicting_meta_is_an_error_that_names_file_and_row(fields, problem, read_files):
    message = error_of(read_files, docs_jsonl=GOOD + jsonl({"id": "b", **fields}))
    assert message.startswith("docs.jsonl, row 2: ")
    assert problem in message
