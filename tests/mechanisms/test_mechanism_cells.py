"""Numbers in cells: the law of a cell by enumeration and integration, its inverse, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2

import sidelight as sl
from sidelight.mechanisms import Aggregate, binned_numbers, create
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.mechanisms.exponential import inversion_variance

SHARES = np.array([0.4, 0.1, 0.2, 0.3])
RANGE = {"lower": -1, "upper": 2, "points": [-1.0, 0.0, 0.5, 2.0]}
NOISES = {"laplace": RANGE, "gaussian": RANGE | {"delta": 1e-3}, "discrete-laplace": RANGE | {"grid": 0.25}}


def celled(name: str, epsilon: float = 2.0) -> BinnedNumbers:
    return BinnedNumbers(create(name, 4, epsilon, **NOISES[name]))


def test_the_law_of_discrete_noise_is_the_enumerated_one() -> None:
    """Every whole step of noise within 4,000, one after the other, put into its cell by comparison."""
    mechanism = celled("discrete-laplace")
    ratio = math.exp(-1 / mechanism.noise.scale)
    expected = np.zeros_like(mechanism.law)
    for code, place in enumerate([0, 4, 6, 12]):
        for noise in range(-4000, 4001):
            cell = sum(place + noise >= cut for cut in mechanism.cuts)
            expected[code, cell] += (1 - ratio) / (1 + ratio) * ratio ** abs(noise)
    np.testing.assert_allclose(mechanism.law, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_law_of_fine_noise_is_the_integral_of_its_density(name: str) -> None:
    mechanism = celled(name)
    channel, noise = mechanism.channel, mechanism.noise
    ends = [-150.0, *(noise.lower + mechanism.cuts * noise.step), 150.0]
    for code in range(4):
        cells = [
            quad(lambda y, code=code: math.exp(channel.log_density([y])[0, code]), low, high)[0]
            for low, high in pairwise(ends)
        ]
        np.testing.assert_allclose(mechanism.law[code], cells, atol=1e-6)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("seed", [3, None])
def test_reports_fall_into_cells_by_the_stated_law(name: str, seed: int | None) -> None:
    """Chi-squared of reports of one value; each fails by chance less than once in 10^6 runs."""
    if seed is None:
        pytest.importorskip("opendp", reason="noise for people needs the extra `numeric`")
    mechanism = celled(name)
    count = 50_000 if seed else 5_000
    reports = mechanism.randomise(np.full(count, 2), seed=seed)
    assert reports.is_simulation == (seed is not None)
    expected = mechanism.law[2] * count
    seen = mechanism.aggregate(reports).sums[:-1]
    kept = expected > 5
    rest = expected[~kept].sum()
    statistic = float(((seen - expected)[kept] ** 2 / expected[kept]).sum())
    assert statistic < chi2.isf(1e-6, int(kept.sum()))
    assert seen[~kept].sum() <= rest + 6 * math.sqrt(rest) + 6


@given(
    name=st.sampled_from(sorted(NOISES)),
    epsilon=st.floats(0.3, 12),
    size=st.integers(2, 6),
    lower=st.integers(-50, 50),
    seed=st.integers(0, 10**6),
)
def test_the_inverse_undoes_the_law_and_keeps_the_total(name, epsilon, size, lower, seed) -> None:
    points = lower + np.random.default_rng(seed).choice(40, size, replace=False).astype(float)
    extra = {"delta": 1e-2} if name == "gaussian" else {}
    noise = create(name, size, epsilon, lower=lower, upper=lower + 40, points=points, **extra)
    try:
        mechanism = BinnedNumbers(noise)
    except sl.InputError:
        assert name == "gaussian", "only Gaussian noise hides values beyond what doubles hold"
        return
    np.testing.assert_allclose(mechanism.law.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(mechanism.inverse @ mechanism.law.T, np.eye(size), atol=1e-6)
    used = mechanism.law.max(axis=0) > 1e-12
    weight = np.abs(mechanism.inverse).max()
    np.testing.assert_allclose(mechanism.inverse.sum(axis=0)[used], 1, atol=1e-9 * weight)
    assert np.all(np.diff(mechanism.cuts) > 0)
    assert len(mechanism.cuts) < 64


def finer(noise) -> np.ndarray:
    """The law of ever finer cells: 16 times as many in a gap, and twice as far beyond the points."""
    points = np.unique(noise.point_steps)
    inner = np.interp(np.arange(64 * (len(points) - 1) + 1) / 64, np.arange(len(points)), points)
    tail = np.linspace(0, 8 * noise.scale, 257) if noise.name == "gaussian" else np.zeros(1)
    cuts = np.unique(np.rint(np.concatenate([points[0] - tail, inner, points[-1] + tail])))
    return binned_numbers.cell_law(noise, cuts.astype(np.int64))


@pytest.mark.parametrize(
    ("name", "size", "epsilon", "most"),
    [
        ("laplace", 2, 0.5, 1.05),
        ("laplace", 5, 1.0, 1.05),
        ("laplace", 10, 8.0, 1.05),
        ("laplace", 30, 1.0, 1.05),
        ("laplace", 30, 12.0, 1.05),
        ("gaussian", 2, 0.5, 1.05),
        ("gaussian", 4, 4.0, 1.05),
        ("gaussian", 6, 16.0, 1.05),
        ("gaussian", 16, 200.0, 1.05),
        ("laplace", 257, 4.0, 1.25),
    ],
)
def test_cells_lose_as_little_as_stated(name: str, size: int, epsilon: float, most: float) -> None:
    """Summed variances at equal frequencies, against cells that are as good as the numbers themselves."""
    extra = {"delta": 1e-3} if name == "gaussian" else {}
    noise = create(name, size, epsilon, lower=0, upper=1, **extra)
    even = np.full(size, 1 / size)
    fine = (
        finer(noise)
        if size < 100
        else binned_numbers.cell_law(noise, np.arange(4 * size - 3) * (noise.range_steps // (4 * size - 4)))
    )
    best = inversion_variance(binned_numbers.cell_inverse(noise, fine), fine, 1, even).sum()
    assert name == "laplace" or best < 1e6
    assert best * (1 - 1e-9) <= BinnedNumbers(noise).variance(1, even).sum() < most * best


def test_what_is_kept_of_a_mechanism_stays_with_it_and_is_not_written_to() -> None:
    mechanism = celled("laplace")
    law = mechanism.law
    binned_numbers.cell_view.cache_clear()
    assert mechanism.law is law
    for array in (mechanism.cuts, mechanism.law, mechanism.inverse):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_wanted_delta_is_stated_where_the_realised_one_rounds_down() -> None:
    noise = create("gaussian", 2, 1e-5, lower=0, upper=1, delta=1e-12)
    assert noise.delta < 1e-12 == BinnedNumbers(noise).delta
    assert celled("laplace").delta == 0.0


@pytest.mark.parametrize("name", NOISES)
def test_estimates_are_exact_where_counts_are_as_expected(name: str) -> None:
    mechanism = celled(name)
    many = 10**15
    counts = np.rint(SHARES @ mechanism.law * many).astype(np.int64)
    sums = Aggregate(many, np.append(counts, 0), "numbers")
    np.testing.assert_allclose(mechanism.estimate(sums), SHARES, atol=1e-9)
    np.testing.assert_allclose(mechanism.spread(sums), mechanism.variance(many, SHARES), rtol=1e-5)


@pytest.mark.parametrize("name", NOISES)
def test_the_variance_is_that_of_one_weight_for_each_report(name: str) -> None:
    mechanism = celled(name)
    chance = SHARES @ mechanism.law
    mean = mechanism.inverse @ chance
    spread = ((mechanism.inverse - mean[:, None]) ** 2) @ chance
    np.testing.assert_allclose(mechanism.variance(7, SHARES), spread / 7, rtol=1e-9)
