"""A task's data: loaded, checked, pinned, and in the one shape that the tasks, exports and scorers use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from hashlib import sha256
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
        data_hash: sha256 of the data version that this is (a part of).
        excluded: query id -> documents that are no candidates for it (queries without any are left out).
        slices: name of a part of the queries (``t2c_search_go``, ``language=go``) -> its query ids.
        commit: commit of the hub that it came from; None for a folder and for packaged data.
    """

    corpus: dict[str, str]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    data_hash: str
    excluded: dict[str, frozenset[str]] = field(default_factory=dict)
    slices: dict[str, list[str]] = field(default_factory=dict)
    commit: str | None = None

    def of_subtasks(self, subtasks: Set[str]) -> RetrievalData:
        """The same with the queries of some subtasks only, and the slices that differ from all of these."""
        kept = {query for subtask in subtasks for query in self.slices[subtask]}
        slices = {name: [query for query in queries if query in kept] for name, queries in self.slices.items()}
        return replace(
            self,
            queries={query: text for query, text in self.queries.items() if query in kept},
            qrels={query: documents for query, documents in self.qrels.items() if query in kept},
            excluded={query: documents for query, documents in self.excluded.items() if query in kept},
            slices={name: queries for name, queries in slices.items() if 0 < len(queries) < len(kept)},
        )


def load(task: Task, subset: str = "default") -> RetrievalData:
    """Load the data of one subset of a task and check all of it.

    Raises:
        DataError: any fault, with file or config, row and id; or data that are not the pinned version.
    """
    return load_subsets(task, [subset])[subset]


def load_subsets(task: Task, subsets: Iterable[str]) -> dict[str, RetrievalData]:
    """As ``load``, for several subsets. What they share is read once; what no subset needs is not opened."""
    wanted = {name: task.subsets[name] for name in subsets}
    loaded = {layout: _load(task, layout) for layout in dict.fromkeys(subset.layout for subset in wanted.values())}
    return {
        name: loaded[subset.layout] if subset.subtasks is None else loaded[subset.layout].of_subtasks(subset.subtasks)
        for name, subset in wanted.items()
    }


def pinned_hash(task: Task, subset: str = "default") -> str | None:
    """sha256 of the data version that a subset is pinned to; None where it is not pinned."""
    known = pins(task.path, task.release)
    hashes = [known.get(config, Pin()).sha256 for config in task.subsets[subset].layout.configs]
    return _sha256([known for known in hashes if known]) if all(hashes) else None


# mteb wants a revision before the data are read. Once they are, the result gets their hash.
UNRESOLVED = "resolved-when-loaded"


def revision_of(versions: Iterable[str]) -> str:
    """The revision of data that are known by their content: by the hash (or revision) of each part's version."""
    known = [version.removeprefix("sha256:") for version in versions]
    return f"sha256:{known[0] if len(set(known)) == 1 else sha256(' '.join(known).encode()).hexdigest()}"


def measure(task: Task) -> dict[str, Pin]:
    """Row count and content hash of each of the task's configs, from data that pass the checks of form."""
    layouts = dict.fromkeys(subset.layout for subset in task.subsets.values())
    return {config: pin for layout in layouts for config, pin in _measured(layout, _read(task, layout)[1]).items()}


def _load(task: Task, layout: Layout) -> RetrievalData:
    known = pins(task.path, task.release)
    source, tables = _read(task, layout, known)
    measured = _measured(layout, tables)
    for config, found in measured.items():
        expected = known.get(config, Pin())
        if expected.rows not in (None, found.rows) or expected.sha256 not in (None, found.sha256):
            raise _not_the_pinned_version(task, source, config, found, expected)
    return _shape(tables, _sha256(str(pin.sha256) for pin in measured.values()), source.commit)


def content_hash(rows: Iterable[tuple[Any, ...]]) -> str:
    """sha256 over what is scored, whatever the file format and the order of the rows."""
    return _sha256(sorted(json.dumps(row, ensure_ascii=False) for row in rows))


def _sha256(lines: Iterable[str]) -> str:
    digest = sha256()
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


