"""What mechanisms share that estimate a frequency by counting the reports that support a value.

A report supports value v with probability p if v is the truth and q if another value is, the same for all
values ("pure protocols": Wang, Blocki, Li, Jha 2017). Then (c/n - q)/(p - q) is unbiased.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import check_whole
from sidelight.mechanisms.channel import AnyChannel, Channel
from sidelight.mechanisms.exact import check_factor, check_size, check_word_budget, log_factor, store
from sidelight.mechanisms.mechanism import (
    Aggregate,
    check_estimable,
    check_shares,
    check_times,
    need_budget,
    refuse_parameters,
)


@dataclass(frozen=True)
class Coded(ABC):
    """A mechanism over `size` codes at nominal budget `budget`, with delta 0."""

    name: ClassVar[str]
    size: int
    budget: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), budget=check_word_budget(self.budget))
        check_factor(self.factor, self.budget)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters)
        return cls(size, need_budget(cls.name, epsilon))

    @property
    @abstractmethod
    def factor(self) -> Fraction:
        """The largest ratio between the probabilities of one report under two values, e^epsilon."""

    @property
    def epsilon(self) -> float:
        """The realised budget of one report, ln(factor)."""
        return log_factor(self.factor)

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` reports of the same value: their budgets add up."""
        if check_times(times) == 1:
            return self.channel
        return AnyChannel(self.size, times * self.epsilon, within=self.channel)

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact law of a report."""


class Counting(Coded):
    """A mechanism whose estimate counts supporting reports."""

    @property
    @abstractmethod
    def support_if_true(self) -> Fraction:
        """The probability that a report supports the true value, p."""

    @property
    @abstractmethod
    def support_if_other(self) -> Fraction:
        """The probability that a report supports a particular other value, q."""

    def support(self, aggregate: Aggregate) -> NDArray[np.int64]:
        """Return how many reports support each value."""
        check_estimable(aggregate, self.size, self.name)
        return aggregate.sums

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate (c/n - q)/(p - q) of the values' frequencies."""
        q, gap = self.support_if_other, self.support_if_true - self.support_if_other
        return np.asarray((self.support(aggregate) / aggregate.reports - float(q)) / float(gap))

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        count = check_whole("reports", reports, at_least=1)
        q, gap = float(self.support_if_other), float(self.support_if_true - self.support_if_other)
        seen = q + gap * check_shares(frequencies, self.size, single=True)
        return np.asarray(seen * (1 - seen) / (count * gap**2))
