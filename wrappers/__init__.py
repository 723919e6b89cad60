"""Thin overrides around models and search. They know no benchmark."""

# First: it runs the start-up hook, which must not meet a half-imported module of this package.
import mteb  # noqa: F401

from coreb_tasks.wrappers.errors import SearchError
from coreb_tasks.wrappers.search import protocol_search, search_corpus

__all__ = ["SearchError", "protocol_search", "search_corpus"]
