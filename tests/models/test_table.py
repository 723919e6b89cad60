"""Every row of the table of models is a model of mteb, which loads as the row says."""

import copy
import importlib
import importlib.metadata
import logging
import pickle
import sys

import mteb
import numpy as np
import pytest
import sentence_transformers
from datasets import Dataset
from mteb.types import PromptType
from torch.utils.data import DataLoader

from coreb_tasks.facts import TASKS
from coreb_tasks.facts.models import MODELS as FACTS
from coreb_tasks.models.table import MODELS, load_sentence_transformer

# mteb's own, for every model with a table of prompts.
pytestmark = pytest.mark.filterwarnings("ignore:Model prompts specified:UserWarning")

ENCODERS = [name for name, model in FACTS.items() if model.kind == "encoder"]
JINA = "jinaai/jina-code-embeddings-0.5b"


# Metadata


@pytest.mark.parametrize("name", FACTS)
def test_mteb_knows_the_model_by_its_name(name):
    facts, meta = FACTS[name], mteb.get_model_meta(name)
    assert meta is MODELS[name]
    assert (meta.name, meta.revision, meta.license) == (name, facts.revision, facts.license)
    assert (meta.max_tokens, meta.adapted_from) == (facts.max_tokens, facts.base)
    assert meta.is_cross_encoder == (facts.kind == "yes-no")
    assert str(meta.reference).startswith("https://")


@pytest.mark.parametrize("name", FACTS)
def test_metadata_can_be_copied_and_pickled(name):
    meta = MODELS[name]
    for twin in (copy.deepcopy(meta), meta.model_copy(deep=True), pickle.loads(pickle.dumps(meta))):  # noqa: S301
        assert twin == meta
        assert twin.loader is meta.loader
    assert meta.to_dict()["loader"] == meta.loader.__name__


def test_no_model_takes_the_place_of_one_of_mtebs():
    registry = importlib.import_module("mteb.models.model_implementations").MODEL_REGISTRY
    assert {name: registry[name] for name in MODELS} == MODELS
    loaders = {meta.loader.__name__ for meta in MODELS.values()}
    others = [meta.loader for name, meta in registry.items() if name not in MODELS and meta.loader is not None]
    # mteb finds a stored result's loader by its name.
    assert not loaders & {getattr(getattr(loader, "func", loader), "__name__", None) for loader in others}


def test_only_fields_that_the_lowest_mteb_has():
    needed = set().union(*(meta.model_fields_set for meta in MODELS.values()))
    assert needed <= {
        *("loader", "loader_kwargs", "name", "revision", "release_date", "languages", "n_parameters"),
        *("memory_usage_mb", "max_tokens", "embed_dim", "license", "open_weights", "public_training_code"),
        *("public_training_data", "framework", "reference", "similarity_fn_name", "use_instructions"),
        *("training_datasets", "adapted_from", "model_type", "citation", "extra_requirements_groups"),
    }


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("hq-bench/coreb-code-reranker", None),
        ("coldchair16/CPRetriever-Code", 2304),
        ("coldchair16/CPRetriever-Prob-Qwen3-4B-2510", 2560),
        ("PruhaNLP/USER2-1C-code", [768, 512, 384, 256, 128, 64, 32]),
        ("coreb-tasks/bm25-okapi", None),
        (JINA, [896, 512, 256, 128, 64]),
        ("Salesforce/SFR-Embedding-Code-400M_R", 1024),
    ],
)
def test_dimensions(name, dims):
    assert mteb.get_model_meta(name).embed_dim == dims


# Loading, with a tiny model in the place of each


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    """A model of 32 dimensions and at most 512 tokens, one for each letter a to h."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *"abcdefgh"])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=512, **tokens).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=512, **sizes)).save_pretrained(folder)
    return folder


@pytest.fixture
def asked(monkeypatch, tiny_folder):
    """What sentence-transformers' constructor was asked for; it gives the tiny model whatever that is."""
    asked = []

    def constructor(name, **kwargs):
        asked.append((name, kwargs))
        kept = {key: value for key, value in kwargs.items() if key in ("device", "truncate_dim")}
        return constructor.original(str(tiny_folder), **kept)

    constructor.original = sentence_transformers.SentenceTransformer
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", constructor)
    return asked


@pytest.fixture
def warnings_of(caplog):
    caplog.set_level(logging.WARNING, logger="coreb_tasks")
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("coreb_tasks")]


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_loads_as_its_row_says(name, asked, warnings_of):
    facts, encoder = FACTS[name], mteb.get_model(name, device="cpu")
    ((asked_name, options),) = asked
    assert (asked_name, options["revision"], options["device"]) == (name, facts.revision, "cpu")
    assert options.get("trust_remote_code", False) is facts.trust_remote_code
    assert encoder.model.max_seq_length == facts.max_tokens
    assert encoder.mteb_model_meta.experiment_name is None
    if facts.trust_remote_code:
        (message,) = warnings_of()
        assert f"Loading {name} runs code from its repository" in message
        assert (facts.revision or "the newest, not pinned") in message
    else:
        assert not warnings_of()


