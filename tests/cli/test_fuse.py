"""``coreb-tasks fuse``: the fused run beside its parts, and as predictions for other commands."""

import json

import mteb
import pytest

from coreb_tasks.cli import main
from coreb_tasks.data.predictions import read_predictions
from coreb_tasks.facts import TASKS


@pytest.fixture
def tiny(hub, monkeypatch, tmp_path):
    """Two runs of the tiny C2C task, whose anchor is d."""
    for kind in ("T2C", "C2C"):
        monkeypatch.setitem(TASKS, f"Tiny-{kind}", hub.task(kind))
    for name, lines in (("one", "d 1 9,b 2 5,a 3 4"), ("other", "a 1 .9,d 2 .8,c 3 .1")):
        rows = [f"q1 Q0 {line} t\n" for line in lines.split(",")]
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    return [str(tmp_path / "one.trec"), str(tmp_path / "other.trec")]


def test_the_fused_run_is_scored_beside_its_parts(tiny, capsys):
    assert main(["fuse", *tiny, "--task", "Tiny-C2C", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fusion"] == {"method": "rrf", "k": 60, "depth": 100}
    scores = {run["run"]: run["scores"]["test"][0] for run in found["runs"]}
    assert list(scores) == [*tiny, "rrf (k 60, depth 100)"]
    assert [of_run["ndcg_at_10"] for of_run in scores.values()] == [0.63093, 1.0, 1.0]
    assert [of_run["hard_negative_intrusion_n"] for of_run in scores.values()] == [1, 0, 1]


def test_the_table_has_a_row_for_each_run(tiny, capsys):
    assert main(["fuse", *tiny, "--task", "Tiny-C2C", "--k", "1", "--depth", "1"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if "default" in line]
    assert [row[-4] for row in rows] == ["0.63093", "1.00000", "0.63093"]  # a and b tie: b comes first
    assert "rrf (k 1, depth 1)" in out


def test_the_written_run_scores_the_same_and_says_what_it_is(tiny, capsys, tmp_path):
    out = tmp_path / "Tiny-C2C_predictions.json"
    assert main(["fuse", *tiny, "--task", "Tiny-C2C", "--out", str(out)]) == 0
    written = read_predictions(out)
    assert (written.header.model, written.header.revision) == (f"rrf({tiny[0]} + {tiny[1]})", "k=60, depth=100")
    assert (written.header.task, list(written.header.data_hash)) == ("Tiny-C2C", ["default"])
    run = written.runs["default"]["test"]["q1"]
    assert run == {"a": 1 / 61 + 1 / 62, "b": 1 / 61, "c": 1 / 62}  # d, the anchor, takes up no rank
    capsys.readouterr()
    assert main(["score", "Tiny-C2C", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["runs"][0]["main_score"] == 1.0
    assert captured.err == ""
    assert main(["fuse", *tiny, "--task", "Tiny-C2C", "--out", str(out)]) == 1
    assert f"{out} exists; name a new file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{0}"], "one RUN was given, expected two or more"),
        (["{0}", "{1}"], "names no task"),
        (["{0}", "{1}", "--task", "Tiny-C2D"], "unknown task Tiny-C2D, did you mean"),
        (["{0}", "{1}", "--task", "Tiny-T2C", "--subset", "x"], "has no subset x"),
        (["{0}", "none.trec", "--task", "Tiny-C2C"], "none.trec: cannot be read"),
        (["{0}", "{1}", "--task", "Tiny-C2C", "--depth", "0", "--k", "-1"], "--depth is 0, expected 1 or more"),
        (["{0}", "{1}", "--task", "Tiny-C2C", "--k", "100000"], "--k is 100000, expected 0 to 1,000"),
        (["{0}", "{0}", "--task", "Tiny-C2C"], "a RUN was given twice"),
        (["{0}", "{1}", "--task", "Tiny-C2C", "--out", "x.trec"], "expected a name that ends with .json"),
    ],
)
def test_faults_are_named(tiny, arguments, expected, capsys):
    assert main(["fuse", *(argument.format(*tiny) for argument in arguments)]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert expected in out.err


def test_bm25_and_a_dense_run_fuse_over_every_subset_and_serve_as_a_first_stage(tmp_path, capsys):
    name, folders = "1C-Ebench-Sample", [tmp_path / "bm25", tmp_path / "random"]
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    for model, folder in zip(("mteb/baseline-bm25s", "mteb/baseline-random-encoder"), folders, strict=True):
        mteb.evaluate(mteb.get_model(model), mteb.get_task(name), prediction_folder=folder, **options)
    out = tmp_path / f"{name}_predictions.json"
    assert main(["fuse", *map(str, folders), "--out", str(out), "--json"]) == 0
    *_, fused = json.loads(capsys.readouterr().out)["runs"]
    task = mteb.get_task("1C-Ebench-Reranking-Sample").convert_to_reranking(out)
    result = mteb.evaluate(mteb.get_model("mteb/baseline-random-cross-encoder"), task, **options)
    first = {s["hf_subset"]: s["first_stage/ndcg_at_10"] for s in result.task_results[0].scores["test"]}
    assert first == {scores["hf_subset"]: scores["ndcg_at_10"] for scores in fused["scores"]["test"]}
    assert "mteb/baseline-bm25s (" in read_predictions(out).header.model
