"""Tables as text that other programs read. Programs get the exact values, people the shown ones."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coreb_tasks.reports.tables import Cell, Table

_LATEX = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after a line's end it would begin an option of it
}


@dataclass(frozen=True)
class Part:
    """The tables of one benchmark; those of all result files together have no benchmark."""

    benchmark: str
    tables: list[Table]


def markdown(parts: Sequence[Part]) -> str:
    return "\n\n".join(_markdown(part, table) for part, table in _each(parts)) + "\n"


def latex(parts: Sequence[Part]) -> str:
    r"""A ``tabular`` for each table, with the rules of the package booktabs."""
    return "\n\n".join(_latex(part, table) for part, table in _each(parts)) + "\n"


def as_csv(parts: Sequence[Part]) -> str:
    """A row for each figure: the table, the texts of its row, the column and the value; empty where it is missing."""
    texts = list(dict.fromkeys(c.name for _, table in _each(parts) for c in table.columns if c.kind == "text"))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["benchmark", "table", *texts, "column", "value"])
    for part, table in _each(parts):
        for row in table.rows:
            cells = list(zip(table.columns, row.cells, strict=True))
            held = {column.name: cell for column, cell in cells if column.kind == "text"}
            head = [part.benchmark, table.name, *(held.get(text) for text in texts)]
            writer.writerows([*head, column.name, cell] for column, cell in cells if column.kind != "text")
    return out.getvalue()


def as_json(parts: Sequence[Part]) -> str:
    """A list of tables. A missing value is null; one that is not finite is a text, since JSON has none."""
    tables = [
        {
            "benchmark": part.benchmark or None,
            "table": table.name,
            "title": table.title,
            "note": table.note,
            "headline": next((column.name for column in table.columns if column.headline), None),
            "columns": [column.name for column in table.columns],
            "rows": [[_finite(cell) for cell in row.cells] for row in table.rows],
        }
        for part, table in _each(parts)
    ]
    return json.dumps(tables, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Part]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": as_csv,
    "json": as_json,
}


def title(part: Part, table: Table) -> str:
    return f"{part.benchmark}: {table.title}" if part.benchmark else table.title


def _each(parts: Sequence[Part]) -> Iterator[tuple[Part, Table]]:
    return ((part, table) for part in parts for table in part.tables)


def _markdown(part: Part, table: Table) -> str:
    head = [column.title for column in table.columns]
    rule = ["---" if column.kind == "text" else "---:" for column in table.columns]
    lines = [[re.sub(r"([\\|`*_<\[])", r"\\\1", cell) for cell in line] for line in (head, *table.text("–"))]
    lines.insert(1, rule)
    return "\n".join([f"### {title(part, table)}", table.note, "", *(f"| {' | '.join(line)} |" for line in lines)])


def _latex(part: Part, table: Table) -> str:
    spec = "".join("l" if column.kind == "text" else "r" for column in table.columns)

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(char, char) for char in cell) for cell in cells) + r" \\"

    rows = [line(cells) for cells in table.text("--")]
    head = line([column.title for column in table.columns])
    lines = [f"% {title(part, table)}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _finite(cell: Cell) -> Any:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell
