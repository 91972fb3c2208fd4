"""Generalised randomised response: report the true value, or one of the others, all equally likely."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import check_number, check_whole
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.mechanism import Aggregate, check_codes, refuse_parameters

_WORDS = 1 << 64


@dataclass(frozen=True)
class RandomisedResponse:
    """GRR over `size` values at nominal budget `budget` (Kairouz, Oh, Viswanath 2014).

    Of the 2^64 values of a random word each other value gets `other` ones and the truth all the rest, so
    all probabilities are exact.
    """

    name: ClassVar[str] = "grr"
    size: int
    budget: float

    def __post_init__(self) -> None:
        check_whole("size", self.size, at_least=2, at_most=65_536)
        check_number("epsilon", self.budget, above=0)

    @classmethod
    def from_plan(cls, size: int, epsilon: float, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters)
        return cls(size, epsilon)

    @cached_property
    def other(self) -> int:
        """How many of the 2^64 words report one particular other value, rounded up."""
        return _least_share(self.size, self.budget)

    @property
    def truth(self) -> int:
        """How many of the 2^64 words report the true value."""
        return _WORDS - (self.size - 1) * self.other

    @property
    def epsilon(self) -> float:
        """The realised budget, ln(truth / other)."""
        return min(math.log(self.truth) - math.log(self.other), self.budget)

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0

    @property
    def channel(self) -> FavouringChannel:
        """A report favours one value, the reported one."""
        return FavouringChannel(self.size, "singletons", self.other / self.truth)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> NDArray[np.uint16]:
        """Return one reported code for each code.

        Args:
            values: codes in 0..size-1.
            seed: for simulation; without one the noise is secure.
            offset: the first value's position in the whole table, so that chunks of it agree.
        """
        codes = check_codes(values, self.size)
        words = randomness(seed, "grr").words(offset, len(codes))
        share = (words - np.uint64(self.truth)) // np.uint64(self.other)
        others = share.astype(np.int64)
        others += others >= codes
        return np.where(words < np.uint64(self.truth), codes, others).astype(np.uint16)

    def aggregate(self, reports: NDArray[Any]) -> Aggregate:
        """Count how often each value was reported."""
        counts = np.bincount(check_codes(reports, self.size), minlength=self.size)
        return Aggregate(len(reports), counts.astype(np.int64))

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate (c/n - q)/(p - q) of the values' frequencies."""
        p, q = self.truth / _WORDS, self.other / _WORDS
        return np.asarray((aggregate.sums / max(aggregate.reports, 1) - q) / (p - q))

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the estimate of each value's frequency, sampling of people included."""
        p, q = self.truth / _WORDS, self.other / _WORDS
        seen = q + (p - q) * np.asarray(frequencies, dtype=np.float64)
        return np.asarray(seen * (1 - seen) / (reports * (p - q) ** 2))


def _least_share(size: int, budget: float) -> int:
    """Return the least w with (2^64 - (size-1) w) / w <= e^budget, in exact arithmetic."""
    with localcontext() as context:
        context.prec = 60
        context.rounding = ROUND_FLOOR
        factor = Decimal(budget).exp().next_minus()
        share = Decimal(_WORDS) / (size - 1 + factor)
        return int(share) + 1
