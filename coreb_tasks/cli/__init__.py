"""The command line ``coreb-tasks``. Each subcommand is a module here with ``add_arguments`` and ``run``.

One that sets the default ``mteb_arguments`` gets the arguments there that it does not know.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from coreb_tasks import __version__
from coreb_tasks.cli import check_results, compare, export, export_run, fuse, report, run, score, stats, upstream
from coreb_tasks.cli import list as list_

SUBCOMMANDS: dict[str, ModuleType] = {
    "list": list_,
    "run": run,
    "report": report,
    "score": score,
    "compare": compare,
    "fuse": fuse,
    "export": export,
    "export-run": export_run,
    "check-results": check_results,
    "stats": stats,
    "upstream": upstream,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code."""
    parser = argparse.ArgumentParser(prog="coreb-tasks", description="CoREB, CPRet and 1C-Ebench as MTEB tasks.")
    parser.add_argument("--version", action="version", version=f"coreb-tasks {__version__}")
    subparsers = parser.add_subparsers(dest="subcommand", required=True)
    for name, module in SUBCOMMANDS.items():
        summary = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(subparsers.add_parser(name, help=summary, description=summary))
    options, others = parser.parse_known_args(arguments)
    if "mteb_arguments" in options:
        options.mteb_arguments = others
    elif others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    try:
        code = int(SUBCOMMANDS[options.subcommand].run(options))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough (head); nothing more can be said to them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as the shell says of a program that was stopped so
    return code
