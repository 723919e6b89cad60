"""Search and scoring beside encoding: precomputed vectors, tasks of CPRet's sizes, here and as a stock task of mteb.

    python benchmarks/search.py

Each run is a process of its own, so that its peak of memory is its own; that after the imports is taken off.
"""

import json
import logging
import resource
import subprocess
import sys
import time
import warnings

import mteb
import numpy as np
import sentence_transformers  # noqa: F401 - mteb imports it within the evaluation
import torch
from datasets import disable_progress_bars
from mteb.models import ModelMeta
from stock import stock_task

from coreb_tasks.data import RetrievalData

DIMENSION = 384
RUNS = [("stock", 10_000, 10_000), ("ours", 10_000, 10_000), ("ours", 5_000, 42_000)]


class Precomputed:
    """A vector for each text, which is the number of its row."""

    mteb_model_meta = ModelMeta.create_empty({"name": "benchmark/precomputed", "revision": "1"})

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, inputs, *, prompt_type, **kwargs):
        rows = [int(text) for batch in inputs for text in batch["text"]]
        return self.vectors[prompt_type.value][rows]

    def similarity(self, queries, documents):
        return torch.as_tensor(queries) @ torch.as_tensor(documents).T

    def similarity_pairwise(self, queries, documents):
        return (torch.as_tensor(queries) * torch.as_tensor(documents)).sum(dim=1)


def run(which, queries, documents):
    random = np.random.default_rng(0)
    vectors = [random.standard_normal((count, DIMENSION), dtype=np.float32) for count in (documents, queries)]
    vectors = [found / np.linalg.norm(found, axis=1, keepdims=True) for found in vectors]
    relevant = random.integers(0, documents, queries)
    data = RetrievalData(
        corpus={f"d{row:05}": str(row) for row in range(documents)},
        queries={f"q{row:05}": str(row) for row in range(queries)},
        qrels={f"q{row:05}": {f"d{document:05}": 1} for row, document in enumerate(relevant)},
        data_hash="synthetic",
    )
    task = mteb.get_task("CPRet-S2Full")
    task.take_data({"default": data})
    if which == "stock":
        task = stock_task(task)
    model = Precomputed(document=vectors[0], query=vectors[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"seconds": seconds, "megabytes": peak / 1024}))


def main():
    found = []
    for which, queries, documents in RUNS:
        command = [sys.executable, __file__, which, str(queries), str(documents)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(
            f"{which}, {queries:,} queries x {documents:,} documents: {found[-1]['seconds']:.1f} s, "
            f"{found[-1]['megabytes']:,.0f} MB",
            flush=True,
        )
    stock, ours = found[:2]
    ratios = (f"{key} {ours[key] / stock[key]:.2f}" for key in ("seconds", "megabytes"))
    print(f"ratio at 10,000 x 10,000: {', '.join(ratios)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    disable_progress_bars()
    if len(sys.argv) == 4:
        run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
