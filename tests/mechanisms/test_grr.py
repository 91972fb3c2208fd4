"""Randomised response and the foundation of randomness it stands on."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_secure_words_are_fresh_and_seeded_ones_are_told_apart() -> None:
    assert Secure().is_secure
    assert not randomness(1, "a").is_secure
    assert not np.array_equal(Secure().words(0, 8), Secure().words(0, 8))
    assert not np.array_equal(randomness(1, "a").words(0, 8), randomness(1, "b").words(0, 8))
    words = randomness(1, "a").words(0, 100_000)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    # 64 bits at six standard deviations of 1/sqrt(4n): a false alarm below 2e-7
    assert np.all(np.abs(bits - 0.5) < 6 * 0.5 / np.sqrt(100_000))


def test_an_unspecified_mechanism_cannot_run() -> None:
    mechanism = sl.create("any", 3, 1.0)
    for call in (mechanism.randomise, mechanism.aggregate, mechanism.estimate):
        with pytest.raises(sl.InputError, match="still to be chosen; name one"):
            call([0])
    with pytest.raises(sl.InputError, match="`size` must be a whole number of at least 2"):
        sl.create("grr", 1, 1.0)
    with pytest.raises(sl.InputError, match="has no matrix"):
        mechanism.channel.matrix()
