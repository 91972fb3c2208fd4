"""Local hashing: hash the value with a public seed to a few buckets, report the bucket randomised.

The hash is multiply-add-shift (Dietzfelbinger 1996): a seed of 64 bits is a multiplier a and an addend b of
32 bits each, and value v gets the 17 highest bits of (a v + b) mod 2^32. For values below 2^16 that family
is strongly universal: two values' hashes are independent and uniform, because 32 >= 16 + 17 - 1. (Without
the addend two values collide too often, which biases the estimate.) Bucket y is the run of hashes h with
floor(h g / 2^17) = y, so two values share a bucket with probability sum over y of (|run y| / 2^17)^2, which
is 1/g where g divides 2^17 and is stated exactly elsewhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes, Mask, Whole, Words, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import check_whole
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.arrays import DROPPED, HASH_BITS, steps
from sidelight.mechanisms.checks import check_codes, check_offset
from sidelight.mechanisms.exact import store
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.oracle import FrequencyOracle, marked_accuracy
from sidelight.mechanisms.reports import ReportForm, Reports

_HASHES = 1 << int(HASH_BITS)
_MARKS = 8
"""So many values are compared with a report in the time that one word takes to draw."""
LARGEST_BUCKETS = 65_536  # a bucket fits 16 bits, for which randomised response is exact


def best_buckets(budget: float) -> int:
    """Return how many buckets make the least variance at a budget of one report: e^budget + 1."""
    return min(round(math.exp(min(budget, math.log(LARGEST_BUCKETS))) + 1), LARGEST_BUCKETS)


class Hashing(FrequencyOracle, Kept):
    """Local hashing to `buckets` buckets, with randomised response among them."""

    guess_is_model: ClassVar[bool] = True
    memo_words: ClassVar[int] = 1
    shared_words: ClassVar[int] = 1  # the public seed
    degrades: ClassVar[bool] = True  # as randomised response, seed by seed

    @property
    @abstractmethod
    def buckets(self) -> int:
        """The number of buckets, g."""

    @cached_property
    def response(self) -> RandomisedResponse:
        """How the bucket is randomised."""
        return RandomisedResponse(self.buckets, self.nominal_budget)

    @cached_property
    def edges(self) -> Whole:
        """The first hash of every bucket, and the end of the last, shape (buckets + 1,)."""
        return np.array([-(-y * _HASHES // self.buckets) for y in range(self.buckets + 1)], dtype=np.int64)

    @cached_property
    def collision(self) -> Fraction:
        """The probability that two values share a bucket, over all seeds."""
        runs = np.diff(self.edges).tolist()
        return Fraction(sum(run * run for run in runs), _HASHES**2)

    @property
    def factor(self) -> Fraction:
        """That of the bucket's randomised response, whatever the seed."""
        return self.response.factor

    @property
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities that the true value, and another, hashes to the reported bucket."""
        truth, other = self.response.mark_rates  # another value shares the true bucket, or it does not
        return truth, self.collision * truth + (1 - self.collision) * other

    @property
    def form(self) -> ReportForm:
        """A bucket and a public seed."""
        return ReportForm.codes(self.buckets, seeded=True)

    def hashed(self, values: ArrayLike, seeds: Words) -> AnyCodes:
        """Return the bucket of each value under its seed."""
        codes = check_codes(values, self.size)
        out = np.empty(len(codes), dtype=self.form.dtype)
        steps(compiled=use_loop("mechanisms.hash_codes", len(codes))).hash_codes(
            seeds, codes, np.uint64(self.buckets), out
        )
        return out

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a public seed and a reported bucket for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        large = use_loop("mechanisms.hash_codes", len(codes), 2)
        seeding = randomness(seed, f"{self.name}/seed", compiled=large)
        noise = randomness(seed, f"{self.name}/noise", compiled=large)
        step = steps(compiled=large)
        seeds = np.empty(len(codes), dtype=np.uint64)
        out = np.empty(len(codes), dtype=self.form.dtype)
        for span in spans(len(codes)):
            start, bucket = first + span.start, out[span]
            seeding.words(start, len(bucket), seeds[span])
            step.hash_codes(seeds[span], codes[span], np.uint64(self.buckets), bucket)
            out[span] = self.response.sample(noise, start, bucket)
        return Reports(out, seeds, is_simulation=not seeding.is_secure)

    @property
    def identity(self) -> str:
        """See `Kept`."""
        return f"hash {self.size} {self.buckets} {self.response.other}"

    def subject(self, code: int, shared: Words) -> str:
        """Return the bucket: values that share one have one response."""
        return str(int(self.hashed(np.array([code]), shared)[0]))

    def subjects(self, codes: AnyCodes, shared: Words) -> list[str]:
        """See `Kept`: the buckets of many codes at once."""
        return list(map(str, self.hashed(codes, shared[:, 0]).tolist()))

    def made_of_all(self, codes: AnyCodes, words: Words, shared: Words) -> Reports:
        """See `Kept`: the same for many codes at once."""
        seeds = np.ascontiguousarray(shared[:, 0])
        return Reports(self.response.made_of_all(self.hashed(codes, seeds), words, shared).values, seeds)

    def made(self, code: int, words: Words, shared: Words) -> Reports:
        """Return the response to the code's bucket under the shared seed."""
        bucket = int(self.hashed(np.array([code]), shared)[0])
        return Reports(self.response.made(bucket, words, shared).values, shared)

    def marked(self, reports: Reports) -> Mask:
        """Return which values hash to each report's bucket."""
        buckets, seeds = self.check(reports), np.asarray(reports.seeds)
        every = (np.full(len(buckets), value, dtype=np.uint16) for value in range(self.size))
        return np.array([self.hashed(value, seeds) == buckets for value in every]).T

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count for each value the reports whose bucket it hashes to."""
        buckets, seeds = self.check(reports), np.asarray(reports.seeds)
        lows = (self.edges[:-1] << int(DROPPED)).astype(np.uint32)
        widths = (np.diff(self.edges) << int(DROPPED)).astype(np.uint32)
        counts = np.zeros(self.size, dtype=np.int64)
        step = steps(compiled=use_loop("mechanisms.count_marks", len(buckets), self.size / _MARKS))
        for span in spans(len(buckets)):
            step.count_marks(seeds[span], buckets[span], lows, widths, counts)
        return Aggregate(len(buckets), counts, self.name)

    @property
    def guess_rate(self) -> float:
        """How often a guess among the bucket's values is right, for all functions as a family, as published.

        There the hashes of any number of values are independent; those of the family in use are in pairs
        only, so that three values or more are guessed right somewhat more or less often, and not all equally
        often: the channel says that it is a model.
        """
        return marked_accuracy(self.size, float(self.mark_if_true), 1 / self.buckets)


@dataclass(frozen=True)
class BinaryHashing(Hashing):
    """BLH: two buckets (Bassily, Smith 2015; Wang et al. 2017)."""

    name: ClassVar[str] = "blh"
    buckets: ClassVar[int] = 2


@dataclass(frozen=True)
class OptimisedHashing(Hashing):
    """OLH: g = round(e^eps + 1) buckets, the least variance of rare values (Wang et al. 2017).

    Another number of buckets, at most 65,536, may be given as `g`.
    """

    name: ClassVar[str] = "olh"
    parameters: ClassVar[tuple[str, ...]] = ("g",)
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"g": 5})  # 5 does not divide the number of hashes
    g: int | None = None

    def settle(self) -> None:
        """Check the number of buckets."""
        if self.g is not None:
            store(self, g=check_whole("g", self.g, at_least=2, at_most=LARGEST_BUCKETS))

    def at(self, nominal_budget: float) -> Self:
        """Return the mechanism at another nominal budget, with as many buckets."""
        return replace(self, nominal_budget=nominal_budget, g=self.buckets)

    @property
    def held(self) -> Mapping[str, Any]:
        """The buckets: were they to follow the budget, leakage would not always grow with it."""
        return {"g": self.buckets}

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return best_buckets(self.nominal_budget) if self.g is None else self.g
