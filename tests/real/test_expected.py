"""BM25 on the real data gives the expected scores, through the console script of the installed package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import mteb
import pytest
from datasets import Dataset

from coreb_tasks.data import load, load_subsets
from coreb_tasks.facts import TASKS

pytestmark = pytest.mark.real_data
KINDS = ("T2C", "C2C", "C2T")
V2603 = [name for name, task in TASKS.items() if task.path == "hq-bench/coreb" and task.release == "release_v2603"]
RENAMED = {"intrusion_n": "hard_negative_intrusion_n"}


@pytest.fixture(scope="module")
def expected(real_hub):
    return json.loads((real_hub.parent / "expected" / "coreb_bm25s_release_v2603.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def stored(real_hub, tmp_path_factory):
    """Scores by task and subset, of one run of the stock ``mteb`` command on every task of the release."""
    folder = tmp_path_factory.mktemp("bm25")
    command = [Path(sys.executable).with_name("mteb"), "run", "-m", "mteb/baseline-bm25s", "--output-folder", folder]
    ran = subprocess.run(
        [*map(str, command), "-t", *V2603],
        env={**os.environ, "COREB_TASKS_DATA": str(real_hub), "HF_HUB_OFFLINE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    loaded = mteb.ResultCache(folder).load_results(tasks=V2603)
    return {
        result.task_name: {scores["hf_subset"]: scores for scores in result.scores["test"]}
        for model in loaded
        for result in model
    }


@pytest.fixture(scope="module")
def results(stored):
    """Scores of the three main tasks, by kind."""
    return {kind: stored[f"CoREB-{kind}"]["default"] for kind in KINDS}


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


SUBTASKS = [
    (name, subset, next(iter(facts.subtasks)))
    for name in V2603
    for subset, facts in TASKS[name].subsets.items()
    if facts.subtasks is not None
]


@pytest.mark.parametrize("kind", KINDS)
def test_bm25_on_the_candidates_of_bm25_gives_the_expected_scores_again(stored, expected, kind):
    scores = stored[f"CoREB-{kind}-Reranking"]["default"]
    assert scores["pool_depth"] == 128
    for group, values in expected[kind].items():
        prefix = {"all": "", "subtask": f"{group[8:]}/", "language": f"language={group[9:]}/"}[group.partition(":")[0]]
        assert scores[f"{prefix}rerank_delta/ndcg_at_10"] == 0
        assert scores[f"{prefix}first_stage/ndcg_at_10"] == pytest.approx(values["ndcg_at_10"], abs=1e-5)
        for metric, value in values.items():
            key = prefix + RENAMED.get(metric, metric)
            assert scores.get(key) == (value if value is None else pytest.approx(value, abs=1e-5)), key


def test_every_subtask_of_the_expected_values_has_a_task(expected):
    groups = [group for kind in KINDS for group in expected[kind] if group.startswith("subtask:")]
    assert sorted(f"subtask:{subtask}" for _, _, subtask in SUBTASKS) == sorted(groups)


@pytest.mark.parametrize(("name", "subset", "subtask"), SUBTASKS)
def test_a_subtask_task_gives_the_expected_scores_of_its_group(stored, expected, name, subset, subtask):
    scores = stored[name][subset]
    values = expected[name.split("-")[1]][f"subtask:{subtask}"]
    assert len(values) == 24
    for metric, value in values.items():
        key = RENAMED.get(metric, metric)
        assert scores.get(key) == (value if value is None else pytest.approx(value, abs=1e-5)), key


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
    for data in load_subsets(TASKS[name], TASKS[name].subsets).values():
        assert data.queries.keys() == data.qrels.keys()
        assert data.queries
        assert data.commit is None
        texts = {query: {data.corpus[document] for document in documents} for query, documents in data.excluded.items()}
        assert texts == ({q: {text} for q, text in data.queries.items()} if "C2C" in name else {}), (
            "not its anchor's text"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_has_one_subtask_and_one_language(real_hub, monkeypatch, kind):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    data = load(TASKS[f"CoREB-{kind}"])
    assert sum(map(len, data.slices.values())) == 2 * len(data.queries)
