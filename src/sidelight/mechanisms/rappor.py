"""Basic RAPPOR: permanent bits that the client stores, and fresh reports made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import is_large
from sidelight.foundation.bits import random_rows
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms import exact
from sidelight.mechanisms.checks import check_codes, check_offset, refuse_parameters
from sidelight.mechanisms.exact import WORDS, check_word_budget, store, word_threshold
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.unary import MarkedBits, encode

_DEFAULTS = {"f": 0.5, "p": 0.5, "q": 0.75}


@dataclass(frozen=True)
class Rappor(MarkedBits):
    """Basic RAPPOR over `size` values (Erlingsson, Pihur, Korolova 2014, sections 2 and 3).

    A permanent bit is the true one with probability 1 - f/2, else its opposite; it is drawn once and stored.
    Each report sets a bit with probability q where the permanent bit is 1 and p where it is 0.

    `nominal_budget` bounds *unlimited* reports of the same stored bits. From a budget alone,
    f = 2/(1 + e^(eps/2)), with p and q as published: what the stored bits themselves spend is the budget, and
    one report spends less (`epsilon`). With f given, the budget follows from it.

    Only a client that keeps the bits of `permanent` and sends `report` after `report` of them has that bound.
    `randomise`, and with it every collection, draws new bits each time, so repeated reports add up.
    """

    name: ClassVar[str] = "rappor"
    parameters: ClassVar[tuple[str, ...]] = ("f", "p", "q")
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"p": 0.2, "q": 0.9})
    f: float | None = None
    p: float = _DEFAULTS["p"]
    q: float = _DEFAULTS["q"]

    def __post_init__(self) -> None:
        if word_threshold("p", self.p) >= word_threshold("q", self.q):
            raise invalid("p", f"below q = {self.q!r}", self.p)
        store(self, p=float(self.p), q=float(self.q), nominal_budget=check_word_budget(self.nominal_budget))
        if self.f is not None:
            store(self, f=check_number("f", self.f, above=0, below=1))
        if self.factor_unlimited > exact.exp_below(self.nominal_budget):
            raise InputError(
                f"RAPPOR with f = {self.f} spends {exact.log_factor(self.factor_unlimited):.6g} on unlimited "
                f"reports, more than its `epsilon` {self.nominal_budget}; leave one of the two out."
            )
        super().__post_init__()

    @classmethod
    def with_noise(
        cls, size: int, f: float = _DEFAULTS["f"], p: float = _DEFAULTS["p"], q: float = _DEFAULTS["q"]
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

    def at(self, nominal_budget: float) -> Self:
        """Return RAPPOR by another budget, which replaces a given f."""
        return replace(self, nominal_budget=nominal_budget, f=None)

    @cached_property
    def lie(self) -> int:
        """How many of the 2^64 words make a permanent bit untrue, f/2: rounded up, so epsilon rounds down."""
        return exact.least_share(2, self.nominal_budget / 2) if self.f is None else _lies(self.f)

    @property
    def factor_unlimited(self) -> Fraction:
        """What unlimited reports can say: the ratio of the permanent bits, ((1 - f/2) / (f/2))^2."""
        return _factor_unlimited(self.lie)

    @property
    def epsilon_unlimited(self) -> float:
        """The realised budget of unlimited reports of the same stored bits."""
        return exact.log_factor(self.factor_unlimited)

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities p* and q* of a true bit and of another one to be set in a report."""
        p, q, true = word_threshold("p", self.p), word_threshold("q", self.q), WORDS - self.lie
        return Fraction(true * q + self.lie * p, WORDS**2), Fraction(self.lie * q + true * p, WORDS**2)

    def permanent(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the permanent bits of each code: drawn once, stored by the client, never sent."""
        codes = check_codes(values, self.size)
        stream = f"{self.name}/permanent"
        thresholds = WORDS - self.lie, self.lie
        rows = encode(codes, self.size, thresholds, seed=seed, stream=stream, offset=offset)
        return Reports(rows, is_simulation=seed is not None)

    def report(self, permanent: Reports, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a fresh report of each row of stored permanent bits."""
        stored = self.check(permanent)
        first = check_offset(offset)
        compiled = is_large(len(stored))
        if_set = randomness(seed, f"{self.name}/set", compiled=compiled)
        if_clear = randomness(seed, f"{self.name}/clear", compiled=compiled)
        rows = random_rows(if_clear, first, len(stored), self.size, word_threshold("p", self.p))
        chosen = random_rows(if_set, first, len(stored), self.size, word_threshold("q", self.q))
        np.bitwise_xor(chosen, rows, out=chosen)
        np.bitwise_and(chosen, stored, out=chosen)
        np.bitwise_xor(rows, chosen, out=rows)
        return Reports(rows, is_simulation=seed is not None or permanent.is_simulation)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one report of new permanent bits for each code, see `Mechanism.randomise`."""
        return self.report(self.permanent(values, seed=seed, offset=offset), seed=seed, offset=offset)


def _lies(f: object) -> int:
    """Return how many of the 2^64 words make a permanent bit untrue, f/2: rounded up, at least one."""
    share = Fraction(check_number("f", f, above=0, below=1))
    return max(1, ceil(share * (WORDS // 2)))


def _factor_unlimited(lie: int) -> Fraction:
    return Fraction(WORDS - lie, lie) ** 2
