"""Run files: read in any of three formats, checked line by line against the data, and written."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from coreb_tasks import rules, scoring
from coreb_tasks.data import PredictionsError, RetrievalData
from coreb_tasks.data.predictions import (
    DATA,
    MODEL,
    TOO_LARGE,
    Predictions,
    Run,
    check_data,
    file_name,
    is_number,
    parse_json,
    parse_predictions,
    refuse_repeated,
)
from coreb_tasks.facts import SPLIT, TASKS, Task
from coreb_tasks.interop.names import Names, escape, names

ADVICE = "Write the run again, or repair the file."
_COLUMNS = "query, Q0, document, rank, score, tag"
_BOM = b"\xef\xbb\xbf"


@dataclass
class ReadRun:
    """What a run file holds for a task.

    Attributes:
        runs: subset -> query id -> document id -> score, in the ids of the data.
        model: the model that it is of, where the file says it.
        warnings: what a reader of the scores must know, one sentence each.
    """

    runs: dict[str, dict[str, dict[str, float]]]
    model: str | None = None
    warnings: list[str] = field(default_factory=list)


def read_run(file: Path, task: Task, data: Mapping[str, RetrievalData]) -> ReadRun:
    """Read a run file: TREC's six columns, BEIR's JSON (query -> document -> score) or MTEB's predictions.

    Each may be compressed by gzip. What it is, is seen from its content. A folder holds a file for each subset,
    ``SUBSET.trec`` or ``SUBSET.json``, with or without ``.gz``.

    Args:
        file: the file or folder.
        task: the task that it is a run for.
        data: the data of the subsets that are wanted.

    Raises:
        PredictionsError: any fault of the file, with its line or with query and document.
    """
    if file.is_dir():
        return _read_folder(file, task, data)
    with _open(file) as lines:
        try:
            start = lines.peek(1)
            if not start:
                raise PredictionsError(str(file), "the file is empty, expected a run", ADVICE)
            if b"\0" in start:
                raise PredictionsError(str(file), "is no text in UTF-8", ADVICE)
            if _starts_json(lines):
                return _read_json(file, lines.read(), task, data)
            return _read_columns(file, data) or _read_lines(file, lines, data)
        except (OSError, EOFError, zlib.error) as error:
            raise PredictionsError(str(file), f"cannot be read ({type(error).__name__}: {error})", ADVICE) from error


@contextmanager
def _open(file: Path) -> Iterator[BufferedReader[Any]]:
    """The file's bytes, without gzip."""
    try:
        stream = file.open("rb")
    except OSError as error:
        raise PredictionsError(str(file), f"cannot be read ({error})", "Name a run file that exists.") from error
    with stream:
        if stream.peek(2)[:2] != b"\x1f\x8b":
            yield stream
        else:
            with gzip.open(stream) as content, BufferedReader(content, 1 << 20) as lines:
                yield lines


def _starts_json(lines: BufferedReader) -> bool:
    return lines.peek(256).removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")


def _read_folder(folder: Path, task: Task, data: Mapping[str, RetrievalData]) -> ReadRun:
    whole = ReadRun({})
    for subset, of_subset in data.items():
        found = [folder / f"{subset}{ending}" for ending in (".trec", ".trec.gz", ".json", ".json.gz")]
        found = [file for file in found if file.is_file()]
        if len(found) != 1:
            there = " and ".join(file.name for file in found) or "none of these"
            raise PredictionsError(
                str(folder),
                f"expected {subset}.trec or {subset}.json (or either with .gz) for subset {subset} of {task.name}, "
                f"the folder holds {there}",
                "Put one run file for each subset there, or name --subset.",
            )
        part = read_run(found[0], task, {subset: of_subset})
        whole.runs |= part.runs
        whole.model = whole.model or part.model
        whole.warnings += part.warnings
    return whole


@dataclass
class _Ids:
    """What the queries and documents of a file are called, over several subsets whose queries differ."""

    names: dict[str, Names]
    subset_of: dict[str, str]

    @classmethod
    def of(cls, place: str, kind: str, data: Mapping[str, RetrievalData]) -> _Ids:
        known = {subset: names(of_subset, kind) for subset, of_subset in data.items()}
        subset_of: dict[str, str] = {}
        for subset, of_subset in known.items():
            shared = subset_of.keys() & of_subset.query_of.keys()
            if shared:
                raise PredictionsError(
                    place,
                    f"query {min(shared)!r} is in subset {subset_of[min(shared)]} and in subset {subset}, and the "
                    "format does not say which is meant",
                    "Name one --subset, or a folder with a run file for each.",
                )
            subset_of |= dict.fromkeys(of_subset.query_of, subset)
        return cls(known, subset_of)


