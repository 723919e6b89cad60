"""Models in folders: a name for them, and a hash of all that can change what they give."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

_NO_PART_OF_IT = (
    "readme*",
    "training_args.*",
    "trainer_state.json",
    "optimizer.*",
    "scheduler.*",
    "scaler.*",
    "rng_state*",
    "*_predictions.json",
)
# mteb puts these into every folder of results, which may lie in the model's own.
_RESULTS = {"model_meta.json", "run_settings.jsonl"}


def local_name(folder: Path) -> str:
    """A name that mteb can make a folder's name of and read back: it writes two underscores for a slash."""
    name = re.sub("_{2,}", "_", re.sub(r"[^\w.+-]+", "-", folder.resolve().name)).strip("-.")[:100]
    return f"local/{name or 'model'}"


def content_hash(folder: Path, *how: object) -> str:
    """40 hex digits of the sha256 of all that can change a model's output: its files, and how they are loaded.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256(f"{' '.join(map(str, how))}\n".encode())
    for name, file in sorted(_parts(folder)):
        with file.open("rb") as content:
            digest.update(f"{hashlib.file_digest(content, 'sha256').hexdigest()} {name}\n".encode())
    return digest.hexdigest()[:40]


def _parts(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a model by their names within it; links are followed, each folder once."""
    seen = set()
    for root, folders, files in os.walk(folder, followlinks=True):
        place = Path(root)
        results = place != folder and set(files) >= _RESULTS
        if results or place.resolve() in seen:
            folders.clear()
            continue
        seen.add(place.resolve())
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in files:
            if not name.startswith(".") and not any(fnmatch(name.lower(), pattern) for pattern in _NO_PART_OF_IT):
                yield (place / name).relative_to(folder).as_posix(), place / name
