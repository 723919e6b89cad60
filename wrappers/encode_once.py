"""Encode each distinct text once: what a model has computed in this process is kept, and given again."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from coreb_tasks.wrappers.loaders import with_rows

if TYPE_CHECKING:
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader

CACHE_VARIABLE = "COREB_TASKS_CACHE_MB"
CACHE_MB = 2048  # where the variable is not set
_BYTES_A_ROW, _BYTES_A_TENSOR = 200, 600  # beside the numbers of a row, as an array or as a tensor


class Store:
    """Rows by space and text, of at most ``COREB_TASKS_CACHE_MB`` megabytes; 0 keeps nothing.

    A space holds what one owner (a model) computes in one way. Where room is short, the space that was used longest
    ago goes first; a space that does not fit alone keeps its first rows. Spaces of an owner that dies go with it.
    """

    def __init__(self) -> None:
        self._spaces: OrderedDict[Hashable, dict[bytes, Any]] = OrderedDict()
        self._bytes: dict[Hashable, int] = {}
        self._total = 0
        self._lock = RLock()  # models are evaluated in several threads, too
        self._owners: dict[int, Any] = {}

    @property
    def limit(self) -> int:
        """Bytes.

        Raises:
            ValueError: the variable is no number.
        """
        given = os.environ.get(CACHE_VARIABLE) or str(CACHE_MB)
        try:
            return int(float(given) * 2**20)
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"{CACHE_VARIABLE} is {given!r}, expected a number of megabytes (0 keeps nothing)"
            ) from error

    def space(self, owner: Any, *key: Hashable) -> Hashable | None:
        """The name of a space; None where nothing can be kept for that owner."""
        token = id(owner)
        if token not in self._owners:
            try:
                self._owners[token] = weakref.finalize(owner, self._forget, token)
            except TypeError:  # cannot be referred to weakly: another object may get its id
                return None
        return (token, *key)

    def get(self, space: Hashable) -> dict[bytes, Any]:
        """The rows of a space, as they are now."""
        limit = self.limit
        with self._lock:
            while self._total > max(limit, 0):  # it can be lowered meanwhile
                self._drop(next(iter(self._spaces)))
            if space in self._spaces:
                self._spaces.move_to_end(space)
            return dict(self._spaces.get(space, {}))

    def put(self, space: Hashable, rows: Mapping[bytes, Any]) -> None:
        """Keep rows (arrays or tensors), as far as there is room."""
        limit = self.limit
        with self._lock:
            held = self._spaces.setdefault(space, {})
            self._spaces.move_to_end(space)
            for key, row in rows.items():
                size = int(row.nbytes) + (_BYTES_A_ROW if isinstance(row, np.ndarray) else _BYTES_A_TENSOR)
                while self._total + size > limit and next(iter(self._spaces)) != space:
                    self._drop(next(iter(self._spaces)))
                if self._total + size > limit:
                    return
                if key not in held:
                    held[key] = row
                    self._bytes[space] = self._bytes.get(space, 0) + size
                    self._total += size

    def _drop(self, space: Hashable) -> None:
        del self._spaces[space]
        self._total -= self._bytes.pop(space, 0)

    def _forget(self, token: int) -> None:
        with self._lock:
            self._owners.pop(token, None)
            for space in [space for space in self._spaces if isinstance(space, tuple) and space[0] == token]:
                self._drop(space)


STORE = Store()


def digest(*texts: str) -> bytes:
    """A key for texts."""
    found = blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        found.update(len(encoded).to_bytes(8, "big") + encoded)
    return found.digest()


def encode_once(
    encode: Callable[[DataLoader[BatchedInput]], Array],
    inputs: DataLoader[BatchedInput],
    keys: Sequence[bytes],
    space: Hashable,
) -> Array:
    """Vectors of texts, each distinct one encoded once.

    Args:
        encode: encodes a loader; gives one vector for each of its rows.
        inputs: a loader of the texts.
        keys: of its rows; those with the same key have the same vector.
        space: where vectors are kept.

    Returns:
        As ``encode`` does: an array or tensor of shape (rows, dimension), or a list of vectors. Another form (sparse,
        on a device of its own) is encoded as it stands, repeated texts too.
    """
    kept = STORE.get(space)
    if STORE.limit <= 0:
        return encode(inputs)
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    fresh = sorted(row for key, row in first.items() if key not in kept)
    everything = len(fresh) == len(keys)
    if fresh:
        vectors = encode(inputs if everything else with_rows(inputs, fresh))
        if isinstance(vectors, list) and len(vectors) == len(fresh) and not kept:
            by_key = {keys[row]: vector for row, vector in zip(fresh, vectors, strict=True)}
            return [by_key[key] for key in keys]
        if not _has_rows(vectors, len(fresh)):
            return vectors if everything else encode(inputs)
        rows = {keys[row]: _copy(vectors[position]) for position, row in enumerate(fresh)}
        STORE.put(space, rows)
        if everything:
            return vectors
        kept |= rows
    return _stack([kept[key] for key in keys])


def _has_rows(vectors: Any, count: int) -> bool:
    import torch

    if isinstance(vectors, torch.Tensor):
        dense = vectors.layout == torch.strided and vectors.device.type == "cpu"
    else:
        dense = isinstance(vectors, np.ndarray)
    return dense and vectors.ndim == 2 and len(vectors) == count


def _copy(row: Any) -> Any:
    """Of its own, since a view would keep the whole array."""
    return row.copy() if isinstance(row, np.ndarray) else row.detach().clone()


def _stack(rows: Sequence[Any]) -> Array:
    import torch

    stacked: Array = np.stack(rows) if isinstance(rows[0], np.ndarray) else torch.stack(list(rows))
    return stacked
