"""The certificate by betting: never below the truth but for its stated probability.

Releases are drawn from their enumerated laws, so that thousands of joints take seconds. Seeds are fixed; the
bounds on misses have a false-alarm rate of at most one in a million.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import enumeration
from release_cases import release_rows, report_table
from sidelight.leakage.divergence import epsilon_at, loss_epsilon
from sidelight.leakage.totals.certificate import DrawnRatios, Draws
from sidelight.plan import Release
from sidelight.schema import categorical

MECHANISMS = ("grr", "grr", "oue", "sue", "ss", "olh", "blh", "exp", "hadamard", "identity")
FALSE_ALARM = 1e-6


def random_rows(rng: np.random.Generator) -> np.ndarray:
    """Pr(release | value) of a random joint, with or without the secret's own report."""
    while True:
        shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(2, 4))))
        seen = range(int(rng.integers(2)), len(shape))
        names, budgets = rng.choice(MECHANISMS, size=len(shape)), rng.choice([0.2, 1.0, 3.0], size=len(shape))
        tables = {axis: _table(str(names[axis]), shape[axis], float(budgets[axis])) for axis in seen}
        rows = release_rows(enumeration.random_joint(rng, shape), tables, 0)
        if len(rows) > 1:
            return rows


@cache
def _table(name: str, size: int, epsilon: float) -> np.ndarray:
    """Pr(report | value) of the reports that can be sent."""
    attribute = categorical("x", [str(value) for value in range(size)])
    parameters = {"width": (size + 1) // 2} if name == "ss" else {}
    table = report_table(Release(attribute, name, None if name == "identity" else epsilon, 1, parameters))
    return table[:, table.any(axis=0)]


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
        enumeration.random_joint(rng, (2, 3, 3)), {1: _table("grr", 3, 2.0), 2: _table("oue", 3, 1.0)}, 0
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


def test_the_capital_reaches_what_is_wanted_at_the_figure_and_not_below() -> None:
    rng = np.random.default_rng(9)
    for beta in (0.05, 1e-6):
        rows = release_rows(enumeration.random_joint(rng, (3, 3)), {1: _table("grr", 3, 1.0)}, 0)
        draws = drawn(rows, 4000, rng)
        figure = draws.certified(0.05, beta)
        least, below = (_least_capital(draws, limit, 0.05, beta) for limit in (figure, figure * 0.999))
        assert least >= -math.log(beta) > below


def _least_capital(draws: Draws, limit: float, delta: float, beta: float) -> float:
    """The logarithm of the least capital of all pairs, draw by draw."""
    stakes = [draws._stakes(number, delta, -math.log(beta)) for number in (1, 2)]
    totals = []
    for pair in draws.blocks[0]:
        total = 0.0
        for block, stake in zip(draws.blocks, (0.5, stakes[0][pair], stakes[1][pair]), strict=True):
            total += math.log1p(stake * delta) * (block[pair].count - len(block[pair].tail))
            for ratio in block[pair].tail:
                total += math.log1p(stake * (delta - max(0.0, 1 - math.exp(limit - ratio))))
        totals.append(total)
    return min(totals)


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


def test_losses_beyond_doubles_are_not_passed_over() -> None:
    """e^720 is no double; the crossing is where .02 + .03 (1 - e^(L - 720)) is .04."""
    figure = loss_epsilon(np.array([800.0, 720.0, 1.0]), np.array([0.02, 0.03, 0.95]), 0.04)
    assert figure == pytest.approx(720 - math.log(3), rel=1e-12)
    infinite = np.array([math.inf, math.inf, 1.0])
    assert loss_epsilon(infinite, np.array([0.02, 0.03, 0.95]), 0.01) == math.inf
    figure = loss_epsilon(infinite, np.array([0.02, 0.0, 0.98]), 0.03)
    assert figure == pytest.approx(1 + math.log(0.97 / 0.98))


def test_a_ratio_that_is_lost_counts_as_infinite() -> None:
    draws = DrawnRatios.of(np.array([0.1, math.nan, 2.0, -1.0]), 0.5)
    assert draws.tail.tolist() == [2.0, math.inf]
    assert draws.count == 4