class _Collector:
    """Gathers what a file says, by the ids of the data."""

    def __init__(self, place: str, kind: str, data: Mapping[str, RetrievalData]) -> None:
        self.place = place
        self.ids = _Ids.of(place, kind, data)
        self.runs: dict[str, dict[str, dict[str, float]]] = {subset: {} for subset in data}
        self.unknown: dict[str, dict[str, float]] = {}

    def query(self, name: str) -> tuple[str | None, str, dict[str, float]]:
        """Subset, our id, and what was found so far; no subset for a query that is not the task's."""
        subset = self.ids.subset_of.get(name)
        if subset is None:
            return None, name, self.unknown.setdefault(name, {})
        query = self.ids.names[subset].query_of[name]
        return subset, query, self.runs[subset].setdefault(query, {})

    def finish(self, data: Mapping[str, RetrievalData], model: str | None = None) -> ReadRun:
        if not any(self.runs.values()):
            raise PredictionsError(
                self.place,
                f"none of its {len(self.unknown)} queries is the task's, the first: {list(self.unknown)[:3]}",
                "Name the task and the release that the run is for.",
            )
        without = [subset for subset, run in self.runs.items() if not run]
        if without:
            raise PredictionsError(
                self.place, f"has no query of subset {', '.join(without)}", "Name the subsets that it has (--subset)."
            )
        read = ReadRun(self.runs, model)
        if self.unknown:
            read.warnings.append(
                f"{self.place}: {len(self.unknown)} queries are not the task's and are left out, the first: "
                f"{list(self.unknown)[:3]}. Is it a run for another task or release?"
            )
        for subset, of_subset in data.items():
            missing = [query for query in of_subset.queries if not self.runs[subset].get(query)]
            if missing:
                where = "" if subset == "default" else f" of subset {subset}"
                read.warnings.append(
                    f"{self.place}: no result for {len(missing)} of {len(of_subset.queries)} queries{where}, which "
                    f"score 0, the first: {missing[:3]}"
                )
            cut = _cut_too_early(self.runs[subset], of_subset)
            if cut is not None:
                read.warnings.append(
                    f"{self.place}: query {cut[0]!r} has {cut[1]} documents, one of them excluded; if the run was cut "
                    f"there, its metrics at {cut[1]} lack a document. Retrieve some more."
                )
        return read


def _cut_too_early(run: Run, data: RetrievalData) -> tuple[str, int] | None:
    """A query whose run ends at a cut-off, with an excluded document in it."""
    for query, excluded in data.excluded.items():
        scores = run.get(query, {})
        if len(scores) in rules.CUT_OFFS and not excluded.isdisjoint(scores):
            return query, len(scores)
    return None


def _read_columns(file: Path, data: Mapping[str, RetrievalData]) -> ReadRun | None:
    """A TREC file without any fault, columns at a time; None for all others, which ``_read_lines`` reads.

    A run has millions of lines, which a loop takes a multiple of the time for.
    """
    import pyarrow
    import pyarrow.csv

    with _open(file) as lines:
        delimiter = "\t" if b"\t" in lines.peek(256).split(b"\n")[0] else " "
        names_of_columns = _COLUMNS.split(", ")
        word = pyarrow.dictionary(pyarrow.int32(), pyarrow.binary())
        try:
            table = pyarrow.csv.read_csv(
                lines,
                pyarrow.csv.ReadOptions(column_names=names_of_columns),
                pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names_of_columns, word)
                    | {"rank": pyarrow.int64(), "score": pyarrow.float64()}
                ),
            )
        except pyarrow.ArrowInvalid:
            return None
    columns = {
        name: column.combine_chunks() for name, column in zip(names_of_columns, table.unify_dictionaries(), strict=True)
    }
    if any(column.null_count for column in columns.values()):
        return None
    words = {name: columns[name].dictionary.to_pylist() for name in ("query", "Q0", "document", "tag")}
    if any(len(word.split()) != 1 for known in words.values() for word in known):
        return None
    scores, ranks = columns["score"].to_numpy(), columns["rank"].to_numpy()
    if not (np.abs(scores) < TOO_LARGE).all():
        return None
    collector = _Collector(str(file), "trec", data)
    documents_of = {
        subset: np.array([known.document_of.get(_text(word)) for word in words["document"]], dtype=object)
        for subset, known in collector.ids.names.items()
    }
    documents = columns["document"].indices.to_numpy()
    found: dict[tuple[str, str], Any] = {}
    for word, positions in zip(words["query"], _positions(columns["query"].indices.to_numpy()), strict=True):
        subset, query, ranked = collector.query(_text(word))
        if subset is None:
            names_of_documents = [words["document"][code] for code in documents[positions]]
        else:
            names_of_documents = documents_of[subset][documents[positions]].tolist()
            found[subset, query] = ranks[positions]
        before = len(ranked)
        ranked.update(zip(names_of_documents, scores[positions].tolist(), strict=True))
        if None in ranked or before or len(ranked) < len(positions):
            return None
    return _with_ranks(collector.finish(data), found, file)


