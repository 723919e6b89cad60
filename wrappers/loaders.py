"""Loaders of texts: others of the same rows, or the same with other texts.

Texts are changed batch by batch, as models read them: a copy of each would not fit where one stands in many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mteb.types import PromptType

if TYPE_CHECKING:
    from mteb.types import BatchedInput
    from torch.utils.data import DataLoader


def loader(rows: Any, side: PromptType, batch_size: int, num_proc: int | None = None) -> DataLoader[BatchedInput]:
    """A loader as mteb makes it of texts of a side, but of texts as they stand in the data.

    Args:
        rows: data set with ``id`` and ``text``, without titles.
    """
    from torch.utils.data import DataLoader

    also = {PromptType.document: "body", PromptType.query: "query"}[side]  # what mteb calls the text besides
    dataset: Any = rows.add_column(also, rows["text"][:])
    workers = num_proc if num_proc is not None and num_proc > 1 else 0
    return DataLoader(dataset, batch_size=batch_size, collate_fn=_lists, num_workers=workers)


def _lists(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def with_rows(inputs: DataLoader[BatchedInput], rows: Sequence[int]) -> DataLoader[BatchedInput]:
    """A loader of some rows of another."""
    dataset: Any = inputs.dataset
    return _loader(inputs, dataset.select(rows), inputs.collate_fn)


def verbatim(inputs: DataLoader[BatchedInput]) -> DataLoader[BatchedInput]:
    """Documents as they stand in the corpus.

    mteb strips the white space around a document (not around a query), which takes the first line's indentation off
    code. It hands the untouched text along as ``body``; corpora here have no titles, so that it is the whole text.
    """
    return _loader(inputs, inputs.dataset, partial(_collate, inputs.collate_fn, _body))


def prompted(inputs: DataLoader[BatchedInput], prompt: str) -> DataLoader[BatchedInput]:
    """The same with a prompt before every text."""
    return _loader(inputs, inputs.dataset, partial(_collate, inputs.collate_fn, partial(_prompted, prompt)))


def column(inputs: DataLoader[BatchedInput], name: str) -> list[str]:
    """A column of all rows, in one go: row by row is slow."""
    dataset: Any = inputs.dataset
    return list(dataset[name][:])


def _loader(
    inputs: DataLoader[BatchedInput], dataset: Any, collate: Callable[[list[Any]], Any]
) -> DataLoader[BatchedInput]:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=inputs.batch_size, collate_fn=collate, num_workers=inputs.num_workers)


def _collate(collate: Callable[[list[Any]], Any], texts: Callable[[Any], list[str]], rows: list[Any]) -> Any:
    batch = collate(rows)
    return {**batch, "text": texts(batch)}


def _body(batch: Any) -> list[str]:
    return list(batch["body"])


def _prompted(prompt: str, batch: Any) -> list[str]:
    return [prompt + text for text in batch["text"]]
