"""One sweep over everything that is registered, and each sample task run, stored, read back and shown by mteb."""

import re
from datetime import date
from importlib.resources import files
from pickle import dumps, loads

import mteb
import pytest
from huggingface_hub import DatasetCard

from coreb_tasks.facts import OVERALLS, PACKAGED, SUITES, TASKS

EVERY = {**TASKS, **OVERALLS}
SAMPLES = [name for name, task in TASKS.items() if task.sample]
MODELS = ["mteb/baseline-random-encoder", "mteb/baseline-bm25s"]


# Names


@pytest.fixture(scope="module")
def registered():
    """Every task that mteb knows, by whether it is ours."""
    found = {True: [], False: []}
    for task in mteb.get_tasks(exclude_superseded=False, exclude_private=False):
        found[type(task).__module__.startswith("coreb_tasks.")].append(task.metadata.name)
    return found


def test_every_task_is_registered_once_and_no_other(registered):
    assert sorted(registered[True]) == sorted(EVERY)


def test_no_name_is_mtebs_even_where_file_names_ignore_case(registered):
    """Result files are called by the task's name."""
    assert len(registered[False]) > 1000
    ours = [name.casefold() for name in EVERY]
    assert len({*ours}) == len(ours)
    assert not {*ours} & {name.casefold() for name in registered[False]}


def test_no_benchmark_has_a_name_or_an_alias_of_mtebs():
    theirs = [benchmark for benchmark in mteb.get_benchmarks() if benchmark.name not in SUITES]
    known = {name for benchmark in theirs for name in (benchmark.name, *(benchmark.aliases or ()))}
    assert "CoREB" in known
    assert not {name.casefold() for name in SUITES} & {name.casefold() for name in known}


# Facts and metadata


@pytest.mark.parametrize("name", EVERY)
def test_names_and_texts_are_well_formed(name):
    metadata = mteb.get_task(name).metadata
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]+", name), "is a file name and a word on the command line"
    assert metadata.name == name
    for text in (metadata.description, *(metadata.prompt or {}).values()):
        assert re.fullmatch(r"[A-Z0-9](?:[^\s{}]| (?! ))+\.", text), text
    assert metadata.description.startswith(
        ("A small packaged sample", EVERY[name].benchmark.title, "Mean over", "Mean of")
    )


@pytest.mark.parametrize("name", EVERY)
def test_reference_citation_and_dates_belong_together(name):
    metadata = mteb.get_task(name).metadata
    arxiv = re.fullmatch(r"https://arxiv\.org/abs/(\d{4}\.\d{5})", metadata.reference)[1]
    assert f"arXiv:{arxiv}" in metadata.bibtex_citation
    assert f"url = {{{metadata.reference}}}" in metadata.bibtex_citation
    start, end = map(date.fromisoformat, metadata.date)
    assert start <= end


@pytest.mark.parametrize("name", EVERY)
def test_the_licence_is_that_of_the_data(name):
    licences = {"CoREB": "apache-2.0", "CPRet": "cc-by-nc-4.0", "1C-Ebench": "not specified"}
    if name not in SAMPLES:
        assert mteb.get_task(name).metadata.license == licences[EVERY[name].benchmark.title]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_licence_of_a_sample_is_the_one_on_its_card(name):
    folder = files("coreb_tasks").joinpath("samples", TASKS[name].path.removeprefix(PACKAGED))
    assert mteb.get_task(name).metadata.license == DatasetCard.load(folder / "README.md").data.license


def test_a_revision_stands_for_one_version_of_data():
    versions = {}
    for name, task in TASKS.items():
        configs = {config for subset in task.subsets.values() for config in subset.layout.configs}
        revision = mteb.get_task(name).metadata.revision
        if revision != "resolved-when-loaded":
            versions.setdefault(revision, set()).add((task.path, task.release, *sorted(configs)))
    assert [found for found in versions.values() if len(found) > 1] == []
    # CoREB's kinds in two releases and in the sample, CPRet's sample, 1C-Ebench and its sample
    assert len(versions) == 6 + 3 + 4 + 2


@pytest.mark.parametrize("name", EVERY)
def test_a_task_can_be_sent_to_another_process(name):
    task = mteb.get_task(name)
    sent = loads(dumps(task))  # noqa: S301
    assert (type(sent), sent.metadata.name, sent.hf_subsets) == (type(task), name, task.hf_subsets)


@pytest.mark.parametrize("name", TASKS)
def test_mteb_has_the_subsets_of_the_table_and_each_has_a_language(name):
    task = mteb.get_task(name)
    assert task.hf_subsets == list(TASKS[name].subsets)
    assert task.eval_splits == ["test"]
    assert all(task.metadata.hf_subsets_to_langscripts[subset] for subset in task.hf_subsets)


@pytest.mark.parametrize("name", TASKS)
def test_the_tasks_that_one_is_adapted_from_are_mtebs(name):
    for original in mteb.get_task(name).metadata.adapted_from or ():
        assert type(mteb.get_task(original)).__module__.startswith("mteb.tasks.")


@pytest.mark.parametrize("name", [*OVERALLS, *SUITES])
def test_what_is_made_of_tasks_is_made_of_known_ones_of_its_benchmark(name):
    made = OVERALLS.get(name) or SUITES[name]
    parts = getattr(made, "parts", None) or made.tasks
    assert len(parts) == len({*parts}) > 0
    for part in parts:
        assert TASKS[part].benchmark is made.benchmark
        assert not TASKS[part].sample
    twins = SUITES if name in OVERALLS else OVERALLS
    assert parts in [getattr(twin, "parts", None) or twin.tasks for twin in twins.values()]


