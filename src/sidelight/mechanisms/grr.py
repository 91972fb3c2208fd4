"""Generalised randomised response: report the true value, or one of the others, all equally likely."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sidelight.foundation.arrays import AnyCodes, Mask, Words
from sidelight.foundation.bits import code_type
from sidelight.foundation.randomness import Randomness
from sidelight.mechanisms import arrays
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.exact import WORDS, least_share
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.oracle import FrequencyOracle, SampledCode
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True)
class RandomisedResponse(SampledCode, FrequencyOracle, Kept):
    """GRR over `size` values (Kairouz, Oh, Viswanath 2014).

    Of the 2^64 values of a random word each other value gets `other` ones and the truth all the rest, so
    all probabilities are exact.
    """

    name: ClassVar[str] = "grr"
    memo_words: ClassVar[int] = 1
    favours: ClassVar[Family] = "singletons"  # the reported one
    set_size: ClassVar[int] = 1
    degrades: ClassVar[bool] = True  # two responses in a row are a response again

    @cached_property
    def other(self) -> int:
        """How many of the 2^64 words report a particular other value: rounded up, so epsilon rounds down."""
        return least_share(self.size, self.nominal_budget)

    @property
    def truth(self) -> int:
        """How many of the 2^64 words report the true value."""
        return WORDS - (self.size - 1) * self.other

    @property
    def factor(self) -> Fraction:
        """Exactly truth / other."""
        return Fraction(self.truth, self.other)

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities to report the true value, and a particular other value."""
        return Fraction(self.truth, WORDS), Fraction(self.other, WORDS)

    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> AnyCodes:
        """Return one report for each code, from the words number `start` on."""
        words, out = source.words(start, len(codes)), np.empty_like(codes)
        respond = steps(compiled=source.compiled).respond
        respond(words, codes, np.uint64(self.truth), np.uint64(self.other), out)
        return out

    def marked(self, reports: Reports) -> Mask:
        """Return which value each report is."""
        return np.asarray(np.arange(self.size)[:, None] == self.check(reports)).T

    @property
    def identity(self) -> str:
        """See `Kept`."""
        return f"grr {self.size} {self.other}"

    def made(self, code: int, words: Words, shared: Words) -> Reports:
        """Return the response that one word makes: the first `truth` words keep the code."""
        del shared
        given: AnyCodes = np.array([code], dtype=code_type(self.size))
        out = np.empty_like(given)
        arrays.respond(words, given, np.uint64(self.truth), np.uint64(self.other), out)
        return Reports(out)
