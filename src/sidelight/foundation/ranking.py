"""How well scores rank people by whether they have something: AUC, average precision, the most suspected.

Everything is computed from the groups of people with equal scores, so that one sort is all the work, and tied
people count as if they were in random order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.foundation.intervals import Interval, exact_interval, normal_quantile, wilson_interval

FEW = 20
"""With fewer people on either side a variance cannot be estimated, and the largest possible one is taken."""
_DIGITS = 12
"""Scores that differ by less are equal: what rounding does to a posterior is no ranking."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """People in groups of equal scores, the most suspected first.

    Attributes:
        scores: (groups,) the score of each group.
        people: (groups,) how many people have it; `hits` how many of them have the value in question.
        group: (people,) which group each person is in.
    """

    scores: Array
    people: Array
    hits: Array
    group: Positions

    @classmethod
    def of(cls, scores: ArrayLike, has: Mask) -> Ranking:
        """Sort people by their scores; `has` says who has the value."""
        rounded = np.round(np.asarray(scores, dtype=np.float64), _DIGITS)
        distinct, place = np.unique(-rounded, return_inverse=True)
        group = place.reshape(-1)
        people = np.bincount(group, minlength=len(distinct)).astype(np.float64)
        hits = np.bincount(group[has], minlength=len(distinct)).astype(np.float64)
        return cls(np.asarray(-distinct, dtype=np.float64), people, hits, group)

    @cached_property
    def total(self) -> int:
        """How many people there are."""
        return int(self.people.sum())

    @cached_property
    def positives(self) -> int:
        """How many people have the value."""
        return round(float(self.hits.sum()))

    @property
    def fewest(self) -> int:
        """How many people have the value, or do not have it: the smaller number."""
        return min(self.positives, self.total - self.positives)

    @property
    def base_rate(self) -> float:
        """The share of people who have the value."""
        return self.positives / self.total

    @property
    def is_constant(self) -> bool:
        """Whether all people have the same score: nothing is ranked, and every figure is its control."""
        return len(self.scores) == 1

    @cached_property
    def placements(self) -> tuple[Array, Array]:
        """For each group the share of people without the value below it, and of those with it above it.

        Tied people count half. These are the structural components of DeLong, DeLong and Clarke-Pearson
        (1988), V10 of a person who has the value and V01 of one who does not.
        """
        misses = self.people - self.hits
        below = self.total - self.positives - np.cumsum(misses) + misses / 2
        above = np.cumsum(self.hits) - self.hits / 2
        return below / (self.total - self.positives), above / self.positives

    @cached_property
    def auc(self) -> float:
        """The probability that a person who has the value is suspected more than one who has not."""
        return float(self.hits @ self.placements[0]) / self.positives

    def auc_influence(self) -> tuple[Array, Array]:
        """Return what each person of a group moves the AUC by, times all people: with the value, without."""
        with_value, without = self.placements
        share = self.base_rate
        return (with_value - self.auc) / share, (without - self.auc) / (1 - share)

    @cached_property
    def auc_variance(self) -> float:
        """The variance of the AUC (DeLong, DeLong and Clarke-Pearson 1988)."""
        return self._spread(*self.auc_influence())

    @cached_property
    def chance_variance(self) -> float:
        """The variance of the AUC where scores and values have nothing to do with each other.

        Mann and Whitney (1947), corrected for ties.
        """
        total, ties = self.total, float((self.people**3 - self.people).sum())
        spread = total + 1 - ties / (total * (total - 1))
        return max(spread, 0.0) / (12 * self.positives * (total - self.positives))

    def auc_interval(self, confidence: float) -> Interval:
        """Return the AUC with its interval, which has .5 in it unless a rank test at this level excludes it.

        An estimated variance can be far too small where few people stand out and none of them has the value;
        the rank test knows the variance by chance alone.
        """
        if self.is_constant:
            return Interval.exactly(0.5)
        found = share_interval(self.auc, self.auc_variance, self.fewest, confidence)
        chance = normal_quantile(confidence) * math.sqrt(self.chance_variance)
        return widened(found, 0.5) if abs(self.auc - 0.5) <= chance else found

    @cached_property
    def average_precision(self) -> float:
        """The share of hits among those at least as suspected, averaged over people who have the value."""
        precision = np.cumsum(self.hits) / np.cumsum(self.people)
        return float(self.hits @ precision) / self.positives

    @property
    def chance_precision(self) -> float:
        """The average precision that people in random order have on average: a little above the base rate.

        For ranks without ties the mean over all orders of R hits among n is
        ((R - 1) (n - H_n) / (n - 1) + H_n) / n, with the harmonic number H_n.
        """
        from scipy.special import digamma

        total = self.total
        harmonic = float(digamma(total + 1) - digamma(1))
        return ((self.positives - 1) * (total - harmonic) / (total - 1) + harmonic) / total

    def precision_interval(self, confidence: float) -> Interval:
        """Return the average precision with its interval.

        Its variance is that of its influence function: with G(s) the share of people who have the value and
        a score of at least s, and H(s) that of all with such a score, it is E[Y G(S) / H(S)] / Pr(Y = 1),
        differentiated in the distribution of (S, Y).
        """
        total, base = self.total, self.base_rate
        if self.is_constant:
            return Interval.exactly(base)
        reach, found = np.cumsum(self.people) / total, np.cumsum(self.hits) / total
        own = self.hits / total
        # What a person adds to H, and one who has the value to G, for everyone who is suspected less.
        lost, gained = _from_end(own * found / reach**2), _from_end(own / reach)
        hit = (found / reach + gained - lost - self.average_precision) / base
        miss = -lost / base
        variance = self._spread(hit, miss)
        return share_interval(self.average_precision, variance, self.fewest, confidence)

    def hits_among(self, count: int) -> float:
        """Return how many of the most suspected have the value, on average over the order of tied people."""
        before = np.cumsum(self.people) - self.people
        taken = np.clip(count - before, 0, self.people)
        return float(self.hits @ (taken / self.people))

    def share_among(self, count: int, confidence: float) -> Interval:
        """Return the share of the most suspected who have the value, with its interval."""
        if self.is_constant:
            return Interval.exactly(self.base_rate)
        return exact_interval(self.hits_among(count), count, confidence)

    def roc(self) -> tuple[Array, Array]:
        """Return the shares of people without the value, and with it, who are suspected at least so much."""
        misses = np.cumsum(self.people - self.hits) / (self.total - self.positives)
        return np.append(0.0, misses), np.append(0.0, np.cumsum(self.hits) / self.positives)

    def _spread(self, with_value: Array, without: Array) -> float:
        """Return the variance of a figure with such an influence of each person."""
        squares = self.hits @ with_value**2 + (self.people - self.hits) @ without**2
        return float(squares) / self.total**2


def widened(interval: Interval, point: float) -> Interval:
    """Return an interval that has a point in it."""
    return Interval(interval.value, min(interval.lower, point), max(interval.upper, point))


def _from_end(parts: Array) -> Array:
    """Return the sum of each part and all that follow it."""
    return np.asarray(np.cumsum(parts[::-1])[::-1])


def share_interval(share: float, variance: float, fewest: int, confidence: float) -> Interval:
    """Return the score interval of a share with this variance.

    With few people the variance is at most share (1 - share) / fewest (for the AUC: Birnbaum and Klose 1957).
    """
    largest = share * (1 - share)
    is_known = fewest >= FEW and variance > 0 and largest > 0
    return wilson_interval(share, largest / variance if is_known else fewest, confidence)
