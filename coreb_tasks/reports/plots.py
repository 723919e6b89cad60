"""The plots of a report, as SVG with text kept as text. What is drawn is what the tables of the same benchmark hold."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import cycle, islice, product
from typing import TYPE_CHECKING, Any

from coreb_tasks.facts import MAIN_SCORE, TASKS
from coreb_tasks.reports.scores import Run
from coreb_tasks.reports.sections import Section
from coreb_tasks.reports.tables import Table, by_language, intrusion, reranking, shown, subtasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CUT_OFFS = (1, 5, 10)
PUBLISHED = "†"
# Okabe and Ito's colours that can be told apart by everybody, without black and yellow, which one of the themes hides.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STYLES = ("-", "--", ":", "-.")
_INK = "#010203"  # stands for the text colour of the page, which the theme decides
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "coreb-tasks",
    "text.parse_math": False,  # names of models are no formulas
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    "legend.frameon": False,
}
_LONGEST = 50  # letters of a name
_ROW, _PANEL, _LETTER = 0.24, 2.1, 0.068  # inches: a row of bars or cells, the width of a panel, of a letter

Values = dict[str, float | None]  # by row
Lines = dict[str, list[tuple[float, float]]]  # points by the line's name


@dataclass(frozen=True)
class Plot:
    """A plot, or what it would need to be drawn.

    Attributes:
        name: for programs; no two plots of a benchmark share it.
        note: what it shows; without ``svg`` what is missing.
    """

    name: str
    title: str
    note: str
    svg: str | None = None


def plots(section: Section) -> list[Plot]:
    """Every plot of a benchmark."""
    drawers = (difficulty, language_map, subtask_bars, intrusion_bars, reranking_bars, parameters, dimensions)
    return [draw(section) for draw in drawers]


def difficulty(section: Section) -> Plot:
    panels = {
        _part_title(part): {
            _label(section, run): points
            for run in section.held
            if len(points := _known((k, section.value(run, part, f"ndcg_at_{k}")) for k in CUT_OFFS)) == len(CUT_OFFS)
        }
        for part in section.main_parts
    }
    return _plot(
        section,
        "difficulty",
        "Difficulty of the tasks",
        "nDCG at the cut-offs 1, 5 and 10, of each run.",
        "results of the benchmark's tasks: papers state no scores at 1 and 5",
        lambda: _lines(panels, "cut-off", ticks=CUT_OFFS),
        drawn=any(panels.values()),
    )


def language_map(section: Section) -> Plot:
    table = by_language(section)
    task = _position(table, "task")
    languages = [column.name for column in table.columns[task + 1 :]]
    panels: dict[str, dict[str, Sequence[Any]]] = defaultdict(dict)
    for row in table.rows:
        panels[str(row.cells[task])][_label(section, row.run)] = row.cells[task + 1 :]
    return _plot(
        section,
        "languages",
        "Languages",
        f"{table.note} Empty: no queries, or no score.",
        "results whose queries have a language",
        lambda: _heat_maps(panels, languages),
        drawn=bool(table.rows),
    )


def subtask_bars(section: Section) -> Plot:
    table = subtasks(section)
    first = _position(table, "model") + 1
    panels: dict[str, Values] = {
        column.name: {
            _label(section, row.run): _number(row.cells[position])
            for row in table.rows
            if row.run.source is None or row.cells[position] is not None  # a paper does not state every subtask
        }
        for position, column in enumerate(table.columns)
        if position >= first and column.kind == "score"
    }
    return _plot(
        section,
        "subtasks",
        "Subtasks",
        table.note,
        "results of tasks with subtasks",
        lambda: _bars(panels, "score"),
        drawn=bool(table.rows),
    )


def intrusion_bars(section: Section) -> Plot:
    return _from_rows(section, intrusion(section), "intrusion@10", "results with hard negatives", extra="n")


def reranking_bars(section: Section) -> Plot:
    return _from_rows(section, reranking(section), "difference", "results of reranking tasks")


def parameters(section: Section) -> Plot:
    """The headline against the number of parameters; the front holds what no smaller or equal model beats."""
    headline = section.suite.headline
    means = {run: section.mean(run, headline, MAIN_SCORE) for run in section.held}
    points = [(run, run.parameters, score) for run, score in _known(means.items()) if run.parameters]
    unsized = [_label(section, run) for run, _ in _known(means.items()) if not run.parameters]
    scored = [
        run for run in means if any(section.value(run, part, MAIN_SCORE) is not None for part in section.main_parts)
    ]
    incomplete = [_label(section, run) for run in scored if means[run] is None]
    left_out = f" Left out, as their number of parameters is not known or 0: {', '.join(unsized)}." if unsized else ""
    left_out += (
        f" Left out, as a part of their {headline} mean is missing: {', '.join(incomplete)}." if incomplete else ""
    )
    return _plot(
        section,
        "parameters",
        "Score and size",
        f"nDCG@10 ({headline}) against the number of parameters. The line is the Pareto front: no model of the same "
        f"size or smaller scores more. Named are the models on it, and your own.{left_out}",
        f"a {headline} mean of a model whose number of parameters is known",
        lambda: _scatter(section, points),
        drawn=bool(points),
        otherwise=left_out,
    )


def dimensions(section: Section) -> Plot:
    """The scores of runs that differ only in the dimension of their vectors."""
    curves: dict[tuple[str, str, str], dict[int, Run]] = defaultdict(dict)
    for run in section.held:
        if run.source is None and run.dimension:
            # The plain run comes first, and is the one with all dimensions.
            curves[run.model, run.revision, run.variant].setdefault(run.dimension, run)
    curves = {key: runs for key, runs in curves.items() if len(runs) > 1}

    def lines(score: Callable[[Run], Any]) -> Lines:
        found = {
            f"{model} ({', '.join(filter(None, which))})": _known(
                (size, score(run)) for size, run in sorted(runs.items())
            )
            for (model, *which), runs in curves.items()
        }
        return {name: points for name, points in found.items() if len(points) > 1}

    headline = section.suite.headline
    panels = {_part_title(part): lines(partial(section.score, part)) for part in section.main_parts}
    panels[headline] = lines(lambda run: section.mean(run, headline, MAIN_SCORE))
    ticks = sorted({dimension for runs in curves.values() for dimension in runs})
    return _plot(
        section,
        "dimensions",
        "Dimensions",
        "nDCG@10 of runs of one model that differ in the dimension of their vectors.",
        "runs of one model at several dimensions (mteb.get_model(..., embed_dim=...))",
        lambda: _lines(panels, "dimensions", ticks=ticks, log=True),
        drawn=any(panels.values()),
    )


def pareto_front(points: Iterable[tuple[Any, float, float]]) -> list[tuple[Any, float, float]]:
    """Of (what, size, score) those that score more than all of the same size or smaller, by size."""
    front: list[tuple[Any, float, float]] = []
    for point in sorted(points, key=lambda point: (point[1], -point[2])):
        if not front or point[2] > front[-1][2]:
            front.append(point)
    return front


def _plot(
    section: Section,
    name: str,
    title: str,
    note: str,
    needs: str,
    draw: Callable[[], Figure],
    *,
    drawn: bool,
    otherwise: str = "",
) -> Plot:
    if not drawn:
        return Plot(name, title, f"Not drawn: it needs {needs}.{otherwise}")
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font of the reader has what the one that measures lacks
        svg = _svg(draw(), re.sub(r"\W+", "-", f"{section.suite.name}-{name}"))
    if PUBLISHED in svg:
        note += f" {PUBLISHED}: published."
    label = escape(f"{section.suite.name}: {title}. {note}")
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return Plot(name, title, note, svg)


def _from_rows(section: Section, table: Table, column: str, needs: str, extra: str | None = None) -> Plot:
    """Bars of one column of a table that has a row for each subset of a task of a run."""
    at = {name: _position(table, name) for name in ("task", "subset", column, *([extra] if extra else []))}
    panels: dict[str, Values] = defaultdict(dict)
    notes: dict[tuple[str, str], str] = {}
    for row in table.rows:
        panel = _part_title((str(row.cells[at["task"]]), str(row.cells[at["subset"]])))
        label = _label(section, row.run)
        panels[panel][label] = _number(row.cells[at[column]])
        if extra:
            notes[panel, label] = f" ({extra} = {row.cells[at[extra]]})"
    kind = table.columns[at[column]].kind
    return _plot(
        section, table.name, table.title, table.note, needs, lambda: _bars(panels, kind, notes), drawn=bool(table.rows)
    )


def _bars(panels: Mapping[str, Values], kind: Any, notes: Mapping[tuple[str, str], str] | None = None) -> Figure:
    """Small multiples with a bar for each run. A run that has no value gets a dash in place of a bar."""
    figure, axes = _grid(panels)
    known = [abs(value) for values in panels.values() for value in values.values() if value is not None]
    widest = max(known, default=0) or 1
    for (axis, rows), (title, values) in zip(axes, panels.items(), strict=True):
        for position, row in enumerate(rows):
            value = values.get(row)
            text = shown(value, kind, 3, "–") + (notes or {}).get((title, row), "")
            colour, alpha = _COLOURS[1 if (value or 0) < 0 else 0], 0.5 if row.endswith(PUBLISHED) else 1
            axis.barh(position, value or 0, height=0.7, color=colour, alpha=alpha)
            axis.text(max(value or 0, 0) + widest * 0.03, position, text, va="center", fontsize=8)
        axis.set(title=title, ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)), yticklabels=rows)
        axis.set_xlim(-widest * 1.05 if kind == "difference" else 0, widest * (1.9 if notes else 1.5))
        axis.axvline(0, color=_INK, linewidth=0.8)
        axis.tick_params(axis="y", length=0)
        axis.set_xticks([])
        axis.spines[["left", "bottom"]].set_visible(False)
    return figure


def _heat_maps(panels: Mapping[str, Mapping[str, Sequence[Any]]], columns: Sequence[str]) -> Figure:
    figure, axes = _grid(panels, width=0.5 * len(columns), across=1)
    for (axis, _), (title, values) in zip(axes, panels.items(), strict=True):
        cells = [[math.nan if cell is None else cell for cell in line] for line in values.values()]
        axis.pcolormesh(cells, cmap="cividis", vmin=0, vmax=1)
        for (y, line), (x, _) in product(enumerate(cells), enumerate(columns)):
            dark = line[x] < 0.5
            text, colour = ("–", _INK) if math.isnan(line[x]) else (f"{line[x]:.3f}", "white" if dark else "black")
            axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7.5, color=colour)
        axis.set(title=title, ylim=(len(cells), 0))
        axis.set_xticks([x + 0.5 for x in range(len(columns))], columns)
        axis.set_yticks([y + 0.5 for y in range(len(cells))], list(values))
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    return figure


def _lines(panels: Mapping[str, Lines], what: str, *, ticks: Sequence[int], log: bool = False) -> Figure:
    """Small multiples with a line for each run; a panel without a line is left out."""
    panels = {title: lines for title, lines in panels.items() if lines}
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    styles = dict(zip(names, islice(cycle(product(_STYLES, _COLOURS)), len(names)), strict=True))
    figure, axes = _grid(panels, height=7)
    handles: dict[str, Any] = {}
    top = max((y for lines in panels.values() for points in lines.values() for _, y in points), default=1)
    for position, ((axis, _), (title, lines)) in enumerate(zip(axes, panels.items(), strict=True)):
        for name, points in lines.items():
            style, colour = styles[name]
            drawn = axis.plot(*zip(*points, strict=True), linestyle=style, color=colour, marker="o", markersize=4)
            handles.setdefault(name, drawn[0])
        axis.set(title=title, xlabel=what, ylim=(0, min(1, top * 1.1) or 1))
        if position == 0:
            axis.set_ylabel("nDCG")
        if log:
            axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.grid(color=_INK, alpha=0.15)
    _names_below(figure, handles)
    return figure


def _scatter(section: Section, points: Sequence[tuple[Run, float, float]]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axis = figure.subplots()
    front = pareto_front(points)
    for own, marker, colour in ((False, "o", _COLOURS[0]), (True, "D", _COLOURS[1])):
        some = [(size, score) for run, size, score in points if (run.source is None) == own]
        if some:
            label = "your own" if own else "published"
            sizes, scores = zip(*some, strict=True)
            axis.scatter(sizes, scores, marker=marker, color=colour, s=22, label=label, zorder=3)
    axis.plot([p[1] for p in front], [p[2] for p in front], drawstyle="steps-post", color=_INK, alpha=0.5, linewidth=1)
    # Names beside the points would lie on one another: numbers there, names below.
    named = [point for point in points if point[0].source is None or any(point[0] == best[0] for best in front)]
    numbered: dict[str, Any] = {}
    for number, (run, size, score) in enumerate(sorted(named, key=lambda point: -point[2]), start=1):
        axis.annotate(str(number), (size, score), (4, 4), textcoords="offset points", fontsize=7.5)
        numbered[f"{number}  {_label(section, run)}"] = Line2D([], [], linestyle="none")
    axis.set_xscale("log")
    top = max(point[2] for point in points)
    axis.set(xlabel="parameters", ylabel=f"nDCG@10 ({section.suite.headline})", ylim=(0, min(1, top * 1.15) or 1))
    axis.set_xlim(min(p[1] for p in points) / 3, max(p[1] for p in points) * 3)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size(size)))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(color=_INK, alpha=0.15)
    axis.legend(loc="upper left")
    _names_below(figure, numbered, handlelength=0, handletextpad=0)
    return figure


def _names_below(figure: Figure, handles: Mapping[str, Any], **options: Any) -> None:
    """A legend under the panels, for which the figure grows."""
    figure.legend(handles.values(), handles.keys(), loc="outside lower left", fontsize=8, **options)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.19 * len(handles))


def _size(parameters: float) -> str:
    return f"{parameters / 1e9:g}B" if parameters >= 1e9 else f"{parameters / 1e6:g}M"


def _grid(
    panels: Mapping[str, Collection[str]], *, height: int | None = None, width: float = _PANEL, across: int = 3
) -> tuple[Figure, list[tuple[Axes, list[str]]]]:
    """A figure with a panel for each title, and the rows of each panel, which those side by side share.

    Args:
        panels: names of the rows by title.
        height: of each panel in rows, where these are not its own.
        width: of each panel in inches.
        across: how many stand side by side.
    """
    from matplotlib.figure import Figure

    across = min(across, len(panels))
    names = list(panels.values())
    lines = [names[start : start + across] for start in range(0, len(names), across)]
    rows = [list(dict.fromkeys(name for line_names in line for name in line_names)) for line in lines]
    letters = 0 if height else max(len(name) for line_rows in rows for name in line_rows)
    heights = [(height or len(line_rows)) * _ROW + 0.5 for line_rows in rows]
    figure = Figure(figsize=(across * width + _LETTER * letters + 0.6, sum(heights)), layout="constrained")
    axes = list(figure.subplots(len(rows), across, squeeze=False, sharey="row", height_ratios=heights).flat)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return figure, [(axis, rows[position // across]) for position, axis in enumerate(axes[: len(panels)])]


def _svg(figure: Figure, name: str) -> str:
    """The figure for use within a page: without a head, in the page's text colour, with identifiers of its own."""
    out = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].strip().replace(_INK, "currentColor")
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)  # it would style the whole page
    numbers: dict[str, int] = {}

    def named(reference: re.Match[str]) -> str:
        return f"{reference[1]}{name}-{numbers.setdefault(reference[2], len(numbers))}"

    # Identifiers are hashes of coordinates, of which the last bits differ from time to time. Nothing refers to groups.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r'( id="|href="#|url\(#)([^")]*)', named, tag[0]), svg)


def _label(section: Section, run: Run) -> str:
    name = section.names[run]
    alike = [other for other in section.held if _shortened(section.names[other]) == _shortened(name)]
    return (_shortened(name) if len(alike) == 1 else name) + (f" {PUBLISHED}" if run.source is not None else "")


def _shortened(name: str) -> str:
    """A name that leaves a plot some room: beginning and end."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 :]}"


def _part_title(part: tuple[str, str]) -> str:
    task, subset = part
    return task if len(TASKS[task].subsets) == 1 else f"{task}, {subset}"


def _position(table: Table, column: str) -> int:
    return next(position for position, held in enumerate(table.columns) if held.name == column)


def _known(points: Iterable[tuple[Any, Any]]) -> list[tuple[Any, float]]:
    return [(x, y) for x, y in points if y is not None and math.isfinite(y)]


def _number(cell: Any) -> float | None:
    return cell if isinstance(cell, int | float) and math.isfinite(cell) else None
