"""The two ends: released as it is, and not released at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.bits import code_counts
from sidelight.foundation.errors import InputError, check_whole
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.checks import check_codes, check_offset, check_shares, refuse_parameters
from sidelight.mechanisms.exact import LARGEST_SIZE, store
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.reports import Reports


class _Plain(Mechanism):
    """A mechanism without noise, and so without a budget to choose."""

    has_budget: ClassVar[bool] = False

    def __post_init__(self) -> None:
        store(self, size=check_whole("size", self.size, at_least=1, at_most=LARGEST_SIZE))

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for; it has no budget to choose."""
        refuse_parameters(cls.name, parameters)
        if epsilon is not None:
            raise InputError(
                f"the mechanism {cls.name!r} has no budget; leave `epsilon` out, got {epsilon!r}."
            )
        return cls(size)

    def at(self, nominal_budget: float) -> NoReturn:
        """Refuse: there is no budget."""
        raise InputError(f"the mechanism {self.name!r} has no budget, so none of {nominal_budget!r}.")

    @property
    def channel(self) -> FavouringChannel:
        """A report leaves one value possible, or all of them."""
        return FavouringChannel(self.size, "singletons", math.exp(-self.epsilon))

    @property
    def guess_rate(self) -> float:
        """1, or that of a blind guess."""
        return 1 / (1 + (self.size - 1) * self.channel.baseline)


@dataclass(frozen=True)
class Identity(_Plain):
    """The true value, without noise: its budget is infinite."""

    name: ClassVar[str] = "identity"

    @property
    def epsilon(self) -> float:
        """Infinite: a report tells the value."""
        return math.inf

    @property
    def form(self) -> ReportForm:
        """A code."""
        return ReportForm.codes(self.size)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the codes themselves, see `Mechanism.randomise`."""
        check_offset(offset)
        return Reports(check_codes(values, self.size).copy(), is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value was reported."""
        codes = self.check(reports)
        return Aggregate(len(codes), code_counts(codes, self.size), self.name)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the values' frequencies."""
        check_estimable(aggregate, self.size, self.name)
        return np.asarray(aggregate.sums / aggregate.reports)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each frequency: that of sampling people."""
        share = check_shares(frequencies, self.size, single=True)
        return np.asarray(share * (1 - share) / check_whole("reports", reports, at_least=1))

    def likelihoods(self, reports: Reports) -> Array:
        """Return 1 for the reported value and 0 for the others."""
        return np.asarray(np.arange(self.size)[:, None] == self.check(reports), dtype=np.float64).T

    def face_value(self, reports: Reports) -> Positions:
        """Return the reported codes, which are true."""
        return self.check(reports).astype(np.intp)


@dataclass(frozen=True)
class Withheld(_Plain):
    """Nothing: every report is the same, whatever the value."""

    name: ClassVar[str] = "withheld"
    estimates: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def epsilon(self) -> float:
        """Always 0: a report tells nothing."""
        return 0.0

    @property
    def form(self) -> ReportForm:
        """The number 0, whatever the value."""
        return ReportForm.codes(1)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return an empty report, the number 0, for each code."""
        check_offset(offset)
        codes = check_codes(values, self.size)
        return Reports(np.zeros(len(codes), dtype=np.uint8), is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count the people."""
        return Aggregate(len(self.check(reports)), np.zeros(0, dtype=np.int64), self.name)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Refuse: nothing was told."""
        _refuse(aggregate)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Refuse: there is no estimate."""
        _refuse(reports, frequencies)

    def likelihoods(self, reports: Reports) -> Array:
        """Return 1 for every value: a report says nothing."""
        return np.ones((self.size, len(self.check(reports)))).T


def _refuse(*_: object) -> NoReturn:
    raise InputError(
        "a withheld attribute has no estimate; release it through a mechanism, for example 'oue'."
    )
