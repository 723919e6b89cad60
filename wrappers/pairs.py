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
        inputs2 = verbatim(inputs2)
        space = self._space(kwargs) if STORE.limit > 0 else None
        rows = self._rows(inputs1, inputs2, kwargs) if space is None else self._once(inputs1, inputs2, kwargs, space)
        task = kwargs["task_metadata"].name
        for pair in np.flatnonzero(~np.isfinite(rows[:, 0])):
            query, document = (inputs.dataset[int(pair)]["id"] for inputs in (inputs1, inputs2))
            raise not_finite(task, query, document, float(rows[pair, 0]))
        names = getattr(self.model, "measures", ())
        self.measured = {name: float(rows[:, 1 + column].mean()) for column, name in enumerate(names) if len(rows)}
        return np.asarray(rows[:, 0])

    def _once(self, inputs1: Any, inputs2: Any, kwargs: Mapping[str, Any], space: Hashable) -> Any:
        keys = _pair_keys(inputs1.dataset, inputs2.dataset)
        kept = dict(STORE.get(space))
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        fresh = sorted(row for key, row in first.items() if key not in kept)
        if fresh:
            rows = self._rows(with_rows(inputs1, fresh), with_rows(inputs2, fresh), kwargs)
            scored = {keys[row]: rows[position].copy() for position, row in enumerate(fresh)}
            STORE.put(space, scored)
            kept |= scored
        return np.array([kept[key] for key in keys]) if keys else np.empty((0, 1))

    def _rows(self, inputs1: Any, inputs2: Any, kwargs: Mapping[str, Any]) -> Any:
        """Score and measures of each pair, shape (pairs, 1 + measures)."""
        scores = self.model.predict(inputs1, inputs2, **kwargs)
        pairs = len(inputs1.dataset)
        if len(scores) != pairs:
            task = kwargs["task_metadata"].name
            raise SearchError(f"{task}: the model gave {len(scores)} scores for {pairs} pairs")
        measures = [getattr(self.model, "measures", {})[name] for name in getattr(self.model, "measures", ())]
        return np.column_stack([_numbers(scores), *map(_numbers, measures)])

    def _space(self, kwargs: Mapping[str, Any]) -> Hashable | None:
        model: Any = self.model
        if isinstance(model, YesNoReranker):
            settings = repr((model.instruction_of(kwargs["task_metadata"]), model.prefix, model.suffix, model.room))
            return STORE.space(model.model, settings, repr(model.tokenizer), state_of(model.model))
        if type(model).predict is CrossEncoderWrapper.predict:
            return STORE.space(model.model, model.query_prefix, model.passage_prefix, state_of(model.model))
        return None


def _pair_keys(queries: Any, documents: Any) -> list[bytes]:
    """A key for each pair of texts, read in parts: a candidate's text stands in many pairs."""
    keys: list[bytes] = []
    for start in range(0, len(queries), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        keys += map(digest, queries[part]["text"], documents[part]["body"])
    return keys


def _numbers(values: Sequence[float] | Array) -> Any:
    """Of shape (values,), in double precision; a model may give a list, an array or a tensor, of one column too."""
    import torch

    if isinstance(values, torch.Tensor):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)[:, 0]
