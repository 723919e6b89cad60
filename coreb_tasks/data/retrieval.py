"""A task's data: loaded, checked, pinned, and in the one shape that the tasks, exports and scorers use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coreb_tasks.data.errors import DataError
from coreb_tasks.data.rows import Row, read
from coreb_tasks.data.source import Source, locate
from coreb_tasks.facts import Layout, Task
from coreb_tasks.task_metadata import Pin, pins


@dataclass(frozen=True)
class RetrievalData:
    """Documents, queries and judgments, all by id (strings), in the order of their ids.

    The order is fixed because search breaks ties by position: a copy with its rows in another order scores the same.

    Attributes:
        corpus: text of each document.
        queries: text of each query.
        qrels: query id -> document id -> grade, as in the data; every query has at least one.
        excluded: query id -> documents that are no candidates for it (queries without any are left out).
        slices: name of a part of the queries (``t2c_search_go``, ``language=go``) -> its query ids.
        commit: commit of the hub that it came from; None for a folder and for packaged data.
    """

    corpus: dict[str, str]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    excluded: dict[str, frozenset[str]] = field(default_factory=dict)
    slices: dict[str, list[str]] = field(default_factory=dict)
    commit: str | None = None


def load(task: Task) -> RetrievalData:
    """Load a task's data and check all of it.

    Raises:
        DataError: any fault, with file or config, row and id; or data that are not the pinned version.
    """
    source, tables = _read(task)
    expected = pins(task.path, task.release)
    for config, found in _measured(task.layout, tables).items():
        if found != expected[config]:
            raise _not_the_pinned_version(task, source, config, found, expected[config])
    return _shape(tables, source.commit)


def data_hash(task: Task) -> str:
    """sha256 of the task's data version: of the pinned hashes of its configs."""
    expected = pins(task.path, task.release)
    return _sha256(expected[config].sha256 for config in task.layout.configs)


def measure(task: Task) -> dict[str, Pin]:
    """Row count and content hash of each of the task's configs, from data that pass the checks of form."""
    _, tables = _read(task)
    return _measured(task.layout, tables)


def content_hash(rows: Iterable[tuple[Any, ...]]) -> str:
    """sha256 over what is scored, whatever the file format and the order of the rows."""
    return _sha256(sorted(json.dumps(row, ensure_ascii=False) for row in rows))


def _sha256(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True)
class _Query:
    text: str
    subtask: str | None
    language: str | None
    excluded: str | None


@dataclass(frozen=True)
class _Tables:
    corpus: dict[str, str]
    queries: dict[str, _Query]
    qrels: dict[str, dict[str, int]]


def _read(task: Task) -> tuple[Source, _Tables]:
    layout = task.layout
    source = locate(task.path, layout.configs, task.release)
    corpus = _corpus(read(source, layout.corpus, task.release), layout)
    queries = _queries(read(source, layout.queries, task.release), layout, corpus)
    qrels = _qrels(read(source, layout.qrels, task.release), task, corpus, queries)
    qrels = {query: dict(sorted(documents.items())) for query, documents in sorted(qrels.items())}
    return source, _Tables(dict(sorted(corpus.items())), dict(sorted(queries.items())), qrels)


def _corpus(rows: list[Row], layout: Layout) -> dict[str, str]:
    corpus: dict[str, str] = {}
    for row in rows:
        _add(corpus, row, layout.document_id, _text(row, layout.document_id, layout.document_text))
    return corpus


def _queries(rows: list[Row], layout: Layout, corpus: dict[str, str]) -> dict[str, _Query]:
    queries: dict[str, _Query] = {}
    for row in rows:
        query = _Query(
            text=_text(row, layout.query_id, layout.query_text),
            subtask=None if layout.subtask is None else _name(row, layout.subtask),
            language=_language(row, layout.languages),
            excluded=None if layout.excluded is None else _id(row, layout.excluded),
        )
        if query.excluded is not None and query.excluded not in corpus:
            raise DataError(
                row.place,
                f"query {_id(row, layout.query_id)!r} excludes document {query.excluded!r}, "
                f"which {layout.corpus} does not hold",
            )
        _add(queries, row, layout.query_id, query)
    return queries


