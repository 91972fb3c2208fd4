"""Basic RAPPOR: permanent bits that the client stores, and fresh reports made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.mechanisms import exact
from sidelight.mechanisms.checks import refuse_parameters
from sidelight.mechanisms.exact import WORDS, least_share, store, word_threshold
from sidelight.mechanisms.longitudinal.unary import GivenBits, LongitudinalBits
from sidelight.mechanisms.reports import Reports

_PUBLISHED = {"f": 0.5, "p": 0.5, "q": 0.75}
"""The noise of RAPPOR as published."""


@dataclass(frozen=True)
class Rappor(LongitudinalBits):
    """Basic RAPPOR over `size` values (Erlingsson, Pihur, Korolova 2014, sections 2 and 3).

    A permanent bit is the true one with probability 1 - f/2, else its opposite; it is drawn once and stored.
    Each report sets a bit with probability q where the permanent bit is 1 and p where it is 0.

    `nominal_budget` bounds *unlimited* reports of the same stored bits. From a budget alone,
    f = 2/(1 + e^(eps/2)), with p and q as published: what the stored bits themselves spend is the budget, and
    one report spends less (`epsilon`). With f given, the budget follows from it.

    Only a client that keeps the bits of `permanent` and sends `report` after `report` of them has that bound.
    `randomise`, and with it every collection, draws new bits each time, so repeated reports add up: a plan
    has to say that the bits are kept.
    """

    keeps: ClassVar[bool] = False
    name: ClassVar[str] = "rappor"
    parameters: ClassVar[tuple[str, ...]] = ("f", "p", "q")
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"p": 0.2, "q": 0.9})
    f: float | None = None
    p: float = _PUBLISHED["p"]
    q: float = _PUBLISHED["q"]

    def settle(self) -> None:
        """Check the noise: f must keep the budget, and a set permanent bit be the likelier to be reported."""
        if word_threshold("p", self.p) >= word_threshold("q", self.q):
            raise invalid("p", f"below q = {self.q!r}", self.p)
        store(self, p=float(self.p), q=float(self.q))
        if self.f is not None:
            store(self, f=check_number("f", self.f, above=0, below=1))
        if self.factor_unlimited > exact.exp_below(self.nominal_budget):
            raise InputError(
                f"RAPPOR with f = {self.f} spends {exact.log_factor(self.factor_unlimited):.6g} on unlimited "
                f"reports, more than its `epsilon` {self.nominal_budget}; leave one of the two out."
            )

    @classmethod
    def with_noise(
        cls, size: int, f: float = _PUBLISHED["f"], p: float = _PUBLISHED["p"], q: float = _PUBLISHED["q"]
    ) -> Self:
        """Return RAPPOR with the given noise instead of a budget; the defaults are the published ones.

        >>> published = Rappor.with_noise(10)
        >>> round(published.epsilon, 3), round(published.epsilon_unlimited, 3)
        (0.537, 2.197)
        """
        return cls(size, exact.budget_above(_factor_unlimited(_lies(f))), f, p, q)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for: by its budget, or by f (and p, q) with or without one."""
        refuse_parameters(cls.name, parameters, cls.parameters)
        if epsilon is not None and "f" not in parameters:
            return cls(size, epsilon, **parameters)
        if epsilon is not None:
            cls(size, epsilon, **parameters)  # raises where f spends more than the budget
        return cls.with_noise(size, **parameters)

    @classmethod
    def relative(cls, given: Mapping[str, Any], epsilon: float | None) -> Mapping[str, Any]:
        """Return p and q: f decides on the budget, see `Mechanism.relative`."""
        del epsilon
        return {name: value for name, value in given.items() if name != "f"}

    def at(self, nominal_budget: float) -> Self:
        """Return RAPPOR by another budget, which replaces a given f."""
        return replace(self, nominal_budget=nominal_budget, f=None)

    @cached_property
    def lie(self) -> int:
        """How many of the 2^64 words make a permanent bit untrue, f/2: rounded up, so epsilon rounds down."""
        return least_share(2, self.nominal_budget / 2) if self.f is None else _lies(self.f)

    @property
    def factor_unlimited(self) -> Fraction:
        """What unlimited reports can say: the ratio of the permanent bits, ((1 - f/2) / (f/2))^2."""
        return _factor_unlimited(self.lie)

    @cached_property
    def stored(self) -> GivenBits:
        """The permanent bits: true with probability 1 - f/2."""
        return GivenBits(self.size, self.nominal_budget, WORDS - self.lie, self.lie)

    @property
    def instant_words(self) -> tuple[int, int]:
        """Those of q and p."""
        return word_threshold("q", self.q), word_threshold("p", self.p)

    def permanent(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the permanent bits of each code: drawn once, stored by the client, never sent."""
        return self._encoded(values, (WORDS - self.lie, self.lie), f"{self.name}/permanent", seed, offset)


def _lies(f: object) -> int:
    """Return how many of the 2^64 words make a permanent bit untrue, f/2: rounded up, at least one."""
    share = Fraction(check_number("f", f, above=0, below=1))
    return max(1, ceil(share * (WORDS // 2)))


def _factor_unlimited(lie: int) -> Fraction:
    return Fraction(WORDS - lie, lie) ** 2
