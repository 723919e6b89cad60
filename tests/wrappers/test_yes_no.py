"""Yes-no rerankers: the prompt byte for byte, what is cut, and scores that depend on the pair alone."""

import logging
import math
import re
from functools import cache

import mteb
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mteb.models import CrossEncoderProtocol
from mteb.types import OutputDType

from coreb_tasks.facts.models import COREB_SYSTEM
from coreb_tasks.wrappers.yes_no import QWEN3_INSTRUCTION, QWEN3_SYSTEM, YesNoReranker

T2C, C2C, C2T, CPRET = (
    mteb.get_task(f"{name}-Sample").metadata for name in ("CoREB-T2C", "CoREB-C2C", "CoREB-C2T", "CPRet-T2C")
)
PAIRS = [
    ("sum of a list", "def f(xs):\n    return sum(xs)\n"),
    ("x", "y"),
    ("the longest path in a tree, by two searches", "func dfs(v int) int {\n\treturn 0\n}" * 5),
    ("  leading and trailing  ", "\n\tindented\n"),
    ("Проверить ИНН", "Функция ИНН() Экспорт\nКонецФункции"),
    ("", ""),
    ("binary search", "int lo = 0, hi = n; while (lo < hi) { int mid = (lo + hi) / 2; }"),
]


def written_out(query, document, instruction, system=QWEN3_SYSTEM):
    """The prompt, independently of the module's templates."""
    return (
        "<|im_start|>system\n" + system + "<|im_end|>\n"
        "<|im_start|>user\n<Instruct>: " + instruction + "\n<Query>: " + query + "\n<Document>: " + document
        + "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )  # fmt: skip


class Watched:
    """A reranker with what its model was given: ``rows`` of token ids without padding, ``inputs`` as they came."""

    def __init__(self, folder, **options):
        self.reranker = YesNoReranker(str(folder), device="cpu", **options)
        self.rows, self.inputs = [], []
        self.reranker.model.register_forward_pre_hook(self.watch, with_kwargs=True)

    def watch(self, module, args, kwargs):
        self.inputs.append(kwargs)
        rows = zip(kwargs["input_ids"], kwargs["attention_mask"].bool(), strict=True)
        self.rows += [ids[mask].tolist() for ids, mask in rows]

    def predict(self, loaders, pairs, task=T2C, **options):
        self.rows.clear()
        self.inputs.clear()
        common = {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "show_progress_bar": False}
        return self.reranker.predict(*loaders(pairs), **common, **options)

    def prompts(self):
        return {self.reranker.tokenizer.decode(row) for row in self.rows}


@pytest.fixture(scope="module")
def watched(yes_no_folder):
    return Watched(yes_no_folder)


@pytest.fixture(scope="module")
def alone(yes_no_folder):
    """Probability of yes after a text: the whole of it tokenized at once, no padding, the softmax by hand."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(yes_no_folder)
    model = AutoModelForCausalLM.from_pretrained(yes_no_folder, attn_implementation="eager").eval()

    @cache
    def alone(text):
        with torch.no_grad():
            logits = model(**tokenizer(text, add_special_tokens=False, return_tensors="pt")).logits[0, -1].tolist()
        yes, no = (logits[tokenizer.convert_tokens_to_ids(answer)] for answer in ("yes", "no"))
        return 1 / (1 + math.exp(no - yes))

    return alone


# The prompt


@pytest.mark.parametrize(
    ("task", "instruction"),
    [
        (T2C, "Given a natural language programming task, retrieve code that correctly solves or implements the task."),
        (C2C, "Given a code snippet, retrieve code that is semantically equivalent or solves the same task."),
        (
            C2T,
            "Given a code snippet, retrieve the natural language description or problem statement that best matches "
            "the code.",
        ),
        (CPRET, "Given a web search query, retrieve relevant passages that answer the query"),
        (T2C.model_copy(update={"prompt": "As a string."}), "As a string."),
        (T2C.model_copy(update={"prompt": {"document": "Not for queries."}}), QWEN3_INSTRUCTION),
    ],
    ids=["T2C", "C2C", "C2T", "a task without one", "a string", "only for documents"],
)
def test_the_prompt_is_qwen3s_with_the_tasks_instruction(watched, loaders, task, instruction):
    watched.predict(loaders, PAIRS, task)
    assert watched.prompts() == {written_out(query, document, instruction) for query, document in PAIRS}


def test_system_text_and_instruction_can_be_given(yes_no_folder, loaders):
    watched = Watched(yes_no_folder, system=COREB_SYSTEM, instruction="Always this.")
    watched.predict(loaders, PAIRS[:1], C2C)
    assert watched.prompts() == {written_out(*PAIRS[0], "Always this.", COREB_SYSTEM)}
    assert QWEN3_SYSTEM == COREB_SYSTEM + "."


# What is cut


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 120)), min_size=1, max_size=6),
    spare=st.integers(1, 150),
)
def test_only_the_end_of_the_body_is_cut(watched, loaders, monkeypatch, lengths, spare):
    reranker = watched.reranker
    monkeypatch.setattr(reranker, "room", spare)
    pairs = [("q " * query, "d1 " * document) for query, document in lengths]
    watched.predict(loaders, pairs, batch_size=4)
    whole = [reranker.tokenizer(written_out(*pair, T2C.prompt["query"]), add_special_tokens=False) for pair in pairs]
    around = len(reranker.prefix) + len(reranker.suffix)
    expected = []
    for ids in (encoded["input_ids"] for encoded in whole):
        body = ids[len(reranker.prefix) : len(ids) - len(reranker.suffix)]
        expected.append(ids[: len(reranker.prefix)] + body[:spare] + ids[len(ids) - len(reranker.suffix) :])
    assert sorted(watched.rows) == sorted(expected)
    assert max(map(len, watched.rows)) <= around + spare
    long = sum(len(encoded["input_ids"]) > around + spare for encoded in whole)
    assert reranker.measured == {"truncated_pairs": long / len(pairs)}


def test_the_whole_prompt_has_at_most_max_length_tokens(yes_no_folder, loaders):
    watched = Watched(yes_no_folder, max_length=300)
    watched.predict(loaders, [("q", "word " * 5000), ("q", "short")])
    assert max(map(len, watched.rows)) == 300
    assert watched.reranker.measured == {"truncated_pairs": 0.5}
    assert all(row[-len(watched.reranker.suffix) :] == watched.reranker.suffix for row in watched.rows)


def test_max_length_must_leave_room(yes_no_folder, watched):
    around = len(watched.reranker.prefix) + len(watched.reranker.suffix)
    with pytest.raises(ValueError, match=rf"max_length={around} has no room .* takes {around} tokens"):
        YesNoReranker(str(yes_no_folder), device="cpu", max_length=around)
    YesNoReranker(str(yes_no_folder), device="cpu", max_length=around + 1)


# Scores


def test_scores_are_those_of_each_prompt_alone(watched, loaders, alone):
    scores = watched.predict(loaders, PAIRS)
    expected = [alone(written_out(*pair, T2C.prompt["query"])) for pair in PAIRS]
    assert scores.dtype == np.float32
    assert scores.shape == (len(PAIRS),)
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=0)
    assert len({round(score, 3) for score in expected}) > 3  # scores of which none could be another's


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64])
def test_scores_depend_on_no_batch_size_and_keep_the_order(watched, loaders, alone, batch_size):
    pairs = [*PAIRS, *PAIRS[::-1], PAIRS[3]]
    scores = watched.predict(loaders, pairs, batch_size=batch_size)
    expected = [alone(written_out(*pair, T2C.prompt["query"])) for pair in pairs]
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=0)
    assert len(watched.inputs[0]["input_ids"]) == min(batch_size, len(pairs))


def test_padding_is_on_the_left_and_positions_count_from_each_rows_start(watched, loaders):
    watched.predict(loaders, PAIRS, batch_size=len(PAIRS))
    (inputs,) = watched.inputs
    masks, positions = inputs["attention_mask"].tolist(), inputs["position_ids"].tolist()
    assert any(mask[0] == 0 for mask in masks)
    for ids, mask, position in zip(inputs["input_ids"].tolist(), masks, positions, strict=True):
        pads = mask.count(0)
        assert mask == [0] * pads + [1] * (len(mask) - pads)
        assert position[pads:] == list(range(len(mask) - pads))
        assert set(ids[:pads]) <= {watched.reranker.tokenizer.pad_token_id}
    assert inputs["logits_to_keep"] == 1


def test_the_longest_pairs_come_first(watched, loaders):
    watched.predict(loaders, PAIRS, batch_size=2)
    widths = [inputs["input_ids"].shape[1] for inputs in watched.inputs]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("dtype", ["bfloat16", OutputDType.BF16, torch.bfloat16], ids=["string", "mteb's", "torch's"])
def test_half_precision_gives_finite_probabilities(yes_no_folder, loaders, dtype):
    watched = Watched(yes_no_folder, dtype=dtype)
    assert watched.reranker.model.dtype == torch.bfloat16
    scores = watched.predict(loaders, PAIRS)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert ((scores >= 0) & (scores <= 1)).all()


def test_no_pairs_have_no_scores(watched, loaders):
    assert watched.predict(loaders, []).shape == (0,)
    assert watched.reranker.measured == {"truncated_pairs": 0.0}


def test_there_must_be_a_document_for_each_query(watched, loaders):
    queries, documents = loaders(PAIRS)[0], loaders(PAIRS[1:])[1]
    with pytest.raises(ValueError, match="shorter"):
        watched.predict(lambda _: (queries, documents), PAIRS)


# Tokenizers


@pytest.mark.parametrize(
    ("lacks", "options"),
    [
        ("yes", {"answers": ["no"]}),
        ("<think>", {"markers": ["<|im_start|>", "<|im_end|>", "</think>"]}),
        ("<|im_start|>", {"markers": ["<|im_end|>", "<think>", "</think>"]}),
    ],
)
def test_a_tokenizer_without_the_tokens_of_the_recipe_is_refused(new_tokenizer, tmp_path, lacks, options):
    new_tokenizer(**options).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="its tokenizer has no single token for") as refused:
        YesNoReranker(str(tmp_path), device="cpu")
    for said in (str(tmp_path), f"for '{lacks}'; expected", "Qwen3-Reranker", "CrossEncoder"):
        assert said in str(refused.value)


def test_a_tokenizer_without_a_padding_token_pads_with_the_end(yes_no_folder, loaders):
    watched = Watched(yes_no_folder)
    expected = watched.predict(loaders, PAIRS)
    watched.reranker.tokenizer.pad_token = None
    np.testing.assert_array_equal(watched.predict(loaders, PAIRS), expected)
    padded = min(watched.inputs, key=lambda inputs: inputs["attention_mask"].sum())
    assert watched.reranker.tokenizer.eos_token_id in padded["input_ids"][:, 0]


# As a model of mteb


def test_it_is_a_cross_encoder_of_mteb_with_a_name_of_its_own(yes_no_folder):
    plain = YesNoReranker(str(yes_no_folder), "abc", "cpu")
    assert isinstance(plain, CrossEncoderProtocol)
    meta = plain.mteb_model_meta
    assert (meta.name, meta.is_cross_encoder) == (f"local/{yes_no_folder.name}", True)
    assert re.fullmatch("[0-9a-f]{40}", meta.revision)
    assert meta.experiment_name is None
    other = YesNoReranker(str(yes_no_folder), "abc", "cpu", instruction="Other.", max_length=500)
    assert other.mteb_model_meta.experiment_kwargs == {"instruction": "Other.", "max_length": "500"}


class Redirected:
    """transformers' constructors, pointed to a folder whatever the name; keeps what they were asked for."""

    def __init__(self, monkeypatch, folder):
        import transformers

        self.asked = {}
        for name in ("AutoTokenizer", "AutoModelForCausalLM"):
            original = getattr(transformers, name).from_pretrained
            monkeypatch.setattr(getattr(transformers, name), "from_pretrained", self.to(name, original, folder))

    def to(self, name, original, folder):
        def from_pretrained(model_name, *, revision, trust_remote_code, **kwargs):
            self.asked[name] = (model_name, revision, trust_remote_code, kwargs.get("dtype"))
            return original(folder, **kwargs)

        return from_pretrained


def test_corebs_reranker_is_loaded_by_name_as_the_paper_says(yes_no_folder, monkeypatch, loaders, caplog):
    redirected = Redirected(monkeypatch, yes_no_folder)
    with caplog.at_level(logging.WARNING, logger="coreb_tasks"):
        reranker = mteb.get_model("hq-bench/coreb-code-reranker", device="cpu")
    where = ("hq-bench/coreb-code-reranker", "24d2ad50bb4a53149cfd3c42c0e966e954cdbcf1", False)
    assert redirected.asked == {"AutoTokenizer": (*where, None), "AutoModelForCausalLM": (*where, "auto")}
    assert reranker.tokenizer.decode(reranker.prefix).startswith(f"<|im_start|>system\n{COREB_SYSTEM}<|im_end|>")
    common = {"task_metadata": T2C, "hf_split": "test", "hf_subset": "default", "show_progress_bar": False}
    sizes = []
    reranker.model.register_forward_pre_hook(lambda m, a, k: sizes.append(k["input_ids"].shape[1]), with_kwargs=True)
    reranker.predict(*loaders([("q", "word " * 10_000)]), **common)
    assert sizes == [4096]
    assert reranker.mteb_model_meta.experiment_name is None
    assert not caplog.records


@pytest.mark.parametrize(("revision", "said"), [("abc", "at revision abc"), (None, "the newest, not pinned")])
def test_remote_code_is_never_silent(yes_no_folder, monkeypatch, caplog, revision, said):
    redirected = Redirected(monkeypatch, yes_no_folder)
    with caplog.at_level(logging.WARNING, logger="coreb_tasks"):
        YesNoReranker("some/model", revision, "cpu", trust_remote_code=True)
    (message,) = [record.getMessage() for record in caplog.records]
    assert "some/model runs code from its repository" in message
    assert said in message
    assert {trusted for _, _, trusted, _ in redirected.asked.values()} == {True}
