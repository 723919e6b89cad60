"""A pair of prompts of the user's own: which strings reach a model, and what results say of them."""

import json
import os
from copy import deepcopy

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.types import PromptType
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from sentence_transformers.sparse_encoder import SparseEncoder
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast

from coreb_tasks.tasks.table import task_class
from coreb_tasks.wrappers.prompts import PromptedEncoder, PromptError, prompted, with_prompts

# White space at the ends, a line break, both forms of й, and what mteb cannot have in a folder's name.
QUERY, DOCUMENT = " Instruct: <й/й>\nQuery:\t", "d | d:  "
OWN = {"query": "own q: ", "document": "own d: ", "Retrieval": "own type: ", "Tiny-T2C-query": "own task: "}
TEXTS = {"query": {"find a", "find c"}, "document": {f"code {name}" for name in "abcd"}}


@pytest.fixture
def task(hub):
    return task_class(hub.task("T2C"))()


@pytest.fixture(scope="module")
def folder(save_model, tmp_path_factory):
    """A model with prompts of its own, one of which is its default."""
    folder = save_model(tmp_path_factory.mktemp("model") / "own", prompts=OWN)
    config = folder / "config_sentence_transformers.json"
    saved = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**saved, "default_prompt_name": "query"}), encoding="utf-8")
    return str(folder)


