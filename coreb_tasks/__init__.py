"""CoREB, CPRet and 1C-Ebench as MTEB tasks.

Importing this package makes ``mteb`` know the tasks: at once when mteb is already imported, else right after it is.
Importing it twice is harmless. It does not import mteb itself, so that the command line can read results without it.
"""

import importlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import _coreb_tasks_autoload

__all__ = ["__version__"]
__version__ = version("coreb-tasks")

# Python puts the current folder first, so that in a clone this file is imported from there and not as installed. Two
# parts of the package lie beside it there.
if find_spec("coreb_tasks.wrappers") is None:
    __path__.append(str(Path(__file__).parents[1]))

if _coreb_tasks_autoload.mteb_needs_registration():
    importlib.import_module("coreb_tasks.registry").register()
else:
    _coreb_tasks_autoload.watch_for_mteb()
