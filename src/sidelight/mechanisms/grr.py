"""Generalised randomised response: report the true value, or one of the others, all equally likely."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Mask, Positions, is_large, spans
from sidelight.foundation.bits import code_counts
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import WORDS, least_share
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True)
class RandomisedResponse(FrequencyOracle):
    """GRR over `size` values (Kairouz, Oh, Viswanath 2014).

    Of the 2^64 values of a random word each other value gets `other` ones and the truth all the rest, so
    all probabilities are exact.
    """

    name: ClassVar[str] = "grr"
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

    @property
    def channel(self) -> FavouringChannel:
        """A report favours one value, the reported one."""
        return FavouringChannel(self.size, "singletons", self.other / self.truth, budget=self.epsilon)

    @property
    def form(self) -> ReportForm:
        """A code."""
        return ReportForm.codes(self.size)

    @property
    def guess_rate(self) -> float:
        """How often the truth is reported: the guess is the reported value."""
        return float(self.mark_if_true)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one reported code for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        source = randomness(seed, self.name, compiled=is_large(len(codes)))
        step = steps(len(codes))
        out = np.empty_like(codes)
        truth, other = np.uint64(self.truth), np.uint64(self.other)
        for span in spans(len(codes)):
            part = codes[span]
            step.respond(source.words(first + span.start, len(part)), part, truth, other, out[span])
        return Reports(out, is_simulation=not source.is_secure)

    def marked(self, reports: Reports) -> Mask:
        """Return which value each report is."""
        return np.asarray(np.arange(self.size)[:, None] == self.check(reports)).T

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value was reported."""
        codes = self.check(reports)
        return Aggregate(len(codes), code_counts(codes, self.size), self.name)

    def face_value(self, reports: Reports) -> Positions:
        """Return the reported codes."""
        return self.check(reports).astype(np.intp)
