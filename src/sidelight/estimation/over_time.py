"""One attribute over the rounds of a panel: levels, and how the estimates of two rounds vary together.

Let person i report in the rounds s and t through one memo. Given the values, the two reports have the memo in
common and nothing else, so with m people in both rounds who report from one memo, n_s and n_t in each,

    Cov(f_s, f_t) = m / (n_s n_t) [g p1(1-p1) + (1-g) q1(1-q1)] / (p1-q1)^2,

g being the value's frequency among them and p1, q1 the memo's rates; see `shared_variance`. With fresh noise,
in another epoch, or of a new value it is 0. About the population people's own values vary together as well:
by m / (n_s n_t) f(1-f) where the value is frozen, else by no more than m / (n_s n_t) sqrt(f_s(1-f_s)
f_t(1-f_t)), up or down. Where something is not known, a change takes the least covariance, and the mean over
rounds the largest, so that neither interval is too short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array, Mask, to_simplex
from sidelight.mechanisms import Mechanism
from sidelight.mechanisms.longitudinal import shared_variance


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

    @property
    def share(self) -> Array:
        """M / (n_s n_t), 0 on the diagonal."""
        shares = self.both / np.outer(self.people, self.people)
        np.fill_diagonal(shares, 0.0)
        return np.asarray(shares)


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

    @property
    def likely(self) -> Array:
        """The nearest possible frequencies, at which variances are taken, (rounds, values)."""
        return np.array([to_simplex(item.estimate) for item in self.levels])

    @property
    def variances(self) -> Array:
        """Their variances, (rounds, values)."""
        pairs = zip(self.levels, self.likely, strict=True)
        return np.array([item.variance(share) for item, share in pairs])

    def least_covariance(self, first: int, last: int) -> Array:
        """Return the covariance of two rounds' estimates, the least that it may be, (values,)."""
        overlap, near = self.overlap, self.likely
        share, from_one = overlap.share[first, last], bool(overlap.share_memos[first, last])
        is_sure = overlap.is_known and overlap.are_frozen and from_one
        middle = (near[first] + near[last]) / 2
        memo = shared_variance(self.mechanism, middle) * share if is_sure else np.zeros_like(middle)
        if not self.is_population:
            return np.asarray(memo)
        spread = np.sqrt((near * (1 - near))[[first, last]]).prod(axis=0)
        return np.asarray(memo + (share if is_sure else -share) * spread)

    def change(self, first: int, last: int) -> tuple[Array, Array]:
        """Return the change between two rounds and its standard error, at most, (values,) each."""
        moved = self.levels[last].estimate - self.levels[first].estimate
        spread = self.variances[first] + self.variances[last] - 2 * self.least_covariance(first, last)
        return moved, np.sqrt(np.maximum(spread, 0.0))

    def mean(self) -> tuple[Array, Array, Array]:
        """Return the mean over all reports, its standard error at most, and the part no round removes.

        That floor is what the error would be if reports added no noise to their memos: of fresh noise it is
        0, and of a memo the error of a single report of it (section 11 of the notes: a floor).
        """
        weights = self.overlap.people / self.overlap.people.sum()
        common = self._common(weights)
        spread = weights**2 @ self.variances + common
        floor = common + weights**2 @ self._own()
        return weights @ self.estimates, np.sqrt(spread), np.sqrt(np.minimum(floor, spread))

    def _common(self, weights: Array) -> Array:
        """Return what rounds that share memos or people add to the variance of a weighted mean, at most."""
        near, share = self.likely, self.overlap.share
        same = share * self.overlap.share_memos
        # sum over s, t of w_s w_t A_st V((f_s + f_t) / 2): V is linear, and A symmetric
        counts, total = weights * (same @ weights), np.zeros(near.shape[1])
        if same.any():
            parts = [shared_variance(self.mechanism, row) for row in near]
            total = counts @ np.array(parts)
        if self.is_population:
            spread = weights[:, None] * np.sqrt(near * (1 - near))
            total = total + np.einsum("sv,st,tv->v", spread, share, spread)
        return np.asarray(total)

    def _own(self) -> Array:
        """Return the part of each round's variance that its own fresh noise does not make."""
        near, people = self.likely, self.overlap.people[:, None]
        own = np.zeros_like(near)
        if self.overlap.share_memos.any():
            own = np.array([shared_variance(self.mechanism, row) for row in near]) / people
        return np.asarray(own + (near * (1 - near) / people if self.is_population else 0.0))
