"""``coreb-tasks run``: models in folders, prompts and first stages, and that the rest is as ``mteb run`` has it."""

import json
import logging
import os
import shutil

import mteb
import pytest
from mteb.models import ModelMeta
from mteb.models.model_implementations import MODEL_REGISTRY

from coreb_tasks import registry
from coreb_tasks.cli import main
from coreb_tasks.facts import FIRST_STAGE_VARIABLE

SAMPLE = "CPRet-P2Dup-Sample"
RERANKING = "CPRet-P2Dup-Reranking-Sample"


@pytest.fixture(scope="module")
def models(save_model, tmp_path_factory):
    """Two encoders in folders of the same name, and a model of each other kind."""
    root = tmp_path_factory.mktemp("models")
    return {
        "one": save_model(root / "one" / "model", prompts={"query": "own: ", "document": ""}),
        "other": save_model(root / "other" / "model", seed=1),
        **{kind: save_model(root / kind, kind) for kind in ("plain", "cross-encoder", "yes-no")},
    }


@pytest.fixture
def run(monkeypatch, caplog, tmp_path, capsys):
    """Runs the subcommand; returns its exit code and its lines on stderr that are not mteb's."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # mteb sets it
    caplog.set_level(logging.WARNING, logger="mteb")

    def run(*arguments, output=tmp_path / "out"):
        capsys.readouterr()
        code = main(["run", *map(str, arguments), "-v", "1", "--output-folder", str(output)])
        lines = [line.rpartition("\r")[2] for line in capsys.readouterr().err.splitlines()]
        prefix = "coreb-tasks run: "
        return code, [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]

    run.output = tmp_path / "out"
    return run


def results(folder):
    """Results as mteb reads them back: each with its model's metadata and the one subset's scores."""
    found = mteb.ResultCache(folder).load_results(load_experiments="match_name", require_model_meta=True)
    return [(model, task.scores["test"][0]) for model in found.model_results for task in model.task_results]


def faults(run, *arguments):
    code, lines = run(*arguments)
    assert code == 1
    return lines


# Folders


def test_two_models_in_folders_of_one_name_have_two_folders_of_results(run, models):
    for name in ("one", "other"):
        code, (line,) = run("-m", models[name], "-t", SAMPLE)
        assert code == 0
        assert line.startswith(f"{models[name]} is local/model, encoder, revision ")
    found = results(run.output)
    assert {model.model_name for model, _ in found} == {"local/model"}
    assert len({model.model_revision for model, _ in found}) == 2
    assert len({scores["ndcg_at_10"] for _, scores in found}) == 2
    files = sorted(run.output.rglob("model_meta.json"))
    assert len(files) == 2
    for file in files:
        meta = json.loads(file.read_text(encoding="utf-8"))
        assert (meta["name"], meta["revision"]) == ("local/model", file.parent.name)
        assert str(models["one"].parents[1]) not in file.read_text(encoding="utf-8")


def test_a_copy_elsewhere_is_the_same_model_and_is_not_run_again(run, models, tmp_path, monkeypatch):
    assert run("-m", models["one"], "-t", SAMPLE)[0] == 0
    copied = shutil.copytree(models["one"], tmp_path / "elsewhere" / "model")
    monkeypatch.setattr("mteb.models.SentenceTransformerEncoderWrapper.encode", None)
    assert run("-m", copied, "-t", SAMPLE)[0] == 0
    assert len(results(run.output)) == 1


def test_a_folder_of_results_within_the_models_own_changes_nothing(run, models, tmp_path, monkeypatch):
    folder = shutil.copytree(models["one"], tmp_path / "model")
    monkeypatch.chdir(folder)
    for _ in range(2):
        assert run("-m", ".", "-t", SAMPLE, output="results")[0] == 0
    assert len(results(folder / "results")) == 1


def test_a_kind_that_is_given_is_run(run, models):
    (fault,) = faults(run, "-m", models["plain"], "-t", SAMPLE)
    assert "--kind encoder" in fault
    assert run("-m", models["plain"], "-t", SAMPLE, "--kind", "encoder")[0] == 0


# As mteb run


def test_a_name_is_run_as_by_mteb(run):
    code, lines = run("-m", "mteb/baseline-random-encoder", "-t", SAMPLE, "CPRet-T2C-Sample", "--batch-size", "2")
    assert (code, lines) == (0, [])
    ((model, _), _) = results(run.output)
    assert model.model_name == "mteb/baseline-random-encoder"
    (file,) = run.output.rglob("run_settings.jsonl")
    settings = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [setting["encode_kwargs"]["batch_size"] for setting in settings] == [2, 2]


def test_arguments_are_handed_on_as_they_are(run, monkeypatch):
    handed = []
    monkeypatch.setattr(registry, "run_mteb", lambda arguments: handed.extend(arguments) or Result())
    model = "mteb/baseline-random-encoder"
    for arguments in (
        ["-b", "CoREB(v202603)", "--device", "0"],
        ["--model-revision", mteb.get_model_meta(model).revision, "-l", "rus", "--co2-tracker"],
    ):
        handed.clear()
        assert main(["run", *arguments[:2], "-m", model, *arguments[2:]]) == 0
        assert handed == ["-m", model, *arguments]


class Task:
    def __init__(self, name):
        self.task_name = name

    def get_score(self):
        return 0.5


class Result:
    exceptions = None

    def __init__(self, name=SAMPLE):
        self.task_results = (Task(name),)


def test_each_task_has_a_line(run, monkeypatch, capsys):
    monkeypatch.setattr(registry, "run_mteb", lambda arguments: Result())
    assert main(["run", "-m", "mteb/baseline-random-encoder", "-t", SAMPLE]) == 0
    assert capsys.readouterr().out == f"{SAMPLE}: 0.50000\n"


def test_an_option_that_nobody_knows_is_an_error(run, capsys):
    with pytest.raises(SystemExit) as error:
        run("-m", "mteb/baseline-random-encoder", "-t", SAMPLE, "--nothing")
    assert error.value.code == 2
    assert "unrecognized arguments: --nothing" in capsys.readouterr().err
    with pytest.raises(SystemExit) as error:
        main(["list", "--nothing"])
    assert error.value.code == 2
    assert "coreb-tasks: error: unrecognized arguments: --nothing" in capsys.readouterr().err


def test_help_shows_our_options_and_says_where_the_others_are(capsys):
    with pytest.raises(SystemExit) as error:
        main(["run", "--help"])
    assert error.value.code == 0
    shown = capsys.readouterr().out
    for said in ("--first-stage", "--query-prompt", "--kind", "mteb run --help"):
        assert said in shown


# Failures


def test_a_path_that_is_not_there_is_no_question_to_the_registry(run, tmp_path):
    for path in (tmp_path / "gone", "./gone", "../gone", "~/gone-model", "~gone/model", "C:\\gone", "a/b/c"):
        assert faults(run, "-m", path, "-t", SAMPLE) == [
            f"-m {path}: folder not found; expected a model's folder or its name"
        ]


def test_every_fault_is_named_at_once(run, models, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    lines = faults(run, "-m", empty, "-t", "CPRet-P2Dup-Sampel", "ArguAnna", "?", "--first-stage", empty)
    assert lines == [
        "unknown task CPRet-P2Dup-Sampel, did you mean CPRet-P2Dup-Sample?",
        "unknown task ArguAnna, did you mean ArguAna?",
        "unknown task ?; `coreb-tasks list` shows the names",
        f"{empty} is no model folder: expected modules.json (sentence-transformers) or config.json (transformers) in "
        "it, found neither",
        f"--first-stage {empty}: expected predictions (*_predictions.json) or a model, modules.json "
        "(sentence-transformers) or config.json (transformers)",
    ]
    (line,) = faults(run, "-m", models["one"], "-b", "CoREB(v202604)")[1:]
    assert line.startswith("unknown benchmark 'CoREB(v202604)' not found. Did you mean: CoREB(v2026")


def test_a_first_stage_without_a_reranking_task_is_refused(run):
    assert faults(run, "-m", "mteb/baseline-bm25s", "-t", SAMPLE, "--first-stage", "mteb/baseline-bm25s") == [
        "--first-stage is for the reranking tasks of this package, and none is asked for: leave it out"
    ]


@pytest.mark.parametrize("name", ["nothere", "no/where"])
def test_a_name_that_is_nowhere_is_one_line(run, name):
    (line,) = faults(run, "-m", name, "-t", SAMPLE)
    assert line.startswith(f"{name}: no folder of that name here, ")


@pytest.mark.filterwarnings("ignore:Model prompts specified:UserWarning")  # mteb's, at every model with prompts
def test_a_copy_of_a_known_model_runs_with_its_settings(run, models, monkeypatch):
    meta = mteb.get_model_meta("PruhaNLP/USER2-1C-code")
    short = meta.model_copy(update={"name": "a/b", "loader_kwargs": {**meta.loader_kwargs, "max_seq_length": 64}})
    monkeypatch.setitem(MODEL_REGISTRY, "a/b", short)
    code, (line,) = run("-m", models["one"], "-t", SAMPLE, "--as", "a/b")
    assert code == 0
    assert line.startswith(f"{models['one']} is local/model, run as a/b, revision ")
    assert run("-m", models["one"], "-t", SAMPLE)[0] == 0
    revisions = {scores["query_prompt"]: model.model_revision for model, scores in results(run.output)}
    assert revisions.keys() == {"search_query: ", "own: "}
    assert len({*revisions.values()}) == 2
    (fault,) = faults(run, "-m", models["one"], "-t", SAMPLE, "--as", "no/where")
    assert fault.startswith("no/where: no folder of that name here")
    (fault,) = faults(run, "-m", models["one"], "-t", SAMPLE, "--as", "a/b", "--kind", "encoder")
    assert fault == "--as a/b says the kind, too: leave --kind out"


def test_options_without_sense_are_refused(run, models, tmp_path):
    name, file = "mteb/baseline-random-encoder", tmp_path / "file"
    file.touch()
    assert faults(run, "-m", name, "-t", SAMPLE, "--kind", "encoder", "--trust-remote-code") == [
        f"--kind is for a folder, and {name} is none: leave it out",
        f"--trust-remote-code is for a folder, and {name} is none: leave it out",
    ]
    assert faults(run, "-m", file, "-t", SAMPLE) == [f"-m {file} is a file; expected a model's folder or its name"]
    lines = faults(run, "-m", models["one"], "-t", SAMPLE, "--model-revision", "1", "--kind", "encoder")
    assert lines == ["--model-revision is for models of the hub; that of a folder is a hash of it: leave it out"]
    for kind in ("cross-encoder", "yes-no"):
        lines = faults(run, "-m", models[kind], "-t", SAMPLE, "--query-prompt", "q: ")
        assert lines[1:] == [
            f"local/{kind} is a reranker, which reads query and document as one text; expected an encoder, which alone "
            "has a prompt for queries and one for documents"
        ]
    (line,) = faults(run, "-m", "mteb/baseline-bm25s", "-t", SAMPLE, "--query-prompt", "q: ")
    assert line.startswith("mteb/baseline-bm25s is a model with a search of its own; expected an encoder")


@pytest.mark.filterwarnings("ignore:Skipping task")
def test_a_task_that_no_option_leaves_over_is_a_failure(run):
    model = "mteb/baseline-random-encoder"
    assert faults(run, "-m", model, "-t", SAMPLE, "1C-Ebench-Sample", "-l", "rus") == [
        f"{SAMPLE} was skipped: nothing of it is left by the options given (languages, splits)"
    ]
    for options in (["-t", SAMPLE], ["--task-types", "Retrieval"]):
        assert faults(run, "-m", model, *options, "-l", "vol") == [
            "no task is left by the options given (languages, splits, types)"
        ]


def test_a_task_whose_error_mteb_keeps_is_a_failure(run, monkeypatch):
    class Failed(Result):
        task_results = ()
        exceptions = (type("Error", (), {"task_name": SAMPLE, "exception": "no\ndata"}),)

    monkeypatch.setattr(registry, "run_mteb", lambda arguments: Failed())
    assert faults(run, "-m", "mteb/baseline-random-encoder", "-t", SAMPLE) == [f"{SAMPLE} failed: no data"]


def test_data_that_are_not_there_are_a_line_and_a_failure(run, monkeypatch, tmp_path):
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path))
    (line,) = faults(run, "-m", "mteb/baseline-random-encoder", "-t", "CoREB-T2C")
    assert "hq-bench/coreb: COREB_TASKS_DATA=" in line


def test_an_error_of_others_keeps_its_traceback(run, monkeypatch):
    def load(self, **options):
        raise ValueError("not ours")

    monkeypatch.setattr(ModelMeta, "load_model", load)
    with pytest.raises(ValueError, match="not ours"):
        run("-m", "mteb/baseline-random-encoder", "-t", SAMPLE)
    assert mteb.evaluate.__module__ == "mteb.evaluate"


def test_code_of_a_folders_own_is_a_line_that_names_the_option(run, models, tmp_path):
    folder = shutil.copytree(models["one"], tmp_path / "own")
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[1]["type"] = "own_pooling.OwnPooling"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    line = faults(run, "-m", folder, "-t", SAMPLE)[-1]
    assert line == f"{folder}: the model needs code of its own; if you trust it, pass --trust-remote-code"


# Prompts


def test_prompts_are_recorded_and_have_results_of_their_own(run, models):
    pairs = [("q: ", "d: "), ("q_ ", "d: "), ("q: ", None), (None, "d: ")]
    assert run("-m", models["one"], "-t", SAMPLE)[0] == 0
    for query, document in pairs:
        options = [] if query is None else ["--query-prompt", query]
        options += [] if document is None else ["--document-prompt", document]
        assert run("-m", models["one"], "-t", SAMPLE, *options)[0] == 0
    found = [(scores["query_prompt"], scores["document_prompt"]) for _, scores in results(run.output)]
    assert sorted(found) == sorted([("own: ", ""), *((query or "", document or "") for query, document in pairs)])
    metas = [json.loads(file.read_text(encoding="utf-8")) for file in run.output.rglob("model_meta.json")]
    assert len({meta["revision"] for meta in metas}) == 1
    settings = [meta["experiment_kwargs"] or {} for meta in metas]
    assert sorted(setting.get("query_prompt", "") for setting in settings) == ["", "", "q: ", "q: ", "q_ "]


def test_a_model_of_the_registry_takes_prompts(run):
    name = "mteb/baseline-random-encoder"
    assert run("-m", name, "-t", SAMPLE, "--query-prompt", "q: ")[0] == 0
    ((model, scores),) = results(run.output)
    assert model.model_name == name
    assert (scores["query_prompt"], scores["document_prompt"]) == ("q: ", "")
    assert list(run.output.rglob(f"experiments/*/{SAMPLE}.json"))


# First stages


@pytest.fixture
def stage_of(run, monkeypatch):
    """What the tasks are told of a first stage."""
    told = []

    def run_mteb(arguments):
        told.append(os.environ.get(FIRST_STAGE_VARIABLE))
        return Result(RERANKING)

    monkeypatch.setattr(registry, "run_mteb", run_mteb)

    def stage_of(stage):
        code, _ = run("-m", "mteb/baseline-random-encoder", "-t", RERANKING, "--first-stage", stage)
        assert code == 0
        return told.pop()

    return stage_of


def test_a_first_stage_is_a_name_or_predictions(stage_of, tmp_path, monkeypatch):
    monkeypatch.setenv(FIRST_STAGE_VARIABLE, "before")
    file = tmp_path / "CPRet-P2Dup_predictions.json"
    file.touch()
    for stage in ("mteb/baseline-bm25s", str(file), str(tmp_path)):
        assert stage_of(stage) == stage
        assert os.environ[FIRST_STAGE_VARIABLE] == "before"
    monkeypatch.delenv(FIRST_STAGE_VARIABLE)
    assert stage_of("a/b") == "a/b"
    assert FIRST_STAGE_VARIABLE not in os.environ


def test_a_first_stage_in_a_folder_is_a_model_that_mteb_knows(stage_of, models):
    metas = {name: mteb.get_model_meta(stage_of(models[name])) for name in ("one", "other")}
    assert {meta.name for meta in metas.values()} == {"local/model"}
    assert metas["one"].revision != metas["other"].revision


def test_a_first_stage_that_is_none_is_an_error(run, models):
    model = ("-m", "mteb/baseline-random-encoder", "-t", RERANKING)
    assert faults(run, *model, "--first-stage", "./gone") == [
        "--first-stage ./gone: folder not found; expected a model, its folder, or predictions"
    ]
    line = faults(run, *model, "--first-stage", models["yes-no"])[-1]
    assert line == f"--first-stage {models['yes-no']} is a reranker; expected an encoder"
