"""Unary encoding: one bit for each value, the true one set, every bit randomised on its own."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Words, spans
from sidelight.foundation.bits import bit_counts, packed_rows, random_rows, row_words
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel.generic import all_sets
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import WORDS, least_share
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle, marked_accuracy
from sidelight.mechanisms.reports import ReportForm, Reports


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
        compiled = use_loop("mechanisms.overlay", len(codes), row_words(self.size))
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


class Unary(MarkedBits, Kept):
    """Bits of the true value's histogram, randomised by two thresholds."""

    @property
    def identity(self) -> str:
        """See `Kept`."""
        return " ".join(map(str, ("bits", self.size, *self.thresholds)))

    @property
    def memo_words(self) -> int:
        """One for each bit."""
        return self.size

    def made(self, code: int, words: Words, shared: Words) -> Reports:
        """Return the bits that the words make: each is set below its threshold, that of the code first."""
        del shared
        keep, flip = map(np.uint64, self.thresholds)
        return Reports(packed_rows((words < np.where(np.arange(self.size) == code, keep, flip))[None]))

    def made_of_all(self, codes: AnyCodes, words: Words, shared: Words) -> Reports:
        """See `Kept`: the same for many codes at once."""
        del shared
        keep, flip = map(np.uint64, self.thresholds)
        return Reports(packed_rows(words < np.where(np.arange(self.size) == codes[:, None], keep, flip)))

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
