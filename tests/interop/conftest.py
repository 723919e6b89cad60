"""The tiny tasks under names that can be looked up, and data whose ids and texts files get wrong."""

import pytest

from coreb_tasks.data import RetrievalData
from coreb_tasks.facts import TASKS
from coreb_tasks.interop.exports import export


@pytest.fixture
def tiny(hub, monkeypatch):
    """Enters the tiny task of a kind into the table of tasks; returns its facts."""

    def tiny(kind="T2C"):
        task = hub.task(kind)
        monkeypatch.setitem(TASKS, task.name, task)
        return task

    return tiny


TEXTS = [
    "a\tb\nc\r\nd\re",
    "line\u2028separator\u2029and\x85next",
    "Ёлка е\u0308 й и\u0306",  # Cyrillic composed and decomposed
    "\ufeffbyte order mark, \"quotes\" 'and' <tags> & %20 \\n",
    "  indented\n    code  \n",
]


def hostile(ids, query_ids=None, grades=(2, 1, 0)):
    """Data with the given ids for documents and queries, texts of every kind, and all grades."""
    query_ids = query_ids or [f"q-{name}" for name in ids]
    return RetrievalData(
        corpus={name: f"{TEXTS[n % len(TEXTS)]}{n}" for n, name in enumerate(ids)},
        queries={name: f"{TEXTS[-n % len(TEXTS)]}{n}" for n, name in enumerate(query_ids)},
        qrels={q: {d: grades[(n + m) % len(grades)] for m, d in enumerate(ids)} for n, q in enumerate(query_ids)},
        data_hash="ab" * 32,
        excluded={query_ids[0]: frozenset({ids[0]})},
        slices={"some": [query_ids[0]]},
    )


@pytest.fixture
def export_of(monkeypatch, tmp_path):
    """Exports given data as those of a task, in a format; returns the folder."""

    def export_of(data, kind, task="CoREB-C2C", name="out"):
        monkeypatch.setattr("coreb_tasks.interop.exports.load_subsets", lambda task, subsets: {"default": data})
        export(TASKS[task], kind, tmp_path / name)
        return tmp_path / name

    return export_of


@pytest.fixture(name="hostile")
def hostile_fixture():
    return hostile
