"""Fuse runs of one task into one, and score it beside them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreb_tasks.cli.console import fail, warn
from coreb_tasks.cli.runs import add_runs, in_common, too_few
from coreb_tasks.cli.scores import as_json, print_scored, score_run
from coreb_tasks.data import DataError, PredictionsError, RetrievalData, load_subsets
from coreb_tasks.facts import SPLIT, Task
from coreb_tasks.facts.find import UnknownTaskError, find_subsets, find_task
from coreb_tasks.rules import FUSION_DEPTH, FUSION_K

if TYPE_CHECKING:
    from coreb_tasks.interop.runs import ReadRun

LARGEST_K = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_runs(parser)
    parser.add_argument("--method", default="rrf", choices=["rrf"], help="reciprocal rank fusion")
    parser.add_argument("--k", type=int, default=FUSION_K, help=f"constant of rrf; default: {FUSION_K}")
    parser.add_argument(
        "--depth", type=int, default=FUSION_DEPTH, metavar="N", help=f"documents of each run; default: {FUSION_DEPTH}"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the fused run as MTEB's prediction file")
    parser.add_argument("--slices", action="store_true", help="also a row for each subtask and language")
    parser.add_argument("--json", action="store_true", help="all scores as JSON instead of the table")


def run(options: argparse.Namespace) -> int:
    faults = _faults(options)
    if faults:
        return fail("fuse", faults)
    try:
        _fuse(options)
    except (UnknownTaskError, DataError, PredictionsError, OSError) as error:
        return fail("fuse", [str(error)])
    return 0


def _faults(options: argparse.Namespace) -> list[str]:
    faults = too_few(options.runs)
    # With a larger k, sums that differ would tie in single precision, in which scores are compared.
    if not 0 <= options.k <= LARGEST_K:
        faults.append(f"--k is {options.k}, expected 0 to {LARGEST_K:,}")
    if options.depth < 1:
        faults.append(f"--depth is {options.depth}, expected 1 or more")
    if len(set(options.runs)) < len(options.runs):
        faults.append("a RUN was given twice; name each once")
    if options.out is not None and options.out.suffix != ".json":
        faults.append(f"--out {options.out}: expected a name that ends with .json")
    if options.out is not None and options.out.exists():
        faults.append(f"{options.out} exists; name a new file")
    return faults


def _fuse(options: argparse.Namespace) -> None:
    from coreb_tasks import scoring

    task, data, reads = _read(options)
    fused = {
        subset: scoring.fuse([read.runs[subset] for read in reads], of_subset, options.k, options.depth)
        for subset, of_subset in data.items()
    }
    name = f"{options.method} (k {options.k}, depth {options.depth})"
    if options.out is not None:
        _write(options, task, data, reads, fused)
    scored = [
        score_run(str(run), read.model, read.runs, task, data) for run, read in zip(options.runs, reads, strict=True)
    ]
    scored.append(score_run(name, None, fused, task, data))
    if options.json:
        fusion = {"method": options.method, "k": options.k, "depth": options.depth}
        print(json.dumps({**as_json(task, scored), "fusion": fusion}, ensure_ascii=False, indent=2))
    else:
        print_scored(scored, slices=options.slices)


def _read(options: argparse.Namespace) -> tuple[Task, dict[str, RetrievalData], list[ReadRun]]:
    """The one task that all runs are of, its data, and the runs."""
    from coreb_tasks.interop.systems import find_system

    named = find_task(options.task) if options.task else None
    systems = [find_system(place, named) for place in options.runs]
    faults = [fault for system in systems for fault in system.faults]
    if faults:
        raise UnknownTaskError(f"{'; '.join(faults)}; or name --task")
    common = in_common(systems)
    if len(common) != 1:
        held = "; ".join(f"{system.place}: {', '.join(system.readers)}" for system in systems)
        raise UnknownTaskError(f"expected runs of one task, got {held}; name it (--task)")
    task = find_task(common[0])
    data = load_subsets(task, find_subsets(task, options.subset))
    reads = [system.readers[task.name](task, data) for system in systems]
    for read in reads:
        for warning in read.warnings:
            warn("fuse", warning)
    return task, data, reads


def _write(
    options: argparse.Namespace,
    task: Task,
    data: Mapping[str, RetrievalData],
    reads: Sequence[ReadRun],
    fused: Mapping[str, Any],
) -> None:
    from coreb_tasks.data.predictions import Header, write_predictions

    models = [read.model or str(run) for run, read in zip(options.runs, reads, strict=True)]
    for subset, of_subset in data.items():
        settings = f"k={options.k}, depth={options.depth}"
        header = Header(
            f"{options.method}({' + '.join(models)})", settings, None, task.name, {subset: of_subset.data_hash}
        )
        write_predictions(options.out, header, subset, SPLIT, fused[subset])
