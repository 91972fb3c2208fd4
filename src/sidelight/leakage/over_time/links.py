"""Trackability: how surely two batches of reports can be told to be of one person.

A memory protects the value and exposes the person. Two batches a and b of T reports each have the law
sum_z w_z I(a|z) I(b|z) if they are of one person, w being how likely memos are, and m(a) m(b) if not. Who
is asked whether they are of one person, as likely as not, is right with probability (1 + TV) / 2, TV being
the distance of the two laws. It is at most 1 - sum w^2, which unlimited reports reach. With fresh noise it is
the value itself that links.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import check_is, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.leakage.bounds import Claim
from sidelight.leakage.totals.draws import joint_likelihoods
from sidelight.mechanisms.channel.dense import report_counts
from sidelight.mechanisms.checks import check_shares
from sidelight.mechanisms.longitudinal import Longitudinal, kept_oracle, memory_steps, same_memos
from sidelight.plan import Release

_MOST_BATCHES = 1 << 11
_MOST_ROUNDS = 64
_DRAWS = 2_000
_TIE = 9
"""Decimals of a log-ratio within which two batches fit equally well."""


@dataclass(frozen=True)
class Linking:
    """How surely two batches of reports of one attribute can be linked.

    Attributes:
        times: how many reports a batch has.
        distance: the total variation between two batches of one person and of two.
        kind: "exact"; "estimate" from draws; "certified" where it is what unlimited reports reach at most.
        error: the standard error of an estimate.
        ceiling: what it is at most, however many reports there are.
    """

    times: int
    distance: float
    kind: Claim
    error: float
    ceiling: float

    @property
    def same_or_not(self) -> float:
        """How often the best guess is right whether two batches are of one person, as likely as not."""
        return (1 + self.distance) / 2


def linking(
    release: Release, frequencies: Array, *, times: int | None = None, draws: int = _DRAWS, seed: int = 0
) -> Linking:
    """Return how surely two batches of a release can be told to be of one person.

    Args:
        release: how the attribute is reported, and whether the response is kept.
        frequencies: how frequent its values are.
        times: how many reports a batch has; by default as many as the plan says.
        draws: how many pairs of batches to draw where they cannot be listed.
        seed: of the draws, which are of no real person.
    """
    question = _Batches.of(release, frequencies, times)
    ceiling = question.ceiling
    if (listed := question.listed) is not None:
        both, alone = listed
        distance = float(np.abs(both - np.outer(alone, alone)).sum() / 2)
        return Linking(question.times, min(distance, ceiling), "exact", 0.0, ceiling)
    count = check_whole("draws", draws, at_least=2)
    if question.times > _MOST_ROUNDS:
        return Linking(question.times, ceiling, "certified", 0.0, ceiling)
    if question.oracle is not None:
        ratios = question.ratios(question.oracle, *question.drawn(question.oracle, count, seed))
    elif not release.keeps and release.randomiser().makes_reports:
        ratios = question.fresh_ratios(count, seed)
    else:
        return Linking(question.times, ceiling, "certified", 0.0, ceiling)
    shares = -np.expm1(np.minimum(-ratios, 0.0))
    error = float(shares.std(ddof=1) / math.sqrt(len(shares)))
    return Linking(question.times, min(float(shares.mean()), ceiling), "estimate", error, ceiling)


def found_among(
    release: Release, frequencies: Array, people: int, *, times: int | None = None, seed: int = 0
) -> float | None:
    """Return how often the best guess finds a person's second batch among those of so many people.

    Exact where batches can be listed, else from one drawn crowd; None where they can be neither.
    """
    crowd = check_whole("people", people, at_least=2)
    question = _Batches.of(release, frequencies, times)
    if question.listed is not None:
        return _found_exactly(*question.listed, crowd)
    oracle = question.oracle
    if oracle is None or question.times > _MOST_ROUNDS:
        return None
    first, second = question.drawn(oracle, crowd, seed)
    found = 0.0
    for number, batch in enumerate(first):
        fits = question.ratios(oracle, np.broadcast_to(batch, second.shape), second).round(_TIE)
        best = fits == fits.max()
        found += best[number] / best.sum()
    return float(found / crowd)


@dataclass(frozen=True, eq=False)
class _Batches:
    """A release, how frequent its values are, and how many reports a batch has."""

    release: Release
    frequencies: Array
    times: int

    @classmethod
    def of(cls, release: Release, frequencies: Array, times: int | None) -> _Batches:
        check_is("release", release, Release, "A plan has one for each attribute.")
        shares = check_shares(frequencies, release.attribute.size, single=True)
        return cls(release, shares, check_whole("times", times or release.times, at_least=1))

    @property
    def oracle(self) -> Longitudinal | None:
        """The oracle, if its batches can be drawn and weighed."""
        return kept_oracle(self.release.randomiser(), kept=self.release.keeps)

    @property
    def ceiling(self) -> float:
        """What unlimited reports reach: 1 - sum w^2."""
        same = same_memos(self.release.randomiser(), kept=self.release.keeps)
        return float(np.clip(1 - self.frequencies @ same @ self.frequencies, 0.0, 1.0))

    @cached_property
    def listed(self) -> tuple[Array, Array] | None:
        """The law of two batches of one person, and that of one batch; None if there are too many."""
        steps = memory_steps(self.release.randomiser(), kept=self.release.keeps)
        if steps is None:
            return None
        permanent, fresh = steps
        reports = fresh.shape[1]
        if np.array_equal(fresh, np.eye(len(fresh))):  # the same report again and again
            laws = fresh
        elif math.comb(self.times + reports - 1, self.times) > _MOST_BATCHES:
            return None
        else:
            laws = _count_laws(fresh, self.times)
        memos = self.frequencies @ permanent
        return laws.T @ (memos[:, None] * laws), memos @ laws

    def people(self, count: int, seed: int) -> Positions:
        """Return the values of so many people."""
        return np.random.default_rng(seed).choice(len(self.frequencies), size=count, p=self.frequencies)

    def fresh_ratios(self, people: int, seed: int) -> Array:
        """Return `ratios` of two batches of fresh noise of each of so many people: the value links them."""
        mechanism = self.release.randomiser()
        values = mechanism.inputs(self.people(people, seed))
        parts = []
        for half in range(2):
            seeds = (derive_seed(seed, f"fresh/{half}/{number}") for number in range(self.times))
            reports = (mechanism.randomise(values, seed=fresh) for fresh in seeds)
            parts.append(joint_likelihoods(mechanism, reports)[0])
        first, second = parts
        alone = (first @ self.frequencies) * (second @ self.frequencies)
        return np.asarray(np.log((first * second) @ self.frequencies) - np.log(alone))

    def drawn(self, oracle: Longitudinal, people: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return two batches of each of so many people, as counts."""
        values = self.people(people, seed)
        memos = oracle.permanent(values, seed=derive_seed(seed, "memos"))
        batches = []
        for half in range(2):
            counts = np.zeros((people, oracle.tally_width), dtype=np.int64)
            for number in range(self.times):
                fresh = derive_seed(seed, f"batch/{half}/{number}")
                counts += oracle.tallied(oracle.report(memos, seed=fresh))
            batches.append(counts)
        return batches[0], batches[1]

    def ratios(self, oracle: Longitudinal, first: NDArray[Any], second: NDArray[Any]) -> Array:
        """Return ln of how much likelier each two batches are as one person's than as two people's."""
        with np.errstate(divide="ignore"):
            prior = np.log(self.frequencies)

        def weighed(counts: NDArray[Any], times: int) -> Array:
            return np.asarray(np.logaddexp.reduce(oracle.order_logs(counts, times) + prior, axis=1))

        # Two batches of one person are one batch of twice as many reports, given in their order.
        both = weighed(first + second, 2 * self.times)
        return np.asarray(both - weighed(first, self.times) - weighed(second, self.times))


