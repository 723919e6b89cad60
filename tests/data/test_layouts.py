"""The layouts of CPRet, 1C-Ebench and CoREB's subtasks on tiny data: read, handed to mteb, scored, and read again."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import mteb
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from mteb.abstasks import AbsTaskRetrieval
from mteb.models import ModelMeta

from coreb_tasks.data import DataError, load, load_subsets
from coreb_tasks.facts import TASKS
from coreb_tasks.task_metadata import Pin
from coreb_tasks.tasks.table import task_class

CPRET = replace(TASKS["CPRet-T2C"], name="Tiny-CPRet", path="tests/tiny")
ONEC = replace(TASKS["1C-Ebench"], name="Tiny-1C", path="tests/tiny", commit=None)


class Hub:
    """A hub folder. ``write`` puts a data set there: config -> rows."""

    def __init__(self, root, monkeypatch):
        self.root, self.monkeypatch = root, monkeypatch
        monkeypatch.setenv("COREB_TASKS_DATA", str(root))

    def write(self, tables, path="tests/tiny", split="test", kind="jsonl"):
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        card = ["---", "configs:"]
        for config, rows in tables.items():
            card += [f"- config_name: {config}", "  data_files:", f"  - split: {split}", f"    path: {config}.{kind}"]
            file = folder / f"{config}.{kind}"
            if kind == "parquet":
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
            else:
                lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
                file.write_text("".join(lines), encoding="utf-8", newline="")
        (folder / "README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")
        return folder

    def cpret(self, queries, corpus, qrels, **options):
        """CPRet's T2C. Queries and corpus: id -> text; qrels: pairs of ids, or triples with a score."""
        columns = ("query-id", "corpus-id", "score")
        return self.write(
            {
                "T2C-queries": [{"_id": query, "text": text} for query, text in queries.items()],
                "T2C-corpus": [{"_id": document, "text": text} for document, text in corpus.items()],
                "T2C-qrels": [dict(zip(columns, row, strict=False)) for row in qrels],
            },
            **options,
        )

    def onec(self, path="tests/tiny", **configs):
        """1C-Ebench. Of each config: id -> question and code."""
        rows = {
            config: [{"id": key, "question": question, "code": code} for key, (question, code) in pairs.items()]
            for config, pairs in configs.items()
        }
        return self.write(rows, path)

    def pin(self, **pins):
        self.monkeypatch.setattr("coreb_tasks.data.retrieval.pins", lambda path, release: pins)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    return Hub(tmp_path / "hub", monkeypatch)


@pytest.fixture
def opened(monkeypatch):
    """How often each data file was opened."""
    counts = Counter()
    original = Path.open

    def spy(self, *args, **kwargs):
        counts.update([self.stem] if self.suffix == ".jsonl" else [])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", spy)
    return counts


WORDS = ("alpha", "beta", "gamma", "delta")


class Encoder:
    """Ranks documents by the words that they share with the query; ``seen`` are the texts that it encoded."""

    def __init__(self):
        self.mteb_model_meta = ModelMeta.create_empty({"name": "stub/words", "revision": "1"})
        self.seen = []

    def encode(self, inputs, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        self.seen += texts
        return np.array([[text.count(word) for word in WORDS] for text in texts], dtype=np.float32)

    def similarity(self, embeddings1, embeddings2):
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1, embeddings2):
        return (embeddings1 * embeddings2).sum(axis=1)


def evaluate(task, encoder=None, cache=None):
    """mteb's result of a task, and its scores by subset."""
    options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
    (result,) = mteb.evaluate(encoder or Encoder(), task, **options).task_results
    return result, {scores["hf_subset"]: scores for scores in result.scores["test"]}


def score(task, metric="ndcg_at_10", subset="default"):
    return evaluate(task)[1][subset][metric]


# CPRet


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_cpret_ids_are_whole_numbers_or_strings_and_a_score_that_is_nowhere_is_1(hub, kind):
    hub.cpret({10: "find alpha", 9: "find beta"}, {0: "alpha", 1: "beta"}, [(10, 0), (9, 1)], kind=kind)
    data = load(CPRET)
    assert data.queries == {"10": "find alpha", "9": "find beta"}
    assert data.corpus == {"0": "alpha", "1": "beta"}
    assert data.qrels == {"10": {"0": 1}, "9": {"1": 1}}
    assert (data.excluded, data.slices) == ({}, {})


