"""What mteb knows of the tasks, by its public calls and commands; and that it returns no stale results of theirs."""

import importlib
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
from copy import deepcopy

import mteb
import numpy as np
import pytest
from mteb.models import ModelMeta

from coreb_tasks import registry
from coreb_tasks.cli import main
from coreb_tasks.facts import TASKS as FACTS
from coreb_tasks.tasks import TASKS, table
from coreb_tasks.tasks.table import task_class

LISTED = [name for name, task in FACTS.items() if not task.sample]
RETRIEVAL = [name for name in LISTED if not FACTS[name].reranks]
SAMPLES = [name for name, task in FACTS.items() if task.sample]
B_ABOVE_A = 0.81546  # nDCG@10 of q1 .63093 (its one relevant document second) and q2 1, in the mean


def names(**filters):
    return [task.metadata.name for task in mteb.get_tasks(**filters)]


def start(*command, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "COREB_TASKS_AUTOLOAD"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env={**inherited, **environment}, timeout=300, check=False
    )


# What mteb knows


@pytest.mark.parametrize("name", FACTS)
def test_get_task_knows_every_task_by_name(name):
    task = mteb.get_task(name)
    assert type(task) is TASKS[name]
    assert task.metadata.name == name


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"task_types": ["Retrieval"]},
        {"task_types": ["Reranking"]},
        {"domains": ["Programming"], "modalities": ["text"]},
    ],
    ids=str,
)
def test_get_tasks_without_names_lists_all_but_the_samples(filters):
    types = filters.get("task_types", ["Retrieval", "Reranking"])
    found = names(**filters)
    assert [name for name in found if name in FACTS] == [
        name for name in LISTED if ("Reranking" if FACTS[name].reranks else "Retrieval") in types
    ]
    assert {f"CorebT2C{type_}" for type_ in types} <= {*found}


@pytest.mark.parametrize(
    "filters", [{"task_types": ["Classification"]}, {"domains": ["Legal"]}, {"languages": ["fra"]}]
)
def test_filters_leave_the_tasks_out(filters):
    found = names(**filters)
    assert found
    assert not {*found} & {*FACTS}


def test_samples_are_found_by_name_and_among_what_is_not_public():
    assert names(tasks=SAMPLES) == SAMPLES
    assert {*SAMPLES} < {*names(exclude_private=False)}


def test_a_model_trained_on_mtebs_task_is_not_zero_shot_on_ours():
    meta = ModelMeta.create_empty({"name": "stub/model", "training_datasets": {"CorebT2CRetrieval"}})
    assert meta.is_zero_shot_on([mteb.get_task("CoREB-T2C")]) is False
    assert meta.is_zero_shot_on([mteb.get_task("CoREB-C2C")]) is True


def test_tasks_can_be_pickled():
    assert type(pickle.loads(pickle.dumps(mteb.get_task("CoREB-T2C")))) is TASKS["CoREB-T2C"]  # noqa: S301


def test_an_unknown_name_is_mtebs_own_error_with_our_names_among_the_suggestions():
    with pytest.raises(KeyError, match=r"'CoREB-T2D' not found\. Did you mean: 'CoREB-T2C'\?"):
        mteb.get_task("CoREB-T2D")


# Registering


def test_registering_again_changes_nothing():
    before = names(exclude_private=False)
    registry.register()
    registry.register()
    assert names(exclude_private=False) == before
    assert len(before) == len({*before})


def test_a_name_that_mteb_has_is_refused_with_both_parties_named_and_the_others_are_registered(monkeypatch):
    home = importlib.import_module("mteb.get_tasks")
    theirs = type("Theirs", (mteb.AbsTask,), {"__module__": "mteb.tasks.theirs"})
    known = {name: task for name, task in home._TASKS_REGISTRY.items() if name != "CoREB-C2C"} | {"CoREB-T2C": theirs}
    monkeypatch.setattr(home, "_TASKS_REGISTRY", known)
    monkeypatch.setattr(home, "TASK_LIST", tuple(task for task in home.TASK_LIST if task is not TASKS["CoREB-C2C"]))
    monkeypatch.setattr(home, "_SIMILAR_TASKS", deepcopy(home._SIMILAR_TASKS))
    for _ in range(2):
        with pytest.raises(registry.RegistrationError) as refused:
            registry.register()
        for party in ("CoREB-T2C", "mteb.tasks.theirs", "coreb_tasks.tasks.table"):
            assert party in str(refused.value)
        assert "CoREB-C2T" not in str(refused.value)
    assert known["CoREB-T2C"] is theirs
    assert type(mteb.get_task("CoREB-C2C")) is TASKS["CoREB-C2C"]
    assert names().count("CoREB-C2C") == 1