def test_inputs_are_cut_at_the_limit(asked):
    encoder = load_sentence_transformer("some/model", device="cpu", max_seq_length=3)
    vectors = encoder.model.encode(["a b c d", "a b c e", "a b e d"], show_progress_bar=False)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])


def test_without_a_limit_the_models_own_holds(asked):
    assert load_sentence_transformer("some/model", device="cpu").model.max_seq_length == 512


def test_remote_code_at_a_revision_is_named_with_it(asked, warnings_of):
    load_sentence_transformer("some/model", "abc", "cpu", trust_remote_code=True)
    (message,) = warnings_of()
    assert "some/model" in message
    assert "at revision abc" in message


# Prompts


def prompts(encoder, task):
    """What the encoder puts before the queries and the documents of a task."""
    seen = []
    original = encoder.model.preprocess

    def preprocess(texts, *args, prompt=None, **kwargs):
        seen.append(prompt or "")
        return original(texts, *args, prompt=prompt, **kwargs)

    encoder.model.preprocess = preprocess
    common = {"task_metadata": mteb.get_task(task).metadata, "hf_split": "test", "hf_subset": "default"}
    for side in (PromptType.query, PromptType.document):
        texts = DataLoader(Dataset.from_dict({"text": ["a"]}))
        encoder.encode(texts, prompt_type=side, show_progress_bar=False, **common)
    return tuple(seen)


CODE = ("Find the most relevant code snippet given the following query:\n", "Candidate code snippet:\n")
EQUIVALENT = (
    "Find an equivalent code snippet given the following code snippet:\n",
    "Candidate code snippet:\n",
)
COMMENT = (
    "Find the most relevant comment given the following code snippet:\n",
    "Candidate comment:\n",
)


@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        (JINA, "CoREB-T2C", CODE),
        (JINA, "CoREB-T2C-Search-v202602", CODE),
        (JINA, "CPRet-T2C", CODE),
        (JINA, "1C-Ebench", CODE),
        (JINA, "1C-Ebench-Sample", CODE),
        (JINA, "CoREB-C2C-CrossLang", EQUIVALENT),
        (JINA, "CPRet-C2C-Sample", EQUIVALENT),
        ("jinaai/jina-code-embeddings-1.5b", "CoREB-C2T-Match", COMMENT),
        (JINA, "CPRet-P2Dup", ("", "")),
        (JINA, "CPRet-S2Full", ("", "")),
        ("PruhaNLP/USER2-1C-code", "1C-Ebench", ("search_query: ", "search_document: ")),
        ("PruhaNLP/USER2-1C-code", "CoREB-T2C", ("search_query: ", "search_document: ")),
        ("Salesforce/SFR-Embedding-Code-400M_R", "CoREB-T2C", ("", "")),
        ("coldchair16/CPRetriever-Code", "CPRet-T2C", ("", "")),
    ],
)
def test_prompts_of_a_model_on_a_task(asked, name, task, expected):
    assert prompts(mteb.get_model(name, device="cpu"), task) == expected


def test_prompts_by_task_are_for_tasks_that_there_are():
    keys = MODELS[JINA].loader_kwargs["model_prompts"]
    assert {key.rsplit("-", 1)[0] for key in keys} <= TASKS.keys()
    assert {key.rsplit("-", 1)[1] for key in keys} == {"query", "document"}


# Matryoshka


def test_a_prefix_of_the_vectors_can_be_asked_for(asked):
    encoder = mteb.get_model("PruhaNLP/USER2-1C-code", device="cpu", embed_dim=32)
    assert asked[0][1]["truncate_dim"] == 32
    assert encoder.mteb_model_meta.experiment_name is None or "32" in encoder.mteb_model_meta.experiment_name
    assert encoder.mteb_model_meta.embed_dim == 32


def test_a_prefix_of_the_vectors_must_be_one_that_was_trained():
    with pytest.raises(ValueError, match="100"):
        mteb.get_model("PruhaNLP/USER2-1C-code", device="cpu", embed_dim=100)


# BM25


def evaluated(model):
    (result,) = mteb.evaluate(
        model, mteb.get_task("1C-Ebench-Sample"), cache=None, co2_tracker=False, show_progress_bar=False
    ).task_results
    return {scores["hf_subset"]: scores["ndcg_at_10"] for scores in result.scores["test"]}


def test_the_lexical_baseline_is_evaluated_by_name():
    pytest.importorskip("bm25s")
    model = mteb.get_model("coreb-tasks/bm25-okapi")
    assert (model.mteb_model_meta.name, model.mteb_model_meta.revision) == ("coreb-tasks/bm25-okapi", "1")
    scores = evaluated(model)
    assert set(scores) == {"forum", "fastcode"}
    assert min(scores.values()) > 0.5  # a small corpus whose questions share words with their code


def test_the_lexical_baseline_without_bm25s_says_how_to_get_it(monkeypatch):
    def version(name):
        if name == "bm25s":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    found = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"bm25s(.|\n)*pip install"):
        evaluated(mteb.get_model("coreb-tasks/bm25-okapi"))
