"""Facts that were measured on the data: row counts and content hashes that a data set must have."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Pin(NamedTuple):
    """What one config of a data set must hold: its number of rows, and the sha256 of what is scored of them."""

    rows: int
    sha256: str


@cache
def pins(path: str, release: str) -> dict[str, Pin]:
    """The pins of a data set (hub path and split), by config; KeyError where none are recorded."""
    recorded = json.loads(files(__name__).joinpath("pins.json").read_text(encoding="utf-8"))
    return {config: Pin(**pin) for config, pin in recorded[path][release].items()}
