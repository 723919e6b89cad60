"""Each distinct text is encoded once, each distinct pair is scored once; and nothing is shared that differs."""

import gc
from functools import cache
from itertools import chain

import mteb
import numpy as np
import pytest
import torch
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mteb.models import CrossEncoderWrapper, SearchEncoderWrapper, SentenceTransformerEncoderWrapper
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.model_meta import ModelMeta
from mteb.types import PromptType
from sentence_transformers import SentenceTransformer
from tokenizers.normalizers import Lowercase
from torch.utils.data import DataLoader

from coreb_tasks.data import load, load_subsets
from coreb_tasks.facts import TASKS
from coreb_tasks.wrappers import encode_once as module
from coreb_tasks.wrappers.encode_once import STORE, Store, digest, encode_once
from coreb_tasks.wrappers.encoding import ProtocolEncoder
from coreb_tasks.wrappers.yes_no import YesNoReranker

SAMPLES = ["CoREB-T2C-Sample", "CoREB-C2C-Sample", "CoREB-C2T-Sample"]


@pytest.fixture(scope="module")
def folder(save_model, tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return cache(lambda kind="encoder": save_model(root / kind, kind))


class Counted:
    """A model of torch with the number of rows that went through it; ``kind`` wraps it for mteb."""

    def __init__(self, inner, model):
        self.rows = 0
        self.inner, self.model = inner, model
        inner.register_forward_pre_hook(self.count, with_kwargs=True)

    def count(self, module, args, kwargs):
        features = args[0] if args else kwargs
        self.rows += len(features["input_ids"])

    def run(self, *names, **options):
        """Scores by task; ``rows`` counts from here."""
        self.rows = 0
        options = {"cache": None, "co2_tracker": False, "show_progress_bar": False, **options}
        results = mteb.evaluate(self.model, mteb.get_tasks(tasks=list(names)), **options).task_results
        return {result.task_name: result.scores["test"] for result in results}


@pytest.fixture
def encoder(folder):
    def encoder(prompts=None, **options):
        given = {} if prompts is None else {"prompts": prompts}
        model = SentenceTransformerEncoderWrapper(str(folder()), device="cpu", **given, **options)
        return Counted(model.model, model)

    return encoder


def texts(names, side):
    """Distinct texts of a side over tasks."""
    data = chain.from_iterable(load_subsets(TASKS[name], TASKS[name].subsets).values() for name in names)
    return {text for one in data for text in getattr(one, side).values()}


def distinct(names):
    return len(texts(names, "queries")) + len(texts(names, "corpus"))


# Counts


def test_tasks_encode_each_distinct_text_once_a_side(encoder):
    model = encoder()
    model.run(*SAMPLES, *(name.replace("-Sample", "-Reranking-Sample") for name in SAMPLES))
    assert model.rows == distinct(SAMPLES)
    model.run(*SAMPLES)
    assert model.rows == 0


@pytest.mark.real_data
def test_all_of_coreb_encodes_each_distinct_text_once_a_side(encoder, real_hub, monkeypatch):
    monkeypatch.setenv("COREB_TASKS_DATA", str(real_hub))
    names = [name for name, task in TASKS.items() if task.path == "hq-bench/coreb" and not task.reranks]
    assert len(names) == 22
    model = encoder()
    model.run(*names)
    assert model.rows == distinct(names)


@pytest.mark.filterwarnings("ignore:The fill_missing:DeprecationWarning", "ignore::FutureWarning")
def test_a_model_of_sentence_transformers_shares_however_it_is_handed_over(encoder, folder):
    inner = SentenceTransformer(str(folder()), device="cpu")
    model = Counted(inner, inner)
    model.run(SAMPLES[0])
    assert model.rows == distinct(SAMPLES[:1])
    model.run(SAMPLES[0])
    assert model.rows == 0


def test_it_can_be_switched_off(encoder, monkeypatch):
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", "0")
    model = encoder()
    model.run(SAMPLES[1])
    data = load(TASKS[SAMPLES[1]])
    assert model.rows == len(data.queries) + len(data.corpus)


def test_scores_are_those_of_a_run_without_it(encoder, monkeypatch):
    model = encoder()
    with_it = model.run(*SAMPLES)
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", "0")
    without = model.run(*SAMPLES)
    for name in SAMPLES:
        assert with_it[name][0].keys() == without[name][0].keys()
        for key in ("ndcg_at_10", "recall_at_100", "mrr_at_10", "hard_negative_intrusion_n"):
            assert with_it[name][0][key] == pytest.approx(without[name][0][key], abs=1e-5), key


# What makes a difference


def layer(inner):
    return inner[0].auto_model.encoder.layer[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda inner: setattr(inner, "max_seq_length", 7),
        lambda inner: setattr(inner, "truncate_dim", 3),
        lambda inner: inner.half().float(),
        lambda inner: inner.set_pooling_include_prompt(include_prompt=False),
        lambda inner: setattr(inner.tokenizer, "truncation_side", "left"),
        lambda inner: [torch.nn.init.uniform_(weight) for weight in inner.parameters()],
        lambda inner: [weight.data.mul_(1.5) for weight in inner.parameters()],
        lambda inner: next(inner.parameters()).data.__setitem__((0, 0), 7.0),
        lambda inner: next(inner.parameters()).data[101:124].zero_(),
        lambda inner: setattr(inner.tokenizer.backend_tokenizer, "normalizer", Lowercase()),
        lambda inner: inner[0].register_forward_hook(lambda *_: None),
        lambda inner: setattr(inner[1], "forward", inner[1].forward),
        lambda inner: setattr(layer(inner).attention.self, "scaling", 0.1),
        lambda inner: setattr(layer(inner).output.LayerNorm, "eps", 0.1),
        lambda inner: setattr(inner[0].auto_model.config, "is_decoder", True),
        lambda inner: inner[0].auto_model.embeddings.position_ids.copy_(torch.arange(128).flip(0)),
    ],
    ids=[
        *("length", "dimension", "precision", "pooling", "side", "weights", "data of weights", "first weight"),
        *("some weights", "normalizer", "hook", "method", "scaling", "epsilon", "configuration", "buffer"),
    ],
)
def test_a_changed_model_encodes_anew(encoder, change):
    model = encoder()
    model.run(SAMPLES[1])
    with torch.no_grad():
        change(model.inner)
    model.run(SAMPLES[1])
    assert model.rows == distinct(SAMPLES[1:2])


