"""``coreb-tasks export``, ``export-run`` and ``score``, as people call them."""

import csv
import io
import json

import mteb
import pytest

from coreb_tasks.cli import main
from coreb_tasks.facts import TASKS

MODEL = "mteb/baseline-bm25s"
SAMPLES = [name for name, task in TASKS.items() if task.sample and task.reranks is None]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """BM25 on every sample: folder of predictions, and the scores by task and subset."""
    folder = tmp_path_factory.mktemp("predictions")
    tasks = mteb.get_tasks(tasks=SAMPLES)
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    result = mteb.evaluate(mteb.get_model(MODEL), tasks, prediction_folder=folder, **options)
    return folder, {task.task_name: {scores["hf_subset"]: scores for scores in task.scores["test"]} for task in result}


def predictions_of(evaluated, name):
    return str(evaluated[0] / f"{name}_predictions.json")


def scored(capsys, *arguments):
    assert main(["score", *map(str, arguments), "--json"]) == 0
    out = capsys.readouterr()
    return json.loads(out.out), out.err


def without_mtebs_own(scores):
    """Scores without what mteb adds, and with MRR rounded, which mteb does not."""
    own = {key for key in scores if key.startswith("nauc")} | {"languages", "accuracy", "mteb_version"}
    return {key: round(v, 5) if "mrr" in key else v for key, v in scores.items() if key not in own}


@pytest.mark.parametrize("name", SAMPLES)
def test_predictions_and_written_runs_score_as_the_task_does(evaluated, name, tmp_path, capsys):
    expected = {subset: without_mtebs_own(scores) for subset, scores in evaluated[1][name].items()}
    runs = [predictions_of(evaluated, name)]
    for kind in ("trec", "beir"):
        assert main(["export-run", runs[0], str(tmp_path / kind), "--format", kind]) == 0
        runs.append(tmp_path / kind)
    capsys.readouterr()
    found, warnings = scored(capsys, name, *runs)
    assert (found["task_name"], warnings) == (name, "")
    assert [run["run"] for run in found["runs"]] == list(map(str, runs))
    for run in found["runs"]:
        assert {scores["hf_subset"]: scores for scores in run["scores"]["test"]} == expected
        assert run["main_score"] == pytest.approx(sum(s["main_score"] for s in expected.values()) / len(expected))
    assert found["runs"][0]["model"].startswith(f"{MODEL} (")


def test_the_table_shows_whole_and_slices(evaluated, capsys):
    name = "CoREB-C2C-Sample"
    assert main(["score", name, predictions_of(evaluated, name), "--slices"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "predictions" in line]
    scores = evaluated[1][name]["default"]
    assert rows[0][1:4] == ["default", "28", f"{scores['ndcg_at_10']:.5f}"]
    assert rows[1][1:5] == ["default", "c2c_cross_lang", "12", f"{scores['c2c_cross_lang/ndcg_at_10']:.5f}"]
    assert len(rows) == 9


def test_a_row_for_each_query(evaluated, capsys, tmp_path):
    name = "CoREB-C2C-Sample"
    for arguments in (["--per-query"], ["--json", "--per-query", str(tmp_path / "queries.csv")]):
        assert main(["score", name, predictions_of(evaluated, name), *arguments]) == 0
        out = capsys.readouterr().out
        text = out if len(arguments) == 1 else (tmp_path / "queries.csv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text)))
        scores = evaluated[1][name]["default"]
        assert len(rows) == scores["n_queries"]
        for key in ("ndcg_at_10", "map_at_100", "mrr_at_1", "hit_rate_at_20"):
            assert sum(float(row[key]) for row in rows) / len(rows) == pytest.approx(scores[key], abs=5e-6)
        decided = [int(row["hard_negative_intrusion_at_10"]) for row in rows if row["hard_negative_intrusion_at_10"]]
        assert len(decided) == scores["hard_negative_intrusion_n"]
        assert sum(decided) / len(decided) == pytest.approx(scores["hard_negative_intrusion_at_10"], abs=5e-6)
        assert {row["subset"] for row in rows} == {"default"}
    json.loads(out)


def test_a_run_with_the_anchor_and_queries_missing_and_surplus(tiny_hub, tmp_path, capsys):
    run = tmp_path / "run.trec"
    run.write_text("q1 Q0 d 1 1.0 t\nq1 Q0 a 2 0.9 t\nq1 Q0 b 3 0.0 t\nq9 Q0 zz 1 1 t\n")
    found, warnings = scored(capsys, "Tiny-C2C", run)
    (scores,) = found["runs"][0]["scores"]["test"]
    assert (scores["ndcg_at_10"], scores["mrr_at_10"], scores["n_queries"]) == (1, 1, 1)
    assert "warning: " in warnings
    assert "1 queries are not the task's and are left out, the first: ['q9']" in warnings
    found, warnings = scored(capsys, "Tiny-T2C", run)
    (scores,) = found["runs"][0]["scores"]["test"]
    assert (scores["ndcg_at_10"], scores["n_queries"], scores["n_queries_answered"]) == (0.31546, 2, 1)
    assert "no result for 1 of 2 queries, which score 0, the first: ['q2']" in warnings


@pytest.fixture
def tiny_hub(hub, monkeypatch):
    for kind in ("T2C", "C2C"):
        monkeypatch.setitem(TASKS, f"Tiny-{kind}", hub.task(kind))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["score", "CoREB-T2D", "x"], "unknown task CoREB-T2D, did you mean CoREB-T2C?"),
        (["score", "CoREB-Overall", "x"], "CoREB-Overall is a score over tasks"),
        (["score", "Tiny-T2C", "none.trec"], "none.trec: cannot be read"),
        (["score", "Tiny-T2C", "bad.trec"], "bad.trec, line 1: 2 columns, expected 6"),
        (["score", "Tiny-T2C", "bad.trec", "--subset", "go"], "Tiny-T2C has no subset go; it has default"),
        (["score", "Tiny-T2C", "bad.trec", "--json", "bad.trec"], "bad.trec exists; name a new file"),
        (["score", "Tiny-T2C", "bad.trec", "--json", "--per-query"], "both write to the terminal"),
        (["export", "CoREB-Overall", "out", "--format", "beir"], "CoREB-Overall is a score over tasks"),
        (["export", "Tiny-T2C", ".", "--format", "beir"], "is not empty; expected a new or an empty folder"),
        (["export", "Tiny-T2C", "bad.trec", "--format", "beir"], "is a file; expected a new or an empty folder"),
        (["export", "Tiny-T2C", "out", "--format", "beir", "--subset", "x"], "has no subset x"),
        (["export-run", "none.json", "out"], "none.json: cannot be read"),
        (["export-run", "bad.trec", "out"], "bad.trec: cannot be read as predictions of mteb"),
        (["export-run", "none.json", "bad.trec"], "bad.trec exists; name a new file"),
    ],
)
def test_faults_are_one_line_and_exit_1(tiny_hub, arguments, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.trec").write_text("q1 a\n")
    assert main(arguments) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith(f"coreb-tasks {arguments[0]}: ")
    assert expected in out.err
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "bad.trec").read_text() == "q1 a\n"


