"""``coreb-tasks check-results`` on a good folder, on the same with one fault, and on what mteb writes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import mteb
import pytest

from coreb_tasks.cli import main
from coreb_tasks.cli.check_results import METRICS, MODEL_FIELDS, expected_queries, expected_revision
from coreb_tasks.data import pinned_hash
from coreb_tasks.facts import OVERALLS, SUITES, TASKS, Task

REVISION = "0123456789abcdef0123456789abcdef01234567"
OTHER_REVISION = "f" * 40
HASH, OTHER_HASH = "a" * 64, "b" * 64  # of data that are not pinned
OVERALL_REVISION = expected_revision(OVERALLS["CoREB-Overall"], {})
SUBMITTED = [*(name for name, task in TASKS.items() if not task.sample), *OVERALLS]


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def scores_of(facts, subset):
    scores = {"hf_subset": subset, "languages": ["eng-Latn"], "main_score": 0.5, "nauc_ndcg_at_10_max": float("nan")}
    scores |= dict.fromkeys(METRICS if isinstance(facts, Task) else ["ndcg_at_10"], 0.5)
    scores["n_queries"] = expected_queries(facts, subset) or 7
    if isinstance(facts, Task):
        scores["relevance_level"] = facts.benchmark.relevance_level
        scores["data_hash"] = pinned_hash(facts, subset) or HASH
    return scores


def metadata(**fields):
    return {**dict.fromkeys(MODEL_FIELDS), "name": "org/model", "revision": REVISION, **fields}


def write_run(folder, model="org/model", tasks=SUBMITTED):
    """A faultless run of a model on tasks, as mteb writes it; returns its folder."""
    run = folder / "results" / model.replace("/", "__") / REVISION
    write(run / "model_meta.json", metadata(name=model))
    settings, revisions = [], {}
    for name in tasks:
        facts = TASKS.get(name) or OVERALLS[name]
        subsets = list(facts.subsets) if isinstance(facts, Task) else ["default"]
        known = dict.fromkeys(subsets, HASH) if isinstance(facts, Task) else revisions
        revisions[name] = expected_revision(facts, known)
        scores = {"test": [scores_of(facts, subset) for subset in subsets]}
        write(run / f"{name}.json", {"task_name": name, "dataset_revision": revisions[name], "scores": scores})
        settings.append(json.dumps({"task": name, "splits": ["test"], "subsets": subsets}) + "\n")
    (run / "run_settings.jsonl").write_text("".join(settings), encoding="utf-8")
    return run


@pytest.fixture
def check(capsys, monkeypatch):
    """Runs it; the exit code, stdout, and the lines of stderr without the program's name."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def check(path):
        capsys.readouterr()
        code = main(["check-results", str(path)])
        written = capsys.readouterr()
        lines = written.err.splitlines()
        assert all(line.startswith("coreb-tasks check-results: ") for line in lines)
        return code, written.out, [line.removeprefix("coreb-tasks check-results: ") for line in lines]

    return check


def words(text):
    return [line.split() for line in text.splitlines()]


def test_a_good_folder_has_no_faults(tmp_path, check):
    run = write_run(tmp_path)
    code, out, faults = check(tmp_path)
    assert (code, faults) == (0, [])
    assert ["org/model", REVISION, str(len(SUBMITTED)), str(len(SUBMITTED))] in words(out)
    assert "there is no" not in out
    for part in (run.parents[1], run.parent, run, run / "CoREB-T2C.json"):
        assert check(part)[0] == 0


def test_it_says_that_the_public_leaderboard_does_not_show_these_tasks(tmp_path, check):
    write_run(tmp_path)
    out = check(tmp_path)[1]
    assert out.count("not shown on the public leaderboard") == 1
    assert "coreb-tasks upstream" in out


def test_missing_tasks_of_a_benchmark_that_was_begun_are_told_and_no_fault(tmp_path, check):
    write_run(tmp_path, tasks=["CoREB-C2C", "CPRet-T2C"])
    code, out, faults = check(tmp_path)
    assert (code, faults) == (0, [])
    assert f"org__model/{REVISION}: of CoREB(v202603) there is no CoREB-T2C, CoREB-C2T" in out.splitlines()
    assert "of CPRet(v1) there is no CPRet-C2C, CPRet-P2Dup, CPRet-S2Full" in out
    assert "v202602" not in out


