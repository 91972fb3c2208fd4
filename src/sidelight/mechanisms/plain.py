"""Without noise of their own: released as it is, not released at all, and a mechanism still to be chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError, check_whole
from sidelight.mechanisms.channel import AnyChannel, FavouringChannel
from sidelight.mechanisms.checks import check_codes, check_offset, check_shares, refuse_parameters
from sidelight.mechanisms.exact import LARGEST_SIZE, check_budget, check_size, store
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.oracle import OneCode
from sidelight.mechanisms.reports import ReportForm, Reports


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


@dataclass(frozen=True)
class Identity(OneCode, _Plain):
    """The true value, without noise: its budget is infinite."""

    name: ClassVar[str] = "identity"
    epsilon: ClassVar[float] = math.inf

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the codes themselves, see `Mechanism.randomise`."""
        check_offset(offset)
        return Reports(check_codes(values, self.size).copy(), is_simulation=seed is not None)

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return the code itself: it takes no bytes."""
        del draws
        return Reports(np.array([code], dtype=self.form.dtype))

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


@dataclass(frozen=True)
class Withheld(_Plain):
    """Nothing: every report is the same, whatever the value."""

    name: ClassVar[str] = "withheld"
    estimates: ClassVar[Literal["nothing"]] = "nothing"
    epsilon: ClassVar[float] = 0.0

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

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            "a withheld attribute has no estimate; release it through a mechanism, for example 'oue'."
        )

    estimate = variance = _refuse

    def likelihoods(self, reports: Reports) -> Array:
        """Return 1 for every value: a report says nothing."""
        return np.ones((self.size, len(self.check(reports)))).T


@dataclass(frozen=True)
class Unspecified(Mechanism):
    """Whatever satisfies epsilon-LDP, for plans that do not yet say what; figures are those of the worst."""

    name: ClassVar[str] = "any"
    makes_reports: ClassVar[bool] = False
    estimates: ClassVar[Literal["nothing"]] = "nothing"
    nominal_budget: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), nominal_budget=check_budget(self.nominal_budget))

    @property
    def epsilon(self) -> float:
        """The nominal budget, as it may be spent in full."""
        return self.nominal_budget

    @property
    def channel(self) -> AnyChannel:
        """Only its budget is known."""
        return AnyChannel(self.size, self.epsilon)

    @property
    def form(self) -> ReportForm:
        """Refused: there are no reports."""
        return self._refuse()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            "the mechanism 'any' stands for one still to be chosen; name one, for example 'grr'. Of 'any' "
            "only the budget is known."
        )

    randomise = aggregate = estimate = variance = _refuse
