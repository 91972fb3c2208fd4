"""Estimates over people who chose different levels of privacy."""

from __future__ import annotations

import numpy as np
import pytest

import sidelight as sl
from sidelight.estimation import combine_levels
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Aggregate

BUDGETS = (0.5, 1.0, 2.0)
SIGMAS = 6.0  # two-sided 2e-9 each; a dozen such comparisons are made


def level_of(epsilon: float, frequencies: list[float], people: int, seed: int | None = None):
    """Return a level's mechanism and sums, of simulated reports or as they are on average."""
    mechanism = sl.create("grr", len(frequencies), epsilon)
    counts = np.round(np.array(frequencies) * people).astype(int)
    codes = np.repeat(np.arange(len(counts)), counts)
    return mechanism, mechanism.aggregate(mechanism.randomise(codes, seed=seed))


def on_average(epsilon: float, frequency: float, people: int):
    """Return a level's mechanism, and the sums whose estimate is the truth but for rounding."""
    mechanism = sl.create("grr", 4, epsilon)
    p, q = map(float, mechanism.mark_rates)
    truth = np.array([frequency, *[(1 - frequency) / 3] * 3])
    sums = np.round(people * (truth * p + (1 - truth) * q)).astype(np.int64)
    sums[-1] += people - sums.sum()
    return mechanism, Aggregate(people, sums, "grr")


def test_weights_of_least_variance_are_wrong_where_the_level_depends_on_the_value():
    """Frequencies .4, .2, .1 in levels of 5:3:2 people (refereed): the truth is .28, and 1/v gives .132."""
    levels = [
        on_average(epsilon, frequency, people)
        for epsilon, frequency, people in zip(
            BUDGETS, (0.4, 0.2, 0.1), (5_000_000, 3_000_000, 2_000_000), strict=True
        )
    ]
    safe = combine_levels(levels)
    assert safe.frequencies[0] == pytest.approx(0.28, abs=1e-5)
    assert safe.weights == pytest.approx([0.5, 0.3, 0.2])
    assert combine_levels(levels, independent=True).frequencies[0] == pytest.approx(0.132, abs=5e-4)


@pytest.mark.parametrize("independent", [False, True])
def test_errors_are_as_large_as_stated(independent: bool):
    truth, people, runs = [0.5, 0.3, 0.2], (2000, 3000, 1000), 400
    draws = np.random.default_rng(5)
    errors, stated = [], []
    for run in range(runs):
        levels, mean = [], np.zeros(3)
        for place, (epsilon, count) in enumerate(zip(BUDGETS, people, strict=True)):
            shares = draws.multinomial(count, truth) / count
            mean += shares * count / sum(people)
            levels.append(level_of(epsilon, shares.tolist(), count, seed=3 * run + place))
        made = combine_levels(levels, independent=independent)
        errors.append(made.frequencies - (truth if independent else mean))
        stated.append(made.standard_errors)
    spread, said = np.sqrt(np.mean(np.square(errors), axis=0)), np.mean(stated, axis=0)
    assert np.all(np.abs(spread / said - 1) < SIGMAS / np.sqrt(2 * runs))
    assert np.all(np.abs(np.mean(errors, axis=0)) < SIGMAS * said / np.sqrt(runs))


def test_weights_of_least_variance_win_where_levels_are_independent_of_values():
    levels = [level_of(epsilon, [0.5, 0.3, 0.2], 3000, seed=7) for epsilon in BUDGETS]
    best, safe = combine_levels(levels, independent=True), combine_levels(levels)
    assert np.all(best.standard_errors < 0.75 * safe.standard_errors)
    for weights in np.random.default_rng(1).dirichlet([1, 1, 1], 200):
        variance = [m.variance(part.reports, np.zeros(3)).mean() for m, part in levels]
        assert weights**2 @ variance >= best.weights**2 @ variance - 1e-12


def test_one_level_is_its_own_estimate():
    mechanism, sums = level_of(1.0, [0.5, 0.3, 0.2], 1000, seed=3)
    for independent in (False, True):
        made = combine_levels([(mechanism, sums)], independent=independent)
        assert made.frequencies == pytest.approx(mechanism.estimate(sums))
        assert made.weights.tolist() == [1.0]


def test_bad_levels_are_refused():
    three, four = level_of(1.0, [0.5, 0.3, 0.2], 10, seed=1), level_of(1.0, [0.25] * 4, 8, seed=1)
    for levels in ([], [three, four]):
        with pytest.raises(InputError, match="at least one, all over the same values"):
            combine_levels(levels)
    with pytest.raises(InputError, match="a level has no reports; leave it out"):
        combine_levels([three, (three[0], Aggregate(0, np.zeros(3, dtype=np.int64), "grr"))])
