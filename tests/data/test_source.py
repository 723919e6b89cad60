import json
import os
import shutil
import time
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

from coreb_tasks.data import DataError
from coreb_tasks.data.source import Source, locate
from coreb_tasks.facts import TASKS

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIGS = ("code_corpus", "text2code_queries", "text2code_qrels")


def declare(folder, configs):
    """Write a README that declares ``configs``: name -> data_files (JSON is YAML)."""
    entries = [{"config_name": name, "data_files": data_files} for name, data_files in configs.items()]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(entries)}\n---\n# Data\n", encoding="utf-8")


def data_set(folder, data_files, *names):
    """A data set with the one config ``docs`` and empty files of these names."""
    declare(folder, {"docs": data_files})
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return Source("tests/docs", folder)


def names(source, split):
    return [file.relative_to(source.folder).as_posix() for file in source.files("docs", split)]


def error_of(call, *arguments):
    with pytest.raises(DataError) as caught:
        call(*arguments)
    return str(caught.value)


def tiny(folder):
    """A data set in which each of CONFIGS has one (empty) file of split ``r1``."""
    declare(folder, {config: {"r1": f"{config}.jsonl"} for config in CONFIGS})
    for config in CONFIGS:
        (folder / f"{config}.jsonl").touch()
    return folder


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder that COREB_TASKS_DATA names; it holds ``tests/tiny``."""
    tiny(tmp_path / "hub" / "tests" / "tiny")
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """``tests/tiny`` as the hub client leaves it in its cache, and no COREB_TASKS_DATA; the snapshot's folder."""
    storage = tmp_path / "cache" / "datasets--tests--tiny"
    (storage / "refs").mkdir(parents=True)
    (storage / "refs" / "main").write_text(COMMIT)
    tiny(storage / "snapshots" / COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("COREB_TASKS_DATA", raising=False)
    return storage / "snapshots" / COMMIT


@pytest.fixture
def no_hub(monkeypatch):
    def called(*arguments, **options):
        raise AssertionError(f"the hub was called: {arguments}")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", called)
    monkeypatch.setattr("huggingface_hub.snapshot_download", called)


# The package


@pytest.mark.parametrize("given", ["", "/nowhere"])
def test_packaged_data_come_from_the_package_whatever_the_variable_says(given, monkeypatch, no_hub):
    monkeypatch.setenv("COREB_TASKS_DATA", given)
    task = TASKS["CoREB-T2C-Sample"]
    source = locate(task.path, task.subsets["default"].layout.configs, task.release)
    assert source.folder.parts[-3:] == ("coreb_tasks", "samples", "coreb")
    assert source.commit is None
    assert source.card.is_file()


# A folder


def test_a_folder_holds_data_sets_by_hub_path_and_the_hub_is_not_called(root, no_hub):
    assert locate("tests/tiny", CONFIGS, "r1") == Source("tests/tiny", root / "tests" / "tiny", commit=None)


def test_a_folder_may_be_given_from_the_home_folder(root, monkeypatch):
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(root.parent))
    monkeypatch.setenv("COREB_TASKS_DATA", os.path.join("~", root.name))
    assert locate("tests/tiny", CONFIGS, "r1").folder == root / "tests" / "tiny"


