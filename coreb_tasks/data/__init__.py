"""Data: found on the hub, in a folder or in the package, checked, and brought into one shape. Knows no mteb."""

from coreb_tasks.data.errors import DataError, PredictionsError
from coreb_tasks.data.retrieval import (
    UNRESOLVED,
    RetrievalData,
    load,
    load_subsets,
    measure,
    pinned_hash,
    revision_of,
)

__all__ = [
    "UNRESOLVED",
    "DataError",
    "PredictionsError",
    "RetrievalData",
    "load",
    "load_subsets",
    "measure",
    "pinned_hash",
    "revision_of",
]
