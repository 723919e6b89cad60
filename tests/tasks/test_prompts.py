"""Which strings reach a model, seen at its tokenizer, and what a result says of them. Tiny models, random weights."""

import json
import logging
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import mteb
import pytest
from mteb.models import CachedEmbeddingWrapper, CompressionWrapper, ModelMeta
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.model_implementations.bm25 import BM25Tokenizer
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from mteb.types import OutputDType
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from coreb_tasks.data import load
from coreb_tasks.facts import TASKS

# mteb says so to every instruct model of a task that instructs queries only.
pytestmark = pytest.mark.filterwarnings("ignore:Prompt type 'document' not found in task metadata")

# Indentation, white space at both ends, both forms of й. In C2C the query is the text of its own document.
DOCUMENTS = {"a": "    return а\n\t", "b": "\n\nкод й\u2028", "c": "код й\x0c ", "d": " \tdef d():\n    pass  "}
QUERY = DOCUMENTS["d"]
C2C = "Given a code snippet, retrieve code that is semantically equivalent or solves the same task."
MTEBS_OWN = "Retrieve text based on user query."  # what mteb instructs where a task says nothing
TEMPLATE = "Instruct: {instruction}\nQuery: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sentence-transformers model of two layers with random weights, as saved to disk."""
    root = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "def", "return", "pass", "Instruct", "Query", "q", "d", "код"]
    words_only = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    words_only.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words_only, model_max_length=64, **special)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    tokenizer.save_pretrained(root / "bert")
    BertModel(config).save_pretrained(root / "bert")
    model = SentenceTransformer(modules=[Transformer(str(root / "bert")), Pooling(16)], device="cpu")
    model.save(str(root / "plain"))
    return root / "plain"


def named(model, use_instructions):
    meta = {"name": "stub/model", "revision": "1", "use_instructions": use_instructions}
    model.mteb_model_meta = ModelMeta.create_empty(meta)
    return model


@pytest.fixture
def sentence_transformer(folder):
    """A plain model; with ``prompts`` one that has them in its configuration."""

    def sentence_transformer(prompts=None, use_instructions=False):
        config = folder / "config_sentence_transformers.json"
        saved = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps({**saved, "prompts": prompts or {}}), encoding="utf-8")
        return named(SentenceTransformerEncoderWrapper(str(folder), device="cpu"), use_instructions)

    return sentence_transformer


@pytest.fixture
def instruct(sentence_transformer, folder):
    """An instruct model; ``passages`` applies the instruction to documents too."""
    sentence_transformer()

    def instruct(passages=False, use_instructions=True, **options):
        model = InstructSentenceTransformerModel(
            str(folder),
            "1",
            device="cpu",
            instruction_template=TEMPLATE,
            apply_instruction_to_passages=passages,
            **options,
        )
        return named(model, use_instructions)

    return instruct


@pytest.fixture
def seen(monkeypatch):
    """The strings that reach the tokenizer, in the order in which they do; cleared by the test."""
    texts = []
    tokenize = PreTrainedTokenizerFast.__call__
    fit, transform = BM25Tokenizer.fit_transform, BM25Tokenizer.transform

    def spy(self, text, *args, **kwargs):
        texts.extend([text] if isinstance(text, str) else text)
        return tokenize(self, text, *args, **kwargs)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", spy)
    monkeypatch.setattr(BM25Tokenizer, "fit_transform", lambda self, found: texts.extend(found) or fit(self, found))
    monkeypatch.setattr(BM25Tokenizer, "transform", lambda self, found: texts.extend(found) or transform(self, found))
    return texts


@pytest.fixture
def c2c(hub):
    """CoREB-C2C on tiny data: DOCUMENTS and one query."""
    facts = TASKS["CoREB-C2C"]
    hub.tables["code_corpus"] = [{"code_id": name, "code": text} for name, text in DOCUMENTS.items()]
    hub.tables["code2code_queries"][0]["query"] = QUERY
    hub.write()
    hub.pin("C2C")
    shutil.copytree(hub.folder, hub.root / facts.path)
    card = hub.root / facts.path / "README.md"
    card.write_text(card.read_text(encoding="utf-8").replace("split: r1", f"split: {facts.release}"), encoding="utf-8")
    return mteb.get_task("CoREB-C2C")


def scores_of(model, task, **kwargs):
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False, **kwargs)
    return result.task_results[0].scores["test"][0]


def recorded(scores):
    return {key: value for key, value in scores.items() if key in ("query_prompt", "document_prompt")}


def with_prompts(query_prompt, queries, document_prompt, documents):
    """What a tokenizer is to see: sentence-transformers asks it for the length of a prompt, too."""
    prompts = {prompt for prompt in (query_prompt, document_prompt) if prompt}
    return prompts | {query_prompt + text for text in queries} | {document_prompt + text for text in documents}