def test_a_folder_may_be_given_from_the_working_folder(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    monkeypatch.setenv("COREB_TASKS_DATA", root.name)
    source = locate("tests/tiny", CONFIGS, "r1")
    assert [file.resolve() for file in source.files("code_corpus", "r1")] == [
        root / "tests" / "tiny" / "code_corpus.jsonl"
    ]


@pytest.mark.parametrize("path", ["tests/other", "tests/tiny/README.md"])
def test_a_missing_folder_is_named_at_once_with_the_variable_and_what_to_do(path, root, no_hub):
    started = time.monotonic()
    message = error_of(locate, path, CONFIGS, "r1")
    assert time.monotonic() - started < 1
    assert f"COREB_TASKS_DATA={root}" in message
    assert str(root / Path(path)) in message
    assert "unset COREB_TASKS_DATA" in message


# The hub


def test_the_hub_gives_the_files_and_the_commit(cache):
    source = locate("tests/tiny", CONFIGS, "r1")
    assert source == Source("tests/tiny", cache, COMMIT)
    assert source.files("text2code_qrels", "r1") == [cache / "text2code_qrels.jsonl"]


def test_an_empty_variable_means_the_hub(cache, monkeypatch):
    monkeypatch.setenv("COREB_TASKS_DATA", "")
    assert locate("tests/tiny", CONFIGS, "r1").commit == COMMIT


def test_only_the_files_of_the_configs_and_the_split_are_fetched_and_at_the_commit_of_the_readme(cache, monkeypatch):
    declare(
        cache,
        {
            "wanted": {"r1": ["a-*.parquet", "b.jsonl"], "r2": "later.jsonl"},
            "also": [{"split": "r1", "path": "c.jsonl"}],
            "unwanted": {"r1": "d.jsonl"},
        },
    )
    calls = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: calls.append((a, k)) or str(cache))
    locate("tests/tiny", ("wanted", "also"), "r1")
    assert calls == [
        (
            ("tests/tiny",),
            {
                "repo_type": "dataset",
                "revision": COMMIT,
                "allow_patterns": ["a-*.parquet", "b.jsonl", "c.jsonl"],
            },
        )
    ]


def test_without_network_and_cache_the_error_is_quick_and_names_the_variable(cache):
    shutil.rmtree(cache.parents[1])
    started = time.monotonic()
    message = error_of(locate, "tests/tiny", CONFIGS, "r1")
    assert time.monotonic() - started < 5
    assert message.startswith("tests/tiny: ")
    assert "set COREB_TASKS_DATA to a folder that holds tests/tiny" in message


@pytest.mark.parametrize("function", ["hf_hub_download", "snapshot_download"])
@pytest.mark.parametrize(
    "error", [LocalEntryNotFoundError("not cached"), OfflineModeIsEnabled("offline"), ConnectionError("reset")]
)
def test_a_fault_of_the_hub_says_what_it_was_and_what_to_do(function, error, cache, monkeypatch):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(f"huggingface_hub.{function}", fail)
    message = error_of(locate, "tests/tiny", CONFIGS, "r1")
    assert message.startswith("tests/tiny: ")
    assert f"{type(error).__name__}: {error}" in message
    assert "set COREB_TASKS_DATA" in message


def test_a_file_that_the_cache_lacks_is_an_error(cache):
    (cache / "text2code_qrels.jsonl").unlink()
    source = locate("tests/tiny", CONFIGS, "r1")
    message = error_of(source.files, "text2code_qrels", "r1")
    assert "tests/tiny, config text2code_qrels, split r1" in message
    assert "text2code_qrels.jsonl" in message


def test_a_split_that_the_hub_does_not_declare_is_an_error_before_anything_is_fetched(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: pytest.fail("fetched"))
    assert "split r9 is not declared; splits found: r1" in error_of(locate, "tests/tiny", CONFIGS, "r9")


# What the README declares


