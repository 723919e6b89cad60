"""Check that result files are complete and in the layout of MTEB's results repository."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coreb_tasks import rules
from coreb_tasks.cli.console import fail, print_table
from coreb_tasks.data import pinned_hash, revision_of
from coreb_tasks.facts import MAIN_SCORE, OVERALLS, SPLIT, SUITES, TASKS, Overall, Task
from coreb_tasks.reports.results import METADATA, Result, ResultFileError, place, read_json, read_result, result_files
from coreb_tasks.task_metadata import descriptive_statistics, pins

LAYOUT = "ORG__MODEL/REVISION/TASK.json or ORG__MODEL/REVISION/experiments/NAME/TASK.json"
PLACEHOLDER = "no_model_name__available"  # what mteb calls a model that has no name
RUN_SETTINGS = "run_settings.jsonl"
AGAIN = "run the task again (mteb run --overwrite-strategy always)"
MAX_BYTES = 10_000_000
METRICS = tuple(f"{metric}_at_{cut_off}" for metric in rules.METRICS for cut_off in rules.CUT_OFFS)
# Of the model's metadata, what every mteb writes and the results repository reads.
MODEL_FIELDS = ("name", "revision", "release_date", "languages", "n_parameters", "max_tokens", "embed_dim", "license")
NOTES = (
    "Tasks outside mteb are not shown on the public leaderboard; `coreb-tasks upstream` writes the pull request that "
    "brings these in.",
    "Not checked here: whether mteb has the model (`mteb.get_model_meta`), which the results repository asks for too.",
)


class Fault(NamedTuple):
    """What is wrong with a file, what was expected, and what to do."""

    file: Path
    reason: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, help="mteb run's --output-folder, a copy of it in the results repository, or one model's"
    )


def run(options: argparse.Namespace) -> int:
    if not options.folder.exists():
        return fail(
            "check-results", [f"{options.folder}: no such folder; expected the folder that mteb wrote results to"]
        )
    results, others, faults = _read(options.folder)
    faults += check(results)
    faulty = {fault.file for fault in faults}
    if results:
        print_table(["model", "revision", "result files", "complete"], _summary(results, faulty), numbers=(2, 3))
    for line in (*_missing(results), *_not_ours(others), *NOTES):
        print(line)
    if not results and not faults:
        faults.append(Fault(options.folder, f"holds no result files of our tasks; expected {LAYOUT}"))
    return fail("check-results", [f"{file}: {reason}" for file, reason in sorted(faults)]) if faults else 0


def check(results: list[Result]) -> list[Fault]:
    """The faults of result files of our tasks, of their folders, and of all of them together."""
    folders: dict[Path, list[Result]] = defaultdict(list)
    for result in results:
        folders[result.file.parent].append(result)
    faults = [*_other_versions(results), *_twice(results)]
    for folder, within in folders.items():
        faults += _folder_faults(folder, within)
        revisions = {result.task: result.dataset_revision for result in within}
        faults += [Fault(result.file, reason) for result in within for reason in _file_faults(result, revisions)]
        faults += [Fault(result.file, reason) for result in within for reason in _overall_faults(result, within)]
    return faults


def expected_revision(facts: Task | Overall, known: Mapping[str, Any]) -> str | None:
    """The dataset revision that a result must have; None where it cannot be said.

    Args:
        facts: its task.
        known: of a task, the data version by subset, where the data are not pinned; of an overall score, the revision
            by part, where the part's own cannot be said.
    """
    if isinstance(facts, Task):
        if facts.commit is not None:
            return facts.commit
        return _revision([pinned_hash(facts, subset) or known.get(subset) for subset in facts.subsets])
    parts = [expected_revision(TASKS[part], {}) or known.get(part) for part in facts.parts]
    return parts[0] if len(parts) == 1 else _revision(parts)


def _revision(versions: Sequence[Any]) -> str | None:
    known = [version for version in versions if isinstance(version, str)]
    return revision_of(known) if len(known) == len(versions) else None


def expected_queries(facts: Task | Overall, subset: str) -> int | None:
    """The number of judged queries, where it was measured."""
    if isinstance(facts, Overall):
        counts = [expected_queries(TASKS[part], name) for part in facts.parts for name in TASKS[part].subsets]
        return None if None in counts else sum(count for count in counts if count is not None)
    test = descriptive_statistics(facts.retrieval)
    if "stated_in" not in test:
        return int(test.get("hf_subset_descriptive_stats", {}).get(subset, test)["num_queries"])
    held = facts.subsets[subset]
    pin = pins(facts.path, facts.release).get(held.layout.queries)
    return None if pin is None or held.subtasks is not None else pin.rows


def _read(folder: Path) -> tuple[list[Result], list[str], list[Fault]]:
    """Results of our tasks, names of other tasks, and faults of files that by their name should be ours."""
    results, others, faults = [], [], []
    for file in result_files(folder):
        try:
            result = read_result(file)
        except ResultFileError as error:
            if _facts(file.stem) is None:
                others.append(file.stem)
            else:
                reason = str(error).removeprefix(f"{file}: ")
                faults.append(Fault(file, f"{reason}; expected a result as mteb writes it: run the task again"))
            continue
        if _facts(result.task) is None and _facts(file.stem) is None:
            others.append(result.task)
        else:
            results.append(result)
    return results, others, faults


def _facts(task: str) -> Task | Overall | None:
    return TASKS.get(task) or OVERALLS.get(task)


def _file_faults(result: Result, revisions: Mapping[str, Any]) -> Iterator[str]:
    facts = _facts(result.task)
    if result.file.stem != result.task:
        yield f"it holds the task {result.task}; expected {result.task}.json: give the file its own name"
    if facts is None:
        return
    if isinstance(facts, Task) and facts.sample:
        yield "the task is a packaged sample, for trying things out, and no submission; leave it out"
        return
    size = result.file.stat().st_size
    if size > MAX_BYTES:
        yield f"{size:,} bytes; the results repository takes {MAX_BYTES:,}: leave out what mteb did not write"
    yield from _incomplete(result, facts)
    scores = _expected_scores(result)
    for subset, values in scores.items():
        for reason in _score_faults(facts, subset, values):
            yield f"subset {subset}: {reason}"
    versions = {subset: values.get("data_hash") for subset, values in scores.items()}
    yield from _revision_faults(facts, result.dataset_revision, versions if isinstance(facts, Task) else revisions)


def _subsets(facts: Task | Overall | None) -> list[str]:
    return list(facts.subsets) if isinstance(facts, Task) else ["default"] if facts is not None else []


def _expected_scores(result: Result) -> dict[str, dict[str, Any]]:
    """The scores of the subsets that the task has, by subset; others are a fault of their own."""
    expected = _subsets(_facts(result.task))
    return {values["hf_subset"]: values for values in result.scores.get(SPLIT, []) if values["hf_subset"] in expected}


def _incomplete(result: Result, facts: Task | Overall) -> Iterator[str]:
    """Splits and subsets that are missing, of too much or there twice."""
    kinds = [("split", Counter(result.scores.keys()), [SPLIT])]
    if SPLIT in result.scores:
        held = Counter(values["hf_subset"] for values in result.scores[SPLIT])
        kinds.append(("subset", held, _subsets(facts)))
    for kind, held, expected in kinds:
        missing = [name for name in expected if name not in held]
        unknown = [name for name in held if name not in expected]
        twice = [name for name, count in held.items() if count > 1]
        for words, names in (("is missing", missing), ("is none of the task's", unknown), ("stands twice", twice)):
            if names:
                yield f"{kind} {', '.join(names)} {words}; expected {', '.join(expected)}: run the whole task again"


def _score_faults(facts: Task | Overall, subset: str, values: Mapping[str, Any]) -> Iterator[str]:
    score = values.get("main_score")
    if isinstance(facts, Overall) and score is None:
        parts = ", ".join(facts.parts)
        yield f"main_score is null: a part is missing; expected results of {parts}: run these, then {facts.name} again"
        return
    metrics = ["main_score", MAIN_SCORE] if isinstance(facts, Overall) else ["main_score", *METRICS]
    broken = [key for key in metrics if not _is_share(values.get(key))]
    broken += [key for key, value in values.items() if key not in metrics and _is_broken_metric(key, value)]
    if broken:
        first = ", ".join(f"{key} is {values.get(key)!r}" for key in broken[:3])
        yield f"{len(broken)} scores are none, the first: {first}; expected numbers in 0..1: {AGAIN}"
    elif score != values[MAIN_SCORE]:
        yield f"main_score is {score!r}; expected {MAIN_SCORE}, {values[MAIN_SCORE]!r}: {AGAIN}"
    if not isinstance(values.get("languages"), list):
        yield f"languages is {values.get('languages')!r}; expected the list that mteb writes: {AGAIN}"
    expected: dict[str, Any] = {"n_queries": expected_queries(facts, subset)}
    if isinstance(facts, Task):
        expected |= {"relevance_level": facts.benchmark.relevance_level, "data_hash": pinned_hash(facts, subset)}
        if not re.fullmatch("[0-9a-f]{64}", str(values.get("data_hash"))):
            yield f"data_hash is {values.get('data_hash')!r}; expected a sha256: {AGAIN}"
            del expected["data_hash"]
    for key, value in expected.items():
        held = values.get(key)
        if value is not None and held != value:
            yield f"{key} is {held!r}; expected {value!r}: {AGAIN}"
        elif held is None:
            yield f"{key} is missing; expected what coreb-tasks writes beside the scores: {AGAIN}"


def _overall_faults(result: Result, within: Iterable[Result]) -> Iterator[str]:
    """An overall score needs its parts beside it, and is their mean."""
    facts = OVERALLS.get(result.task)
    values = _expected_scores(result).get("default")
    if facts is None or values is None or not _is_share(values.get("main_score")):
        return
    beside = {other.task: _expected_scores(other) for other in within}
    missing = [part for part in facts.parts if part not in beside]
    if missing:
        yield f"no {', '.join(missing)} beside it; expected all of its parts: run these, then {facts.name} again"
        return
    held: list[list[tuple[Any, Any]]] = [
        [(scores.get("main_score"), scores.get("n_queries")) for scores in beside[part].values()]
        for part in facts.parts
    ]
    if any(not _is_share(score) or not isinstance(queries, int) for part in held for score, queries in part):
        return  # told of the part
    mean = rules.overall_score(held, weighted=facts.weighted)
    if not math.isclose(values["main_score"], mean, abs_tol=1.01e-5):
        yield f"main_score is {values['main_score']!r}; expected the mean of its parts, {mean}: run {facts.name} again"


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_broken_metric(key: str, value: Any) -> bool:
    """mteb's nAUC is NaN where all queries score alike; no other metric is."""
    return isinstance(value, float) and not math.isfinite(value) and not key.rpartition("/")[2].startswith("nauc_")


