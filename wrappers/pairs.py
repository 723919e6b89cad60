"""Overrides of cross-encoders."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.models import CrossEncoderWrapper

from coreb_tasks.wrappers.encode_once import STORE, digest
from coreb_tasks.wrappers.errors import SearchError, not_finite
from coreb_tasks.wrappers.known import state_of
from coreb_tasks.wrappers.loaders import verbatim, with_rows
from coreb_tasks.wrappers.yes_no import YesNoReranker

if TYPE_CHECKING:
    from mteb.models import CrossEncoderProtocol, ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader

# What a call says that changes no score, or changes it by the instruction alone.
_COSMETIC = {"batch_size", "show_progress_bar", "num_workers", "task_metadata", "hf_split", "hf_subset", "prompt_type"}
_ROWS_AT_ONCE = 1000  # texts that are read to tell pairs apart


class ProtocolCrossEncoder:
    """A cross-encoder that gets documents as they stand in the corpus, and whose scores are finite.

    Of mteb's own wrapper and of the yes/no reranker it is known what a score depends on: they score each pair of texts
    once in this process. Any other model may look at more than the texts, or at several pairs at once.

    Attributes:
        measured: what the model measures of each pair, in the mean over the pairs of the last call.
    """

    def __init__(self, model: CrossEncoderProtocol) -> None:
        self.model = model
        self.measured: dict[str, float] = {}

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return self.model.mteb_model_meta

    def predict(self, inputs1: DataLoader[BatchedInput], inputs2: DataLoader[BatchedInput], **kwargs: Any) -> Array:
        """As the model's.

        Args:
            inputs1, inputs2: queries and documents, row by row a pair.
            kwargs: as in mteb's ``CrossEncoderProtocol``.

        Returns:
            Scores of shape (pairs,).

        Raises:
            SearchError: a score that is not finite, or not one score for each pair.
        """
        self.measured = {}
        if not len(inputs1.dataset):
            return np.empty(0)
        inputs2 = verbatim(inputs2)
        space = self._space(kwargs) if STORE.limit > 0 else None
        rows = self._rows(inputs1, inputs2, kwargs) if space is None else self._once(inputs1, inputs2, kwargs, space)
        task = kwargs["task_metadata"].name
        for pair in np.flatnonzero(~np.isfinite(rows[:, 0])):
            query, document = (inputs.dataset[int(pair)]["id"] for inputs in (inputs1, inputs2))
            raise not_finite(task, query, document, float(rows[pair, 0]))
        names = getattr(self.model, "measures", ())
        self.measured = {name: float(rows[:, 1 + column].mean()) for column, name in enumerate(names)}
        return np.asarray(rows[:, 0])

    def _once(self, inputs1: Any, inputs2: Any, kwargs: Mapping[str, Any], space: Hashable) -> Any:
        keys = _pair_keys(inputs1.dataset, inputs2.dataset)
        kept = STORE.get(space)
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        fresh = sorted(row for key, row in first.items() if key not in kept)
        if fresh:
            rows = self._rows(with_rows(inputs1, fresh), with_rows(inputs2, fresh), kwargs)
            scored = {keys[row]: rows[position].copy() for position, row in enumerate(fresh)}
            STORE.put(space, scored)
            kept |= scored
        return np.array([kept[key] for key in keys])

    def _rows(self, inputs1: Any, inputs2: Any, kwargs: Mapping[str, Any]) -> Any:
        """Score and measures of each pair, shape (pairs, 1 + measures)."""
        predicted = self.model.predict(inputs1, inputs2, **kwargs)
        pairs, task = len(inputs1.dataset), kwargs["task_metadata"].name
        try:
            scores = _numbers(predicted)
        except (TypeError, ValueError) as error:
            raise SearchError(f"{task}: expected a number for each of {pairs} pairs ({error})") from error
        if scores.shape not in ((pairs,), (pairs, 1)):
            raise SearchError(f"{task}: the model gave scores of shape {scores.shape} for {pairs} pairs")
        measures = getattr(self.model, "measures", {}).values()
        return np.column_stack([scores.reshape(pairs), *map(_numbers, measures)])

    def _space(self, kwargs: Mapping[str, Any]) -> Hashable | None:
        model: Any = self.model
        if isinstance(model, YesNoReranker):
            instruction: str = model.instruction_of(kwargs["task_metadata"])
        elif type(model).predict is CrossEncoderWrapper.predict:
            instruction = ""
        else:
            return None
        options = repr(sorted((key, value) for key, value in kwargs.items() if key not in _COSMETIC))
        state = state_of(model.model, model)
        return None if state is None else STORE.space(model.model, instruction, options, state)


def _pair_keys(queries: Any, documents: Any) -> list[bytes]:
    """A key for each pair of texts, read in parts: a candidate's text stands in many pairs."""
    keys: list[bytes] = []
    for start in range(0, len(queries), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        keys += map(digest, queries[part]["text"], documents[part]["body"])
    return keys


def _numbers(values: Sequence[float] | Array) -> Any:
    """In double precision; a model may give a list, an array or a tensor."""
    import torch

    if isinstance(values, torch.Tensor):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values, dtype=np.float64)
