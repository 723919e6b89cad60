"""The task base of reranking: a retrieval task on the candidates of a first stage."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from coreb_tasks import rules, scoring
from coreb_tasks.data import RetrievalData
from coreb_tasks.data.predictions import Run, hash_of
from coreb_tasks.facts import FIRST_STAGE_VARIABLE
from coreb_tasks.tasks.base import ProtocolRetrieval
from coreb_tasks.tasks.first_stage import FirstStage, Given, Pools, Request, first_stage
from coreb_tasks.wrappers.search import search_corpus

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.models import MTEBModels
    from mteb.results import TaskResult
    from mteb.types import ScoresDict

_SHARED_OPTIONS = ("batch_size", "show_progress_bar")
COMPARED = ("ndcg_at_10", "recall_at_10", "mrr_at_10")


class ProtocolReranking(ProtocolRetrieval):
    """A reranking task: the retrieval task's data, grades, exclusions, slices and scores, on candidates only.

    CoREB (arXiv:2605.04615), reranking protocol: the model sorts the ``POOL_DEPTH`` best documents of a first stage,
    and what counts is the difference in nDCG@10 to the first stage. Denominators come from the full judgments; an
    excluded document is no candidate.

    Attributes:
        first_stage: name of a model that mteb knows, a prediction file or a folder of such, or a run (query id ->
            document id -> score; or subset -> such a run). None: what ``COREB_TASKS_FIRST_STAGE`` says.
        pool_depth: candidates of a query, at most.
        results_folder: folder to keep a model's candidates in; None: they are not kept.
        retrieval_metadata: mteb's metadata of the retrieval task, under which the first stage searches.
    """

    retrieval_metadata: ClassVar[TaskMetadata]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first_stage: Given | None = None
        self.pool_depth = rules.POOL_DEPTH
        self.results_folder: Path | None = None
        self._stage: FirstStage | None = None
        self._pools: dict[str, Pools] = {}

    def convert_to_reranking(self, top_ranked_path: str | Path, top_k: int = rules.POOL_DEPTH) -> Self:
        """Take the candidates from the predictions of an earlier evaluation: a file, or the folder that it lies in."""
        self.first_stage, self.pool_depth = Path(top_ranked_path), top_k
        return self

    def unload_data(self) -> None:
        super().unload_data()
        self._stage = None
        self._pools = {}

    def _evaluate_subset(self, model: MTEBModels, data_split: Any, **kwargs: Any) -> ScoresDict:
        scores = super()._evaluate_subset(model, data_split, **kwargs)
        return rules.within_pool(scores, scores["pool_depth"])

    def _candidates(self, data_split: Any, **kwargs: Any) -> Any:
        subset, data = kwargs["hf_subset"], self.protocol_data[kwargs["hf_subset"]]
        # Anew for each subset, since what it is named by can change between evaluations of loaded data.
        self._stage = first_stage(self.first_stage, self.facts.retrieval, self.hf_subsets)
        names = (self.facts.retrieval, self.metadata.name)
        request = Request(*names, subset, data, self.pool_depth, self.results_folder)
        # The reranker's own options are not the first stage's.
        options = {key: kwargs["encode_kwargs"][key] for key in _SHARED_OPTIONS if key in kwargs["encode_kwargs"]}

        def search(model: MTEBModels) -> Run:
            try:
                run: Run = search_corpus(
                    model,
                    data.excluded,
                    corpus=data_split["corpus"],
                    queries=data_split["queries"],
                    top_k=self.pool_depth,
                    task_metadata=self.retrieval_metadata,
                    encode_kwargs=options,
                    **{key: kwargs.get(key) for key in ("hf_split", "hf_subset", "num_proc")},
                )
            except TypeError as error:
                raise TypeError(
                    f"first stage of {names[1]}: {error} ({FIRST_STAGE_VARIABLE}, --first-stage)"
                ) from error
            return run

        with kwargs["timer"]("First stage", split=kwargs["hf_split"], subset=subset):
            self._pools[subset] = self._stage.pools(request, search)
        return {**data_split, "top_ranked": {query: list(pool) for query, pool in self._pools[subset].items()}}

    def task_specific_scores(
        self,
        scores: dict[str, dict[str, float]],
        qrels: Mapping[str, Mapping[str, int]],
        results: Mapping[str, Mapping[str, float]],
        hf_split: str,
        hf_subset: str,
    ) -> dict[str, Any]:
        """As of the retrieval task, and what the pool was."""
        pools = self._pools[hf_subset]
        return {
            **super().task_specific_scores(scores, qrels, results, hf_split, hf_subset),
            "pool_depth": max(map(len, pools.values()), default=0),
            "n_queries_without_candidates": sum(not pool for pool in pools.values()),
            "n_queries_with_short_pool": self._short_pools(pools, self.protocol_data[hf_subset]),
            "pool_hash": hash_of(pools),
            **(self._recorded(self._stage) if self._stage else {}),
        }

    def _short_pools(self, pools: Pools, data: RetrievalData) -> int:
        """Queries with fewer candidates than were asked for and the corpus has."""
        return sum(
            len(pool) < min(self.pool_depth, len(data.corpus) - len(data.excluded.get(query, ())))
            for query, pool in pools.items()
        )

    def _recorded(self, stage: FirstStage) -> dict[str, Any]:
        return {**stage.recorded(), "first_stage_depth": self.pool_depth}

    def _compared(
        self, metrics: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]], subset: str
    ) -> dict[str, dict[str, float]]:
        """The first stage's own metrics, the differences to them, and the most that sorting the pool can reach."""
        pools = self._pools[subset]
        ideal = {query: rules.ideal_order(pool, qrels[query]) for query, pool in pools.items()}
        first, ceiling = (scoring.metrics(run, qrels, cut_offs=(10,)) for run in (pools, ideal))
        return {
            query: {
                **{f"first_stage/{key}": first[query][key] for key in COMPARED},
                **{f"rerank_delta/{key}": own[key] - first[query][key] for key in COMPARED},
                **{f"pool_ceiling/{key}": ceiling[query][key] for key in COMPARED},
            }
            for query, own in metrics.items()
        }

    def why_stale(self, result: TaskResult, *, load: bool = False) -> str | None:
        """As of the retrieval task. With ``load``, a result on the candidates of another first stage is stale too."""
        why = super().why_stale(result, load=load)
        if why is not None or not load:
            return why
        now = self._recorded(first_stage(self.first_stage, self.facts.retrieval, self.hf_subsets))
        stored = [scores for split in result.scores.values() for scores in split]
        keys = (
            [*now, *(key for key in stored[0] if key.startswith("first_stage_") and key not in now)] if stored else []
        )
        return next(
            (
                f"its {key} is {scores.get(key)!r}, the task's is {now.get(key)!r}"
                for scores in stored
                for key in keys
                if scores.get(key) != now.get(key)
            ),
            None,
        )
