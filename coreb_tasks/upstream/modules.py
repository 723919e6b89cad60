"""Modules for mteb: constants only, in mteb's style and formatted as its linter wants them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coreb_tasks.facts import OVERALLS, SUITES, Suite
from coreb_tasks.upstream.stock import StockTask

_CITATION = "_CITATION"
_INDENT = "    "
_SHORT = 40  # fits into mteb's 88 columns behind every name that we give it
# mteb's defaults that its tasks do not write down; so it is with None.
UNWRITTEN = {"is_public": True, "is_beta": False}


def by_module(tasks: Iterable[StockTask]) -> dict[str, list[StockTask]]:
    """Tasks by the name of the module that they stand in: one for each benchmark."""
    modules: dict[str, list[StockTask]] = {}
    for task in tasks:
        modules.setdefault(_identifier(task.facts.benchmark.title).lower(), []).append(task)
    return modules


def whole_suites(tasks: Iterable[StockTask]) -> list[Suite]:
    """The benchmarks all of whose tasks are among these."""
    names = {task.name for task in tasks}
    return [suite for suite in SUITES.values() if names.issuperset(suite.tasks)]


def variable(suite: Suite) -> str:
    """The name that a benchmark is bound to."""
    return _identifier(suite.name).upper()


def task_module(tasks: Sequence[StockTask]) -> str:
    """The task classes of one benchmark."""
    head = (
        "from mteb.abstasks.retrieval import AbsTaskRetrieval\n"
        "from mteb.abstasks.task_metadata import TaskMetadata\n\n"
        f"{_citation(tasks[0].facts.benchmark.bibtex_citation)}"
    )
    return "\n\n".join([head, *map(_task_class, tasks)])


def benchmark_module(suites: Sequence[Suite]) -> str:
    """The definitions of one paper's benchmarks."""
    head = (
        "from mteb.benchmarks.benchmark import Benchmark\n"
        "from mteb.get_tasks import get_tasks\n\n"
        f"{_citation(suites[0].benchmark.bibtex_citation)}"
    )
    return "\n".join([head, *map(_benchmark, suites)])


def import_lines(package: str, names: Mapping[str, Iterable[str]]) -> str:
    """Lines for a package's ``__init__.py`` that make names of its modules its own."""
    lines = []
    for module, own in sorted(names.items()):
        imported = "".join(f"{_INDENT}{name},\n" for name in sorted(own))
        lines.append(f"from {package}.{module} import (\n{imported})\n")
    exported = _literal(sorted(name for own in names.values() for name in own), 0)
    return f"{''.join(lines)}\n__all__ += {exported}\n"


def _task_class(task: StockTask) -> str:
    ordered = {**dict.fromkeys(("name", "description", "reference")), **task.metadata}
    fields = {name: value for name, value in ordered.items() if value != UNWRITTEN.get(name)}
    flag = f"{_INDENT}ignore_identical_ids = True\n" if task.ignore_identical_ids else ""
    call = _call("TaskMetadata", {name: _literal(value, 2) for name, value in fields.items()} | _CITED_TASK, 1)
    return f"class {task.class_name}(AbsTaskRetrieval):\n{flag}{_INDENT}metadata = {call}\n"


def _benchmark(suite: Suite) -> str:
    fields = {
        "name": _literal(suite.name, 1),
        "tasks": _call("get_tasks", {"tasks": _literal(list(suite.tasks), 2)}, 1),
        "description": _literal(_without_overalls(suite.description), 1),
        "reference": _literal(suite.benchmark.reference, 1),
    }
    return f"{variable(suite)} = {_call('Benchmark', fields | _CITED_BENCHMARK, 0)}\n"


_CITED_TASK = {"bibtex_citation": _CITATION}
_CITED_BENCHMARK = {"citation": _CITATION}


def _without_overalls(description: str) -> str:
    """Without the sentences that refer to our overall scores, which mteb does not have."""
    sentences = re.split(r"(?<=\.) ", description)
    return " ".join(sentence for sentence in sentences if not any(overall in sentence for overall in OVERALLS))


def _citation(bibtex: str) -> str:
    return f'{_CITATION} = r"""\n{bibtex.strip()}\n"""\n'


def _identifier(name: str) -> str:
    """A name as an identifier of Python; as in the class names, ``T`` stands before a digit."""
    words = re.sub(r"\W+", "_", name).strip("_")
    return f"T{words}" if words[0].isdigit() else words


def _call(function: str, arguments: Mapping[str, str], depth: int) -> str:
    lines = [f"{_INDENT * (depth + 1)}{name}={value},\n" for name, value in arguments.items()]
    return f"{function}(\n{''.join(lines)}{_INDENT * depth})"


def _literal(value: Any, depth: int) -> str:
    """A constant; a long collection over several lines, with a comma at the end of each (formatters keep that)."""
    if isinstance(value, str):
        return repr(value) if '"' in value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        items = [f"{_literal(key, 0)}: {_literal(item, depth + 1)}" for key, item in value.items()]
        return _brackets("{", items, "}", depth)
    if isinstance(value, list | tuple):
        opening, closing = "[]" if isinstance(value, list) else "()"
        return _brackets(opening, [_literal(item, depth + 1) for item in value], closing, depth)
    return repr(value)


def _brackets(opening: str, items: Sequence[str], closing: str, depth: int) -> str:
    line = f"{opening}{', '.join(items)}{closing}"
    if len(line) <= _SHORT and "\n" not in line:
        return line
    lines = "".join(f"{_INDENT * (depth + 1)}{item},\n" for item in items)
    return f"{opening}\n{lines}{_INDENT * depth}{closing}"