def test_training_in_place_is_seen(encoder):
    model = encoder()
    model.run(SAMPLES[1])
    optimizer = torch.optim.SGD(model.inner.parameters(), lr=1e-12)
    features = model.inner.preprocess(["text"])
    model.inner(features)["sentence_embedding"].sum().backward()
    optimizer.step()
    model.run(SAMPLES[1])
    assert model.rows == distinct(SAMPLES[1:2])


@pytest.mark.filterwarnings(
    "ignore:Model prompts specified:UserWarning", "ignore:SentenceTransformers that use prompts"
)
def test_texts_are_shared_where_the_prompt_that_is_applied_is_the_same(encoder):
    """Of C2C and C2T the queries are code, some of it the same; prompts are by task."""
    same = {f"{SAMPLES[1]}-query": "q: ", f"{SAMPLES[2]}-query": "q: "}
    other = {f"{SAMPLES[1]}-query": "q: ", f"{SAMPLES[2]}-query": "r: "}
    queries = [texts([name], "queries") for name in SAMPLES[1:]]
    assert queries[0] & queries[1]
    documents = len(texts(SAMPLES[1:], "corpus"))
    for prompts, expected in ((same, len(queries[0] | queries[1])), (other, len(queries[0]) + len(queries[1]))):
        model = encoder(model_prompts=prompts)
        scores = model.run(*SAMPLES[1:])
        assert model.rows == expected + documents
        assert scores[SAMPLES[2]][0]["query_prompt"] == prompts[f"{SAMPLES[2]}-query"]


