"""Credal sets: all distributions that a finite sample leaves open.

The records are taken as independent draws from a population. Given the column of the secret, the n records
with its value x are n independent draws of the neighbour from Pr(neighbour | x), so the number of them that
fall into a set of values is binomial, and an upper confidence limit of each set's probability, held for the
sets and their complements alike, encloses the row. The risk 1 - confidence is divided among all ordered
pairs of attributes, all values of the secret that were seen and all sets (union bound), so every figure of
every pair holds at once. Because the argument is made given the secret's column, a value that was never seen
costs nothing; about it nothing is known, and any row is possible.

Limits: Clopper and Pearson (1934) for few values; for the sets of many values Chernoff's bound
n kl(share, p) <= ln(1 / level) (Hoeffding 1963, theorem 1), never wider than the total-variation ball of
Weissman et al. (2003) at the same risk (Pinsker), and far narrower for rare sets. From five values on, half
of a row's risk goes to single values, which are few, and every set keeps the tighter of the two limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sidelight.belief.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_number

_TOTALS_SHARE = 0.1
_FEW_VALUES = 4
_FEW_SETS = 6
_OUTWARD = 1e-12
"""Limits are moved outward by this much, which is more than rounding can err."""
_NOTHING_KNOWN = 1e3
"""An exponent for values that were never seen: their limit is 1."""


@dataclass(frozen=True, eq=False)
class Region:
    """Limits of Pr(neighbour in a set | secret = x), for every x and every set at once.

    Attributes:
        counts: (m, t), how often each value of the neighbour was seen with each value of the secret.
        risk: the probability, for each value of the secret, that one of its limits is wrong.
    """

    counts: Array
    risk: float

    @cached_property
    def totals(self) -> Array:
        """How often each value of the secret was seen, shape (m, 1)."""
        return np.asarray(self.counts.sum(axis=1, keepdims=True))

    @cached_property
    def shares(self) -> Array:
        """The neighbour's observed shares, shape (m, t); 0 for a value of the secret that was never seen."""
        return np.asarray(self.counts / np.maximum(self.totals, 1))

    @cached_property
    def low(self) -> Array:
        """The least probability of each value, shape (m, t)."""
        if self.counts.shape[1] == 1:
            return np.ones_like(self.counts)
        return 1 - binomial_limit(self.totals - self.counts, self.totals, self._value_risk)

    @cached_property
    def high(self) -> Array:
        """The largest probability of each value, shape (m, t)."""
        return binomial_limit(self.counts, self.totals, self._value_risk)

    def upper(self, sets: Array) -> Array:
        """Return the largest probability of each set, shape (m, sets); `sets` is 0 or 1, (t, sets)."""
        counts = self.counts @ sets
        if self.counts.shape[1] <= _FEW_SETS:
            limits = binomial_limit(counts, self.totals, math.exp(self._log_set_risk))
        else:
            limits = self.upper_share(counts / np.maximum(self.totals, 1))
        limits = np.minimum(limits, np.minimum(self.high @ sets, 1 - self.low @ (1 - sets)))
        return np.asarray(np.where(sets.any(axis=0), limits, 0.0))

    def lower(self, sets: Array) -> Array:
        """Return the least probability of each set, shape (m, sets)."""
        return 1 - self.upper(1 - sets)

    def upper_share(self, shares: Array, rows: int | slice = slice(None)) -> Array:
        """Return the largest probability of a set whose observed share is given, for some secret values.

        The shares are (rows, sets) for several secret values, of any shape for one.
        """
        totals = self.totals[rows]
        exponent = -self._log_set_risk / np.maximum(totals, 1.0)
        return chernoff_limit(shares, np.where(totals > 0, exponent, _NOTHING_KNOWN))

    @property
    def _value_risk(self) -> float:
        size = self.counts.shape[1]
        return math.exp(self._log_set_risk) if size <= _FEW_VALUES else self.risk / 2 / (2 * size)

    @property
    def _log_set_risk(self) -> float:
        """The logarithm of the risk of one set: of 2^t - 2, for neither the empty set nor all can err."""
        size = self.counts.shape[1]
        sets = math.log(max(2**size - 2, 1)) if size < 64 else size * math.log(2)
        return math.log(self.risk if size <= _FEW_VALUES else self.risk / 2) - sets