@pytest.mark.parametrize("name", OVERALLS)
def test_mteb_knows_the_parts_of_an_overall_task(name):
    task = mteb.get_task(name)
    assert task.is_aggregate
    assert [part.metadata.name for part in task.tasks] == list(OVERALLS[name].parts)


# Runs


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with a result of each model for each sample task, and a stand-in for each task of each suite."""
    cache = mteb.ResultCache(tmp_path_factory.mktemp("cache"))
    options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
    for name in MODELS:
        model = mteb.get_model(name)
        results = mteb.evaluate(model, mteb.get_tasks(tasks=SAMPLES), **options).task_results
        for task in (task for suite in SUITES.values() for task in suite.tasks):
            (sample,) = [result for result in results if result.task_name == sample_of(task)]
            cache.save_to_cache(stand_in(task, sample), model.mteb_model_meta)
    return cache


def sample_of(task):
    return f"{task.removesuffix('-v202602')}-Sample"


def stand_in(name, sample):
    """A result of a sample as one of another task on that task's data."""
    task, result = mteb.get_task(name), sample.model_copy(deep=True)
    revision = task.metadata.revision
    result.task_name = name
    result.dataset_revision = f"sha256:{'0' * 64}" if revision == "resolved-when-loaded" else revision
    for scores in result.scores["test"]:
        scores["data_hash"] = task.data_hash(scores["hf_subset"]) or scores["data_hash"]
    return result


def stored(cache, model, task):
    (model_result,) = cache.load_results(models=[model], tasks=[task])
    (result,) = model_result.task_results
    return result


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_task_is_run_stored_and_read_back(cache, name, model):
    result = stored(cache, model, name)
    assert result.dataset_revision == mteb.get_task(name).metadata.revision
    assert [scores["hf_subset"] for scores in result.scores["test"]] == list(TASKS[name].subsets)
    for scores in result.scores["test"]:
        assert 0 < scores["main_score"] == scores["ndcg_at_10"] < 1
        assert scores["n_queries"] == scores["n_queries_answered"] > 0
        assert scores["relevance_level"] == TASKS[name].benchmark.relevance_level
        assert ("query_prompt" in scores, "document_prompt" in scores) == (False, False)
    assert (result.task_type, result.is_public) == ("Reranking" if TASKS[name].reranks else "Retrieval", False)


@pytest.mark.parametrize("name", SAMPLES)
def test_words_find_more_than_chance(cache, name):
    assert stored(cache, MODELS[1], name).get_score() > stored(cache, MODELS[0], name).get_score()


@pytest.mark.parametrize("format", ["wide", "long"])
def test_a_table_shows_every_sample_task_and_model(cache, format):  # noqa: A002
    table = cache.load_results(models=MODELS, tasks=SAMPLES).to_dataframe(format=format)
    assert sorted({*table["task_name"]}) == sorted(SAMPLES)
    for name in SAMPLES:
        for model in MODELS:
            rows = table[table["task_name"] == name]
            (shown,) = rows[model] if format == "wide" else rows[rows["model_name"] == model]["score"]
            assert shown == pytest.approx(stored(cache, model, name).get_score())


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_stored_is_not_run_again(cache, name):
    class Unused:
        mteb_model_meta = mteb.get_model_meta(MODELS[0])

        def encode(self, *args, **kwargs):
            raise AssertionError("it was run")

        similarity = similarity_pairwise = encode

    options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
    (result,) = mteb.evaluate(Unused(), mteb.get_task(name), **options).task_results
    assert result.get_score() == stored(cache, MODELS[0], name).get_score()


@pytest.mark.parametrize("name", SUITES)
def test_a_benchmark_ranks_models_by_the_mean_of_its_tasks(cache, name, caplog):
    results = cache.load_results(models=MODELS, tasks=name)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("coreb_tasks")] == []
    table = results.get_benchmark_result()
    rows = {row["Model"]: row for row in table.to_dict("records")}
    assert list(rows) == ["mteb/baseline-bm25s", "mteb/baseline-random-encoder"]
    for model, row in rows.items():
        scores = [stored(cache, model, sample_of(task)).get_score() for task in SUITES[name].tasks]
        assert row["Mean (Task)"] == row["Retrieval"] == pytest.approx(sum(scores) / len(scores))
    assert [row["Rank (Borda)"] for row in rows.values()] == [1, 2]


@pytest.mark.parametrize("name", OVERALLS)
def test_an_overall_score_is_made_of_the_stored_results_of_its_parts(cache, name):
    options = {"cache": cache, "co2_tracker": False, "show_progress_bar": False, "overwrite_strategy": "only-cache"}
    (result,) = mteb.evaluate(mteb.get_model(MODELS[1]), mteb.get_task(name), **options).task_results
    parts = [scores for part in OVERALLS[name].parts for scores in stored(cache, MODELS[1], part).scores["test"]]
    (scores,) = result.scores["test"]
    weights = [part["n_queries"] if OVERALLS[name].weighted else 1 for part in parts]
    expected = sum(part["main_score"] * weight for part, weight in zip(parts, weights, strict=True)) / sum(weights)
    assert scores["main_score"] == pytest.approx(expected, abs=1e-5)
    assert scores["n_queries"] == sum(part["n_queries"] for part in parts)
    assert stored(cache, MODELS[1], name).get_score() == scores["main_score"]
