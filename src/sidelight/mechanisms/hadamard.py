"""Hadamard response: report a column of a Hadamard matrix, likelier where the value's row is +1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Whole
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.draws import Draws
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.channel import Channel, channel_of_columns
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import WORDS, least_share
from sidelight.mechanisms.mechanism import Aggregate, check_estimable
from sidelight.mechanisms.oracle import FrequencyOracle, OneCode
from sidelight.mechanisms.reports import ReportForm, Reports


@dataclass(frozen=True)
class HadamardResponse(OneCode, FrequencyOracle):
    """Hadamard response over `size` values (Acharya, Sun, Zhang 2019): log2(K) bits a report.

    K is the least power of two above `size`; value v is row v + 1 of the K x K matrix, whose entry in
    column y is the parity of the bits that v + 1 and y share. A report is uniform among the columns of
    parity 0 with probability p = e^eps / (e^eps + 1), among those of parity 1 otherwise. Flipping the
    lowest bit of v + 1 in y changes its parity, so one uniform column and one threshold suffice, exactly.
    """

    name: ClassVar[str] = "hadamard"
    degrades: ClassVar[bool] = True  # mixed with a uniform column it is itself at a smaller budget

    @property
    def columns(self) -> int:
        """The number K of possible reports."""
        return 1 << self.size.bit_length()

    @cached_property
    def other(self) -> int:
        """How many of the 2^64 words report the unlikelier parity: rounded up, so epsilon rounds down."""
        return least_share(2, self.nominal_budget)

    @property
    def factor(self) -> Fraction:
        """The ratio of the two parities."""
        return Fraction(WORDS - self.other, self.other)

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities of parity 0: half of another value's columns are the true one's."""
        return Fraction(WORDS - self.other, WORDS), Fraction(1, 2)

    @property
    def channel(self) -> Channel:
        """The matrix where it is small enough, else each report's likelihoods."""
        half = self.columns // 2
        likely, rest = (WORDS - self.other) / WORDS / half, self.other / WORDS / half
        law = lambda reports: np.where(self.marked(Reports(reports)), likely, rest)  # noqa: E731
        return channel_of_columns(self.size, self.columns, self.epsilon, law)

    @property
    def form(self) -> ReportForm:
        """A column."""
        return ReportForm.codes(self.columns)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one reported column for each code, see `Mechanism.randomise`."""
        rows = check_codes(values, self.size).astype(np.uint32) + np.uint32(1)
        first = check_offset(offset)
        compiled = use_loop("foundation.fill_words", len(rows), 2)
        column = randomness(seed, f"{self.name}/column", compiled=compiled)
        noise = randomness(seed, f"{self.name}/noise", compiled=compiled)
        shift = np.uint64(64 - (self.columns.bit_length() - 1))  # high bits, uniform as K is a power of 2
        drawn = (column.words(first, len(rows)) >> shift).astype(np.uint32)
        parity = noise.words(first, len(rows)) < np.uint64(self.other)
        lowest = rows & (~rows + np.uint32(1))
        drawn ^= np.where(_parity(rows & drawn) != parity, lowest, np.uint32(0))
        return Reports(drawn.astype(self.form.dtype), is_simulation=not noise.is_secure)

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return the column that two words make: one for a uniform column, one for its parity."""
        row, bits = int(code) + 1, self.columns.bit_length() - 1
        column = draws.word() >> (64 - bits)
        is_odd = draws.word() < self.other
        if (row & column).bit_count() % 2 != is_odd:
            column ^= row & -row
        return Reports(np.array([column], dtype=self.form.dtype))

    def marked(self, reports: Reports) -> Mask:
        """Return which values have parity 0 with each reported column."""
        rows = np.arange(1, self.size + 1, dtype=np.uint32)[:, None]
        return ~_parity(rows & self.check(reports).astype(np.uint32)).T

    def mark_counts(self, aggregate: Aggregate) -> Whole:
        """Return how many reports have parity 0 with each value, by a fast Walsh-Hadamard transform."""
        check_estimable(aggregate, self.columns, self.name)
        bits = self.columns.bit_length() - 1
        rows, columns = _signs(bits - bits // 2), _signs(bits // 2)
        # The matrix is a Kronecker product, so two products with its factors transform the counts; all sums
        # stay below the number of reports, so doubles hold them exactly.
        counts = aggregate.sums.reshape(len(rows), len(columns)).astype(np.float64)
        transformed = (rows @ counts @ columns).reshape(-1).astype(np.int64)
        return np.asarray((aggregate.reports + transformed[1 : self.size + 1]) // 2)


@cache
def _signs(bits: int) -> Array:
    """Return the Hadamard matrix of 2^bits rows: -1 where row and column share an odd number of bits."""
    each = np.arange(1 << bits, dtype=np.uint32)
    return np.where(_parity(each[:, None] & each), -1.0, 1.0)


def _parity(words: NDArray[np.uint32]) -> Mask:
    """Return whether each word has an odd number of set bits."""
    return np.asarray(np.bitwise_count(words) & 1, dtype=np.bool_)
