"""Compare runs query by query: paired bootstrap, and the queries that moved most."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreb_tasks.cli.console import fail, one_line, print_table, warn
from coreb_tasks.cli.runs import add_runs, in_common, too_few
from coreb_tasks.data import DataError, PredictionsError, load_subsets
from coreb_tasks.facts import MAIN_SCORE, Task
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task

if TYPE_CHECKING:
    from coreb_tasks.comparison import Move, Pair, Queries, Row
    from coreb_tasks.interop.systems import System

MOVED = 10
COLUMNS = (
    "level",
    "name",
    "subset",
    "slice",
    "mean_over",
    "first",
    "second",
    "queries",
    "score_first",
    "score_second",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "wins",
    "ties",
    "losses",
)


@dataclass
class _Compared:
    """What was read: scores by task and subset, texts of the queries alike, and the models of each run."""

    tasks: dict[str, dict[str, Queries]] = field(default_factory=dict)
    texts: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    models: list[list[str]] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_runs(parser)
    parser.add_argument("--metric", default=MAIN_SCORE, help=f"default: {MAIN_SCORE}")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples; default: 0")
    parser.add_argument("--resamples", type=int, default=10_000, metavar="N", help="default: 10000")
    parser.add_argument("--baseline", action="store_true", help="the first RUN with each other; default: all pairs")
    parser.add_argument("--slices", action="store_true", help="also a row for each subtask and language")
    parser.add_argument(
        "--queries",
        type=int,
        metavar="N",
        help=f"of each task and pair the N queries that moved most, each way; default: {MOVED}",
    )
    parser.add_argument(
        "--format",
        dest="kind",
        default="terminal",
        choices=["terminal", "json", "csv"],
        help="csv has the comparisons, not the queries; default: terminal",
    )


def run(options: argparse.Namespace) -> int:
    from coreb_tasks.interop.systems import find_system

    faults = _faults(options)
    systems: list[System] = []
    try:
        task = find_task(options.task) if options.task else None
        if task is not None:
            find_subsets(task, options.subset)
    except UnknownTaskError as error:
        return fail("compare", [*faults, str(error)])
    for place in options.runs:
        try:
            systems.append(find_system(place, task))
        except (UnknownTaskError, PredictionsError) as error:
            faults.append(f"{place}: {error}" if isinstance(error, UnknownTaskError) else str(error))
    if faults:
        return fail("compare", faults)
    compared = _read(systems, options, faults)
    if compared.tasks:
        _show(compared, options)
    return fail("compare", faults) if faults else 0


def _faults(options: argparse.Namespace) -> list[str]:
    from coreb_tasks import rules

    known = [f"{metric}_at_{cut_off}" for metric in rules.METRICS for cut_off in rules.CUT_OFFS]
    faults = too_few(options.runs)
    if options.subset and not options.task:
        faults.append("--subset was given without --task; name the task that the subsets are of")
    if options.metric not in known:
        close = get_close_matches(options.metric, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(known)}"
        faults.append(f"unknown metric {options.metric}, {hint}")
    for name, least in (("seed", 0), ("resamples", 100), ("queries", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            faults.append(f"--{name} is {value}, expected {least} or more")
    if options.kind == "csv" and options.queries:
        faults.append("--queries was given with --format csv, which holds the comparisons only; use json")
    return faults


def _read(systems: Sequence[System], options: argparse.Namespace, faults: list[str]) -> _Compared:
    """What all systems have. ``faults`` gets the rest, with reasons."""
    compared = _Compared(models=[[] for _ in systems])
    faults += [fault for system in systems for fault in system.faults]
    # In the order of the first, in which the others are read too.
    names = list(dict.fromkeys(name for system in systems for name in system.readers))
    common = in_common(systems)
    for name in names:
        lacking = [system.place for system in systems if name not in system.readers]
        if lacking:
            faults.append(f"{name} is left out: no run of it in {', '.join(lacking)}")
    if not common:
        faults.append("the runs have no task in common; expected runs of the same task, or folders that share some")
    for name in common:
        try:
            _read_task(find_task(name), systems, options, compared)
        except (DataError, PredictionsError, OSError) as error:
            faults.append(f"{name} is left out: {error}")
    return compared


def _read_task(task: Task, systems: Sequence[System], options: argparse.Namespace, compared: _Compared) -> None:
    from coreb_tasks import scoring
    from coreb_tasks.comparison import Queries

    data = load_subsets(task, find_subsets(task, options.subset))
    scores: dict[str, list[dict[str, float]]] = {subset: [] for subset in data}
    models: list[str | None] = []
    for system in systems:
        read = system.readers[task.name](task, data)
        models.append(read.model)
        for warning in read.warnings:
            warn("compare", warning)
        for subset, of_subset in data.items():
            scored = scoring.score(read.runs[subset], of_subset, task.benchmark.relevance_level)
            scores[subset].append({query: found.metrics[options.metric] for query, found in scored.items()})
    compared.tasks[task.name] = {subset: Queries(scores[subset], data[subset].slices) for subset in data}
    compared.texts |= {(task.name, subset): of_subset.queries for subset, of_subset in data.items()}
    for known, model in zip(compared.models, models, strict=True):
        if model is not None and model not in known:
            known.append(model)


def _show(compared: _Compared, options: argparse.Namespace) -> None:
    from coreb_tasks.comparison import moves, table

    numbers = range(len(options.runs))
    pairs = [(0, other) for other in numbers[1:]] if options.baseline else list(combinations(numbers, 2))
    rows = table(compared.tasks, pairs, seed=options.seed, resamples=options.resamples, slices=options.slices)
    if options.kind == "csv":
        writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_record(row, options.runs) for row in rows)
        return
    moved = moves(compared.tasks, pairs, MOVED if options.queries is None else options.queries)
    if options.kind == "json":
        _print_json(compared, rows, moved, options)
    else:
        _print(compared, rows, list(moved), options)


def _record(row: Row, runs: Sequence[Path]) -> dict[str, Any]:
    found, thing = row.found, row.thing
    what = (thing.level, thing.name, thing.subset, thing.part, thing.mean_over, *_named(row.pair, runs))
    scores = (found.queries, found.first, found.second, found.difference, found.low, found.high)
    tests = (found.p, row.corrected_p, found.wins, found.ties, found.losses)
    return dict(zip(COLUMNS, (*what, *scores, *tests), strict=True))


def _named(pair: Pair, runs: Sequence[Path]) -> tuple[str, str]:
    return str(runs[pair[0]]), str(runs[pair[1]])


def _print_json(compared: _Compared, rows: Iterable[Row], moved: Iterable[Move], options: argparse.Namespace) -> None:
    from coreb_tasks.comparison import CONFIDENCE

    queries = []
    for move in moved:
        first, second = _named(move.pair, options.runs)
        queries.append(
            {
                "task": move.task,
                "subset": move.subset,
                "query": move.query,
                "first": first,
                "second": second,
                "score_first": move.first,
                "score_second": move.second,
                "difference": move.difference,
                "text": compared.texts[move.task, move.subset][move.query],
            }
        )
    content = {
        "metric": options.metric,
        "difference": "first - second",
        "p": "one-sided, of no advantage of first",
        "seed": options.seed,
        "resamples": options.resamples,
        "confidence": CONFIDENCE,
        "runs": [
            {"run": str(run), "models": models} for run, models in zip(options.runs, compared.models, strict=True)
        ],
        "comparisons": [_record(row, options.runs) for row in rows],
        "queries": queries,
    }
    json.dump(content, sys.stdout, ensure_ascii=False, indent=2)
    print()


def _print(compared: _Compared, rows: Iterable[Row], moved: Sequence[Move], options: argparse.Namespace) -> None:
    for number, (run, models) in enumerate(zip(options.runs, compared.models, strict=True), start=1):
        print(one_line(f"{number}: {run}" + (f" ({'; '.join(models)})" if models else ""), 1_000))
    print(
        f"{options.metric}; difference = first - second; interval: 95%, {options.resamples:,} paired resamples of the "
        f"queries in each subset, seed {options.seed}; p: one-sided, that first is not better; p Holm: for all rows of "
        "its level"
    )
    columns = ["level", "compared", "mean over", "runs", "queries", "first", "second", "difference", "95% interval"]
    columns += ["p", "p Holm", "wins/ties/losses"]
    print_table(columns, map(_cells, rows), numbers=range(4, len(columns)))
    if moved:
        columns = ["moved most", "subset", "query", "runs", "first", "second", "difference", "text"]
        print_table(columns, (_moved_cells(move, compared) for move in moved), numbers=range(4, 7))


def _cells(row: Row) -> list[str]:
    found, thing = row.found, row.thing
    subset = None if thing.subset == "default" else thing.subset
    return [
        thing.level,
        one_line(" ".join(filter(None, [thing.name, subset, thing.part]))),
        thing.mean_over,
        _pair(row.pair),
        f"{found.queries:,}",
        *_numbers(found.first, found.second),
        _signed(found.difference),
        "-" if found.low is None or found.high is None else f"{_signed(found.low)} to {_signed(found.high)}",
        *("-" if p is None else f"{p:.5f}" for p in (found.p, row.corrected_p)),
        f"{found.wins}/{found.ties}/{found.losses}",
    ]


def _moved_cells(move: Move, compared: _Compared) -> list[str]:
    text = one_line(compared.texts[move.task, move.subset][move.query])
    head = [move.task, move.subset, one_line(move.query), _pair(move.pair)]
    return [*head, *_numbers(move.first, move.second), _signed(move.difference), text]


def _pair(pair: Pair) -> str:
    return f"{pair[0] + 1} - {pair[1] + 1}"


def _numbers(*scores: float) -> list[str]:
    return [f"{score:.5f}" for score in scores]


def _signed(difference: float) -> str:
    return f"{round(difference, 5) + 0.0:+.5f}"