def _revision_faults(facts: Task | Overall, revision: Any, known: Mapping[str, Any]) -> Iterator[str]:
    expected = expected_revision(facts, known)
    if expected is None and (not isinstance(revision, str) or not re.fullmatch("sha256:[0-9a-f]{64}", revision)):
        expected = "sha256: and a hash of the data"
    if expected not in (None, revision):
        yield f"dataset_revision is {revision!r}; expected {expected}: {AGAIN}"


def _folder_faults(folder: Path, results: list[Result]) -> Iterator[Fault]:
    """Faults of the folder of a run: its names, the model's metadata, and the settings of the run."""
    model, revision, experiment = place(results[0].file)
    again = "run the model by its hub name, at its hub commit (mteb run --model-revision)"
    if "__" not in model or model == PLACEHOLDER:
        yield Fault(folder, f"its model is called {model!r}; expected {LAYOUT}: {again}")
    if not re.fullmatch("[0-9a-f]{40}", revision):
        yield Fault(folder, f"its model revision is {revision!r}; expected 40 hex digits, as in {LAYOUT}: {again}")
    for reason in _metadata_faults(folder / METADATA, model, revision, experiment):
        yield Fault(folder / METADATA, reason)
    for reason in _settings_faults(folder / RUN_SETTINGS, results):
        yield Fault(folder / RUN_SETTINGS, reason)


