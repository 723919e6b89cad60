"""Overrides of encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.types import PromptType

if TYPE_CHECKING:
    from mteb.models import CrossEncoderProtocol, EncoderProtocol, ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader


_WRAPPERS_DEEP = 5  # more than mteb's wrappers nest


class SearchError(ValueError):
    """A model's run cannot be scored. Names task, query and document."""


class ProtocolEncoder:
    """An encoder that gets documents as they stand in the corpus, and whose similarities are finite.

    On a reranking task it is told that the task is one of retrieval: some models have prompts by type of task, and
    those of type Reranking are made for other than query and corpus (or would change what the first stage of the same
    model found).

    mteb strips the white space around a document (not around a query), which takes the first line's indentation off
    code. mteb hands the untouched text along as ``body``; corpora here have no titles, so that it is the whole text.

    Attributes:
        prompts: side (query, document) -> the string that was put before its texts; a side is missing where the model
            does not show it.
        broken: side -> id of the first text whose vector is not finite; a side is missing where all are.
    """

    def __init__(self, model: EncoderProtocol) -> None:
        self.model = model
        self.prompts: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.pools: Iterator[tuple[str, Sequence[str]]] = iter(())  # query and candidates of the similarities to come
        self._ids: dict[str, Sequence[str]] = {}
        self._task = ""

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # asked for while being copied
            raise AttributeError(name)
        return getattr(self.model, name)

    def encode(
        self, inputs: DataLoader[BatchedInput], *, prompt_type: PromptType | None = None, **kwargs: Any
    ) -> Array:
        if prompt_type == PromptType.document:
            inputs = _with_body_as_text(inputs)
        side = "" if prompt_type is None else prompt_type.value
        task = kwargs["task_metadata"]
        reranks = task.type == "Reranking"
        self._task = task.name
        self._ids[side] = list(inputs.dataset["id"])
        if reranks:
            kwargs["task_metadata"] = task.model_copy(update={"type": "Retrieval"})
        with _seen_prompts(self.model) as seen:
            vectors = self.model.encode(inputs, prompt_type=prompt_type, **kwargs)
        if reranks:
            vectors = _dense(vectors)
        added = getattr(self.model, "added_prompts", {}).get(side)  # by wrappers.prompts
        if seen or added is not None:
            self.prompts[side] = (seen[0] if seen else "") + (added or "")
        position = _first_not_finite(vectors)
        if position:
            self.broken[side] = self._ids[side][position[0]]
        return vectors

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """As the model's.

        Raises:
            SearchError: a similarity that is not finite.
        """
        scores = self.model.similarity(embeddings1, embeddings2)
        query, candidates = next(self.pools, (None, ()))
        if query is None:
            _check_finite(scores, self._ids.get("query", ()), self._ids.get("document", ()), self._task)
        else:
            _check_finite(scores, [query], candidates, self._task)
        return scores

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        return self.model.similarity_pairwise(embeddings1, embeddings2)


def _with_body_as_text(inputs: DataLoader[BatchedInput]) -> DataLoader[BatchedInput]:
    from torch.utils.data import DataLoader

    documents: Any = inputs.dataset
    texts = documents.add_column("verbatim", documents["body"]).remove_columns("text")
    return DataLoader(
        texts.rename_column("verbatim", "text"),
        batch_size=inputs.batch_size,
        collate_fn=inputs.collate_fn,
        num_workers=inputs.num_workers,
    )


def _dense(vectors: Any) -> Any:
    """Vectors that candidates can be picked from by position; those of a sparse model cannot."""
    import torch

    return vectors.to_dense() if isinstance(vectors, torch.Tensor) and vectors.is_sparse else vectors


