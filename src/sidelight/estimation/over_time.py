"""One attribute over the rounds of a panel: levels, and how the estimates of two rounds vary together.

Let person i report in the rounds s and t through one memo. Given the values, the two reports have the memo in
common and nothing else, so with m people in both rounds who report from one memo, n_s and n_t in each,

    Cov(f_s, f_t) = m / (n_s n_t) [g p1(1-p1) + (1-g) q1(1-q1)] / (p1-q1)^2,

g being the value's frequency among them and p1, q1 the memo's rates; see `shared_rates`. With fresh noise,
in another epoch, or of a new value it is 0. About the population people's own values vary together as well:
in the sum over those in both of (x - f_s)(x - f_t) / (n_s n_t) where the value is frozen, else by no more
than Cauchy and Schwarz allow, up or down. Nobody knows g, since those who stay may differ from those who do
not: of n_s f_s people with a value at least n_s f_s - (n_s - m) stay, and at most as many as there are in
either round. Where something is not known, a change takes the least covariance, and the mean over rounds
the largest, so that neither interval is too short.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sidelight.estimation.averaging import improved
from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array, Mask, to_simplex
from sidelight.mechanisms import Mechanism
from sidelight.mechanisms.longitudinal import shared_rates


@dataclass(frozen=True, eq=False)
class Overlap:
    """Who is in several rounds, and what their reports have in common.

    Attributes:
        people: (rounds,) how many reported in each.
        both: (rounds, rounds) how many reported in both; at most so many where it is not known.
        is_known: whether they are counted.
        share_memos: (rounds, rounds) whether those in both report from one memo as long as values stay.
        are_frozen: whether their values stay where memos do.
    """

    people: Array
    both: Array
    is_known: bool
    share_memos: Mask
    are_frozen: bool


@dataclass(frozen=True, eq=False)
class Series:
    """The unbiased estimates of one attribute, round by round.

    Attributes:
        levels: of each round.
        overlap: who is in several of them.
        mechanism: how it is reported, in all of them.
        is_population: whether errors are about the population, so that people's own values vary.
    """

    levels: tuple[Unbiased, ...]
    overlap: Overlap
    mechanism: Mechanism
    is_population: bool

    @property
    def estimates(self) -> Array:
        """The estimates, (rounds, values)."""
        return np.array([item.estimate for item in self.levels])

    @cached_property
    def likely(self) -> Array:
        """The nearest possible frequencies, at which variances are taken, (rounds, values)."""
        return np.array([to_simplex(item.estimate) for item in self.levels])

    @cached_property
    def variances(self) -> Array:
        """Their variances, (rounds, values)."""
        pairs = zip(self.levels, self.likely, strict=True)
        return np.array([item.variance(share) for item, share in pairs])

    @cached_property
    def posterior_means(self) -> Array:
        """The frequencies with the least error to expect, (rounds, values); they are not unbiased.

        Rounds tell each other how uneven frequencies are. They may share them as well where every round's
        noise is its own: noise of one memo would be taken for frequencies in common.
        """
        rounds = range(len(self.levels))
        domains = [[place] for place in rounds] if self.overlap.share_memos.any() else [list(rounds)]
        return np.array([found.mean for found in improved(self.levels, domains)])

    def covariances(self, first: int) -> tuple[Array, Array]:
        """Return the least and the largest covariance of a round's estimates with each, (rounds, values).

        They are apart where it is not known how many of those in both rounds have a value, or change it.
        """
        overlap, near = self.overlap, self.likely
        shared = overlap.share_memos[first][:, None]
        frozen = shared & overlap.are_frozen
        none, full = shared_rates(self.mechanism) if shared.any() else (0.0, 0.0)
        # What one of those in both adds who has the value, and one who has another.
        having, lacking = shared * full, shared * none
        if self.is_population:
            having = having + frozen * (1 - near) * (1 - near[first])
            lacking = lacking + frozen * near * near[first]
        both = overlap.both[first][:, None]
        ends = [count * having + (both - count) * lacking for count in self._in_both(first)]
        least, largest = np.minimum(*ends), np.maximum(*ends)
        moving = np.zeros_like(near)
        if self.is_population:
            moving = np.where(frozen, 0.0, np.sqrt(self._own_spread(first)))
        least = np.where(frozen & overlap.is_known, least, -moving)
        scale = overlap.people[:, None] * overlap.people[first]
        rows = np.array([least, largest + moving]) / scale
        rows[:, first] = 0.0
        return rows[0], rows[1]

    def _in_both(self, first: int) -> tuple[Array, Array]:
        """Return how many of those in a round and in each have a value that stays, at least and at most.

        Who stays away may differ from who does not, so that a round's frequencies give no more than ends.
        """
        overlap, near = self.overlap, self.likely
        both, counts = overlap.both[first][:, None], overlap.people[:, None] * near
        spare = overlap.people[:, None] - both, overlap.people[first] - both
        most = np.minimum(both, np.minimum(counts, counts[first]))
        fewest = np.maximum(0.0, np.maximum(counts - spare[0], counts[first] - spare[1]))
        return np.minimum(fewest, most), np.maximum(fewest, most)  # noise may put one before the other

    def _own_spread(self, first: int) -> Array:
        """Return the product of what those in both rounds add to each one's squared deviations, at most."""
        both, near = self.overlap.both[first][:, None], self.likely

        def deviations(people: Array, shares: Array) -> Array:
            counts = people * shares
            ends = np.maximum(0.0, counts - (people - both)), np.minimum(both, counts)
            sums = [count * (1 - shares) ** 2 + (both - count) * shares**2 for count in ends]
            return np.asarray(np.maximum(*sums))

        people = self.overlap.people[:, None]
        return deviations(people, near) * deviations(people[first], near[first])

    def change(self, first: int, last: int) -> tuple[Array, Array]:
        """Return the change between two rounds and its standard error, at most, (values,) each."""
        moved = self.levels[last].estimate - self.levels[first].estimate
        spread = self.variances[first] + self.variances[last] - 2 * self.covariances(first)[0][last]
        return moved, np.sqrt(np.maximum(spread, 0.0))

    def mean(self) -> tuple[Array, Array, Array]:
        """Return the mean over all reports, its standard error at most, and the part no round removes.

        That floor is what the error would be if reports added no noise to their memos: of fresh noise it is
        0, and of a memo the error of a single report of it (section 11 of the notes: a floor).
        """
        weights = self.overlap.people / self.overlap.people.sum()
        rows = (weight * (weights @ self.covariances(place)[1]) for place, weight in enumerate(weights))
        common = np.sum(list(rows), axis=0)
        spread = weights**2 @ self.variances + common
        floor = common + weights**2 @ self._own()
        return weights @ self.estimates, np.sqrt(spread), np.sqrt(np.minimum(floor, spread))

    def _own(self) -> Array:
        """Return the part of each round's variance that its own fresh noise does not make."""
        near, people = self.likely, self.overlap.people[:, None]
        own = np.zeros_like(near)
        if self.overlap.share_memos.any():
            none, full = shared_rates(self.mechanism)
            own = (none + (full - none) * near) / people
        return np.asarray(own + (near * (1 - near) / people if self.is_population else 0.0))
