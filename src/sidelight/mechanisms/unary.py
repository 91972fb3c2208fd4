"""Unary encoding: one bit for each value, the true one set, every bit randomised on its own.

Basic RAPPOR does so twice: permanent bits that the client stores, and fresh reports made from them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Mask, is_large, spans
from sidelight.foundation.bits import bit_counts, random_rows
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms import exact
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel.generic import all_sets
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.checks import check_codes, check_offset, refuse_parameters
from sidelight.mechanisms.exact import WORDS, least_share, store, word_threshold
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle, marked_accuracy
from sidelight.mechanisms.reports import ReportForm, Reports

_PUBLISHED = {"f": 0.5, "p": 0.5, "q": 0.75}
"""The noise of RAPPOR as published."""


class MarkedBits(FrequencyOracle):
    """Reports are a bit for each value, each set on its own: likelier where it is true.

    A report is a packed row of bits (see `foundation.bits`); any set of bits can be reported, so any set of
    values can be favoured, each by the factor p(1-q)/((1-p)q).
    """

    favours: ClassVar[Family] = "all"  # those of the set bits
    degrades: ClassVar[bool] = True
    """With a smaller budget p falls and q rises, or one of them stays: such a bit is the larger one's, sent
    through a noisy bit channel (a binary channel is degraded by any other within the parallelogram of (0, 0),
    (p, q), (1, 1) and (1-p, 1-q))."""

    @property
    def factor(self) -> Fraction:
        """Exactly p(1-q)/((1-p)q): two values differ in two bits."""
        p, q = self.mark_rates
        return p * (1 - q) / ((1 - p) * q)

    @property
    def form(self) -> ReportForm:
        """A packed row of bits."""
        return ReportForm.bits(self.size)

    def marked(self, reports: Reports) -> Mask:
        """Return which bits are set."""
        bits = np.unpackbits(self.check(reports), axis=1, count=self.size, bitorder="little")
        return bits.view(np.bool_)

    @property
    def loss_rates(self) -> tuple[float, float]:
        """Two values differ in two bits: those of both must be right, or both wrong."""
        p, q = map(float, self.mark_rates)
        return p * (1 - q), (1 - p) * q

    def report_law(self, most: int) -> Array | None:
        """Return the probability of every set of bits given every value, see `Mechanism`."""
        if self.size >= most.bit_length():  # 2^size > most
            return None
        p, q = map(float, self.mark_rates)
        marked = all_sets(self.size).T > 0
        rates = np.where(np.eye(self.size, dtype=np.bool_), p, q)[:, None, :]
        return np.asarray(np.where(marked, rates, 1 - rates).prod(axis=2))

    def log_scales(self, reports: Reports) -> Array:
        """Return how likely all bits together are if a set one is true, see `Mechanism`."""
        p, q = map(float, self.mark_rates)
        others = self.marked(reports).sum(axis=1) - 1
        return np.asarray(math.log(p) + others * math.log(q) + (self.size - 1 - others) * math.log1p(-q))

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each bit is set."""
        rows = self.check(reports)
        return Aggregate(len(rows), bit_counts(rows)[: self.size], self.name)

    def _encoded(
        self, values: ArrayLike, thresholds: tuple[int, int], stream: str, seed: int | None, offset: int
    ) -> Reports:
        """Return packed rows: of 2^64 words the one threshold sets a code's own bit, the other any other."""
        keep, flip = thresholds
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        compiled = is_large(len(codes))
        noise = randomness(seed, f"{stream}/noise", compiled=compiled)
        truth = randomness(seed, f"{stream}/truth", compiled=compiled)
        step = steps(compiled=compiled)
        rows = random_rows(noise, first, len(codes), self.size, flip)  # as if no bit were true
        for span in spans(len(codes)):
            part = codes[span]
            step.overlay(truth.words(first + span.start, len(part)), part, np.uint64(keep), rows[span])
        return Reports(rows, is_simulation=seed is not None)

    @property
    def guess_rate(self) -> float:
        """How often a guess among the set bits is right, or among all values where none is set."""
        return marked_accuracy(self.size, float(self.mark_if_true), float(self.mark_if_other))


class Unary(MarkedBits):
    """Bits of the true value's histogram, randomised by two thresholds."""

    @property
    @abstractmethod
    def thresholds(self) -> tuple[int, int]:
        """How many of the 2^64 words set the true value's bit, and how many set another's."""

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities p of a true bit, and q of another one, to be set."""
        keep, flip = self.thresholds
        return Fraction(keep, WORDS), Fraction(flip, WORDS)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one packed row of bits for each code, see `Mechanism.randomise`."""
        return self._encoded(values, self.thresholds, self.name, seed, offset)


@dataclass(frozen=True)
class SymmetricUnary(Unary):
    """SUE: both kinds of bits keep their value with the same probability (basic one-time RAPPOR).

    p = e^(eps/2) / (e^(eps/2) + 1), q = 1 - p (Erlingsson, Pihur, Korolova 2014).
    """

    name: ClassVar[str] = "sue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Both from the words that flip a bit: rounded up, so epsilon rounds down."""
        flip = least_share(2, self.nominal_budget / 2)  # half each: two values differ in two bits
        return WORDS - flip, flip


@dataclass(frozen=True)
class OptimisedUnary(Unary):
    """OUE: p = 1/2, q = 1 / (e^eps + 1), the least variance of rare values (Wang et al. 2017)."""

    name: ClassVar[str] = "oue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Half of the words, and e^eps times fewer than the rest: rounded up, so epsilon rounds down."""
        return WORDS // 2, least_share(2, self.nominal_budget)


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
        return self._encoded(values, (WORDS - self.lie, self.lie), f"{self.name}/permanent", seed, offset)

    def report(self, permanent: Reports, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a fresh report of each row of stored permanent bits."""
        stored = self.check(permanent)
        first = check_offset(offset)
        compiled = is_large(len(stored))
        if_set = randomness(seed, f"{self.name}/set", compiled=compiled)
        if_clear = randomness(seed, f"{self.name}/clear", compiled=compiled)
        rows = random_rows(if_clear, first, len(stored), self.size, word_threshold("p", self.p))
        chosen = random_rows(if_set, first, len(stored), self.size, word_threshold("q", self.q))
        # Takes the other draw where the stored bit is set, without a branch on private bits.
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
