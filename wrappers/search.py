"""Overrides of search: depth, documents that are no candidates, and a run that is complete and finite."""

from __future__ import annotations

import copy
import heapq
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
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
from mteb.types import PromptType

from coreb_tasks.wrappers.encoding import ProtocolEncoder
from coreb_tasks.wrappers.errors import SearchError, not_finite
from coreb_tasks.wrappers.exact import ExactIndex
from coreb_tasks.wrappers.loaders import loader
from coreb_tasks.wrappers.pairs import ProtocolCrossEncoder

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.models import ModelMeta, MTEBModels
    from mteb.types import Array, RetrievalOutputType

logger = logging.getLogger(__name__)

_LARGEST = float(np.finfo(np.float32).max)
# mteb's own. A model with a search of its own (BM25) breaks ties at its last rank as it likes, so that another
# depth can change its scores at 100.
SEARCH_DEPTH = 1000
# Documents that a run keeps of each query: the deepest cut-off is 100, and rerankers take 128.
RUN_DEPTH = 128
_SCORES_AT_ONCE = 5_000_000  # of queries that are searched to the end of the corpus


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


def search_corpus(
    model: MTEBModels,
    excluded: Mapping[str, Set[str]],
    *,
    corpus: Any,
    queries: Any,
    top_k: int,
    **kwargs: Any,
) -> RetrievalOutputType:
    """A model's clean run over a whole corpus: query id -> the ``top_k`` best documents -> score.

    Args:
        model, excluded: as in ``protocol_search``.
        corpus, queries: data sets with the columns ``id`` and ``text``.
        top_k: the ranks that count, as in ``SearchProtocol.search``.
        kwargs: what mteb hands to ``index`` and ``search``.

    Raises:
        SearchError: a run that cannot be scored.
        TypeError: the model only reranks.
    """
    searcher = protocol_search(model, excluded)
    if isinstance(searcher, CrossEncoderSearch):
        raise TypeError(f"{model.mteb_model_meta.name} is a cross-encoder, which cannot search a corpus: name another")
    searcher.index(corpus, **kwargs)
    return searcher.search(queries, top_k=top_k, **kwargs)


class ProtocolSearch:
    """Mixin over a ``SearchProtocol``: searches deep enough, then hands on a clean run.

    A clean run has an entry for every query (empty where the model returned none), only known documents, none that
    is excluded, only candidates where it reranks, only finite scores, and no more documents than are asked for, best
    first, ties by document id descending as in trec_eval.

    Attributes:
        run: the same, ``RUN_DEPTH`` deep or deeper, for predictions.
        prompts: side (query, document) -> the string that the model put before its texts, where it shows it.
        measured: what the search measured beside the run, by its key in a result.
    """

    excluded: Mapping[str, Set[str]]
    document_ids: Set[str]
    mteb_model_meta: ModelMeta
    prompts: Mapping[str, str] = {}
    measured: Mapping[str, float] = {}
    run: RetrievalOutputType

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.document_ids = frozenset(corpus["id"][:])
        super().index(corpus, **kwargs)  # type: ignore[misc]

    def search(self, queries: Any, *, top_k: int, **kwargs: Any) -> RetrievalOutputType:
        """As ``SearchProtocol.search``, for metrics down to rank ``top_k``; with ``top_ranked`` it reranks.

        Raises:
            SearchError: a score that is not finite, or an id that is not in the corpus or queries.
        """
        pools = kwargs.get("top_ranked")
        kept = max(top_k, RUN_DEPTH, *map(len, pools.values() if pools else ()))
        most_excluded = max(map(len, self.excluded.values()), default=0)
        run = self.deep_search(queries, kept + most_excluded, max(kept, SEARCH_DEPTH) + most_excluded, **kwargs)
        task = kwargs["task_metadata"].name
        ids = queries["id"][:]
        unknown = run.keys() - set(ids)
        if unknown:
            raise SearchError(f"{task}: the model's run holds unknown queries, such as {min(unknown)!r}")
        clean = {query: self._clean(run.get(query, {}), query, task) for query in ids}
        if pools is not None:
            candidates = {query: frozenset(pools[query]) for query in clean}
            clean = {q: {d: s for d, s in ranked.items() if d in candidates[q]} for q, ranked in clean.items()}
            self._measure_left_out(clean, pools, task)
        self.run = {query: self.first(ranked, kept) for query, ranked in clean.items()}
        return {query: dict(islice(ranked.items(), top_k)) for query, ranked in self.run.items()}

    def first(self, ranked: Mapping[str, float], depth: int) -> dict[str, float]:
        """The first documents of what was found for a query, best first; ties by document id descending."""
        return dict(heapq.nlargest(depth, ranked.items(), key=lambda item: (item[1], item[0])))

    def _measure_left_out(self, run: RetrievalOutputType, pools: Mapping[str, Sequence[str]], task: str) -> None:
        left_out = {query: len(pools[query]) - len(ranked) for query, ranked in run.items()}
        missing = sum(left_out.values())
        if missing:
            query = max(left_out, key=left_out.__getitem__)
            logger.warning(
                "%s: %s gave no score to %d candidates (query %r: %d of %d); they count as not retrieved.",
                *(task, self.mteb_model_meta.name, missing, query, left_out[query], len(pools[query])),
            )
            self.measured = {**self.measured, "n_candidates_without_score": missing}

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """A run of ``depth`` documents a query, of which the first ``top_k`` are scored."""
        run: RetrievalOutputType = super().search(queries, top_k=depth, **kwargs)  # type: ignore[misc]
        return run

    def _clean(self, ranked: Mapping[str, float], query: str, task: str) -> Mapping[str, float]:
        """What a model returned for a query, in single precision, without excluded documents, in any order."""
        scores = dict(zip(ranked, _float32(ranked, query, task), strict=True))
        for document, score in scores.items():
            if document not in self.document_ids:
                raise SearchError(f"{task}: for query {query!r} the model returned unknown document {document!r}")
            if not abs(score) < _LARGEST:  # NaN too, and what FAISS gives for a vector that it cannot score
                raise not_finite(task, query, document, score)
        for document in self.excluded.get(query, ()):
            scores.pop(document, None)
        return scores