def test_tasks_of_others_are_named_and_not_judged(tmp_path, check):
    run = write_run(tmp_path)
    write(run / "NFCorpus.json", {"task_name": "NFCorpus", "scores": {"dev": [{"hf_subset": "default"}]}})
    (run / "Broken.json").write_text("{")
    write(tmp_path / "predictions" / "CoREB-T2C_predictions.json", {})
    code, out, faults = check(tmp_path)
    assert (code, faults) == (0, [])
    assert "not judged: Broken, NFCorpus" in out


@pytest.mark.parametrize("content", [None, {"task_name": "NFCorpus", "scores": {"test": [{"hf_subset": "default"}]}}])
def test_a_folder_without_results_of_ours_fails(tmp_path, check, content):
    if content:
        write(tmp_path / "NFCorpus.json", content)
    code, _, faults = check(tmp_path)
    assert code == 1
    assert faults[0].startswith(f"{tmp_path}: holds no result files of our tasks")


def test_a_folder_that_is_not_there_fails(tmp_path, check):
    code, _, faults = check(tmp_path / "none")
    assert (code, faults[0].partition(";")[0]) == (1, f"{tmp_path / 'none'}: no such folder")


# Faults: the file that is named, what is changed in the file, and the reason. A change gets what the file holds (JSON),
# or of the first subset, and returns what it shall hold, or None where it has changed that in place.

WITHOUT = object()


def put(key, value):
    def change(content):
        content[key] = value
        if value is WITHOUT:
            del content[key]

    return change


def first(change):
    return lambda content: change(content["scores"]["test"][0])


def of_first(key, value):
    return first(put(key, value))


def subsets(change):
    return lambda content: put("test", change(content["scores"]["test"]))(content["scores"])


def of_all(score):
    def change(content):
        content["scores"]["test"][0] |= {"main_score": score, "ndcg_at_10": score}

    return change


def revision(value):
    return put("dataset_revision", value)


