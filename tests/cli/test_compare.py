"""``coreb-tasks compare``, as people call it, on predictions that mteb wrote."""

import csv
import io
import json
import shutil

import mteb
import pytest

from coreb_tasks.cli import main
from coreb_tasks.cli.console import one_line
from coreb_tasks.facts import TASKS

T2C, C2C, ONEC = "CoREB-T2C-Sample", "CoREB-C2C-Sample", "1C-Ebench-Sample"
MODELS = {"bm25": "mteb/baseline-bm25s", "random": "mteb/baseline-random-encoder"}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """BM25 and random vectors on three samples: folders of predictions by name, and the scores by model and task."""
    root = tmp_path_factory.mktemp("predictions")
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    scores = {}
    for name, model in MODELS.items():
        tasks = mteb.get_tasks(tasks=[T2C, C2C, ONEC])
        result = mteb.evaluate(mteb.get_model(model), tasks, prediction_folder=root / name, **options)
        scores[name] = {task.task_name: task for task in result}
    return {name: root / name for name in MODELS}, scores


@pytest.fixture
def folders(evaluated):
    return evaluated[0]


def compared(capsys, *arguments, code=0):
    """The JSON that is printed, and what stands on stderr."""
    assert main(["compare", *map(str, arguments), "--format", "json", "--resamples", "200"]) == code
    out = capsys.readouterr()
    return json.loads(out.out), out.err


def file_of(folder, name=T2C):
    return folder / f"{name}_predictions.json"


def test_scores_are_those_of_the_results(evaluated, capsys):
    folders, scores = evaluated
    found, err = compared(capsys, folders["bm25"], folders["random"], "--slices")
    assert err == ""
    assert [run["models"][0].split()[0] for run in found["runs"]] == list(MODELS.values())
    rows = found["comparisons"]
    assert {(row["name"], row["mean_over"]) for row in rows if row["level"] == "task"} == {
        (T2C, "queries"),
        (C2C, "queries"),
        (ONEC, "subsets"),
        (ONEC, "queries"),
    }
    for side, name in (("score_first", "bm25"), ("score_second", "random")):
        for row in rows:
            result = scores[name][row["name"]]
            held = {of_subset["hf_subset"]: of_subset for of_subset in result.scores["test"]}
            if row["level"] == "task" and row["mean_over"] == "subsets":
                expected = result.get_score()
            elif row["level"] == "task" and len(held) > 1:
                expected = sum(s["ndcg_at_10"] * s["n_queries"] for s in held.values()) / row["queries"]
            else:
                part = f"{row['slice']}/" if row["slice"] else ""
                expected = held[row["subset"] or "default"][f"{part}ndcg_at_10"]
            assert row[side] == pytest.approx(expected, abs=1.1e-5)
    slices = {row["slice"] for row in rows if row["level"] == "slice" and row["name"] == C2C}
    assert {f"{part}/ndcg_at_10" for part in slices} <= scores["bm25"][C2C].scores["test"][0].keys()
    assert {"c2c_cross_lang", "language=go"} <= slices
    assert all(row["p_holm"] >= row["p"] for row in rows if row["p"] is not None)


def test_identical_runs_are_ties(folders, capsys):
    found, _ = compared(capsys, folders["bm25"], folders["bm25"])
    assert found["queries"] == []
    for row in found["comparisons"]:
        assert (row["difference"], row["low"], row["high"], row["p"], row["p_holm"]) == (0, 0, 0, 1, 1)
        assert (row["wins"], row["ties"], row["losses"]) == (0, row["queries"], 0)


def test_swapped_runs_give_the_mirrored_interval(folders, capsys):
    there, _ = compared(capsys, *folders.values())
    back, _ = compared(capsys, *reversed(folders.values()))
    for row, turned in zip(there["comparisons"], back["comparisons"], strict=True):
        assert (row["low"], row["high"]) == pytest.approx((-turned["high"], -turned["low"]), abs=1e-12)
        assert (row["wins"], row["losses"]) == (turned["losses"], turned["wins"])
    moved = {(row["query"], row["difference"]) for row in there["queries"]}
    assert moved == {(row["query"], -row["difference"]) for row in back["queries"]}