class ProtocolCrossEncoder:
    """A cross-encoder that gets documents as they stand in the corpus, and whose scores are finite."""

    def __init__(self, model: CrossEncoderProtocol) -> None:
        self.model = model

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    def predict(self, inputs1: DataLoader[BatchedInput], inputs2: DataLoader[BatchedInput], **kwargs: Any) -> Array:
        """As the model's.

        Raises:
            SearchError: a score that is not finite, or not one score for each pair.
        """
        inputs2.collate_fn = partial(_collate_body, inputs2.collate_fn)
        scores = self.model.predict(inputs1, inputs2, **kwargs)
        task, pairs = kwargs["task_metadata"].name, len(inputs1.dataset)
        if len(scores) != pairs:
            raise SearchError(f"{task}: the model gave {len(scores)} scores for {pairs} pairs")
        position = _first_not_finite(scores if hasattr(scores, "dtype") else np.asarray(scores, dtype=float))
        if position:
            pair = position[0]
            ids = [inputs.dataset[pair]["id"] for inputs in (inputs1, inputs2)]
            raise not_finite(task, ids[0], ids[1], float(np.ravel(scores[pair])[0]))
        return scores


def _collate_body(collate: Callable[[list[dict[str, Any]]], Any], rows: list[dict[str, Any]]) -> Any:
    """Batch by batch, because a candidate stands in many pairs: a copy of the text for each would not fit."""
    return collate([{**row, "text": row["body"]} for row in rows])


@contextmanager
def _seen_prompts(model: Any) -> Iterator[list[str]]:
    """Collects the prompts that a sentence-transformers model within ``model`` puts before its texts.

    Every way to a prompt (mteb's tables, instructions, the model's own defaults) ends at ``preprocess``.
    """
    inner = _with_preprocess(model)
    seen: list[str] = []
    if inner is None:
        yield seen
        return
    _watch_preprocess(type(inner))
    token = _WATCHED.set((inner, seen))
    try:
        yield seen
    finally:
        _WATCHED.reset(token)


# The model that encodes in this thread, and its prompts so far.
_WATCHED: ContextVar[tuple[Any, list[str]] | None] = ContextVar("coreb_tasks_watched", default=None)


def _watch_preprocess(watched: Any) -> None:
    """Let a class tell its prompts, once and for good: models encode in several threads, and are sent to processes."""
    original = watched.preprocess
    if hasattr(original, "tells_coreb_tasks"):
        return

    @wraps(original)
    def preprocess(self: Any, inputs: Any, *args: Any, prompt: str | None = None, **kwargs: Any) -> Any:
        inner, seen = _WATCHED.get() or (None, [])
        if self is inner:
            seen.append(prompt or "")
        return original(self, inputs, *args, prompt=prompt, **kwargs)

    preprocess.tells_coreb_tasks = True  # type: ignore[attr-defined]
    watched.preprocess = preprocess


def _with_preprocess(model: Any) -> Any:
    """The sentence-transformers model within mteb's wrappers, which may hold one another; None without one."""
    for _ in range(_WRAPPERS_DEEP):
        if hasattr(type(model), "preprocess"):
            return model
        held = getattr(model, "__dict__", {})
        model = held.get("model", held.get("_model"))
    return None


def _first_not_finite(values: Any) -> list[int]:
    """Position of the first number that is not finite, row first; empty where all are (or rows differ in shape)."""
    import torch

    if not isinstance(values, torch.Tensor | np.ndarray):
        return []
    tensor = torch.as_tensor(values)
    found = torch.isfinite(tensor.to_dense() if tensor.is_sparse else tensor)
    return [] if found.all() else [int(position) for position in np.argwhere(~found.cpu().numpy())[0]]


def _check_finite(scores: Any, queries: Sequence[str], documents: Sequence[str], task: str) -> None:
    position = _first_not_finite(scores)
    if position and tuple(scores.shape) == (len(queries), len(documents)):
        row, column = position
        raise not_finite(task, queries[row], documents[column], float(scores[row, column]))


def not_finite(task: str, query: str, document: str, score: float) -> SearchError:
    """The error for a score that is NaN or infinite."""
    return SearchError(
        f"{task}: the score of query {query!r} and document {document!r} is {score}. "
        "Scores must be finite: look at the vectors of the two (precision, empty or overlong input)."
    )
