"""List the tasks."""

from __future__ import annotations

import argparse

from coreb_tasks.cli.console import print_table
from coreb_tasks.facts import TASKS
from coreb_tasks.task_metadata import pins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> int:
    rows = []
    for task in TASKS.values():
        counts = pins(task.path, task.release)
        sizes = [f"{counts[config].rows:,}" for config in task.layout.configs]
        rows.append([task.name, task.benchmark.title, *sizes, f"{task.path} ({task.release})"])
    print_table(["task", "benchmark", "documents", "queries", "judgments", "data"], rows, numbers=range(2, 5))
    return 0
