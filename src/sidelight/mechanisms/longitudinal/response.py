"""Randomised response on top of a kept one: L-GRR over the values, LOLOHA over buckets of a public hash."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Positions, Words, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import check_whole
from sidelight.foundation.randomness import derive_seed, randomness
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import (
    LARGEST_MATRIX,
    Channel,
    CountedChannel,
    DegradedChannel,
    FavouringChannel,
)
from sidelight.mechanisms.channel.dense import report_counts
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.checks import check_codes, check_offset, impossible
from sidelight.mechanisms.exact import WORDS, store
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.hashing import LARGEST_BUCKETS, Hashing, OptimisedHashing, best_buckets
from sidelight.mechanisms.longitudinal.budgets import Rates, response_budget
from sidelight.mechanisms.longitudinal.oracle import (
    TwoBudgets,
    check_rounds,
    keep_words,
    log_rate,
    seen_difference,
)
from sidelight.mechanisms.longitudinal.tallies import drawn_codes
from sidelight.mechanisms.oracle import OneCode
from sidelight.mechanisms.reports import Reports

_MOST_LISTED = 1 << 14
"""Channels list so many counts at most."""
_LEAST_LISTED = 1e-260
"""They list no counts that are less likely: a probability that rounds to 0 would be a false certainty."""


class LongitudinalResponse(TwoBudgets):
    """What L-GRR and LOLOHA have in common: memo and report are one of so many `cells`."""

    @property
    def cells(self) -> int:
        """Among how many codes memo and report are drawn."""
        return self.cell_response.size

    @property
    @abstractmethod
    def cell_response(self) -> RandomisedResponse:
        """How a cell is turned into a memo."""

    @cached_property
    def instant_other(self) -> int:
        """How many of the 2^64 words report a particular other cell than the memo."""
        p, q = self.cell_response.mark_rates
        return keep_words(self.cells, p - q, self.first_budget)

    @property
    def instant_rates(self) -> Rates:
        """How likely a report is the memo, and a particular other cell."""
        other = self.instant_other
        return Fraction(WORDS - (self.cells - 1) * other, WORDS), Fraction(other, WORDS)

    @property
    def cell_rates(self) -> Rates:
        """How likely the first report is the true cell, and a particular other one."""
        (p, q), (kept, made) = self.cell_response.mark_rates, self.instant_rates
        return p * kept + (1 - p) * made, q * kept + (1 - q) * made

    @property
    def factor(self) -> Fraction:
        """That of the first report."""
        p, q = self.cell_rates
        return p / q

    def report(self, permanent: Reports, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a fresh report of each memo."""
        memos, first = self.check(permanent), check_offset(offset)
        source = randomness(seed, f"{self.name}/report", compiled=use_loop("mechanisms.respond", len(memos)))
        respond = steps(compiled=source.compiled).respond
        other = np.uint64(self.instant_other)
        truth = np.uint64(WORDS - (self.cells - 1) * self.instant_other)
        out = np.empty_like(memos)
        for span in spans(len(memos)):
            words = source.words(first + span.start, span.stop - span.start)
            respond(words, memos[span], truth, other, out[span])
        return Reports(out, permanent.seeds, seed is not None or permanent.is_simulation)

    def budget_of(self, times: int) -> float:
        """Return eps_T, see `Longitudinal`."""
        rates = self.cell_response.mark_rates
        exact = response_budget(self.cells, rates, self.instant_rates, check_rounds(times))
        return min(exact, self.epsilon_unlimited)

    @property
    def epsilon_instant(self) -> float:
        """That of the response to the memo."""
        return log_rate(self.instant_rates)

    # Counts: how often each cell is reported.

    @property
    def tally_width(self) -> int:
        """A counter for each cell."""
        return self.cells

    def tallied(self, reports: Reports) -> NDArray[Any]:
        """Return 1 for the reported cell."""
        return np.asarray(self.check(reports)[:, None] == np.arange(self.cells), dtype=np.uint8)

    def tallies(self, permanent: Reports, times: int, *, seed: int, offset: int = 0) -> NDArray[Any]:
        """Return how often each cell is reported, see `Longitudinal.tallies`."""
        memos = self.check(permanent)
        return drawn_codes(memos, self.cells, float(self.instant_rates[0]), times, seed, offset)

    def check_tally(self, counts: NDArray[Any], times: int) -> None:
        """Raise unless each person's counts add up to the number of reports."""
        strange = counts.sum(axis=1, dtype=np.int64) != times
        if strange.any():
            raise impossible(f"counts that add up to {times} reports", strange)

    def cell_logs(self, counts: NDArray[Any]) -> Array:
        """Return ln Pr(counts in a given order | cell) but for T ln q2, shape (people, cells).

        The memo z has the likelihood r^(n_z) up to q2^T, r = p2/q2; given the cell it is that one with
        probability p and each other with probability q.
        """
        p, q = map(float, self.cell_response.mark_rates)
        logs = counts * self.epsilon_instant
        every = np.logaddexp.reduce(logs, axis=1, keepdims=True) + math.log(q)
        return np.logaddexp(every, logs + math.log(p - q))

    def order_logs(self, counts: NDArray[Any], times: int) -> Array:
        """Return `cell_logs`."""
        del times
        return self.cell_logs(counts)

    def cell_law(self, times: int, most: int) -> tuple[Array, NDArray[Any]] | None:
        """Return Pr(counts | cell), shape (cells, counts), and the counts, of all counts that add up to T."""
        number = math.comb(times + self.cells - 1, times)
        if number > most or number * self.cells > LARGEST_MATRIX:
            return None
        from scipy.special import gammaln

        counts = report_counts(self.cells, times)
        ways = gammaln(times + 1) - gammaln(counts + 1).sum(axis=1)
        logs = self.cell_logs(counts).T + ways + times * math.log(self.instant_rates[1])
        return np.exp(logs), counts