CHANGED = [*SUITES["CoREB(v202603)"].tasks, "CoREB-T2C-Search", *SUITES["CPRet(v1)"].tasks, "1C-Ebench"]
CHANGED += ["CoREB-Overall", "CPRet-Overall"]
T2C, META, SETTINGS = "CoREB-T2C.json", "model_meta.json", "run_settings.jsonl"
FAULTS = {
    "cut off": (T2C, '{"task_name": "CoREB-T2C", ', "cannot be read"),
    "another shape": (T2C, lambda c: [c], "not a result file of mteb"),
    "no scores": (T2C, put("scores", {}), "holds no scores"),
    "another task's name": (T2C, put("task_name", "CoREB-C2C"), "it holds the task CoREB-C2C"),
    "a name that is not ours": (T2C, put("task_name", "T2C"), "it holds the task T2C"),
    "too large": (T2C, lambda c: json.dumps(c) + " " * 10_000_000, "the results repository takes"),
    "another split": (T2C, lambda c: c["scores"].update(dev=c["scores"]["test"]), "split dev is none of"),
    "no test": (T2C, lambda c: put("dev", c["scores"].pop("test"))(c["scores"]), "split test is missing"),
    "a subset is missing": ("CoREB-T2C-Search.json", subsets(lambda s: s[:-1]), "subset ruby is missing"),
    "of two subsets one is missing": ("1C-Ebench.json", subsets(lambda s: s[:1]), "subset fastcode is missing"),
    "another subset": (T2C, subsets(lambda s: [*s, {"hf_subset": "x"}]), "subset x is none of the task's"),
    "a subset twice": (T2C, subsets(lambda s: s * 2), "subset default stands twice"),
    "no main score": (T2C, of_first("main_score", WITHOUT), "main_score is None"),
    "a main score of text": (T2C, of_first("main_score", "0.5"), "main_score is '0.5'"),
    "a main score in percent": (T2C, of_first("main_score", 50.0), "main_score is 50.0; expected numbers in 0..1"),
    "a main score that is true": (T2C, of_first("main_score", True), "main_score is True"),
    "a main score of NaN": (T2C, of_first("main_score", float("nan")), "main_score is nan"),
    "a metric of NaN": (T2C, of_first("ndcg_at_10", float("nan")), "the first: ndcg_at_10 is nan"),
    "a metric above 1": (T2C, of_first("ndcg_at_10", 1.7), "the first: ndcg_at_10 is 1.7"),
    "a metric of text": (T2C, of_first("recall_at_10", "x"), "recall_at_10 is 'x'"),
    "no metric": (T2C, of_first("mrr_at_5", WITHOUT), "mrr_at_5 is None"),
    "another main score": (T2C, of_first("main_score", 0.9), "main_score is 0.9; expected ndcg_at_10, 0.5"),
    "no languages": (T2C, of_first("languages", WITHOUT), "languages is None"),
    "a slice's metric": (T2C, of_first("language=go/map_at_1", float("inf")), "the first: language=go/map_at_1 is inf"),
    "no level": (T2C, of_first("relevance_level", WITHOUT), "relevance_level is None; expected 2"),
    "another level": (T2C, of_first("relevance_level", 1), "relevance_level is 1; expected 2"),
    "no data hash": ("CPRet-T2C.json", of_first("data_hash", WITHOUT), "data_hash is None; expected a sha256"),
    "a data hash that is none": ("1C-Ebench.json", of_first("data_hash", "xyz"), "data_hash is 'xyz'"),
    "another data hash": (T2C, of_first("data_hash", HASH), f"data_hash is '{HASH}'; expected 'fcf1b04c"),
    "a count of queries": (T2C, of_first("n_queries", 1122), "n_queries is 1122; expected 1123"),
    "no count of queries": ("CPRet-T2C.json", of_first("n_queries", WITHOUT), "n_queries is missing"),
    "a subset's count": (
        "CoREB-T2C-Search.json",
        of_first("n_queries", 50),
        "subset any: n_queries is 50; expected 17",
    ),
    "a pinned count": ("1C-Ebench.json", of_first("n_queries", 2882), "subset forum: n_queries is 2882; expected 2883"),
    "an overall count": ("CoREB-Overall.json", of_first("n_queries", 2600), "n_queries is 2600; expected 2601"),
    "no data version": (T2C, revision(WITHOUT), "dataset_revision is None"),
    "another data version": ("CoREB-C2T.json", revision("sha256:" + HASH), "expected sha256:"),
    "another commit": ("1C-Ebench.json", revision(REVISION), "expected ae3af1"),
    "a version that is no hash": ("CPRet-T2C.json", revision("resolved-when-loaded"), "expected sha256:"),
    "not the version of its hash": ("CPRet-T2C.json", revision(f"sha256:{OTHER_HASH}"), HASH),
    "an overall of other data": ("CoREB-Overall.json", revision(f"sha256:{HASH}"), f"expected {OVERALL_REVISION}"),
    "an overall of other files": ("CPRet-Overall.json", revision(f"sha256:{OTHER_HASH}"), "expected sha"),
    "an overall of other scores": ("CPRet-Overall.json", of_all(0.9), "expected the mean of its parts, 0.5"),
    "a part is missing": ("CoREB-Overall.json", of_first("main_score", None), "a part is missing"),
    "a model without a name": (META, put("name", "no_model_name/available"), "that of the folder org__mod"),
    "another model's metadata": (META, put("name", "org/other"), "name is 'org/other'"),
    "metadata of no revision": (META, put("revision", None), "revision is None"),
    "another revision's metadata": (META, put("revision", OTHER_REVISION), f"revision is '{OTHER_REVISION}'"),
    "an experiment's metadata": (META, put("experiment_kwargs", {"embed_dim": 8}), "experiment_kwargs is"),
    "metadata without a name": (META, put("name", WITHOUT), "expected the metadata of the model"),
    "metadata without fields": (META, put("license", WITHOUT), "expected the metadata of the model"),
    "metadata of another shape": (META, lambda c: [c], "expected the metadata of the model"),
    "metadata cut off": (META, "{", "expected the metadata of the model"),
    "run settings cut off": (SETTINGS, "{", "expected the settings of the run"),
    "run settings of another shape": (SETTINGS, "[]", "expected the settings of the run"),
    "run settings of no task": (SETTINGS, "", "the first: "),
}


