"""Whether runs differ: the paired bootstrap over queries, by task, subset, slice and overall score. Knows no mteb.

1C-Ebench (arXiv:2608.19957), comparison of models: paired bootstrap over queries, 10,000 resamples, stratified by
subset, 95% interval. Runs are named by their position; a difference is the first run's score less the second's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import bootstrap

from coreb_tasks import rules
from coreb_tasks.facts import OVERALLS, TASKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 10_000
CONFIDENCE = 0.95
_ALIKE = 1e-9  # sums in another order differ by less, scores of two queries by more
_BLOCK = 200_000  # drawn positions in memory at a time, of a processor cache's size

Pair = tuple[int, int]
Level = Literal["overall", "task", "subset", "slice"]


@dataclass(frozen=True)
class Stratum:
    """Queries that are drawn among themselves.

    Attributes:
        scores: of each run on each query, (runs, queries), in 0..1.
        resampled: mean score of each run on the queries of each resample, (runs, resamples); None of a single query,
            of which no resample differs.
    """

    scores: NDArray[np.float64]
    resampled: NDArray[np.float64] | None

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.scores.shape[1])


@dataclass(frozen=True)
class Difference:
    """One run against another.

    Attributes:
        queries: number of queries, of all strata.
        first, second: the two scores, in 0..1.
        low, high: ends of the 95% percentile interval of ``difference``; None where a stratum has a single query.
        p: one-sided: (1 + resamples in which the first run is not better) / (1 + resamples); None as ``low``.
        wins, ties, losses: numbers of queries on which the first run scores more, as much, and less.
    """

    queries: int
    first: float
    second: float
    low: float | None
    high: float | None
    p: float | None
    wins: int
    ties: int
    losses: int

    @property
    def difference(self) -> float:
        """The first score less the second."""
        return self.first - self.second


@dataclass(frozen=True)
class Queries:
    """The queries of a task's subset.

    Attributes:
        scores: for each run the score of each query, by id.
        slices: name of a part of them -> its ids.
    """

    scores: Sequence[Mapping[str, float]]
    slices: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Thing:
    """What runs are compared on.

    Attributes:
        level: its kind.
        name: of the task or of the overall score.
        subset, part: of the task, where it is not all of it; ``part`` is a slice.
        mean_over: what the score is a mean of: queries, subsets or tasks.
    """

    level: Level
    name: str
    subset: str | None = None
    part: str | None = None
    mean_over: Literal["queries", "subsets", "tasks"] = "queries"


@dataclass(frozen=True)
class Row:
    """One pair of runs on one thing. ``corrected_p``: ``found.p`` after Holm, over all rows of the level."""

    thing: Thing
    pair: Pair
    found: Difference
    corrected_p: float | None = None


@dataclass(frozen=True)
class Move:
    """A query on which two runs differ."""

    task: str
    subset: str
    query: str
    pair: Pair
    first: float
    second: float

    @property
    def difference(self) -> float:
        """The first score less the second."""
        return self.first - self.second


def draw(name: str, runs: Sequence[Mapping[str, float]], seed: int, resamples: int = RESAMPLES) -> Stratum:
    """Draw a stratum's queries with replacement, as many as it has, ``resamples`` times; the same for every run.

    All pairs of runs thus see the same resamples, and a pair's answer depends neither on the other runs nor on their
    order. It depends on seed, name and queries only, so that strata of other names are drawn independently.

    Raises:
        ValueError: the runs have not the same queries, or none.
    """
    queries = sorted(runs[0])
    if not queries or any(run.keys() != runs[0].keys() for run in runs):
        raise ValueError(f"{name}: expected runs scored on the same queries, one at least")
    scores = np.array([[run[query] for query in queries] for run in runs], dtype=np.float64)
    if len(queries) == 1:
        return Stratum(scores, None)

    def means(drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
        return np.stack([of_run.take(drawn).mean(axis=axis) for of_run in scores])

    # scipy draws positions, not scores, so that every run's are gathered at the same ones.
    found = bootstrap(
        (np.arange(len(queries)),),
        means,
        n_resamples=resamples,
        batch=max(1, _BLOCK // len(queries)),
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng([seed, int.from_bytes(sha256(name.encode()).digest())]),
    )
    return Stratum(scores, found.bootstrap_distribution)


def compare(parts: Sequence[Sequence[Stratum]], pair: Pair, *, weighted: bool) -> Difference:
    """Two runs by a score over parts, each of which has strata; ``weighted`` as in ``rules.mean_over_parts``."""
    strata = [stratum for part in parts for stratum in part]
    first, second = (
        rules.mean_over_parts(
            [[(float(stratum.scores[run].mean()), stratum.queries) for stratum in part] for part in parts],
            weighted=weighted,
        )
        for run in pair
    )
    apart = np.concatenate([stratum.scores[pair[0]] - stratum.scores[pair[1]] for stratum in strata])
    wins, losses = int((apart > _ALIKE).sum()), int((apart < -_ALIKE).sum())
    low = high = p = None
    drawn = [
        [(s.resampled[pair[0]] - s.resampled[pair[1]], s.queries) for s in part if s.resampled is not None]
        for part in parts
    ]
    if sum(map(len, drawn)) == len(strata):
        differences = rules.mean_over_parts(drawn, weighted=weighted)
        tail = (1 - CONFIDENCE) / 2
        low, high = (float(end) for end in np.quantile(differences, [tail, 1 - tail]))
        p = float((1 + (differences <= _ALIKE).sum()) / (1 + differences.size))
    return Difference(len(apart), first, second, low, high, p, wins, len(apart) - wins - losses, losses)


def holm(p_values: Sequence[float]) -> list[float]:
    """p corrected for multiple tests by Holm's step-down method: holds however the tests depend on one another.

    scipy has Benjamini-Hochberg only, which bounds the share of false findings and not the chance of one.
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(p) for p in corrected]


