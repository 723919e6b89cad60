"""Scores of runs: of result files, each checked to be whole and of the data that its task names, and of papers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coreb_tasks.data import pinned_hash
from coreb_tasks.facts import MAIN_SCORE, OVERALLS, SPLIT, TASKS, Suite
from coreb_tasks.reports.results import (
    METADATA,
    Result,
    ResultFileError,
    place,
    read_json,
    read_result,
    result_files,
)
from coreb_tasks.task_metadata import Published, num_queries, published

# What tables and plots read, by the last part of the key: shares, and numbers of queries and documents.
_SHARE = re.compile(r"(ndcg|recall|mrr)_at_\d+|main_score|hard_negative_intrusion_at_10")
_COUNT = re.compile(r"n_queries|hard_negative_intrusion_n|\w+_depth")


@dataclass(frozen=True)
class Run:
    """Whose scores they are: one model at one revision with one set of settings, or a row of a paper.

    Attributes:
        source: the paper that states the scores; None for result files.
        digits: the digits that the scores are stated with.
        parameters: how many the model has; None where it is not known.
        dimension: of the model's vectors; None where it is not known.
        variant: settings other than the dimension: runs that are alike but for their dimension share it.
        means: the means over tasks that the paper states.
    """

    model: str
    revision: str = ""
    experiment: str | None = None
    source: str | None = None
    digits: int = field(default=5, compare=False)
    parameters: int | None = field(default=None, compare=False)
    dimension: int | None = field(default=None, compare=False)
    variant: str = field(default="", compare=False)
    means: Mapping[str, Mapping[str, float]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Scores:
    """One subset of one task in one run. ``values`` holds a result's keys, those of slices included."""

    run: Run
    task: str
    subset: str
    values: Mapping[str, Any]
    file: Path | None = None  # None for published scores


def read(paths: Iterable[Path]) -> tuple[list[Scores], list[str]]:
    """The scores of result files and of those in folders, and what is wrong with the files that are left out."""
    faults, found = [], []
    files: dict[Path, Path] = {}
    for path in paths:
        within = result_files(path) if path.exists() else []
        files |= {file.resolve(): file for file in within if file.resolve() not in files}
        if not path.exists():
            faults.append(f"{path}: no such folder or file; expected the folder that mteb wrote results to")
        elif not within:
            faults.append(f"{path}: no MTEB result files (TASK.json) in it")
    for file in files.values():
        try:
            found += read_scores(file)
        except ResultFileError as error:
            faults.append(str(error))
    left_out = {**_twice(found), **_other_versions(found)}
    faults += [f"{file}: {reason}" for file, reason in left_out.items()]
    return [scores for scores in found if scores.file not in left_out], faults


def read_scores(file: Path) -> list[Scores]:
    """The scores of a result file, for each subset.

    Raises:
        ResultFileError: it is no result of mteb, not of our tasks, not whole, or of other data than its task's.
    """
    result = read_result(file)
    run = _run(file)
    for reason in _faults(result):
        raise ResultFileError(f"{file}: {reason}")
    return [Scores(run, result.task, values["hf_subset"], values, file) for values in result.scores[SPLIT]]


def published_scores(suite: Suite) -> list[Scores]:
    """What a paper states of its models on a benchmark."""
    return [
        Scores(run, task, subset, values)
        for row in published(suite.name)
        for run in [_published_run(row)]
        for task, subsets in row.scores.items()
        for subset, values in subsets.items()
    ]


def run_names(runs: Collection[Run]) -> dict[Run, str]:
    """What to call each run: its model, and the revision and experiment where the model has several."""
    own = Counter(run.model for run in runs if run.source is None)
    return {run: run.model if run.source or own[run.model] == 1 else _told_apart(run, runs) for run in runs}


def _told_apart(run: Run, runs: Iterable[Run]) -> str:
    """The model with what tells the run from its others. Of a commit hash a person needs its beginning."""
    alike = [other for other in runs if other.model == run.model and other.source is None]
    revisions = {other.revision for other in alike}
    short = {revision: revision[:8] for revision in revisions if re.fullmatch("[0-9a-f]{40}", revision)}
    revision = short.get(run.revision, run.revision) if len(set(short.values())) == len(short) else run.revision
    told = [revision if len(revisions) > 1 or run.experiment is None else None, run.experiment]
    return f"{run.model} ({', '.join(filter(None, told))})"


def _published_run(row: Published) -> Run:
    return Run(row.model, source=row.source, digits=row.digits, parameters=row.n_parameters, means=row.means)