def test_an_export_prints_the_file_that_describes_it(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", "1C-Ebench-Sample", str(out), "--format", "beir", "--split", "test"]) == 0
    assert capsys.readouterr().out == f"{out / 'coreb_tasks.json'}\n"
    assert {path.name for path in out.iterdir()} == {"coreb_tasks.json", "forum", "fastcode"}


def test_other_splits_and_formats_are_refused(tmp_path, capsys):
    for arguments in (["--format", "csv"], ["--format", "beir", "--split", "train"], []):
        with pytest.raises(SystemExit) as error:
            main(["export", "CoREB-T2C-Sample", str(tmp_path / "out"), *arguments])
        assert error.value.code == 2


def test_predictions_of_stock_mteb_are_known_by_their_name_or_by_the_option(tiny_hub, tmp_path, capsys):
    header = {"mteb_model_meta": {"model_name": "org/model", "revision": "1"}}
    content = json.dumps({**header, "default": {"test": {"q1": {"d": 3.0, "a": 2.0, "b": 2.0}}}})
    for name, arguments in (("Tiny-C2C_predictions.json", []), ("mine.json", ["--task", "Tiny-C2C"])):
        (tmp_path / name).write_text(content)
        out = tmp_path / f"{name}.trec"
        assert main(["export-run", str(tmp_path / name), str(out), *arguments]) == 0
        assert out.read_text() == "q1 Q0 b 1 2.0 org/model\nq1 Q0 a 2 1.999999761581421 org/model\n"
        assert "does not say which data" in capsys.readouterr().err
    assert main(["export-run", str(tmp_path / "mine.json"), str(tmp_path / "other")]) == 1
    assert "unknown task mine" in capsys.readouterr().err


@pytest.mark.real_data
def test_bm25_on_the_real_data_scores_alike_as_run_file(tmp_path, monkeypatch, real_hub, capsys):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    result = mteb.evaluate(mteb.get_model(MODEL), mteb.get_task("CoREB-C2C"), prediction_folder=tmp_path, **options)
    (expected,) = result.task_results[0].scores["test"]
    predictions = tmp_path / "CoREB-C2C_predictions.json"
    assert main(["export-run", str(predictions), str(tmp_path / "run.trec.gz")]) == 0
    capsys.readouterr()
    found, warnings = scored(capsys, "CoREB-C2C", predictions, tmp_path / "run.trec.gz")
    assert warnings == ""
    for run in found["runs"]:
        (scores,) = run["scores"]["test"]
        assert scores == without_mtebs_own(expected)
        assert scores["ndcg_at_10"] == 0.29829