@dataclass(frozen=True, eq=False)
class Credal:
    """All joint distributions within a confidence region around a sample.

    Make one with `Belief.credal`. Smoothing plays no part in it: the region is drawn around what was seen.

    Attributes:
        belief: the point estimate.
        confidence: the probability with which all figures of an audit hold together.
    """

    belief: Belief
    confidence: float

    @classmethod
    def around(cls, belief: Belief, confidence: float) -> Credal:
        """Return the region around a belief that was estimated from records."""
        check_number("confidence", confidence, above=0, below=1)
        if belief.sample_size is None:
            raise InputError(
                "a credal set needs a belief estimated from records; one given by hand is certain of itself."
            )
        if belief.tree is not None or belief.population is not None:
            raise InputError(
                f"a credal set needs the table's own pairs, and a {belief.kind} is a model of them; use "
                "kind='joint' or 'pairwise'."
            )
        return cls(belief, confidence)

    def pair(self, secret: str, neighbour: str) -> Region:
        """Return the limits of Pr(neighbour | secret)."""
        counts = self.belief.pair_weights(secret, neighbour)
        others = len(self.belief.schema) - 1
        return self._region(counts, (1 - self.confidence) * (1 - _TOTALS_SHARE) / others)

    def joint(self, counts: Array) -> Region:
        """Return the limits of Pr(all other released attributes | secret) from their counts, (m, cells).

        A tenth of the risk is kept for these, one table for each secret, so they hold for one plan.
        """
        return self._region(counts, (1 - self.confidence) * _TOTALS_SHARE)

    def _region(self, counts: Array, risk: float) -> Region:
        """Give each table its share of the risk by the secret's number of values, and divide it by row."""
        seen = max(int(np.count_nonzero(counts.sum(axis=1))), 1)
        share = len(counts) / sum(self.belief.schema.sizes)
        return Region(counts, risk * share / seen)


def binomial_limit(counts: Array, totals: Array, risk: float) -> Array:
    """Return the upper limit of Clopper and Pearson (1934), which fails with probability at most `risk`."""
    from scipy.special import betainccinv

    inner = counts < totals  # if every record is in the set, nothing rules out a probability of 1
    limits = betainccinv(np.where(inner, counts + 1, 1.0), np.where(inner, totals - counts, 1.0), risk)
    return np.asarray(np.minimum(np.where(inner, limits + _OUTWARD, 1.0), 1.0))


def chernoff_limit(shares: Array, exponent: Array) -> Array:
    """Return the largest p with kl(share, p) <= exponent, from above.

    kl(q, p) is at least (p - q)^2 / (2 p (1 - q)), 2 (p - q)^2 (Pinsker), and
    (1 - q) (ln((1 - q) / (1 - p)) - 1), as q ln(1/q) <= 1 - q. Each gives a p beyond the root; kl is convex
    in p, so Newton's steps from there never pass it.
    """
    q = np.minimum(shares, 1.0)
    middle = q + exponent * (1 - q)
    p = middle + np.sqrt(np.maximum(middle**2 - q**2, 0.0))
    p = np.minimum(p, q + np.sqrt(exponent / 2))
    p = np.minimum(p, 1 - (1 - q) * np.exp(-1 - exponent / np.maximum(1 - q, _OUTWARD)))
    for _ in range(8):  # from above: stopping early leaves a limit that is too wide, never one too narrow
        inside = (p > q) & (p < 1)
        safe = np.where(inside, p, 0.5)
        gap = _divergence(q, safe) - exponent
        slope = np.where(inside, (safe - q) / (safe * (1 - safe)), 1.0)
        p = np.where(inside & (gap > 0), safe - gap / slope, p)
    return np.asarray(np.minimum(p + _OUTWARD, 1.0))


def _divergence(q: Array, p: Array) -> Array:
    """Return kl(q, p) of two coins."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(q > 0, q * np.log(q / p), 0.0)
        second = np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - p)), 0.0)
    return np.asarray(first + second)
