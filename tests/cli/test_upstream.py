"""``coreb-tasks upstream``: what it writes, put into a copy of mteb, scores there as the plugin's tasks do here."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mteb
import pytest
from mteb.types import PromptType
from torch.utils.data import DataLoader

from coreb_tasks.cli import main
from coreb_tasks.data import DataError
from coreb_tasks.facts import SUITES, TASKS
from coreb_tasks.tasks.table import task_class
from coreb_tasks.upstream.stock import as_stock

SAMPLES = [name for name, task in TASKS.items() if task.sample and not task.reranks]
BM25, RANDOM = "mteb/baseline-bm25s", "mteb/baseline-random-encoder"
METRICS = [f"{name}_at_{k}" for name in ("ndcg", "map", "recall", "precision", "mrr") for k in (1, 3, 5, 10, 100)]
BLOCK = re.compile(r"^`(mteb/\S+/__init__\.py)`:\n```python\n(.*?)```$", re.MULTILINE | re.DOTALL)


def scores_of(model, tasks):
    """Scores by task and subset. The text of this function runs in both processes."""
    result = mteb.evaluate(model, tasks, cache=None, co2_tracker=False, show_progress_bar=False)
    return {task.task_name: {scores["hf_subset"]: scores for scores in task.scores["test"]} for task in result}


PROGRAM = f"""
import json, sys
import mteb
{inspect.getsource(scores_of)}
site, names, models, benchmarks = json.loads(sys.argv[1])
assert mteb.__file__.startswith(site), mteb.__file__
tasks = mteb.get_tasks(tasks=names)
for task in tasks:
    task.metadata._validate_metadata()
    assert task.metadata.is_filled() and task.metadata.n_samples, task.metadata.name
found = {{
    "scores": {{model: scores_of(mteb.get_model(model), tasks) for model in models}},
    "benchmarks": {{name: [task.metadata.name for task in mteb.get_benchmark(name).tasks] for name in benchmarks}},
}}
assert not [name for name in sys.modules if name.startswith("coreb_tasks")]
json.dump(found, open(sys.argv[2], "w"))
"""


class Pulled:
    """The written files in a copy of the installed mteb, and what a process finds that knows only that copy."""

    def __init__(self, folder, names, models, benchmarks):
        self.out, self.site = folder / "out", folder / "site"
        assert main(["upstream", str(self.out), *names]) == 0
        shutil.copytree(
            Path(mteb.__file__).parent,
            self.site / "mteb",
            ignore=shutil.ignore_patterns("descriptive_stats", "*.parquet"),
        )
        shutil.copytree(self.out / "mteb", self.site / "mteb", dirs_exist_ok=True)
        for file, lines in BLOCK.findall((self.out / "README.md").read_text(encoding="utf-8")):
            with (self.site / file).open("a", encoding="utf-8") as module:
                module.write(lines)
        found = self._run(folder, names, models, benchmarks)
        self.scores, self.benchmarks = found["scores"], found["benchmarks"]

    def _run(self, folder, names, models, benchmarks):
        given = json.dumps([str(self.site), names, models, benchmarks])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, given, str(folder / "found.json")],
            cwd=self.out / "datasets",  # so that mteb/coreb-t2c is a folder
            env={
                **os.environ,
                "PYTHONPATH": str(self.site),
                "COREB_TASKS_AUTOLOAD": "0",
                "HF_HOME": str(folder / "hf"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads((folder / "found.json").read_text(encoding="utf-8"))

    @property
    def modules(self):
        return sorted((self.out / "mteb").rglob("*.py"))


def as_mteb_encodes(name):
    """A model that gets documents stripped, as mteb hands them out. The plugin gives it the whole text."""
    model = mteb.get_model(name)
    if name == RANDOM:
        encode = model.encode

        def encode_stripped(inputs, *, prompt_type, **kwargs):
            if prompt_type == PromptType.document:
                stripped = inputs.dataset.map(lambda row: {"text": row["text"].strip()})
                inputs = DataLoader(stripped, batch_size=32)
            return encode(inputs, prompt_type=prompt_type, **kwargs)

        model.encode = encode_stripped
    return model


def subset_of(plugin, subset):
    """The plugin's scores of what is a subset upstream: a subset, or the slice of a subtask."""
    if subset in plugin:
        return plugin[subset]
    (scores,) = plugin.values()
    (part,) = {key.partition("/")[0] for key in scores if "/" in key and key.split("/")[0].endswith(f"_{subset}")}
    return {key.partition("/")[2]: value for key, value in scores.items() if key.startswith(f"{part}/")}


def compare(pulled, model, name):
    """That every score of every subset is the plugin's; returns how many queries the subsets have."""
    stock = pulled.scores[model][name]
    plugin = scores_of(as_mteb_encodes(model), [mteb.get_task(name)])[name]
    queries = 0
    for subset, scores in stock.items():
        expected = subset_of(plugin, subset)
        assert {key: scores[key] for key in METRICS} == pytest.approx({k: expected[k] for k in METRICS}, abs=1e-5)
        queries += expected["n_queries"]
    assert queries == sum(scores["n_queries"] for scores in plugin.values()), "a query is in no subset, or in two"
    return queries