def _run(file: Path) -> Run:
    """The run, from mteb's folders and the model's metadata beside the result, where there are any."""
    model, revision, experiment = place(file)
    metadata = file.parent / METADATA
    if not metadata.exists():
        return Run(model.replace("__", "/"), revision, experiment, variant=experiment or "")
    try:
        content = read_json(metadata)
        if not isinstance(content["name"], str) or not content["name"] or not content["name"].isprintable():
            raise TypeError(f"name is {content['name']!r}")
        settings = dict(content.get("experiment_kwargs") or {})
        asked = settings.pop("embed_dim", None)
        return Run(
            content["name"],
            revision,
            experiment,
            parameters=_count(content.get("n_parameters")),
            dimension=_count(asked or content.get("embed_dim")),
            variant=repr(sorted(settings.items())) if settings else "",
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{metadata} is not the model metadata that mteb writes ({type(error).__name__}: {error})"
        raise ResultFileError(f"{file}: {why}") from error


def _count(value: Any) -> int | None:
    """A number of parameters or dimensions. Of several dimensions a model has the largest unless told otherwise."""
    return None if value is None else int(max(value) if isinstance(value, list) else value)


def _faults(result: Result) -> Iterator[str]:
    """Why a result cannot stand beside others of its task."""
    facts = TASKS.get(result.task) or OVERALLS.get(result.task)
    if facts is None:
        yield f"{result.task} is not one of our tasks; expected one that `coreb-tasks list` shows"
        return
    level, again = facts.benchmark.relevance_level, "run it again (mteb run --overwrite-strategy always)"
    task = TASKS.get(result.task)
    expected = ["default"] if task is None else list(task.subsets)
    held = [values["hf_subset"] for values in result.scores.get(SPLIT, [])]
    if sorted(held) != sorted(expected) or len(result.scores) > 1:
        splits = {split: [values["hf_subset"] for values in subsets] for split, subsets in result.scores.items()}
        yield f"holds splits and subsets {splits}; expected each of {', '.join(expected)} of {SPLIT} once: {again}"
        return
    for values in result.scores[SPLIT]:
        named = f"subset {values['hf_subset']}: "
        for key, value in values.items():
            expected_value = None if value is None else _expected(key, value)
            if expected_value:
                yield f"{named}{key} is {value!r}; expected {expected_value}: {again}"
        for key in ("main_score", MAIN_SCORE):
            if values.get(key) is None:
                why = "run all of its parts, then it" if task is None else again
                yield f"{named}has no {key}: {why}"
        if values["main_score"] != values[MAIN_SCORE]:
            whole = f"expected {MAIN_SCORE}, {values[MAIN_SCORE]!r}"
            yield f"{named}main_score is {values['main_score']!r}; {whole}: {again}"
        if task is None:
            continue
        if values.get("relevance_level") != level:
            yield f"{named}relevance_level is {values.get('relevance_level')!r}; expected {level}: {again}"
        pinned = pinned_hash(task, values["hf_subset"])
        queries = num_queries(task.retrieval, values["hf_subset"])
        if pinned is not None and values.get("n_queries") not in (None, queries):
            yield f"{named}n_queries is {values['n_queries']}; expected {queries}: {again}"
        if pinned is not None and values.get("data_hash") != pinned:
            yield f"{named}data_hash is {values.get('data_hash')!r}; expected {pinned!r}, the task's data: {again}"


def _expected(key: str, value: Any) -> str | None:
    """What a score should be, where it is not."""
    limits = _limits(key)
    if limits is None:
        return None
    low, high = limits
    number = isinstance(value, int | float) and not isinstance(value, bool) and low <= value
    if number and (float(value).is_integer() if high is None else value <= high):
        return None
    return f"a whole number, {low} or more" if high is None else f"a number from {low} to {high}"


@cache
def _limits(key: str) -> tuple[int, int | None] | None:
    """The least and the most that a share can be, the least that a count can be; None for other keys."""
    part, _, metric = key.rpartition("/")
    if _SHARE.fullmatch(metric):
        return (-1 if part.rpartition("/")[2] == "rerank_delta" else 0), 1
    return (1 if metric == "n_queries" else 0, None) if _COUNT.fullmatch(metric) else None


def _twice(found: Iterable[Scores]) -> dict[Path, str]:
    """Files of one run and task that another file is of too. Which of them to believe is not ours to say."""
    files: dict[tuple[Run, str], dict[Path, None]] = defaultdict(dict)
    for scores in found:
        if scores.file is not None:
            files[scores.run, scores.task][scores.file] = None
    return {
        file: f"{' and '.join(str(other) for other in same if other != file)} is of the same run and task; "
        "expected one file of each: leave one out"
        for same in files.values()
        if len(same) > 1
        for file in same
    }


def _other_versions(found: Iterable[Scores]) -> dict[Path, str]:
    """Files whose data, which are not pinned, are of another version than those of most files of the task."""
    versions: dict[tuple[str, str], dict[Path, Any]] = defaultdict(dict)
    for scores in found:
        task = TASKS.get(scores.task)
        if scores.file is not None and task is not None and pinned_hash(task, scores.subset) is None:
            versions[task.retrieval, scores.subset][scores.file] = scores.values.get("data_hash")
    reasons = {}
    for by_file in versions.values():
        usual = Counter(by_file.values()).most_common(1)[0][0]
        for file, data_hash in by_file.items():
            if data_hash != usual:
                reasons[file] = f"data_hash is {data_hash!r}; expected {usual!r}, as most files: run on one version"
    return reasons