def test_pairs_all_or_with_the_first_answer_alike(folders, capsys):
    runs = [folders["bm25"], folders["random"], folders["bm25"]]
    every, _ = compared(capsys, *runs, "--seed", "3")
    first, _ = compared(capsys, *runs, "--seed", "3", "--baseline")
    alone, _ = compared(capsys, *runs[:2], "--seed", "3")
    assert (len(every["comparisons"]), len(first["comparisons"])) == (18, 12)
    keys = ("name", "subset", "mean_over", "difference", "low", "high", "p")

    def answers(found):
        return {tuple(row[key] for key in keys) for row in found["comparisons"]}

    assert answers(alone) <= answers(first) <= answers(every)
    other, _ = compared(capsys, *runs[:2], "--seed", "4")
    assert answers(other) != answers(alone)


def test_files_and_run_files_answer_as_the_folder(folders, tmp_path, capsys):
    expected, _ = compared(capsys, *folders.values(), "--task", T2C)
    runs = []
    for name, folder in folders.items():
        runs.append(tmp_path / f"{name}.trec")
        assert main(["export-run", str(file_of(folder)), str(runs[-1])]) == 0
    capsys.readouterr()
    found = [compared(capsys, *runs, "--task", T2C), compared(capsys, *map(file_of, folders.values()))]
    for other, err in found:
        assert err == ""
        kept = [{**row, "first": None, "second": None} for row in other["comparisons"]]
        assert kept == [{**row, "first": None, "second": None} for row in expected["comparisons"]]
    subset, _ = compared(capsys, *folders.values(), "--task", ONEC, "--subset", "forum")
    assert [(row["level"], row["subset"]) for row in subset["comparisons"]] == [("subset", "forum")]


def test_the_table_names_runs_and_shows_queries_with_their_text(folders, capsys):
    arguments = ["compare", *map(str, folders.values()), "--task", T2C, "--queries", "1", "--resamples", "200"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"1: {folders['bm25']} (mteb/baseline-bm25s (0_3_0))\n2: {folders['random']}")
    assert "difference = first - second; interval: 95%, 200 paired resamples" in out
    found, _ = compared(capsys, *folders.values(), "--task", T2C, "--queries", "1")
    (row,) = found["comparisons"]
    for shown in (f"{row['difference']:+.5f}", f"{row['low']:+.5f} to {row['high']:+.5f}", f"{row['p']:.5f}"):
        assert shown in out
    assert f"{row['wins']}/{row['ties']}/{row['losses']}" in out
    assert [move["difference"] > 0 for move in found["queries"]] == [True, False]
    for move in found["queries"]:
        assert move["query"] in out
        assert one_line(move["text"]) in out


