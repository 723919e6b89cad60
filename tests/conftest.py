"""A tiny data set in CoREB's layout, written for the tests, and where the real data may lie."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may call the network
os.environ["PYTHONSAFEPATH"] = "1"  # programs that the tests start see the package as installed, not the clone

from coreb_tasks.data import measure
from coreb_tasks.facts import TASKS, Task

RELEASE = "r1"


def find_real_hub() -> Path | None:
    """The folder with the real CoREB data: COREB_TASKS_TEST_HUB, else beside the checkout."""
    given = os.environ.get("COREB_TASKS_TEST_HUB")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "hub"
    return folder if (folder / "hq-bench" / "coreb" / "README.md").is_file() else None


def pytest_collection_modifyitems(items):
    if find_real_hub() is None:
        skip = pytest.mark.skip(reason="the real CoREB data are not here (set COREB_TASKS_TEST_HUB to a hub folder)")
        for item in items:
            if "real_data" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def real_hub() -> Path:
    """The folder with the real CoREB data, for tests marked ``real_data``."""
    folder = find_real_hub()
    assert folder is not None
    return folder


def query(query_id, text, **fields):
    return {"query_id": query_id, "query": text, "subtask": "t2c_search_any", "language_constraint": "none", **fields}


def judgment(query_id, document, grade):
    return {"query_id": query_id, "doc_id": document, "relevance": grade}


@dataclass
class TinyHub:
    """A hub folder with one data set ``tests/tiny``. Change ``tables``, then ``write`` (and ``pin``)."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    tables: dict[str, list[dict]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.root / "tests" / "tiny"

    def task(self, kind="T2C") -> Task:
        """The facts of a task on this data: kind is T2C, C2C or C2T."""
        return replace(TASKS[f"CoREB-{kind}"], name=f"Tiny-{kind}", path="tests/tiny", release=RELEASE)

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        card = ["---", "configs:"]
        for config, rows in self.tables.items():
            card += [f"- config_name: {config}", "  data_files:", f"  - split: {RELEASE}", f"    path: {config}.jsonl"]
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
            (self.folder / f"{config}.jsonl").write_text("".join(lines), encoding="utf-8", newline="")
        (self.folder / "README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")

    def pin(self, *kinds) -> None:
        """Take what is written as the version that the tasks are pinned to."""
        pins = {config: pin for kind in kinds or ("T2C",) for config, pin in measure(self.task(kind)).items()}
        self.monkeypatch.setattr("coreb_tasks.data.retrieval.pins", lambda path, release: pins)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Two queries (q1: a is relevant, b a hard negative; q2: c is relevant), four documents, one C2C anchor."""
    hub = TinyHub(tmp_path / "hub", monkeypatch)
    monkeypatch.setenv("COREB_TASKS_DATA", str(hub.root))
    hub.tables = {
        "code_corpus": [{"code_id": d, "code": f"code {d}"} for d in "abcd"],
        "text2code_queries": [query("q1", "find a"), query("q2", "find c", language_constraint="go")],
        "text2code_qrels": [judgment("q1", "a", 2), judgment("q1", "b", 1), judgment("q2", "c", 2)],
        "code2code_queries": [
            {
                "query_id": "q1",
                "query": "code d",
                "subtask": "c2c_cross_lang",
                "anchor_language": "go",
                "meta_anchor_code_id": "d",
            }
        ],
        "code2code_qrels": [judgment("q1", "a", 2), judgment("q1", "b", 1)],
    }
    hub.write()
    hub.pin("T2C", "C2C")
    return hub


@pytest.fixture(scope="session")
def random_run():
    """A run over some data, with ties, excluded documents, and the first query missing."""

    def random_run(data, depth, seed=0):
        chance = np.random.default_rng(seed)
        documents = list(data.corpus)
        run = {}
        for query in list(data.queries)[1:]:
            found = chance.permutation(documents)[:depth].tolist()
            found += [d for d in [*data.qrels[query], *data.excluded.get(query, ())] if d not in found]
            run[query] = dict(zip(found, map(float, chance.integers(0, 50, len(found))), strict=True))
        return run

    return random_run


@pytest.fixture(scope="session")
def save_model():
    """Saves a model of a kind with random weights to a folder, which it returns."""
    import torch
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertForSequenceClassification,
        BertModel,
        PreTrainedTokenizerFast,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    letters = [chr(code) for code in range(33, 127)]
    words = [*special.values(), *letters, *(f"##{letter}" for letter in letters), "yes", "no"]
    sizes = {"vocab_size": len(words) + 4, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 128}

    def save_tokenizer(folder):
        pieces = Tokenizer(models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
        pieces.pre_tokenizer, pieces.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=128, **special)
        tokenizer.add_tokens(["<|im_start|>", "<|im_end|>", "<think>", "</think>"])
        tokenizer.save_pretrained(folder)

    def save(folder, kind="encoder", seed=0, prompts=None, **config):
        torch.manual_seed(seed)
        folder.mkdir(parents=True)
        if kind == "yes-no":
            Qwen3ForCausalLM(Qwen3Config(**sizes, num_key_value_heads=2, head_dim=8)).save_pretrained(folder)
        elif kind.endswith("cross-encoder"):
            labelled = BertConfig(**sizes, **{"num_labels": 1, **config})
            BertForSequenceClassification(labelled).save_pretrained(folder)
        else:
            (BertForMaskedLM if kind == "masked" else BertModel)(BertConfig(**sizes)).save_pretrained(folder)
        save_tokenizer(folder)
        if kind == "encoder":
            modules = [Transformer(str(folder)), Pooling(16)]
            SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder))
        elif kind == "saved cross-encoder":
            CrossEncoder(str(folder), device="cpu").save_pretrained(str(folder))
        return folder

    return save