def _metadata_faults(file: Path, model: str, revision: str, experiment: str | None) -> Iterator[str]:
    if not file.exists():
        yield "is missing; expected the model's metadata beside its results: copy the file that mteb wrote there"
        return
    try:
        metadata = read_json(file)
        name, held, settings = metadata["name"], metadata["revision"], metadata.get("experiment_kwargs")
        missing = [field for field in MODEL_FIELDS if field not in metadata]
        if missing:
            raise KeyError(", ".join(missing))
    except (ResultFileError, KeyError, TypeError, AttributeError) as error:
        reason = str(error).removeprefix(f"{file}: ")
        yield f"cannot be used ({reason}); expected the metadata of the model: copy the file that mteb wrote there"
        return
    folder = str(name).replace("/", "__").replace(" ", "_")
    if folder != model:
        yield f"name is {name!r}; expected that of the folder {model}: put results and metadata of one model together"
    if held != revision:
        yield f"revision is {held!r}; expected that of the folder, {revision}: put the results under their own revision"
    if bool(settings) != (experiment is not None):
        yield (
            f"experiment_kwargs is {settings!r}, the folder is {experiment or revision}; expected results of changed "
            "settings, and only these, in REVISION/experiments/NAME: leave the files where mteb wrote them"
        )


def _settings_faults(file: Path, results: list[Result]) -> Iterator[str]:
    """The results repository takes no new result without the settings of its run."""
    advice = "copy the file that mteb wrote there"
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        held = {scope for line in lines for scope in _scopes(line)}
    except FileNotFoundError:
        yield f"is missing; expected the settings of the run beside its results: {advice}"
    except (OSError, ValueError, AttributeError, TypeError) as error:
        yield f"cannot be used ({error}); expected the settings of the run: {advice}"
    else:
        scopes = [(result.task, SPLIT, subset) for result in results for subset in _expected_scores(result)]
        missing = ["/".join(scope) for scope in scopes if scope not in held]
        if missing:
            first = ", ".join(missing[:3])
            yield f"lacks {len(missing)} results, the first: {first}; expected the settings of every result: {advice}"


