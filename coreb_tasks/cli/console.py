"""Tables on the terminal."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
_NARROWEST = 12  # letters of a column of text, where a terminal has no room for more


def fail(subcommand: str, faults: Iterable[str]) -> int:
    """Print a line for each fault on stderr; returns the exit code 1."""
    for fault in faults:
        print(f"coreb-tasks {subcommand}: {_printable(fault)}", file=sys.stderr)
    return 1


def warn(subcommand: str, warning: str) -> None:
    """Print a warning on stderr."""
    print(f"coreb-tasks {subcommand}: warning: {_printable(warning)}", file=sys.stderr)


def track(rows: Iterable[T], what: str) -> Iterable[T]:
    """Rows, with a progress bar on stderr while they are worked through, where that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(rows, what, console=console, transient=True, disable=not console.is_terminal)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """Print a table; ``numbers`` are the positions of right-aligned columns. A pipe gets it in full width."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    cells = [[_printable(cell) for cell in row] for row in rows]
    for position, column in enumerate(columns):
        longest = max((len(row[position]) for row in cells), default=0)
        number = position in numbers  # of which a part would be another number
        table.add_column(
            column,
            justify="right" if number else "left",
            overflow="fold",
            min_width=longest if number else min(longest, _NARROWEST),
        )
    for row in cells:
        table.add_row(*map(Text, row))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    Console(width=width).print(table, crop=False)


def one_line(text: str, length: int = 100) -> str:
    """A text on one line that is safe to print: white space shortened, what a terminal would act on as an escape."""
    start = re.sub(r"[ \t]+", " ", text.strip())[: length + 1]
    shown = _printable(start)
    return shown if len(shown) <= length else f"{shown[: length - 3]}..."


def _printable(text: str) -> str:
    """With what a terminal would act on as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
