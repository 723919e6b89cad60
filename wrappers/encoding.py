"""Overrides of encoding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.types import PromptType

from coreb_tasks.wrappers.encode_once import STORE, digest, encode_once
from coreb_tasks.wrappers.errors import not_finite
from coreb_tasks.wrappers.known import known_inner, probe, state_of, watched
from coreb_tasks.wrappers.loaders import column, verbatim

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol, ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader


# What a call says that changes no vector, or changes it by the prompt alone.
_COSMETIC = {"batch_size", "show_progress_bar", "num_workers", "task_metadata", "hf_split", "hf_subset"}


class ProtocolEncoder:
    """An encoder that gets documents as they stand in the corpus, and whose similarities are finite.

    On a reranking task it is told that the task is one of retrieval: some models have prompts by type of task, and
    those of type Reranking are made for other than query and corpus (or would change what the first stage of the same
    model found).

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
        texts = column(inputs, "body" if prompt_type == PromptType.document else "text")
        if prompt_type == PromptType.document:
            inputs = verbatim(inputs)
        side = "" if prompt_type is None else prompt_type.value
        self._task = kwargs["task_metadata"].name
        self._ids[side] = column(inputs, "id")
        reranks = kwargs["task_metadata"].type == "Reranking"
        if reranks:
            kwargs["task_metadata"] = kwargs["task_metadata"].model_copy(update={"type": "Retrieval"})
        call = partial(self.model.encode, prompt_type=prompt_type, **kwargs)
        vectors = self._encode(call, inputs, texts, side, kwargs)
        if reranks:
            vectors = _dense(vectors)
        position = _first_not_finite(vectors)
        if position:
            self.broken[side] = self._ids[side][position[0]]
        return vectors

    def _encode(
        self,
        call: Callable[..., Array],
        inputs: DataLoader[BatchedInput],
        texts: Sequence[str],
        side: str,
        kwargs: Mapping[str, Any],
    ) -> Array:
        """Encode each text once where it is known what its vector depends on, and note the prompt."""
        space, prompt = self._space(call, inputs, side, kwargs)
        with watched(self.model) as seen:
            vectors = call(inputs) if space is None else encode_once(call, inputs, list(map(digest, texts)), space)
        # Nothing is seen where every text was known.
        shown = seen[0] if seen else prompt
        added = getattr(self.model, "added_prompts", {}).get(side)  # by wrappers.prompts
        if shown is not None or added is not None:
            self.prompts[side] = (shown or "") + (added or "")
        return vectors

    def _space(
        self, call: Callable[..., Array], inputs: DataLoader[BatchedInput], side: str, kwargs: Mapping[str, Any]
    ) -> tuple[Hashable | None, str | None]:
        """Where the vectors of this call are kept, and the prompt that they are for.

        With others for which nothing is different that changes a vector. Of mteb's wrappers around
        sentence-transformers all of that is known. Any other model may do with a task or a subset what it likes, and
        shares nothing.
        """
        inner = known_inner(self.model)
        state = None if inner is None else state_of(inner, self.model)
        probed = None if state is None else probe(call, inputs, self.model)
        # The range of the numbers of another precision is taken from all texts of a call.
        if probed is None or kwargs.get("precision", "float32") != "float32":
            return None, None
        options = repr(sorted((key, value) for key, value in kwargs.items() if key not in _COSMETIC))
        return STORE.space(inner, side, probed.prompt, probed.options, options, state), probed.prompt

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


def _dense(vectors: Any) -> Any:
    """Vectors that candidates can be picked from by position; those of a sparse model cannot."""
    import torch

    return vectors.to_dense() if isinstance(vectors, torch.Tensor) and vectors.is_sparse else vectors


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
