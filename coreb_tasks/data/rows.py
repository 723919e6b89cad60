"""Rows of a data set's files, each with the place it came from."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coreb_tasks.data.errors import DataError
from coreb_tasks.data.source import Source


class Row(NamedTuple):
    """``place`` names the file and the row, counted from 1."""

    fields: dict[str, Any]
    place: str

    def get(self, column: str) -> Any:
        """The value of a column; DataError where the row lacks it."""
        if column not in self.fields:
            raise DataError(self.place, f"column {column!r} is missing; found: {', '.join(self.fields) or 'none'}")
        return self.fields[column]


def read(source: Source, config: str, split: str) -> list[Row]:
    """All rows of a config's split. Raises DataError for what cannot be read, and for a config without rows."""
    files = source.files(config, split)
    rows = [_with_flat_meta(row) for file in files for row in _read_file(file, source)]
    if not rows:
        raise DataError(", ".join(map(str, files)), f"config {config} has no rows")
    return rows


def _read_file(file: Path, source: Source) -> Iterator[Row]:
    name = str(file.relative_to(source.folder))
    if file.suffix == ".jsonl":
        return _read_jsonl(file, name)
    if file.suffix == ".parquet":
        return _read_parquet(file, name)
    raise DataError(name, f"files of kind {file.suffix or 'none'} are not read; expected .jsonl or .parquet")


def _read_jsonl(file: Path, name: str) -> Iterator[Row]:
    with file.open("rb") as lines:  # bytes: only \n ends a line, not U+2028 or a form feed within a text
        for number, line in enumerate(lines, start=1):
            place = f"{name}, row {number}"
            try:
                fields = json.loads(line.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_no_constant)
            except ValueError as error:
                raise DataError(place, f"not a JSON object in UTF-8 ({error})") from error
            if not isinstance(fields, dict):
                raise DataError(place, f"expected a JSON object, got {type(fields).__name__}")
            yield Row(fields, place)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return fields


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _read_parquet(file: Path, name: str) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(file).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(name, f"not a readable parquet file ({error})") from error
    return (Row(fields, f"{name}, row {number}") for number, fields in enumerate(rows, start=1))


def _with_flat_meta(row: Row) -> Row:
    """Copies of the data hold ``meta_*`` as columns, as one dict ``meta``, or as that dict's repr: make it columns."""
    meta = row.fields.get("meta")
    if meta is None:
        return row
    if isinstance(meta, str):
        meta = _dict_of_repr(meta, row.place)
    if not isinstance(meta, dict):
        raise DataError(row.place, f"column 'meta' holds {type(meta).__name__}, expected a dict or the repr of one")
    fields = {column: value for column, value in row.fields.items() if column != "meta"}
    for key, value in meta.items():
        column = f"meta_{str(key).removeprefix('meta_')}"
        if fields.setdefault(column, value) != value:
            raise DataError(row.place, f"columns 'meta' and {column!r} differ: {value!r} and {fields[column]!r}")
    return Row(fields, row.place)


def _dict_of_repr(text: str, place: str) -> Any:
    try:
        tree = ast.parse(text, mode="eval").body
        meta = ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise DataError(place, "column 'meta' is a text, but not the repr of a Python dict") from error
    if isinstance(tree, ast.Dict) and len(meta) < len(tree.keys):
        raise DataError(place, "a key stands twice in column 'meta'")
    return meta
