"""The runs of one or several tasks that ``compare`` and ``fuse`` take."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreb_tasks.interop.systems import System


def add_runs(parser: argparse.ArgumentParser) -> None:
    """The arguments that name runs, their task and its subsets."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        type=Path,
        help="two or more: MTEB's prediction file or a folder of them; with --task any run file that `score` takes",
    )
    parser.add_argument("--task", metavar="TASK", help="the task; default: what the files are of")
    parser.add_argument("--subset", nargs="+", metavar="NAME", help="only these subsets; default: all of the task")


def too_few(runs: Sequence[Path]) -> list[str]:
    """The fault of naming a single run."""
    return [] if len(runs) > 1 else ["one RUN was given, expected two or more"]


def in_common(systems: Sequence[System]) -> list[str]:
    """The tasks that all systems have a run of, in the order of the first."""
    return [name for name in systems[0].readers if all(name in system.readers for system in systems)]
