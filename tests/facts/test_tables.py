"""The tables are whole: every task of the interface, grades in words, data that are pinned as far as they are known."""

import re
from dataclasses import replace

import mteb
import pytest

from coreb_tasks.facts import OVERALLS, PACKAGED, SUITES, TASKS
from coreb_tasks.task_metadata import pins

PARTS = {
    "T2C": ["", "-CanonicalRetro", "-FullRetro", "-Search"],
    "C2C": ["", "-CrossLang", "-CrossModel", "-MonoLang"],
    "C2T": ["", "-CanonicalRetro", "-FullRetro", "-Match"],
}
COREB = {f"CoREB-{kind}{part}" for kind, parts in PARTS.items() for part in parts}
CPRET = {f"CPRet-{kind}" for kind in ("T2C", "C2C", "P2Dup", "S2Full")}
MAIN = [*CPRET, "1C-Ebench", "CoREB-T2C", "CoREB-C2C", "CoREB-C2T"]
EXPECTED = {
    *COREB,
    *(f"{name}-v202602" for name in COREB - {"CoREB-C2C-CrossModel", "CoREB-C2C-MonoLang"}),
    *CPRET,
    "1C-Ebench",
    *(f"{name}{reranking}-Sample" for name in MAIN for reranking in ("", "-Reranking")),
    *(f"{name}-Reranking" for name in MAIN),
    *(f"CoREB-{kind}-Reranking-v202602" for kind in PARTS),
}


def test_the_names_are_those_of_the_interface():
    assert set(TASKS) == EXPECTED
    assert set(OVERALLS) == {"CoREB-Overall", "CoREB-Overall-v202602", "CPRet-Overall", "1C-Ebench-Micro"}
    assert set(SUITES) == {"CoREB(v202603)", "CoREB(v202602)", "CPRet(v1)", "1C-Ebench(v1)"}


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.reranks])
def test_a_reranking_task_differs_from_the_one_it_reranks_in_its_words_only(name):
    task = TASKS[name]
    reranked = TASKS[task.reranks]
    assert name == reranked.reranking
    words = ("name", "description", "adapted_from", "reranking", "reranks")
    assert replace(task, **{field: getattr(reranked, field) for field in words}) == reranked
    assert name.replace("-Reranking", "") == reranked.name
    assert mteb.get_task(name).metadata.type == "Reranking"


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if not task.reranks])
def test_every_retrieval_task_names_a_reranking_task_on_its_corpus(name):
    other = TASKS[TASKS[name].reranking]
    corpora = [{subset.layout for subset in task.subsets.values()} for task in (TASKS[name], other)]
    assert corpora[0] == corpora[1]
    assert (other.path, other.release) == (TASKS[name].path, TASKS[name].release)


@pytest.mark.parametrize("name", TASKS)
def test_the_revision_of_every_task_is_a_hash_or_will_be_one(name):
    """A commit, or a hash of pinned content; else the task finds the hash of its content when it loads the data."""
    task = TASKS[name]
    revision = mteb.get_task(name).metadata.revision
    recorded = pins(task.path, task.release)
    configs = [config for subset in task.subsets.values() for config in subset.layout.configs]
    pinned = [config for config in configs if config in recorded and recorded[config].sha256]
    if task.commit is not None:
        assert revision == task.commit
        assert re.fullmatch("[0-9a-f]{40}", revision)
    elif pinned == configs:
        assert re.fullmatch("sha256:[0-9a-f]{64}", revision)
    else:
        assert revision == "resolved-when-loaded"
        assert task.path == "coldchair16/CPRet-data", "the only data set of which nothing is known to pin"


@pytest.mark.parametrize("name", TASKS)
def test_every_grade_is_told_in_words_and_the_level_is_one_of_them(name):
    benchmark = TASKS[name].benchmark
    assert benchmark.relevance_level in benchmark.grades
    assert all(len(words) > 20 for words in benchmark.grades.values())


@pytest.mark.parametrize("name", [*TASKS, *OVERALLS])
def test_the_metadata_pass_mtebs_own_checks(name):
    metadata = mteb.get_task(name).metadata
    assert metadata.is_filled()
    metadata._validate_metadata()  # the language codes, which mteb's constructor leaves out
    assert metadata.main_score == "ndcg_at_10"
    assert metadata.intext_citation().startswith("\\cite{")


@pytest.mark.parametrize("name", TASKS)
def test_mteb_knows_the_task_by_its_facts(name):
    metadata = mteb.get_task(name).metadata
    assert metadata.dataset["path"] == TASKS[name].path
    assert metadata.is_public == (not TASKS[name].path.startswith(PACKAGED))
    assert (metadata.prompt is None) == (not name.startswith("CoREB"))
    assert set(metadata.prompt or {"query": ""}) == {"query"}


@pytest.mark.parametrize("name", TASKS)
def test_mteb_shows_descriptive_statistics_and_they_say_where_a_paper_states_them(name):
    metadata = mteb.get_task(name).metadata
    statistics = metadata.descriptive_stats["test"]
    assert metadata.n_samples == {"test": statistics["num_queries"] + statistics["num_documents"]}
    assert set(statistics.get("hf_subset_descriptive_stats", {"default": 1})) == set(TASKS[name].subsets)
    read = TASKS[name].path not in ("coldchair16/CPRet-data", "PruhaNLP/1C-Ebench")
    assert read == ("stated_in" not in statistics) == (statistics["number_of_characters"] is not None)


@pytest.mark.parametrize("name", SUITES)
def test_mteb_knows_the_benchmark(name):
    benchmark = mteb.get_benchmark(name)
    assert [task.metadata.name for task in benchmark.tasks] == list(SUITES[name].tasks)
    assert benchmark.reference
    assert benchmark.citation
    assert benchmark.description
    assert name in {benchmark.name for benchmark in mteb.get_benchmarks()}


def test_mtebs_own_coreb_stays_as_it_is():
    assert mteb.get_benchmark("CoREB").name == "CoREB(v1)"
    assert mteb.get_task("CorebC2CRetrieval").metadata.dataset["path"] == "mteb/coreb-c2c-retrieval"
