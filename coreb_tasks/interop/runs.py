"""Run files: read in any of three formats, checked line by line against the data, and written."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import IO, Any

import numpy as np

from coreb_tasks import rules, scoring
from coreb_tasks.data import PredictionsError, RetrievalData
from coreb_tasks.data.predictions import (
    DATA,
    MODEL,
    Predictions,
    Run,
    check_data,
    file_name,
    parse_json,
    parse_predictions,
    refuse_repeated,
)
from coreb_tasks.facts import SPLIT, TASKS, Task
from coreb_tasks.interop.names import Names, escape, names

ADVICE = "Write the run again, or repair the file."
_COLUMNS = "query, Q0, document, rank, score, tag"
_BOM = b"\xef\xbb\xbf"
_LARGEST = float(np.finfo(np.float32).max)


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


Progress = Callable[[Iterable[bytes]], Iterable[bytes]]


def read_run(
    file: Path, task: Task, data: Mapping[str, RetrievalData], progress: Progress = lambda lines: lines
) -> ReadRun:
    """Read a run file: TREC's six columns, BEIR's JSON (query -> document -> score) or MTEB's predictions.

    Each may be compressed by gzip. What it is, is seen from its content. A folder holds a file for each subset,
    ``SUBSET.trec`` or ``SUBSET.json``, with or without ``.gz``.

    Args:
        file: the file or folder.
        task: the task that it is a run for.
        data: the data of the subsets that are wanted.
        progress: is handed the lines of a TREC file and hands them on.

    Raises:
        PredictionsError: any fault of the file, with its line or with query and document.
    """
    if file.is_dir():
        return _read_folder(file, task, data, progress)
    with ExitStack() as stack:
        lines = _open(file, stack)
        try:
            if not lines.peek(1):
                raise PredictionsError(str(file), "the file is empty, expected a run", ADVICE)
            if _starts_json(lines):
                return _read_json(file, lines.read(), task, data)
            return _read_trec(file, progress(lines), data)
        except (OSError, EOFError, zlib.error) as error:
            raise PredictionsError(str(file), f"cannot be read ({type(error).__name__}: {error})", ADVICE) from error


def _open(file: Path, stack: ExitStack) -> BufferedReader:
    try:
        stream = stack.enter_context(file.open("rb"))
    except OSError as error:
        raise PredictionsError(str(file), f"cannot be read ({error})", "Name a run file that exists.") from error
    if stream.peek(2)[:2] != b"\x1f\x8b":
        return stream
    return stack.enter_context(BufferedReader(stack.enter_context(gzip.open(stream)), 1 << 20))


def _starts_json(lines: BufferedReader) -> bool:
    return lines.peek(256).removeprefix(_BOM).lstrip()[:1] == b"{"


def _read_folder(folder: Path, task: Task, data: Mapping[str, RetrievalData], progress: Progress) -> ReadRun:
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
        part = read_run(found[0], task, {subset: of_subset}, progress)
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
        self.unknown: dict[str, None] = {}

    def query(self, name: str) -> tuple[str, str, dict[str, float]] | None:
        """Subset, our id, and what was found so far; None for a query that is not the task's."""
        subset = self.ids.subset_of.get(name)
        if subset is None:
            self.unknown[name] = None
            return None
        query = self.ids.names[subset].query_of[name]
        return subset, query, self.runs[subset].setdefault(query, {})

    def finish(self, data: Mapping[str, RetrievalData], model: str | None = None) -> ReadRun:
        found = [query for run in self.runs.values() for query in run]
        if not found:
            raise PredictionsError(
                self.place,
                f"none of its {len(self.unknown)} queries is the task's, the first: {list(self.unknown)[:3]}",
                "Name the task that the run is for.",
            )
        read = ReadRun(self.runs, model)
        if self.unknown:
            read.warnings.append(
                f"{self.place}: {len(self.unknown)} queries are not the task's and are left out, the first: "
                f"{list(self.unknown)[:3]}"
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


def _read_trec(file: Path, lines: Iterable[bytes], data: Mapping[str, RetrievalData]) -> ReadRun:
    collector = _Collector(str(file), "trec", data)
    documents_of = {
        subset: {name.encode(): document for name, document in known.document_of.items()}
        for subset, known in collector.ids.names.items()
    }
    ranks: dict[tuple[str, str], array[int]] = {}
    current = None
    for number, line in enumerate(_without_bom(lines), start=1):
        columns = line.split()
        if len(columns) != 6:
            raise _bad_line(file, number, f"{len(columns)} columns, expected 6 ({_COLUMNS})")
        query_name, _, document_name, rank, score, _ = columns
        if query_name != current:
            current = query_name
            found = collector.query(_text(query_name))
            if found is not None:
                subset, query, scores = found
                documents, of_query = documents_of[subset], ranks.setdefault((subset, query), array("q"))
        if found is None:
            continue
        try:
            value = float(score)
            of_query.append(int(rank))
        except (ValueError, OverflowError):
            value = math.nan
        if not abs(value) < _LARGEST or b"_" in score:  # Python reads 1_000 as a thousand
            given = f"rank {_text(rank)!r} and score {_text(score)!r}"
            raise _bad_line(file, number, f"{given}, expected whole number and number, finite in single precision")
        document = documents.get(document_name)
        if document is None:
            raise _bad_line(file, number, f"document {_text(document_name)!r} is not in the corpus")
        if document in scores:
            raise _bad_line(file, number, f"document {_text(document_name)!r} stands a second time for query {query!r}")
        scores[document] = value
    read = collector.finish(data)
    disagreeing = [key for key, of_query in ranks.items() if _disagree(collector.runs[key[0]][key[1]], of_query)]
    if disagreeing:
        read.warnings.append(
            f"{file}: ranks and scores disagree for {len(disagreeing)} queries, the first: {disagreeing[0][1]!r}. "
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
        found = collector.query(str(name))
        if found is None:
            continue
        subset, query, scores = found
        if scores:
            raise PredictionsError(place, f"query {query!r} stands a second time, as {name!r}", ADVICE)
        documents = collector.ids.names[subset].document_of
        for document_name, score in _mapping(ranked, place, f"documents and scores of query {query!r}").items():
            document = documents.get(str(document_name))
            if document is None:
                raise PredictionsError(
                    place, f"document {document_name!r} of query {query!r} is not in the corpus", ADVICE
                )
            if document in scores:
                raise PredictionsError(place, f"document {document!r} of query {query!r} stands a second time", ADVICE)
            if not (type(score) is float or _is_number(score)) or not abs(score) < _LARGEST:
                raise PredictionsError(
                    place,
                    f"the score of query {query!r} and document {document!r} is {score!r}, expected a number that is "
                    "finite in single precision",
                    ADVICE,
                )
            scores[document] = float(score)
    return collector.finish(data)


def _mapping(given: Any, place: str, expected: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise PredictionsError(place, f"expected {expected}, got {given!r:.60}", ADVICE)
    try:
        refuse_repeated(given, expected)
    except ValueError as error:
        raise PredictionsError(place, str(error), ADVICE) from error
    return given


def _is_number(score: Any) -> bool:
    return isinstance(score, Real | np.number) and not isinstance(score, bool | np.bool_)


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
