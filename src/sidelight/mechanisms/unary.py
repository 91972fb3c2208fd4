"""Unary encoding: one bit for each value, the true one set, every bit randomised on its own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import is_large, spans
from sidelight.foundation.bits import Rows, bit_counts, random_rows, row_bytes
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.counting import Counting
from sidelight.mechanisms.exact import WORDS, exp_below, least_share
from sidelight.mechanisms.mechanism import Aggregate, check_codes, check_offset, check_reports, impossible
from sidelight.mechanisms.reports import Reports


class Unary(Counting):
    """Bits that are set with one probability where they are true and with a smaller one elsewhere.

    A report is a packed row of bits (see `foundation.bits`); any set of bits can be reported, so any set of
    values can be favoured, each by the factor p(1-q)/((1-p)q).
    """

    @property
    @abstractmethod
    def keep(self) -> int:
        """How many of the 2^64 words set the true value's bit."""

    @property
    @abstractmethod
    def flip(self) -> int:
        """How many of the 2^64 words set another value's bit."""

    @property
    def factor(self) -> Fraction:
        """Exactly p(1-q)/((1-p)q): two values differ in two bits."""
        return Fraction(self.keep * (WORDS - self.flip), (WORDS - self.keep) * self.flip)

    @property
    def support_if_true(self) -> Fraction:
        """The probability p of a true bit to be set."""
        return Fraction(self.keep, WORDS)

    @property
    def support_if_other(self) -> Fraction:
        """The probability q of another bit to be set."""
        return Fraction(self.flip, WORDS)

    @property
    def channel(self) -> FavouringChannel:
        """A report can favour every set of values, those of its set bits."""
        return FavouringChannel(self.size, "all", float(1 / self.factor), budget=self.epsilon)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one packed row of bits for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        rows = encode(codes, self.size, self.keep, self.flip, seed=seed, stream=self.name, offset=offset)
        return Reports(rows, is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each bit is set."""
        return count_rows(reports, self.size, self.name)


def encode(
    codes: NDArray[np.unsignedinteger[Any]],
    size: int,
    keep: int,
    flip: int,
    *,
    seed: int | None,
    stream: str,
    offset: int,
) -> Rows:
    """Return packed rows: the code's bit set by `keep` of 2^64 words, every other bit by `flip`."""
    first = check_offset(offset)
    compiled = is_large(len(codes))
    noise = randomness(seed, f"{stream}/noise", compiled=compiled)
    truth = randomness(seed, f"{stream}/truth", compiled=compiled)
    step = steps(len(codes))
    rows = random_rows(noise, first, len(codes), size, flip)
    for span in spans(len(codes)):
        part = codes[span]
        step.overlay(truth.words(first + span.start, len(part)), part, np.uint64(keep), rows[span])
    return rows


def count_rows(reports: Reports, size: int, name: str) -> Aggregate:
    """Count how often each bit is set, after checking that none is set after the last value's."""
    rows = check_reports(reports, "u", row_bytes(size), packed=True)
    counts = bit_counts(rows)
    if counts[size:].any():
        places = np.unpackbits(rows, axis=1, bitorder="little")
        raise impossible(f"bits of {size} values, none set after the last", places[:, size:].astype(np.bool_))
    return Aggregate(len(rows), counts[:size], name)


@dataclass(frozen=True)
class SymmetricUnary(Unary):
    """SUE: both kinds of bits keep their value with the same probability (basic one-time RAPPOR).

    p = e^(eps/2) / (e^(eps/2) + 1), q = 1 - p (Erlingsson, Pihur, Korolova 2014).
    """

    name: ClassVar[str] = "sue"

    @property
    def keep(self) -> int:
        """How many of the 2^64 words set the true value's bit."""
        return WORDS - self.flip

    @cached_property
    def flip(self) -> int:
        """How many of the 2^64 words set another value's bit: rounded up, so epsilon rounds down."""
        return floor(WORDS / (1 + exp_below(self.budget / 2))) + 1


@dataclass(frozen=True)
class OptimisedUnary(Unary):
    """OUE: p = 1/2, q = 1 / (e^eps + 1), the least variance of rare values (Wang et al. 2017)."""

    name: ClassVar[str] = "oue"

    @property
    def keep(self) -> int:
        """How many of the 2^64 words set the true value's bit: half of them."""
        return WORDS // 2

    @cached_property
    def flip(self) -> int:
        """How many of the 2^64 words set another value's bit: rounded up, so epsilon rounds down."""
        return least_share(2, self.budget)
