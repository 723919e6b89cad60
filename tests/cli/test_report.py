"""``coreb-tasks report`` on result files in mteb's shape."""

import json
import math
import re
from itertools import takewhile

import pytest

from coreb_tasks.cli import main
from coreb_tasks.data import pinned_hash
from coreb_tasks.facts import TASKS
from coreb_tasks.task_metadata import num_queries

SCORES = {
    "hf_subset": "default",
    "languages": ["eng-Latn"],
    "main_score": 0.61803,
    "relevance_level": 2,
    "ndcg_at_10": 0.61803,
    "recall_at_10": 0.70711,
    "mrr_at_10": 0.57722,
    "hard_negative_intrusion_at_10": 0.25,
    "hard_negative_intrusion_n": 8,
}
SHOWN = ["1,123", "0.61803", "0.70711", "0.57722", "0.25000"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path / "results"


def queries(task, scores):
    return num_queries(TASKS[task].retrieval, scores["hf_subset"])


@pytest.fixture
def store(folder):
    """Writes a result file of a model as mteb does, and returns it."""

    def store(task="CoREB-T2C", scores=SCORES, model="org/model", *, split="test", meta=True, folder=folder):
        revision = folder / "results" / model.replace("/", "__") / "abc123"
        revision.mkdir(parents=True, exist_ok=True)
        if meta:
            (revision / "model_meta.json").write_text(json.dumps({"name": model, "revision": "abc123"}))
        subsets = [
            {"data_hash": pinned_hash(TASKS[task], one["hf_subset"]), "n_queries": queries(task, one), **one}
            for one in (scores if isinstance(scores, list) else [scores])
        ]
        result = {"dataset_revision": "sha256:0", "task_name": task, "scores": {split: subsets}}
        file = revision / f"{task}.json"
        file.write_text(json.dumps(result), encoding="utf-8")
        return file

    return store


@pytest.fixture
def report(capsys, folder):
    """Runs it; the exit code, the rows of the first table (lists of cells; empty cells leave none) and stderr."""

    def report(*options, path=folder):
        code = main(["report", str(path), *options])
        written = capsys.readouterr()
        first = takewhile(lambda line: not line[:1].strip(), written.out.splitlines())  # up to the next one's title
        rows = [re.split(r" {2,}", line.strip()) for line in first if line.strip(" ─")]
        return code, rows, written.err

    return report


def test_values_stand_as_in_the_file(store, report):
    store()
    code, (head, row), errors = report()
    assert head == ["model", "task", "split", "subset", "queries", "nDCG@10", "Recall@10", "MRR@10", "intrusion"]
    assert row == ["org/model", "CoREB-T2C", "test", "default", *SHOWN]
    assert (code, errors) == (0, "")


def test_each_model_task_and_subset_has_a_row(store, report):
    store("CoREB-T2C")
    store("1C-Ebench", [{**SCORES, "relevance_level": 1, "hf_subset": subset} for subset in ("forum", "fastcode")])
    store("CoREB-T2C", model="org/another")
    _, rows, _ = report()
    assert [row[:4] for row in rows[1:]] == [
        ["org/another", "CoREB-T2C", "test", "default"],
        ["org/model", "1C-Ebench", "test", "fastcode"],
        ["org/model", "1C-Ebench", "test", "forum"],
        ["org/model", "CoREB-T2C", "test", "default"],
    ]


@pytest.mark.parametrize("missing", ["n_queries", "recall_at_10", "mrr_at_10", "hard_negative_intrusion_at_10"])
def test_a_missing_value_is_a_dash_in_its_place(store, report, missing):
    keys = ["n_queries", "ndcg_at_10", "recall_at_10", "mrr_at_10", "hard_negative_intrusion_at_10"]
    whole = {**SCORES, "n_queries": 1123}
    file = store(scores={key: value for key, value in whole.items() if key != missing})
    if missing == "n_queries":  # which the helper would fill in
        file.write_text(file.read_text().replace('"n_queries": 1123, ', ""))
    store(scores={**whole, missing: None}, model="org/other")
    code, (_, absent, null), _ = report()
    expected = ["-" if key == missing else shown for key, shown in zip(keys, SHOWN, strict=True)]
    assert absent[4:] == null[4:] == expected
    assert code == 0


def test_zero_is_a_value(store, report):
    store(scores={**SCORES, "ndcg_at_10": 0.0, "main_score": 0.0, "hard_negative_intrusion_at_10": 0.0})
    _, (_, row), _ = report()
    assert (row[5], row[8]) == ("0.00000", "0.00000")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("ndcg_at_10", value) for value in (math.nan, math.inf, 1.5, -0.2, True)),
        ("t2c_search_go/recall_at_10", math.nan),
        ("rerank_delta/ndcg_at_10", -1.5),
        *(("n_queries", value) for value in (0, -5, 277.5, math.nan, math.inf, 100)),
        ("t2c_search_go/n_queries", 0),
        ("hard_negative_intrusion_n", -1),
        ("main_score", 0.9),
    ],
)
def test_a_value_that_no_result_has_leaves_the_file_out(store, report, key, value):
    file = store(scores={**SCORES, **({"main_score": value} if key == "ndcg_at_10" else {}), key: value})
    store("CoREB-C2C")
    code, (_, *rows), errors = report()
    assert (code, [row[1] for row in rows]) == (1, ["CoREB-C2C"])
    assert errors.startswith(f"coreb-tasks report: {file}: subset default: ")
    assert f"is {value!r}; expected " in errors or f"is {value}; expected " in errors