def test_cpret_ids_that_are_strings_are_the_same_data(hub):
    hub.cpret({10: "find alpha"}, {0: "alpha"}, [(10, 0)])
    numbers = load(CPRET)
    hub.cpret({"10": "find alpha"}, {"0": "alpha"}, [("10", "0", 1)])
    assert load(CPRET) == numbers


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_cpret_a_score_that_some_rows_lack_is_an_error_with_file_and_row(hub, kind):
    hub.cpret({1: "find alpha"}, {5: "alpha", 6: "beta"}, [(1, 5, 1), (1, 6)], kind=kind)
    with pytest.raises(DataError, match=rf"^T2C-qrels\.{kind}, row 2: (column 'score' is missing|score of .* None)"):
        load(CPRET)


def test_cpret_a_score_of_0_stays_and_is_not_relevant(hub):
    hub.cpret({1: "alpha", 2: "beta"}, {5: "alpha", 6: "beta"}, [(1, 5, 0), (1, 6, 1), (2, 6, 0)])
    assert load(CPRET).qrels == {"1": {"5": 0, "6": 1}, "2": {"6": 0}}
    _, scores = evaluate(task_class(CPRET)())
    assert scores["default"]["ndcg_at_1"] == 0
    assert scores["default"]["mrr_at_10"] == 0.25  # 6 second for 1; nothing to find for 2
    assert scores["default"]["n_queries_without_positive"] == 1


@pytest.mark.parametrize("score", [2, -1, 0.5, "1", True])
def test_cpret_another_score_than_0_or_1_is_an_error(hub, score):
    hub.cpret({1: "find alpha"}, {5: "alpha"}, [(1, 5, score)])
    with pytest.raises(DataError, match=r"^T2C-qrels\.jsonl, row 1: score of \('1', '5'\) is .* in \[0, 1\]"):
        load(CPRET)


def test_cpret_every_positive_of_a_query_counts(hub):
    hub.cpret({1: "alpha"}, {5: "alpha", 6: "alpha alpha", 7: "beta", 8: "gamma"}, [(1, 5), (1, 6), (1, 7)])
    _, scores = evaluate(task_class(CPRET)())
    found = [scores["default"][metric] for metric in ("recall_at_1", "ndcg_at_1", "recall_at_3", "recall_at_5")]
    assert found == [0.33333, 1, 0.66667, 1]  # 6, 5, then 8 before 7: they tie


@pytest.mark.parametrize(("query", "document"), [(7, 7), ("7", 7), ("p-7", "p-7")])
def test_cpret_a_document_with_the_id_of_its_query_stays_relevant(hub, query, document):
    hub.cpret({query: "find alpha"}, {document: "alpha", 8: "beta"}, [(query, document, 1)])
    assert score(task_class(CPRET)()) == 1


def test_cpret_a_document_with_the_id_of_a_query_that_it_has_nothing_to_do_with_takes_up_its_rank(hub):
    hub.cpret({7: "alpha"}, {7: "alpha alpha", 8: "alpha"}, [(7, 8)])
    assert score(task_class(CPRET)(), "mrr_at_10") == 0.5


# 1C-Ebench


def test_1c_the_relevant_document_of_a_question_is_the_code_of_its_row(hub):
    hub.onec(forum={"f1": ("find alpha", "alpha"), "f2": ("find beta", "beta")}, fastcode={3: ("find gamma", "gamma")})
    loaded = load_subsets(ONEC, ["forum", "fastcode"])
    assert loaded["forum"].queries == {"f1": "find alpha", "f2": "find beta"}
    assert loaded["forum"].corpus == {"f1": "alpha", "f2": "beta"}
    assert {subset: data.qrels for subset, data in loaded.items()} == {
        "forum": {"f1": {"f1": 1}, "f2": {"f2": 1}},
        "fastcode": {"3": {"3": 1}},
    }
    result, scores = evaluate(task_class(ONEC)())
    assert {subset: found["ndcg_at_1"] for subset, found in scores.items()} == {"forum": 1, "fastcode": 1}
    assert result.get_score() == 1


def test_1c_a_wrong_code_found_first_costs_as_much_as_it_should(hub):
    hub.onec(forum={"f1": ("alpha", "alpha"), "f2": ("alpha", "alpha beta")}, fastcode={3: ("gamma", "gamma")})
    _, scores = evaluate(task_class(ONEC)())
    # f1 and f2 tie for both questions: f2 comes first, as the later id.
    assert (scores["forum"]["mrr_at_10"], scores["forum"]["recall_at_1"]) == (0.75, 0.5)
    assert scores["fastcode"]["ndcg_at_10"] == 1


