"""Files of judgments: no row is lost, and what is wrong is named with its line."""

import pytest

from coreb_tasks.data import DataError
from coreb_tasks.interop import read_qrels

THREE = "q1\td1\t2\nq1\td2\t0\nq2\td1\t-1\n"
READ = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": -1}}


@pytest.fixture
def read(tmp_path):
    def read(content):
        file = tmp_path / "test.tsv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_qrels(file)

    return read


@pytest.mark.parametrize("header", ["", "query-id\tcorpus-id\tscore\n", "query_id\tdoc_id\trelevance\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_a_file_with_or_without_a_header_loses_no_row(read, header, bom):
    assert read(bom + (header + THREE).encode()) == READ


def test_line_ends_of_windows_and_a_missing_last_one(read):
    assert read(THREE.replace("\n", "\r\n").removesuffix("\r\n")) == READ


def test_trec_files_are_seen_from_their_columns(read):
    assert read("q1 0 d1 2\nq1\t0\td2 0\nq2 Q0 d1 -1\n") == READ
    assert read("q1 0 Модуль%20Объекта 2\n") == {"q1": {"Модуль Объекта": 2}}


def test_ids_keep_their_form(read):
    found = read("007\t7\t1\n7\t007\t1\na b\tc\u2028d\t1\n")
    assert found == {"007": {"7": 1}, "7": {"007": 1}, "a b": {"c\u2028d": 1}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "holds no judgments"),
        ("query-id\tcorpus-id\tscore\n", "holds no judgments"),
        (THREE + "q3\td1\t1.5\n", "line 4: grade '1.5' of \\('q3', 'd1'\\), expected a whole number"),
        ("q3\td1\tx\n", "line 1: grade 'x'"),
        (THREE + "q3\td1\t\n", "line 4: grade ''"),
        (THREE + "q1\td1\t2\n", "line 4: \\('q1', 'd1'\\) is judged 2, and 2 in line 1 already"),
        (THREE + "q1\td1\t0\n", "line 4: \\('q1', 'd1'\\) is judged 0, and 2 in line 1 already"),
        (THREE + "q1\td9\n", "line 4: 2 columns, expected 3"),
        (THREE + "\n", "line 4: 0 columns, expected 3"),
        ("q1 0 d1 2\nq1 0 a b 2\n", "line 2: 5 columns, expected 4"),
        ("q1,d1,2\n", "line 1: 1 columns, expected 4 .* or 3 split by tabs"),
        (THREE + 'q3\t"d1\t1\n', "the quotes do not match"),
        (b"q1\td1\t\xff\n", "cannot be read"),
    ],
)
def test_faults_are_named_with_file_and_line(read, content, expected):
    with pytest.raises(DataError, match=f"test.tsv.*{expected}"):
        read(content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.tsv: cannot be read"):
        read_qrels(tmp_path / "none.tsv")
