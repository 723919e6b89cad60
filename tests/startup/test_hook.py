"""The start-up hook, in processes of some milliseconds: with this package's own ``__init__``, and stand-ins for mteb
and for the registry. That the real ones play together stands in tests/test_registry.py and tests/test_imports.py.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path

import pytest

STARTUP = Path(__file__).parents[2] / "startup"
NAMES = ("_coreb_tasks_autoload.py", "coreb_tasks_autoload.pth", "coreb_tasks_autoload.start")
ADD_SITE = "import site, sys; site.addsitedir(sys.argv[1]); "
REGISTRY = """
def register():
    import mteb
    mteb.registered += 1
"""


class World:
    """A site folder with the start-up files, and a Python that knows only this folder."""

    def __init__(self, folder):
        self.folder = folder
        for name in NAMES:
            self.write(name, (STARTUP / name).read_text(encoding="utf-8"))
        self.write("coreb_tasks-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: coreb-tasks\nVersion: 0.1\n")
        self.write("coreb_tasks/__init__.py", Path(find_spec("coreb_tasks").origin).read_text(encoding="utf-8"))
        self.write("coreb_tasks/registry.py", REGISTRY)
        self.write("mteb/__init__.py", "__version__ = '2.99'\nregistered = 0\n")
        self.write("mteb/part.py", "import mteb\nat_import = mteb.registered\n")

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def start(self, code, *flags, autoload=None):
        """Start Python, as with this folder among its site folders; what it wrote to stdout and stderr."""
        environment = {name: value for name, value in os.environ.items() if name != "COREB_TASKS_AUTOLOAD"}
        if autoload is not None:
            environment["COREB_TASKS_AUTOLOAD"] = autoload
        command = [sys.executable, "-I", "-S", *flags, "-c", ADD_SITE + code, str(self.folder)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr

    def says(self, code, *flags, autoload=None):
        """What a program prints that runs without a warning."""
        out, errors = self.start(code, *flags, autoload=autoload)
        assert errors == ""
        return out


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "site")


def test_mteb_is_registered_with_right_after_its_import(world):
    assert world.says("import mteb; print(mteb.registered)") == "1"


@pytest.mark.parametrize("first", ["import mteb.part", "from mteb import part", "from mteb.part import at_import"])
def test_the_tasks_are_there_before_a_part_of_mteb_that_is_imported_first(world, first):
    assert world.says(f"{first}; print(sys.modules['mteb.part'].at_import, sys.modules['mteb'].registered)") == "1 1"


def test_a_start_without_mteb_loads_the_hook_and_nothing_else(world, tmp_path):
    empty = World(tmp_path / "other")
    for name in NAMES:
        (empty.folder / name).unlink()
    empty.write("empty.pth", "import sys\n")
    loaded = "print(' '.join(sorted(sys.modules)))"
    assert set(world.says(loaded).split()) - set(empty.says(loaded).split()) == {"_coreb_tasks_autoload"}


def test_looking_for_other_modules_or_for_mteb_imports_nothing(world):
    code = "import json, importlib.util; print(importlib.util.find_spec('mteb').origin, "
    assert (
        world.says(code + "{'mteb', 'coreb_tasks'} & {*sys.modules})")
        == f"{world.folder / 'mteb' / '__init__.py'} set()"
    )


@pytest.mark.parametrize(("autoload", "registered"), [("0", "0"), ("1", "1"), ("", "1")])
def test_only_0_turns_it_off(world, autoload, registered):
    assert world.says("import mteb; print(mteb.registered)", autoload=autoload) == registered


def test_turned_off_it_leaves_the_import_system_alone(world):
    code = "print([getattr(finder, '__name__', '') for finder in sys.meta_path])"
    assert "AfterMteb" in world.says(code)
    assert "AfterMteb" not in world.says(code, autoload="0")


@pytest.mark.parametrize("autoload", [None, "0"])
@pytest.mark.parametrize(
    "imports", ["mteb, coreb_tasks", "coreb_tasks, mteb", "coreb_tasks, mteb, coreb_tasks.registry, coreb_tasks"]
)
def test_importing_the_package_registers_once_in_either_order(world, imports, autoload):
    assert world.says(f"import {imports}; print(mteb.registered)", autoload=autoload) == "1"


def test_importing_the_package_does_not_import_mteb(world):
    assert world.says("import coreb_tasks; print('mteb' in sys.modules)") == "False"


def test_two_starts_leave_one_hook(world):
    code = "import _coreb_tasks_autoload as hook; site.addsitedir(sys.argv[1]); hook.install(); hook.install(); "
    assert (
        world.says(code + "print(sys.meta_path.count(hook.AfterMteb)); import mteb; print(mteb.registered)") == "1\n1"
    )


def test_mteb_keeps_its_own_loader(world):
    code = "import inspect, mteb; print(type(mteb.__loader__).__name__, mteb.__spec__.loader is mteb.__loader__); "
    assert world.says(code + "print(inspect.getsource(mteb).splitlines()[0])").splitlines() == [
        "SourceFileLoader True",
        "__version__ = '2.99'",
    ]


def test_a_reload_of_mteb_registers_again(world):
    code = "import importlib, mteb; importlib.reload(mteb); print(mteb.registered, type(mteb.__loader__).__name__)"
    assert world.says(code) == "1 SourceFileLoader"


def test_a_lazy_import_of_mteb_registers_when_it_is_used(world):
    code = (
        "from importlib.util import LazyLoader, find_spec, module_from_spec; spec = find_spec('mteb'); "
        "spec.loader = LazyLoader(spec.loader); sys.modules['mteb'] = module = module_from_spec(spec); "
        "spec.loader.exec_module(module); print('coreb_tasks' in sys.modules, module.registered)"
    )
    assert world.says(code) == "False 1"


def test_the_data_of_mteb_can_be_read_before_it_is_imported(world):
    code = "import pkgutil; print(pkgutil.get_data('mteb', 'part.py').decode().split()[0])"
    assert world.says(code, autoload="0") == "import"
    assert world.says(code) == "import"


def test_a_folder_that_is_named_mteb_is_no_mteb(world):
    shutil.rmtree(world.folder / "mteb")
    world.write("mteb/results/Task.json", "{}")
    assert world.says("import mteb; print(mteb.__file__, 'coreb_tasks' in sys.modules)") == "None False"


def test_without_mteb_its_import_fails_as_ever(world):
    shutil.rmtree(world.folder / "mteb")
    code = "\ntry:\n    import mteb\nexcept ModuleNotFoundError as error:\n    print(error, error.name)"
    assert world.says(code) == "No module named 'mteb' mteb"


def test_an_mteb_that_fails_fails_with_its_own_error_and_can_be_imported_later(world):
    world.write("mteb/__init__.py", "import sys\nregistered = 0 if hasattr(sys, 'well') else 1 / 0\n")
    code = "\ntry:\n    import mteb\nexcept ZeroDivisionError:\n    print({'mteb', 'coreb_tasks'} & {*sys.modules})"
    assert world.says(f"{code}\nsys.well = True\nimport mteb\nprint(mteb.registered)") == "set()\n1"


def test_an_old_finder_without_find_spec_is_passed_over(world):
    code = "old = type('Old', (), {'find_module': lambda *_: None}); sys.meta_path.insert(1, old()); "
    assert world.says(code + "import mteb; print(mteb.registered)") == "1"


def refuse(error):
    return f"def register():\n    raise {error}\n"


FAILURES = {
    "an error of the registry": (refuse("ValueError('mteb has no attribute X')"), "mteb has no attribute X"),
    "an import error": ("import coreb_tasks.absent", "No module named 'coreb_tasks.absent'"),
    "a syntax error": ("def register(:", "invalid syntax"),
    "a registry without register": ("", "cannot import name 'register'"),
    "a warning that is an error": (
        "import warnings\nwarnings.simplefilter('error', DeprecationWarning)\n"
        "def register():\n    warnings.warn('gone in mteb 3', DeprecationWarning)\n",
        "gone in mteb 3",
    ),
}


@pytest.mark.parametrize(("registry", "cause"), FAILURES.values(), ids=FAILURES)
def test_a_failure_of_ours_is_one_warning_that_says_what_failed_and_what_to_do(world, registry, cause):
    world.write("coreb_tasks/registry.py", registry)
    out, errors = world.start("import mteb; import mteb.part; print(mteb.__version__)")
    assert out == "2.99"
    assert errors.count("RuntimeWarning: ") == 1
    warning = next(line for line in errors.splitlines() if "RuntimeWarning: " in line)
    for said in ("coreb-tasks", cause, "COREB_TASKS_AUTOLOAD=0"):
        assert said in warning


def test_a_package_that_is_gone_is_one_warning_too(world):
    shutil.rmtree(world.folder / "coreb_tasks")
    out, errors = world.start("import mteb; print(mteb.registered)")
    assert out == "0"
    assert errors.count("RuntimeWarning: ") == 1
    assert "No module named 'coreb_tasks'" in errors


def test_a_failure_does_not_break_mteb_where_warnings_are_errors_and_is_not_silent(world):
    world.write("coreb_tasks/registry.py", refuse("ValueError('mteb has no attribute X')"))
    out, errors = world.start("import mteb; print(mteb.registered)", "-W", "error")
    assert out == "0"
    assert len(errors.splitlines()) == 1
    assert "mteb has no attribute X" in errors


def test_a_failure_leaves_mteb_with_its_own_loader(world):
    world.write("coreb_tasks/registry.py", refuse("ValueError('no')"))
    assert world.start("import mteb; print(type(mteb.__spec__.loader).__name__)")[0] == "SourceFileLoader"


@pytest.mark.parametrize("error", ["AssertionError()", "KeyError('hq-bench/coreb')"])
def test_an_error_without_words_is_named_by_its_type(world, error):
    world.write("coreb_tasks/registry.py", refuse(error))
    assert error.partition("(")[0] in world.start("import mteb")[1].splitlines()[0]


def test_the_command_that_the_warning_gives_shows_the_full_error(world):
    world.write("coreb_tasks/registry.py", refuse("ValueError('mteb has no attribute X')"))
    warning = world.start("import mteb")[1].splitlines()[0]
    (program,) = re.findall(r"The full error: python -c '(.*?)'\.", warning)
    code = f"\nimport traceback\ntry:\n    exec({program!r})\nexcept ValueError:\n    traceback.print_exc()"
    for imported in ("", "import mteb; "):
        assert world.start(imported + code)[1].splitlines()[-1] == "ValueError: mteb has no attribute X"


def test_turned_off_the_package_raises_its_error_on_import(world):
    world.write("coreb_tasks/registry.py", refuse("ValueError('mteb has no attribute X')"))
    code = "\nimport mteb\ntry:\n    import coreb_tasks\nexcept ValueError as error:\n    print('raised', error)"
    assert world.says(code, autoload="0") == "raised mteb has no attribute X"


def test_both_start_up_files_call_the_same_function(world):
    (line,) = (STARTUP / "coreb_tasks_autoload.pth").read_text(encoding="utf-8").splitlines()
    (entry,) = (STARTUP / "coreb_tasks_autoload.start").read_text(encoding="utf-8").splitlines()
    module, function = entry.split(":")
    assert line == f"import {module}; {module}.{function}()"
    (world.folder / "coreb_tasks_autoload.pth").unlink()  # as Python 3.15 does, which takes the entry
    code = f"import pkgutil; pkgutil.resolve_name({entry!r})(); import mteb; print(mteb.registered)"
    assert world.says(code) == "1"


@pytest.mark.parametrize("name", NAMES)
def test_the_start_up_files_are_installed_and_taken_away_with_the_package(name):
    (installed,) = [file for file in files("coreb-tasks") if str(file) == name]
    current = (STARTUP / name).read_text(encoding="utf-8")
    assert installed.read_text(encoding="utf-8") == current, "an older copy: install the package again"