CASES = {
    # model, its options, prompt of queries and of documents on CoREB's C2C and on CPRet (which has none of its own)
    "plain": ("sentence_transformer", {}, ("", ""), ("", "")),
    "prompts": (
        "sentence_transformer",
        {"prompts": {"query": "q: ", "document": "d: "}},
        ("q: ", "d: "),
        ("q: ", "d: "),
    ),
    "instruct": ("instruct", {}, (TEMPLATE.format(instruction=C2C), ""), (TEMPLATE.format(instruction=MTEBS_OWN), "")),
    "instruct-passages": (
        "instruct",
        {"passages": True},
        (TEMPLATE.format(instruction=C2C), ""),  # CoREB instructs queries only
        (TEMPLATE.format(instruction=MTEBS_OWN),) * 2,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    """A model and its pairs of prompts: on CoREB's C2C, and on a task without a prompt of its own."""
    kind, options, on_coreb, without_prompt = CASES[request.param]
    return request.getfixturevalue(kind)(**options), on_coreb, without_prompt


def test_the_prompts_of_a_result_are_those_that_reached_the_model(case, seen, c2c):
    model, (query_prompt, document_prompt), _ = case
    scores = scores_of(model, c2c)
    assert recorded(scores) == {"query_prompt": query_prompt, "document_prompt": document_prompt}
    assert {*seen} == with_prompts(query_prompt, [QUERY], document_prompt, DOCUMENTS.values())


def test_a_task_without_a_prompt_leaves_a_model_its_own(case, seen):
    model, _, (query_prompt, document_prompt) = case
    data = load(TASKS["CPRet-C2C-Sample"])
    scores = scores_of(model, mteb.get_task("CPRet-C2C-Sample"))
    assert recorded(scores) == {"query_prompt": query_prompt, "document_prompt": document_prompt}
    assert {*seen} == with_prompts(query_prompt, data.queries.values(), document_prompt, data.corpus.values())


@pytest.mark.parametrize("name", ["CoREB-C2C-Sample", "CPRet-T2C-Sample"])
def test_bm25_gets_the_texts_bare_and_its_result_claims_no_prompt(name, seen):
    data = load(TASKS[name])
    assert recorded(scores_of(mteb.get_model("mteb/baseline-bm25s"), mteb.get_task(name))) == {}
    # mteb joins title and text of a document for BM25; there is no title.
    assert seen == [*(f"\n{text}" for text in data.corpus.values()), *data.queries.values()]


def test_a_model_that_does_not_show_its_prompts_has_none_in_the_result(stubs, c2c):
    encoder = stubs.encoder()
    assert recorded(scores_of(encoder, c2c)) == {}
    assert encoder.seen == {"query": [QUERY], "document": [*DOCUMENTS.values()]}


WRAPPERS = {
    "cached": lambda model, folder: CachedEmbeddingWrapper(model, folder),
    "compressed": lambda model, _: CompressionWrapper(model, OutputDType.INT8),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a cache that is new, of few rows to compress
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_model_in_a_wrapper_of_mtebs_has_its_prompts_in_the_result(sentence_transformer, tmp_path, wrapper):
    model = sentence_transformer({"query": "q: ", "document": "d: "})
    scores = scores_of(WRAPPERS[wrapper](model, tmp_path / "vectors"), mteb.get_task("CPRet-S2Full-Sample"))
    assert recorded(scores) == {"query_prompt": "q: ", "document_prompt": "d: "}


def test_every_batch_gets_the_prompts(instruct, seen):
    data = load(TASKS["CoREB-C2C-Sample"])
    scores = scores_of(instruct(), mteb.get_task("CoREB-C2C-Sample"), encode_kwargs={"batch_size": 50})
    prompt = scores["query_prompt"]
    assert prompt == TEMPLATE.format(instruction=C2C)
    assert {*seen} == with_prompts(prompt, data.queries.values(), "", data.corpus.values())
    assert scores["document_prompt"] == ""


@pytest.mark.parametrize(
    ("prompts", "query_prompt", "document_prompt"),
    [
        ({"CoREB-C2C-query": "Q: ", "query": "q: ", "document": ""}, "Q: ", ""),
        ({"CoREB-C2C-document": "D: ", "query": "q: ", "document": "d: "}, "q: ", "D: "),
        ({"CoREB-C2C": "B: ", "query": "q: ", "document": "d: "}, "B: ", "B: "),
        ({"Retrieval-query": "R: ", "query": "q: ", "document": ""}, "R: ", ""),
        ({"CoREB-C2C-Sample-query": "of another", "query": "q: ", "document": ""}, "q: ", ""),
        ({"CoREB-Overall-query": "of another", "query": "q: ", "document": ""}, "q: ", ""),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_prompts_by_the_name_of_a_task_reach_the_model(
    sentence_transformer, seen, c2c, prompts, query_prompt, document_prompt
):
    scores = scores_of(sentence_transformer(prompts), c2c)
    assert recorded(scores) == {"query_prompt": query_prompt, "document_prompt": document_prompt}
    assert {*seen} == with_prompts(query_prompt, [QUERY], document_prompt, DOCUMENTS.values())


def test_a_prompt_by_a_name_that_nobody_knows_is_dropped_with_a_warning(sentence_transformer):
    with pytest.warns(UserWarning, match="CoREB-C2D") as caught:
        model = sentence_transformer({"CoREB-C2D-query": "Q: ", "query": "q: ", "document": ""})
    assert caught
    assert model.model_prompts == {"query": "q: ", "document": ""}


# The warning


@pytest.fixture
def warned(caplog):
    """What the package warns of while a model runs a task."""

    def warned(model, task):
        with caplog.at_level(logging.WARNING, logger="coreb_tasks"):
            scores_of(model, task)
        return [record.getMessage() for record in caplog.records if record.name.startswith("coreb_tasks")]

    return warned


PROMPTS = {"query": "q: ", "document": "d: "}


@pytest.mark.parametrize(
    ("kind", "options", "prompt"),
    [
        ("sentence_transformer", {"use_instructions": True}, ""),
        ("sentence_transformer", {"use_instructions": True, "prompts": PROMPTS}, "q: "),
        ("instruct", {"prompts_dict": {"Retrieval": "Search."}}, TEMPLATE.format(instruction="Search.")),
    ],
    ids=["plain", "prompts", "own instruction"],
)
def test_an_instruct_model_that_does_not_get_the_tasks_instruction_is_warned_of(
    request, warned, c2c, kind, options, prompt
):
    (message,) = warned(request.getfixturevalue(kind)(**options), c2c)
    for said in ("stub/model", repr(prompt), "CoREB-C2C", C2C):
        assert said in message


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("instruct", {}),
        ("instruct", {"passages": True}),
        ("instruct", {"use_instructions": False, "prompts_dict": {"Retrieval": "Search."}}),
        ("sentence_transformer", {}),
        ("sentence_transformer", {"prompts": PROMPTS}),
        ("sentence_transformer", {"prompts": PROMPTS, "use_instructions": None}),
    ],
    ids=str,
)
def test_nothing_is_warned_of_where_the_instruction_is_used_or_none_is_taken(request, warned, c2c, kind, options):
    assert warned(request.getfixturevalue(kind)(**options), c2c) == []


def test_nothing_is_warned_of_where_the_task_has_no_instruction(sentence_transformer, warned):
    model = sentence_transformer(PROMPTS, use_instructions=True)
    assert warned(model, mteb.get_task("CPRet-S2Full-Sample")) == []


def test_nothing_is_warned_of_a_model_that_does_not_show_its_prompts(stubs, warned, c2c):
    assert warned(named(stubs.encoder(), use_instructions=True), c2c) == []


# The model stays as it was


def test_a_model_is_left_as_it_was(sentence_transformer, c2c):
    model = sentence_transformer(PROMPTS)
    before = {*vars(model.model)}
    scores_of(model, c2c)
    assert {*vars(model.model)} == before


def test_a_preprocess_of_the_users_own_stays(sentence_transformer, c2c):
    model, calls = sentence_transformer(), []
    preprocess = model.model.preprocess
    model.model.preprocess = lambda *args, **kwargs: calls.append(args) or preprocess(*args, **kwargs)
    scores_of(model, c2c)
    assert len(calls) == 2  # queries, documents


def test_a_model_can_be_sent_to_other_processes_while_it_encodes(sentence_transformer, c2c, monkeypatch):
    """As sentence-transformers does with ``encode_kwargs={"device": ["cuda:0", "cuda:1"]}``."""
    encode = SentenceTransformer.encode
    monkeypatch.setattr(
        SentenceTransformer, "encode", lambda self, *a, **k: pickle.dumps(self) and encode(self, *a, **k)
    )
    scores_of(sentence_transformer(), c2c)


def test_models_in_several_threads_each_have_their_prompts_in_their_result(sentence_transformer):
    models = [sentence_transformer({"query": f"q{number}: ", "document": f"d{number}: "}) for number in range(3)]
    task = "CPRet-S2Full-Sample"
    with ThreadPoolExecutor(len(models)) as pool:
        results = list(pool.map(lambda model: recorded(scores_of(model, mteb.get_task(task))), models))
    assert results == [{"query_prompt": f"q{n}: ", "document_prompt": f"d{n}: "} for n in range(3)]
    assert not hasattr(SentenceTransformer.preprocess.__wrapped__, "__wrapped__"), "watched once"
