"""A task class for each row of the tables of facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
from mteb.abstasks.task_metadata import TaskMetadata

from coreb_tasks.data import UNRESOLVED, pinned_hash, revision_of
from coreb_tasks.facts import MAIN_SCORE, OVERALLS, SAMPLE_LICENSE, SPLIT, Benchmark, Overall, Task
from coreb_tasks.facts import TASKS as FACTS
from coreb_tasks.task_metadata import descriptive_statistics_path
from coreb_tasks.tasks.base import ProtocolRetrieval
from coreb_tasks.tasks.overall import OverallScore, overall_revision
from coreb_tasks.tasks.reranking import ProtocolReranking


class Metadata(TaskMetadata):
    """mteb's metadata, with descriptive statistics that this package ships: those of the retrieval task on the data."""

    @property
    def descriptive_stat_path(self) -> Path:
        return descriptive_statistics_path(FACTS[self.name].retrieval if self.name in FACTS else self.name)


def metadata(task: Task) -> Metadata:
    """mteb's metadata of a task."""
    languages = {name: list(subset.eval_langs) for name, subset in task.subsets.items()}
    return Metadata(
        name=task.name,
        description=task.description,
        dataset={"path": task.path, "revision": _revision(task)},
        type="Retrieval" if task.reranks is None else "Reranking",
        eval_langs=languages["default"] if list(languages) == ["default"] else languages,
        task_subtypes=list(task.task_subtypes),
        # On the query side only: as a plain string some models would put it before documents too.
        prompt=None if task.prompt is None else {"query": task.prompt},
        adapted_from=list(task.adapted_from) or None,
        # Keeps samples out of mteb's default listings; is_beta would too, but warns at every use.
        is_public=not task.sample,
        license=SAMPLE_LICENSE if task.sample else task.benchmark.license,
        **_of_the_benchmark(task.benchmark),
    )


def _of_the_benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "reference": benchmark.reference,
        "category": "t2t",
        "modalities": ["text"],
        "eval_splits": [SPLIT],
        "main_score": MAIN_SCORE,
        "date": benchmark.date,
        "domains": list(benchmark.domains),
        "annotations_creators": benchmark.annotations_creators,
        "dialect": [],
        "sample_creation": benchmark.sample_creation,
        "bibtex_citation": benchmark.bibtex_citation,
    }


def _revision(task: Task) -> str:
    """The commit that the paper names, else the content that is pinned, else what loading the data will find."""
    if task.commit is not None:
        return task.commit
    pinned = [pinned_hash(task, subset) for subset in task.subsets]
    known = [data_hash for data_hash in pinned if data_hash is not None]
    return revision_of(known) if len(known) == len(pinned) else UNRESOLVED


def class_name(task: Task | Overall) -> str:
    return "T" + task.name.replace("-", "") if task.name[0].isdigit() else task.name.replace("-", "")


def task_class(task: Task) -> type[ProtocolRetrieval]:
    """The mteb task of a row of facts."""
    constants = {
        "__doc__": task.description,
        "__module__": __name__,
        "facts": task,
        "metadata": metadata(task),
        "relevance_level": task.benchmark.relevance_level,
    }
    if task.reranks is None:
        return type(class_name(task), (ProtocolRetrieval,), constants)
    constants["retrieval_metadata"] = metadata(replace(task, name=task.reranks, reranks=None))
    return type(class_name(task), (ProtocolReranking,), constants)


def overall_class(overall: Overall) -> type[OverallScore]:
    """The mteb aggregate task of a row of facts."""
    return type(
        class_name(overall),
        (OverallScore,),
        {
            "__doc__": overall.description,
            "__module__": __name__,
            "facts": overall,
            "metadata": AggregateTaskMetadata(
                name=overall.name,
                description=overall.description,
                type="Retrieval",
                tasks=[TASKS[part]() for part in overall.parts],
                dataset={
                    "path": FACTS[overall.parts[0]].path,
                    "revision": overall_revision([TASKS[part].metadata.revision for part in overall.parts]),
                },
                license=overall.benchmark.license,
                **_of_the_benchmark(overall.benchmark),
            ),
        },
    )


TASKS: dict[str, type[ProtocolRetrieval]] = {name: task_class(task) for name, task in FACTS.items()}
OVERALL_TASKS: dict[str, type[OverallScore]] = {name: overall_class(overall) for name, overall in OVERALLS.items()}
# So that tasks can be pickled.
globals().update({task.__name__: task for task in (*TASKS.values(), *OVERALL_TASKS.values())})