def test_1c_a_config_is_read_once_for_both_questions_and_code(hub, opened):
    hub.onec(forum={"f1": ("find alpha", "alpha")}, fastcode={3: ("find gamma", "gamma")})
    opened.clear()
    task = task_class(ONEC)()
    task.load_data()
    assert opened == {"forum": 1, "fastcode": 1}
    task.load_data()
    assert opened.total() == 2


@pytest.mark.parametrize(
    ("column", "said"), [("code", "code of 'f2' is empty"), ("question", "question of 'f2' is empty")]
)
def test_1c_an_empty_text_is_an_error_with_file_and_row(hub, column, said):
    folder = hub.onec(forum={"f1": ("find alpha", "alpha"), "f2": ("find beta", "beta")})
    rows = [{"id": "f1", "question": "a", "code": "b"}, {"id": "f2", "question": "a", "code": "b", column: " "}]
    (folder / "forum.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(DataError, match=rf"^forum\.jsonl, row 2: {said}"):
        load(ONEC, "forum")


@pytest.mark.parametrize(("asked", "other"), [("forum", "fastcode"), ("fastcode", "forum")])
def test_1c_only_the_file_of_the_subset_that_is_asked_for_is_opened(hub, opened, asked, other):
    rows = {"a": ("find alpha", "alpha")}
    folder = hub.onec("PruhaNLP/1C-Ebench", forum=rows, fastcode=rows)
    hub.pin()
    (folder / f"{other}.jsonl").unlink()
    opened.clear()
    task = mteb.get_task("1C-Ebench", hf_subsets=[asked])
    assert evaluate(task)[1].keys() == {asked}
    assert opened == {asked: 1}
    with pytest.raises(DataError, match=f"config {other}, split test: README.md declares {other}.jsonl"):
        mteb.get_task("1C-Ebench").load_data()


@pytest.mark.parametrize(("subset", "expected"), [("forum", 2883), ("fastcode", 530)])
def test_1c_another_number_of_rows_than_the_papers_is_an_error(hub, subset, expected):
    folder = hub.onec("PruhaNLP/1C-Ebench", **{subset: {"a": ("find alpha", "alpha"), "b": ("find beta", "beta")}})
    with pytest.raises(DataError) as refused:
        mteb.get_task("1C-Ebench", hf_subsets=[subset]).load_data()
    assert str(refused.value).startswith(
        f"PruhaNLP/1C-Ebench, config {subset}, split test ({folder}): not the data that 1C-Ebench is scored on: "
        f"expected {expected} rows, got 2 rows."
    )


@pytest.mark.parametrize(("rows", "fits"), [(1, False), (2, True), (3, False)])
def test_the_pinned_number_of_rows_must_be_met(hub, rows, fits):
    hub.onec(forum={"a": ("find alpha", "alpha"), "b": ("find beta", "beta")})
    hub.pin(forum=Pin(rows=rows))
    if fits:
        assert len(load(ONEC, "forum").corpus) == 2
    else:
        with pytest.raises(DataError, match=f"expected {rows} rows, got 2 rows"):
            load(ONEC, "forum")


# CoREB's subtasks


@pytest.fixture
def search(hub):
    """Data of CoREB-T2C-Search: one question for any language, one for Python, two for Go."""
    asked = {"any": ["alpha"], "python": ["beta"], "java": ["alpha"], "cpp": ["alpha"], "ruby": ["alpha"]}
    asked["go"] = ["gamma", "delta alpha"]
    pairs = [(f"{name}{n}", name, text) for name, texts in asked.items() for n, text in enumerate(texts)]
    hub.pin()
    return hub.write(
        {
            "code_corpus": [{"code_id": word, "code": word} for word in WORDS],
            "text2code_queries": [
                {"query_id": key, "query": text, "subtask": f"t2c_search_{name}", "language_constraint": name}
                for key, name, text in pairs
            ],
            "text2code_qrels": [
                {"query_id": key, "doc_id": text.split()[0], "relevance": 2} for key, name, text in pairs
            ],
        },
        "hq-bench/coreb",
        TASKS["CoREB-T2C-Search"].release,
    )


@pytest.mark.usefixtures("search")
def test_subtask_subsets_share_the_corpus_and_each_file_is_read_once(opened):
    opened.clear()
    task = mteb.get_task("CoREB-T2C-Search")
    task.load_data()
    corpora = [subset["test"]["corpus"] for subset in task.dataset.values()]
    assert len(corpora) == 6
    assert all(corpus is corpora[0] for corpus in corpora)
    assert opened == {"code_corpus": 1, "text2code_queries": 1, "text2code_qrels": 1}


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize(
    ("filters", "subsets"),
    [
        ({"hf_subsets": ["go"]}, {"go": 2}),
        ({"hf_subsets": ["go", "any"]}, {"any": 1, "go": 2}),
        ({"languages": ["python"]}, {"python": 1}),
        ({"languages": ["c++"]}, {"cpp": 1}),
        ({"languages": ["go", "python"]}, {"python": 1, "go": 2}),
        ({}, {"any": 1, "python": 1, "java": 1, "cpp": 1, "go": 2, "ruby": 1}),
    ],
    ids=str,
)
def test_a_filter_runs_and_scores_the_chosen_subsets_only(filters, subsets):
    task = mteb.get_task("CoREB-T2C-Search", **filters)
    encoder = Encoder()
    result, scores = evaluate(task, encoder)
    assert {subset: found["n_queries"] for subset, found in scores.items()} == subsets
    assert {subset: found["recall_at_5"] for subset, found in scores.items()} == dict.fromkeys(subsets, 1)
    assert len(encoder.seen) == sum(len(WORDS) + queries for queries in subsets.values())
    assert result.get_score() == pytest.approx(sum(found["ndcg_at_10"] for found in scores.values()) / len(subsets))


@pytest.mark.usefixtures("search")
def test_a_subset_that_is_one_language_has_no_slice_of_its_own_and_names_its_queries():
    task = mteb.get_task("CoREB-T2C-Search", hf_subsets=["go"])
    task.load_data()
    assert task.protocol_data["go"].queries == {"go0": "gamma", "go1": "delta alpha"}
    assert task.dataset["go"]["test"]["relevant_docs"] == {"go0": {"gamma": 1}, "go1": {"delta": 1}}
    assert task.protocol_data["go"].slices == {}


def test_a_subset_that_no_task_has_is_mtebs_own_error():
    with pytest.raises(ValueError, match="No subsets were found for CoREB-T2C-Search"):
        mteb.get_task("CoREB-T2C-Search", hf_subsets=["rust"])


# Text


TEXTS = {
    "composed": "Возврат Неопределено; // Й ё",
    "decomposed": "Возврат Неопределено; // И\u0306 е\u0308",
    "chinese": "给定一个长度为 n 的数组，求最长上升子序列。",
    "japanese": "長さ N の整数列が与えられます。ゔガ゙",
    "separators": "до\u2028после\u2029\x85\x1c\x1d\x1e",
    "white space": "\t\tЕсли а Тогда\x0c\x0b\r\n\u00a0\u3000",
    "beyond": "𝒙 😀 \ufeff\u200b",
}


def test_bm25_finds_other_forms_of_russian_words(hub):
    rows = {"a": ("складами", "склад"), "b": ("документов", "документ"), "c": ("остатках", "остаток остатки")}
    hub.onec(forum=rows)
    task = task_class(ONEC)().filter_languages(None, hf_subsets=["forum"])
    assert evaluate(task, mteb.get_model("mteb/baseline-bm25s"))[1]["forum"]["ndcg_at_1"] == 1


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_texts_come_into_mtebs_dataset_and_to_the_model_to_the_character(hub, kind):
    queries = {f"q-{name}": f"?{text}" for name, text in TEXTS.items()}
    hub.cpret(queries, TEXTS, [(f"q-{name}", name) for name in TEXTS], kind=kind)
    task = task_class(CPRET)()
    task.load_data()
    data = task.dataset["default"]["test"]
    assert dict(zip(data["corpus"]["id"], data["corpus"]["text"], strict=True)) == TEXTS
    assert dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True)) == queries
    encoder = Encoder()
    evaluate(task, encoder)
    assert sorted(encoder.seen) == sorted([*queries.values(), *TEXTS.values()])


