"""The task base: mteb's retrieval task with the protocol's rules on top."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval

from coreb_tasks.data import RetrievalData, data_hash, load
from coreb_tasks.facts import Task
from coreb_tasks.tasks import rules
from coreb_tasks.wrappers.search import protocol_search

if TYPE_CHECKING:
    from mteb.models import MTEBModels
    from mteb.results import TaskResult
    from mteb.types import ScoresDict

logger = logging.getLogger(__name__)
SUBSET, SPLIT = "default", "test"


class ProtocolRetrieval(AbsTaskRetrieval):
    """A retrieval task that scores by the protocol of its paper.

    mteb searches, scores with pytrec_eval and writes results; this class hands it checked data, judgments at the
    relevance level and rankings without excluded documents, and adds the scores that mteb lacks.

    Attributes:
        facts: the task's row of the table.
        relevance_level: the lowest grade that counts as relevant.
        protocol_data: the data with all grades, by subset and split, once loaded.
    """

    facts: ClassVar[Task]
    relevance_level: int
    data_loaded: bool
    k_values = rules.CUT_OFFS
    protocol_data: dict[str, dict[str, RetrievalData]]

    @property
    def data_hash(self) -> str:
        """sha256 that stands for the data version."""
        return data_hash(self.facts)

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Load and check the data.

        Raises:
            DataError: any fault of the data.
        """
        if self.data_loaded:
            return
        data = load(self.facts)
        self.protocol_data = {SUBSET: {SPLIT: data}}
        self.dataset = {SUBSET: {SPLIT: _mteb_data(data, self.relevance_level)}}
        self.data_loaded = True

    def unload_data(self) -> None:
        super().unload_data()
        self.protocol_data = {}

    def _evaluate_subset(self, model: MTEBModels, data_split: Any, **kwargs: Any) -> ScoresDict:
        data = self.protocol_data[kwargs["hf_subset"]][kwargs["hf_split"]]
        return super()._evaluate_subset(protocol_search(model, data.excluded), data_split, **kwargs)

    def task_specific_scores(
        self,
        scores: dict[str, dict[str, float]],
        qrels: Mapping[str, Mapping[str, int]],
        results: Mapping[str, Mapping[str, float]],
        hf_split: str,
        hf_subset: str,
    ) -> dict[str, Any]:
        """The scores that mteb lacks, and what the numbers stand on (see docs/scores.md).

        Args:
            scores: query id -> pytrec_eval's metrics.
            qrels: judgments at the relevance level.
            results: the clean run.
            hf_split, hf_subset: which data they are of.
        """
        data = self.protocol_data[hf_subset][hf_split]
        ranked = {query: rules.ranking(results[query]) for query in scores}
        relevant = {query: [d for d, grade in qrels[query].items() if grade > 0] for query in scores}
        metrics = {q: rules.query_metrics(scores[q], ranked[q], relevant[q]) for q in scores}
        intruded = {q: rules.hard_negative_intrudes(ranked[q], data.qrels[q], self.relevance_level) for q in scores}

        def summary(queries: Iterable[str]) -> dict[str, float]:
            queries = list(queries)
            return {
                **rules.mean_metrics([metrics[q] for q in queries]),
                **rules.intrusion_rate(intruded[q] for q in queries),
                "n_queries": len(queries),
            }

        answerable = [query for query in scores if relevant[query]]
        parts = dict(data.slices)
        if 0 < len(answerable) < len(scores):
            parts["positive_only"] = answerable
        provenance = {"relevance_level": self.relevance_level, "data_hash": self.data_hash}
        if data.commit is not None:
            provenance["dataset_commit"] = data.commit
        return {
            **rules.intrusion_rate(intruded.values()),
            "n_queries": len(scores),
            "n_queries_answered": sum(bool(results[query]) for query in scores),
            "n_queries_without_positive": len(scores) - len(answerable),
            **{f"{part}/{key}": value for part, queries in parts.items() for key, value in summary(queries).items()},
            **provenance,
        }

    def why_stale(self, result: TaskResult) -> str | None:
        """Why a stored result of this task is not what it would score now; None where it is."""
        expected = {"relevance_level": self.relevance_level, "data_hash": self.data_hash}
        stored: list[tuple[str, Any, Any]] = [("dataset_revision", result.dataset_revision, self.metadata.revision)]
        for split in result.scores.values():
            stored += [(key, scores.get(key), value) for scores in split for key, value in expected.items()]
        return next((f"its {key} is {was!r}, the task's is {now!r}" for key, was, now in stored if was != now), None)


def _mteb_data(data: RetrievalData, level: int) -> dict[str, Any]:
    return {
        "corpus": Dataset.from_dict({"id": list(data.corpus), "text": list(data.corpus.values())}),
        "queries": Dataset.from_dict({"id": list(data.queries), "text": list(data.queries.values())}),
        "relevant_docs": rules.at_level(data.qrels, level),
        "top_ranked": None,
    }
