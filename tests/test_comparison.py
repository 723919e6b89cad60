"""The paired bootstrap against its definition, against scipy's own interface, and in its symmetries."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from coreb_tasks import comparison, rules
from coreb_tasks.comparison import Queries, compare, draw, holm, moves, table

ONEC = "1C-Ebench-Sample"


def run(values):
    return {f"q{number}": float(value) for number, value in enumerate(values)}


def compared(*values, name="t", seed=0, resamples=2_000, pair=(0, 1)):
    return compare([[draw(name, [run(v) for v in values], seed, resamples)]], pair, weighted=True)


def test_agrees_with_every_resample_there_is():
    apart = [0.5, -0.3, 0.2, 0.1]  # 4**4 resamples, all as likely
    every = sorted(np.mean(drawn) for drawn in product(apart, repeat=4))
    not_better = np.mean([value <= 1e-9 for value in every])
    found = compared(apart, [0] * 4, resamples=20_000)
    assert found.p == pytest.approx(not_better, abs=5 * np.sqrt(not_better * (1 - not_better) / 20_000))
    # The ends are values of the distribution, which is discrete: near the exact quantiles.
    assert np.quantile(every, 0.02) <= found.low <= np.quantile(every, 0.03)
    assert np.quantile(every, 0.97) <= found.high <= np.quantile(every, 0.98)
    assert (found.wins, found.ties, found.losses) == (3, 0, 1)


def test_agrees_with_every_resample_of_strata():
    """Two strata of two and three queries: 2**2 * 3**3 resamples; both means by hand."""
    one, other = [0.4, -0.4], [0.3, 0.0, -0.1]
    parts = [[draw(name, [run(v), run([0] * len(v))], 0, 20_000) for name, v in (("a", one), ("b", other))]]
    for weighted in (True, False):
        weights = (2 / 5, 3 / 5) if weighted else (0.5, 0.5)
        every = [
            weights[0] * np.mean(a) + weights[1] * np.mean(b)
            for a in product(one, repeat=2)
            for b in product(other, repeat=3)
        ]
        not_better = np.mean([value <= 1e-9 for value in every])
        found = compare(parts, (0, 1), weighted=weighted)
        assert found.p == pytest.approx(not_better, abs=5 * np.sqrt(not_better * (1 - not_better) / 20_000))
        assert found.difference == pytest.approx(weights[0] * np.mean(one) + weights[1] * np.mean(other))


def test_agrees_with_scipys_paired_bootstrap():
    chance = np.random.default_rng(3)
    first = chance.random(200)
    second = np.clip(first - 0.02 + 0.2 * chance.standard_normal(200), 0, 1)
    found = compared(first, second, resamples=10_000)
    theirs = bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(4),
    )
    ours, interval = (found.low, found.high), theirs.confidence_interval
    # The ends of 10,000 resamples vary by about 2.7 hundredths of a standard error.
    assert ours == pytest.approx((interval.low, interval.high), abs=0.15 * theirs.standard_error)
    p = float((theirs.bootstrap_distribution <= 0).mean())
    assert found.p == pytest.approx(p, abs=5 * np.sqrt(2 * p * (1 - p) / 10_000))


def test_agrees_with_scipy_on_strata():
    """scipy draws several samples each for itself: a stratified bootstrap of the differences."""
    chance = np.random.default_rng(5)
    apart = [chance.normal(0.05, 0.3, 300), chance.normal(-0.02, 0.2, 40)]
    parts = [[draw(str(n), [run(v), run([0] * len(v))], 0) for n, v in enumerate(apart)]]
    found = compare(parts, (0, 1), weighted=False)
    theirs = bootstrap(
        apart,
        lambda a, b, axis: (a.mean(axis) + b.mean(axis)) / 2,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(6),
    )
    interval = theirs.confidence_interval
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.15 * theirs.standard_error)


values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=12)
two = st.integers(2, 12).flatmap(lambda n: st.tuples(*[st.lists(st.floats(0, 1), min_size=n, max_size=n)] * 2))


@settings(max_examples=30, deadline=None)
@given(two)
def test_swapped_runs_give_the_mirrored_answer(both):
    there, back = compared(*both, resamples=200), compared(*both[::-1], resamples=200)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-12)
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.p + back.p >= 1  # what is alike counts against both
    assert there.low <= there.high
    assert there.wins + there.ties + there.losses == there.queries == len(both[0])
    again = compared(both[0], both[1], both[1], resamples=200)
    assert again == there  # the same seed, and another run beside: the same answer


@settings(max_examples=20, deadline=None)
@given(values)
def test_identical_runs_are_ties(of_run):
    found = compared(of_run, of_run, resamples=100)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)
    assert (found.wins, found.ties, found.losses) == (0, len(of_run), 0)


def test_the_answer_depends_on_seed_and_name_and_not_on_order():
    first, second = run([0.1, 0.9, 0.4, 0.3, 0.8]), run([0.2, 0.5, 0.4, 0.1, 0.7])
    same = draw("t", [first, second], 7, 50).resampled
    turned = [dict(reversed(of_run.items())) for of_run in (second, first)]
    assert (draw("t", turned, 7, 50).resampled == same[::-1]).all()
    assert (draw("t", [first, second], 8, 50).resampled != same).any()
    assert (draw("u", [first, second], 7, 50).resampled != same).any()


def test_sums_that_miss_zero_by_rounding_are_not_better():
    assert compared([0.1, 0.1], [0.1 + 2**-55, 0.1 - 2**-55], resamples=100).p == 1


def test_of_a_single_query_nothing_is_said_but_the_difference():
    found = compared([0.5], [0.25])
    assert (found.difference, found.low, found.high, found.p, found.wins) == (0.25, None, None, None, 1)
    with_others = [[draw("a", [run([0.5]), run([0.1])], 0, 10), draw("b", [run([1, 0]), run([0, 0])], 0, 10)]]
    assert compare(with_others, (0, 1), weighted=True).p is None


@pytest.mark.parametrize("runs", [[{}, {}], [{"a": 1.0}, {"b": 1.0}], [{"a": 1.0, "b": 1.0}, {"a": 1.0}]])
def test_runs_of_other_queries_are_refused(runs):
    with pytest.raises(ValueError, match="t: expected runs scored on the same queries"):
        draw("t", runs, 0)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(1e-4, 1), min_size=1, max_size=20))
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(ps):
    found = holm(ps)
    for p, corrected in zip(ps, found, strict=True):
        assert p <= corrected + 1e-15
        assert corrected <= min(1, p * len(ps)) + 1e-15
    assert [found[n] for n in np.argsort(ps, kind="stable")] == sorted(found)


def onec(name=ONEC, forum=(1, 0, 0.5, 0.5), fastcode=(1, 1)):
    zeros = {"forum": run([0] * len(forum)), "fastcode": run([0] * len(fastcode))}
    full = {"forum": run(forum), "fastcode": run(fastcode)}
    return {name: {s: Queries([full[s], zeros[s]], {"part": ["q0", "q1"]}) for s in ("forum", "fastcode")}}


def test_a_task_with_subsets_is_the_mean_over_these_and_over_queries():
    rows = table(onec(), [(0, 1)], resamples=50)
    assert [(row.thing.level, row.thing.mean_over, row.thing.subset, row.found.first) for row in rows] == [
        ("task", "subsets", None, 0.75),
        ("task", "queries", None, pytest.approx(4 / 6)),
        ("subset", "queries", "forum", 0.5),
        ("subset", "queries", "fastcode", 1.0),
    ]
    assert rows[0].found.first == rules.overall_score([[(0.5, 4), (1.0, 2)]], weighted=False)
    only = {ONEC: {"forum": onec()[ONEC]["forum"]}}
    assert [row.thing.level for row in table(only, [(0, 1)], resamples=50)] == ["subset"]
    assert table(only, [(0, 1)], resamples=50)[0].found == rows[2].found


def test_overall_scores_stand_where_all_parts_do():
    parts = {f"CPRet-{kind}": {"default": Queries([run(v), run([0] * len(v))], {})} for kind, v in CPRET.items()}
    rows = table(parts, [(0, 1)], resamples=50)
    assert (rows[0].thing.name, rows[0].thing.mean_over, len(rows)) == ("CPRet-Overall", "tasks", 5)
    assert rows[0].found.first == pytest.approx((0.5 + 1 + 0 + 0.25) / 4)
    del parts["CPRet-C2C"]
    assert {row.thing.level for row in table(parts, [(0, 1)], resamples=50)} == {"task"}
    micro, macro, *_ = table(onec("1C-Ebench"), [(0, 1)], resamples=50)
    assert (micro.thing.name, micro.found.first) == ("1C-Ebench-Micro", pytest.approx(4 / 6))
    assert (macro.thing.level, macro.thing.mean_over, macro.found.first) == ("task", "subsets", 0.75)


CPRET = {"T2C": [0, 1], "C2C": [1, 1, 1], "P2Dup": [0, 0], "S2Full": [0.25, 0.25]}


def test_slices_change_no_other_row_and_are_corrected_among_themselves():
    without, with_slices = (table(onec(), [(0, 1), (1, 0)], resamples=50, slices=s) for s in (False, True))
    assert [row for row in with_slices if row.thing.level != "slice"] == without
    held = [row for row in with_slices if row.thing.level == "slice"]
    assert [(row.thing.subset, row.thing.part) for row in held] == [
        (subset, "part") for subset in ("forum", "forum", "fastcode", "fastcode")
    ]
    assert [row.corrected_p for row in held] == holm([row.found.p for row in held])


def test_the_queries_that_moved_most_each_way():
    scores = Queries([run([0.5, 0, 1, 0.2, 0.5]), run([0.5, 1, 0, 0, 0.7])], {})
    found = list(moves({"t": {"default": scores}}, [(0, 1)], 1))
    assert [(move.query, move.difference) for move in found] == [("q2", 1), ("q1", -1)]
    assert [move.query for move in moves({"t": {"default": scores}}, [(0, 1)], 9)] == ["q2", "q3", "q1", "q4"]
    assert list(moves({"t": {"default": scores}}, [(0, 1)], 0)) == []
    assert comparison.CONFIDENCE == 0.95