@dataclass(frozen=True)
class LongitudinalRandomisedResponse(OneCode, LongitudinalResponse):
    """L-GRR: a response on top of a kept response; the first report is GRR at `first`."""

    name: ClassVar[str] = "l-grr"
    favours: ClassVar[Family] = "singletons"
    set_size: ClassVar[int] = 1
    degrades: ClassVar[bool] = True  # one report is a response again

    @cached_property
    def stored(self) -> RandomisedResponse:
        """GRR at the budget of unlimited reports."""
        return RandomisedResponse(self.size, self.nominal_budget)

    @property
    def cell_response(self) -> RandomisedResponse:
        """The stored one: a cell is a value."""
        return self.stored

    @property
    def change_seen(self) -> float:
        """That two responses to different values differ."""
        return float(seen_difference(self.stored.mark_rates, self.size))

    def marked(self, reports: Reports) -> Mask:
        """Return which value each report is."""
        return self.stored.marked(reports)

    def tally_marks(self, counts: NDArray[Any], seeds: Words | None) -> NDArray[Any]:
        """Return the counts themselves."""
        del seeds
        return counts

    def tally_logs(self, counts: NDArray[Any], seeds: Words | None, times: int) -> Array:
        """Return ln Pr(counts | value) up to a number for each person."""
        del seeds, times
        return self.cell_logs(counts)

    def tally_law(self, times: int, most: int) -> Array | None:
        """Return the law of all counts, see `Longitudinal`."""
        listed = self.cell_law(times, most)
        return None if listed is None else listed[0]

    def kept_channel(self, times: int) -> Channel:
        """Return the law of all counts as a matrix; where they are too many, the memo's own bounds."""
        budget = self.budget_of(times)
        listed = self.cell_law(times, _MOST_LISTED)
        if listed is not None and listed[0].min() > _LEAST_LISTED:
            law, counts = listed
            return CountedChannel(law / law.sum(axis=1, keepdims=True), budget, counts)
        return DegradedChannel(self.stored.channel, budget, self.channel)

    def kept_guess(self, times: int) -> float | None:
        """Return how often the value reported most often is the true one, ties at random."""
        listed = self.cell_law(times, _MOST_LISTED)
        if listed is None:
            return None
        law, counts = listed
        best = counts == counts.max(axis=1, keepdims=True)
        return min(float(law[0] @ (best[:, 0] / best.sum(axis=1))), 1.0)

    def pair_law(self, times: int) -> Array | None:
        """Return the law of what tells two values apart, (2, counts); None where it cannot be listed."""
        law = self.tally_law(times, _MOST_LISTED)
        return None if law is None else law[:2]


