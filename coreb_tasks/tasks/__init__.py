"""The tasks: one base with the protocol's rules, and a class for each row of the table of facts."""

# First: it runs the start-up hook, which must not meet a half-imported module of this package.
import mteb  # noqa: F401

from coreb_tasks.tasks.base import ProtocolRetrieval
from coreb_tasks.tasks.table import TASKS

__all__ = ["TASKS", "ProtocolRetrieval"]
