"""BM25 on the real data gives the expected scores, through the console script of the installed package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import mteb
import pytest
from datasets import Dataset

from coreb_tasks.data import load
from coreb_tasks.facts import TASKS

pytestmark = pytest.mark.real_data
KINDS = ("T2C", "C2C", "C2T")
RENAMED = {"intrusion_n": "hard_negative_intrusion_n"}


@pytest.fixture(scope="module")
def expected(real_hub):
    return json.loads((real_hub.parent / "expected" / "coreb_bm25s_release_v2603.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results(real_hub, tmp_path_factory):
    """Scores by kind, of one run of the stock ``mteb`` command with no checkout on its path."""
    folder = tmp_path_factory.mktemp("bm25")
    command = [Path(sys.executable).with_name("mteb"), "run", "-m", "mteb/baseline-bm25s", "--output-folder", folder]
    ran = subprocess.run(
        [*map(str, command), "-t", *(f"CoREB-{kind}" for kind in KINDS)],
        env={**os.environ, "COREB_TASKS_DATA": str(real_hub), "HF_HUB_OFFLINE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    loaded = mteb.ResultCache(folder).load_results(tasks=[f"CoREB-{kind}" for kind in KINDS])
    by_name = {result.task_name: result for model in loaded for result in model}
    return {kind: by_name[f"CoREB-{kind}"].scores["test"][0] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_metric_of_every_group_is_the_expected_one(results, expected, kind):
    scores = results[kind]
    compared = 0
    for group, values in expected[kind].items():
        sort, _, name = group.partition(":")
        prefix = {"all": "", "subtask": f"{name}/", "language": f"language={name}/"}[sort]
        for metric, value in values.items():
            key = prefix + RENAMED.get(metric, metric)
            assert scores.get(key) == (value if value is None else pytest.approx(value, abs=1e-5)), (kind, key)
            compared += 1
    slices = {key.rpartition("/")[0] for key in scores if "/" in key} - {"positive_only"}
    assert len(expected[kind]) == len(slices) + 1, "a slice that the expected values lack, or the reverse"
    assert compared == 24 * len(expected[kind])


def test_the_mean_over_all_queries_is_the_expected_overall_score(results, expected):
    weighted = sum(scores["ndcg_at_10"] * scores["n_queries"] for scores in results.values())
    overall = weighted / sum(scores["n_queries"] for scores in results.values())
    assert overall == pytest.approx(expected["overall_ndcg_at_10"], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_by_mtebs_own_rules_the_data_give_mtebs_own_scores(real_hub, monkeypatch, kind):
    """Data fidelity: positives only, anchor kept, queries without a positive dropped, mteb's own task class."""
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    name = f"Coreb{kind}Retrieval"
    recorded = (real_hub.parent / "expected" / "mteb_bm25s_coreb_v1.json").read_text(encoding="utf-8")
    published = json.loads(recorded)[name]
    data = load(TASKS[f"CoREB-{kind}"])
    task = mteb.get_task(name)
    positives = {q: {d: 1 for d, grade in graded.items() if grade == 2} for q, graded in data.qrels.items()}
    task.dataset = {
        "default": {
            "test": {
                "corpus": Dataset.from_list([{"id": d, "title": "", "text": text} for d, text in data.corpus.items()]),
                "queries": Dataset.from_list([{"id": q, "text": text} for q, text in data.queries.items()]),
                "relevant_docs": {q: documents for q, documents in positives.items() if documents},
                "top_ranked": None,
            }
        }
    }
    task.data_loaded = True
    model = mteb.get_model("mteb/baseline-bm25s")
    scores = mteb.evaluate(model, task, cache=None, co2_tracker=False).task_results[0].scores["test"][0]
    assert {metric: scores[metric] for metric in published} == pytest.approx(published, abs=1e-5)


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.path == "hq-bench/coreb"])
def test_the_real_data_pass_every_check_in_both_releases(real_hub, monkeypatch, name):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    data = load(TASKS[name])
    assert data.queries.keys() == data.qrels.keys()
    assert data.commit is None
    assert sum(map(len, data.slices.values())) == 2 * len(data.queries)  # one subtask and one language each
    if "C2C" in name:
        texts = {query: {data.corpus[document] for document in data.excluded[query]} for query in data.queries}
        assert texts == {query: {text} for query, text in data.queries.items()}, "the query is its anchor's text"