@pytest.mark.parametrize("version", ["1.38.9", "2.16.2", "3.0.0", "3.1.0rc1"])
def test_an_mteb_outside_the_range_is_refused_in_one_line(monkeypatch, version):
    monkeypatch.setattr(registry, "version", lambda name: version)
    with pytest.raises(registry.RegistrationError) as refused:
        registry.register()
    (line,) = str(refused.value).splitlines()
    for said in (f"mteb {version} is not supported", ">=2.16.3", "<3", "pip install"):
        assert said in line


@pytest.mark.parametrize("version", ["2.16.3", "2.30.0rc1", "2.99.1.dev0"])
def test_an_mteb_of_the_range_is_accepted(monkeypatch, version):
    monkeypatch.setattr(registry, "version", lambda name: version)
    registry.register()
    assert "CoREB-T2C" in names()


@pytest.mark.parametrize("version", ["1.38.9", "3.0.0"])
def test_importing_an_mteb_outside_the_range_gives_one_clear_line_and_works(tmp_path, version):
    distribution = tmp_path / f"mteb-{version}.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mteb\nVersion: {version}\n")
    (tmp_path / "mteb").mkdir()
    (tmp_path / "mteb" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    done = start(sys.executable, "-c", "import mteb; print(mteb.__version__)", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{version}\n")
    (line,) = [line for line in done.stderr.splitlines() if "RuntimeWarning: " in line]
    assert f"mteb {version} is not supported, expected mteb" in line
    assert "COREB_TASKS_AUTOLOAD=0" in line


# Fresh processes with the real mteb: each takes its import's 5 to 10 seconds


def test_the_stock_command_lists_the_tasks():
    command = shutil.which("mteb", path=sysconfig.get_path("scripts"))
    done = start(command, "available-tasks", "--task-types", "Retrieval")
    assert done.returncode == 0, done.stderr
    listed = {line.strip(" -").split(",")[0] for line in done.stdout.splitlines()}
    assert {*RETRIEVAL, "CorebT2CRetrieval"} <= listed
    assert not {*SAMPLES} & listed
    assert "RuntimeWarning" not in done.stderr


def test_python_m_mteb_run_suggests_our_names(tmp_path):
    output = str(tmp_path / "out")
    options = ["-m", "mteb/baseline-random-encoder", "-t", "CoREB-C2TT", "--output-folder", output]
    done = start(sys.executable, "-m", "mteb", "run", *options)
    assert done.returncode == 1
    assert "'CoREB-C2TT' not found. Did you mean: 'CoREB-C2T'?" in done.stderr.splitlines()[-1]


def test_turned_off_mteb_knows_nothing_until_the_package_is_imported():
    program = """
import mteb
known = lambda: [task.metadata.name for task in mteb.get_tasks(domains=["Programming"])]
assert "CorebT2CRetrieval" in known()
print("CoREB-T2C" in known())
import coreb_tasks
print("CoREB-T2C" in known(), mteb.get_task("CoREB-T2C").metadata.name)
before = known()
import importlib
importlib.reload(coreb_tasks)
print(known() == before)
"""
    done = start(sys.executable, "-W", "error::RuntimeWarning", "-c", program, COREB_TASKS_AUTOLOAD="0")
    assert done.stdout.splitlines() == ["False", "True CoREB-T2C", "True"], done.stderr


# mteb run, in this process


@pytest.fixture
def coreb(hub):
    """The tiny data in the place of CoREB v202603."""
    folder = hub.root / FACTS["CoREB-T2C"].path
    shutil.copytree(hub.folder, folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    release = FACTS["CoREB-T2C"].release
    (folder / "README.md").write_text(card.replace("split: r1", f"split: {release}"), encoding="utf-8")


@pytest.fixture
def mteb_run(monkeypatch, caplog):
    def mteb_run(*options):
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # mteb sets it
        caplog.set_level(logging.WARNING, logger="mteb")
        monkeypatch.setattr(sys, "argv", ["mteb", "run", "-m", "mteb/baseline-random-encoder", "-v", "1", *options])
        importlib.import_module("mteb.cli").main()

    return mteb_run


def test_mteb_run_writes_results_that_are_read_back_by_name(coreb, mteb_run, tmp_path, capsys, monkeypatch):
    output = tmp_path / "out"
    mteb_run("-t", "CoREB-T2C", "CoREB-C2C", "--output-folder", str(output))
    results = mteb.ResultCache(output).load_results(tasks=["CoREB-C2C", "CoREB-T2C"], validate_and_filter=True)
    (model,) = results.model_results
    by_name = {result.task_name: result for result in model.task_results}
    assert {*by_name} == {"CoREB-C2C", "CoREB-T2C"}
    assert by_name["CoREB-T2C"].task_type == "Retrieval"
    assert by_name["CoREB-T2C"].dataset_revision == mteb.get_task("CoREB-T2C").metadata.revision
    assert {*results.to_dataframe()["task_name"]} == {"CoREB-C2C", "CoREB-T2C"}

    capsys.readouterr()
    counts = {name: result.scores["test"][0]["n_queries"] for name, result in by_name.items()}  # of the tiny data
    monkeypatch.setattr("coreb_tasks.reports.scores.num_queries", lambda task, subset: counts[task])
    assert main(["report", str(output)]) == 0
    lines = {line.split()[1]: line.split() for line in capsys.readouterr().out.splitlines() if " test " in line}
    for name, result in by_name.items():
        scores = result.scores["test"][0]
        assert lines[name][:5] == ["mteb/baseline-random-encoder", name, "test", "default", str(scores["n_queries"])]
        assert lines[name][5] == f"{scores['ndcg_at_10']:.5f}"


def test_mteb_run_stops_at_data_that_are_not_there(mteb_run, monkeypatch, tmp_path):
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"hq-bench/coreb: COREB_TASKS_DATA=.*there is no folder"):
        mteb_run("-t", "CoREB-T2C", "--output-folder", str(tmp_path / "out"))
    assert not list(tmp_path.rglob("CoREB-T2C.json"))


# Stale results


VECTORS = {"find a": (1, 0), "find c": (0, 1), "code a": (0.5, 0), "code b": (1, 0), "code c": (0, 1)}


class Encoder:
    """Ranks b above a for q1 and c first for q2; counts the times that it encodes."""

    def __init__(self):
        self.mteb_model_meta = ModelMeta.create_empty({"name": "stub/encoder", "revision": "1"})
        self.calls = 0

    def encode(self, inputs, **kwargs):
        self.calls += 1
        return np.array([VECTORS.get(text, (0, 0)) for batch in inputs for text in batch["text"]], dtype=np.float32)

    def similarity(self, embeddings1, embeddings2):
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1, embeddings2):
        return (embeddings1 * embeddings2).sum(axis=1)


class Stored:
    """A cache with a result of Tiny-T2C in it, and mteb's public ways to evaluate the task again."""

    def __init__(self, hub, folder):
        self.hub, self.folder = hub, folder
        self.encoder = Encoder()
        self.task = task_class(hub.task())
        self.evaluate()
        assert self.score() == B_ABOVE_A
        self.first_file = self.file().read_bytes()
        self.encoder.calls = 0

    def file(self):
        (file,) = self.folder.rglob("Tiny-T2C.json")
        return file

    def score(self):
        return self.json()["scores"]["test"][0]["ndcg_at_10"]

    def json(self):
        return json.loads(self.file().read_text(encoding="utf-8"))

    def change(self, what):
        if what == "relevance_level":
            self.task = type("Changed", (self.task,), {"relevance_level": 1})
        else:
            self.hub.tables["text2code_qrels"][0]["relevance"] = 1
            self.hub.tables["text2code_qrels"][1]["relevance"] = 2
            self.hub.write()
            self.hub.pin("T2C")
            self.task = task_class(self.hub.task())

    def evaluate(self, strategy="only-missing"):
        cache = mteb.ResultCache(self.folder)
        options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
        (result,) = mteb.evaluate(self.encoder, self.task(), overwrite_strategy=strategy, **options).task_results
        return result


class StoredByDeprecatedRun(Stored):
    def evaluate(self, **options):
        (result,) = mteb.MTEB(tasks=[self.task()]).run(
            self.encoder, output_folder=str(self.folder), verbosity=0, **options
        )
        return result


@pytest.fixture
def stored(hub, tmp_path):
    return Stored(hub, tmp_path / "cache")


changes = pytest.mark.parametrize("change", ["relevance_level", "dataset_revision"])


@changes
@pytest.mark.parametrize("strategy", ["only-missing", "always"])
def test_a_changed_task_is_scored_anew(stored, change, strategy):
    before = stored.json()["dataset_revision"]
    stored.change(change)
    result = stored.evaluate(strategy)
    assert stored.encoder.calls
    assert result.scores["test"][0]["ndcg_at_10"] == stored.score() == 1.0
    now = stored.json()
    assert result.dataset_revision == now["dataset_revision"] == stored.task.metadata.revision
    assert (now["dataset_revision"] != before) == (change == "dataset_revision")
    assert now["scores"]["test"][0]["data_hash"] == stored.task().data_hash("default")
    assert now["scores"]["test"][0]["relevance_level"] == stored.task.relevance_level

    stored.encoder.calls = 0
    stored.evaluate("only-cache")
    assert stored.encoder.calls == 0


@changes
@pytest.mark.parametrize("strategy", ["never", "only-cache"])
def test_where_nothing_may_be_run_a_stale_result_is_refused_with_what_differs(stored, change, strategy):
    was = str(2 if change == "relevance_level" else stored.task.metadata.revision)
    stored.change(change)
    now = str(1 if change == "relevance_level" else stored.task.metadata.revision)
    with pytest.raises(ValueError, match="Tiny-T2C") as refused:
        stored.evaluate(strategy)
    for said in (change, was, now, "only-missing", "always"):
        assert said in str(refused.value)
    assert stored.encoder.calls == 0
    assert stored.file().read_bytes() == stored.first_file


def test_a_stale_result_is_run_again_with_a_word(stored, caplog):
    stored.change("relevance_level")
    with caplog.at_level(logging.WARNING, logger="coreb_tasks"):
        stored.evaluate()
    (message,) = [record.getMessage() for record in caplog.records if record.name.startswith("coreb_tasks")]
    for said in ("Tiny-T2C", "relevance_level is 2", "is 1"):
        assert said in message


@pytest.mark.parametrize("strategy", ["only-missing", "never", "only-cache"])
def test_a_result_that_is_current_is_returned_as_stored(stored, strategy, caplog):
    with caplog.at_level(logging.WARNING, logger="coreb_tasks"):
        result = stored.evaluate(strategy)
    assert result.scores["test"][0]["ndcg_at_10"] == B_ABOVE_A
    assert stored.encoder.calls == 0
    assert stored.file().read_bytes() == stored.first_file
    assert not caplog.records


@pytest.mark.parametrize("key", ["data_hash", "relevance_level"])
def test_a_result_that_does_not_say_what_it_stands_on_is_stale(stored, key):
    content = stored.json()
    del content["scores"]["test"][0][key]
    stored.file().write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{key} is None"):
        stored.evaluate("only-cache")
    stored.evaluate()
    assert key in stored.json()["scores"]["test"][0]


def test_without_a_stored_result_mteb_has_its_own_say(stored):
    stored.file().unlink()
    with pytest.raises(ValueError, match="no results found in cache for task Tiny-T2C"):
        stored.evaluate("only-cache")
    stored.evaluate("never")
    assert stored.score() == B_ABOVE_A


def test_results_of_mtebs_own_tasks_are_returned_as_ever(tmp_path):
    task = mteb.get_task("CorebT2CRetrieval")
    encoder, cache = Encoder(), mteb.ResultCache(tmp_path)
    scores = {"default": {"main_score": 0.25, "hf_subset": "default", "languages": ["eng-Latn"]}}
    scores = {
        split: {subset: {**scores["default"], "hf_subset": subset} for subset in task.hf_subsets}
        for split in task.eval_splits
    }
    stored = mteb.TaskResult.from_task_results(task, scores, evaluation_time=1.0)
    stored.dataset_revision = "of another time"
    cache.save_to_cache(stored, encoder.mteb_model_meta)
    (result,) = mteb.evaluate(encoder, task, cache=cache, co2_tracker=False).task_results
    assert result.dataset_revision == "of another time"
    assert encoder.calls == 0


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@changes
def test_the_deprecated_run_scores_a_changed_task_anew(hub, tmp_path, monkeypatch, change):
    stored = StoredByDeprecatedRun(hub, tmp_path / "results")
    stored.change(change)
    for known in (table.TASKS, importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY):
        monkeypatch.setitem(known, "Tiny-T2C", stored.task)
    result = stored.evaluate()
    assert stored.encoder.calls
    assert result.scores["test"][0]["ndcg_at_10"] == stored.score() == 1.0
    assert stored.json()["dataset_revision"] == stored.task.metadata.revision


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_the_deprecated_run_returns_a_current_result(hub, tmp_path, monkeypatch):
    stored = StoredByDeprecatedRun(hub, tmp_path / "results")
    for known in (table.TASKS, importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY):
        monkeypatch.setitem(known, "Tiny-T2C", stored.task)
    assert stored.evaluate().scores["test"][0]["ndcg_at_10"] == B_ABOVE_A
    assert stored.encoder.calls == 0