@pytest.fixture(scope="module")
def pulled(tmp_path_factory):
    """All sample tasks, and a benchmark of some of them."""
    suite = replace(
        SUITES["CPRet(v1)"], name="1CPRet(sample)", tasks=tuple(n for n in SAMPLES if n.startswith("CPRet"))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, suite.name, suite)
        return Pulled(tmp_path_factory.mktemp("upstream"), SAMPLES, [BM25, RANDOM], [suite.name])


@pytest.mark.parametrize("model", [BM25, RANDOM])
@pytest.mark.parametrize("name", SAMPLES)
def test_stock_mteb_gives_the_scores_of_the_plugin(pulled, name, model):
    assert compare(pulled, model, name) > 0


def test_data_with_excluded_documents_have_a_subset_for_each_subtask(pulled):
    assert [*pulled.scores[BM25]["CoREB-C2C-Sample"]] == ["cross_lang", "cross_model", "mono_lang"]
    assert [*pulled.scores[BM25]["CoREB-T2C-Sample"]] == ["default"]
    assert [*pulled.scores[BM25]["1C-Ebench-Sample"]] == ["forum", "fastcode"]


def test_a_benchmark_all_of_whose_tasks_are_written_is_mtebs(pulled):
    assert {name: sorted(tasks) for name, tasks in pulled.benchmarks.items()} == {
        "1CPRet(sample)": sorted(name for name in SAMPLES if name.startswith("CPRet"))
    }


def test_the_modules_know_only_mteb_and_are_formatted(pulled):
    assert [file.name for file in pulled.modules] == ["cpret.py", "coreb.py", "cpret.py", "t1c_ebench.py"]
    for file in pulled.modules:
        source = file.read_text(encoding="utf-8")
        assert "coreb_tasks" not in source
        tree = ast.parse(source)
        assert {node.module.split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)} == {"mteb"}
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.FunctionDef)]
    for command in (["format", "--check"], ["check", "--select", "E,F,I,W", "--ignore", "E501"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--isolated", str(pulled.out / "mteb")]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_a_card_says_where_stock_mteb_strips_documents(pulled):
    cards = {file.parent.name: file.read_text(encoding="utf-8") for file in pulled.out.glob("datasets/*/*/README.md")}
    assert len(cards) == len(SAMPLES)
    assert "(2 documents of a subset have some)" in cards["coreb-t2c-sample"]
    assert "White space" not in cards["coreb-c2t-sample"]
    for card in cards.values():
        assert "license: apache-2.0" in card


def test_the_readme_tells_the_weights_of_the_papers_mean_over_queries(pulled):
    readme = (pulled.out / "README.md").read_text(encoding="utf-8")
    assert "the mean over all queries (cross_lang 12, cross_model 8, mono_lang 8)" in readme


@pytest.mark.real_data
def test_real_coreb_scores_as_here(real_hub, tmp_path, monkeypatch):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    names = list(SUITES["CoREB(v202603)"].tasks)
    pulled = Pulled(tmp_path, names, [BM25], ["CoREB(v202603)"])
    assert [compare(pulled, BM25, name) for name in names] == [1123, 278, 1200]
    assert sorted(pulled.benchmarks["CoREB(v202603)"]) == sorted(names)


def test_exclusions_that_stock_mteb_cannot_express_are_an_error(hub):
    first = hub.tables["code2code_queries"][0]
    hub.tables["code2code_queries"].append({**first, "query_id": "q2"})
    hub.tables["code2code_qrels"].append({**hub.tables["code2code_qrels"][0], "query_id": "q2"})
    hub.write()
    hub.pin("C2C")
    with pytest.raises(DataError, match=r"Tiny-C2C, c2c_cross_lang: .*'d' from \['q1', 'q2'\].*ignore_identical_ids"):
        as_stock(task_class(hub.task("C2C"))(), "mteb")


def test_data_that_cannot_be_read_leave_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path / "nowhere"))
    out = tmp_path / "out"
    assert main(["upstream", str(out), "CoREB-T2C-Sample", "CoREB-T2C"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "coreb-tasks upstream: CoREB-T2C (2 of 2)" in lines
    assert "COREB_TASKS_DATA" in lines[-2]
    assert lines[-1] == f"coreb-tasks upstream: nothing was written to {out}"
    assert list(out.iterdir()) == []


def test_a_wrong_call_names_every_fault(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["upstream", str(tmp_path), "CoREB-T2D", "x", "CoREB-C2C-Reranking", "--namespace", "a/b"]) == 1
    assert main(["upstream", str(tmp_path / "file")]) == 1
    faults = [line.removeprefix("coreb-tasks upstream: ") for line in capsys.readouterr().err.splitlines()]
    assert faults == [
        "unknown task CoREB-T2D, did you mean CoREB-T2C?",
        "unknown task x; `coreb-tasks list` shows the names",
        "CoREB-C2C-Reranking reranks what a run found, on the data of CoREB-C2C: name CoREB-C2C",
        "--namespace 'a/b' is no name of a user or an organisation on the hub",
        f"{tmp_path} is not empty; expected a new or an empty folder",
        f"{tmp_path / 'file'} is a file; expected a new or an empty folder",
    ]


def test_by_default_it_writes_the_tasks_of_every_benchmark(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("coreb_tasks.upstream.write", lambda out, names, namespace, progress: asked.extend(names))
    assert main(["upstream", str(tmp_path / "out")]) == 0
    assert set(asked) == {
        name
        for name, task in TASKS.items()
        if not task.sample and not task.reranks and all(s.subtasks is None for s in task.subsets.values())
    }
