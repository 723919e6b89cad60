"""Exact search over vectors in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from coreb_tasks.wrappers.errors import not_finite

if TYPE_CHECKING:
    from mteb.types import Array

    Similarity = Callable[[Array, Array], Array]

_SCORES_AT_ONCE = 5_000_000  # numbers of a block of queries times documents: 20 MB


class ExactIndex:
    """The best documents of each query by a model's similarity, ties by document id descending, at the last rank too.

    Queries are searched in blocks, so that no more than one block of scores is in memory.
    """

    def __init__(self, ids: Sequence[str], vectors: Array) -> None:
        """Take documents: ids, and vectors of shape (documents, dimension)."""
        self._ids = list(ids)
        self._vectors = _single_precision(vectors)
        self._rank = np.empty(len(self._ids), dtype=np.int64)
        self._rank[sorted(range(len(self._ids)), key=self._ids.__getitem__)] = np.arange(len(self._ids))

    def search(
        self,
        queries: Sequence[str],
        vectors: Array,
        top_k: int,
        similarity: Similarity,
        *,
        pools: Mapping[str, Sequence[str]] | None = None,
        task: str = "",
    ) -> dict[str, dict[str, float]]:
        """Search all documents, or the candidates of each query.

        Args:
            queries, vectors: ids, and vectors of shape (queries, dimension).
            top_k: documents a query; of candidates all are scored.
            similarity: the model's; (queries, dimension) and (documents, dimension) to (queries, documents).
            pools: query id -> candidates.
            task: its name, for errors.

        Returns:
            Query id -> document id -> score, best first.

        Raises:
            SearchError: a similarity that is not finite.
        """
        vectors = _single_precision(vectors)
        found = (
            self._all(queries, vectors, top_k, similarity, task)
            if pools is None
            else self._candidates(queries, vectors, similarity, pools, task)
        )
        return dict(zip(queries, found, strict=True))

    def _all(
        self, queries: Sequence[str], vectors: Any, top_k: int, similarity: Similarity, task: str
    ) -> Iterator[dict[str, float]]:
        size = max(1, _SCORES_AT_ONCE // max(1, len(self._ids)))
        for start in range(0, len(queries), size):
            block = queries[start : start + size]
            scores = _scores(similarity, _rows(vectors, range(start, start + len(block))), self._vectors)
            _check(scores, block, self._ids, task)
            yield from self._best(scores, top_k)

    def _candidates(
        self,
        queries: Sequence[str],
        vectors: Any,
        similarity: Similarity,
        pools: Mapping[str, Sequence[str]],
        task: str,
    ) -> Iterator[dict[str, float]]:
        positions = {document: position for position, document in enumerate(self._ids)}
        for row, query in enumerate(queries):
            pool = pools.get(query, ())
            if not pool:
                yield {}
                continue
            of_the_pool = _rows(self._vectors, [positions[document] for document in pool])
            scores = _scores(similarity, _rows(vectors, [row]), of_the_pool)
            _check(scores, [query], pool, task)
            yield _ordered(pool, scores[0].tolist())

    def _best(self, scores: Any, top_k: int) -> Iterator[dict[str, float]]:
        import torch

        count = scores.shape[1]
        values, positions = torch.topk(scores, min(top_k + 1, count), dim=1)
        tied = (values[:, 1:] == values[:, :-1]).any(dim=1).tolist()
        # topk breaks ties by chance: where more documents have the last score than there is room for, ids choose.
        crowded = (values[:, -1] == values[:, -2]).tolist() if 0 < top_k < count else [False] * len(scores)
        rows = zip(values[:, :top_k].tolist(), positions[:, :top_k].tolist(), strict=True)
        for row, (row_values, row_positions) in enumerate(rows):
            if crowded[row]:
                row_values, row_positions = self._by_id(scores[row].cpu().numpy(), row_values, top_k)
            ids = [self._ids[position] for position in row_positions]
            yield _ordered(ids, row_values) if tied[row] else dict(zip(ids, row_values, strict=True))

    def _by_id(self, scores: Any, values: list[float], top_k: int) -> tuple[list[float], list[int]]:
        lowest = np.float32(values[-1])
        above, tied = np.flatnonzero(scores > lowest), np.flatnonzero(scores == lowest)
        room = top_k - len(above)
        chosen = tied[np.argpartition(self._rank[tied], len(tied) - room)[len(tied) - room :]]
        kept = np.concatenate([above, chosen])
        return scores[kept].tolist(), kept.tolist()


def _scores(similarity: Similarity, queries: Any, documents: Any) -> Any:
    import torch

    return torch.as_tensor(similarity(queries, documents)).float()


def _check(scores: Any, queries: Sequence[str], documents: Sequence[str], task: str) -> None:
    import torch

    if scores.numel() and not all(map(isfinite, (float(scores.amin()), float(scores.amax())))):  # NaN shows in both
        row, column = (int(position) for position in (~torch.isfinite(scores)).nonzero()[0])
        raise not_finite(task, queries[row], documents[column], float(scores[row, column]))


def _ordered(ids: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    return {document: score for score, document in sorted(zip(scores, ids, strict=True), reverse=True)}


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