@pytest.mark.parametrize(
    ("data_files", "split"),
    [
        pytest.param([{"split": "r1", "path": "a.jsonl"}, {"split": "r2", "path": "b.jsonl"}], "r1", id="list"),
        pytest.param([{"split": "r1", "path": ["a.jsonl"]}], "r1", id="list-of-paths"),
        pytest.param({"r1": "a.jsonl", "r2": "b.jsonl"}, "r1", id="dict"),
        pytest.param({"r1": ["a.jsonl"]}, "r1", id="dict-of-paths"),
        pytest.param("a.jsonl", "train", id="path"),
        pytest.param(["a.jsonl"], "train", id="paths"),
        pytest.param({2603: "a.jsonl"}, "2603", id="number"),
    ],
)
def test_data_files_may_take_each_of_their_forms(data_files, split, tmp_path):
    assert names(data_set(tmp_path, data_files, "a.jsonl", "b.jsonl"), split) == ["a.jsonl"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["data/r1-*.jsonl"], ["data/r1-0.jsonl", "data/r1-1.jsonl"]),
        (["data/*-1.jsonl", "data/*-0.jsonl"], ["data/r1-1.jsonl", "data/r1-0.jsonl"]),
        (["**/r1-?.jsonl"], ["data/r1-0.jsonl", "data/r1-1.jsonl"]),
        (["data/r1-[0].jsonl"], ["data/r1-0.jsonl"]),
        (["data/*"], ["data/r1-0.jsonl", "data/r1-1.jsonl"]),
    ],
)
def test_patterns_give_the_shards_in_order(patterns, expected, tmp_path):
    source = data_set(tmp_path, {"r1": patterns}, "data/r1-1.jsonl", "data/r1-0.jsonl", "data/deeper/x.txt")
    assert names(source, "r1") == expected


def test_many_shards_come_sorted_in_whatever_order_the_folder_lists_them(tmp_path):
    shards = [f"r1-{number:05}.jsonl" for number in range(30)]
    source = data_set(tmp_path, {"r1": "r1-*.jsonl"}, *shards[::-1])
    assert names(source, "r1") == shards


@pytest.mark.parametrize("pattern", ["c.jsonl", "c-*.jsonl", "folder"])
def test_a_declared_file_that_is_missing_is_an_error_that_names_it(pattern, tmp_path):
    source = data_set(tmp_path, {"r1": ["a.jsonl", pattern]}, "a.jsonl", "folder/b.jsonl")
    message = error_of(source.files, "docs", "r1")
    assert "tests/docs, config docs, split r1" in message
    assert f"README.md declares {pattern}" in message
    assert str(tmp_path) in message


def test_a_missing_readme_is_named(root):
    card = root / "tests" / "tiny" / "README.md"
    card.unlink()
    message = error_of(locate("tests/tiny", CONFIGS, "r1").files, "code_corpus", "r1")
    assert str(card) in message
    assert "missing" in message
    assert "Copy the whole data set, README.md" in message


@pytest.mark.parametrize(
    ("config", "split", "expected"),
    [
        ("code", "r1", "config code is not declared; configs found: docs"),
        ("docs", "r3", "split r3 is not declared; splits found: r1, r2"),
    ],
)
def test_a_missing_config_or_split_is_named_with_those_that_are_there(config, split, expected, tmp_path):
    source = data_set(tmp_path, {"r1": "a.jsonl", "r2": "a.jsonl"}, "a.jsonl")
    message = error_of(source.files, config, split)
    assert message.startswith(f"tests/docs: {tmp_path / 'README.md'}: ")
    assert expected in message


@pytest.mark.parametrize("text", ["# No header\n", "---\nlicense: mit\n---\n", "---\nconfigs:\n---\n"])
def test_a_readme_that_declares_nothing_is_an_error(text, tmp_path):
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    message = error_of(Source("tests/docs", tmp_path).files, "docs", "r1")
    assert "README.md: config docs is not declared; configs found: none" in message


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"configs: [", id="YAML"),
        pytest.param(b"configs: [{config_name: docs}]", id="no-data-files"),
        pytest.param(b"configs: [{data_files: a.jsonl}]", id="no-name"),
        pytest.param(b"configs: [{config_name: docs, data_files: [{split: r1}]}]", id="no-path"),
        pytest.param(b"configs: [{config_name: docs, data_files: {r1: /a.jsonl}}]", id="absolute"),
        pytest.param(b"# \xff", id="UTF-8"),
    ],
)
def test_a_readme_that_cannot_be_read_is_an_error_that_names_it(header, tmp_path):
    (tmp_path / "README.md").write_bytes(b"---\n" + header + b"\n---\n")
    assert "README.md" in error_of(Source("tests/docs", tmp_path).files, "docs", "r1")
