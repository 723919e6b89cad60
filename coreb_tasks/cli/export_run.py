"""Write the runs of an MTEB prediction file as TREC run files or BEIR results."""

from __future__ import annotations

import argparse
from pathlib import Path

from coreb_tasks.cli.console import fail, warn
from coreb_tasks.data import DataError, PredictionsError, load_subsets
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task

ENDINGS = {"trec": ".trec", "beir": ".json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("predictions", metavar="PREDICTIONS", type=Path, help="TASK_predictions.json of mteb")
    parser.add_argument(
        "out",
        metavar="OUT",
        type=Path,
        help="file to write, compressed if it ends with .gz; of several subsets a folder, with a file for each",
    )
    parser.add_argument("--format", dest="kind", default="trec", choices=list(ENDINGS), help="default: trec")
    parser.add_argument("--task", metavar="TASK", help="the task; default: the one that the file names")
    parser.add_argument("--subset", nargs="+", metavar="NAME", help="only these subsets; default: all of the task")


def run(options: argparse.Namespace) -> int:
    try:
        return _write(options)
    except (UnknownTaskError, DataError, PredictionsError, OSError) as error:
        return fail("export-run", [str(error)])


def _write(options: argparse.Namespace) -> int:
    from coreb_tasks.data.predictions import read_predictions
    from coreb_tasks.interop.runs import of_predictions, task_of, write_beir, write_trec

    if options.out.exists():
        raise FileExistsError(f"{options.out} exists; name a new file")
    predictions = read_predictions(options.predictions)
    task = find_task(options.task or task_of(options.predictions, predictions))
    data = load_subsets(task, find_subsets(task, options.subset))
    read = of_predictions(options.predictions, predictions, task, data)
    for warning in read.warnings:
        warn("export-run", warning)
    for subset, run in read.runs.items():
        file = options.out
        if len(read.runs) > 1:
            file /= f"{subset}{ENDINGS[options.kind]}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if options.kind == "beir":
            write_beir(file, run, data[subset])
        else:
            write_trec(file, run, data[subset], tag=predictions.header.model or file.stem)
        print(file)
    return 0