@pytest.mark.parametrize(("name", "change", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_file_and_reason(tmp_path, check, name, change, reason):
    file = write_run(tmp_path, tasks=CHANGED) / name
    if not isinstance(change, str):
        content = json.loads(file.read_text())
        changed = change(content)
        change = changed if isinstance(changed, str) else json.dumps(content if changed is None else changed)
    file.write_text(change)
    code, _, faults = check(tmp_path)
    assert code == 1
    assert [line for line in faults if line.startswith(f"{file}: ") and reason in line]
    # An overall score has the faults of its parts, and no other file has any.
    overalls = {str(file.with_name(f"{overall}.json")) for overall in OVERALLS}
    assert {line.partition(": ")[0] for line in faults} <= {str(file), *overalls}


def test_an_overall_needs_its_parts_beside_it(tmp_path, check):
    run = write_run(tmp_path, tasks=CHANGED)
    (run / "CoREB-C2C.json").unlink()
    code, _, faults = check(tmp_path)
    assert code == 1
    assert [line for line in faults if line.startswith(f"{run / 'CoREB-Overall.json'}: no CoREB-C2C beside it")]


def test_a_task_with_a_fault_is_not_complete(tmp_path, check):
    run = write_run(tmp_path, tasks=["CoREB-T2C", "CoREB-C2C"])
    (run / "CoREB-C2C.json").write_text("{")
    write(run / "CoREB-Overall.json", {"task_name": "CoREB-Overall", "scores": {"test": [{"hf_subset": "default"}]}})
    assert ["org/model", REVISION, "2", "1"] in words(check(tmp_path)[1])


def test_every_fault_is_told(tmp_path, check):
    run = write_run(tmp_path)
    for name in ("CoREB-T2C.json", "model_meta.json"):
        (run / name).write_text("{")
    (run / "CoREB-C2C.json").write_text(json.dumps({"task_name": "CoREB-C2C", "scores": {"dev": [{"hf_subset": "x"}]}}))
    told = [(Path(line.partition(": ")[0]).name, line) for line in check(tmp_path)[2]]
    names = ["CoREB-C2C.json"] * 3 + ["CoREB-Overall.json", "CoREB-T2C.json", "model_meta.json"]
    assert [name for name, _ in told] == names
    assert all("expected" in line for _, line in told)


def rename(run, model="org__model", revision=REVISION):
    """The run under other folder names, with metadata that say the same."""
    moved = run.parents[1] / model / revision
    shutil.move(run, moved)
    write(moved / "model_meta.json", metadata(name=model.replace("__", "/"), revision=revision))
    return moved


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"revision": "no_revision_available"}, "its model revision is 'no_revision_available'"),
        ({"revision": "external"}, "its model revision is 'external'"),
        ({"revision": "main"}, "its model revision is 'main'"),
        ({"revision": REVISION[:-1]}, f"its model revision is '{REVISION[:-1]}'; expected 40 hex digits"),
        ({"model": "no_model_name__available"}, "its model is called 'no_model_name__available'"),
        ({"model": "model"}, "its model is called 'model'; expected ORG__MODEL/REVISION/TASK.json"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "/".join(value.values()),
)
def test_names_of_folders_that_the_results_repository_does_not_take(tmp_path, check, names, reason):
    run = rename(write_run(tmp_path), **names)
    code, _, faults = check(tmp_path)
    assert code == 1
    assert len(faults) == 1
    assert faults[0].startswith(f"{run}: {reason}")


def test_files_outside_of_such_folders(tmp_path, check):
    for file in write_run(tmp_path / "written", tasks=["CoREB-T2C"]).iterdir():
        shutil.copy(file, tmp_path)
    shutil.rmtree(tmp_path / "written")
    code, _, faults = check(tmp_path)
    assert code == 1
    assert [line for line in faults if line.startswith(f"{tmp_path}: its model is called")]


@pytest.mark.parametrize("name", ["model_meta.json", "run_settings.jsonl"])
def test_a_file_that_belongs_to_the_results_is_missing(tmp_path, check, name):
    file = write_run(tmp_path) / name
    file.unlink()
    code, _, faults = check(tmp_path)
    assert code == 1
    assert len(faults) == 1
    assert faults[0].startswith(f"{file}: is missing")


def test_samples_are_no_submission(tmp_path, check):
    run = write_run(tmp_path, tasks=["CoREB-T2C", "CoREB-T2C-Sample"])
    code, _, faults = check(tmp_path)
    assert code == 1
    assert len(faults) == 1
    assert faults[0].startswith(f"{run / 'CoREB-T2C-Sample.json'}: the task is a packaged sample")


