"""The README of what was written: the steps of the pull request, and what mteb's scores are and are not."""

from __future__ import annotations

from collections.abc import Sequence

from coreb_tasks import __version__
from coreb_tasks.facts import OVERALLS, SUITES
from coreb_tasks.upstream.modules import by_module, import_lines, variable, whole_suites
from coreb_tasks.upstream.stock import REVISION, StockTask

STEPS = """\
# A pull request to mteb
Written by coreb-tasks {version} with mteb {mteb}. `datasets` is for the Hugging Face hub, `mteb` for a clone of mteb.

1. Push the data sets. Each command prints the commit.
```bash
{uploads}
```
2. In `mteb/tasks/retrieval/code`, replace each `{revision}` by the commit of the data set that stands above it.
3. Copy the files into the clone: `cp -r mteb/. CLONE/mteb/`.
4. Merge these lines into those of the clone.
{imports}
5. In the clone: `make lint`, `make format-citations`, `make typecheck`, `make test`, `make dataset-load-test-pr`.
   `tests/test_tasks/test_task_quality.py` looks for duplicates and very short texts, which belong to these data: enter
   the tasks that it names into its list of known issues.
6. mteb's `docs/contributing/adding_a_dataset.md` says what the pull request must show: scores of its two reference
   models and of `mteb/baseline-random-encoder`, beside those of the paper.
7. The public leaderboard shows a benchmark once results of models are in the results repository and the benchmark
   stands in the leaderboard's menu: `docs/contributing/adding_a_benchmark.md`.

## Scores
Scores of a subset are those of coreb-tasks{padding}.
"""
TASKS = "mteb/tasks/retrieval/code/__init__.py"
BENCHMARKS = "mteb/benchmarks/benchmarks/__init__.py"


def readme(tasks: Sequence[StockTask]) -> str:
    """The text of the README."""
    import mteb

    padded = [task.name for task in tasks if any(size.padded for size in task.sizes.values())]
    steps = STEPS.format(
        version=__version__,
        mteb=mteb.__version__,
        uploads="\n".join(f"hf upload {task.path} datasets/{task.path} --repo-type dataset" for task in tasks),
        revision=REVISION,
        imports="\n".join(_imports(tasks)),
        padding=f", but that mteb strips the white space around documents ({', '.join(padded)})" if padded else "",
    )
    return steps + "".join(f"- {note}\n" for note in [*_means(tasks), *_left_out(tasks), *_licences(tasks)])


def _imports(tasks: Sequence[StockTask]) -> list[str]:
    """For each file the lines that it needs."""
    modules = by_module(tasks)
    classes = {module: [task.class_name for task in own] for module, own in modules.items()}
    suites = {module: [variable(suite) for suite in whole_suites(own)] for module, own in modules.items()}
    suites = {module: own for module, own in suites.items() if own}
    lines = {TASKS: import_lines("", classes)}
    if suites:
        lines[BENCHMARKS] = import_lines("mteb.benchmarks.benchmarks", suites)
    return [f"\n`{file}`:\n```python\n{block}```" for file, block in lines.items()]


def _means(tasks: Sequence[StockTask]) -> list[str]:
    """Scores of the papers that are means which mteb does not take."""
    queries = {task.name: {subset: size.queries for subset, size in task.sizes.items()} for task in tasks}
    notes = [
        f"{task.name}: mteb's score of the task is the mean over its subsets, the paper's is the mean over all queries "
        f"({_counts(queries[task.name])})."
        for task in tasks
        if task.ignore_identical_ids and len(task.sizes) > 1
    ]
    for overall in OVERALLS.values():
        if overall.weighted and queries.keys() >= set(overall.parts):
            counts = [f"{part}: {_counts(queries[part])}" for part in overall.parts]
            notes.append(f"mteb lacks {overall.name}. {overall.description} ({'; '.join(counts)})")
    return notes


def _counts(queries: dict[str, int]) -> str:
    counts = [f"{count:,}" if subset == "default" else f"{subset} {count:,}" for subset, count in queries.items()]
    return ", ".join(counts)


def _left_out(tasks: Sequence[StockTask]) -> list[str]:
    names = {task.name for task in tasks}
    missing = {suite.name: [task for task in suite.tasks if task not in names] for suite in SUITES.values()}
    return [
        f"The benchmark {name} is left out, since it also needs {', '.join(tasks)}."
        for name, tasks in missing.items()
        if 0 < len(tasks) < len(SUITES[name].tasks)
    ]


def _licences(tasks: Sequence[StockTask]) -> list[str]:
    return [
        f"{task.name}: its source states no licence. Ask its owners before you push a copy."
        for task in tasks
        if task.metadata["license"] == "not specified"
    ]
