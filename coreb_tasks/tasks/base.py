"""The task base: mteb's retrieval task with the protocol's rules on top."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval

from coreb_tasks import rules, scoring
from coreb_tasks.data import UNRESOLVED, RetrievalData, load_subsets, pinned_hash, revision_of
from coreb_tasks.data.predictions import Header, check_same, read_header, write_predictions
from coreb_tasks.facts import SPLIT, Task
from coreb_tasks.wrappers.search import CrossEncoderSearch, ProtocolSearch, protocol_search

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.models import ModelMeta, MTEBModels
    from mteb.results import TaskResult
    from mteb.types import ScoresDict

logger = logging.getLogger(__name__)


class ProtocolRetrieval(AbsTaskRetrieval):
    """A retrieval task that scores by the protocol of its paper.

    mteb searches, scores with pytrec_eval and writes results; this class hands it checked data, judgments at the
    relevance level and rankings without excluded documents, and adds the scores that mteb lacks.

    Attributes:
        facts: the task's row of the table.
        relevance_level: the lowest grade that counts as relevant.
        protocol_data: the data with all grades, by subset, once loaded.
    """

    facts: ClassVar[Task]
    relevance_level: int
    metadata: TaskMetadata
    data_loaded: bool
    k_values = rules.CUT_OFFS
    protocol_data: dict[str, RetrievalData]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.protocol_data = {}

    def data_hash(self, subset: str) -> str | None:
        """sha256 of a subset's data version; None where it is not pinned and the data are not loaded."""
        loaded = self.protocol_data.get(subset)
        return pinned_hash(self.facts, subset) if loaded is None else loaded.data_hash

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Load and check the data of the subsets to run.

        Raises:
            DataError: any fault of the data.
        """
        if not self.data_loaded:
            self.take_data(load_subsets(self.facts, self.hf_subsets))

    def take_data(self, data_by_subset: Mapping[str, RetrievalData]) -> None:
        """Take data that are loaded, by subset, in mteb's shape."""
        self.protocol_data = dict(data_by_subset)
        corpora = {id(data.corpus): _table(data.corpus) for data in self.protocol_data.values()}
        self.dataset = {
            subset: {
                SPLIT: {
                    "corpus": corpora[id(data.corpus)],
                    "queries": _table(data.queries),
                    "relevant_docs": rules.at_level(data.qrels, self.relevance_level),
                    "top_ranked": None,
                }
            }
            for subset, data in self.protocol_data.items()
        }
        self._resolve_revision({subset: data.data_hash for subset, data in self.protocol_data.items()})
        self.data_loaded = True

    def unload_data(self) -> None:
        super().unload_data()
        self.protocol_data = {}

    def _evaluate_subset(self, model: MTEBModels, data_split: Any, **kwargs: Any) -> ScoresDict:
        subset = kwargs["hf_subset"]
        searcher = protocol_search(model, self.protocol_data[subset].excluded)
        try:
            self._check_before_search(searcher, subset, kwargs.get("prediction_folder"))
            scores: ScoresDict = super()._evaluate_subset(searcher, self._candidates(data_split, **kwargs), **kwargs)
        except BaseException:
            self.unload_data()  # mteb does so only at the end of an evaluation; a later one would take them as they are
            raise
        return {**scores, **self._prompts(searcher), **searcher.measured}

    def _check_before_search(self, searcher: ProtocolSearch, subset: str, prediction_folder: Path | None) -> None:
        """What can be known to fail, before hours of search."""
        if isinstance(searcher, CrossEncoderSearch) and self.facts.reranks is None:
            raise TypeError(
                f"{self.metadata.name} is a retrieval task, and {searcher.mteb_model_meta.name} is a cross-encoder, "
                f"which only reranks. Run it on {self.facts.reranking}."
            )
        file = None if prediction_folder is None else self._predictions_path(prediction_folder)
        if file is not None and file.exists():
            check_same(file, self._header(searcher.mteb_model_meta, subset), read_header(file))

    def _candidates(self, data_split: Any, **kwargs: Any) -> Any:
        """The data that mteb evaluates; a reranking task adds the candidates of each query."""
        return data_split

    def _save_task_predictions(
        self, predictions: Any, model: MTEBModels, prediction_folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        """As mteb, with a header that says which data the predictions are of; never into another model's file.

        Deeper than what is scored, for rerankers and fusion.
        """
        predictions = getattr(model, "run", predictions)
        header = self._header(model.mteb_model_meta, hf_subset)
        write_predictions(self._predictions_path(prediction_folder), header, hf_subset, hf_split, predictions)

    def _header(self, meta: ModelMeta, subset: str) -> Header:
        data_hash = {subset: self.protocol_data[subset].data_hash}
        return Header(meta.name, meta.revision, meta.experiment_name, self.metadata.name, data_hash)

    def convert_to_reranking(self, top_ranked_path: str | Path, top_k: int = rules.POOL_DEPTH) -> Self:
        """Refused: mteb would keep its scores as those of the retrieval task. A reranking task takes the predictions.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"{self.metadata.name} stays a retrieval task. "
            f"Use mteb.get_task({self.facts.reranking!r}).convert_to_reranking(...)."
        )

    def _prompts(self, searcher: ProtocolSearch) -> dict[str, str]:
        """The prompts that the model really put before its texts, where it shows them."""
        prompts = searcher.prompts
        instruction = (self.metadata.prompt or {}).get("query")
        meta = searcher.mteb_model_meta
        # Prompts of its metadata for this very task, or of the user's, are meant.
        own = f"{self.metadata.name}-query" in (meta.loader_kwargs.get("model_prompts") or {})
        own = own or "query_prompt" in (meta.experiment_kwargs or {})
        if instruction and meta.use_instructions and not own and instruction not in prompts.get("query", instruction):
            logger.warning(
                "%s takes instructions, but its queries carry the prompt %r and not the instruction of %s (%r): the "
                "score is that of the model's own prompt. To use the task's, load the model with its template for "
                "instructions.",
                meta.name,
                prompts["query"],
                self.metadata.name,
                instruction,
            )
        return {f"{side}_prompt": prompt for side, prompt in prompts.items()}

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
        data = self.protocol_data[hf_subset]
        ranked = scoring.rankings(results, qrels)
        metrics = scoring.by_query(scores, ranked, qrels)
        compared = self._compared(metrics, qrels, hf_subset)
        metrics = {query: {**own, **compared[query]} for query, own in metrics.items()}
        queries = scoring.query_scores(ranked, data, self.relevance_level, metrics)
        provenance = {"relevance_level": self.relevance_level, "data_hash": data.data_hash}
        if data.commit is not None:
            provenance["dataset_commit"] = data.commit
        return {
            **scoring.summary(queries),
            **scoring.parts(queries, data.slices),
            **provenance,
        }

    def _compared(
        self, metrics: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]], subset: str
    ) -> dict[str, dict[str, float]]:
        """Metrics of each query that the model's own are compared with; a reranking task has some."""
        return {query: {} for query in metrics}

    def why_stale(self, result: TaskResult, *, load: bool = False) -> str | None:
        """Why a stored result of this task is not what it would score now; None where it is.

        What the data of a subset are is known where they are pinned or loaded; with ``load`` they are read to know,
        else not compared.

        Raises:
            DataError: they cannot be read.
        """
        scored = [scores for split in result.scores.values() for scores in split]
        subsets = [scores["hf_subset"] for scores in scored if scores["hf_subset"] in self.facts.subsets]
        hashes = {subset: self.data_hash(subset) for subset in dict.fromkeys([*subsets, *self.hf_subsets])}
        unknown = [subset for subset, data_hash in hashes.items() if data_hash is None]
        if load and unknown:
            hashes |= {subset: data.data_hash for subset, data in load_subsets(self.facts, unknown).items()}
            self._resolve_revision(hashes)
        stored: list[tuple[str, Any, Any]] = [("dataset_revision", result.dataset_revision, self.metadata.revision)]
        for scores in scored:
            stored.append(("relevance_level", scores.get("relevance_level"), self.relevance_level))
            stored.append(("data_hash", scores.get("data_hash"), hashes.get(scores["hf_subset"])))
        return next(
            (
                f"its {key} is {was!r}, the task's is {now!r}"
                for key, was, now in stored
                if was != now and now not in (None, UNRESOLVED)
            ),
            None,
        )

    def _resolve_revision(self, hashes: Mapping[str, str | None]) -> None:
        """Give a task whose data are not pinned the revision of the data that were found."""
        if type(self).metadata.revision == UNRESOLVED and hashes.keys() >= self.facts.subsets.keys():
            found = [str(hashes[subset]) for subset in self.facts.subsets]
            dataset = {**self.metadata.dataset, "revision": revision_of(found)}
            self.metadata = self.metadata.model_copy(update={"dataset": dataset})


def _table(texts: Mapping[str, str]) -> Dataset:
    return Dataset.from_dict({"id": list(texts), "text": list(texts.values())})