def _scopes(line: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Task, split and subset that a line is of. Up to mteb 2.18 each had a line of its own."""
    for split in line.get("splits", [line.get("split")]):
        for subset in line.get("subsets", [line.get("subset")]):
            yield line.get("task"), split, subset


def _other_versions(results: list[Result]) -> Iterator[Fault]:
    """Files whose data, which are not pinned, are of another version than those of most other files."""
    versions: dict[Any, dict[Any, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        facts = TASKS.get(result.task)
        for subset, values in _expected_scores(result).items() if facts is not None else ():
            data_hash = values.get("data_hash")
            if facts is None or pinned_hash(facts, subset) or data_hash is None:
                continue
            reason = f"subset {subset}: data_hash is {data_hash!r}"
            data = (facts.path, facts.release, facts.subsets[subset].layout)
            versions[data][str(data_hash)].append(Fault(result.file, reason))
    for by_hash in versions.values():
        usual = max(by_hash, key=lambda data_hash: len(by_hash[data_hash]))
        example = by_hash[usual][0].file
        for file, reason in (fault for data_hash, faults in by_hash.items() if data_hash != usual for fault in faults):
            yield Fault(file, f"{reason}; expected {usual!r}, as in {example}: run both on one version of the data")


def _twice(results: list[Result]) -> Iterator[Fault]:
    """Files of a model, an experiment and a task that another file is of, mostly at another revision."""
    first: dict[tuple[str, str | None, str], Path] = {}
    for result in results:
        model, _, experiment = place(result.file)
        other = first.setdefault((model, experiment, result.task), result.file)
        if other != result.file:
            reason = f"{other} is of the same model and task; expected one revision of each: leave out the older"
            yield Fault(result.file, reason)


def _summary(results: list[Result], faulty: set[Path]) -> Iterator[list[str]]:
    """A row for each run. A task is complete where its file has no fault; its folder may have one."""
    runs: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for result in results:
        model, *run = place(result.file)
        runs[model.replace("__", "/"), ", ".join(filter(None, run))].append(result)
    for name, within in sorted(runs.items()):
        complete = [result for result in within if result.file not in faulty]
        yield [*name, str(len(within)), str(len(complete))]


def _missing(results: list[Result]) -> Iterator[str]:
    """A line for each benchmark that a run has some tasks of, and not all."""
    runs: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for result in results:
        runs[tuple(filter(None, place(result.file)))].add(result.task)
    for name, tasks in sorted(runs.items()):
        for suite in SUITES.values():
            missing = [task for task in suite.tasks if task not in tasks]
            if 0 < len(missing) < len(suite.tasks):
                yield f"{'/'.join(name)}: of {suite.name} there is no {', '.join(missing)}"


def _not_ours(others: list[str]) -> Iterator[str]:
    if others:
        names = list(dict.fromkeys(others))
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        yield f"Not of our tasks, and not judged: {', '.join(names[:20])}{more}"
