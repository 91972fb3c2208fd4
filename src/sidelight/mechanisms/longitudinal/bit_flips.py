"""dBitFlipPM: a few random bits of the value's histogram, drawn once and sent as they are.

Each device asks only about d of its k values, chosen at random and public, and keeps its answer to each of
the values that it may have (Ding, Kulkarni, Yekhanin 2017). Nothing is added to what is kept: the same value
gives the same report again, and another value another memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Positions, Words, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import check_whole
from sidelight.foundation.randomness import below, randomness
from sidelight.mechanisms import arrays
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import LARGEST_MATRIX, AnyChannel, Channel, DenseChannel
from sidelight.mechanisms.channel.generic import all_sets
from sidelight.mechanisms.checks import check_codes, check_offset, check_shares, impossible
from sidelight.mechanisms.exact import WORDS, least_share, store
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.longitudinal.oracle import Remembers, check_rounds
from sidelight.mechanisms.mechanism import Aggregate, check_estimable
from sidelight.mechanisms.oracle import CodedMechanism
from sidelight.mechanisms.reports import ReportForm, Reports

_USUAL = 4
_MOST_LISTED = 1 << 14


@dataclass(frozen=True)
class BitFlips(CodedMechanism, Kept, Remembers):
    """dBitFlipPM over `size` values: bits of `d` of them, each kept with p = e^(eps/2) / (e^(eps/2) + 1).

    A report is a set of codes: 2v for a bit of value v that is not set, 2v + 1 for one that is. With d = 1
    two values never differ in two bits, so that only half of the budget is spent.
    """

    name: ClassVar[str] = "dbitflip"
    keeps: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("d",)
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"d": 2})
    d: int | None = None

    def settle(self) -> None:
        """Check the number of bits."""
        if self.d is not None:
            store(self, d=check_whole("d", self.d, at_least=1, at_most=self.size))

    @property
    def asked(self) -> int:
        """How many values each device asks about."""
        return min(_USUAL, self.size) if self.d is None else self.d

    @cached_property
    def flip(self) -> int:
        """How many of the 2^64 words flip a bit: rounded up, so epsilon rounds down."""
        return least_share(2, self.nominal_budget / 2)

    @property
    def bit_rates(self) -> tuple[Fraction, Fraction]:
        """How likely the true value's bit is set, and another one's."""
        return Fraction(WORDS - self.flip, WORDS), Fraction(self.flip, WORDS)

    @property
    def factor(self) -> Fraction:
        """Two bits' ratio (p/q)^2, or one's where only one is sent."""
        p, q = self.bit_rates
        return p / q if self.asked == 1 else (p / q) ** 2

    def budget_of(self, times: int) -> float:
        """Return the budget of one report: the next ones are the same."""
        check_rounds(times)
        return self.epsilon

    @property
    def epsilon_instant(self) -> float:
        """What a report says about the memo: everything, as it is the memo. Only epochs bound changes."""
        return math.inf

    @property
    def change_seen(self) -> float:
        """The probability that the memos of two different values differ: 1 - E[s^(d-m) (1-s)^m].

        s = p^2 + q^2, and m of the two values' bits are among the d: it is hypergeometric.
        """
        p, q = map(float, self.bit_rates)
        same, size, asked = p * p + q * q, self.size, self.asked
        ways = math.comb(size, asked)
        shares = (math.comb(2, m) * math.comb(size - 2, asked - m) / ways for m in range(min(2, asked) + 1))
        return 1 - sum(w * same ** (asked - m) * (1 - same) ** m for m, w in enumerate(shares))

    # Reports.

    @property
    def form(self) -> ReportForm:
        """A set of codes, one for each bit that is sent."""
        return ReportForm.sets(2 * self.size, self.asked)

    def check(self, reports: Reports) -> NDArray[Any]:
        """Return the codes, or raise if some report says two things about one value."""
        codes = super().check(reports)
        twice = (codes[:, 1:] >> 1) == (codes[:, :-1] >> 1)
        if twice.any():
            raise impossible("sets in rising order, with one bit for each value", twice)
        return codes

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a new memory's bits for each code, see `Mechanism.randomise`."""
        codes, first = check_codes(values, self.size), check_offset(offset)
        compiled = use_loop("mechanisms.flip_bits", len(codes), 2 * self.asked)
        asking = randomness(seed, f"{self.name}/asked", compiled=compiled)
        noise = randomness(seed, f"{self.name}/bits", compiled=compiled)
        out = np.empty((len(codes), self.asked), dtype=self.form.dtype)
        for span in spans(len(codes), self.asked):
            start, part = (first + span.start) * self.asked, out[span]
            draws = below(asking, start, len(part), self._bounds)
            words = noise.words(start, part.size)
            flip_bits = steps(compiled=compiled).flip_bits
            flip_bits(draws, codes[span], words, np.uint64(self.flip), self.size, part)
        return Reports(out, is_simulation=seed is not None)

    @property
    def _bounds(self) -> Words:
        """Below which each draw lies."""
        return np.arange(self.size - self.asked + 1, self.size + 1, dtype=np.uint64)

    @property
    def identity(self) -> str:
        """See `Kept`."""
        return f"flips {self.size} {self.asked} {self.flip}"

    @property
    def memo_words(self) -> int:
        """One for each bit that is sent."""
        return self.asked

    @property
    def shared_words(self) -> int:  # type: ignore[override]
        """One for each value that is asked about."""
        return self.asked

    def made(self, code: int, words: Words, shared: Words) -> Reports:
        """Return the bits that the words make, of the values that the shared words choose.

        Word j chooses floor(word (k-d+j+1) / 2^64), or k-d+j where that is chosen already (Floyd).
        """
        bounds = self._bounds.tolist()
        drawn = [(int(word) * bound) >> 64 for word, bound in zip(shared, bounds, strict=True)]
        return self._flipped(code, words, drawn)

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return bits of values that are drawn anew, exactly uniform, see `Mechanism`."""
        asked = [draws.below(bound) for bound in self._bounds.tolist()]
        return self._flipped(code, draws.words(self.asked), asked)

    def _flipped(self, code: int, words: Words, asked: list[int]) -> Reports:
        draws, out = np.array([asked], dtype=np.uint32), np.empty((1, self.asked), dtype=self.form.dtype)
        arrays.flip_bits(draws, np.array([code]), words, np.uint64(self.flip), self.size, out)
        return Reports(out)

    # What the server, and an adversary, make of it.

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count for each value the bits that are set, and then all that were sent."""
        codes = self.check(reports).reshape(-1)
        sent = np.bincount(codes, minlength=2 * self.size).reshape(self.size, 2)
        return Aggregate(len(reports), np.concatenate([sent[:, 1], sent.sum(axis=1)]), self.name)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate (k/d) (ones - q sent) / (n (p - q)) of the values' frequencies."""
        check_estimable(aggregate, 2 * self.size, self.name)
        p, q = map(float, self.bit_rates)
        ones, sent = aggregate.sums.reshape(2, self.size)
        scale = self.size / (self.asked * aggregate.reports * (p - q))
        return np.asarray((ones - q * sent) * scale)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        count = check_whole("reports", reports, at_least=1)
        share = check_shares(frequencies, self.size, single=True)
        p, q = map(float, self.bit_rates)
        squares = (share * (p * p * p + q * q * q) + (1 - share) * p * q) / (p - q) ** 2
        return np.asarray((self.size / self.asked * squares - share**2) / count)

    @property
    def adds_up(self) -> bool:
        """Whether estimates add up to 1: each bit has noise of its own."""
        return False

    def likelihoods(self, reports: Reports) -> Array:
        """Return p/q, q/p or 1 for a value whose bit is set, not set or not sent, over the largest."""
        codes, odds = self.check(reports), float(self.bit_rates[0] / self.bit_rates[1])
        likely = np.ones((self.size, len(codes)))
        likely[codes >> 1, np.arange(len(codes))[:, None]] = np.where(codes & 1, odds, 1 / odds)
        return np.asarray(likely / likely.max(axis=0)).T

    def tabulated(self, reports: Reports) -> tuple[Array, Positions]:
        """Return the likelihoods of the distinct reports, see `Mechanism.tabulated`."""
        distinct, rows = np.unique(self.check(reports), axis=0, return_inverse=True)
        return self.likelihoods(Reports(distinct)), rows.reshape(-1)

    def report_law(self, most: int) -> Array | None:
        """Return the probability of every report given every value, see `Mechanism.report_law`."""
        choices, patterns = math.comb(self.size, self.asked), 1 << self.asked
        if choices * patterns > most or choices * patterns * self.size > LARGEST_MATRIX:
            return None
        asked = np.array(list(combinations(range(self.size), self.asked)))
        bits: Mask = all_sets(self.asked).T > 0
        p, q = map(float, self.bit_rates)
        rates = np.where(asked == np.arange(self.size)[:, None, None], p, q)[:, :, None, :]
        law = np.where(bits, rates, 1 - rates).prod(axis=3).reshape(self.size, -1)
        return np.asarray(law / choices)

    @cached_property
    def channel(self) -> Channel:
        """The matrix of all reports, or what any channel of the budget says where they are too many."""
        law = self.report_law(_MOST_LISTED)
        return AnyChannel(self.size, self.epsilon) if law is None else DenseChannel(law, self.epsilon)

    @property
    def guess_rate(self) -> float:
        """How often a guess among the set bits is right; without one, among the values not asked about."""
        p, q = map(float, self.bit_rates)
        sent, silent = self.asked / self.size, (1 - q) ** (self.asked - 1)
        found = p * -math.expm1(self.asked * math.log1p(-q)) / (self.asked * q)
        if self.asked == self.size:
            return found + (1 - p) * silent / self.size
        return sent * found + (1 - sent) * silent * (1 - q) / (self.size - self.asked)
