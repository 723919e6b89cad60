"""Every module of the package can be the first that is imported, and those that read results stay light."""

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import coreb_tasks

HEAVY = [
    "mteb",
    "torch",
    "datasets",
    "transformers",
    "sentence_transformers",
    "pandas",
    "pyarrow",
    "matplotlib",
    "jinja2",
]
LIGHT = [
    "facts",
    "data",
    "task_metadata",
    "scoring",
    "interop",
    "reports.page",
    "reports.plots",
    "cli",
    "cli.check_results",
    "cli.compare",
    "cli.report",
    "cli.score",
    "cli.upstream",
]


def modules():
    found = {"coreb_tasks.registry", "coreb_tasks.task_metadata", "coreb_tasks.wrappers"}
    packages = ["facts", "data", "tasks", "reports", "cli", "wrappers", "task_metadata"]
    for package in packages:
        module = __import__(f"coreb_tasks.{package}", fromlist=["__path__"])
        found |= {
            module.__name__,
            *(name for _, name, _ in pkgutil.walk_packages(module.__path__, f"{module.__name__}.")),
        }
    return sorted(found | {name for _, name, _ in pkgutil.walk_packages(coreb_tasks.__path__, "coreb_tasks.")})


def start(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program, *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not (fully) registered" not in done.stderr
    return done.stdout


# The start of a process again and again, in one: nothing of this package or of mteb is imported, and mteb's own
# __init__ and what registration touches are run anew. Its other parts, which know nothing of registration and take
# five seconds, are handed out ready-made when they are imported.
EACH_FIRST = """
import contextlib, importlib, importlib.util, io, json, sys, traceback

import mteb

RUN_ANEW = {"mteb", "mteb.get_tasks", "mteb.evaluate", "mteb.deprecated_evaluator"}
ready = {name: module for name, module in sys.modules.items() if name.startswith("mteb.") and name not in RUN_ANEW}

class Ready:
    def find_spec(name, path=None, target=None):
        if name in ready:
            return importlib.util.spec_from_loader(name, Ready, is_package=hasattr(ready[name], "__path__"))
    def create_module(spec):
        return ready[spec.name]
    def exec_module(module):
        pass

sys.meta_path.insert(0, Ready)
found = {}
for first in sys.argv[1:]:
    for name in list(sys.modules):
        if name.split(".")[0] in {"mteb", "coreb_tasks"}:
            del sys.modules[name]
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            importlib.import_module(first)
            mteb = importlib.import_module("mteb")
        assert "coreb-tasks" not in errors.getvalue(), errors.getvalue()
        assert type(mteb.get_task("CoREB-T2C")) is importlib.import_module("coreb_tasks.tasks").TASKS["CoREB-T2C"]
        found[first] = mteb.get_task("CoREB-T2C").metadata.name
    except Exception:
        found[first] = traceback.format_exc()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """Module that is imported first -> the name of the task that mteb then finds, or the error."""
    return json.loads(start(EACH_FIRST, *modules()).splitlines()[-1])


@pytest.mark.parametrize("first", modules())
def test_a_module_can_be_imported_first_and_mteb_knows_the_tasks(found, first):
    assert found[first] == "CoREB-T2C"


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_load_nothing_heavy(module):
    program = f"import sys, coreb_tasks.{module}; print(sorted({{*{HEAVY}}} & sys.modules.keys()))"
    assert start(program) == "[]\n"


def test_list_and_report_load_nothing_heavy(tmp_path):
    scores = {
        "hf_subset": "default",
        "ndcg_at_10": 0.5,
        "main_score": 0.5,
        "relevance_level": 1,
        "part/ndcg_at_10": 0.25,
    }
    file = tmp_path / "CPRet-T2C.json"
    file.write_text(json.dumps({"task_name": file.stem, "scores": {"test": [scores]}}), encoding="utf-8")
    program = (
        "import sys; from coreb_tasks.cli import main; "
        "codes = [main(['list']), main(['report', sys.argv[1], '--slices'])]; "
        f"print(codes, sorted({{*{HEAVY}}} & sys.modules.keys()))"
    )
    out = start(program, str(tmp_path)).splitlines()
    assert out[-1] == "[0, 0] []"
    assert any("0.25000" in line for line in out)


def test_a_program_that_starts_in_a_clone_finds_the_whole_package():
    clone = Path(__file__).parents[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    program = "import coreb_tasks.data, coreb_tasks.task_metadata as metadata; print(metadata.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=clone, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(ran.stdout.strip()) == clone / "task_metadata" / "__init__.py"
