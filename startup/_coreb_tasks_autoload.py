"""Start-up hook of coreb-tasks: lets mteb know the tasks right after ``import mteb`` has run.

A top-level module of its own, because importing the package at every start of Python would cost every program.
It imports only sys and os, which Python has loaded by then, and does nothing until mteb is imported.
"""

import os
import sys

ADVICE = (
    "mteb works as ever; tasks of coreb-tasks are missing. "
    "The full error: python -c 'import coreb_tasks.registry as r; r.register()'. COREB_TASKS_AUTOLOAD=0 silences this."
)


def install():
    """Called by the start-up files (.pth, .start); ``COREB_TASKS_AUTOLOAD=0`` turns it off."""
    if os.environ.get("COREB_TASKS_AUTOLOAD") != "0":
        watch_for_mteb()


def watch_for_mteb():
    """Register right after mteb is imported; calling it twice is harmless."""
    if AfterMteb not in sys.meta_path:
        sys.meta_path.insert(0, AfterMteb)


def mteb_needs_registration():
    """Whether mteb was imported, to its end, before this hook watched for it."""
    return hasattr(sys.modules.get("mteb"), "__version__") and not RegisteringLoader.at_work


class AfterMteb:
    """A finder that finds what the other finders find, and has a look only at mteb."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "mteb":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not AfterMteb else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = RegisteringLoader(spec.loader)
                return spec
        return None


class RegisteringLoader:
    """Steps aside for mteb's own loader, then registers. mteb is left with its own loader."""

    at_work = False

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        if name.startswith("__") or name == "loader":  # asked for while being copied
            raise AttributeError(name)
        return getattr(self.loader, name)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        RegisteringLoader.at_work = True
        try:
            from coreb_tasks.registry import register

            register()
        except (Exception, SystemExit) as error:  # whatever it is, `import mteb` must not fail for it
            warn(f"coreb-tasks is not (fully) registered with mteb ({type(error).__name__}: {error}) {ADVICE}")
        finally:
            RegisteringLoader.at_work = False


def warn(message):
    import warnings

    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:  # warnings are errors here, and `import mteb` must not fail for ours
        print(message, file=sys.stderr)