def test_a_difference_can_be_negative(store, report):
    store(scores={**SCORES, "rerank_delta/ndcg_at_10": -0.5})
    assert report()[0] == 0


def test_a_narrow_terminal_breaks_names_and_never_numbers(store, folder, monkeypatch, capsys):
    store("CoREB-T2C", model="organisation/a-model-with-a-long-name")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["report", str(folder)]) == 0
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert all(number in out for number in SHOWN)
    assert "organisation/a-model-with-a-long-name" not in out


SLICED = {
    **SCORES,
    "t2c_search_go/n_queries": 12,
    "t2c_search_go/ndcg_at_10": 0.5,
    "t2c_search_go/recall_at_10": 0.75,
    "t2c_search_go/mrr_at_10": 0.125,
    "language=none/ndcg_at_10": 0.375,
    "language=none/hard_negative_intrusion_at_10": 1.0,
}


def test_slices_are_rows_of_their_own_on_request(store, report):
    store(scores=SLICED)
    code, (head, whole, *slices), _ = report("--slices")
    assert head[3:6] == ["subset", "slice", "queries"]
    assert whole == ["org/model", "CoREB-T2C", "test", "default", *SHOWN]
    assert [row[:4] for row in slices] == [["org/model", "CoREB-T2C", "test", "default"]] * 2
    assert sorted(row[4:] for row in slices) == [
        ["language=none", "-", "0.37500", "-", "-", "1.00000"],
        ["t2c_search_go", "12", "0.50000", "0.75000", "0.12500", "-"],
    ]
    assert code == 0


def test_slices_are_left_out_otherwise(store, report):
    store(scores=SLICED)
    assert report()[1][1:] == [["org/model", "CoREB-T2C", "test", "default", *SHOWN]]


