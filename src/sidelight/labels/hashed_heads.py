"""kHR over a hashed domain, for values too many to list (CLLDP, section 4.4).

The collector publishes a pool of hash seeds; each person draws one of them, hashes the value (never the
label) to a few buckets and reports (bucket, label) by kHR. The seed is part of the report, so the belief that
counts is that of the *buckets of that seed*: many values share one, and the omega of single values would be
too low. Each seed has its own omega, hence its own k and factor.

With B_h[v, b] = 1 where seed h puts value v into bucket b, the joint of seed h is B_h' f. All seeds together
give f by least squares, each weighted by its precision: unbiased as long as the seeds tell all values apart.
The equations are solved without writing their matrix down, so the values may be tens of thousands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Whole, Words
from sidelight.foundation.errors import InputError, TooLargeError, check_whole
from sidelight.foundation.randomness import Seeded, below, derive_seed, randomness
from sidelight.labels.leakage import belief_curve, check_conditionals, check_label_budget, heaviest_sums
from sidelight.labels.omega import WidthRule, chosen_width, omega_at
from sidelight.labels.responses import HeadsResponse, check_labelled
from sidelight.leakage.bounds import Bound
from sidelight.mechanisms.arrays import hash_codes
from sidelight.mechanisms.exact import LARGEST_SIZE
from sidelight.mechanisms.mechanism import Aggregate, check_estimable, check_reports, impossible
from sidelight.mechanisms.reports import Reports

_MOST_PLACES = 1 << 26  # half a gigabyte of bucket numbers
_TOLERANCE = 1e-8
"""The residual, relative to the right side, at which the equations count as solved."""
_LEAST_SEEDS = 16  # with fewer, two values may share all their buckets by chance
_PADDING = 65_535
"""Fills the places of a set that is smaller than the widest; its place tells it from a pair."""


@dataclass(frozen=True, eq=False)
class HashedHeads:
    """kHR of (bucket, label) for a public pool of hash `seeds`, a response for each; see `hashed_heads`."""

    name: ClassVar[str] = "hashed-khr"
    values: int
    labels: int
    seeds: Words
    responses: tuple[HeadsResponse, ...]

    @property
    def buckets(self) -> int:
        """The number of buckets, g."""
        return self.responses[0].values

    @property
    def label_epsilon(self) -> float:
        """The realised promise about the label, whatever seed is drawn."""
        return max(response.label_epsilon for response in self.responses)

    @cached_property
    def _widest(self) -> int:
        return max(response.width for response in self.responses)

    @cached_property
    def places(self) -> Whole:
        """The bucket of every value under every seed, shape (seeds, values)."""
        return bucket_places(self.seeds, self.values, self.buckets)

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return a seed of the pool and a sorted set of pairs, padded with 65,535, for each person."""
        codes, marks = check_labelled(values, labels, (self.values, self.labels))
        source = randomness(seed, f"{self.name}/pool")
        drawn = below(source, offset, len(codes), np.array([len(self.seeds)], dtype=np.uint64))[:, 0]
        out = np.full((len(codes), self._widest), _PADDING, dtype=np.uint16)
        for number, response in enumerate(self.responses):
            members = np.flatnonzero(drawn == number)
            buckets = self.places[number][codes[members]]
            part = response.randomise(buckets, marks[members], seed=derive_seed(seed, f"{offset}/{number}"))
            out[members, : response.width] = part.values
        return Reports(out, self.seeds[drawn], is_simulation=not source.is_secure)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each (bucket, label) is in a set, for each seed, and each seed's reports."""
        rows = check_reports(reports, "u", self._widest, seeds=True)
        order = np.argsort(self.seeds)
        at = np.searchsorted(self.seeds[order], np.asarray(reports.seeds))
        number = order[np.minimum(at, len(order) - 1)]
        is_strange = self.seeds[number] != reports.seeds
        if is_strange.any():
            raise impossible("sets with seeds of the published pool", is_strange)
        widths = np.array([response.width for response in self.responses])
        is_strange = self._are_no_sets(rows, widths[number])
        if is_strange.any():
            raise impossible(f"rising sets of their seed's size, padded with {_PADDING}", is_strange)
        sums = np.zeros((len(self.seeds), self.buckets * self.labels + 1), dtype=np.int64)
        for index, response in enumerate(self.responses):
            sets = np.ascontiguousarray(rows[number == index, : response.width])
            sums[index, :-1] = response.aggregate(Reports(sets)).sums
            sums[index, -1] = len(sets)
        return Aggregate(len(reports), sums.reshape(-1))

    def _are_no_sets(self, rows: NDArray[Any], widths: Whole) -> Mask:
        """Return which numbers of each row are no part of a rising set of that width, or of its padding."""
        is_inside = np.arange(rows.shape[1]) < widths[:, None]
        strange = np.where(is_inside, rows >= self.buckets * self.labels, rows != _PADDING)
        strange[:, 1:] |= is_inside[:, 1:] & (rows[:, 1:] <= rows[:, :-1])
        return strange

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the least-squares estimate of the joint, shape (values, labels)."""
        width = self.buckets * self.labels + 1
        check_estimable(aggregate, len(self.seeds) * width, self.name)
        weights = np.zeros(len(self.seeds))
        right = np.zeros((self.values, self.labels))
        for i, row in enumerate(aggregate.sums.reshape(-1, width)):
            people = int(row[-1])
            if people > 0:
                weights[i] = 1 / self.responses[i].total_variance(people)  # more people, less noise
                right += weights[i] * self.responses[i].joint(Aggregate(people, row[:-1]))[self.places[i]]
        return self._solved(weights, right)

    def _solved(self, weights: Array, right: Array) -> Array:
        """Solve the normal equations, sum of w_h B_h B_h' f = right, label by label.

        A known vector is solved for beside the labels: where the hashes leave something open, it does not
        come back, while the labels' columns would quietly lose their part.
        """
        from scipy.sparse.linalg import LinearOperator, cg

        used = [pair for pair in zip(weights, self.places, strict=True) if pair[0] > 0]

        def normal(vector: Array) -> Array:
            spread = (weight * np.bincount(place, vector, self.buckets)[place] for weight, place in used)
            return sum(spread, np.zeros(self.values))

        matrix = LinearOperator((self.values, self.values), normal, dtype=np.float64)
        probe = np.random.default_rng(0).standard_normal(self.values)
        # Exact arithmetic needs a step for each value at most; more would only chase rounding.
        solve = partial(cg, matrix, rtol=_TOLERANCE, maxiter=self.values)
        columns = [solve(side)[0] for side in (*right.T, normal(probe))]
        if not np.allclose(columns[-1], probe, rtol=0, atol=1e-4):
            raise InputError(
                f"the {len(used)} hashes in use do not tell all {self.values} values apart; publish more."
            )
        return np.column_stack(columns[:-1])

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what a report says about the label, exactly: the worst seed's."""
        rows = check_conditionals(conditionals)
        bounds = [
            response.leakage(bucket_conditionals(rows, place, self.buckets))
            for place, response in zip(self.places, self.responses, strict=True)
        ]
        # The seed is public: no average helps who drew the worst.
        return max(bounds, key=lambda bound: bound.value)


