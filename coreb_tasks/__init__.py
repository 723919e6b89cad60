"""CoREB, CPRet and 1C-Ebench as MTEB tasks.

Importing this package makes ``mteb`` know the tasks: at once when mteb is already imported, else right after it is.
Importing it twice is harmless. It does not import mteb itself, so that the command line can read results without it.
"""

import importlib
from importlib.metadata import version

import _coreb_tasks_autoload

__all__ = ["__version__"]
__version__ = version("coreb-tasks")

if _coreb_tasks_autoload.mteb_needs_registration():
    importlib.import_module("coreb_tasks.registry").register()
else:
    _coreb_tasks_autoload.watch_for_mteb()