def table(
    tasks: Mapping[str, Mapping[str, Queries]],
    pairs: Sequence[Pair],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    slices: bool = False,
) -> list[Row]:
    """Every pair on every overall score whose parts are there, every task, its subsets, and, if wanted, its slices.

    Args:
        tasks: name -> subset -> queries. Of a task that lacks a subset only the subsets are compared.
        pairs: positions of the runs.
    """
    rows = [
        Row(thing, pair, compare(parts, pair, weighted=thing.mean_over == "queries"))
        for thing, parts in _things(tasks, seed, resamples, slices=slices)
        for pair in pairs
    ]
    corrected: dict[int, float] = {}
    for level in {row.thing.level for row in rows}:
        tested = {n: row.found.p for n, row in enumerate(rows) if row.thing.level == level and row.found.p is not None}
        corrected.update(zip(tested, holm(list(tested.values())), strict=True))
    return [replace(row, corrected_p=corrected.get(number)) for number, row in enumerate(rows)]


def _things(
    tasks: Mapping[str, Mapping[str, Queries]], seed: int, resamples: int, *, slices: bool
) -> Iterator[tuple[Thing, list[list[Stratum]]]]:
    drawn = {
        name: {subset: draw(f"{name}/{subset}", held.scores, seed, resamples) for subset, held in subsets.items()}
        for name, subsets in tasks.items()
    }
    whole = {
        name: list(strata.values()) for name, strata in drawn.items() if strata.keys() == TASKS[name].subsets.keys()
    }
    overalls = [overall for overall in OVERALLS.values() if whole.keys() >= set(overall.parts)]
    for overall in overalls:
        over: Literal["queries", "tasks"] = "queries" if overall.weighted else "tasks"
        yield Thing("overall", overall.name, mean_over=over), [whole[part] for part in overall.parts]
    for name, strata in whole.items():
        if len(strata) > 1:
            yield Thing("task", name, mean_over="subsets"), [strata]
        # The mean over queries is there already where an overall score is just that.
        if len(strata) == 1 or not any(overall.weighted and overall.parts == (name,) for overall in overalls):
            yield Thing("task", name), [strata]
    for name, by_subset in drawn.items():
        for subset, stratum in by_subset.items():
            if len(TASKS[name].subsets) > 1:
                yield Thing("subset", name, subset), [[stratum]]
            for part, queries in tasks[name][subset].slices.items() if slices else ():
                scores = [{query: run[query] for query in queries} for run in tasks[name][subset].scores]
                yield Thing("slice", name, subset, part), [[draw(f"{name}/{subset}/{part}", scores, seed, resamples)]]


def moves(tasks: Mapping[str, Mapping[str, Queries]], pairs: Sequence[Pair], limit: int) -> Iterator[Move]:
    """The queries that moved most: of each task and pair up to ``limit`` for the first run, then as many against it."""
    for name, subsets in tasks.items():
        for pair in pairs:
            every = [
                Move(name, subset, query, pair, first, held.scores[pair[1]][query])
                for subset, held in subsets.items()
                for query, first in held.scores[pair[0]].items()
            ]
            for sign in (1, -1):
                moved = [move for move in every if sign * move.difference > _ALIKE]
                yield from sorted(moved, key=lambda move: (-abs(move.difference), move.subset, move.query))[:limit]
