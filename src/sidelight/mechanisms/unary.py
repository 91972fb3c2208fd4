"""Unary encoding: one bit for each value, the true one set, every bit randomised on its own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes, Array, Mask, is_large, spans
from sidelight.foundation.bits import Rows, bit_counts, random_rows
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.channel.generic import all_sets
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import WORDS, least_share
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.guess import marked_accuracy
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle
from sidelight.mechanisms.reports import Reports


class MarkedBits(FrequencyOracle):
    """Reports are a bit for each value, each set on its own: likelier where it is true.

    A report is a packed row of bits (see `foundation.bits`); any set of bits can be reported, so any set of
    values can be favoured, each by the factor p(1-q)/((1-p)q).
    """

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
    def channel(self) -> FavouringChannel:
        """A report can favour every set of values, those of its set bits."""
        return FavouringChannel(self.size, "all", float(1 / self.factor), budget=self.epsilon)

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
        if 2.0**self.size > most:
            return None
        p, q = map(float, self.mark_rates)
        marked = all_sets(self.size).T > 0
        rates = np.where(np.eye(self.size, dtype=np.bool_), p, q)[:, None, :]
        return np.asarray(np.where(marked, rates, 1 - rates).prod(axis=2))

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each bit is set."""
        rows = self.check(reports)
        return Aggregate(len(rows), bit_counts(rows)[: self.size], self.name)

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
        codes = check_codes(values, self.size)
        rows = encode(codes, self.size, self.thresholds, seed=seed, stream=self.name, offset=offset)
        return Reports(rows, is_simulation=seed is not None)


def encode(
    codes: AnyCodes, size: int, thresholds: tuple[int, int], *, seed: int | None, stream: str, offset: int
) -> Rows:
    """Return packed rows: of 2^64 words `thresholds[0]` set a code's own bit, `thresholds[1]` any other."""
    keep, flip = thresholds
    first = check_offset(offset)
    compiled = is_large(len(codes))
    noise = randomness(seed, f"{stream}/noise", compiled=compiled)
    truth = randomness(seed, f"{stream}/truth", compiled=compiled)
    step = steps(compiled=compiled)
    rows = random_rows(noise, first, len(codes), size, flip)
    for span in spans(len(codes)):
        part = codes[span]
        step.overlay(truth.words(first + span.start, len(part)), part, np.uint64(keep), rows[span])
    return rows


@dataclass(frozen=True)
class SymmetricUnary(Unary):
    """SUE: both kinds of bits keep their value with the same probability (basic one-time RAPPOR).

    p = e^(eps/2) / (e^(eps/2) + 1), q = 1 - p (Erlingsson, Pihur, Korolova 2014).
    """

    name: ClassVar[str] = "sue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Both from the words that flip a bit: rounded up, so epsilon rounds down."""
        flip = least_share(2, self.nominal_budget / 2)
        return WORDS - flip, flip


@dataclass(frozen=True)
class OptimisedUnary(Unary):
    """OUE: p = 1/2, q = 1 / (e^eps + 1), the least variance of rare values (Wang et al. 2017)."""

    name: ClassVar[str] = "oue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Half of the words, and e^eps times fewer than the rest: rounded up, so epsilon rounds down."""
        return WORDS // 2, least_share(2, self.nominal_budget)
