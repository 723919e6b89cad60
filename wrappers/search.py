"""Overrides of search: depth, documents that are no candidates, and a run that is complete and finite."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from mteb.models import (
    CrossEncoderProtocol,
    EncoderProtocol,
    SearchCrossEncoderWrapper,
    SearchEncoderWrapper,
    SearchProtocol,
)

from coreb_tasks.wrappers.encoding import VerbatimDocuments

if TYPE_CHECKING:
    from mteb.models import ModelMeta, MTEBModels
    from mteb.types import RetrievalOutputType

# mteb's own. A model with a search of its own (BM25) breaks ties at its last rank as it likes, so that another
# depth can change its scores at 100.
SEARCH_DEPTH = 1000


class SearchError(ValueError):
    """A model's run cannot be scored. Names task, query and document."""


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
        return EncoderSearch(VerbatimDocuments(model), excluded)
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

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.document_ids = frozenset(corpus["id"])
        super().index(corpus, **kwargs)  # type: ignore[misc]

    def search(self, queries: Any, *, top_k: int, **kwargs: Any) -> RetrievalOutputType:
        """As ``SearchProtocol.search``; ``top_k`` is not used, since the exclusion comes before every cut.

        Raises:
            SearchError: a score that is not finite, or an id that is not in the corpus or queries.
        """
        depth = max(top_k, self.depth() + max(map(len, self.excluded.values()), default=0))
        run = super().search(queries, top_k=depth, **kwargs)  # type: ignore[misc]
        task = kwargs["task_metadata"].name
        unknown = run.keys() - set(queries["id"])
        if unknown:
            raise SearchError(f"{task}: the model's run holds unknown queries, such as {min(unknown)!r}")
        return {query: self._clean(run.get(query, {}), query, task) for query in queries["id"]}

    def depth(self) -> int:
        return SEARCH_DEPTH

    def _clean(self, ranked: Mapping[str, float], query: str, task: str) -> dict[str, float]:
        scores = {document: float(score) for document, score in ranked.items()}
        for document, score in scores.items():
            if document not in self.document_ids:
                raise SearchError(f"{task}: for query {query!r} the model returned unknown document {document!r}")
            if not math.isfinite(score):
                raise SearchError(
                    f"{task}: the score of query {query!r} and document {document!r} is {score}. "
                    "Scores must be finite: look at the vectors of the two (precision, empty or overlong input)."
                )
        for document in self.excluded.get(query, ()):
            scores.pop(document, None)
        best = heapq.nlargest(SEARCH_DEPTH, scores.items(), key=lambda item: (item[1], item[0]))
        return dict(best)


class EncoderSearch(ProtocolSearch, SearchEncoderWrapper):
    """mteb's exact search with an encoder."""

    def __init__(self, model: EncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        super().__init__(model)
        self.excluded = excluded

    def depth(self) -> int:
        """The whole corpus: torch.topk breaks ties by position, so that a shallower run would depend on row order."""
        return len(self.document_ids)


class CrossEncoderSearch(ProtocolSearch, SearchCrossEncoderWrapper):
    """mteb's scoring of given candidates with a cross-encoder."""

    def __init__(self, model: CrossEncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        super().__init__(model)
        self.excluded = excluded


class _Delegate:
    """Hands index and search on to a model that brings its own."""

    def __init__(self, model: SearchProtocol) -> None:
        self.model = model

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
