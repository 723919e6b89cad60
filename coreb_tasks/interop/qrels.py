"""Files of judgments, read without losing a row."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from coreb_tasks.data import DataError
from coreb_tasks.interop.hub import JUDGMENT
from coreb_tasks.interop.names import unescape

_ADVICE = "Repair the file, or export the judgments again."
_GRADE_COLUMNS = {JUDGMENT[2], "relevance", "grade", "label", "rel"}


def read_qrels(file: Path | str) -> dict[str, dict[str, int]]:
    """Read judgments: BEIR's three columns, with or without a header, or TREC's four.

    Which of the two it is, is seen from the first row. Every row is kept, with its grade, whatever that is. Ids that
    are escaped in TREC files are read back; a prefix of BEIR's exports stays.

    Args:
        file: the file, in UTF-8, as it is or compressed by gzip.

    Returns:
        query id -> document id -> grade.

    Raises:
        DataError: an empty file, a row with another number of columns, a grade that is no whole number, or a pair that
            is judged twice; with file and line.
    """
    try:
        content = Path(file).read_bytes()
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(str(file), f"cannot be read ({error})", _ADVICE) from error
    qrels: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    for number, (query, document, grade) in _rows(text, str(file)):
        place = f"{file}, line {number}"
        if not re.fullmatch(r"[+-]?[0-9]+", grade):
            raise DataError(place, f"grade {grade!r} of ({query!r}, {document!r}), expected a whole number", _ADVICE)
        first = lines.setdefault((query, document), number)
        if first != number:
            there = qrels[query][document]
            raise DataError(
                place,
                f"({query!r}, {document!r}) is judged {grade}, and {there} in line {first} already",
                "Keep one of the two.",
            )
        qrels.setdefault(query, {})[document] = int(grade)
    if not qrels:
        raise DataError(str(file), "holds no judgments", _ADVICE)
    return qrels


def _rows(text: str, file: str) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Line number and query, document, grade of each row."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    try:
        first = next(rows, [])
        if len(first) != len(JUDGMENT):
            yield from _trec_rows(text, file)
            return
        if first[2].lower() not in _GRADE_COLUMNS:
            yield rows.line_num, (first[0], first[1], first[2])
        for row in rows:
            if len(row) != len(JUDGMENT):
                raise _wrong_columns(file, rows.line_num, len(row), f"3, split by tabs ({', '.join(JUDGMENT)})")
            yield rows.line_num, (row[0], row[1], row[2])
    except csv.Error as error:
        raise DataError(f"{file}, line {rows.line_num}", f"the quotes do not match ({error})", _ADVICE) from error


def _trec_rows(text: str, file: str) -> Iterator[tuple[int, tuple[str, str, str]]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        columns = line.split()
        if len(columns) != 4:
            expected = "4 (query, iteration, document, grade), or 3 split by tabs"
            raise _wrong_columns(file, number, len(columns), expected)
        query, _, document, grade = columns
        yield number, (unescape(query), unescape(document), grade)


def _wrong_columns(file: str, number: int, found: int, expected: str) -> DataError:
    return DataError(f"{file}, line {number}", f"{found} columns, expected {expected}", _ADVICE)
