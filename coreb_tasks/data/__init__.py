"""Data: found on the hub, in a folder or in the package, checked, and brought into one shape. Knows no mteb."""

from coreb_tasks.data.errors import DataError
from coreb_tasks.data.retrieval import RetrievalData, data_hash, load, measure

__all__ = ["DataError", "RetrievalData", "data_hash", "load", "measure"]
