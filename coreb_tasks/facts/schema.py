"""The shape of a fact: what a benchmark, its data and its tasks are, in constants only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Which config and which column of a hub data set holds what.

    ``subset`` columns, ``excluded`` and ``languages`` are columns of the queries.

    Attributes:
        corpus, document_id, document_text: config of the documents, its id and its text column.
        queries, query_id, query_text: the same for the queries.
        qrels, qrels_query, qrels_document, grade: config of the judgments and its three columns.
        excluded: column with the id of a document that is no candidate for the query, or None.
        subtask: column that names a query's subtask, or None.
        languages: columns with a query's language; the first that a row fills counts.
    """

    corpus: str
    document_id: str
    document_text: str
    queries: str
    query_id: str
    query_text: str
    qrels: str
    qrels_query: str
    qrels_document: str
    grade: str
    excluded: str | None = None
    subtask: str | None = None
    languages: tuple[str, ...] = ()

    @property
    def configs(self) -> tuple[str, str, str]:
        return self.corpus, self.queries, self.qrels


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
    task_subtypes: tuple[str, ...]
    annotations_creators: str
    sample_creation: str


@dataclass(frozen=True)
class Task:
    """One task: constants only.

    Attributes:
        name: the name on mteb's command line.
        path: hub path of the data set; a path under ``coreb-tasks/`` is data that this package ships.
        release: the data set's split that holds the task's data (mteb's split is always ``test``).
        prompt: instruction for the queries of models that take one, or None.
        adapted_from: names of mteb's own tasks on the same data.
        sample: packaged data, left out of mteb's default task listings.
    """

    name: str
    benchmark: Benchmark
    layout: Layout
    path: str
    release: str
    description: str
    eval_langs: tuple[str, ...]
    prompt: str | None = None
    adapted_from: tuple[str, ...] = ()
    sample: bool = False
