"""The packaged CoREB sample: complete, true to what it says of itself, and run by mteb's public calls."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import mteb
import pytest

from coreb_tasks.data import load
from coreb_tasks.facts import TASKS

CASES = json.loads(Path(__file__).with_name("coreb_cases.json").read_text(encoding="utf-8"))
LANGUAGES = {"python", "java", "cpp", "go", "ruby"}
NAMES = ["CoREB-T2C-Sample", "CoREB-C2C-Sample", "CoREB-C2T-Sample"]


def rows(config):
    text = files("coreb_tasks").joinpath("samples", "coreb", f"{config}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


PYTHON = [row for row in rows("code_corpus") if row["language"] == "python"]


def passes(code, case):
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], input=case["stdin"], capture_output=True, text=True, timeout=20, check=False
    )
    return ran.returncode == 0 and ran.stdout.split() == case["stdout"].split()


@pytest.mark.parametrize("solution", PYTHON, ids=[row["code_id"] for row in PYTHON])
def test_a_python_solution_passes_just_the_cases_that_it_says(solution):
    cases = CASES[solution["meta_source_problem_id"]]
    passed = sum(passes(solution["code"], case) for case in cases)
    assert (passed, len(cases)) == (solution["meta_test_passed"], solution["meta_test_total"])
    assert solution["meta_passed"] == (passed == len(cases))


def test_there_are_two_solutions_a_problem_and_language_and_some_fail():
    solutions = rows("code_corpus")
    problems = {row["meta_source_problem_id"] for row in solutions}
    assert len(problems) >= 12
    pairs = [(row["meta_source_problem_id"], row["language"]) for row in solutions]
    assert {pair: pairs.count(pair) for pair in pairs} == {(p, lang): 2 for p in problems for lang in LANGUAGES}
    for language in LANGUAGES:
        assert {row["meta_passed"] for row in solutions if row["language"] == language} == {True, False}


@pytest.mark.parametrize(
    ("sample", "full"), [("CoREB-T2C-Sample", 18), ("CoREB-C2C-Sample", 3), ("CoREB-C2T-Sample", 13)]
)
def test_the_sample_has_every_subtask(sample, full):
    subtasks = [name for name in load(TASKS[sample]).slices if not name.startswith("language=")]
    assert len(subtasks) == full


@pytest.mark.real_data
@pytest.mark.parametrize("kind", ["T2C", "C2C", "C2T"])
def test_the_sample_has_the_subtasks_and_fields_of_the_real_data(real_hub, monkeypatch, kind):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    assert load(TASKS[f"CoREB-{kind}-Sample"]).slices.keys() >= load(TASKS[f"CoREB-{kind}"]).slices.keys()
    for config in TASKS[f"CoREB-{kind}"].subsets["default"].layout.configs:
        with (real_hub / "hq-bench" / "coreb" / "release_v2603" / f"{config}.jsonl").open(encoding="utf-8") as lines:
            assert rows(config)[0].keys() == json.loads(next(lines)).keys(), config


@pytest.mark.parametrize("name", NAMES)
def test_code_queries_are_their_anchors_text_and_negatives_have_no_positive(name):
    data = load(TASKS[name])
    for query, documents in data.excluded.items():
        assert {data.corpus[document] for document in documents} == {data.queries[query]}
    without = [query for query, grades in data.qrels.items() if 2 not in grades.values()]
    assert len(without) == (8 if name == "CoREB-C2T-Sample" else 0)
    assert set(without) <= set(data.slices.get("c2t_match", ()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["mteb/baseline-bm25s", "mteb/baseline-random-encoder"])
def test_a_sample_task_runs_and_its_result_is_read_back_by_name(name, model, tmp_path):
    cache = mteb.ResultCache(tmp_path)
    task = mteb.get_task(name)
    mteb.evaluate(mteb.get_model(model), task, cache=cache, co2_tracker=False, show_progress_bar=False)
    loaded = cache.load_results(models=[model], tasks=[name])
    scores = loaded.model_results[0].task_results[0].scores["test"][0]
    assert 0 < scores["ndcg_at_10"] == scores["main_score"] < 1
    assert scores["n_queries"] == len(load(TASKS[name]).queries)
    assert loaded.to_dataframe()["score" if "score" in loaded.to_dataframe() else model].notna().all()


def test_samples_stay_out_of_the_default_listings_and_are_found_by_name():
    listed = {task.metadata.name for task in mteb.get_tasks(task_types=["Retrieval"], domains=["Programming"])}
    assert "CoREB-T2C" in listed
    assert not listed & set(NAMES)
    assert [task.metadata.name for task in mteb.get_tasks(tasks=NAMES)] == NAMES
