"""Scores over several tasks, by hand from results that stand in for those of a model."""

import json
import re
import shutil
from itertools import permutations

import mteb
import pytest
from mteb.models import ModelMeta

from coreb_tasks.facts import OVERALLS


def part(name, *, split="test", revision=None, **subsets):
    """A result of a task; of each subset its main score and its number of queries."""
    task = mteb.get_task(name)
    scores = {
        subset: {
            "main_score": score,
            "ndcg_at_10": score,
            "n_queries": queries,
            "relevance_level": task.relevance_level,
            "data_hash": task.data_hash(subset),
        }
        for subset, (score, queries) in subsets.items()
    }
    result = mteb.TaskResult.from_task_results(task, {split: scores}, evaluation_time=1.0, kg_co2_emissions=0.0)
    result.dataset_revision = revision or result.dataset_revision
    return result


COREB = {"CoREB-T2C": (0.51234, 1123), "CoREB-C2C": (0.25, 278), "CoREB-C2T": (0.75, 1200)}
COREB_V202602 = {
    "CoREB-T2C-v202602": (0.51234, 1165),
    "CoREB-C2C-v202602": (0.25, 169),
    "CoREB-C2T-v202602": (0.75, 1270),
}
CPRET = {
    "CPRet-T2C": (0.9, 4900),
    "CPRet-C2C": (0.70004, 4800),
    "CPRet-P2Dup": (0.1, 168),
    "CPRet-S2Full": (0.3, 10000),
}
ONEC = {"forum": (0.3, 2883), "fastcode": (0.6, 530)}


def parts_of(overall):
    if overall == "1C-Ebench-Micro":
        return [part("1C-Ebench", **ONEC)]
    scores = {"CoREB-Overall": COREB, "CoREB-Overall-v202602": COREB_V202602, "CPRet-Overall": CPRET}[overall]
    return [part(name, default=score) for name, score in scores.items()]


def combined(overall, parts):
    """The one score of an overall task from results of its parts."""
    result = mteb.get_task(overall).combine_task_results(parts)
    assert (result.task_name, list(result.scores)) == (overall, ["test"])
    (scores,) = result.scores["test"]
    assert scores["hf_subset"] == "default"
    assert scores["main_score"] == scores["ndcg_at_10"]
    return scores


EXPECTED = {
    # (.51234 * 1123 + .25 * 278 + .75 * 1200) / 2601 = (575.35782 + 69.5 + 900) / 2601
    "CoREB-Overall": (0.59395, 2601),
    # (.51234 * 1165 + .25 * 169 + .75 * 1270) / 2604 = (596.8761 + 42.25 + 952.5) / 2604
    "CoREB-Overall-v202602": (0.61122, 2604),
    # (.9 + .70004 + .1 + .3) / 4; by queries it would be .54291
    "CPRet-Overall": (0.50001, 19868),
    # (.3 * 2883 + .6 * 530) / 3413 = (864.9 + 318) / 3413; the mean of the subsets is .45
    "1C-Ebench-Micro": (0.34659, 3413),
}


def test_every_overall_task_is_tested():
    assert {*EXPECTED} == {*OVERALLS}


@pytest.mark.parametrize("overall", EXPECTED)
def test_an_overall_score_is_right_to_five_digits(overall):
    scores = combined(overall, parts_of(overall))
    assert (scores["main_score"], scores["n_queries"]) == EXPECTED[overall]


def test_the_order_of_the_parts_and_other_tasks_results_change_nothing():
    other = part("CoREB-T2C-v202602", default=(0.0, 5000))
    for parts in permutations(parts_of("CoREB-Overall")):
        assert combined("CoREB-Overall", [other, *parts])["main_score"] == EXPECTED["CoREB-Overall"][0]


@pytest.mark.parametrize(
    ("overall", "missing"), [(name, n) for name in OVERALLS for n in range(len(OVERALLS[name].parts))]
)
def test_without_one_of_its_parts_there_is_no_score(overall, missing):
    parts = parts_of(overall)
    del parts[missing]
    if parts:
        assert combined(overall, parts)["main_score"] is None
    else:
        scores = mteb.get_task(overall).task_results_to_scores([])
        assert scores == {"test": {"default": {"main_score": None, "ndcg_at_10": None}}}


@pytest.mark.parametrize("subset", ONEC)
def test_without_a_subset_of_a_part_there_is_no_score(subset):
    scores = combined("1C-Ebench-Micro", [part("1C-Ebench", **{subset: ONEC[subset]})])
    assert scores["main_score"] is None


def test_a_part_of_another_split_is_missing():
    first, *rest = parts_of("CoREB-Overall")
    other_split = part("CoREB-T2C", split="dev", default=COREB["CoREB-T2C"])
    assert combined("CoREB-Overall", [other_split, *rest])["main_score"] is None
    assert combined("CoREB-Overall", [first, *rest])["main_score"] is not None


