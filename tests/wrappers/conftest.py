"""A tiny model of the kind of Qwen3-Reranker: random weights, and a tokenizer trained on the packaged sample."""

from importlib.resources import files

import pytest
from datasets import Dataset
from mteb.models import ModelMeta  # noqa: F401  (first: it runs the start-up hook)
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
THOUGHT = ["<think>", "</think>"]


def train_tokenizer(answers=("yes", "no"), markers=(*SPECIAL, *THOUGHT)):
    """A byte-level BPE tokenizer with one token for each answer and marker."""
    from transformers import PreTrainedTokenizerFast

    sample = files("coreb_tasks.samples.coreb")
    texts = [sample.joinpath(f"{table}.jsonl").read_text(encoding="utf-8") for table in ("text_corpus", "code_corpus")]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator([*texts, *[answer for answer in answers for _ in range(10_000)]], trainer)
    bpe.add_special_tokens([marker for marker in markers if marker in SPECIAL])
    bpe.add_tokens([AddedToken(marker, normalized=False) for marker in markers if marker in THOUGHT])
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")  # noqa: S106


@pytest.fixture(scope="session")
def new_tokenizer():
    """``train_tokenizer``, for tokenizers that lack something."""
    return train_tokenizer


@pytest.fixture(scope="session")
def yes_no_folder(tmp_path_factory):
    """Folder of a two-layer model whose answers differ from pair to pair."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("yes-no")
    tokenizer = train_tokenizer()
    tokenizer.save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=4096,
        initializer_range=0.5,  # far from the usual 0.02, so that scores are not all one half
    )
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def loaders():
    """Queries and documents of pairs as mteb hands them to a cross-encoder."""

    def loaders(pairs, batch_size=3):
        sides = [Dataset.from_dict({"text": list(side)}) for side in zip(*pairs, strict=True)] if pairs else [[], []]
        return [DataLoader(side, batch_size=batch_size) for side in sides]

    return loaders
