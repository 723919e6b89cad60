"""``coreb-tasks stats``: statistics where mteb looks for them, and pins, from data that can be read."""

import json
import shutil

import mteb
import pytest

from coreb_tasks import task_metadata
from coreb_tasks.cli import main
from coreb_tasks.task_metadata import pins


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the facts that were measured, in place of the installed ones."""
    copy = tmp_path / "task_metadata"
    shutil.copytree(task_metadata._FOLDER, copy)
    monkeypatch.setattr(task_metadata, "_FOLDER", copy)
    return copy


def test_it_writes_what_mteb_shows_and_prints_the_pins(folder, capsys):
    task = "1C-Ebench-Sample"
    file = folder / "descriptive_stats" / "Retrieval" / f"{task}.json"
    before = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    assert mteb.get_task(task).metadata.descriptive_stats is None
    assert main(["stats", task]) == 0
    assert mteb.get_task(task).metadata.descriptive_stats == before
    said, printed = capsys.readouterr().out.split("\n", 1)
    assert said == f"{task}: {file}"
    recorded = {config: pin._asdict() for config, pin in pins("coreb-tasks/onec_ebench", "test").items()}
    assert json.loads(printed) == {"coreb-tasks/onec_ebench": {"test": recorded}}


def test_data_that_cannot_be_read_and_unknown_tasks_are_named(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path))
    assert main(["stats", "CPRet-T2C"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("coreb-tasks stats: CPRet-T2C: coldchair16/CPRet-data: ")
    assert main(["stats", "CPRet-T2C", "CoREB-X", "Y"]) == 1
    assert "unknown tasks CoREB-X, Y" in capsys.readouterr().err
