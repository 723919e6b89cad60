"""Comparing two runs on 10,000 queries with 10,000 resamples, beside scipy's paired bootstrap of the same difference.

    python benchmarks/compare.py [QUERIES] [RESAMPLES]

Prints one table row: seconds of each, measured one after the other in this process, the ratio, and the most memory that
the process took. ``scipy.stats.bootstrap`` is called as its documentation does for paired samples, in blocks as ours.
"""

import resource
import sys
import time

import numpy as np
from scipy.stats import bootstrap

from coreb_tasks.comparison import compare, draw


def main() -> None:
    queries, resamples = (int(given) for given in (*sys.argv[1:], *("10000", "10000")[len(sys.argv) - 1 :]))
    chance = np.random.default_rng(0)
    first = chance.random(queries)
    second = np.clip(first - 0.01 + chance.normal(0, 0.3, queries), 0, 1)
    runs = [{f"q{number:07}": float(value) for number, value in enumerate(values)} for values in (first, second)]

    started = time.perf_counter()
    found = compare([[draw("benchmark", runs, 0, resamples)]], (0, 1), weighted=True)
    ours = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    started = time.perf_counter()
    theirs = bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        paired=True,
        method="percentile",
        n_resamples=resamples,
        batch=max(1, 200_000 // queries),
        rng=np.random.default_rng(1),
    )
    scipys = time.perf_counter() - started
    interval = theirs.confidence_interval
    print("| queries | resamples | s | scipy, paired, s | ratio | MiB | interval | scipy's |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {queries:,} | {resamples:,} | {ours:.2f} | {scipys:.2f} | {ours / scipys:.2f} | {memory:.0f} "
        f"| {found.low:+.5f} to {found.high:+.5f} | {interval.low:+.5f} to {interval.high:+.5f} |"
    )


if __name__ == "__main__":
    main()
