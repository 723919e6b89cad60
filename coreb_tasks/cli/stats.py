"""Compute descriptive statistics of tasks, where mteb looks for them, and print their pins."""

from __future__ import annotations

import argparse
import json

from coreb_tasks.cli.console import fail
from coreb_tasks.data import DataError, measure
from coreb_tasks.facts import TASKS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="task names; their data are read from where they lie")


def run(options: argparse.Namespace) -> int:
    unknown = [name for name in options.tasks if name not in TASKS]
    if unknown:
        return fail("stats", [f"unknown tasks {', '.join(unknown)}; `coreb-tasks list` shows the names"])
    import mteb

    for name in options.tasks:
        task = mteb.get_task(name)
        try:
            task.calculate_descriptive_statistics(overwrite_results=True)
            pins = {config: pin._asdict() for config, pin in measure(TASKS[name]).items()}
        except (DataError, OSError) as error:
            return fail("stats", [f"{name}: {error}"])
        print(f"{name}: {task.metadata.descriptive_stat_path}")
        print(json.dumps({TASKS[name].path: {TASKS[name].release: pins}}, indent=2))
    return 0
