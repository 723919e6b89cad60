"""Write what a pull request to mteb needs: data sets, task modules, statistics, benchmarks."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from coreb_tasks.cli.console import fail
from coreb_tasks.data import DataError
from coreb_tasks.facts import SUITES
from coreb_tasks.facts.find import UnknownTaskError, find_task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", type=Path, help="folder to write to, new or empty")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="task names; default: the tasks of every benchmark")
    parser.add_argument("--namespace", default="mteb", help="owner of the data sets on the hub; default: mteb")


def run(options: argparse.Namespace) -> int:
    faults = _faults(options)
    if faults:
        return fail("upstream", faults)
    from coreb_tasks.upstream import write

    names = options.tasks or [task for suite in SUITES.values() for task in suite.tasks]
    try:
        write(options.out, list(dict.fromkeys(names)), options.namespace, progress=_say)
    except (DataError, OSError) as error:
        return fail("upstream", [str(error), f"nothing was written to {options.out}"])
    print(options.out / "README.md")
    return 0


def _faults(options: argparse.Namespace) -> list[str]:
    faults = []
    for name in options.tasks:
        try:
            find_task(name)
        except UnknownTaskError as error:
            faults.append(str(error))
    if not re.fullmatch(r"\w[\w.-]*", options.namespace, re.ASCII):
        faults.append(f"--namespace {options.namespace!r} is no name of a user or an organisation on the hub")
    if options.out.is_dir() and any(options.out.iterdir()):
        faults.append(f"{options.out} is not empty; expected a new or an empty folder")
    elif options.out.exists() and not options.out.is_dir():
        faults.append(f"{options.out} is a file; expected a new or an empty folder")
    return faults


def _say(line: str) -> None:
    print(f"coreb-tasks upstream: {line}", file=sys.stderr)