def test_one_revision_of_a_model_and_task(tmp_path, check):
    run = write_run(tmp_path, tasks=["CoREB-T2C", "CoREB-C2C"])
    other = run.with_name(OTHER_REVISION)
    shutil.copytree(run, other)
    write(other / "model_meta.json", metadata(revision=OTHER_REVISION))
    (other / "CoREB-C2C.json").unlink()
    code, _, faults = check(tmp_path)
    assert code == 1
    assert len(faults) == 1
    assert faults[0].startswith(f"{other / 'CoREB-T2C.json'}: {run / 'CoREB-T2C.json'} is of the same model and task")


@pytest.mark.parametrize(("settings", "code"), [({"embed_dim": 8}, 0), (None, 1)])
def test_experiments_lie_beside_the_plain_run_with_metadata_of_their_own(tmp_path, check, settings, code):
    run = write_run(tmp_path, tasks=["CoREB-T2C"])
    experiment = tmp_path / "copy"
    shutil.copytree(run, experiment)
    experiment = shutil.move(experiment, run / "experiments" / "embed_dim_8")
    held = metadata(experiment_kwargs=settings)
    write(experiment / "model_meta.json", held)
    found, out, faults = check(tmp_path)
    assert found == code
    assert [line.partition(": ")[0] for line in faults] == [str(experiment / "model_meta.json")] * code
    assert ["org/model", f"{REVISION},", "embed_dim_8", "1", "1"] in words(out)


def test_run_settings_of_older_mteb_have_a_line_for_each_subset(tmp_path, check):
    run = write_run(tmp_path, tasks=["1C-Ebench"])
    lines = [json.dumps({"task": "1C-Ebench", "split": "test", "subset": subset}) for subset in ("forum", "fastcode")]
    (run / "run_settings.jsonl").write_text("\n".join(lines))
    assert check(tmp_path)[0] == 0
    (run / "run_settings.jsonl").write_text(lines[0])
    assert "lacks 1 results, the first: 1C-Ebench/test/fastcode" in check(tmp_path)[2][0]


def test_data_that_are_not_pinned_are_of_one_version_over_all_models(tmp_path, check):
    runs = [write_run(tmp_path, f"org/{name}", tasks=["CPRet-T2C", "CPRet-C2C"]) for name in "abc"]
    odd = runs[0] / "CPRet-T2C.json"
    content = json.loads(odd.read_text())
    content["dataset_revision"] = f"sha256:{OTHER_HASH}"
    content["scores"]["test"][0]["data_hash"] = OTHER_HASH
    write(odd, content)
    code, _, faults = check(tmp_path)
    assert code == 1
    assert len(faults) == 1
    reason = f"subset default: data_hash is '{OTHER_HASH}'; expected '{HASH}', as in {runs[1]}"
    assert faults[0].startswith(f"{odd}: {reason}")


def test_revisions_and_counts_are_those_of_the_tasks():
    from coreb_tasks.tasks.table import OVERALL_TASKS, TASKS

    tasks = {**TASKS, **OVERALL_TASKS}
    registered = {name: task.metadata.revision for name, task in tasks.items()}
    of_facts = {name: expected_revision(task.facts, {}) or "resolved-when-loaded" for name, task in tasks.items()}
    assert of_facts == registered


def test_what_mteb_writes_is_found_and_judged(tmp_path, check):
    task = mteb.get_task("CoREB-T2C-Sample")
    model = mteb.get_model("mteb/baseline-random-encoder")
    mteb.evaluate(model, task, cache=mteb.ResultCache(tmp_path), co2_tracker=False, show_progress_bar=False)
    (run,) = (tmp_path / "results" / "mteb__baseline-random-encoder").iterdir()
    code, out, faults = check(tmp_path)
    assert code == 1
    assert ["mteb/baseline-random-encoder", run.name, "1", "0"] in words(out)
    assert [line.partition(";")[0] for line in faults] == [
        f"{run}: its model revision is '{run.name}'",
        f"{run / 'CoREB-T2C-Sample.json'}: the task is a packaged sample, for trying things out, and no submission",
    ]


def test_it_loads_nothing_heavy(tmp_path):
    write_run(tmp_path, tasks=["CoREB-T2C"])
    heavy = ["mteb", "torch", "datasets", "transformers", "sentence_transformers", "pandas", "pyarrow"]
    program = (
        "import sys; from coreb_tasks.cli import main; code = main(['check-results', sys.argv[1]]); "
        f"print(code, sorted({{*{heavy}}} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