class OwnEncode(SentenceTransformerEncoderWrapper):
    """As loaders of models with adapters: a prompt by a name of its own, and vectors that it changes."""

    def encode(self, inputs, *, prompt_type, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        vectors = self.model.encode(texts, prompt_name="Retrieval", show_progress_bar=False)
        return vectors[:, :2]


class Plain:
    """An encoder that is none of sentence-transformers."""

    def __init__(self):
        self.seen = {"query": [], "document": []}

    def encode(self, inputs, *, prompt_type, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        self.seen[prompt_type.value] += texts
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    def similarity(self, embeddings1, embeddings2):
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1, embeddings2):
        return (embeddings1 * embeddings2).sum(axis=1)


def of_sentence_transformers(folder):
    return SentenceTransformerEncoderWrapper(folder, device="cpu")


def of_instructions(folder):
    return InstructSentenceTransformerModel(
        folder, "1", device="cpu", instruction_template="I: {instruction}\n", apply_instruction_to_passages=False
    )


def with_own_encode(folder):
    return OwnEncode(folder, device="cpu")


def sparse(folder):
    modules = [Transformer(folder, transformer_task="fill-mask"), SpladePooling()]
    return mteb.models.SparseEncoderWrapper(SparseEncoder(modules=modules, device="cpu", prompts={"query": "own q: "}))


def named(model):
    model.mteb_model_meta = ModelMeta.create_empty({"name": "stub/model", "revision": "1"})
    return model


@pytest.fixture
def seen(monkeypatch):
    """The strings that reach the tokenizer."""
    texts = []
    tokenize = PreTrainedTokenizerFast.__call__

    def spy(self, text, *args, **kwargs):
        texts.extend([text] if isinstance(text, str) else text)
        return tokenize(self, text, *args, **kwargs)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", spy)
    return texts


def scores_of(model, task):
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return result.task_results[0].scores["test"][0]


def recorded(scores):
    return {key: value for key, value in scores.items() if key in ("query_prompt", "document_prompt")}


# Texts


@pytest.mark.filterwarnings("ignore:Some prompts are not in the expected format", "ignore:Task name")
@pytest.mark.parametrize("load", [of_sentence_transformers, of_instructions, with_own_encode])
@pytest.mark.parametrize(("query", "document"), [(QUERY, DOCUMENT), (QUERY, ""), ("", DOCUMENT), ("", "")])
def test_the_prompts_take_the_place_of_a_sentence_transformers_own(folder, task, seen, load, query, document):
    model = named(with_prompts(load(folder), query, document))
    scores = scores_of(model, task)
    texts = {query + text for text in TEXTS["query"]} | {document + text for text in TEXTS["document"]}
    # sentence-transformers asks the tokenizer for the length of a prompt, too
    assert {*seen} - {query, document} == texts
    assert recorded(scores) == {"query_prompt": query, "document_prompt": document}


@pytest.mark.filterwarnings("ignore:Some prompts are not in the expected format", "ignore:Task name")
def test_what_a_loader_does_beside_prompts_it_goes_on_doing(folder, task):
    model = named(with_prompts(with_own_encode(folder), QUERY, DOCUMENT))
    inputs = mteb.get_task("CoREB-T2C").metadata
    assert isinstance(model, PromptedEncoder)
    vectors = encode(model, ["x"], PromptType.query, inputs)
    whole = SentenceTransformer(folder, device="cpu").encode([QUERY + "x"], prompt="")
    assert np.allclose(vectors, whole[:, :2], atol=1e-6)


def encode(model, texts, prompt_type, metadata):
    inputs = DataLoader(Dataset.from_dict({"id": texts, "text": texts}))
    return model.encode(inputs, prompt_type=prompt_type, task_metadata=metadata, hf_split="test", hf_subset="default")


@pytest.mark.parametrize(("query", "document"), [(QUERY, DOCUMENT), (QUERY, ""), ("", "")])
def test_any_other_encoder_gets_them_as_part_of_its_texts(task, query, document):
    plain = Plain()
    scores = scores_of(named(with_prompts(plain, query, document)), task)
    assert {*plain.seen["query"]} == {query + text for text in TEXTS["query"]}
    assert {*plain.seen["document"]} == {document + text for text in TEXTS["document"]}
    assert recorded(scores) == {"query_prompt": query, "document_prompt": document}


def test_documents_keep_their_white_space(hub):
    hub.tables["code_corpus"][0]["code"] = "    indented\n"
    hub.write()
    hub.pin()
    plain = Plain()
    scores_of(named(with_prompts(plain, "", "d: ")), task_class(hub.task("T2C"))())
    assert "d:     indented\n" in plain.seen["document"]


def test_an_encoder_can_be_copied_and_is_otherwise_itself():
    model = named(with_prompts(Plain(), "q: ", "d: "))
    copied = deepcopy(model)
    assert copied.mteb_model_meta.name == copied.model.mteb_model_meta.name == "stub/model"
    assert copied.seen == {"query": [], "document": []}
    with pytest.raises(AttributeError, match="nothing"):
        copied.nothing  # noqa: B018


@pytest.mark.skipif(not hasattr(mteb.models, "SparseEncoderWrapper"), reason="this mteb has no sparse models")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor")
def test_a_sparse_model_is_told_the_prompts(save_model, tmp_path, task, seen):
    folder = save_model(tmp_path / "sparse", "masked")
    scores = scores_of(named(with_prompts(sparse(str(folder)), "q: ", "")), task)
    assert {*seen} - {"q: ", ""} == {"q: " + text for text in TEXTS["query"]} | TEXTS["document"]
    assert recorded(scores) == {"query_prompt": "q: ", "document_prompt": ""}


# Models that take none


class Search:
    def index(self):
        pass

    def search(self):
        pass


class Reranker:
    def predict(self):
        pass


@pytest.mark.parametrize(
    ("model", "says"), [(Search(), "a model with a search of its own"), (Reranker(), "a reranker"), (1, "a int")]
)
def test_what_is_no_encoder_is_refused(model, says):
    with pytest.raises(PromptError, match=f"^the model is {says}; expected an encoder"):
        with_prompts(model, "q: ", "d: ")


def test_a_reranker_is_refused_before_it_is_loaded():
    meta = ModelMeta.create_empty({"name": "a/b", "model_type": ["cross-encoder"]})
    with pytest.raises(PromptError, match=r"^a/b is a reranker, which reads query and document as one text"):
        prompted(meta, "q: ", "d: ")


# Identity


PAIRS = [
    ("q: ", "d: "),
    ("q_ ", "d: "),
    ("q: ", ""),
    ("", "q: "),
    ("q:", "d: "),
    ("q:\n", "d: "),
    ("", ""),
    ("q" * 400, ""),
    ("q" * 399 + ":", ""),
    ("й" * 150, "й"),
]


def load(meta):
    return meta.load_model(device="cpu")


def test_each_pair_has_a_folder_of_its_own(tmp_path):
    meta = ModelMeta.create_empty({"name": "a/b", "revision": "1", "loader": lambda name, **options: Plain()})
    names = [load(prompted(meta, *pair)).mteb_model_meta.experiment_name for pair in PAIRS]
    assert len({*names}) == len(PAIRS)
    for name in names:
        assert len(os.fsencode(name)) < 100
        assert name == "".join(name.split()), "a folder's name without white space"
    assert load(prompted(meta, *PAIRS[0])).mteb_model_meta.experiment_name == names[0]
    assert load(meta).mteb_model_meta.experiment_name is None


def test_the_loader_gets_its_own_options_only():
    asked = []

    def loader(name, **options):
        asked.append((name, options))
        return Plain()

    values = {"name": "a/b", "revision": "1", "loader": loader, "loader_kwargs": {"x": 1}}
    model = load(prompted(ModelMeta.create_empty(values), "q: ", "d: "))
    assert asked == [("a/b", {"revision": "1", "x": 1, "device": "cpu"})]
    assert model.added_prompts == {"query": "q: ", "document": "d: "}


def test_a_model_without_a_loader_stays_without():
    meta = prompted(ModelMeta.create_empty({"name": "a/b"}), "q: ", "d: ")
    with pytest.raises(NotImplementedError):
        load(meta)


def test_settings_that_a_model_has_stay():
    meta = ModelMeta.create_empty({"name": "a/b", "experiment_kwargs": {"dim": 3}})
    settings = prompted(meta, "q: ", "d: ").experiment_kwargs
    assert {key: settings[key] for key in ("dim", "query_prompt", "document_prompt")} == {
        "dim": 3,
        "query_prompt": "q: ",
        "document_prompt": "d: ",
    }
