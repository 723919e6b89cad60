"""The shape of a fact: what a benchmark, its data and its tasks are, in constants only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Layout:
    """Which config and which column of a hub data set holds what.

    Attributes:
        corpus, document_id, document_text: config of the documents, its id and its text column.
        queries, query_id, query_text: the same for the queries.
        qrels, qrels_query, qrels_document, grade: config of the judgments and its three columns. Without ``qrels`` a
            query's one relevant document is the one with its id.
        grade_if_absent: the grade of every row where the table has no such column, or None where it must have it.
        excluded: column of the queries with the id of a document that is no candidate, or None.
        subtask: column of the queries that names a query's subtask, or None.
        languages: columns of the queries with a query's language; the first that a row fills counts.
    """

    corpus: str
    document_id: str
    document_text: str
    queries: str
    query_id: str
    query_text: str
    qrels: str | None = None
    qrels_query: str = ""
    qrels_document: str = ""
    grade: str = ""
    grade_if_absent: int | None = None
    excluded: str | None = None
    subtask: str | None = None
    languages: tuple[str, ...] = ()

    @property
    def configs(self) -> tuple[str, ...]:
        """The configs to read, each once."""
        return tuple(dict.fromkeys(config for config in (self.corpus, self.queries, self.qrels) if config))


@dataclass(frozen=True)
class Benchmark:
    """What the tasks of one paper share. Field names and values are those of mteb's ``TaskMetadata``.

    Attributes:
        title: the name people use.
        grades: each relevance grade that the qrels may hold, in words.
        relevance_level: the lowest grade that counts as relevant.
    """

    title: str
    grades: dict[int, str]
    relevance_level: int
    reference: str
    bibtex_citation: str
    license: str
    date: tuple[str, str]
    domains: tuple[str, ...]
    annotations_creators: str
    sample_creation: str


@dataclass(frozen=True)
class Subset:
    """One subset of a task, in mteb's sense; a task with one subset only calls it ``default``.

    Attributes:
        layout: where its data stand.
        eval_langs: mteb's codes of its languages.
        subtasks: the subtasks of the data whose queries it holds; None for all queries.
    """

    layout: Layout
    eval_langs: tuple[str, ...]
    subtasks: frozenset[str] | None = None


@dataclass(frozen=True)
class Task:
    """One task: constants only.

    Attributes:
        name: the name on mteb's command line.
        subsets: its subsets by name.
        path: hub path of the data set; a path under ``coreb-tasks/`` is data that this package ships.
        release: the data set's split that holds the task's data (mteb's split is always ``test``).
        commit: full hash of the hub's commit that the paper names, or None for the newest.
        task_subtypes: in mteb's words.
        prompt: instruction for the queries of models that take one, or None.
        adapted_from: names of mteb's own tasks on the same data.
        reranking: name of the reranking task for models that only rerank, or None for one itself.
        reranks: on a reranking task: name of the retrieval task whose data and scores it shares; else None.
        sample: packaged data, left out of mteb's default task listings.
    """

    name: str
    benchmark: Benchmark
    subsets: dict[str, Subset]
    path: str
    release: str
    description: str
    commit: str | None = None
    task_subtypes: tuple[str, ...] = ("Code retrieval",)
    prompt: str | None = None
    adapted_from: tuple[str, ...] = ()
    sample: bool = False
    reranking: str | None = None
    reranks: str | None = None

    @property
    def retrieval(self) -> str:
        """Name of the retrieval task on this data: the one that it reranks, else its own."""
        return self.reranks or self.name


def reranking(task: Task, *, adapted_from: tuple[str, ...] = ()) -> Task:
    """The reranking task of a retrieval task that names one."""
    if task.reranking is None:
        raise ValueError(f"{task.name} names no reranking task")
    return replace(
        task,
        name=task.reranking,
        description=f"{task.description} Reranking of the best documents of a first stage.",
        adapted_from=adapted_from,
        reranking=None,
        reranks=task.name,
    )


@dataclass(frozen=True)
class Overall:
    """A score over tasks. With ``weighted`` each subset of each part counts by its queries, else each part the same."""

    name: str
    benchmark: Benchmark
    parts: tuple[str, ...]
    weighted: bool
    description: str


@dataclass(frozen=True)
class Suite:
    """A benchmark in mteb's sense: what ``mteb run -b NAME`` runs.

    Attributes:
        headline: the mean that its paper ranks by. ``micro``: over all queries; ``macro``: over tasks, of each of which
            it is the mean over subsets.
    """

    name: str
    benchmark: Benchmark
    tasks: tuple[str, ...]
    description: str
    headline: Literal["macro", "micro"]
