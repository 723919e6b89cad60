"""Print the scores of MTEB result files as a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreb_tasks.cli.console import fail, print_table
from coreb_tasks.cli.results import METADATA, ResultFileError, place, read_json, read_result, result_files
from coreb_tasks.cli.scores import SHOWN, cells, parts


@dataclass(frozen=True)
class Scores:
    """One subset of one result file. ``values`` holds mteb's keys, those of slices included."""

    model: str
    run: str  # what tells runs of one model apart: its revision, and the experiment folder where there is one
    task: str
    split: str
    subset: str
    values: dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder with MTEB results (mteb run's --output-folder), or one file")
    parser.add_argument("--slices", action="store_true", help="also a row for each subtask and language")


def run(options: argparse.Namespace) -> int:
    if not options.folder.exists():
        return fail(
            "report", [f"{options.folder}: no such folder or file; expected the folder that mteb wrote results to"]
        )
    found: list[Scores] = []
    faults = []
    for file in result_files(options.folder):
        try:
            found += read_scores(file)
        except ResultFileError as error:
            faults.append(str(error))
    if found:
        runs = {scores.model: len({other.run for other in found if other.model == scores.model}) for scores in found}
        rows = [
            row for scores in found for row in _rows(scores, slices=options.slices, name_run=runs[scores.model] > 1)
        ]
        columns = ["model", "task", "split", "subset", *(["slice"] if options.slices else []), *SHOWN]
        print_table(columns, sorted(rows), numbers=range(len(columns) - len(SHOWN), len(columns)))
    elif not faults:
        faults.append(f"{options.folder}: no MTEB result files (TASK.json) in it")
    return fail("report", faults) if faults else 0


def read_scores(file: Path) -> list[Scores]:
    """The scores of a result file, for each split and subset.

    Raises:
        ResultFileError: the file is no result of mteb.
    """
    result = read_result(file)
    model, run = _model(file)
    for key, value in (item for subsets in result.scores.values() for values in subsets for item in values.items()):
        if value is not None and key.rpartition("/")[2] in SHOWN.values() and not isinstance(value, int | float):
            raise ResultFileError(f"{file}: not a result file of mteb ({key} is {value!r}, expected a number)")
    return [
        Scores(model, run, result.task, split, values["hf_subset"], values)
        for split, subsets in result.scores.items()
        for values in subsets
    ]


def _model(file: Path) -> tuple[str, str]:
    """Name of the model and of the run, from mteb's folders.

    The metadata beside the result, where there are any, name the model in its own spelling.
    """
    model, *run = place(file)
    metadata = file.parent / METADATA
    try:
        name = str(read_json(metadata)["name"]) if metadata.exists() else model.replace("__", "/")
    except (KeyError, TypeError) as error:
        raise ResultFileError(f"{metadata}: not the model metadata that mteb writes ({error})") from error
    return name, ", ".join(part for part in run if part is not None)


def _rows(scores: Scores, *, slices: bool, name_run: bool) -> Iterator[list[str]]:
    head = [f"{scores.model} ({scores.run})" if name_run else scores.model, scores.task, scores.split, scores.subset]
    yield [*head, *([""] if slices else []), *cells(scores.values)]
    if slices:
        for part in parts(scores.values):
            yield [*head, part, *cells(scores.values, part)]
