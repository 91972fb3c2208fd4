"""The optimal channel: under its limits by brute force, never below any mechanism under the same limits."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration
import sidelight as sl
from sidelight.mechanisms import DenseChannel, create


def leak(joint: np.ndarray, cells: np.ndarray, axis: int, secret: int) -> float:
    return enumeration.total(joint, {axis: cells}, secret)


def check(seed: int, limit: float, epsilon: float | None) -> None:
    rng = np.random.default_rng(seed)
    joint = enumeration.random_joint(rng, (int(rng.integers(2, 5)), int(rng.integers(2, 4)), 2))
    belief = sl.Belief.from_joint(joint, ["u", "s", "t"])
    found = sl.calibration.optimal_channel(belief, "u", {"s": limit, "t": 2 * limit}, epsilon=epsilon)
    cells = found.channel.cells
    assert np.allclose(cells.sum(axis=1), 1, atol=1e-12)
    assert leak(joint, cells, 0, 1) <= limit * (1 + 1e-9) + 1e-12
    assert leak(joint, cells, 0, 2) <= 2 * limit * (1 + 1e-9) + 1e-12
    if epsilon is not None:
        assert found.channel.epsilon <= epsilon * (1 + 1e-9)
    prior = belief.prior("u")
    assert found.utility == pytest.approx(float(prior @ np.diag(cells)))
    assert found.utility <= found.bound + 1e-7
    assert found.utility >= found.bound - 1e-6, "what is mixed in for safety costs next to nothing"
    assert found.utility >= prior.max() - 1e-6, "always guessing the commonest value leaks nothing"
    assert found.utility >= found.response_best - 1e-6 >= found.response_utility - 2e-6
    for name in ("grr", "hadamard", "interval"):
        other = largest(belief, name, len(prior), found)
        assert found.utility >= float((prior[:, None] * other).max(axis=0).sum()) - 1e-6


def largest(belief: sl.Belief, name: str, size: int, found: sl.calibration.OptimalChannel) -> np.ndarray:
    """The channel of a mechanism at the largest budget of a grid that keeps the same limits."""
    best = np.full((size, size), 1 / size)
    for budget in np.linspace(0.05, 4, 20):
        channel = create(name, size, budget).channel
        leaks = [sl.pair_leakage(belief, channel, s, "u").value - limit for s, limit in found.limits.items()]
        if max(leaks) <= 0 and channel.epsilon <= found.epsilon:
            best = channel.matrix()
    return best


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.3, 1.0]), st.sampled_from([None, 0.5, 2.0]))
def test_the_optimal_channel_keeps_its_limits_and_beats_mechanisms(seed, limit, epsilon) -> None:
    check(seed, limit, epsilon)


@pytest.mark.deep
@settings(max_examples=2000)
@given(st.integers(0, 2**32), st.floats(0.01, 3), st.one_of(st.none(), st.floats(0.1, 4)))
def test_the_optimal_channel_in_thousands_of_cases(seed, limit, epsilon) -> None:
    check(seed, limit, epsilon)


def test_without_correlation_it_tells_the_truth() -> None:
    belief = sl.Belief.from_joint(np.full((3, 2), 1 / 6), ["u", "s"])
    found = sl.calibration.optimal_channel(belief, "u", {"s": 0.01})
    assert found.utility == pytest.approx(1)
    assert found.response_epsilon > 15


def test_the_attribute_itself_as_the_secret_gives_randomised_response() -> None:
    belief = sl.Belief.from_joint(np.full((3, 2), 1 / 6), ["u", "s"])
    found = sl.calibration.optimal_channel(belief, "u", {"u": 1.0})
    assert found.utility == pytest.approx(math.e / (math.e + 2))
    assert found.response_utility == pytest.approx(found.utility, abs=1e-6)
    budget = sl.calibration.optimal_channel(belief, "u", {}, epsilon=1.0)
    assert budget.utility == pytest.approx(found.utility)


def test_a_tiny_limit_leaves_next_to_nothing_but_the_best_guess() -> None:
    joint = np.array([[0.3, 0.1], [0.2, 0.4]])
    found = sl.calibration.optimal_channel(sl.Belief.from_joint(joint, ["u", "s"]), "u", {"s": 1e-6})
    assert found.utility == pytest.approx(0.6, abs=1e-4)
    assert leak(joint, found.channel.cells, 0, 1) <= 1e-6 * (1 + 1e-9)


def test_another_utility_with_fewer_reports_than_values() -> None:
    joint = np.array([[0.2, 0.05], [0.15, 0.1], [0.1, 0.15], [0.05, 0.2]])
    belief = sl.Belief.from_joint(joint, ["u", "s"])
    halves = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    found = sl.calibration.optimal_channel(belief, "u", {"s": 0.4}, utility=halves)
    assert found.channel.cells.shape == (4, 2)
    assert leak(joint, found.channel.cells, 0, 1) <= 0.4 + 1e-9
    assert found.utility > found.response_best
    assert math.isnan(found.response_utility)


def test_cholesterol_reported_cardio_secret(data) -> None:
    cells = sl.read(str(data / "cardio.parquet")).counts(["cholesterol", "cardio"])[0]
    belief = sl.Belief.from_counts(cells)
    for limit in (0.1, 0.3, 0.7):
        found = sl.calibration.optimal_channel(belief, "cholesterol", {"cardio": limit})
        assert found.leakage["cardio"].value <= limit * (1 + 1e-9)
        assert found.utility > found.response_best + 0.005
        assert found.utility > found.response_utility + 0.05


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limits": {}}, "needs a limit or an `epsilon`"),
        ({"limits": {"x": 1.0}}, "there is no attribute 'x'"),
        ({"limits": {"s": 0}}, "`limit of s` must be a finite number above 0"),
        ({"limits": {"s": 1.0}, "epsilon": 0}, "`epsilon` must be"),
        ({"limits": {"s": 1.0}, "utility": [[1, 0]]}, "`utility` must be a finite matrix of 2 rows"),
        ({"limits": {"s": 1.0}, "utility": "foo"}, "`utility` must be a finite matrix of 2 rows"),
        ({"limits": {"s": 1.0}, "utility": [[1, math.nan]] * 2}, "some cells are not finite"),
        ({"limits": [1.0]}, "`limits` must be a mapping from attributes"),
        ({"limits": {"s": 1.0}, "attribute": "x"}, "there is no attribute 'x'"),
    ],
)
def test_bad_input(arguments, words: str) -> None:
    belief = sl.Belief.from_joint([[0.3, 0.1], [0.2, 0.4]], ["u", "s"])
    with pytest.raises(sl.InputError) as caught:
        sl.calibration.optimal_channel(belief, **({"attribute": "u"} | arguments))
    assert words in str(caught.value)


@pytest.mark.parametrize("limit", [1e-6, 1e-3, 0.1])
def test_the_optimal_channel_is_never_worse_than_a_constant(limit: float) -> None:
    belief = sl.Belief.from_joint([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]], ["diagnosis", "symptom"])
    found = sl.calibration.optimal_channel(belief, "symptom", {"diagnosis": limit})
    assert found.utility >= belief.prior("symptom").max() - 1e-9


@pytest.mark.parametrize(("limit", "epsilon"), [(0.01, None), (0.5, None), (0.5, 1.0), (2.0, None)])
def test_the_optimal_channel_as_a_release(limit: float, epsilon: float | None) -> None:
    joint = np.array([[0.30, 0.10], [0.10, 0.15], [0.05, 0.30]])
    belief = sl.Belief.from_joint(joint, ["symptom", "diagnosis"])
    best = sl.calibration.optimal_channel(belief, "symptom", {"diagnosis": limit}, epsilon=epsilon)
    release = best.release()
    cells = release.channel().matrix()
    assert np.abs(cells - best.channel.cells).max() < 1e-6
    assert leak(joint, cells, 0, 1) <= limit * (1 + 1e-12)
    assert release.channel().epsilon <= best.epsilon
    plan = sl.Plan((release,), limits={"symptom": math.inf, "diagnosis": limit})
    assert sl.Plan.from_toml(plan.to_toml()) == plan
    assert sl.audit(belief, plan).is_within
    values = np.repeat(np.arange(3, dtype=np.uint8), 20_000)
    reports = release.randomiser().randomise(values, seed=4).values
    seen = np.array([np.bincount(reports[values == value], minlength=3) for value in range(3)]) / 20_000
    assert np.abs(seen - cells).max() < 5 * 0.5 / math.sqrt(20_000), "nine cells, each off with 6e-7 at most"


def test_a_channel_that_tells_nothing_is_withheld_instead() -> None:
    belief = sl.Belief.from_joint([[0.45, 0.45], [0.06, 0.04]], ["u", "s"])
    found = sl.calibration.optimal_channel(belief, "u", {"s": 1e-4})
    found = dataclasses.replace(found, channel=DenseChannel(np.array([[1.0, 0.0], [1.0, 0.0]])))
    with pytest.raises(sl.InputError, match="tells next to nothing under these limits; withhold it"):
        found.release()
