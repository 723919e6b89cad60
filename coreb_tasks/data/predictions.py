"""Prediction files: runs in mteb's format, with a header that says which model and which data they are of."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from numbers import Real
from pathlib import Path
from typing import Any

from coreb_tasks.data.errors import PredictionsError
from coreb_tasks.data.retrieval import RetrievalData

Run = Mapping[str, Mapping[str, float]]
TOO_LARGE = 2.0**128 - 2.0**103  # in single precision, in which scores are compared, this is infinite
MODEL, DATA = "mteb_model_meta", "coreb_tasks"  # the keys of mteb's header and of ours, beside the subsets


@dataclass(frozen=True)
class Header:
    """Whose predictions a file holds, and of which data.

    Attributes:
        model, revision: as in mteb's ``ModelMeta``.
        experiment: mteb's name of the settings that the model ran with, or None.
        task: the task; None where the file does not say it.
        data_hash: sha256 of the data version of each subset that the file says it of.
        run_hash: sha256 of the run of each subset that the file says it of (candidates that are kept).
    """

    model: str | None
    revision: str | None
    experiment: str | None = None
    task: str | None = None
    data_hash: Mapping[str, str] = field(default_factory=dict)
    run_hash: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_by(self) -> str:
        """The model as errors name it."""
        return f"{self.model} ({', '.join(filter(None, [self.revision or 'no revision', self.experiment]))})"


@dataclass(frozen=True)
class Predictions:
    """A prediction file. ``runs``: subset -> split -> run (query id -> document id -> score)."""

    header: Header
    runs: dict[str, dict[str, dict[str, dict[str, float]]]]

    def run(self, subset: str, split: str, place: str) -> dict[str, dict[str, float]]:
        """The run of a subset. Raises PredictionsError where the file has none."""
        run = self.runs.get(subset, {}).get(split)
        if run is None:
            held = [f"{name}/{held}" for name, splits in self.runs.items() for held in splits]
            raise PredictionsError(
                place, f"no predictions for subset {subset}, split {split}; it holds {', '.join(held)}"
            )
        return run


def file_name(task: str) -> str:
    """mteb's name of a task's prediction file."""
    return f"{task}_predictions.json"


def read_predictions(file: Path) -> Predictions:
    """Read a prediction file of mteb, with or without our part of the header.

    Raises:
        PredictionsError: it is none, or names a query or a document twice.
    """
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PredictionsError(str(file), f"cannot be read as predictions of mteb ({error})") from error
    return parse_predictions(content, str(file))


def parse_json(text: str | bytes) -> Any:
    """JSON in which ``refuse_repeated`` finds the keys that stand twice. Raises ValueError and RecursionError."""
    return json.loads(text, object_pairs_hook=_object)


def parse_predictions(content: Any, place: str) -> Predictions:
    """Predictions from the parsed JSON of a file. Raises PredictionsError as ``read_predictions``."""
    try:
        model, ours = content[MODEL], content.get(DATA) or {}
        known = {key: ours[key] for key in ("experiment", "task", "data_hash", "run_hash") if key in ours}
        header = Header(model["model_name"], model["revision"], **known)
        refuse_repeated(content, "a subset")
        subsets = {subset: splits for subset, splits in content.items() if subset not in (MODEL, DATA)}
        for subset, splits in subsets.items():
            refuse_repeated(splits, f"subset {subset}: a split")
        runs = {
            subset: {split: _run(run, f"subset {subset}, split {split}") for split, run in splits.items()}
            for subset, splits in subsets.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PredictionsError(
            place,
            f"not a prediction file of mteb ({type(error).__name__}: {error})",
            f"Expected {MODEL} with model_name and revision, and subset -> split -> query -> document -> score.",
        ) from error
    return Predictions(header, runs)


def read_header(file: Path) -> Header:
    """The header of a prediction file. Raises PredictionsError as ``read_predictions``."""
    return read_predictions(file).header


def check_same(file: Path, expected: Header, found: Header) -> None:
    """Refuse a file whose header is of another model or data. Raises PredictionsError that names both."""
    if (expected.model, expected.revision, expected.experiment) != (found.model, found.revision, found.experiment):
        raise PredictionsError(
            str(file), f"holds predictions of {found.run_by}, expected {expected.run_by}", "Use another folder."
        )
    for subset in expected.data_hash:
        check_data(file, found, subset, [str(expected.task)], expected.data_hash[subset])


def check_data(file: Path, found: Header, subset: str, tasks: Sequence[str], data_hash: str) -> None:
    """Refuse predictions that say that they are of another task, release or version of the data.

    Args:
        tasks: the names that the task may have.
        data_hash: of the data of the subset.

    Raises:
        PredictionsError: names both.
    """
    there = found.data_hash.get(subset, data_hash)
    if found.task in (None, *tasks) and there == data_hash:
        return
    held, expected = f"predictions for {found.task}", tasks[0]
    if there != data_hash:
        held, expected = f"{held} on data with hash {there[:12]}", f"{expected} on data with hash {data_hash[:12]}"
    raise PredictionsError(
        str(file),
        f"holds {held}, expected {expected} (subset {subset})",
        f"Run {tasks[0]} with --prediction-folder, in another folder or after removing this file.",
    )


def is_number(score: Any) -> bool:
    """Whether a score is a number, of Python or of numpy."""
    return isinstance(score, Real) and not isinstance(score, bool)


def hash_of(run: Mapping[str, Any]) -> str:
    """sha256 of a run, or of several by subset."""
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()


def write_predictions(file: Path, header: Header, subset: str, split: str, run: Run) -> None:
    """Add the run of one subset to a prediction file, whose other subsets stay.

    Raises:
        PredictionsError: the file that is there is of another model or other data.
    """
    runs: dict[str, dict[str, Any]] = {}
    data_hash, run_hash = dict(header.data_hash), dict(header.run_hash)
    if file.exists():
        there = read_predictions(file)
        check_same(file, header, there.header)
        runs = dict(there.runs)
        data_hash, run_hash = {**there.header.data_hash, **data_hash}, {**there.header.run_hash, **run_hash}
    runs[subset] = {**runs.get(subset, {}), split: run}
    ours = {
        "task": header.task,
        "experiment": header.experiment,
        "data_hash": data_hash,
        "run_hash": run_hash,
    }
    content = {MODEL: {"model_name": header.model, "revision": header.revision}, DATA: ours, **runs}
    file.parent.mkdir(parents=True, exist_ok=True)
    # Another process, or one that is stopped meanwhile, finds the old file or the new one whole.
    written = file.with_name(f"{file.name}.{os.getpid()}")
    written.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    written.replace(file)


def check_run(run: Run, data: RetrievalData, place: str) -> None:
    """Refuse a run that cannot be of the data. Raises PredictionsError that names query and document."""
    unknown = run.keys() - data.queries.keys()
    if unknown:
        raise PredictionsError(place, f"query {min(unknown)!r} ({len(unknown)} in all) is not among the task's queries")
    for query, scores in run.items():
        for document, score in scores.items():
            if document not in data.corpus:
                raise PredictionsError(place, f"candidate {document!r} of query {query!r} is not in the corpus")
            if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < TOO_LARGE:
                raise PredictionsError(
                    place,
                    f"the score of query {query!r} and document {document!r} is {score!r}, "
                    "expected a number that is finite in single precision",
                )


def _run(run: Any, place: str) -> dict[str, dict[str, float]]:
    refuse_repeated(run, f"{place}: a query")
    for query, scores in run.items():
        refuse_repeated(scores, f"{place}, query {query!r}: a document")
    return {query: dict(scores.items()) for query, scores in run.items()}


class _WithRepeatedKey(dict[str, Any]):
    """A JSON object that has a key twice, of which a plain dict would keep the last value without a word."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _WithRepeatedKey(found)
    repeated["repeated"] = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeated


def refuse_repeated(found: Any, what: str) -> None:
    """Refuse what ``parse_json`` read from an object that has a key twice. Raises ValueError that names the key."""
    if isinstance(found, _WithRepeatedKey):
        raise ValueError(f"{what} stands twice: {found['repeated']!r}")