def _count_laws(fresh: Array, times: int) -> Array:
    """Return Pr(counts of T reports | memo), (memos, counts)."""
    from scipy.special import gammaln, xlogy

    counts = report_counts(fresh.shape[1], times)
    ways = gammaln(times + 1) - gammaln(counts + 1).sum(axis=1)
    return np.asarray(np.exp(xlogy(counts[None], fresh[:, None]).sum(axis=2) + ways))


def _found_exactly(both: Array, alone: Array, people: int) -> float:
    """Return how often the likeliest of so many batches is the right one, ties at random.

    Given the one batch, let F be the law of how well somebody else's fits. The right one fits with a tie of
    mass f(c) = F(c) - F(c-) among the others and wins with probability (F(c)^n - F(c-)^n) / (n f(c)).
    """
    found = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.log(both) - np.log(alone)[:, None]
    for given in np.flatnonzero(alone > 0):
        used = alone > 0
        _, place = np.unique(fits[used, given].round(_TIE), return_inverse=True)
        mass = np.bincount(place, alone[used])
        right = np.bincount(place, both[used, given])
        upto = np.minimum(np.cumsum(mass), 1.0)
        below = np.concatenate([[0.0], upto[:-1]])
        found += float((right * (upto**people - below**people) / (people * mass)).sum())
    return found