def test_no_score_is_null_in_the_file_and_no_number_in_a_table(tmp_path):
    cache = mteb.ResultCache(tmp_path)
    parts = parts_of("CoREB-Overall")[1:]
    result = mteb.get_task("CoREB-Overall").combine_task_results(parts)
    cache.save_to_cache(result, meta())
    (file,) = tmp_path.rglob("CoREB-Overall.json")
    assert json.loads(file.read_text(encoding="utf-8"))["scores"]["test"][0]["main_score"] is None
    assert cache.load_results(tasks=["CoREB-Overall"]).to_dataframe().empty


# 1C-Ebench


@pytest.mark.parametrize(("forum", "fastcode", "macro", "micro"), [(0.3, 0.6, 0.45, 0.34659), (1.0, 0.0, 0.5, 0.84471)])
def test_the_score_of_1c_is_its_macro_average_and_micro_weighs_by_queries(tmp_path, forum, fastcode, macro, micro):
    result = part("1C-Ebench", forum=(forum, 2883), fastcode=(fastcode, 530))
    assert result.get_score() == pytest.approx(macro)
    assert combined("1C-Ebench-Micro", [result])["main_score"] == micro
    cache = mteb.ResultCache(tmp_path)
    cache.save_to_cache(result, meta())
    shown = cache.load_results(tasks=["1C-Ebench"]).to_dataframe()
    assert shown.iloc[0, -1] == pytest.approx(macro)


# Revision


def test_the_revision_of_an_overall_result_follows_that_of_every_part():
    found = []
    for changed in (None, *CPRET):
        parts = [
            part(name, revision=f"sha256:{'f' if name == changed else number}" + "0" * 63, default=score)
            for number, (name, score) in enumerate(CPRET.items())
        ]
        found.append(mteb.get_task("CPRet-Overall").combine_task_results(parts).dataset_revision)
    assert len({*found}) == 5
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", revision) for revision in found)


def test_the_revision_is_known_before_where_the_parts_are_pinned_and_stays():
    before = {name: mteb.get_task(name).metadata.revision for name in OVERALLS}
    assert before["CPRet-Overall"] == "resolved-when-loaded"
    assert before["CoREB-Overall"] != before["CoREB-Overall-v202602"]
    assert before["1C-Ebench-Micro"] == mteb.get_task("1C-Ebench").metadata.revision
    for name in ("CoREB-Overall", "CoREB-Overall-v202602", "1C-Ebench-Micro"):
        assert mteb.get_task(name).combine_task_results(parts_of(name)).dataset_revision == before[name], name
    assert {name: mteb.get_task(name).metadata.revision for name in OVERALLS} == before


# Through mteb, from stored results of the parts


def meta():
    return ModelMeta.create_empty({"name": "stub/overall", "revision": "1"})


class Unused:
    """A model that must not run."""

    mteb_model_meta = meta()

    def encode(self, *args, **kwargs):
        raise AssertionError("the parts were run")

    similarity = similarity_pairwise = encode


class Stored:
    """A cache that holds results of the parts of CoREB-Overall."""

    def __init__(self, folder):
        self.folder = folder
        self.cache = mteb.ResultCache(folder)

    def put(self, **scores):
        for kind, score in scores.items():
            name = f"CoREB-{kind}"
            self.cache.save_to_cache(part(name, default=(score, COREB[name][1])), meta())

    def evaluate(self, strategy="only-missing", **options):
        options = {"cache": self.cache, "co2_tracker": False, "show_progress_bar": False, **options}
        task = mteb.get_task("CoREB-Overall")
        (result,) = mteb.evaluate(Unused(), task, overwrite_strategy=strategy, **options).task_results
        return result.scores["test"][0]["main_score"]

    def file(self):
        (file,) = self.folder.rglob("CoREB-Overall.json")
        return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture
def stored(tmp_path):
    stored = Stored(tmp_path)
    stored.put(T2C=0.51234, C2C=0.25, C2T=0.75)
    return stored


@pytest.mark.parametrize("strategy", ["only-missing", "only-cache", "never"])
def test_an_overall_result_is_made_of_stored_parts_and_stored(stored, strategy):
    assert stored.evaluate(strategy) == 0.59395
    assert stored.file()["scores"]["test"][0]["main_score"] == 0.59395
    assert stored.cache.load_results(tasks=["CoREB-Overall"]).to_dataframe().iloc[0, -1] == 0.59395


@pytest.mark.parametrize("strategy", ["only-missing", "only-cache", "never"])
@pytest.mark.parametrize("changed", ["T2C", "C2C", "C2T"])
def test_a_stored_overall_result_is_not_returned_when_a_part_has_changed(stored, strategy, changed):
    stored.evaluate()
    stored.put(**{changed: 0.0})
    # without T2C 969.5 / 2601, without C2C 1475.35782 / 2601, without C2T 644.85782 / 2601
    expected = {"T2C": 0.37274, "C2C": 0.56723, "C2T": 0.24793}[changed]
    assert stored.evaluate(strategy) == expected
    assert stored.file()["scores"]["test"][0]["main_score"] == expected


