"""The statistical estimate: its law, its convergence, its infinities, its surrogates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sidelight as sl
from sidelight.leakage import leakage_error
from sidelight.leakage.statistical import statistical_leakage


def belief_of(cells: list[list[int]]) -> sl.Belief:
    array = np.array(cells)
    schema = sl.Schema(
        (sl.categorical("x", list("abcd")[: len(cells)]), sl.categorical("u", list("pqrs")[: array.shape[1]]))
    )
    return sl.Belief.from_counts(sl.Counts(schema, array))


def test_counting_level_draws_have_the_law_of_perturbing_each_record() -> None:
    belief = belief_of([[30, 10], [5, 25]])
    mechanism = sl.create("grr", 2, 1.0)
    fast = [
        statistical_leakage(belief, {"u": mechanism.channel.matrix()}, "x", replicates=2, seed=seed).value
        for seed in range(400)
    ]
    slow = []
    secrets = np.repeat([0, 0, 1, 1], [60, 20, 10, 50])
    values = np.repeat([0, 1, 0, 1], [60, 20, 10, 50])
    for seed in range(400):
        table = np.zeros((2, 2))
        np.add.at(table, (secrets, mechanism.randomise(values, seed=seed).values), 1)
        rows = table / table.sum(axis=1, keepdims=True)
        slow.append(float(np.log(rows.max(axis=0) / rows.min(axis=0)).max()))
    # two-sample Kolmogorov-Smirnov, fixed seeds, false-alarm rate 1e-4
    assert stats.ks_2samp(fast, slow).pvalue > 1e-4


def test_estimates_converge_to_the_exact_figure() -> None:
    belief = belief_of([[500, 300, 200], [100, 100, 800]])
    channel = sl.create("grr", 3, 1.0).channel
    exact = sl.pair_leakage(belief, channel, "x", "u").value
    errors = [
        abs(
            statistical_leakage(belief, {"u": channel.matrix()}, "x", replicates=replicates, seed=3).value
            - exact
        )
        for replicates in (1, 10_000)
    ]
    assert errors[1] < 0.002 < errors[0]


def test_infinite_and_empty_columns_are_reported() -> None:
    belief = belief_of([[10, 0, 0], [5, 5, 0]])
    seen = statistical_leakage(belief, {"u": np.eye(3)}, "x", seed=1)
    assert seen.value == math.inf
    assert (seen.infinite_columns, seen.empty_columns) == (1, 1)
    assert seen.finite == pytest.approx(math.log(2))
    assert seen.bound.kind == "estimate"


def test_surrogates_tell_independence_from_dependence() -> None:
    independent, dependent = belief_of([[400, 100], [400, 100]]), belief_of([[400, 100], [100, 400]])
    view = {"u": sl.create("grr", 2, 1.0).channel.matrix()}
    p_values = [
        statistical_leakage(independent, view, "x", replicates=1, surrogates=99, seed=seed).table_p_value
        for seed in range(200)
    ]
    # under independence p is uniform: Kolmogorov-Smirnov with fixed seeds, false-alarm rate 1e-4
    assert stats.kstest(np.array(p_values) - 0.005, "uniform").pvalue > 1e-4
    clear = statistical_leakage(dependent, view, "x", surrogates=999, seed=1)
    assert clear.table_p_value == pytest.approx(1 / 1000)
    assert clear.table_surrogate < clear.value


def drawn(rng: np.random.Generator, joint: list[list[float]], records: int = 500) -> sl.Belief:
    return belief_of(rng.multinomial(records, np.ravel(joint)).reshape(np.shape(joint)).tolist())


def test_the_population_p_value_is_about_the_population_and_the_table_one_about_the_table() -> None:
    """300 tables of 500 records with independent attributes: the population's p is below 0.05 in about 5 %
    (at most 9 %: a rate of 5 % exceeds that with a probability of 0.002, and the seed is fixed), that of the
    table in most, as every table has some correlation. Both see a real one."""
    rng = np.random.default_rng(15)
    view = {"u": sl.create("grr", 3, 1.0).channel.matrix()}
    even = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).tolist()
    found = [
        statistical_leakage(drawn(rng, even), view, "x", surrogates=99, seed=seed) for seed in range(300)
    ]
    assert np.mean([item.table_p_value < 0.05 for item in found]) > 0.4
    population = np.array([item.population_p_value for item in found])
    assert 0.02 <= (population < 0.05).mean() <= 0.09
    # uniform: Kolmogorov-Smirnov with a fixed seed, false-alarm rate 1e-4
    assert stats.kstest(population - 0.005, "uniform").pvalue > 1e-4
    clear = statistical_leakage(
        drawn(rng, [[0.4, 0.1, 0.1], [0.1, 0.1, 0.2]]), view, "x", surrogates=99, seed=1
    )
    assert clear.table_p_value == clear.population_p_value == 0.01
    assert clear.table_surrogate < clear.population_surrogate < clear.value


def test_both_p_values_of_several_attributes_and_of_values_that_nobody_has() -> None:
    rng = np.random.default_rng(16)
    cells = rng.multinomial(400, rng.dirichlet(np.ones(12))).reshape(3, 2, 2)
    cells[1] = 0
    names = [("x", "abc"), ("u", "pq"), ("v", "pq")]
    schema = sl.Schema(tuple(sl.categorical(name, values) for name, values in names))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    views = dict.fromkeys("uv", sl.create("grr", 2, 2.0).channel.matrix())
    seen = statistical_leakage(belief, views, "x", surrogates=50, seed=2)
    assert 0 < seen.population_surrogate < math.inf
    assert 0 < seen.table_p_value <= seen.population_p_value <= 1
    without = statistical_leakage(belief, views, "x", seed=2)
    assert (without.value, without.population_p_value) == (seen.value, None)


def test_several_attributes_together(data: Path) -> None:
    names = ["No_Beard", "Wearing_Necklace", "Smiling"]
    belief = sl.Belief.from_data(sl.read(data / "celeba_attr.parquet", columns=[*names, "Male"]))
    channel = sl.create("grr", 2, 1.0).channel
    estimate = statistical_leakage(belief, dict.fromkeys(names, channel.matrix()), "Male", seed=5)
    exact = sl.total_leakage(belief, dict.fromkeys(names, channel), "Male")
    assert exact.is_exact
    assert estimate.value == pytest.approx(exact.value, abs=0.01)


def test_table_1_and_3_of_the_cpl_paper(data: Path) -> None:
    belief = sl.Belief.from_data(sl.read(data / "celeba_attr.parquet"))
    names = belief.schema.names
    for epsilon in (1.0, 3.0):
        channel = sl.create("grr", 2, epsilon).channel
        pairs = [
            [
                (
                    statistical_leakage(belief, {u: channel.matrix()}, x, seed=7).value,
                    sl.pair_leakage(belief, channel, x, u).value,
                )
                if u != x
                else (0.0, 0.0)
                for x in names
            ]
            for u in names
        ]
        estimate, exact = np.moveaxis(np.array(pairs), 2, 0)
        assert leakage_error(exact, estimate) < 5.5e-3
    cells = np.array([[20, 0, 0, 0], [0, 20, 0, 0], [10, 15, 3, 2], [10, 15, 3, 2]]) * 1000
    example = belief_of(cells.tolist())
    for epsilon, back in ((0.5, 0.2809), (1.0, 0.6201), (2.0, 1.4338)):
        view = sl.create("grr", 4, epsilon).channel.matrix()
        there = statistical_leakage(example, {"u": view}, "x", seed=8).value
        assert there == pytest.approx(epsilon, abs=0.01)
        assert statistical_leakage(example, {"x": view}, "u", seed=9).value == pytest.approx(back, abs=0.01)


def test_bad_input() -> None:
    belief = belief_of([[1, 2], [3, 4]])
    by_hand = sl.Belief.from_joint([[0.25, 0.25], [0.25, 0.25]], ["x", "u"])
    for call, words in [
        (lambda: statistical_leakage(by_hand, {"u": np.eye(2)}, "x"), "given by hand"),
        (lambda: statistical_leakage(belief, {"u": np.eye(3)}, "x"), "a matrix with 2 rows"),
        (lambda: statistical_leakage(belief, {"u": np.ones((2, 2))}, "x"), "sum to 1"),
        (lambda: statistical_leakage(belief, {"x": np.eye(2)}, "x"), "must not be among what is seen"),
        (lambda: statistical_leakage(belief, {"u": np.eye(2)}, "x", replicates=0), "`replicates` must be"),
    ]:
        with pytest.raises(sl.InputError, match=words):
            call()
