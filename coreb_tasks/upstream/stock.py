"""A task as stock mteb can express it, without any override: constants and data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreb_tasks.data import DataError, RetrievalData
from coreb_tasks.facts import SPLIT, Task

REVISION = "FILL IN: the commit of this data set, once it is pushed"


@dataclass(frozen=True)
class Size:
    """How large a subset is. ``padded`` counts the documents with white space around, which stock mteb strips."""

    documents: int
    queries: int
    judgments: int
    relevant: int
    padded: int


@dataclass(frozen=True)
class StockTask:
    """One task.

    Attributes:
        facts: its row of the table.
        class_name: name of its class.
        metadata: all fields of mteb's ``TaskMetadata``.
        dataset: subset -> split -> corpus, queries, relevant_docs and top_ranked, as mteb's retrieval tasks hold them.
        sizes: size of each subset.
        origin: hub path, split and version of the data, in words.
        ignore_identical_ids: whether a query's id names a document that is no candidate for it.
    """

    facts: Task
    class_name: str
    metadata: dict[str, Any]
    dataset: dict[str, dict[str, dict[str, Any]]]
    sizes: dict[str, Size]
    origin: str
    ignore_identical_ids: bool

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def path(self) -> str:
        """Hub path of the written data set."""
        return str(self.metadata["dataset"]["path"])


def as_stock(task: Any, namespace: str) -> StockTask:
    """A registered task of this package, as stock mteb can express it: judgments of 1 and 0, no excluded documents.

    Raises:
        DataError: data that cannot be read; or exclusions that ``ignore_identical_ids`` cannot express.
    """
    task.load_data()
    excludes = any(data.excluded for data in task.protocol_data.values())
    languages = task.metadata.hf_subsets_to_langscripts
    splits: dict[str, dict[str, Any]] = {}
    eval_langs: dict[str, list[str]] = {}
    for subset, data in task.protocol_data.items():
        held = {subset: task.dataset[subset][SPLIT]}
        if excludes:
            held = _by_subtask(task.facts, subset, data, held[subset])
        splits |= held
        eval_langs |= dict.fromkeys(held, languages[subset])
    path = f"{namespace}/{task.metadata.name.lower()}"
    return StockTask(
        facts=task.facts,
        class_name=type(task).__name__,
        metadata={
            **task.metadata.model_dump(),
            "dataset": {"path": path, "revision": REVISION},
            "eval_langs": eval_langs["default"] if list(eval_langs) == ["default"] else eval_langs,
        },
        dataset={subset: {SPLIT: split} for subset, split in splits.items()},
        sizes={subset: _size(split) for subset, split in splits.items()},
        origin=_origin(task.facts, task.protocol_data.values()),
        ignore_identical_ids=excludes,
    )


def write_statistics(task: StockTask, folder: Path) -> None:
    """Write mteb's descriptive statistics, computed by mteb, as TYPE/NAME.json into a folder."""
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Metadata(TaskMetadata):
        @property
        def descriptive_stat_path(self) -> Path:
            return folder / str(self.type) / f"{self.name}.json"

    stock = type(task.class_name, (AbsTaskRetrieval,), {"metadata": Metadata(**task.metadata)})()
    stock.dataset, stock.data_loaded = task.dataset, True
    stock.calculate_descriptive_statistics(overwrite_results=True)


def _by_subtask(facts: Task, subset: str, data: RetrievalData, split: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A subset for each subtask of the data, in which a query has the id of the document that is excluded from it.

    Over all subtasks queries share an excluded document, so that these ids would not tell them apart.
    """
    from datasets import Dataset

    subtasks = {name: queries for name, queries in data.slices.items() if not name.startswith("language=")}
    parts: dict[str, dict[str, Any]] = {}
    for name, queries in (subtasks or {subset: list(data.queries)}).items():
        anchors = _anchors(f"{facts.name}, {name}", data, queries)
        short = name.partition("_")[2] or name  # c2c_cross_lang: the task says c2c
        parts[short if subset in ("default", name) else f"{subset}_{short}"] = {
            "corpus": split["corpus"],
            "queries": Dataset.from_dict({"id": list(anchors.values()), "text": [data.queries[q] for q in anchors]}),
            "relevant_docs": {anchor: split["relevant_docs"][query] for query, anchor in anchors.items()},
            "top_ranked": None,
        }
    return parts


def _anchors(place: str, data: RetrievalData, queries: Iterable[str]) -> dict[str, str]:
    """Query id -> id of the one document that is excluded from it and from no other of the queries."""
    advice = "Stock mteb takes the document off by the query's id (ignore_identical_ids); these data need coreb-tasks."
    anchors = {}
    for query in queries:
        excluded = data.excluded.get(query, frozenset())
        if len(excluded) != 1:
            raise DataError(f"{place}, query {query!r}", f"excludes {len(excluded)} documents, expected one", advice)
        (anchors[query],) = excluded
    shared = [anchor for anchor, count in Counter(anchors.values()).items() if count > 1]
    if shared:
        owners = [query for query, anchor in anchors.items() if anchor == shared[0]]
        raise DataError(
            place,
            f"{len(shared)} documents are excluded from several queries of one subtask, expected one each; "
            f"the first: {shared[0]!r} from {owners}",
            advice,
        )
    return anchors


def _size(split: dict[str, Any]) -> Size:
    grades = [grade for judged in split["relevant_docs"].values() for grade in judged.values()]
    padded = sum(text != text.strip() for text in split["corpus"]["text"])
    return Size(len(split["corpus"]), len(split["queries"]), len(grades), sum(grades), padded)


def _origin(facts: Task, loaded: Iterable[RetrievalData]) -> str:
    loaded = list(loaded)
    version = [f"commit {commit}" for commit in dict.fromkeys(data.commit for data in loaded) if commit]
    version += [f"content sha256 {data_hash}" for data_hash in dict.fromkeys(data.data_hash for data in loaded)]
    return f"`{facts.path}`, split `{facts.release}`, {', '.join(version)}"