def _qrels(
    rows: list[Row], task: Task, corpus: dict[str, str], queries: dict[str, _Query]
) -> dict[str, dict[str, int]]:
    layout = task.layout
    qrels: dict[str, dict[str, int]] = {}
    for row in rows:
        query, document = _id(row, layout.qrels_query), _id(row, layout.qrels_document)
        grade = _grade(row, layout.grade, task, f"({query!r}, {document!r})")
        for kind, value, known, config in (
            ("query", query, queries, layout.queries),
            ("document", document, corpus, layout.corpus),
        ):
            if value not in known:
                raise DataError(row.place, f"judged {kind} {value!r} is not in {config}")
        if document in qrels.setdefault(query, {}):
            raise DataError(row.place, f"({query!r}, {document!r}) is judged a second time")
        if document == queries[query].excluded and grade >= task.benchmark.relevance_level:
            raise DataError(row.place, f"document {document!r} is both relevant to and excluded from query {query!r}")
        qrels[query][document] = grade
    unjudged = [query for query in queries if query not in qrels]
    if unjudged:
        raise DataError(
            f"{task.path}, config {layout.qrels}, split {task.release}",
            f"{len(unjudged)} queries of {layout.queries} have no judgment, the first: {unjudged[:3]}",
        )
    return qrels


def _add(table: dict[str, Any], row: Row, column: str, value: Any) -> None:
    key = _id(row, column)
    if key in table:
        raise DataError(row.place, f"{column} {key!r} stands a second time")
    table[key] = value


def _id(row: Row, column: str) -> str:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise DataError(row.place, f"{column} is {value!r}, expected a string or a whole number")
    return _unicode(row, f"{column} {value!r}", str(value))


def _text(row: Row, id_column: str, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        given = "empty" if isinstance(value, str) else f"{value!r}"
        raise DataError(row.place, f"{column} of {_id(row, id_column)!r} is {given}, expected a text")
    return _unicode(row, f"{column} of {_id(row, id_column)!r}", value)


def _name(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise DataError(row.place, f"{column} is {value!r}, expected a name")
    return _unicode(row, f"{column} {value!r}", value)


def _unicode(row: Row, what: str, value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(row.place, f"{what} is not valid Unicode ({error})") from error
    return value


def _language(row: Row, columns: tuple[str, ...]) -> str | None:
    filled = [column for column in columns if row.fields.get(column) is not None]
    if not filled and columns:
        raise DataError(row.place, f"none of the columns {', '.join(columns)} is filled")
    return _name(row, filled[0]) if filled else None


def _grade(row: Row, column: str, task: Task, pair: str) -> int:
    value = row.get(column)
    grades = sorted({0, *task.benchmark.grades})
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in grades:
        raise DataError(row.place, f"{column} of {pair} is {value!r}, expected a whole number in {grades}")
    return int(value)


def _measured(layout: Layout, tables: _Tables) -> dict[str, Pin]:
    judgments = [(q, d, grade) for q, documents in tables.qrels.items() for d, grade in documents.items()]
    return {
        layout.corpus: Pin(len(tables.corpus), content_hash(tables.corpus.items())),
        layout.queries: Pin(
            len(tables.queries),
            content_hash((q, v.text, v.subtask, v.language, v.excluded) for q, v in tables.queries.items()),
        ),
        layout.qrels: Pin(len(judgments), content_hash(judgments)),
    }


def _not_the_pinned_version(task: Task, source: Source, config: str, found: Pin, expected: Pin) -> DataError:
    origin = f"commit {source.commit} of the hub" if source.commit else str(source.folder)
    return DataError(
        f"{task.path}, config {config}, split {task.release} ({origin})",
        f"not the data that {task.name} is scored on: expected {expected.rows} rows with content hash "
        f"{expected.sha256[:12]}, got {found.rows} rows with {found.sha256[:12]}",
        "Copy or fetch the whole data set; if the data set itself has changed, a new version of coreb-tasks is needed.",
    )


def _shape(tables: _Tables, commit: str | None) -> RetrievalData:
    slices: dict[str, list[str]] = {}
    for query, value in tables.queries.items():
        if value.subtask is not None:
            slices.setdefault(value.subtask, []).append(query)
        if value.language is not None:
            slices.setdefault(f"language={value.language}", []).append(query)
    return RetrievalData(
        corpus=tables.corpus,
        queries={query: value.text for query, value in tables.queries.items()},
        qrels=tables.qrels,
        excluded={q: frozenset({v.excluded}) for q, v in tables.queries.items() if v.excluded is not None},
        slices=dict(sorted(slices.items())),
        commit=commit,
    )
