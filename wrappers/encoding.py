"""Overrides of encoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.types import PromptType

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol, ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader


_WRAPPERS_DEEP = 5  # more than mteb's wrappers nest


class SearchError(ValueError):
    """A model's run cannot be scored. Names task, query and document."""


class ProtocolEncoder:
    """An encoder that gets documents as they stand in the corpus, and whose similarities are finite.

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
        self._task = kwargs["task_metadata"].name
        self._ids[side] = list(inputs.dataset["id"])
        with _seen_prompts(self.model) as seen:
            vectors = self.model.encode(inputs, prompt_type=prompt_type, **kwargs)
        self.prompts.update({side: seen[0]} if seen else {})
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
        _check_finite(scores, self._ids.get("query", ()), self._ids.get("document", ()), self._task)
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
    # A matrix of another shape is of reranked candidates, whose ids the run that it ends in shows.
    if position and tuple(scores.shape) == (len(queries), len(documents)):
        row, column = position
        raise not_finite(task, queries[row], documents[column], float(scores[row, column]))


def not_finite(task: str, query: str, document: str, score: float) -> SearchError:
    """The error for a score that is NaN or infinite."""
    return SearchError(
        f"{task}: the score of query {query!r} and document {document!r} is {score}. "
        "Scores must be finite: look at the vectors of the two (precision, empty or overlong input)."
    )
