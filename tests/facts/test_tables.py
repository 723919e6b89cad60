"""The tables are whole: every task has data that is pinned, grades in words, and a name that mteb leaves free."""

import re

import mteb
import pytest

from coreb_tasks.facts import PACKAGED, TASKS
from coreb_tasks.task_metadata import pins

EXPECTED = {f"CoREB-{kind}{suffix}" for kind in ("T2C", "C2C", "C2T") for suffix in ("", "-v202602", "-Sample")}


def test_the_tasks_are_those_of_the_interface():
    assert set(TASKS) == EXPECTED


@pytest.mark.parametrize("name", TASKS)
def test_the_data_of_every_task_are_pinned(name):
    task = TASKS[name]
    recorded = pins(task.path, task.release)
    for config in task.layout.configs:
        assert recorded[config].rows > 0
        assert re.fullmatch("[0-9a-f]{64}", recorded[config].sha256)


@pytest.mark.parametrize("name", TASKS)
def test_every_grade_is_told_in_words_and_the_level_is_one_of_them(name):
    benchmark = TASKS[name].benchmark
    assert benchmark.relevance_level in benchmark.grades
    assert all(len(words) > 20 for words in benchmark.grades.values())


@pytest.mark.parametrize("name", TASKS)
def test_mteb_knows_the_task_by_its_facts(name):
    metadata = mteb.get_task(name).metadata
    assert metadata.is_filled()
    assert metadata.dataset["path"] == TASKS[name].path
    assert metadata.is_public == (not TASKS[name].path.startswith(PACKAGED))
    assert metadata.main_score == "ndcg_at_10"
    assert set(metadata.prompt) == {"query"}
    metadata._validate_metadata()  # mteb's check of the language codes, which its constructor leaves out
