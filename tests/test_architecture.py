"""The floors of docs/architecture.md: imports go only downwards, and mteb's private names stay in one room."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

FLOORS = [
    "task_metadata",
    "facts",
    "data",
    "rules",
    "scoring",
    "comparison",
    "wrappers",
    "models",
    "tasks",
    "registry",
    "interop",
    "reports",
    "upstream",
    "cli",
]
# The command line reads results and facts; it may pull mteb in by way of these only where it needs it: in functions.
NEEDS_MTEB = {"wrappers", "models", "tasks", "registry"}


def modules():
    for floor in FLOORS:
        origin = Path(find_spec(f"coreb_tasks.{floor}").origin)
        for file in sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]:
            yield pytest.param(floor, file, id=f"{floor}/{file.name}")


def imports(tree, *, at_import=False):
    for node in tree.body if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("floor", "file"), list(modules()))
def test_imports_go_only_downwards(floor, file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    ours = {name.split(".")[1] for name in imports(tree) if name.startswith("coreb_tasks.")} & set(FLOORS)
    above = {other for other in ours if FLOORS.index(other) > FLOORS.index(floor)}
    assert not above, f"{file.name} imports from a floor above"
    if floor == "cli":
        at_import = {name.split(".")[1] for name in imports(tree, at_import=True) if name.startswith("coreb_tasks.")}
        assert not at_import & NEEDS_MTEB


@pytest.mark.parametrize(("floor", "file"), list(modules()))
def test_only_the_registry_knows_private_names_of_mteb(floor, file):
    private = [
        name
        for name in imports(ast.parse(file.read_text(encoding="utf-8")))
        if name.startswith("mteb.") and any(part.startswith("_") for part in name.split("."))
    ]
    assert floor == "registry" or not private