BAD = {
    "broken JSON": '{"task_name": "X", ',
    "an empty file": "",
    "another shape": '{"name": "no result"}',
    "a list": "[1, 2]",
    "a number": "3",
    "no scores": '{"task_name": "X"}',
    "scores of another shape": '{"task_name": "X", "scores": [1]}',
    "a split of another shape": '{"task_name": "X", "scores": {"test": 3}}',
    "a subset of another shape": '{"task_name": "X", "scores": {"test": ["default"]}}',
    "a subset without its name": '{"task_name": "X", "scores": {"test": [{"ndcg_at_10": 1.0}]}}',
    "not UTF-8": b'{"task_name": "\xff"}',
    "a metric that is a text": '{"task_name": "X", "scores": {"test": [{"hf_subset": "d", "ndcg_at_10": "high"}]}}',
    "a metric that is a list": '{"task_name": "X", "scores": {"test": [{"hf_subset": "d", "ndcg_at_10": [1]}]}}',
    "a task without a name": '{"task_name": null, "scores": {"test": [{"hf_subset": "d"}]}}',
    "a slice's metric that is a text": (
        '{"task_name": "X", "scores": {"test": [{"hf_subset": "d", "part/ndcg_at_10": "high"}]}}'
    ),
    "a subset that is a number": '{"task_name": "X", "scores": {"test": [{"hf_subset": 1}]}}',
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_bad_file_is_named_and_the_good_ones_are_still_printed(store, report, content):
    good = store()
    bad = good.with_name("Bad.json")
    bad.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, rows, errors = report()
    assert code == 1
    assert rows[1:] == [["org/model", "CoREB-T2C", "test", "default", *SHOWN]]
    assert errors.startswith(f"coreb-tasks report: {bad}: ")
    assert len(errors.splitlines()) == 1


def test_every_bad_file_is_named(store, report):
    good = store()
    bad = [good.with_name(name) for name in ("A.json", "B.json")]
    for file in bad:
        file.write_text("{")
    good.unlink()
    code, rows, errors = report()
    assert (code, rows) == (1, [])
    assert [str(file) in line for file, line in zip(bad, errors.splitlines(), strict=True)] == [True, True]


@pytest.mark.parametrize("content", ["{", '{"revision": "abc"}', "[]"])
def test_bad_model_metadata_are_named(store, report, content):
    metadata = store().with_name("model_meta.json")
    metadata.write_text(content)
    store("CoREB-C2C", model="org/good")
    code, rows, errors = report()
    assert code == 1
    assert [row[0] for row in rows[1:]] == ["org/good"]
    assert str(metadata) in errors


def test_without_model_metadata_the_folder_names_the_model(store, report):
    store(meta=False)
    assert report()[1][1][0] == "org/model"


def test_one_file_can_be_given(store, report):
    store("CoREB-C2C")
    file = store("CoREB-T2C")
    code, rows, _ = report(path=file)
    assert code == 0
    assert [row[1] for row in rows[1:]] == ["CoREB-T2C"]


@pytest.mark.parametrize("path", ["CoREB-T2C.json", "."])
@pytest.mark.parametrize("meta", [True, False], ids=["metadata", "no metadata"])
def test_the_model_is_named_from_within_its_folder_too(store, report, monkeypatch, path, meta):
    monkeypatch.chdir(store(meta=meta).parent)
    assert report(path=path)[1][1][0] == "org/model"


def test_what_mteb_writes_beside_results_is_passed_over(store, report):
    file = store()
    file.with_name("CoREB-T2C_predictions.json").write_text("{}")
    file.with_name("run_settings.jsonl").write_text("{}")
    code, rows, errors = report()
    assert (code, len(rows), errors) == (0, 2, "")


def test_a_folder_without_results_is_an_error(folder, report):
    folder.mkdir()
    (folder / "notes.txt").write_text("none")
    code, rows, errors = report()
    assert (code, rows) == (1, [])
    assert f"{folder}: no MTEB result files" in errors


def test_a_folder_that_is_not_there_is_an_error(folder, report):
    code, rows, errors = report()
    assert (code, rows) == (1, [])
    assert f"{folder}: no such folder" in errors


def test_square_brackets_and_long_names_are_printed_as_they_are(store, report):
    name = "org/[bold]" + "x" * 300
    store().with_name("model_meta.json").write_text(json.dumps({"name": name}))
    assert report()[1][1][0] == name


INCOMPARABLE = {
    "a task of others": ({}, "NanoBEIR", "not one of our tasks"),
    "no nDCG@10": ({"ndcg_at_10": None}, "CoREB-T2C", "has no ndcg_at_10"),
    "no main score": ({"main_score": None}, "CoREB-T2C", "has no main_score"),
    "another level": ({"relevance_level": 1}, "CoREB-T2C", "relevance_level is 1; expected 2"),
    "other data": ({"data_hash": "0" * 64}, "CoREB-T2C", "data_hash is '000"),
    "another split": ({}, "CoREB-T2C", "expected each of default of test once"),
    "another subset": ({"hf_subset": "go"}, "CoREB-T2C", "expected each of default of test once"),
    "a part of the subsets": ({"hf_subset": "any"}, "CoREB-T2C-Search", "expected each of any, python, java"),
    "a mean without its parts": ({"main_score": None}, "CoREB-Overall", "run all of its parts"),
}


@pytest.mark.parametrize(("change", "task", "reason"), INCOMPARABLE.values(), ids=INCOMPARABLE)
def test_what_cannot_stand_beside_others_is_left_out_with_the_reason(store, report, change, task, reason):
    good = store("CoREB-C2C")
    result = json.loads(store("CoREB-T2C").read_text())
    good.with_name("CoREB-T2C.json").unlink()
    bad = good.with_name(f"{task}.json")
    split = "dev" if reason.endswith("once") and not change else "test"
    scores = {split: [{**result["scores"]["test"][0], **change}]}
    bad.write_text(json.dumps({**result, "task_name": task, "scores": scores}))
    code, rows, errors = report()
    assert (code, [row[1] for row in rows[1:]]) == (1, ["CoREB-C2C"])
    assert errors.startswith(f"coreb-tasks report: {bad}: ")
    assert reason in errors


def test_two_files_of_a_run_and_task_are_both_named_and_left_out(store, folder, tmp_path, capsys):
    files = [store(), store(folder=tmp_path / "again")]
    store("CoREB-C2C")
    assert main(["report", str(folder), str(tmp_path / "again"), "--format", "csv"]) == 1
    written = capsys.readouterr()
    assert "CoREB-C2C" in written.out
    assert "CoREB-T2C,test" not in written.out
    for file, line in zip(files, written.err.splitlines(), strict=True):
        assert line.startswith(f"coreb-tasks report: {file}: ")
        assert all(str(other) in line for other in files)


def test_a_file_that_is_given_twice_counts_once(store, folder, capsys):
    file = store()
    assert main(["report", str(folder), str(file)]) == 0
    assert capsys.readouterr().err == ""


def test_data_that_are_not_pinned_must_be_the_same_in_all_files(store, report):
    for position, data_hash in enumerate(("a", "a", "b")):
        store("CPRet-T2C", {**SCORES, "relevance_level": 1, "data_hash": data_hash}, model=f"org/{position}")
    code, rows, errors = report()
    assert (code, [row[0] for row in rows[1:]]) == (1, ["org/0", "org/1"])
    assert "org__2" in errors
    assert "data_hash is 'b'; expected 'a'" in errors


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--reference", "--benchmark", "CoREB(v20260)"], "did you mean CoREB(v202603)?"),
        (["--reference", "--benchmark", "zzz"], "expected one of CoREB(v202603), "),
        (["--reference", "--benchmark", "CPRet(sample)"], "CPRet(sample): no scores on it"),
    ],
)
def test_what_cannot_be_reported_is_an_error_that_says_what_to_do(capsys, options, expected):
    assert main(["report", *options]) == 1
    assert expected in capsys.readouterr().err


def test_one_benchmark_can_be_asked_for(store, report):
    store("CoREB-T2C")
    store("CoREB-T2C-v202602")
    assert [row[1] for row in report("--benchmark", "CoREB(v202602)")[1][1:]] == ["CoREB-T2C-v202602"]


def test_without_its_libraries_the_page_is_an_error_and_the_tables_are_printed(store, report, tmp_path, monkeypatch):
    store()
    monkeypatch.setattr("coreb_tasks.reports.page.find_spec", lambda name: None)
    code, rows, errors = report("--out", str(tmp_path / "page.html"))
    assert (code, len(rows)) == (1, 2)
    assert "jinja2 and matplotlib" in errors
    assert "pip install 'coreb-tasks[report]'" in errors


def test_a_page_that_cannot_be_written_is_an_error(store, report, tmp_path):
    store()
    code, _, errors = report("--out", str(tmp_path / "nowhere" / "page.html"))
    assert code == 1
    assert "nowhere" in errors
