"""The two ends: released as it is, and not released at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.bits import code_counts
from sidelight.foundation.errors import InputError, check_whole
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.exact import LARGEST_SIZE, store
from sidelight.mechanisms.mechanism import (
    Aggregate,
    check_codes,
    check_estimable,
    check_offset,
    check_reports,
    check_shares,
    check_times,
    impossible,
    refuse_parameters,
)
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True)
class _Plain:
    name: ClassVar[str]
    size: int

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

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0


@dataclass(frozen=True)
class Identity(_Plain):
    """The true value, without noise: its budget is infinite."""

    name: ClassVar[str] = "identity"

    @property
    def epsilon(self) -> float:
        """Infinite: a report tells the value."""
        return math.inf

    @property
    def channel(self) -> FavouringChannel:
        """A report leaves one value possible."""
        return FavouringChannel(self.size, "singletons", 0.0)

    def repeated(self, times: int) -> FavouringChannel:
        """Return the channel of many reports: that of one, as the truth says no more when repeated."""
        check_times(times)
        return self.channel

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the codes themselves, see `Mechanism.randomise`."""
        check_offset(offset)
        return Reports(check_codes(values, self.size).copy(), is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value was reported."""
        codes = check_codes(check_reports(reports, "ui"), self.size, "reports")
        return Aggregate(len(codes), code_counts(codes, self.size), self.name)

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the values' frequencies."""
        check_estimable(aggregate, self.size, self.name)
        return np.asarray(aggregate.sums / aggregate.reports)

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each frequency: that of sampling people."""
        share = check_shares(frequencies, self.size, single=True)
        return np.asarray(share * (1 - share) / check_whole("reports", reports, at_least=1))


@dataclass(frozen=True)
class Withheld(_Plain):
    """Nothing: every report is the same, whatever the value."""

    name: ClassVar[str] = "withheld"

    @property
    def epsilon(self) -> float:
        """Always 0: a report tells nothing."""
        return 0.0

    @property
    def channel(self) -> FavouringChannel:
        """No value is favoured."""
        return FavouringChannel(self.size, "singletons", 1.0)

    def repeated(self, times: int) -> FavouringChannel:
        """Return the channel of many reports: that of one, as nothing repeated is nothing."""
        check_times(times)
        return self.channel

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return an empty report, the number 0, for each code."""
        check_offset(offset)
        codes = check_codes(values, self.size)
        return Reports(np.zeros(len(codes), dtype=np.uint8), is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count the people."""
        values = check_reports(reports, "u")
        if np.any(values):
            raise impossible("0, as the attribute is withheld", values != 0)
        return Aggregate(len(reports), np.zeros(0, dtype=np.int64), self.name)

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Refuse: nothing was told."""
        _refuse(aggregate)

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Refuse: there is no estimate."""
        _refuse(reports, frequencies)


def _refuse(*_: object) -> NoReturn:
    raise InputError(
        "a withheld attribute has no estimate; release it through a mechanism, for example 'oue'."
    )
