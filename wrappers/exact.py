"""Exact search over vectors in memory, as an index backend of mteb's search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coreb_tasks.wrappers.errors import not_finite

if TYPE_CHECKING:
    from mteb.types import Array

_SCORES_AT_ONCE = 5_000_000  # numbers of a block of queries times documents: 20 MB


class ExactIndex:
    """The best documents of each query by a model's similarity, ties by document id descending, at the last rank too.

    mteb copies what a backend finds into heaps and dicts; here the run is kept as it is found, in ``run``, and mteb
    gets nothing. Queries are searched in blocks, so that no more than one block of scores is in memory.

    Attributes:
        task: name for errors.
        queries: ids of the queries to search, in the order of their vectors.
        run: query id -> document id -> score, best first, once searched.
    """

    def __init__(self) -> None:
        self.task = ""
        self.queries: Sequence[str] = ()
        self.run: dict[str, dict[str, float]] = {}
        self.clear()

    def add_documents(self, embeddings: Array, idxs: Sequence[str]) -> None:
        self._ids = list(idxs[:])
        self._vectors = _single_precision(embeddings)
        self._rank = np.empty(len(self._ids), dtype=np.int64)
        self._rank[sorted(range(len(self._ids)), key=self._ids.__getitem__)] = np.arange(len(self._ids))

    def clear(self) -> None:
        self._ids: list[str] = []
        self._vectors: Any = None
        self._rank: Any = np.empty(0, dtype=np.int64)

    def search(
        self,
        embeddings: Array,
        top_k: int,
        similarity_fn: Callable[[Array, Array], Array],
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        query_idx_to_id: Mapping[int, str] | None = None,
    ) -> tuple[list[list[float]], list[list[int]]]:
        """Search all documents, or the given candidates of each query.

        Args:
            embeddings: of the queries, shape (queries, dimension).
            top_k: documents a query; of candidates all are scored.
            similarity_fn: the model's; (queries, dimension) and (documents, dimension) to (queries, documents).
            top_ranked: query id -> candidates.

        Raises:
            SearchError: a similarity that is not finite.
        """
        vectors = _single_precision(embeddings)
        found = (
            self._all(vectors, top_k, similarity_fn)
            if top_ranked is None
            else self._candidates(vectors, similarity_fn, top_ranked)
        )
        self.run = dict(zip(self.queries, found, strict=True))
        nothing: list[list[Any]] = [[] for _ in self.queries]
        return nothing, nothing

    def _all(self, vectors: Any, top_k: int, similarity: Callable[[Array, Array], Array]) -> Iterator[dict[str, float]]:
        size = max(1, _SCORES_AT_ONCE // max(1, len(self._ids)))
        for start in range(0, len(self.queries), size):
            queries = self.queries[start : start + size]
            scores = self._scores(similarity, _rows(vectors, range(start, start + len(queries))), self._vectors)
            self._check(scores, queries, self._ids)
            yield from self._best(scores, top_k)

    def _candidates(
        self, vectors: Any, similarity: Callable[[Array, Array], Array], pools: Mapping[str, Sequence[str]]
    ) -> Iterator[dict[str, float]]:
        positions = {document: position for position, document in enumerate(self._ids)}
        for row, query in enumerate(self.queries):
            pool = pools.get(query, ())
            if not pool:
                yield {}
                continue
            of_the_pool = _rows(self._vectors, [positions[document] for document in pool])
            scores = self._scores(similarity, _rows(vectors, [row]), of_the_pool)
            self._check(scores, [query], pool)
            yield dict(zip(pool, scores[0].tolist(), strict=True))

    def _scores(self, similarity: Callable[[Array, Array], Array], queries: Any, documents: Any) -> Any:
        import torch

        return torch.as_tensor(similarity(queries, documents)).float()

    def _check(self, scores: Any, queries: Sequence[str], documents: Sequence[str]) -> None:
        import torch

        finite = torch.isfinite(scores)
        if not finite.all():
            row, column = (int(position) for position in (~finite).nonzero()[0])
            raise not_finite(self.task, queries[row], documents[column], float(scores[row, column]))

    def _best(self, scores: Any, top_k: int) -> Iterator[dict[str, float]]:
        import torch

        top_k = min(top_k, scores.shape[1])
        values, positions = torch.topk(scores, top_k, dim=1)
        lowest = values[:, -1:]
        # topk breaks ties by chance: where more documents have the last score than there is room for, ids choose.
        crowded = ((scores >= lowest).sum(dim=1) > top_k).tolist()
        rows = zip(values.tolist(), positions.tolist(), strict=True)
        for row, (row_values, row_positions) in enumerate(rows):
            if crowded[row]:
                row_values, row_positions = self._by_id(scores[row].cpu().numpy(), row_values, top_k)
            yield {self._ids[position]: value for position, value in zip(row_positions, row_values, strict=True)}

    def _by_id(self, scores: Any, values: list[float], top_k: int) -> tuple[list[float], list[int]]:
        lowest = np.float32(values[-1])
        above, tied = np.flatnonzero(scores > lowest), np.flatnonzero(scores == lowest)
        room = top_k - len(above)
        chosen = tied[np.argpartition(self._rank[tied], len(tied) - room)[len(tied) - room :]]
        kept = np.concatenate([above, chosen])
        return scores[kept].tolist(), kept.tolist()


def _single_precision(vectors: Any) -> Any:
    """Half precision as single, in which sums are taken; anything else as it is."""
    import torch

    if isinstance(vectors, torch.Tensor):
        return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors
    return vectors.astype(np.float32) if getattr(vectors, "dtype", None) == np.float16 else vectors


def _rows(vectors: Any, rows: Sequence[int]) -> Any:
    import torch

    if isinstance(vectors, torch.Tensor):
        return vectors.index_select(0, torch.as_tensor(list(rows), device=vectors.device))
    if isinstance(rows, range) and not isinstance(vectors, list):
        return vectors[rows.start : rows.stop]
    return vectors[list(rows)] if isinstance(vectors, np.ndarray) else [vectors[row] for row in rows]
