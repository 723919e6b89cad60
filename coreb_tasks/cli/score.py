"""Score run files (TREC, BEIR or MTEB predictions) by a task's protocol."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coreb_tasks.cli.console import fail, track, warn
from coreb_tasks.cli.scores import Scored, as_json, print_scored, score_run
from coreb_tasks.data import DataError, PredictionsError, RetrievalData, load_subsets
from coreb_tasks.facts import Task
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="name of a retrieval task")
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        type=Path,
        help="run file (TREC, BEIR's JSON, MTEB's predictions; also .gz), or a folder with SUBSET.trec for each subset",
    )
    parser.add_argument("--subset", nargs="+", metavar="NAME", help="only these subsets; default: all of the task")
    parser.add_argument("--slices", action="store_true", help="also a row for each subtask and language")
    for name, what in (("--json", "all scores as JSON"), ("--per-query", "a row for each query as CSV")):
        help_text = f"{what}, to a new file, or instead of the table"
        parser.add_argument(name, nargs="?", const=STDOUT, metavar="FILE", help=help_text)


def run(options: argparse.Namespace) -> int:
    faults = _faults(options)
    if faults:
        return fail("score", faults)
    try:
        task = find_task(options.task)
        data = load_subsets(task, find_subsets(task, options.subset))
        scored = [_score(file, task, data) for file in track(options.runs, "scoring")]
        if options.json:
            _write_json(options.json, task, scored)
        if options.per_query:
            _write_per_query(options.per_query, scored)
    except (UnknownTaskError, DataError, PredictionsError, OSError) as error:
        return fail("score", [str(error)])
    if STDOUT not in (options.json, options.per_query):
        print_scored(scored, slices=options.slices)
    return 0


def _faults(options: argparse.Namespace) -> list[str]:
    files = {name: getattr(options, name) for name in ("json", "per_query") if getattr(options, name)}
    outputs = [Path(file) for file in files.values() if file != STDOUT]
    faults = [f"{file} exists; name a new file" for file in outputs if file.exists()]
    faults += [f"{file}: there is no folder {file.parent}" for file in outputs if not file.parent.is_dir()]
    if len(files) == 2 and len(set(files.values())) == 1:
        faults.append(
            f"--json and --per-query both write to {'the terminal' if options.json == STDOUT else options.json}"
        )
    return faults


def _score(file: Path, task: Task, data: Mapping[str, RetrievalData]) -> Scored:
    from coreb_tasks.interop.runs import read_run

    read = read_run(file, task, data)
    for warning in read.warnings:
        warn("score", warning)
    return score_run(str(file), read.model, read.runs, task, data)


def _write_json(target: str, task: Task, scored: Iterable[Scored]) -> None:
    with _output(target) as out:
        json.dump(as_json(task, scored), out, ensure_ascii=False, indent=2)
        out.write("\n")


def _write_per_query(target: str, scored: Iterable[Scored]) -> None:
    from coreb_tasks.interop.scores import PER_QUERY, query_rows

    with _output(target) as out:
        writer = csv.DictWriter(out, ["run", *PER_QUERY], lineterminator="\n")
        writer.writeheader()
        for one in scored:
            for subset, queries in one.queries.items():
                writer.writerows({"run": one.run, **row} for row in query_rows(queries, subset))


@contextmanager
def _output(target: str) -> Iterator[IO[str]]:
    if target == STDOUT:
        yield sys.stdout
    else:
        with open(target, "x", encoding="utf-8", newline="") as out:
            yield out
