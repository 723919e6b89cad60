"""The tables of a report. Values stay as they are in the result files; ``shown`` is their form for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coreb_tasks.facts import MAIN_SCORE, OVERALLS, SPLIT, TASKS
from coreb_tasks.reports.scores import Run, Scores, run_names
from coreb_tasks.reports.sections import LANGUAGES, Section

Cell = str | int | float | None
Kind = Literal["text", "count", "score", "difference"]


@dataclass(frozen=True)
class Column:
    """A column of a table. The benchmark is ranked by the one that is its headline."""

    name: str
    kind: Kind = "score"
    headline: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} (headline)" if self.headline else self.name


@dataclass(frozen=True)
class Row:
    """A row of a table: None in ``cells`` is a score that is not there."""

    run: Run
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table for people and programs.

    Attributes:
        name: for programs; no two tables of a benchmark share it.
        title: for people.
        note: what the figures are.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def text(self, missing: str) -> list[list[str]]:
        """The cells as people read them."""
        kinds = [column.kind for column in self.columns]
        return [
            [shown(cell, kind, row.run.digits, missing) for cell, kind in zip(row.cells, kinds, strict=True)]
            for row in self.rows
        ]


MODEL, SOURCE = Column("model", "text"), Column("scores", "text")
OWN, PUBLISHED = "own", "published"
DETAILS = (
    Column("queries", "count"),
    Column("nDCG@10"),
    Column("Recall@10"),
    Column("MRR@10"),
    Column("intrusion"),
)
_DETAIL_KEYS = ("n_queries", MAIN_SCORE, "recall_at_10", "mrr_at_10", "hard_negative_intrusion_at_10")


def shown(value: Cell, kind: Kind, digits: int, missing: str) -> str:
    """A cell as people read it: counts with thousands separators, scores with the digits they are stated with."""
    if value is None:
        return missing
    if isinstance(value, str):
        return value
    return (
        f"{value:,}" if kind == "count" else f"{value:+.{digits}f}" if kind == "difference" else f"{value:.{digits}f}"
    )


def details(found: Sequence[Scores], *, slices: bool) -> Table:
    """A row for each subset of each result file, and with ``slices`` one for each of its slices."""
    names = run_names(dict.fromkeys(scores.run for scores in found))

    def rows() -> Iterator[Row]:
        for scores in found:
            head = (names[scores.run], scores.task, SPLIT, scores.subset)
            parts = dict.fromkeys(key.rpartition("/")[0] for key in scores.values if "/" in key) if slices else ()
            for part in ("", *parts):
                values = (scores.values.get(f"{part}/{key}" if part else key) for key in _DETAIL_KEYS)
                yield Row(scores.run, (*head, *([part] if slices else []), *values))

    heads = ["model", "task", "split", "subset", *(["slice"] if slices else [])]
    ordered = sorted(rows(), key=lambda row: tuple(map(str, row.cells[: len(heads)])))
    columns = (*(Column(head, "text") for head in heads), *DETAILS)
    return Table(
        "details", "Result files", "Each subset of each result file, as it stands there.", columns, tuple(ordered)
    )


def tables(section: Section) -> list[Table]:
    """The tables of a benchmark that there are scores for."""
    made = [
        leaderboard(section, MAIN_SCORE, "nDCG@10"),
        leaderboard(section, "recall_at_10", "Recall@10"),
        subtasks(section),
        subtasks_by_language(section),
        by_language(section),
        intrusion(section),
        reranking(section),
    ]
    return [table for table in made if table.rows]


def leaderboard(section: Section, metric: str, title: str) -> Table:
    """A row for each run: its score on each task (or subset, where a task has several), and both means."""
    columns = [Column(task if len(TASKS[task].subsets) == 1 else subset) for task, subset in section.main_parts] + [
        Column(kind, headline=kind == section.suite.headline) for kind in ("macro", "micro")
    ]

    def cells(run: Run) -> Iterator[list[Cell]]:
        scores = [section.value(run, part, metric) for part in section.main_parts]
        yield [*scores, *(section.mean(run, column.name, metric) for column in columns[-2:])]

    means = "macro: mean over tasks, of each of which it is the mean over subsets; micro: mean over all queries."
    kinds = {name: "micro" if facts.weighted else "macro" for name, facts in OVERALLS.items()}
    stored = [
        f"mteb's task {name} is the {kinds[name]} mean."
        for name in kinds
        if OVERALLS[name].parts == section.suite.tasks
    ]
    note = " ".join([f"{title}.", means, *stored])
    return _table(section, f"leaderboard_{metric}", f"Leaderboard, {title}", note, columns, cells)


def subtasks(section: Section) -> Table:
    """A row for each run: the mean over all queries of each subtask."""
    groups = list(dict.fromkeys(name for run in section.held for name in section.subtasks[run]))

    def cells(run: Run) -> Iterator[list[Cell]]:
        yield [section.subtask_score(run, group, MAIN_SCORE) for group in groups]

    note = "nDCG@10 over all queries of a subtask, whatever their language."
    return _table(section, "subtasks", "Subtasks", note, [Column(group) for group in groups], cells)


def subtasks_by_language(section: Section) -> Table:
    """A row for each subtask of a run: its score in each language."""
    languages = [language for language in LANGUAGES if any(
        language in found for run in section.held for found in section.subtasks[run].values()
    )]  # fmt: skip

    def cells(run: Run) -> Iterator[list[Cell]]:
        for subtask, found in section.subtasks[run].items():
            yield [subtask, *(found.get(language, {}).get(MAIN_SCORE) for language in languages)]

    columns = [Column("subtask", "text"), *map(Column, languages)]
    note = "nDCG@10 over the queries of a subtask in one language of code; any: in none."
    return _table(section, "subtasks_by_language", "Subtasks by language", note, columns, cells)


def by_language(section: Section) -> Table:
    """A row for each main task of a run: its score over the queries of each language."""
    keys = {language: f"language={language}/{MAIN_SCORE}" for language in LANGUAGES}
    held = [values for parts in section.held.values() for part, values in parts.items() if part in section.main_parts]
    keys = {language: key for language, key in keys.items() if any(key in values for values in held)}

    def cells(run: Run) -> Iterator[list[Cell]]:
        for part in section.main_parts:
            yield [part[0], *(section.value(run, part, key) for key in keys.values())]

    columns = [Column("task", "text"), *map(Column, keys)]
    note = (
        "nDCG@10 over the queries of one language: that of the query's code, else the one it asks for; none: neither."
    )
    return _table(section, "languages", "Languages", note, columns, cells)


def intrusion(section: Section) -> Table:
    """A row for each subset of a retrieval task of a run, where the benchmark has hard negatives."""
    columns = [
        Column("task", "text"),
        Column("subset", "text"),
        Column("intrusion@10"),
        Column("n", "count"),
        Column("queries", "count"),
    ]

    def cells(run: Run) -> Iterator[list[Cell]]:
        for task, subset in _parts(section, reranking=False) if section.suite.benchmark.relevance_level > 1 else ():
            keys = ("hard_negative_intrusion_at_10", "hard_negative_intrusion_n", "n_queries")
            rate, n, queries = (section.value(run, (task, subset), key) for key in keys)
            if n is not None:
                yield [task, subset, rate, n, queries]

    note = (
        "Of the n queries with a relevant document and a hard negative in the top 10, the share whose best hard "
        "negative ranks above the best relevant document. Lower is better; no rate over no query."
    )
    return _table(section, "intrusion", "Hard-negative intrusion", note, columns, cells)


def reranking(section: Section) -> Table:
    """A row for each subset of a reranking task of a run: what the first stage and the reranker scored."""
    keys = {
        Column("first stage", "text"): "first_stage_model",
        Column("depth", "count"): "first_stage_depth",
        Column("first nDCG@10"): f"first_stage/{MAIN_SCORE}",
        Column("reranked nDCG@10"): MAIN_SCORE,
        Column("difference", "difference"): f"rerank_delta/{MAIN_SCORE}",
        Column("ceiling"): f"pool_ceiling/{MAIN_SCORE}",
    }

    def cells(run: Run) -> Iterator[list[Cell]]:
        for task, subset in _parts(section, reranking=True):
            if (task, subset) in section.held[run]:
                yield [task, subset, *(section.value(run, (task, subset), key) for key in keys.values())]

    note = (
        "The first stage finds the candidates, the model sorts them. Ceiling: what a perfect reranker would reach on "
        "the same candidates. Differences are comparable only between rows of one first stage."
    )
    columns = [Column("task", "text"), Column("subset", "text"), *keys]
    return _table(section, "reranking", "Reranking", note, columns, cells)


def _parts(section: Section, *, reranking: bool) -> list[tuple[str, str]]:
    tasks = [task for task in section.tasks if (task.reranks is not None) == reranking]
    return [(task.name, subset) for task in tasks for subset in task.subsets]


def _table(
    section: Section,
    name: str,
    title: str,
    note: str,
    columns: Iterable[Column],
    cells: Callable[[Run], Iterator[list[Cell]]],
) -> Table:
    """A table with the rows that hold a figure, the best by the headline first; else in the order of the runs.

    Where papers' scores stand beside one's own, a column says whose a row is.
    """
    marked = any(run.source is not None for run in section.held)
    columns = tuple(columns)
    rows = [
        Row(run, (section.names[run], *([PUBLISHED if run.source else OWN] if marked else []), *values))
        for run in section.held
        for values in cells(run)
        if any(cell is not None for cell, column in zip(values, columns, strict=True) if column.kind != "text")
    ]
    columns = (MODEL, *([SOURCE] if marked else []), *columns)
    sources = dict.fromkeys(run.source for run in section.held if run.source)
    if sources:
        note = f"{note} Published: {', '.join(sources)}."
    headline = next((position for position, column in enumerate(columns) if column.headline), None)
    if headline is not None:
        rows.sort(key=lambda row: _descending(row.cells[headline]))
    return Table(name, title, note, columns, tuple(rows))


def _descending(value: Any) -> float:
    return math.inf if value is None or math.isnan(value) else -value