def test_the_two_forms_of_a_letter_are_two_ids_and_two_texts(hub):
    hub.onec(forum={"й": ("find alpha", "alpha й"), "и\u0306": ("find beta", "beta и\u0306")})
    data = load(ONEC, "forum")
    assert data.corpus == {"й": "alpha й", "и\u0306": "beta и\u0306"}
    assert score(task_class(ONEC)().filter_languages(None, hf_subsets=["forum"]), "ndcg_at_1", "forum") == 1


# Data that are not pinned


@pytest.fixture
def first(hub, tmp_path):
    """CPRet's layout, evaluated once into a cache: the cache, the result and its scores. Query 1 finds 5 first."""
    hub.cpret({1: "alpha"}, {5: "alpha alpha", 6: "alpha"}, [(1, 5)])
    cache = mteb.ResultCache(tmp_path / "cache")
    return cache, *evaluate(task_class(CPRET)(), cache=cache)


def test_the_revision_of_data_that_are_not_pinned_is_found_when_they_are_loaded(first):
    _, result, scores = first
    assert task_class(CPRET).metadata.revision == "resolved-when-loaded"
    assert len(scores["default"]["data_hash"]) == 64
    assert result.dataset_revision == f"sha256:{scores['default']['data_hash']}"


def test_nothing_is_run_where_nothing_has_changed(first):
    cache, before, _ = first
    encoder = Encoder()
    result, _ = evaluate(task_class(CPRET)(), encoder, cache)
    assert encoder.seen == []
    assert (result.dataset_revision, result.evaluation_time) == (before.dataset_revision, before.evaluation_time)


