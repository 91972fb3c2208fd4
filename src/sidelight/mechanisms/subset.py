"""Subset selection: report a set of w values that is likelier to hold the true one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import floor
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Mask, spans
from sidelight.foundation.bits import code_counts
from sidelight.foundation.compiled import Loop, use_loop
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import check_whole
from sidelight.foundation.randomness import below, randomness
from sidelight.mechanisms import arrays
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import WORDS, check_size, exp_below, store
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle
from sidelight.mechanisms.reports import ReportForm, Reports

_SMALL_SET = 64  # up to here comparing each draw with all before it is faster than a bitmap


@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """SS: sets of w values; those with the true one are e^eps times as likely (Ye, Barg 2018).

    The true value is in the set for `include` of the 2^64 words; the rest of the set is exactly uniform
    among the other values. A set is reported in order, so that its order says nothing.

    Attributes:
        width: the size w of a set; by default max(1, floor(size / (e^eps + 1))).
    """

    name: ClassVar[str] = "ss"
    parameters: ClassVar[tuple[str, ...]] = ("width",)
    favours: ClassVar[Family] = "subsets"
    degrades: ClassVar[bool] = True  # mixed with a uniform set it is itself at a smaller budget
    width: int = 0

    def settle(self) -> None:
        """Take the usual width where none is given."""
        width = check_whole("width", self.width, at_least=0, at_most=self.size - 1)
        usual = floor(self.size / (math.exp(min(self.nominal_budget, 100.0)) + 1))
        store(self, width=width or max(1, usual))

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for; freeze `width` where budgets are searched."""
        if "width" in parameters:
            check_whole("width", parameters["width"], at_least=1, at_most=check_size(size) - 1)
        return super().from_plan(size, epsilon, parameters)

    @classmethod
    def examples(cls, size: int) -> Iterable[Mapping[str, Any]]:
        """Return the usual width, and the widest."""
        return {}, {"width": size - 1}

    @property
    def held(self) -> Mapping[str, Any]:
        """The width: were it to follow the budget, leakage would not always grow with it."""
        return {"width": self.width}

    @property
    def set_size(self) -> int:
        """The width."""
        return self.width

    @cached_property
    def include(self) -> int:
        """How many of the 2^64 words put the true value into the set: rounded down, like epsilon."""
        weight = exp_below(self.nominal_budget) * self.width
        # A set without the truth must stay possible, else one report tells all.
        return min(floor(WORDS * weight / (weight + self.size - self.width)), WORDS - 1)

    @property
    def factor(self) -> Fraction:
        """The ratio of a set's probabilities with and without the true value, p (k-w) / ((1-p) w)."""
        outside = self.size - self.width
        return Fraction(self.include * outside, (WORDS - self.include) * self.width)

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities that the set holds the true value, and a particular other value."""
        include = Fraction(self.include, WORDS)
        return include, (self.width - include) / (self.size - 1)

    def report_law(self, most: int) -> Array | None:
        """Return the probability of every set of the width given every value, see `Mechanism`."""
        if math.comb(self.size, self.width) > most:
            return None
        sets = np.array(list(combinations(range(self.size), self.width)))
        holds = (sets[None, :, :] == np.arange(self.size)[:, None, None]).any(axis=2)
        include = float(self.mark_if_true)
        ways = math.comb(self.size - 1, self.width - 1), math.comb(self.size - 1, self.width)
        return np.asarray(np.where(holds, include / ways[0], (1 - include) / ways[1]))

    @property
    def guess_rate(self) -> float:
        """How often a guess among the set is right."""
        return float(self.mark_if_true) / self.width

    @property
    def form(self) -> ReportForm:
        """A set in rising order."""
        return ReportForm.sets(self.size, self.width)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one sorted set of values for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        row = check_offset(offset)
        is_small = self.width <= _SMALL_SET
        loop: Loop = "mechanisms.choose_small_sets" if is_small else "mechanisms.choose_sets"
        compiled = use_loop(loop, len(codes), self.size)  # the plain path's width, however small the sets
        inclusion = randomness(seed, f"{self.name}/inclusion", compiled=compiled)
        others = randomness(seed, f"{self.name}/others", compiled=compiled)
        step = steps(compiled=compiled)
        choose = step.choose_small_sets if is_small else step.choose_sets
        first = self.size - self.width
        bounds = np.arange(first, first + self.width, dtype=np.uint64)
        out = np.empty((len(codes), self.width), dtype=np.uint16)
        for span in spans(len(codes), self.width if compiled else self.size):
            rows = span.stop - span.start
            includes = inclusion.words(row + span.start, rows) < np.uint64(self.include)
            draws = below(others, (row + span.start) * self.width, rows, bounds)
            choose(draws, includes, codes[span], self.size, out[span])
        return Reports(out, is_simulation=not inclusion.is_secure)

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return the set that a word, for the inclusion, and one draw for each place make."""
        includes = np.array([draws.word() < self.include])
        first = self.size - self.width
        others = [draws.below(bound) for bound in range(first, first + self.width)]
        out = np.empty((1, self.width), dtype=np.uint16)
        arrays.choose_sets(np.array([others], dtype=np.uint32), includes, np.array([code]), self.size, out)
        return Reports(out)

    def marked(self, reports: Reports) -> Mask:
        """Return which values each set holds."""
        marked = np.zeros((self.size, len(reports)), dtype=np.bool_)
        np.put_along_axis(marked, self.check(reports).T.astype(np.intp), True, axis=0)
        return marked.T

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value is in a set."""
        flat = self.check(reports).reshape(-1)
        return Aggregate(len(reports), code_counts(flat, self.size), self.name)
