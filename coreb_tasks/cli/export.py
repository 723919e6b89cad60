"""Write a task's data for BEIR, for TREC's tools, or in mteb's hub layout."""

from __future__ import annotations

import argparse
from pathlib import Path

from coreb_tasks.cli.console import fail, track
from coreb_tasks.data import DataError
from coreb_tasks.facts import SPLIT
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="name of a retrieval task")
    parser.add_argument("out", metavar="OUT", type=Path, help="folder to write to, new or empty")
    parser.add_argument("--format", dest="kind", required=True, choices=["beir", "trec", "mteb"])
    parser.add_argument("--split", default=SPLIT, choices=[SPLIT], help="every task has this one split")
    parser.add_argument("--subset", nargs="+", metavar="NAME", help="only these subsets; default: all of the task")


def run(options: argparse.Namespace) -> int:
    try:
        task = find_task(options.task)
        subsets = find_subsets(task, options.subset)
    except UnknownTaskError as error:
        return fail("export", [str(error)])
    from coreb_tasks.interop.exports import INFO, export

    try:
        export(task, options.kind, options.out, subsets, progress=track)
    except (DataError, OSError) as error:
        return fail("export", [str(error), f"nothing was written to {options.out}"])
    print(options.out / INFO)
    return 0
