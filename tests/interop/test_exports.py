"""Exports, read back by the tools they are for: row by row what the data hold."""

import json
from unittest import mock
from urllib.parse import unquote

import pytest
import pytrec_eval
from beir.datasets.data_loader import GenericDataLoader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

from coreb_tasks.data import load_subsets
from coreb_tasks.facts import TASKS
from coreb_tasks.interop import export, read_qrels
from coreb_tasks.rules import at_level

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # BEIR's loader
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
IDS = ["007", "7", "Модуль Объекта", "й", "и\u0306", "100%", 'say "x"', "a/b#c", "x\xa0y"]
TASKS_TO_EXPORT = [name for name, task in TASKS.items() if task.sample and task.reranks is None]


def read_beir(folder, split):
    corpus, queries, qrels = GenericDataLoader(str(folder)).load(split=split)
    assert {document["title"] for document in corpus.values()} == {""}
    return {name: document["text"] for name, document in corpus.items()}, queries, qrels


def read_trec(folder):
    lines = (folder / "corpus" / "documents.jsonl").read_text(encoding="utf-8").splitlines()  # at every kind of end
    corpus = {row["id"]: row["contents"] for row in map(json.loads, lines)}
    lines = (folder / "topics.jsonl").read_text(encoding="utf-8").splitlines()
    queries = {row["id"]: row["title"] for row in map(json.loads, lines)}
    with (folder / "qrels.txt").open(encoding="utf-8") as qrels, (folder / "qrels-binary.txt").open() as binary:
        return corpus, queries, pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_qrel(binary)


def read_mteb(folder, subset="default"):
    # Not what ``datasets`` prepared for another folder: it tells them apart by the time they were written.
    with mock.patch("datasets.config.HF_DATASETS_CACHE", folder.parent / "cache" / folder.name):
        split = RetrievalDatasetLoader(str(folder), revision=None, split="test", config=subset).load()
    corpus, queries = (dict(zip(split[part]["id"], split[part]["text"], strict=True)) for part in ("corpus", "queries"))
    return corpus, queries, split["relevant_docs"]


def test_beir_reads_what_the_data_hold(export_of, hostile):
    data = hostile(IDS)
    folder = export_of(data, "beir")
    assert read_beir(folder, "test") == (data.corpus, data.queries, data.qrels)
    assert read_beir(folder, "test-binary")[2] == at_level(data.qrels, 2)
    first, *rows = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").split("\n")
    assert (first, len(rows)) == ("query-id\tcorpus-id\tscore", len(IDS) ** 2 + 1)
    assert read_qrels(folder / "qrels" / "test.tsv") == data.qrels


def test_a_query_with_a_documents_id_gets_a_prefix_in_beirs_files_only(export_of, hostile):
    data = hostile(IDS, IDS)
    corpus, queries, qrels = read_beir(export_of(data, "beir"), "test")
    assert corpus == data.corpus
    assert queries == {f"query-{query}": text for query, text in data.queries.items()}
    assert qrels == {f"query-{query}": judged for query, judged in data.qrels.items()}
    info = json.loads((export_of(data, "beir", name="again") / "coreb_tasks.json").read_text(encoding="utf-8"))
    assert (info["query_id_prefix"], info["excluded"]) == ("query-", {"query-007": ["007"]})


def test_trec_files_hold_every_id_escaped_and_every_text(export_of, hostile):
    data = hostile([*IDS, "tab\tid", "line\nid", "\u2028"])
    folder = export_of(data, "trec")

    def plain(table):
        return {unquote(name): value for name, value in table.items()}

    corpus, queries, qrels, binary = read_trec(folder)
    assert (plain(corpus), plain(queries)) == (data.corpus, data.queries)
    assert {query: plain(judged) for query, judged in plain(qrels).items()} == data.qrels
    assert {query: plain(judged) for query, judged in plain(binary).items()} == at_level(data.qrels, 2)
    assert read_qrels(folder / "qrels.txt") == data.qrels


