"""Bits that are kept and sent with fresh noise: L-SUE, L-OUE and L-OSUE (Arcolezi et al. 2022).

Every bit goes its own way: a memo bit is set with probability p1 if it is the true value's and q1 otherwise,
and a report sets it with probability p2 where the memo bit is set and q2 where it is not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Words
from sidelight.foundation.bits import random_rows, row_words
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import InputError
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.channel import Channel, FavouringChannel
from sidelight.mechanisms.checks import check_offset
from sidelight.mechanisms.exact import WORDS, log_factor
from sidelight.mechanisms.longitudinal.budgets import Rates, unary_budget
from sidelight.mechanisms.longitudinal.oracle import (
    Longitudinal,
    TwoBudgets,
    check_rounds,
    keep_words,
    least_words,
)
from sidelight.mechanisms.longitudinal.tallies import drawn_bits
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.unary import MarkedBits, OptimisedUnary, SymmetricUnary, Unary

_MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class GivenBits(Unary):
    """Unary encoding by given thresholds: how many words set a true bit, and how many another one."""

    name: ClassVar[str] = "given bits"
    keep: int
    flip: int

    @property
    def thresholds(self) -> tuple[int, int]:
        """The given ones."""
        return self.keep, self.flip


class LongitudinalBits(MarkedBits, Longitudinal):
    """Bits that are kept, and fresh reports of them. Abstract: `stored` and `instant_words`."""

    @property
    @abstractmethod
    def instant_words(self) -> tuple[int, int]:
        """How many of the 2^64 words report a memo bit that is set as set, and one that is not."""

    @property
    def instant_rates(self) -> Rates:
        """How likely a memo bit that is set, and one that is not, is reported as set."""
        kept, made = self.instant_words
        return Fraction(kept, WORDS), Fraction(made, WORDS)

    def report(self, permanent: Reports, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a fresh report of each row of stored permanent bits."""
        stored = self.check(permanent)
        first = check_offset(offset)
        compiled = use_loop("foundation.draw_bits", len(stored), 2 * row_words(self.size))
        if_set = randomness(seed, f"{self.name}/set", compiled=compiled)
        if_clear = randomness(seed, f"{self.name}/clear", compiled=compiled)
        kept, made = self.instant_words
        rows = random_rows(if_clear, first, len(stored), self.size, made)
        if kept + made == WORDS:  # a bit is flipped, whatever it is
            np.bitwise_xor(rows, stored, out=rows)
            return Reports(rows, is_simulation=seed is not None or permanent.is_simulation)
        chosen = random_rows(if_set, first, len(stored), self.size, kept)
        # Takes the other draw where the stored bit is set, without a branch on private bits.
        np.bitwise_xor(chosen, rows, out=chosen)
        np.bitwise_and(chosen, stored, out=chosen)
        np.bitwise_xor(rows, chosen, out=rows)
        return Reports(rows, is_simulation=seed is not None or permanent.is_simulation)

    def budget_of(self, times: int) -> float:
        """Return eps_T, see `Longitudinal`."""
        exact = unary_budget(self.permanent_rates, self.instant_rates, check_rounds(times))
        return min(exact, self.epsilon_unlimited)

    @property
    def epsilon_instant(self) -> float:
        """The memos of two values may differ in every bit: k max(ln p2/q2, ln (1-q2)/(1-p2))."""
        kept, made = self.instant_rates
        return self.size * log_factor(max(kept / made, (1 - made) / (1 - kept)))

    @property
    def change_seen(self) -> float:
        """Two bits belong to one of the two values, and the rest to neither."""
        p, q = self.permanent_rates
        own, other = p * q + (1 - p) * (1 - q), q * q + (1 - q) * (1 - q)
        return 1 - float(own) ** 2 * float(other) ** (self.size - 2)

    # Counts: how often each bit is set.

    @property
    def tally_width(self) -> int:
        """A counter for each bit."""
        return self.size

    def tallied(self, reports: Reports) -> NDArray[Any]:
        """Return the bits."""
        return self.marked(reports).view(np.uint8)

    def tallies(self, permanent: Reports, times: int, *, seed: int, offset: int = 0) -> NDArray[Any]:
        """Return how often each bit is set, see `Longitudinal.tallies`."""
        kept, made = map(float, self.instant_rates)
        return drawn_bits(self.marked(permanent), (kept, made), times, seed, offset)

    def tally_marks(self, counts: NDArray[Any], seeds: Words | None) -> NDArray[Any]:
        """Return the counts themselves."""
        del seeds
        return counts

    def tally_logs(self, counts: NDArray[Any], seeds: Words | None, times: int) -> Array:
        """Return ln f(p1, c) / f(q1, c) for each bit: the others' likelihoods cancel."""
        del seeds
        true, other = self.bit_logs(times)
        return np.asarray((true - other)[counts])

    def order_logs(self, counts: NDArray[Any], times: int) -> Array:
        """Return `tally_logs` with the likelihood of all bits as if none were true."""
        others = self.bit_logs(times)[1][counts].sum(axis=1, keepdims=True)
        return np.asarray(self.tally_logs(counts, None, times) + others)

    def bit_logs(self, times: int) -> tuple[Array, Array]:
        """Return ln f(p1, c) and ln f(q1, c) for c = 0..T ones of a bit, in a given order, shape (T + 1,)."""
        ones = np.arange(times + 1)
        # Of exact rates: a double cannot tell the largest of them from 1.
        if_set, if_clear = (
            ones * log_factor(rate) + (times - ones) * log_factor(1 - rate) for rate in self.instant_rates
        )
        true, other = (
            np.logaddexp(log_factor(rate) + if_set, log_factor(1 - rate) + if_clear)
            for rate in self.permanent_rates
        )
        return true, other

    def count_laws(self, times: int) -> tuple[Array, Array]:
        """Return how likely a true bit, and another one, is set c times in T, shape (T + 1,) each."""
        from scipy.special import gammaln

        ones = np.arange(times + 1)
        ways = gammaln(times + 1) - gammaln(ones + 1) - gammaln(times - ones + 1)
        true, other = self.bit_logs(times)
        return np.exp(true + ways), np.exp(other + ways)

    def tally_law(self, times: int, most: int) -> Array | None:
        """Return the law of all counts of all bits, see `Longitudinal`."""
        cells = float(times + 1) ** self.size
        if cells > most or cells * self.size**2 > 4 * _MOST_CELLS:
            return None
        true, other = self.count_laws(times)
        rows = np.where(np.eye(self.size, dtype=np.bool_)[:, :, None], true, other)
        law = rows[:, 0]
        for bit in range(1, self.size):
            law = (law[:, :, None] * rows[:, bit, None, :]).reshape(self.size, -1)
        return law

    def kept_channel(self, times: int) -> Channel:
        """Return the channel of T reports: its worst reports are sets, as those of one report are.

        A report is likelier under a value the more often its bit is set, by any of T + 1 factors, and every
        combination is sent. A ratio of two forms that are linear in the factors is largest where each of
        them is the least or the greatest, so that the sets of bits that are set always and never say it all.
        """
        budget = self.budget_of(times)
        return FavouringChannel(self.size, "all", math.exp(-budget), budget=budget)

    def pair_law(self, times: int) -> Array | None:
        """Return the law of what tells two values apart: how often their two bits are set, (2, (T+1)^2)."""
        if (times + 1) ** 2 > _MOST_CELLS:
            return None
        true, other = self.count_laws(times)
        grid = np.stack([np.outer(true, other), np.outer(other, true)])
        return np.asarray(grid.reshape(2, -1))

    def kept_guess(self, times: int) -> float | None:
        """Return how often the value whose bit is set most often is the true one, ties at random.

        The largest of the others is below c with probability F(c-1)^(k-1); summed over ties, the share of a
        count c that wins is (F(c)^k - F(c-1)^k) / (k f(c)).
        """
        true, other = self.count_laws(times)
        upto = np.minimum(np.cumsum(other), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # counts too rare for doubles
            fall = np.log1p(-np.minimum(other / upto, 1.0))  # ln F(c-1) / F(c)
            powers = np.where(fall < 0, np.expm1(self.size * fall) / np.expm1(fall), self.size)
        won = upto ** (self.size - 1) * powers
        return min(float(true @ won) / self.size, 1.0)


@dataclass(frozen=True)
class LongitudinalSymmetric(TwoBudgets, LongitudinalBits):
    """L-SUE: symmetric bits on top of kept symmetric bits; the first report is SUE at `first`."""

    name: ClassVar[str] = "l-sue"

    @cached_property
    def stored(self) -> SymmetricUnary:
        """SUE at the budget of unlimited reports."""
        return SymmetricUnary(self.size, self.nominal_budget)

    @cached_property
    def instant_words(self) -> tuple[int, int]:
        """As for a response over two values at half the budget: two values differ in two bits."""
        p, q = self.permanent_rates
        flip = keep_words(2, p - q, self.first_budget / 2)
        return WORDS - flip, flip


@dataclass(frozen=True)
class LongitudinalOptimised(TwoBudgets, LongitudinalBits):
    """L-OUE: optimised bits on top of kept optimised bits; `first` stays below ln((2 e^eps + 1) / 3)."""

    name: ClassVar[str] = "l-oue"

    @property
    def first_budget(self) -> float:
        """What the first report may spend; of a share no more than it can."""
        wanted = super().first_budget
        return wanted if self.share is None else min(wanted, self._most * (1 - 1e-6))

    @property
    def _most(self) -> float:
        """What the first report spends if no other bit is ever set: ln((2 e^eps + 1) / 3)."""
        return math.log1p(2 / 3 * math.expm1(min(self.nominal_budget, 700.0)))

    def settle_steps(self) -> None:
        """Check that the first report can spend its budget: it sets a true bit in a quarter at least."""
        most = self._most
        if self.first_budget >= most:
            raise InputError(
                f"the first report of 'l-oue' spends less than ln((2 e^epsilon + 1) / 3) = {most:.6g} at an "
                f"`epsilon` of {self.nominal_budget:g}; `first` must be below it, got {self.first_budget!r}. "
                "'l-osue' has no such bound."
            )

    @cached_property
    def stored(self) -> OptimisedUnary:
        """OUE at the budget of unlimited reports."""
        return OptimisedUnary(self.size, self.nominal_budget)

    @cached_property
    def instant_words(self) -> tuple[int, int]:
        """Half of the words, and as few others as keep the first report's budget."""
        p, q = self.permanent_rates
        half = Fraction(1, 2)

        def factor(words: int) -> Fraction:
            made = Fraction(words, WORDS)
            true, other = p * half + (1 - p) * made, q * half + (1 - q) * made
            return true * (1 - other) / ((1 - true) * other)

        return WORDS // 2, least_words(factor, self.first_budget)


@dataclass(frozen=True)
class LongitudinalOptimisedSymmetric(TwoBudgets, LongitudinalBits):
    """L-OSUE: symmetric bits on top of kept optimised bits; the first report is OUE at `first`."""

    name: ClassVar[str] = "l-osue"

    @cached_property
    def stored(self) -> OptimisedUnary:
        """OUE at the budget of unlimited reports."""
        return OptimisedUnary(self.size, self.nominal_budget)

    @cached_property
    def instant_words(self) -> tuple[int, int]:
        """As few flips as keep the first report's budget: p* stays 1/2 whatever they are."""
        q = self.permanent_rates[1]

        def factor(words: int) -> Fraction:
            made = Fraction(words, WORDS)
            other = q * (1 - made) + (1 - q) * made
            return (1 - other) / other

        flip = least_words(factor, self.first_budget)
        return WORDS - flip, flip
