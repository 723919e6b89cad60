"""Folders that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def new_folder(out: Path, last: str) -> Iterator[Path]:
    """A folder to write to, whose entries move to ``out`` once the block ends; nothing does after an error.

    Args:
        out: a new or an empty folder.
        last: the entry that is there only once everything is.

    Raises:
        FileExistsError: ``out`` is a file or holds something.
        OSError: it cannot be written to.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "is not empty" if out.is_dir() else "is a file"
        raise FileExistsError(f"{out} {what}; expected a new or an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out, prefix=".unfinished-") as unfinished:
        yield Path(unfinished)
        for entry in sorted(Path(unfinished).iterdir(), key=lambda entry: entry.name == last):
            entry.rename(out / entry.name)
