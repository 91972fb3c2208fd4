"""The certificate by betting: never below the truth but for its stated probability.

Releases are drawn from their enumerated laws, so that thousands of joints take seconds. Seeds are fixed; the
bounds on misses have a false-alarm rate of at most one in a million.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import enumeration
from release_cases import release_rows
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals.certificate import DrawnRatios, Draws

FALSE_ALARM = 1e-6


def random_rows(rng: np.random.Generator) -> np.ndarray:
    """Pr(release | value) of a random joint, its attributes reported by randomised response or exactly."""
    while True:
        shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(2, 4))))
        seen = range(int(rng.integers(2)), len(shape))  # with the secret's own report, or without
        budgets = rng.choice([0.2, 1.0, 3.0, math.inf], size=len(shape), p=[0.3, 0.4, 0.2, 0.1])
        tables = {axis: _response(shape[axis], float(budgets[axis])) for axis in seen}
        rows = release_rows(enumeration.random_joint(rng, shape), tables, 0)
        if len(rows) > 1:
            return rows


def _response(size: int, epsilon: float) -> np.ndarray:
    return np.eye(size) if math.isinf(epsilon) else enumeration.randomised_response(size, epsilon)


def drawn(rows: np.ndarray, count: int, rng: np.random.Generator, floor: float = 0.0) -> Draws:
    """Draws given each value, in blocks."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(rows[:, None]) - np.log(rows)
    reach = [rng.choice(rows.shape[1], size=count, p=row / row.sum()) for row in rows]
    blocks = []
    for part in (slice(0, count // 16), slice(count // 16, count // 4), slice(count // 4, count)):
        pairs = permutations(range(len(rows)), 2)
        blocks.append({(i, j): DrawnRatios.of(ratios[i, j][reach[i][part]], floor) for i, j in pairs})
    return Draws(tuple(blocks), count, floor)


def misses(seed: int, joints: int, draws: int = 500) -> dict[float, tuple[int, int]]:
    """By beta: how many figures lay below the truth, of how many whose truth is above 0."""
    rng = np.random.default_rng(seed)
    counts = {0.05: [0, 0], 1e-6: [0, 0]}
    for _ in range(joints):
        rows = random_rows(rng)
        delta = float(rng.choice([0.3, 0.1, 0.05]))
        truth = enumeration.leakage_at(rows, delta)
        assert enumeration.is_leakage_at(rows, epsilon_at(rows, delta)[0], delta)
        releases = drawn(rows, draws, rng)
        for beta, count in counts.items():
            count[0] += releases.certified(delta, beta) < truth - 1e-9
            count[1] += truth > 0
    return {beta: (low, all_) for beta, (low, all_) in counts.items()}


def assert_rare(counts: dict[float, tuple[int, int]]) -> None:
    for beta, (low, tried) in counts.items():
        assert low <= stats.binom.isf(FALSE_ALARM, tried, beta), (beta, low, tried)


def test_figures_are_below_the_truth_as_rarely_as_stated() -> None:
    assert_rare(misses(1, 300))


@pytest.mark.deep
@pytest.mark.parametrize("part", range(50))
def test_figures_are_below_the_truth_as_rarely_as_stated_for_100000_joints(part: int) -> None:
    """Exact figures to 1e-9 and certified ones, 2,000 joints a part."""
    assert_rare(misses(1000 + part, 2000))


def test_the_certificate_narrows_towards_the_truth() -> None:
    rng = np.random.default_rng(3)
    rows = release_rows(
        enumeration.random_joint(rng, (2, 3, 3)), {1: _response(3, 2.0), 2: _response(3, 1.0)}, 0
    )
    truth = enumeration.leakage_at(rows, 0.05)
    few, many = (drawn(rows, count, rng).certified(0.05, 1e-6) for count in (2_000, 200_000))
    assert truth < many < few
    assert many == pytest.approx(truth, rel=0.05)


def test_a_floor_changes_no_figure_above_it() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        rows = random_rows(rng)
        seed = int(rng.integers(1 << 30))
        whole = drawn(rows, 1000, np.random.default_rng(seed))
        figure, estimate = whole.certified(0.1, 0.01), whole.estimated(0.1)[0]
        if not 0 < estimate <= figure < math.inf:
            continue
        cut = drawn(rows, 1000, np.random.default_rng(seed), estimate / 2)
        assert cut.certified(0.1, 0.01) == pytest.approx(figure, rel=1e-3)
        assert cut.estimated(0.1)[0] == pytest.approx(estimate, abs=1e-12)


def test_stakes_ignore_the_draws_they_are_laid_on() -> None:
    """Whatever the last block holds, its stakes are the same: else the proof would not hold."""
    rng = np.random.default_rng(5)
    rows = random_rows(rng)
    draws = drawn(rows, 1000, rng)
    loud = {
        pair: DrawnRatios(np.full(part.count, math.inf), part.count) for pair, part in draws.blocks[2].items()
    }
    other = Draws((*draws.blocks[:2], loud), draws.planned, draws.floor)
    assert draws._stakes(2, 0.05, 10.0) == other._stakes(2, 0.05, 10.0)


def test_the_best_stake_grows_the_capital_most() -> None:
    rng = np.random.default_rng(6)
    grid = np.linspace(0, 1, 501)
    for _ in range(60):
        ratios = DrawnRatios.of(rng.normal(rng.uniform(0, 1), rng.uniform(0.3, 2), size=300), 0.0)
        limit, delta = rng.uniform(0, 2), float(rng.choice([0.3, 0.05, 1e-3]))
        best = max(ratios.growth(limit, delta, stake) for stake in grid)
        assert ratios.growth(limit, delta, ratios.best_stake(limit, delta)) >= best - 1e-4 * max(1, abs(best))


def test_too_few_draws_certify_nothing() -> None:
    quiet = Draws(({(0, 1): DrawnRatios.of(np.zeros(1000), 0.0)},), 1000, 0.0)
    assert quiet.certified(1e-3, 1e-6) == math.inf
    assert quiet.certified(0.1, 1e-6) == 0.0
