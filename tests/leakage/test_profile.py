"""Privacy profiles against every event of small channels, and the pairs for approximate LDP."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import conditional, random_joint, subsets
from sidelight.leakage.profile import (
    approximate_pair,
    delta_at,
    epsilon_at,
    privacy_profile,
    profile_epsilon,
    published_approximate_pair,
)
from sidelight.mechanisms import AnyChannel, DenseChannel, FavouringChannel

SEEDS = st.integers(0, 2**32 - 1)
EPSILONS = (0.0, 1e-6, 0.1, 1.0, 3.0)


def worst_event(rows: np.ndarray, epsilon: float) -> float:
    """The largest Pr(event | x) - e^epsilon Pr(event | x') over all events and ordered pairs."""
    return max(
        math.fsum(float(g[y]) for y in event) - math.exp(epsilon) * math.fsum(float(h[y]) for y in event)
        for g, h in product(rows, rows)
        for event in subsets(rows.shape[1])
    )


def random_channel(rng: np.random.Generator, size: int, epsilon: float) -> tuple[np.ndarray, float]:
    """A channel of at most 5 reports, and the smallest delta with which it is (epsilon, delta)-LDP."""
    reports = int(rng.integers(2, 6))
    cells = math.e ** rng.uniform(0, epsilon / 2, size=(size, reports))
    cells /= cells.sum(axis=1, keepdims=True)
    revealed = rng.dirichlet(np.full(reports, 0.2), size=size)
    if rng.random() < 0.5:
        revealed = np.eye(reports)[rng.integers(reports, size=size)]
    share = float(rng.choice([0.0, 1e-3, 0.05, 0.5, 1.0]))
    cells = (1 - share) * cells + share * revealed
    return cells, max(worst_event(cells, epsilon), 0.0)


def check_profile(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 4, size=2))
    joint = random_joint(rng, shape)
    if len(conditional(joint, 0)) < 2:
        return
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    epsilon = float(rng.choice(EPSILONS))
    cells, delta = random_channel(rng, shape[1], epsilon)
    channel = DenseChannel(cells)
    rows = np.array([row for row in joint if row.sum() > 0])
    rows = rows / rows.sum(axis=1, keepdims=True) @ cells
    for level in (0.0, 0.3, 1.0, epsilon):
        found = privacy_profile(belief, channel, "x", "u", level)
        assert found.delta == pytest.approx(worst_event(rows, level), abs=1e-12)
    for allowed in (0.0, 1e-4, 0.01, 0.3, 1.0):
        point = profile_epsilon(belief, channel, "x", "u", allowed)
        if math.isfinite(point.epsilon):
            assert point.delta <= allowed * (1 + 1e-11)
            assert worst_event(rows, point.epsilon) <= allowed + 1e-12
        if point.epsilon > 1e-6:
            below = min(point.epsilon, 50.0) * (1 - 1e-9) - 1e-12
            assert worst_event(rows, below) > allowed - 1e-12, "a smaller epsilon would do"
    assert profile_epsilon(belief, channel, "x", "u", 0.0).epsilon == pytest.approx(
        sl.pair_leakage(belief, channel, "x", "u").value, abs=1e-9
    )
    tight = approximate_pair(belief, epsilon, min(delta, 1.0), "x", "u")
    assert worst_event(rows, tight.value) <= tight.delta + 1e-12, "the tight pair is violated"
    published = published_approximate_pair(belief, epsilon, min(delta, 1.0), "x", "u")
    assert published.value == tight.value
    assert published.delta >= tight.delta - 1e-9  # pairs that tie but for rounding differ in S*
    assert (tight.upper.kind, published.upper.kind) == ("certified", "published")
    if epsilon > 1e-3:
        closed = min(delta, 1.0) * math.expm1(tight.value) / math.expm1(epsilon)
        assert tight.delta == pytest.approx(closed, abs=1e-9)