@dataclass(frozen=True)
class LongitudinalHashing(LongitudinalResponse, Hashing):
    """LOLOHA: the value's bucket under a public seed, a kept response to it, fresh ones on top.

    The memo is of the bucket, so that values that share it share the memo. Of g buckets the least variance
    of rare values has g = e^first + 1, rounded, whatever the budget of unlimited reports is (Arcolezi et al.
    2023, with the first report's budget in full); another number may be given.
    """

    name: ClassVar[str] = "loloha"
    parameters: ClassVar[tuple[str, ...]] = ("first", "share", "g")
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"g": 5, "share": 0.3})
    g: int | None = None

    def settle_steps(self) -> None:
        """Check the number of buckets."""
        if self.g is not None:
            store(self, g=check_whole("g", self.g, at_least=2, at_most=LARGEST_BUCKETS))

    def at(self, nominal_budget: float) -> Self:
        """Return the oracle at another budget, with as many buckets."""
        return replace(super().at(nominal_budget), g=self.buckets)

    @property
    def held(self) -> Mapping[str, Any]:
        """The buckets: were they to follow the budget, leakage would not always grow with it."""
        return {"g": self.buckets}

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return best_buckets(self.first_budget) if self.g is None else self.g

    @cached_property
    def stored(self) -> OptimisedHashing:
        """Local hashing at the budget of unlimited reports."""
        return OptimisedHashing(self.size, self.nominal_budget, self.buckets)

    @property
    def cell_response(self) -> RandomisedResponse:
        """The response to a bucket."""
        return self.stored.response

    @property
    def change_seen(self) -> float:
        """That two values have different buckets, and the responses to them differ."""
        differ = seen_difference(self.cell_response.mark_rates, self.buckets)
        return float((1 - self.collision) * differ)

    def memos(self, values: ArrayLike, *, seed: int) -> Reports:
        """Return the memo of each device's bucket, see `Longitudinal.memos`; a device keeps its seed."""
        codes = check_codes(values, self.size)
        seeds = randomness(seed, f"{self.name}/seed").words(0, len(codes))
        buckets = self.hashed(codes, seeds)
        out = np.empty_like(buckets)
        for bucket in np.unique(buckets):
            noise = derive_seed(seed, f"bucket/{bucket}")
            drawn = self.cell_response.randomise(np.full_like(buckets, bucket), seed=noise)
            out[buckets == bucket] = drawn.values[buckets == bucket]
        return Reports(out, seeds, is_simulation=True)

    def tally_marks(self, counts: NDArray[Any], seeds: Words | None) -> NDArray[Any]:
        """Return how often each value's bucket was reported."""
        return np.take_along_axis(counts, self.buckets_of_all(seeds), axis=1)

    def buckets_of_all(self, seeds: Words | None) -> Positions:
        """Return the bucket of every value under every seed, shape (seeds, size)."""
        given = np.asarray(seeds)
        every = (
            self.hashed(np.full(len(given), value, dtype=np.uint16), given) for value in range(self.size)
        )
        return np.array(list(every)).T.astype(np.intp)

    def tally_logs(self, counts: NDArray[Any], seeds: Words | None, times: int) -> Array:
        """Return ln Pr(counts | value) up to a number for each person: that of the value's bucket."""
        del times
        return np.take_along_axis(self.cell_logs(counts), self.buckets_of_all(seeds), axis=1)

    def tally_law(self, times: int, most: int) -> None:
        """Return None: seeds are too many to list."""
        del times, most

    def kept_channel(self, times: int) -> Channel:
        """Return a channel that may favour any set of values, by what T reports of a bucket spend."""
        budget = self.budget_of(times)
        return FavouringChannel(self.size, "all", math.exp(-budget), realises_all=False, budget=budget)

    def kept_guess(self, times: int) -> None:
        """Return None: it depends on the family of hashes."""
        del times

    def pair_law(self, times: int) -> Array | None:
        """Return the law of what tells two values apart, given that their buckets differ, (2, counts).

        Where the buckets do not differ, nothing tells them apart; this is the worse case.
        """
        listed = self.cell_law(times, _MOST_LISTED)
        return None if listed is None else listed[0][:2]
