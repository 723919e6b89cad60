"""List the tasks, or the models that this package adds to mteb's."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence

from coreb_tasks.cli.console import print_table
from coreb_tasks.facts import OVERALLS, TASKS
from coreb_tasks.facts.models import MODELS
from coreb_tasks.task_metadata import sizes

COLUMNS = ["task", "subsets", "documents", "queries", "relevant", "data"]
NUMBERS = range(2, 5)
MODEL_COLUMNS = ["model", "kind", "revision", "tokens", "dimensions", "licence", "trained from", "remote code"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", action="store_true", help="the models instead of the tasks")
    parser.add_argument("--markdown", action="store_true", help="as the table of docs/tasks.md or docs/models.md")


def run(options: argparse.Namespace) -> int:
    columns, rows, numbers = (MODEL_COLUMNS, models(), []) if options.models else (COLUMNS, table(), NUMBERS)
    if options.markdown:
        print("\n".join(markdown(columns, rows, numbers)))
    else:
        print_table(columns, rows, numbers=numbers)
    return 0


def table() -> list[list[str]]:
    """A row for each task. Sizes that papers state, as the data could not be read, say so."""
    rows = []
    for task in TASKS.values():
        size = sizes(task.retrieval)
        stated = "" if size.stated_in is None else f"; sizes as stated in {size.stated_in}"
        subsets = "" if list(task.subsets) == ["default"] else ", ".join(task.subsets)
        data = f"{task.path} ({task.release}){stated}"
        rows.append([task.name, subsets, *(f"{count:,}" for count in size[:3]), data])
    rows += [[overall.name, "", "", "", "", overall.description] for overall in OVERALLS.values()]
    return rows


def models() -> list[list[str]]:
    """A row for each model; a cell is empty where it is not known."""
    return [
        [
            model.name,
            model.kind,
            (model.revision or "")[:8],
            f"{model.max_tokens:,}" if model.max_tokens else "",
            ", ".join(map(str, model.dims)),
            model.license or "",
            model.base or "",
            "yes" if model.trust_remote_code else "",
        ]
        for model in MODELS.values()
    ]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]) -> list[str]:
    """The lines of the table in Markdown."""
    rules = ["---:" if position in numbers else "---" for position in range(len(columns))]
    lines = [columns, rules, *([f"`{name}`", *cells] for name, *cells in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]
