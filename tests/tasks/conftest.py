"""Stub models and a way to run a tiny task through mteb's public calls."""

from dataclasses import replace

import mteb
import numpy as np
import pytest
from mteb.models import ModelMeta

from coreb_tasks.facts.schema import reranking
from coreb_tasks.tasks.table import task_class


class Stub:
    """What every stub model has: a name of its own, so that no two share a result."""

    def __init__(self, name="stub/model"):
        self.mteb_model_meta = ModelMeta.create_empty({"name": name, "revision": "1"})


class StubSearch(Stub):
    """A model that brings its own search and returns a given run, whatever it is asked."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def index(self, corpus, **kwargs):
        pass

    def search(self, queries, **kwargs):
        return {query: dict(ranked) for query, ranked in self.run.items()}


class StubEncoder(Stub):
    """An encoder with a vector for each text; ``seen`` collects the texts of each side as they arrive."""

    def __init__(self, vectors=None, default=(1.0, 0.0)):
        super().__init__()
        self.vectors = vectors or {}
        self.default = default
        self.seen = {"query": [], "document": []}

    def encode(self, inputs, *, prompt_type, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        self.seen[prompt_type.value] += texts
        return np.array([self.vectors.get(text, self.default) for text in texts], dtype=np.float32)

    def similarity(self, embeddings1, embeddings2):
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1, embeddings2):
        return (embeddings1 * embeddings2).sum(axis=1)


class StubCrossEncoder(Stub):
    """A cross-encoder with a score for each pair of texts; ``seen`` collects the pairs as they arrive."""

    def __init__(self, scores=None, default=0.0):
        super().__init__("stub/cross-encoder")
        self.scores = scores or {}
        self.default = default
        self.seen = []

    def predict(self, inputs1, inputs2, **kwargs):
        texts = [[text for batch in inputs for text in batch["text"]] for inputs in (inputs1, inputs2)]
        pairs = list(zip(*texts, strict=True))
        self.seen += pairs
        return np.array([self.scores.get(pair, self.default) for pair in pairs])


@pytest.fixture
def task_of(hub):
    """The tiny task of a kind (T2C, C2C)."""
    return lambda kind="T2C": task_class(hub.task(kind))()


@pytest.fixture
def reranking_of(hub):
    """The tiny reranking task of a kind."""
    return lambda kind: task_class(reranking(replace(hub.task(kind), reranking=f"Tiny-{kind}-Reranking")))()


@pytest.fixture
def rerank(reranking_of):
    """Scores of a model on the tiny reranking task of a kind, on the candidates of a first stage."""

    def rerank(model, first_stage, kind="T2C", depth=None, **kwargs):
        task = reranking_of(kind)
        task.first_stage = first_stage
        task.pool_depth = depth or task.pool_depth
        kwargs = {"cache": None, **kwargs}
        result = mteb.evaluate(model, task, co2_tracker=False, show_progress_bar=False, **kwargs)
        return result.task_results[0].scores["test"][0]

    return rerank


@pytest.fixture
def evaluate(task_of):
    """Scores of a model on the tiny task of a kind, as mteb returns them."""

    def evaluate(model, kind="T2C", **kwargs):
        result = mteb.evaluate(model, task_of(kind), cache=None, co2_tracker=False, show_progress_bar=False, **kwargs)
        return result.task_results[0].scores["test"][0]

    return evaluate


@pytest.fixture
def stubs():
    """The stub classes: ``stubs.search(run)``, ``stubs.encoder(vectors)``."""

    class Stubs:
        search = StubSearch
        encoder = StubEncoder
        cross_encoder = StubCrossEncoder

    return Stubs
