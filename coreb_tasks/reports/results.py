"""Result files as mteb writes them: where they lie and what they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

METADATA = "model_meta.json"


class ResultFileError(ValueError):
    """A file that should be a result of mteb and is not. Says which and why."""


class Place(NamedTuple):
    """What the folder of a result says, as it is spelled there: ``model/revision[/experiments/experiment]``."""

    model: str
    revision: str
    experiment: str | None


@dataclass(frozen=True)
class Result:
    """One result file. ``scores`` holds mteb's keys of each subset of each split, those of slices included."""

    file: Path
    task: str
    dataset_revision: Any
    scores: dict[str, list[dict[str, Any]]]


def result_files(folder: Path) -> list[Path]:
    """The files below a folder that should be results: all JSON but model metadata and predictions."""
    if folder.is_file():
        return [folder]
    files = sorted(folder.rglob("*.json"))
    return [file for file in files if file.name != METADATA and not file.name.endswith("_predictions.json")]


def read_json(file: Path) -> Any:
    """What a file holds. Raises ResultFileError where it is no JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultFileError(f"{file}: cannot be read ({error})") from error


def read_result(file: Path) -> Result:
    """A result file, of whichever task.

    Raises:
        ResultFileError: the file is no result of mteb.
    """
    content = read_json(file)
    try:
        scores = {split: [_named(values) for values in subsets] for split, subsets in content["scores"].items()}
        result = Result(file, _expect(str, content["task_name"]), content.get("dataset_revision"), scores)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultFileError(f"{file}: not a result file of mteb ({type(error).__name__}: {error})") from error
    if not any(scores.values()):
        raise ResultFileError(f"{file}: cannot be read (it holds no scores)")
    return result


def place(file: Path) -> Place:
    """What mteb's folders say of a result file."""
    folder, experiment = file.resolve().parent, None
    if folder.parent.name == "experiments":
        folder, experiment = folder.parent.parent, folder.name
    return Place(folder.parent.name, folder.name, experiment)


def _named(values: Any) -> dict[str, Any]:
    scores: dict[str, Any] = _expect(dict, values)
    _expect(str, scores["hf_subset"])
    return scores


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