@given(SEEDS)
@settings(max_examples=10)
def test_profiles_and_pairs_hold_for_every_event(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        check_profile(rng)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_many_profiles_and_pairs_hold_for_every_event(seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    for _ in range(1000):
        check_profile(rng)


def test_the_tight_pair_is_reached() -> None:
    """The worst release of an event: certain for the favoured values with delta, else never."""
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    belief = sl.Belief.from_joint(rows / 2, ["x", "u"])
    delta = 0.1
    for epsilon in (0.0, 1.0):
        tight = approximate_pair(belief, epsilon, delta, "x", "u")
        reached = 0.0
        for favoured in subsets(3):
            cells = np.array([[delta, 1 - delta] if u in favoured else [0.0, 1.0] for u in range(3)])
            reached = max(reached, delta_at(rows @ cells, tight.value)[0])
        assert reached == pytest.approx(tight.delta, abs=1e-12)
    assert approximate_pair(belief, 0.0, delta, "x", "u").delta == pytest.approx(delta * 0.6)
    assert approximate_pair(belief, 0.0, delta, "x", "u").value == 0


def test_the_tight_pair_is_much_smaller_than_the_published_one() -> None:
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(300):
        joint = rng.dirichlet(np.full(8, 5.0)).reshape(2, 4)
        belief = sl.Belief.from_joint(joint, ["x", "u"])
        tight = approximate_pair(belief, 0.5, 0.01, "x", "u")
        published = published_approximate_pair(belief, 0.5, 0.01, "x", "u")
        ratios.append(published.delta / tight.delta)
    assert min(ratios) >= 1 - 1e-12
    assert np.mean(ratios) > 3, "weakly correlated attributes gain most"


def split_reveal() -> tuple[sl.Belief, DenseChannel]:
    """Nine times in ten the bit is revealed, as one of fifty equal reports; else randomised response."""
    cells = np.zeros((2, 102))
    cells[:, :2] = 0.1 * sl.create("grr", 2, 1.0).channel.matrix()
    cells[0, 2:52] = cells[1, 52:] = 0.9 / 50
    agree = 0.965
    joint = np.array([[agree, 1 - agree], [1 - agree, agree]]) / 2
    return sl.Belief.from_joint(joint, ["x", "u"]), DenseChannel(cells)


def test_a_delta_for_single_reports_understates() -> None:
    belief, channel = split_reveal()
    cells = channel.matrix()
    per_report = max(float((cells[i] - math.e * cells[1 - i]).max()) for i in (0, 1))
    assert per_report == pytest.approx(0.018)
    stated = published_approximate_pair(belief, 1.0, per_report, "x", "u")
    assert stated.delta == pytest.approx(0.0174, abs=1e-4)
    truth = privacy_profile(belief, channel, "x", "u", stated.value)
    assert truth.delta == pytest.approx(0.79, abs=5e-3)
    per_event = privacy_profile(belief, channel, "u", "u", 1.0).delta
    assert per_event == pytest.approx(0.9, abs=1e-9)
    assert approximate_pair(belief, 1.0, per_event, "x", "u").delta >= truth.delta - 1e-12


def test_what_is_ruled_out_outright_needs_an_infinite_epsilon() -> None:
    belief, channel = split_reveal()
    assert profile_epsilon(belief, channel, "u", "u", 0.89).epsilon == math.inf
    assert profile_epsilon(belief, channel, "u", "u", 0.9).epsilon == pytest.approx(1.0, abs=1e-6)
    assert privacy_profile(belief, channel, "u", "u", math.inf).delta == pytest.approx(0.9)
    nothing = privacy_profile(belief, FavouringChannel(2, "singletons", 1.0), "x", "u", 0.0)
    assert (nothing.delta, nothing.likelier) == (0.0, None)


def test_randomised_response_in_closed_form() -> None:
    belief = sl.Belief.from_joint(np.eye(2) / 2, ["x", "u"])
    channel = sl.create("grr", 2, 1.0).channel
    for level in (0.0, 0.5, 1.0):
        expected = (math.e - math.exp(level)) / (math.e + 1)
        assert privacy_profile(belief, channel, "x", "u", level).delta == pytest.approx(expected, abs=1e-9)
    point = profile_epsilon(belief, channel, "x", "u", 0.2)
    assert point.epsilon == pytest.approx(math.log(math.e - 0.2 * (math.e + 1)), abs=1e-9)
    assert {point.likelier, point.unlikelier} == {"0", "1"}
    assert epsilon_at(np.eye(2), 0.5)[0] == math.inf


def test_errors_say_what_to_do() -> None:
    belief, channel = split_reveal()
    with pytest.raises(sl.InputError, match="`delta` must be a probability, at most 1, got 1.5"):
        profile_epsilon(belief, channel, "x", "u", 1.5)
    with pytest.raises(sl.InputError, match="`epsilon` must be a number of at least 0, got -1"):
        privacy_profile(belief, channel, "x", "u", -1)
    with pytest.raises(sl.InputError, match="only the budget is known"):
        privacy_profile(belief, AnyChannel(2, 1.0), "x", "u", 1.0)
    with pytest.raises(sl.InputError, match="another attribute"):
        approximate_pair(belief, 1.0, 0.1, "x", "x")
