"""Recorded results: mteb's own output for the samples, and for BM25 on CoREB v202603 (``mteb run``, ``embed_dim``)."""

import json
from pathlib import Path

import pytest

from coreb_tasks.reports.scores import read
from coreb_tasks.reports.sections import REPORTED, Section, sections

RESULTS = Path(__file__).parent / "results"


@pytest.fixture(scope="session")
def recorded():
    """The scores of the recorded results."""
    found, faults = read([RESULTS])
    assert faults == []
    return found


@pytest.fixture(scope="session")
def files():
    """Scores of the recorded files, read without the package: model, settings, task and subset -> key -> value."""
    held = {}
    for file in RESULTS.rglob("*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        if "scores" in content:
            meta = json.loads((file.parent / "model_meta.json").read_text(encoding="utf-8"))
            settings = file.parent.name if "experiments" in file.parts else None
            for values in content["scores"]["test"]:
                held[meta["name"], settings, content["task_name"], values["hf_subset"]] = values
    return held


@pytest.fixture
def section(recorded):
    """The section of a benchmark, of the recorded results or of others; with ``reference`` the papers' scores too."""

    def section(name, found=recorded, *, reference=False) -> Section:
        (made,) = sections(found, [REPORTED[name]], reference=reference)
        return made

    return section