def test_mteb_reads_what_the_data_hold(export_of, hostile):
    data = hostile([*IDS, "tab\tid", "line\nid"])
    folder = export_of(data, "mteb")
    assert read_mteb(folder) == (data.corpus, data.queries, data.qrels)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_comes_back_from_beir_and_mteb(export_of, hostile, tmp_path_factory, text):
    data = hostile(["d"], ["q"])
    data.corpus["d"] = data.queries["q"] = text
    for kind, read in (("beir", lambda folder: read_beir(folder, "test")), ("mteb", read_mteb)):
        folder = export_of(data, kind, name=tmp_path_factory.mktemp("export") / "out")
        assert read(folder)[:2] == (data.corpus, data.queries)


def test_the_file_beside_the_data_says_what_they_are(tiny, tmp_path):
    task = tiny("C2C")
    export(task.name, "beir", tmp_path / "out")
    info = json.loads((tmp_path / "out" / "coreb_tasks.json").read_text(encoding="utf-8"))
    data = load_subsets(task, ["default"])["default"]
    assert (info["task"], info["release"], info["relevance_level"]) == ("Tiny-C2C", "r1", 2)
    assert (info["data_hash"], info["excluded"]) == (data.data_hash, {"q1": ["d"]})
    assert (info["documents"], info["queries"], info["judgments"], info["query_id_prefix"]) == (4, 1, 2, "")
    assert info["grades"].keys() == {"1", "2"}


def test_exports_into_folders_of_one_name_load_as_themselves(export_of, hostile, tmp_path):
    """``datasets`` keeps what it prepared by the name of the folder."""
    found = []
    for n, ids in enumerate((["a", "b"], ["c", "d", "e"])):
        folder = export_of(hostile(ids), "mteb", name=f"{n}/mteb")
        with mock.patch("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache"):
            split = RetrievalDatasetLoader(str(folder), revision=None, split="test").load()
        found.append(split["corpus"]["id"][:])
    assert found == [["a", "b"], ["c", "d", "e"]]


@pytest.mark.parametrize("name", TASKS_TO_EXPORT)
def test_every_sample_comes_back_row_by_row(name, tmp_path):
    task = TASKS[name]
    data = load_subsets(task, task.subsets)
    for kind in ("beir", "trec", "mteb"):
        export(name, kind, tmp_path / kind)
    for subset, expected in data.items():
        home = "" if len(data) == 1 else subset
        prefix = "query-" if expected.queries.keys() & expected.corpus.keys() else ""
        corpus, queries, qrels = read_beir(tmp_path / "beir" / home, "test")
        assert corpus == expected.corpus
        assert queries == {prefix + query: text for query, text in expected.queries.items()}
        assert qrels == {prefix + query: judged for query, judged in expected.qrels.items()}
        assert read_trec(tmp_path / "trec" / home)[:3] == (expected.corpus, expected.queries, expected.qrels)
        assert read_mteb(tmp_path / "mteb", subset) == (expected.corpus, expected.queries, expected.qrels)


def test_a_subset_alone_stands_in_the_folder_itself(tmp_path):
    export("1C-Ebench-Sample", "beir", tmp_path / "out", ["forum"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "coreb_tasks.json",
        "corpus.jsonl",
        "qrels",
        "queries.jsonl",
    ]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="is not empty; expected a new or an empty folder"):
        export("CoREB-T2C-Sample", "beir", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown format 'csv'; expected beir, trec, mteb"):
        export("CoREB-T2C-Sample", "csv", tmp_path / "out")


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["CoREB-T2C", "CoREB-C2C", "CoREB-C2T-v202602"])
def test_the_real_data_come_back_row_by_row(name, tmp_path, monkeypatch, real_hub):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    data = load_subsets(TASKS[name], ["default"])["default"]
    for kind in ("beir", "trec", "mteb"):
        export(name, kind, tmp_path / kind)
    assert read_beir(tmp_path / "beir", "test") == (data.corpus, data.queries, data.qrels)
    assert read_trec(tmp_path / "trec")[:3] == (data.corpus, data.queries, data.qrels)
    assert read_mteb(tmp_path / "mteb") == (data.corpus, data.queries, data.qrels)