def test_the_prompt_is_recorded_where_nothing_is_left_to_encode(encoder):
    model = encoder(prompts={"query": "q: ", "document": "d: "})
    for _ in range(2):
        scores = model.run(SAMPLES[1])[SAMPLES[1]][0]
        assert (scores["query_prompt"], scores["document_prompt"]) == ("q: ", "d: ")
    assert model.rows == 0


def test_options_of_the_call_make_a_difference_but_for_those_that_change_no_vector(encoder):
    model = encoder()
    model.run(SAMPLES[1])
    model.run(SAMPLES[1], encode_kwargs={"batch_size": 3})
    assert model.rows == 0
    model.run(SAMPLES[1], encode_kwargs={"normalize_embeddings": True})
    assert model.rows == distinct(SAMPLES[1:2])


@pytest.mark.filterwarnings("ignore:Prompt type 'document' not found:UserWarning")
def test_instructions_are_prompts(folder):
    options = {
        "instruction_template": "Instruct: {instruction}\n",
        "device": "cpu",
        "apply_instruction_to_passages": False,
    }
    wrapper = InstructSentenceTransformerModel(str(folder()), None, **options)
    wrapper.mteb_model_meta = ModelMeta.create_empty({"name": "stub/instruct", "revision": "1"})
    model = Counted(wrapper.model, wrapper)
    model.run(*SAMPLES)
    # Each task has its own instruction, so that queries share nothing.
    assert model.rows == sum(len(texts([name], "queries")) for name in SAMPLES) + len(texts(SAMPLES, "corpus"))


class Unknown:
    """An encoder of a user, with the texts that it was given."""

    mteb_model_meta = ModelMeta.create_empty({"name": "stub/unknown", "revision": "1"})

    def __init__(self):
        self.seen = []

    def encode(self, inputs, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        self.seen += texts
        return np.array([[len(text), text.count("e"), 1.0] for text in texts])

    def similarity(self, a, b):
        return torch.as_tensor(a) @ torch.as_tensor(b).T

    similarity_pairwise = similarity


def test_a_model_of_which_nothing_is_known_shares_nothing():
    model = Unknown()
    data = load(TASKS[SAMPLES[1]])
    for _ in range(2):
        model.seen.clear()
        mteb.evaluate(model, mteb.get_task(SAMPLES[1]), cache=None, co2_tracker=False, show_progress_bar=False)
        assert sorted(model.seen) == sorted([*data.queries.values(), *data.corpus.values()])


def test_a_list_of_vectors_is_taken_row_by_row(encoder):
    model = encoder()
    model.run(SAMPLES[1], encode_kwargs={"convert_to_numpy": False})
    assert model.rows == distinct(SAMPLES[1:2])


def test_a_precision_with_ranges_of_its_own_is_left_alone(encoder):
    model = encoder()
    common = {"task_metadata": mteb.get_task(SAMPLES[1]).metadata, "hf_split": "test", "hf_subset": "default"}
    texts = [f"text {number}" for number in range(150)]
    inputs = DataLoader(Dataset.from_dict({"id": texts, "text": texts}), batch_size=64)
    for _ in range(2):
        model.rows = 0
        ProtocolEncoder(model.model).encode(inputs, prompt_type=PromptType.query, precision="int8", **common)
        assert model.rows == 150


# The unoptimised path


@pytest.mark.parametrize("name", [*SAMPLES, "CPRet-T2C-Sample", "1C-Ebench-Sample", "CoREB-C2C-Reranking-Sample"])
def test_search_and_scores_are_those_of_mtebs_own_search_in_every_key(encoder, name):
    model = encoder()
    lean = model.run(name)[name]
    model.model = SearchEncoderWrapper(model.model)
    for own, mtebs in zip(lean, model.run(name)[name], strict=True):
        assert_same(own, mtebs)


def assert_same(scores, others):
    """Equal in every key, NaN too."""
    np.testing.assert_equal(scores, others)


# The store


def rows(*names):
    return {digest(name): np.zeros(1000, dtype=np.float32) for name in names}


class Owner:
    pass


def test_a_limit_that_is_lowered_lets_go(monkeypatch):
    store, owner = Store(), Owner()
    space = store.space(owner, "space")
    store.put(space, rows("a", "b"))
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", "0")
    assert store.get(space) == {}
    assert store._total == 0


def test_the_store_is_bounded_and_lets_go_of_what_was_used_longest_ago(monkeypatch):
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", str(9000 / 2**20))
    store, owner = Store(), Owner()
    old, new = store.space(owner, "old"), store.space(owner, "new")
    store.put(old, rows("a"))
    store.put(new, rows("b"))
    assert (len(store.get(old)), len(store.get(new))) == (1, 1)
    store.put(store.space(owner, "third"), rows("c"))
    assert (len(store.get(old)), len(store.get(new))) == (0, 1)
    store.put(new, rows("d", "e", "f"))
    assert list(store.get(new)) == [digest("b"), digest("d")]


def test_what_a_model_computed_goes_with_it():
    store, owner = Store(), Owner()
    space = store.space(owner, "space")
    store.put(space, rows("a"))
    del owner
    gc.collect()
    assert store.get(space) == {}
    assert store._total == 0


def test_an_owner_that_cannot_be_referred_to_weakly_has_no_space():
    assert Store().space((1, 2), "space") is None


def test_a_limit_that_is_no_number_is_an_error(monkeypatch):
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", "2 GB")
    with pytest.raises(ValueError, match="COREB_TASKS_CACHE_MB is '2 GB', expected a number of megabytes"):
        _ = STORE.limit


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1), min_size=1, max_size=4),
    st.sampled_from([2048, 0.002, 0]),
    st.booleans(),
)
def test_any_sequence_of_calls_gives_what_encoding_gives(monkeypatch, calls, megabytes, as_tensor):
    monkeypatch.setenv("COREB_TASKS_CACHE_MB", str(megabytes))
    monkeypatch.setattr(module, "STORE", Store())
    owner = Owner()

    def encode(inputs):
        vectors = np.array([[ord(text), 1.0] for batch in inputs for text in batch["text"]], dtype=np.float32)
        return torch.tensor(vectors) if as_tensor else vectors

    for call in calls:
        inputs = DataLoader(Dataset.from_dict({"text": call}), batch_size=2)
        vectors = encode_once(encode, inputs, list(map(digest, call)), module.STORE.space(owner, "space"))
        assert isinstance(vectors, torch.Tensor if as_tensor else np.ndarray)
        assert vectors.tolist() == [[ord(text), 1.0] for text in call]


