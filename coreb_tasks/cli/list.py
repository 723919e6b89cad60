"""List the tasks."""

from __future__ import annotations

import argparse

from coreb_tasks.cli.console import print_table
from coreb_tasks.facts import OVERALLS, TASKS
from coreb_tasks.task_metadata import sizes

COLUMNS = ["task", "subsets", "documents", "queries", "relevant", "data"]
NUMBERS = range(2, 5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="as the table of docs/tasks.md")


def run(options: argparse.Namespace) -> int:
    if options.markdown:
        print("\n".join(markdown()))
    else:
        print_table(COLUMNS, table(), numbers=NUMBERS)
    return 0


def table() -> list[list[str]]:
    """A row for each task. Sizes that papers state, as the data could not be read, say so."""
    rows = []
    for task in TASKS.values():
        size = sizes(task.name)
        stated = "" if size.stated_in is None else f"; sizes as stated in {size.stated_in}"
        subsets = "" if list(task.subsets) == ["default"] else ", ".join(task.subsets)
        data = f"{task.path} ({task.release}){stated}"
        rows.append([task.name, subsets, *(f"{count:,}" for count in size[:3]), data])
    rows += [[overall.name, "", "", "", "", overall.description] for overall in OVERALLS.values()]
    return rows


def markdown() -> list[str]:
    """The lines of the table in Markdown."""
    rules = ["---:" if position in NUMBERS else "---" for position in range(len(COLUMNS))]
    lines = [COLUMNS, rules, *([f"`{name}`", *cells] for name, *cells in table())]
    return [f"| {' | '.join(line)} |" for line in lines]