def _parts(queries: Any, wanted: Set[str], documents: int) -> Iterator[Any]:
    """The wanted queries in parts of which every document's score can be held at once."""
    positions = [position for position, query in enumerate(queries["id"][:]) if query in wanted]
    size = max(1, _SCORES_AT_ONCE // documents)
    for start in range(0, len(positions), size):
        yield queries.select(positions[start : start + size])


def _float32(ranked: Mapping[str, float], query: str, task: str) -> list[float]:
    """The scores as pytrec_eval compares them, so that mteb's metrics and the protocol's see one ranking."""
    try:
        with np.errstate(over="ignore"):
            return list(np.asarray([float(score) for score in ranked.values()]).astype(np.float32).tolist())
    except (TypeError, ValueError) as error:
        raise SearchError(f"{task}: a score of query {query!r} is not a number ({error})") from error


class EncoderSearch(ProtocolSearch):
    """Exact search with an encoder: no deeper than needed, exact in its ties, and lean."""

    def __init__(self, model: EncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        self.encoder = ProtocolEncoder(model)
        self.excluded = excluded

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.encoder.mteb_model_meta

    @property
    def prompts(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.encoder.prompts

    def index(self, corpus: Any, **kwargs: Any) -> None:
        vectors = self._encode(corpus, PromptType.document, **kwargs)
        self._index = ExactIndex(corpus["id"][:], vectors)

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """As for every model; deeper than ``top_k`` there is nothing to find, as ties at the last rank are exact."""
        pools, task = kwargs.pop("top_ranked", None), kwargs["task_metadata"].name
        vectors = self._encode(queries, PromptType.query, **kwargs)
        ids = queries["id"][:]
        return self._index.search(ids, vectors, top_k, self.encoder.model.similarity, pools=pools, task=task)

    def _encode(
        self,
        rows: Any,
        side: PromptType,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Mapping[str, Any],
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> Array:
        inputs = loader(rows, side, encode_kwargs.get("batch_size", 32), num_proc)
        where = {"task_metadata": task_metadata, "hf_split": hf_split, "hf_subset": hf_subset}
        return self.encoder.encode(inputs, prompt_type=side, **where, **encode_kwargs)

    def _clean(self, ranked: Mapping[str, float], query: str, task: str) -> Mapping[str, float]:
        # The index has checked the rest.
        excluded = self.excluded.get(query)
        return {d: score for d, score in ranked.items() if d not in excluded} if excluded else ranked

    def first(self, ranked: Mapping[str, float], depth: int) -> dict[str, float]:
        return dict(islice(ranked.items(), depth))  # in order as the index has found them


class CrossEncoderSearch(ProtocolSearch, SearchCrossEncoderWrapper):
    """mteb's scoring of given candidates with a cross-encoder."""

    def __init__(self, model: CrossEncoderProtocol, excluded: Mapping[str, Set[str]]) -> None:
        super().__init__(ProtocolCrossEncoder(model))
        self.excluded = excluded

    def deep_search(self, queries: Any, top_k: int, depth: int, **kwargs: Any) -> RetrievalOutputType:
        """As for every model; what the model measures (``YesNoReranker``: share of truncated pairs) is handed on."""
        run = super().deep_search(queries, top_k, depth, **kwargs)
        self.measured = self.model.measured
        return run


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
        """As for every model, but to the end of the corpus for queries with candidates that the model did not reach.

        Some models (BM25) cut their ranking before they look for the candidates in it.

        Raises:
            SearchError: a vector that is not finite: a fusion or an index can turn it into a score that is.
        """
        try:
            run = super().deep_search(queries, top_k, depth, **kwargs)
        except ValueError:  # mteb's own, which names neither query nor document
            self._check_vectors(queries, kwargs["task_metadata"].name)
            raise
        self._check_vectors(queries, kwargs["task_metadata"].name)
        pools = kwargs.get("top_ranked")
        if pools is None or depth >= len(self.document_ids) or self.encoders:
            return run
        unreached = {query for query in queries["id"][:] if set(pools[query]) - run.get(query, {}).keys()}
        for part in _parts(queries, unreached, len(self.document_ids)):
            run |= super().deep_search(part, top_k, len(self.document_ids), **kwargs)
        return run

    def _check_vectors(self, queries: Any, task: str) -> None:
        for encoder in self.encoders:
            if encoder.broken:
                query = encoder.broken.get("query", queries["id"][0])
                document = encoder.broken.get("document", min(self.document_ids))
                raise not_finite(task, query, document, float("nan"))