def _positions(codes: Any) -> list[Any]:
    """Where each of the codes 0, 1, ... stands."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _read_lines(file: Path, lines: Iterable[bytes], data: Mapping[str, RetrievalData]) -> ReadRun:
    """A TREC file, line by line, with the place of every fault."""
    collector = _Collector(str(file), "trec", data)
    found: dict[tuple[str, str], array[int]] = {}
    for number, line in enumerate(_without_bom(lines), start=1):
        columns = line.split()
        if len(columns) != 6:
            raise _bad_line(file, number, f"{len(columns)} columns, expected 6 ({_COLUMNS})")
        query_name, _, name, rank, score, _ = map(_text, columns)
        subset, query, scores = collector.query(query_name)
        try:
            value = float(score)
            found.setdefault((subset or "", query), array("q")).append(int(rank))
        except (ValueError, OverflowError):
            value = math.nan
        if not abs(value) < TOO_LARGE or "_" in rank + score:  # Python reads 1_000 as a thousand
            given = f"rank {rank!r} and score {score!r}"
            raise _bad_line(file, number, f"{given}, expected whole number and number, finite in single precision")
        document = name if subset is None else collector.ids.names[subset].document_of.get(name)
        if document is None:
            raise _bad_line(file, number, f"document {name!r} is not in the corpus")
        if document in scores:
            raise _bad_line(file, number, f"document {name!r} stands a second time for query {query!r}")
        scores[document] = value
    return _with_ranks(collector.finish(data), found, file)


def _with_ranks(read: ReadRun, ranks: Mapping[tuple[str, str], Sequence[int]], file: Path) -> ReadRun:
    """With a warning where the ranks order a query's documents in another way than their scores."""
    disagreeing = [
        query
        for subset, run in read.runs.items()
        for query, scores in run.items()
        if _disagree(scores, ranks[subset, query])
    ]
    if disagreeing:
        read.warnings.append(
            f"{file}: ranks and scores disagree for {len(disagreeing)} queries, the first: {disagreeing[0]!r}. "
            "Scores count, ties by document id descending, as in trec_eval; write scores that fall with the rank."
        )
    return read


def _without_bom(lines: Iterable[bytes]) -> Iterator[bytes]:
    rest = iter(lines)
    return chain((line.removeprefix(_BOM) for line in islice(rest, 1)), rest)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _bad_line(file: Path, number: int, problem: str) -> PredictionsError:
    return PredictionsError(f"{file}, line {number}", problem, ADVICE)


def _disagree(scores: Mapping[str, float], ranks: Sequence[int]) -> bool:
    """Whether the ranks order the documents that count in another way than their scores."""
    documents, depth = list(scores), scoring.DEPTH + 1
    by_rank = [documents[position] for position in np.argsort(np.asarray(ranks), kind="stable")[:depth]]
    return by_rank != list(scoring.best(scores, depth=depth))


