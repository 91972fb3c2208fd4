"""Randomised response and the foundation of randomness it stands on."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import sidelight as sl
from sidelight.foundation.randomness import Secure, randomness
from sidelight.mechanisms.grr import RandomisedResponse


@given(st.integers(2, 65_536), st.floats(1e-6, 40))
def test_the_realised_budget_never_exceeds_the_nominal_one(size: int, epsilon: float) -> None:
    mechanism = RandomisedResponse(size, epsilon)
    assert mechanism.truth + (size - 1) * mechanism.other == 2**64
    assert mechanism.truth >= mechanism.other
    with localcontext() as context:
        context.prec = 60
        odds = Decimal(epsilon).exp()
        assert Decimal(mechanism.truth) <= odds * mechanism.other
        one_less = mechanism.other - 1
        assert one_less == 0 or Decimal(2**64 - (size - 1) * one_less) > odds * one_less
    assert mechanism.epsilon <= epsilon


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (5, 0.5), (7, 3.0)])
@pytest.mark.parametrize("seed", [3, None])
def test_reports_follow_the_stated_channel(size: int, epsilon: float, seed: int | None) -> None:
    mechanism = RandomisedResponse(size, epsilon)
    rows = 40_000
    for value in range(size):
        reports = mechanism.randomise(np.full(rows, value), seed=seed, offset=value * rows)
        expected = mechanism.channel.matrix()[value] * rows
        # 28 tests of at most 1e-8 each: a false alarm below 1e-6
        assert stats.chisquare(np.bincount(reports, minlength=size), expected).pvalue > 1e-8


def test_chunks_of_a_seeded_stream_agree_and_seedless_ones_differ(rng) -> None:
    mechanism = RandomisedResponse(4, 1.0)
    values = rng.integers(0, 4, size=1000)
    whole = mechanism.randomise(values, seed=9)
    parts = [mechanism.randomise(values[i : i + 300], seed=9, offset=i) for i in range(0, 1000, 300)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(mechanism.randomise(values, seed=10), whole)
    assert not np.array_equal(mechanism.randomise(values), mechanism.randomise(values))
    assert len(mechanism.randomise([])) == 0


def test_estimates_are_unbiased_and_merge() -> None:
    mechanism = RandomisedResponse(3, 1.0)
    truth = np.array([0.6, 0.3, 0.1])
    values = np.repeat([0, 1, 2], (truth * 30_000).astype(int))
    reports = mechanism.randomise(values, seed=1)
    whole = mechanism.aggregate(reports)
    merged = mechanism.aggregate(reports[:999]) + mechanism.aggregate(reports[999:])
    assert np.array_equal(mechanism.estimate(whole), mechanism.estimate(merged))
    spread = np.sqrt(mechanism.variance(30_000, truth))
    # three values at five standard deviations: a false alarm below 2e-6
    assert np.all(np.abs(mechanism.estimate(whole) - truth) < 5 * spread)


def test_secure_words_are_fresh_and_seeded_ones_are_told_apart() -> None:
    assert Secure().is_secure
    assert not randomness(1, "a").is_secure
    assert not np.array_equal(Secure().words(0, 8), Secure().words(0, 8))
    assert not np.array_equal(randomness(1, "a").words(0, 8), randomness(1, "b").words(0, 8))
    words = randomness(1, "a").words(0, 100_000)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    # 64 bits at six standard deviations of 1/sqrt(4n): a false alarm below 2e-7
    assert np.all(np.abs(bits - 0.5) < 6 * 0.5 / np.sqrt(100_000))


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_bad_budgets_are_refused(epsilon: object) -> None:
    for name in ("grr", "any"):
        with pytest.raises(sl.InputError, match="`epsilon` must be a finite number above 0, got"):
            sl.create(name, 3, epsilon)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([3], "codes from 0 to 2; 1 of 1 are not"),
        ([-1], "0 to 2"),
        ([0.5], "integer codes"),
        ([[0]], "one-dimensional"),
    ],
)
def test_values_outside_the_domain_are_refused(values: list[object], words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        RandomisedResponse(3, 1.0).randomise(values)


def test_an_unspecified_mechanism_cannot_run() -> None:
    mechanism = sl.create("any", 3, 1.0)
    for call in (mechanism.randomise, mechanism.aggregate, mechanism.estimate):
        with pytest.raises(sl.InputError, match="still to be chosen; name one"):
            call([0])
    with pytest.raises(sl.InputError, match="`size` must be a whole number of at least 2"):
        sl.create("grr", 1, 1.0)
    with pytest.raises(sl.InputError, match="has no matrix"):
        mechanism.channel.matrix()