def _read(task: Task, layout: Layout, known: Mapping[str, Pin] | None = None) -> tuple[Source, _Tables]:
    source = locate(task.path, layout.configs, task.release, task.commit)
    rows = {config: read(source, config, task.release) for config in layout.configs}
    for config, pin in (known or {}).items():
        # Before the other checks, which would find fault with what refers to the missing rows.
        if config in rows and pin.rows is not None and len(rows[config]) < pin.rows:
            raise _not_the_pinned_version(task, source, config, Pin(len(rows[config])), pin)
    corpus = _corpus(rows[layout.corpus], layout)
    queries = _queries(rows[layout.queries], layout, corpus)
    if layout.qrels is None:
        qrels = {query: {query: task.benchmark.relevance_level} for query in queries if query in corpus}
    else:
        qrels = _qrels(rows[layout.qrels], task, layout, corpus, queries)
    unjudged = [query for query in queries if query not in qrels]
    if unjudged:
        raise DataError(
            f"{task.path}, config {layout.qrels or layout.queries}, split {task.release}",
            f"{len(unjudged)} queries of {layout.queries} have no judgment, the first: {unjudged[:3]}",
        )
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
    rows: list[Row], task: Task, layout: Layout, corpus: dict[str, str], queries: dict[str, _Query]
) -> dict[str, dict[str, int]]:
    without_grades = layout.grade_if_absent is not None and not any(layout.grade in row.fields for row in rows)
    qrels: dict[str, dict[str, int]] = {}
    for row in rows:
        query, document = _id(row, layout.qrels_query), _id(row, layout.qrels_document)
        for kind, value, known, config in (
            ("query", query, queries, layout.queries),
            ("document", document, corpus, layout.corpus),
        ):
            if value not in known:
                raise DataError(row.place, f"judged {kind} {value!r} is not in {config}")
        grade = layout.grade_if_absent if without_grades else row.get(layout.grade)
        grades = sorted({0, *task.benchmark.grades})
        if isinstance(grade, bool) or not isinstance(grade, int | float) or grade not in grades:
            raise DataError(
                row.place,
                f"{layout.grade} of ({query!r}, {document!r}) is {grade!r}, expected a whole number in {grades}",
            )
        if document in qrels.setdefault(query, {}):
            raise DataError(row.place, f"({query!r}, {document!r}) is judged a second time")
        if document == queries[query].excluded and grade >= task.benchmark.relevance_level:
            raise DataError(row.place, f"document {document!r} is both relevant to and excluded from query {query!r}")
        qrels[query][document] = int(grade)
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


def _measured(layout: Layout, tables: _Tables) -> dict[str, Pin]:
    """Rows and hash of each config; where one config holds documents and queries, of both together."""
    parts: dict[str, list[list[tuple[Any, ...]]]] = {config: [] for config in layout.configs}
    parts[layout.corpus].append(list(tables.corpus.items()))
    parts[layout.queries].append([(q, v.text, v.subtask, v.language, v.excluded) for q, v in tables.queries.items()])
    if layout.qrels is not None:
        parts[layout.qrels].append([(q, d, grade) for q, judged in tables.qrels.items() for d, grade in judged.items()])
    return {
        config: Pin(len(held[0]), content_hash(row for rows in held for row in rows)) for config, held in parts.items()
    }


def _not_the_pinned_version(task: Task, source: Source, config: str, found: Pin, expected: Pin) -> DataError:
    origin = f"commit {source.commit} of the hub" if source.commit else str(source.folder)
    return DataError(
        f"{task.path}, config {config}, split {task.release} ({origin})",
        f"not the data that {task.name} is scored on: expected {_told(expected)}, got {_told(found)}",
        "Copy or fetch the whole data set; if the data set itself has changed, a new version of coreb-tasks is needed.",
    )


def _told(pin: Pin) -> str:
    return f"{pin.rows} rows" + (f" with content hash {pin.sha256[:12]}" if pin.sha256 else "")


def _shape(tables: _Tables, data_hash: str, commit: str | None) -> RetrievalData:
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
        data_hash=data_hash,
        excluded={q: frozenset({v.excluded}) for q, v in tables.queries.items() if v.excluded is not None},
        slices=dict(sorted(slices.items())),
        commit=commit,
    )
