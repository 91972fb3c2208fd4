"""Average-case figures against plain loops, published numbers, and the inequalities between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import random_joint, randomised_response
from sidelight.leakage.average import (
    average_leakage,
    correlation_matrix,
    mutual_information,
    mutual_information_matrix,
    normalised_mutual_information,
    pearson_correlation,
)
from sidelight.mechanisms import AnyChannel, DenseChannel, FavouringChannel

SEEDS = st.integers(0, 2**32 - 1)
EQUATION_28 = [[0.2, 0, 0, 0], [0, 0.2, 0, 0], [0.1, 0.15, 0.03, 0.02], [0.1, 0.15, 0.03, 0.02]]


def information(joint: np.ndarray) -> float:
    rows = [math.fsum(row) for row in joint]
    columns = [math.fsum(column) for column in joint.T]
    return math.fsum(
        float(cell) * (math.log(cell) - math.log(rows[i]) - math.log(columns[j]))
        for (i, j), cell in np.ndenumerate(joint)
        if cell > 0
    )


def through(joint: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """The joint of secret and report, cell by cell."""
    cells = np.zeros((joint.shape[0], channel.shape[1]))
    for x, u, y in np.ndindex(joint.shape[0], joint.shape[1], channel.shape[1]):
        cells[x, y] += joint[x, u] * channel[u, y]
    return cells


def check_average(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 5, size=2))
    joint = random_joint(rng, shape)
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    epsilon = float(rng.choice([1e-6, 0.5, 1.0, 5.0]))
    dense = rng.dirichlet(np.full(3, 0.5), size=shape[1])
    for channel, cells in (
        (sl.create("grr", shape[1], epsilon).channel, randomised_response(shape[1], epsilon)),
        (DenseChannel(dense), dense),
    ):
        found = average_leakage(belief, channel, "x", "u")
        reports = through(joint, cells)
        assert found.mutual_information == pytest.approx(information(reports), abs=1e-12)
        best = math.fsum(max(column) for column in reports.T)
        prior = max(math.fsum(row) for row in joint)
        assert found.prior_vulnerability == pytest.approx(prior, abs=1e-12)
        assert found.posterior_vulnerability == pytest.approx(best, abs=1e-12)
        assert found.min_entropy_leakage == pytest.approx(math.log(best / prior), abs=1e-9)
        worst = sl.pair_leakage(belief, channel, "x", "u").value
        assert -1e-12 <= found.mutual_information <= min(worst, mutual_information(belief, "x", "u")) + 1e-12
        assert 0 <= found.min_entropy_leakage <= worst + 1e-12


@given(SEEDS)
@settings(max_examples=10)
def test_reports_agree_with_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(30):
        check_average(rng)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_many_reports_agree_with_plain_loops(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    for _ in range(2000):
        check_average(rng)


def test_equation_28_of_the_cpl_paper() -> None:
    belief = sl.Belief.from_joint(EQUATION_28, ["k", "hat"])
    assert normalised_mutual_information(belief, "k", "hat") == pytest.approx(0.165, abs=5e-4)
    assert pearson_correlation(belief, "k", "hat") == pytest.approx(0.357, abs=5e-4)


def test_own_report_and_identity() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["x", "u"])
    as_it_is = FavouringChannel(2, "singletons", 0.0)
    own = average_leakage(belief, as_it_is, "x", "x")
    assert own.mutual_information == pytest.approx(math.log(2))
    assert own.posterior_vulnerability == 1.0
    assert average_leakage(belief, as_it_is, "x", "u").mutual_information == pytest.approx(
        mutual_information(belief, "x", "u")
    )
    nothing = average_leakage(belief, FavouringChannel(2, "singletons", 1.0), "x", "u")
    assert (nothing.mutual_information, nothing.min_entropy_leakage) == (0.0, 0.0)


def test_a_large_alphabet_needs_no_matrix() -> None:
    size = 5000
    belief = sl.Belief.from_joint(np.full((2, size), 0.5 / size), ["x", "u"])
    assert average_leakage(belief, sl.create("grr", size, 1.0).channel, "x", "u").mutual_information < 1e-12


@pytest.mark.parametrize("smoothing", [0.0, 5.0])
def test_matrices_hold_every_pair(rng: np.random.Generator, smoothing: float) -> None:
    names, sizes = ["a", "b", "c", "d"], (2, 3, 4, 2)
    cells = rng.integers(0, 4, size=sizes)
    cells[..., 1] = 0
    schema = sl.Schema(
        tuple(
            sl.categorical(name, [str(i) for i in range(size)])
            for name, size in zip(names, sizes, strict=True)
        )
    )
    belief = sl.Belief.from_counts(sl.Counts(schema, cells), smoothing=smoothing)
    pearson, plain = correlation_matrix(belief), mutual_information_matrix(belief)
    normalised = mutual_information_matrix(belief, normalised=True)
    joint = (cells + smoothing / cells.size) / (cells.sum() + smoothing)
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            assert pearson[i, j] == pytest.approx(pearson_correlation(belief, first, second), abs=1e-12)
            assert plain[i, j] == pytest.approx(mutual_information(belief, first, second), abs=1e-12)
            assert normalised[i, j] == pytest.approx(
                normalised_mutual_information(belief, first, second), abs=1e-12
            )
            if i < j:
                others = tuple(axis for axis in range(4) if axis not in (i, j))
                assert plain[i, j] == pytest.approx(information(joint.sum(axis=others)), abs=1e-12)
    if smoothing == 0:
        assert not pearson[3].any(), "a constant attribute correlates with nothing"
        assert not normalised[3].any()
    else:
        codes = np.stack([axis.ravel() for axis in np.indices(sizes)])
        covariance = np.cov(codes, aweights=joint.ravel(), ddof=0)
        spread = np.sqrt(np.diag(covariance))
        assert pearson == pytest.approx(covariance / np.outer(spread, spread), abs=1e-12)


def test_channels_that_cannot_be_listed_say_so() -> None:
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["x", "u"])
    with pytest.raises(
        sl.InputError,
        match="reports of 'u' .2 values. cannot be listed.*only the budget is known",
    ):
        average_leakage(belief, AnyChannel(2, 1.0), "x", "u")
    large = sl.Belief.from_joint(np.full((2, 40), 1 / 80), ["x", "u"])
    with pytest.raises(sl.InputError, match="reports of 'u' .40 values. cannot be listed; use a mechanism"):
        average_leakage(large, FavouringChannel(40, "all", 0.5), "x", "u")
    with pytest.raises(sl.InputError, match="read the table with schema=plan.schema"):
        average_leakage(belief, sl.create("grr", 3, 1.0).channel, "x", "u")
    with pytest.raises(sl.InputError, match="there is no attribute 'y'"):
        average_leakage(belief, sl.create("grr", 2, 1.0).channel, "y", "u")