def hashed_heads(
    epsilon: float,
    limits: ArrayLike,
    *,
    buckets: int,
    k: WidthRule | int = "search",
    seeds: int | None = None,
    pool: int = 1,
) -> HashedHeads:
    """Publish a pool of hashes to so many buckets, with kHR for each.

    The limits are (labels, values) Pr(value | label), or upper limits of it: rows that sum to more than 1 are
    taken as limits, and a bucket weighs at most 1. By default there are enough `seeds` to tell all values
    apart. `pool` chooses the published hashes; it is public, and nothing private depends on it.
    """
    check_label_budget(epsilon)
    weights = np.asarray(limits, dtype=np.float64)
    if weights.ndim != 2 or not np.all(weights >= 0):
        raise InputError("`limits` must be a matrix of probabilities, one row for each label.")
    if np.any(weights.sum(axis=1) < 1 - 1e-9):
        raise InputError(
            f"every row of `limits` must sum to at least 1, got {weights.sum(axis=1).min():.4g}; limits "
            "below the truth would break the promise."
        )
    labels, values = weights.shape
    count = check_whole("buckets", buckets, at_least=2)
    published = Seeded(check_whole("pool", pool, at_least=0)).words(0, _pool_size(values, count, seeds))
    responses = []
    for place in bucket_places(published, values, count):
        curve = _bucket_curve(weights, place, count)
        width = chosen_width(k, count * labels, epsilon, curve)
        responses.append(HeadsResponse(count, labels, epsilon, width, omega_at(curve, width)))
    return HashedHeads(values, labels, published, tuple(responses))


def _pool_size(values: int, buckets: int, seeds: int | None) -> int:
    """Return how many hashes are published: as given, or about four equations for every value."""
    usual = max(_LEAST_SEEDS, math.ceil(4 * values / (buckets - 1)))
    many = usual if seeds is None else check_whole("seeds", seeds, at_least=1)
    if values > LARGEST_SIZE or values * many > _MOST_PLACES:
        raise TooLargeError(
            f"{values} values under {many} hashes are more than can be solved for; use more buckets or bins."
        )
    return many


def bucket_places(seeds: Words, values: int, buckets: int) -> Whole:
    """Return the bucket of every value under every seed, shape (seeds, values)."""
    out: NDArray[Any] = np.empty((len(seeds), values), dtype=np.uint16)
    codes = np.arange(values, dtype=np.uint16)
    for row, seed in zip(out, seeds, strict=True):
        hash_codes(np.full(values, seed), codes, np.uint64(buckets), row)
    return out.astype(np.int64)


def bucket_conditionals(conditionals: Array, place: Whole, buckets: int) -> Array:
    """Return Pr(bucket | label) from Pr(value | label), shape (labels, buckets)."""
    rows = np.stack([np.bincount(place, row, buckets) for row in conditionals])
    return np.where(np.isnan(conditionals).all(axis=1, keepdims=True), np.nan, rows)


def _bucket_curve(weights: Array, place: Whole, buckets: int) -> Array:
    """Return omega(k) of the buckets of one hash, rounded up by what adding doubles can cost."""
    rows = np.minimum(bucket_conditionals(weights, place, buckets), 1.0)
    if np.allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        return np.asarray(np.minimum(belief_curve(rows) + 1e-12, 1.0))
    ranked = heaviest_sums(rows).max(axis=0)
    least = np.arange(1, buckets + 1) / buckets
    return np.asarray(np.clip(np.maximum(ranked, least) + 1e-12, None, 1.0))