# Pairs


def test_a_cross_encoder_scores_each_distinct_pair_once(folder):
    wrapper = CrossEncoderWrapper(str(folder("cross-encoder")), device="cpu")
    model = Counted(wrapper.model, wrapper)
    name = "CoREB-T2C-Reranking-Sample"
    first = model.run(name)[name][0]
    data = load(TASKS[name])
    assert first["pool_depth"] == 128
    assert model.rows < 128 * len(data.queries)
    assert model.rows <= len(texts([name], "queries")) * len(texts([name], "corpus"))
    assert_same(model.run(name)[name][0], first)
    assert model.rows == 0
    changes = (
        lambda: next(wrapper.model.parameters()).data.add_(1.0),
        lambda: setattr(wrapper.model, "activation_fn", torch.nn.Tanh()),
        lambda: wrapper.model.prompts.update(a="b"),
        lambda: setattr(wrapper, "query_prefix", "q: "),
    )
    for change in changes:
        change()
        model.run(name)
        assert model.rows > 0


def test_pairs_share_where_the_instruction_is_the_same_and_measures_count_every_pair(folder):
    reranker = YesNoReranker(str(folder("yes-no")), device="cpu", max_length=150)
    model = Counted(reranker.model, reranker)
    task = mteb.get_task("CPRet-P2Dup-Reranking-Sample")
    shares = set()
    for instruction, runs in ((None, True), (None, False), ("Other.", True)):
        reranker.instruction = instruction
        model.rows = 0
        result = mteb.evaluate(reranker, task, cache=None, co2_tracker=False, show_progress_bar=False)
        shares.add(result.task_results[0].scores["test"][0]["truncated_pairs"])
        assert (model.rows > 0) == runs
    assert shares == {1.0}