CHANGES = {
    "judgment": ({1: "alpha"}, {5: "alpha alpha", 6: "alpha"}, [(1, 6)], 0.63093),
    "corpus": ({1: "alpha"}, {5: "alpha", 6: "alpha alpha"}, [(1, 5)], 0.63093),
    "query": ({1: "beta"}, {5: "alpha alpha", 6: "alpha"}, [(1, 5)], 0.63093),  # a tie, which the later id wins
    "document more": ({1: "alpha"}, {5: "alpha alpha", 6: "alpha", 7: "alpha " * 3}, [(1, 5)], 0.63093),
}


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_have_changed_are_scored_anew_and_stored_with_their_revision(hub, first, change):
    cache, before, scores_before = first
    *data, expected = CHANGES[change]
    hub.cpret(*data)
    result, scores = evaluate(task_class(CPRET)(), cache=cache)
    assert scores_before["default"]["ndcg_at_10"] == 1
    assert scores["default"]["ndcg_at_10"] == expected
    assert result.dataset_revision == f"sha256:{scores['default']['data_hash']}" != before.dataset_revision
    (file,) = cache.cache_path.rglob("Tiny-CPRet.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert stored["dataset_revision"] == result.dataset_revision
    assert stored["scores"]["test"][0]["ndcg_at_10"] == expected

    encoder = Encoder()
    again, _ = evaluate(task_class(CPRET)(), encoder, cache)
    assert (encoder.seen, again.dataset_revision) == ([], result.dataset_revision)


@pytest.mark.parametrize("change", [None, "judgment"])
def test_data_that_were_loaded_to_check_a_stored_result_are_let_go(hub, first, change):
    if change:
        hub.cpret(*CHANGES[change][:-1])
    task = task_class(CPRET)()
    evaluate(task, cache=first[0])
    assert not task.data_loaded


def unload_data_of_mteb_2_16(self):
    self.dataset, self.data_loaded = None, False


@pytest.mark.parametrize(
    "unload_data", [AbsTaskRetrieval.unload_data, unload_data_of_mteb_2_16], ids=["installed mteb", "mteb 2.16"]
)
def test_the_same_task_object_finds_that_the_data_have_changed(hub, first, monkeypatch, unload_data):
    monkeypatch.setattr(AbsTaskRetrieval, "unload_data", unload_data)
    task = task_class(CPRET)()
    before, _ = evaluate(task)
    *data, expected = CHANGES["judgment"]
    hub.cpret(*data)
    result, scores = evaluate(task, cache=first[0])
    assert scores["default"]["ndcg_at_10"] == expected
    assert result.dataset_revision == f"sha256:{scores['default']['data_hash']}" != before.dataset_revision


ROWS = {"forum": {"a": ("alpha", "alpha")}, "fastcode": {"b": ("beta", "beta"), "c": ("gamma", "gamma")}}


def test_the_revision_of_several_versions_is_of_all_of_them(hub):
    hub.onec(**ROWS)
    result, scores = evaluate(task_class(ONEC)())
    assert scores["forum"]["data_hash"] != scores["fastcode"]["data_hash"]
    hub.onec(**{**ROWS, "fastcode": {"b": ("beta", "beta")}})
    changed, scores_changed = evaluate(task_class(ONEC)())
    assert scores_changed["forum"]["data_hash"] == scores["forum"]["data_hash"]
    assert changed.dataset_revision != result.dataset_revision


def test_a_subset_that_has_changed_is_scored_anew_where_the_paper_names_a_commit(hub, tmp_path):
    """Offline the commit says nothing about a folder: only the hash of the content does."""
    cache = mteb.ResultCache(tmp_path / "cache")
    hub.pin()
    hub.onec("PruhaNLP/1C-Ebench", **ROWS)
    before, _ = evaluate(mteb.get_task("1C-Ebench"), cache=cache)
    hub.onec("PruhaNLP/1C-Ebench", **{**ROWS, "forum": {"a": ("alpha", "alpha"), "d": ("alpha", "alpha")}})
    encoder = Encoder()
    after, scores = evaluate(mteb.get_task("1C-Ebench"), encoder, cache)
    assert (before.get_score(), after.get_score()) == (1, pytest.approx((1.63093 / 2 + 1) / 2, abs=1e-5))
    assert scores["forum"]["n_queries"] == 2
    assert after.dataset_revision == before.dataset_revision == TASKS["1C-Ebench"].commit


def test_one_subset_after_the_other_ends_in_one_result(hub, tmp_path):
    cache = mteb.ResultCache(tmp_path / "cache")
    hub.pin()
    hub.onec("PruhaNLP/1C-Ebench", **ROWS)
    for subsets in (["forum"], ["fastcode"]):
        evaluate(mteb.get_task("1C-Ebench", hf_subsets=subsets), cache=cache)
    encoder = Encoder()
    _, scores = evaluate(mteb.get_task("1C-Ebench"), encoder, cache)
    assert {subset: found["n_queries"] for subset, found in scores.items()} == {"forum": 1, "fastcode": 2}
    assert encoder.seen == []


def test_a_stored_subset_that_has_changed_is_not_completed_by_another(hub, tmp_path):
    """forum is stored, then its data change, then only fastcode is run: the file holds no score of the old forum."""
    hub.onec(**ROWS)
    cache = mteb.ResultCache(tmp_path / "cache")
    evaluate(task_class(ONEC)().filter_languages(None, hf_subsets=["forum"]), cache=cache)
    hub.onec(**{**ROWS, "forum": {"a": ("alpha", "alpha"), "d": ("delta", "alpha delta")}})
    evaluate(task_class(ONEC)().filter_languages(None, hf_subsets=["fastcode"]), cache=cache)
    (file,) = cache.cache_path.rglob("Tiny-1C.json")
    stored = json.loads(file.read_text(encoding="utf-8"))["scores"]["test"]
    assert [scores["hf_subset"] for scores in stored] == ["fastcode"]


@pytest.mark.parametrize("strategy", ["never", "only-cache"])
def test_where_nothing_may_be_run_data_that_are_not_pinned_are_read_to_know(hub, first, strategy):
    options = {"cache": first[0], "overwrite_strategy": strategy, "co2_tracker": False, "show_progress_bar": False}
    (same,) = mteb.evaluate(Encoder(), task_class(CPRET)(), **options).task_results
    assert same.dataset_revision == first[1].dataset_revision
    hub.cpret(*CHANGES["judgment"][:-1])
    with pytest.raises(ValueError, match="stored result of Tiny-CPRet is not of this task: its d"):
        mteb.evaluate(Encoder(), task_class(CPRET)(), **options)


def test_a_stored_result_whose_data_are_not_at_hand_is_returned_with_a_warning(hub, first, monkeypatch, caplog):
    monkeypatch.setenv("COREB_TASKS_DATA", str(hub.root / "elsewhere"))
    result, _ = evaluate(task_class(CPRET)(), cache=first[0])
    assert result.dataset_revision == first[1].dataset_revision
    (said,) = [record.getMessage() for record in caplog.records if record.name == "coreb_tasks.registry"]
    assert said.startswith("Whether the stored result of Tiny-CPRet is of the task's data is not known: ")


def test_an_evaluation_that_fails_leaves_no_data_behind(hub):
    class Failing(Encoder):
        def encode(self, inputs, **kwargs):
            raise RuntimeError("out of memory")

    hub.cpret({1: "alpha"}, {5: "alpha"}, [(1, 5)])
    task = task_class(CPRET)()
    with pytest.raises(RuntimeError, match="out of memory"):
        evaluate(task, Failing())
    assert not task.data_loaded
    assert task.protocol_data == {}