@pytest.fixture
def without_c2c(stored, monkeypatch, tmp_path):
    """A stored overall result, one part of which is gone; nor are there data to run it on."""
    stored.evaluate()
    (file,) = stored.folder.rglob("CoREB-C2C.json")
    file.unlink()
    monkeypatch.setenv("COREB_TASKS_DATA", str(tmp_path / "nowhere"))
    return stored


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("only-missing", "hq-bench/coreb: COREB_TASKS_DATA=.*there is no folder"),
        ("only-cache", "no results found in cache for task CoREB-C2C"),
    ],
)
def test_a_part_that_is_gone_is_run_or_refused_whatever_the_stored_overall_result_says(without_c2c, strategy, said):
    with pytest.raises(ValueError, match=said):
        without_c2c.evaluate(strategy)


def test_a_part_that_fails_leaves_no_score(without_c2c):
    assert without_c2c.evaluate(raise_error=False) is None
    assert without_c2c.file()["scores"]["test"][0]["main_score"] is None


@pytest.fixture
def cpret(hub):
    """Data of all four tasks of CPRet, one query each, whose relevant document is the one given."""
    folder = hub.root / "coldchair16" / "CPRet-data"

    def cpret(relevant):
        hub.tables = {}
        for kind in ("T2C", "C2C", "P2Dup", "S2Full"):
            hub.tables[f"{kind}-queries"] = [{"_id": 1, "text": "alpha"}]
            corpus = enumerate(["alpha", "beta", kind], start=1)
            hub.tables[f"{kind}-corpus"] = [{"_id": document, "text": text} for document, text in corpus]
            hub.tables[f"{kind}-qrels"] = [{"query-id": 1, "corpus-id": relevant}]
        hub.write()
        shutil.copytree(hub.folder, folder, dirs_exist_ok=True)
        card = (folder / "README.md").read_text(encoding="utf-8")
        (folder / "README.md").write_text(card.replace("split: r1", "split: test"), encoding="utf-8")

    yield cpret
    for task in mteb.get_task("CPRet-Overall").tasks:  # they are the same objects in every test
        if task.data_loaded:
            task.unload_data()


VECTORS = {"alpha": (1.0, 0.0), "beta": (0.5, 0.0)}


def evaluate_cpret(encoder, cache):
    options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
    (result,) = mteb.evaluate(encoder, mteb.get_task("CPRet-Overall"), **options).task_results
    return result.scores["test"][0]["main_score"], result.dataset_revision


def test_an_overall_result_of_data_that_are_not_pinned_has_their_revision(cpret, stubs, tmp_path):
    cache, revisions = mteb.ResultCache(tmp_path / "cache"), []
    for relevant, expected in ((1, 1.0), (2, 0.63093)):
        cpret(relevant)
        score, revision = evaluate_cpret(stubs.encoder(VECTORS, default=(0.0, 0.0)), cache)
        assert score == expected
        revisions.append(revision)
    assert revisions[0] != revisions[1]
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", revision) for revision in revisions)


def test_an_overall_result_is_of_the_data_as_they_are_now(cpret, stubs, tmp_path):
    cache = mteb.ResultCache(tmp_path / "cache")
    cpret(1)
    first = evaluate_cpret(stubs.encoder(VECTORS, default=(0.0, 0.0)), cache)
    again = stubs.encoder(VECTORS, default=(0.0, 0.0))
    assert evaluate_cpret(again, cache) == first
    assert again.seen == {"query": [], "document": []}
    cpret(2)
    assert evaluate_cpret(stubs.encoder(VECTORS, default=(0.0, 0.0)), cache)[0] == 0.63093


def test_a_sample_run_of_1c_has_the_macro_average_of_its_subsets():
    model = mteb.get_model("mteb/baseline-bm25s")
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    (result,) = mteb.evaluate(model, mteb.get_task("1C-Ebench-Sample"), **options).task_results
    scores = {found["hf_subset"]: found["main_score"] for found in result.scores["test"]}
    assert scores["forum"] != scores["fastcode"]
    assert result.get_score() == pytest.approx((scores["forum"] + scores["fastcode"]) / 2)


def test_every_overall_task_has_parts_of_its_own():
    first, second = mteb.get_task("CPRet-Overall"), mteb.get_task("CPRet-Overall")
    assert [type(part) for part in first.tasks] == [type(part) for part in second.tasks]
    assert not {id(part) for part in first.tasks} & {id(part) for part in second.tasks}
    assert first.metadata.tasks == first.tasks
