"""Overrides of search: depth, documents that are no candidates, and a run that is complete and finite."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.models import (
    CrossEncoderProtocol,
    EncoderProtocol,
    HybridSearch,
    SearchCrossEncoderWrapper,
    SearchEncoderWrapper,
    SearchProtocol,
)

from coreb_tasks.wrappers.encoding import ProtocolEncoder, SearchError, not_finite

if TYPE_CHECKING:
    from mteb.models import ModelMeta, MTEBModels
    from mteb.types import RetrievalOutputType

_LARGEST = float(np.finfo(np.float32).max)
# mteb's own. A model with a search of its own (BM25) breaks ties at its last rank as it likes, so that another
# depth can change its scores at 100.
SEARCH_DEPTH = 1000
_TIED_SCORES = 5_000_000  # scores held at once of queries that are searched to the end of the corpus


def protocol_search(model: MTEBModels, excluded: Mapping[str, Set[str]]) -> ProtocolSearch:
    """mteb's search over a model of any kind, with a run that holds what the protocol scores.

    Args:
        model: encoder, cross-encoder, or a model that brings its own search.
        excluded: query id -> documents that are removed from the query's ranking.

    Raises:
        TypeError: the model is of none of mteb's kinds.
    """
    if isinstance(model, SearchProtocol):
        return OwnSearch(model, excluded)
    if isinstance(model, EncoderProtocol):
        return EncoderSearch(model, excluded)
    if isinstance(model, CrossEncoderProtocol):
        return CrossEncoderSearch(model, excluded)
    raise TypeError(f"expected an mteb encoder, cross-encoder or search model, got {type(model).__name__}")


class ProtocolSearch:
    """Mixin over a ``SearchProtocol``: searches deep enough, then hands on a clean run.

    A clean run has an entry for every query (empty where the model returned none), only known documents, none that
    is excluded, only finite scores, and at most ``SEARCH_DEPTH`` documents, best first, ties by document id
    descending as in trec_eval.
    """

    excluded: Mapping[str, Set[str]]
    document_ids: Set[str]
    mteb_model_meta: ModelMeta
    prompts: Mapping[str, str] = {}

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.document_ids = frozenset(corpus["id"])
        super().index(corpus, **kwargs)  # type: ignore[misc]

    def search(self, queries: Any, *, top_k: int, **kwargs: Any) -> RetrievalOutputType:
        """As ``SearchProtocol.search``, for metrics down to rank ``top_k``.

        Raises:
            SearchError: a score that is not finite, or an id that is not in the corpus or queries.
        """
        most_excluded = max(map(len, self.excluded.values()), default=0)
        run = self.deep_search(queries, top_k + most_excluded, max(top_k, SEARCH_DEPTH) + most_excluded, **kwargs)
        task = kwargs["task_metadata"].name
        unknown = run.keys() - set(queries["id"])
        if unknown:
            raise SearchError(f"{task}: the model's run holds unknown queries, such as {min(unknown)!r}")
        return {query: self._clean(run.get(query, {}), query, task) for query in queries["id"]}

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """A run of ``depth`` documents a query, of which the first ``top_k`` are scored."""
        run: RetrievalOutputType = super().search(queries, top_k=depth, **kwargs)  # type: ignore[misc]
        return run

    def _clean(self, ranked: Mapping[str, float], query: str, task: str) -> dict[str, float]:
        scores = dict(zip(ranked, _float32(ranked, query, task), strict=True))
        for document, score in scores.items():
            if document not in self.document_ids:
                raise SearchError(f"{task}: for query {query!r} the model returned unknown document {document!r}")
            if not abs(score) < _LARGEST:  # NaN too, and what FAISS gives for a vector that it cannot score
                raise not_finite(task, query, document, score)
        for document in self.excluded.get(query, ()):
            scores.pop(document, None)
        return _best(scores, SEARCH_DEPTH)


def _best(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    """The first documents of a ranking, best first; ties by document id descending."""
    return dict(heapq.nlargest(depth, scores.items(), key=lambda item: (item[1], item[0])))


def _float32(ranked: Mapping[str, float], query: str, task: str) -> list[float]:
    """The scores as pytrec_eval compares them, so that mteb's metrics and the protocol's see one ranking."""
    try:
        with np.errstate(over="ignore"):
            return list(np.asarray([float(score) for score in ranked.values()]).astype(np.float32).tolist())
    except (TypeError, ValueError) as error:
        raise SearchError(f"{task}: a score of query {query!r} is not a number ({error})") from error


class EncoderSearch(ProtocolSearch, SearchEncoderWrapper):
    """mteb's exact search with an encoder."""

    task_corpus: Any

    def __init__(self, model: EncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        self.encoder = ProtocolEncoder(model)
        super().__init__(self.encoder)
        self.excluded = excluded

    @property
    def prompts(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.encoder.prompts

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """As for every model, but to the end of the corpus where a tie at the last rank reaches into ``top_k``.

        torch.topk breaks ties by position, so that the row order would choose which of the tied are scored.
        """
        corpus = self.task_corpus
        run = super().deep_search(queries, top_k, depth, **kwargs)
        scores = {query: sorted(ranked.values(), reverse=True) for query, ranked in run.items()}
        tied = [q for q, s in scores.items() if len(s) < len(self.document_ids) and s[top_k - 1] == s[-1]]
        if tied and kwargs.get("top_ranked") is None:
            positions = [position for position, query in enumerate(queries["id"]) if query in set(tied)]
            size = max(1, _TIED_SCORES // len(self.document_ids))
            for start in range(0, len(positions), size):
                self.task_corpus = corpus
                whole = super().deep_search(
                    queries.select(positions[start : start + size]), top_k, len(self.document_ids), **kwargs
                )
                run |= {query: _best(ranked, depth) for query, ranked in whole.items()}
        return run


class CrossEncoderSearch(ProtocolSearch, SearchCrossEncoderWrapper):
    """mteb's scoring of given candidates with a cross-encoder."""

    def __init__(self, model: CrossEncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        super().__init__(model)
        self.excluded = excluded


class _Delegate:
    """Hands index and search on to a model that brings its own."""

    def __init__(self, model: SearchProtocol) -> None:
        self.encoders: list[ProtocolEncoder] = []
        self.model = self._with_protocol_encoders(model)

    def _with_protocol_encoders(self, model: SearchProtocol) -> SearchProtocol:
        """A copy in which the encoders that mteb's own wrappers hold are ours."""
        if isinstance(model, SearchEncoderWrapper):
            model = copy.copy(model)
            model.model = ProtocolEncoder(model.model)
            self.encoders.append(model.model)
        elif isinstance(model, HybridSearch):
            model = copy.copy(model)
            model.wrapped_models = [self._with_protocol_encoders(part) for part in model.wrapped_models]
        return model

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.model.index(corpus=corpus, **kwargs)

    def search(self, queries: Any, *, top_k: int, **kwargs: Any) -> RetrievalOutputType:
        return self.model.search(queries=queries, top_k=top_k, **kwargs)


class OwnSearch(ProtocolSearch, _Delegate):
    """The search that a model brings (BM25, multi-vector, hybrid, an index)."""

    def __init__(self, model: SearchProtocol, excluded: Mapping[str, Set[str]]) -> None:
        super().__init__(model)
        self.excluded = excluded

    @property
    def prompts(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.encoders[0].prompts if len(self.encoders) == 1 else {}

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """As for every model. A fusion or an index can turn a vector that is not finite into a score that is.

        Raises:
            SearchError: a vector that is not finite.
        """
        run = super().deep_search(queries, top_k, depth, **kwargs)
        for encoder in self.encoders:
            if encoder.broken:
                query = encoder.broken.get("query", queries["id"][0])
                document = encoder.broken.get("document", min(self.document_ids))
                raise not_finite(kwargs["task_metadata"].name, query, document, float("nan"))
        return run