def test_csv_holds_the_rows(folders, capsys):
    found, _ = compared(capsys, *folders.values())
    assert main(["compare", *map(str, folders.values()), "--format", "csv", "--resamples", "200"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    expected = [{key: "" if v is None else str(v) for key, v in row.items()} for row in found["comparisons"]]
    assert rows == expected


def test_what_only_some_runs_have_is_named_and_the_rest_compared(folders, tmp_path, capsys):
    partial = tmp_path / "partial"
    shutil.copytree(folders["random"], partial)
    file_of(partial, C2C).unlink()
    file_of(partial, ONEC).write_text("{}")
    file_of(partial, "AppsRetrieval").write_text("{}")
    found, err = compared(capsys, folders["bm25"], partial, code=1)
    assert {row["name"] for row in found["comparisons"]} == {T2C}
    assert f"{C2C} is left out: no run of it in {partial}" in err
    assert f"{ONEC} is left out: {file_of(partial, ONEC)}: " in err
    assert "AppsRetrieval is no task of this package" in err
    shutil.copy(file_of(partial), file_of(partial, TASKS[T2C].reranking))
    _, err = compared_nothing(capsys, folders["bm25"], partial, "--task", T2C)
    assert f"both on the data of {T2C}" in err


def compared_nothing(capsys, *arguments):
    assert main(["compare", *map(str, arguments)]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert all(line.startswith("coreb-tasks compare: ") for line in out.err.splitlines())
    return out


def test_predictions_of_another_release_are_refused(folders, tmp_path, capsys):
    content = json.loads(file_of(folders["bm25"]).read_text())
    content["coreb_tasks"]["data_hash"]["default"] = "0" * 64
    file_of(tmp_path).write_text(json.dumps(content))
    _, err = compared_nothing(capsys, file_of(folders["bm25"]), file_of(tmp_path))
    assert f"{T2C} is left out: " in err
    assert "on data with hash 000000000000" in err


def test_a_missing_query_scores_0_and_is_told(folders, tmp_path, capsys):
    expected, _ = compared(capsys, *map(file_of, folders.values()))
    query, score = expected["queries"][0]["query"], expected["queries"][0]["score_first"]
    content = json.loads(file_of(folders["bm25"]).read_text())
    del content["default"]["test"][query]
    file_of(tmp_path).write_text(json.dumps(content))
    found, err = compared(capsys, file_of(folders["bm25"]), file_of(tmp_path))
    assert f"no result for 1 of 96 queries, which score 0, the first: [{query!r}]" in err
    (row,) = found["comparisons"]
    assert (row["queries"], row["wins"], row["ties"], row["losses"]) == (96, 1, 95, 0)
    assert row["difference"] == pytest.approx(score / 96)
    assert [(move["query"], move["score_second"]) for move in found["queries"]] == [(query, 0)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["A"], "one RUN was given, expected two or more"),
        (["A", "B", "--metric", "ndcg_at_11"], "unknown metric ndcg_at_11, did you mean ndcg_at_1"),
        (["A", "B", "--metric", "speed"], "unknown metric speed, expected one of ndcg_at_1, "),
        (["A", "B", "--seed", "-1"], "--seed is -1, expected 0 or more"),
        (["A", "B", "--resamples", "0"], "--resamples is 0, expected 100 or more"),
        (["A", "B", "--format", "csv", "--queries", "3"], "--queries was given with --format csv"),
        (["A", "B", "--subset", "forum"], "--subset was given without --task"),
        (["A", "B", "--task", "CoREB-T2D"], "unknown task CoREB-T2D, did you mean CoREB-T2C?"),
        (["A", "B", "--task", ONEC, "--subset", "x"], f"{ONEC} has no subset x; it has forum, fastcode"),
        (["A", "none"], "none: names no task"),
        (["A", "run.trec"], "Name --task for other run files."),
        (["A", "empty"], "empty: holds no predictions of mteb (TASK_predictions.json)"),
        (["T", "O"], "the runs have no task in common"),
    ],
)
def test_faults_are_told_and_nothing_is_compared(folders, arguments, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "run.trec").write_text("q1 Q0 d 1 1.0 t\n")
    places = {"A": folders["bm25"], "B": folders["random"], "T": file_of(folders["bm25"])}
    places["O"] = file_of(folders["bm25"], ONEC)
    assert expected in compared_nothing(capsys, *(places.get(argument, argument) for argument in arguments)).err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  a\n\tb   c ", r"a\n b c"),
        ("\x1b[31mred\u202e\x07", r"\x1b[31mred\u202e\x07"),
        ("Модуль Объекта", "Модуль Объекта"),
        ("x" * 25, "x" * 21 + "..."),
        ("x" * 24, "x" * 24),
        ("\x00" * 7, r"\x00\x00\x00\x00\x00\..."),
    ],
)
def test_a_text_on_one_line(text, shown):
    assert one_line(text, 24) == shown