def _read_json(file: Path, content: bytes, task: Task, data: Mapping[str, RetrievalData]) -> ReadRun:
    try:
        found = parse_json(content.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        raise PredictionsError(str(file), f"cannot be read as JSON ({error})", ADVICE) from error
    if isinstance(found, dict) and (MODEL in found or DATA in found):
        return of_predictions(file, parse_predictions(found, str(file)), task, data)
    return take_run(found, data, str(file))


def of_predictions(file: Path, found: Predictions, task: Task, data: Mapping[str, RetrievalData]) -> ReadRun:
    """The runs of a prediction file of mteb. Raises PredictionsError where it is of another task or of other data."""
    whole = ReadRun({}, found.header.run_by)
    for subset, of_subset in data.items():
        if subset not in found.header.data_hash:
            whole.warnings.append(
                f"{file} does not say which data its predictions are of; that they are for {task.name} is taken on "
                "trust. Files that coreb-tasks writes say it (--prediction-folder)."
            )
        check_data(file, found.header, subset, [task.name, str(task.reranking)], of_subset.data_hash)
        part = take_run(found.run(subset, SPLIT, str(file)), {subset: of_subset}, str(file), kind="mteb")
        whole.runs |= part.runs
        whole.warnings += part.warnings
    return whole


def task_of(file: Path, found: Predictions) -> str:
    """Name of the retrieval task that a prediction file is of: as it says, else as it is called."""
    name = found.header.task or file.name.removesuffix(file_name(""))
    return TASKS[name].retrieval if name in TASKS else name


def take_run(run: Any, data: Mapping[str, RetrievalData], place: str, kind: str = "beir") -> ReadRun:
    """A run in BEIR's dictionaries (query id -> document id -> score), with ids of any type and numbers of numpy.

    Raises:
        PredictionsError: it is none, or not of the data. ``place`` says where it is from.
    """
    collector = _Collector(place, kind, data)
    for name, ranked in _mapping(run, place, "a run: query id -> document id -> score").items():
        subset, query, scores = collector.query(str(name))
        if scores:
            raise PredictionsError(place, f"two of its queries mean query {query!r}, the second is {name!r}", ADVICE)
        documents = None if subset is None else collector.ids.names[subset].document_of
        for document_name, score in _mapping(ranked, place, f"documents and scores of query {query!r}").items():
            document = str(document_name) if documents is None else documents.get(str(document_name))
            if document is None:
                raise PredictionsError(
                    place, f"document {document_name!r} of query {query!r} is not in the corpus", ADVICE
                )
            if document in scores:
                raise PredictionsError(place, f"document {document!r} of query {query!r} stands a second time", ADVICE)
            number = score if type(score) is float else _number(score)
            if not abs(number) < TOO_LARGE:
                raise PredictionsError(
                    place,
                    f"the score of query {query!r} and document {document!r} is {score!r:.40}, expected a number that "
                    "is finite in single precision",
                    ADVICE,
                )
            scores[document] = number
    return collector.finish(data)


def _mapping(given: Any, place: str, expected: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise PredictionsError(place, f"expected {expected}, got {given!r:.60}", ADVICE)
    try:
        refuse_repeated(given, expected)
    except ValueError as error:
        raise PredictionsError(place, str(error), ADVICE) from error
    return given


def _number(score: Any) -> float:
    """A number of Python or numpy; NaN for what is none."""
    if not is_number(score):
        return math.nan
    try:
        return float(score)
    except OverflowError:
        return math.inf


def strictly_decreasing(ranked: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Documents, best first, with scores that fall in single precision too, so that every tool ranks them alike.

    A tie is broken by the least that a score of its size can show, or by 1e-7 near 0.
    """
    limit = np.float32(np.inf)
    for document, score in ranked.items():
        lowered = min(np.float32(score), limit)
        yield document, float(lowered)
        limit = lowered - max(np.spacing(abs(lowered)), np.float32(1e-7))


def write_trec(file: Path, run: Run, data: RetrievalData, tag: str) -> None:
    """Write a run as TREC's six columns, compressed where the file's name ends with ``.gz``.

    Scores fall strictly; ids are escaped; excluded documents are no part.
    """
    known = names(data, "trec")
    with _writer(file) as out:
        for query, ranked in _clean(run, data):
            for rank, (document, score) in enumerate(strictly_decreasing(ranked), start=1):
                out.write(f"{known.queries[query]} Q0 {known.documents[document]} {rank} {score!r} {escape(tag)}\n")


def write_beir(file: Path, run: Run, data: RetrievalData) -> None:
    """Write a run as BEIR's result JSON, with the ids of the BEIR export; compressed as ``write_trec``."""
    known = names(data, "beir")
    results = {
        known.queries[query]: {known.documents[d]: score for d, score in strictly_decreasing(ranked)}
        for query, ranked in _clean(run, data)
    }
    with _writer(file) as out:
        json.dump(results, out, ensure_ascii=False)


def _clean(run: Run, data: RetrievalData) -> Iterator[tuple[str, dict[str, float]]]:
    for query in data.queries:
        scores = run.get(query, {})
        if scores:
            yield query, scoring.best(scores, data.excluded.get(query, frozenset()), len(scores))


def _writer(file: Path) -> IO[str]:
    opened = gzip.open if file.suffix == ".gz" else open
    return opened(file, "xt", encoding="utf-8", newline="\n")
