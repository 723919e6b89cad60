"""A task class for each row of the table of facts."""

from __future__ import annotations

from mteb.abstasks.task_metadata import TaskMetadata

from coreb_tasks.data import data_hash
from coreb_tasks.facts import TASKS as FACTS
from coreb_tasks.facts import Task
from coreb_tasks.tasks.base import SPLIT, ProtocolRetrieval


def metadata(task: Task) -> TaskMetadata:
    """mteb's metadata of a task."""
    benchmark = task.benchmark
    return TaskMetadata(
        name=task.name,
        description=task.description,
        reference=benchmark.reference,
        # The content is what is pinned, whatever commit holds it; the commit that was read stands in the result.
        dataset={"path": task.path, "revision": f"sha256:{data_hash(task)}"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=[SPLIT],
        eval_langs=list(task.eval_langs),
        main_score="ndcg_at_10",
        date=benchmark.date,
        domains=list(benchmark.domains),
        task_subtypes=list(benchmark.task_subtypes),
        license=benchmark.license,
        annotations_creators=benchmark.annotations_creators,
        dialect=[],
        sample_creation=benchmark.sample_creation,
        bibtex_citation=benchmark.bibtex_citation,
        # On the query side only: as a plain string some models would put it before documents too.
        prompt=None if task.prompt is None else {"query": task.prompt},
        adapted_from=list(task.adapted_from) or None,
        # Keeps samples out of mteb's default listings; is_beta would too, but warns at every use.
        is_public=not task.sample,
    )


def class_name(task: Task) -> str:
    return task.name.replace("-", "")


def task_class(task: Task) -> type[ProtocolRetrieval]:
    """The mteb task of a row of facts."""
    return type(
        class_name(task),
        (ProtocolRetrieval,),
        {
            "__doc__": task.description,
            "__module__": __name__,
            "facts": task,
            "metadata": metadata(task),
            "relevance_level": task.benchmark.relevance_level,
        },
    )


TASKS: dict[str, type[ProtocolRetrieval]] = {name: task_class(task) for name, task in FACTS.items()}
globals().update({task.__name__: task for task in TASKS.values()})  # so that tasks can be pickled
