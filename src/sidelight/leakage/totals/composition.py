"""Leakage at delta without draws: for every belief by composition, and for a table by coupling its records.

Whatever the attributes have to do with each other, two records differ in at most all of them. The loss of a
release is then the sum of its reports' losses, which are independent given the record. Each report's loss is
dominated by a law on a few points: three for reports that mark a fixed number of values, two for any other
report of the same budget (binary randomised response dominates it; Kairouz, Oh, Viswanath 2015), with the
report's own delta at infinity. Laws are added on a grid with every loss rounded up, so the result is never
too low (Meiser, Mohammadi 2018; Koskela, Jaelkoe, Honkela 2020).

The hockey-stick divergence is jointly convex. So for a table, records given s may be matched with records
given s' in any way: the divergence is at most the average over matched records of that of the attributes in
which these differ. Matching records that agree in much makes the average small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.leakage.divergence import hockey_stick
from sidelight.plan import Release
from sidelight.sources import Records

Releases = Mapping[str, Release]
"""The releases that are seen, by attribute."""
_FEWEST_CELLS, _MOST_CELLS = 1 << 12, 1 << 17
_LARGEST_MASS = 1 << 24
_MOST_TIMES = 1000
_STEPS = 60
_ROUNDING = 1e-9
"""A loss this share of a cell above a grid point counts as on it; what that hides is added at the end."""


@dataclass(frozen=True)
class LossLaw:
    """How often a report has a loss of +epsilon, -epsilon, 0 and infinity, at worst.

    Attributes:
        epsilon: the budget of the report.
        gain: the probability of the loss +epsilon.
        none: the probability of the loss 0.
        lost: the probability of an infinite loss.
    """

    epsilon: float
    gain: float
    none: float = 0.0
    lost: float = 0.0

    @classmethod
    def of_marks(cls, epsilon: float, size: int, marked: int) -> LossLaw:
        """Return the loss of reports that mark so many values, every such set with the true value alike.

        >>> LossLaw.of_marks(1.0, 4, 1).none
        0.3496...
        """
        odds = math.exp(epsilon) * marked / (size - marked)
        with_true = odds / (1 + odds)
        gain = with_true * (size - marked) / (size - 1)
        lose = (1 - with_true) * marked / (size - 1)
        return cls(epsilon, gain, max(0.0, 1 - gain - lose))

    @classmethod
    def of_any(cls, epsilon: float, delta: float = 0.0) -> LossLaw:
        """Return a law that dominates the loss of every report of this budget."""
        if math.isinf(epsilon):
            return cls(0.0, 0.0, 0.0, 1.0)
        return cls(epsilon, (1 - delta) / (1 + math.exp(-epsilon)), 0.0, delta)

    @classmethod
    def of_release(cls, release: Release) -> LossLaw:
        """Return a law that dominates the loss of one report of a release."""
        mechanism = release.randomiser()
        marked = mechanism.set_size
        if marked is None or mechanism.delta or not 0 < mechanism.epsilon < math.inf:
            return cls.of_any(mechanism.epsilon, mechanism.delta)
        return cls.of_marks(mechanism.epsilon, mechanism.size, marked)


@dataclass(frozen=True, eq=False)
class _Levels:
    """The summed losses of ever more reports.

    Attributes:
        losses: (cells,) the positive losses on the grid.
        mass: (levels, cells) how likely each is.
        lost: (levels,) how likely an infinite one is.
        budget: what no sum of finite losses exceeds.
        slack: how far rounding on the grid may have lowered a loss.
    """

    losses: Array
    mass: Array
    lost: Array
    budget: float
    slack: float

    @classmethod
    def of(cls, increments: Sequence[Sequence[LossLaw]]) -> _Levels:
        """Add up laws; each increment makes one more level."""
        laws = [law for increment in increments for law in increment]
        budget = math.fsum(law.epsilon for law in laws)
        step = _step(laws, budget, len(increments))
        half = sum(_cells(law, step)[0] for law in laws)
        mass = np.zeros(2 * half + 1)
        mass[half] = 1.0
        levels, kept = [], 1.0
        lost = []
        for increment in increments:
            for law in increment:
                mass, kept = _added(mass, law, step), kept * (1 - law.lost)
            levels.append(mass[half + 1 :])
            lost.append(1 - kept)
        losses = np.asarray(step * np.arange(1, half + 1), dtype=np.float64)
        return cls(losses, np.stack(levels), np.asarray(lost), budget, step * _ROUNDING * len(laws))

    def divergence(self, limit: float) -> Array:
        """Return the hockey-stick divergence of each level, shape (levels,)."""
        return np.asarray(self.mass @ hockey_stick(self.losses, limit) + self.lost)

    def leakage(self, shares: Array, delta: float) -> float:
        """Return the least limit at which no mixture of levels has more divergence than delta, rounded up.

        Args:
            shares: (mixtures, levels).
            delta: what the divergence may be.
        """
        if (shares @ self.lost).max() > delta:
            return math.inf
        low, high = 0.0, self.budget
        if (shares @ self.divergence(low)).max() <= delta:
            return 0.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            is_kept = (shares @ self.divergence(middle)).max() <= delta
            low, high = (low, middle) if is_kept else (middle, high)
        return min(high + self.slack, self.budget)


def composed_leakage(releases: Releases, delta: float) -> float:
    """Return the leakage at delta of these releases, for every belief."""
    laws = [law for release in releases.values() for law in _laws(release)]
    return _Levels.of([laws]).leakage(np.ones((1, 1)), delta) if laws else 0.0


def coupled_leakage(records: Records, spread: float, releases: Releases, secret: str, delta: float) -> float:
    """Return a bound of the leakage at delta to someone who knows the table.

    Records that agree in every released attribute are matched first. Then the attribute of the highest
    entropy is let go, those that agree in the rest are matched, and so on: any matching is sound, and this
    one leaves few differences.

    Args:
        records: the table.
        spread: the weight of further records, spread evenly over all combinations of values.
        releases: what is seen.
        secret: the attribute that is secret.
        delta: the probability with which the bound may be exceeded.
    """
    names = sorted((name for name in releases if name != secret), key=lambda name: -_entropy(records, name))
    own = _laws(releases[secret]) if secret in releases else []
    levels = _Levels.of([own, *(_laws(releases[name]) for name in names)])
    return levels.leakage(_matched(records, spread, secret, names), delta)


def _matched(records: Records, spread: float, secret: str, names: Sequence[str]) -> Array:
    """Return how many records are matched when so many attributes are let go, (pairs of values, levels)."""
    codes = records.codes[:, [records.schema.index(name) for name in names]]
    values = records.codes[:, records.schema.index(secret)]
    # In this order records that agree in what is left stand side by side at every level.
    order = np.lexsort(codes.T) if names else np.arange(len(codes))
    codes, values = codes[order], values[order]
    size = records.schema[secret].size
    masses = np.zeros((len(codes), size))
    masses[np.arange(len(codes)), values] = records.weights[order]
    totals = masses.sum(axis=0) + spread / size
    possible = np.flatnonzero(totals > 0)
    shares = masses[:, possible] / totals[possible]
    even = spread / size / totals[possible]
    starts = [_starts(codes[:, level:]) for level in range(len(names) + 1)]
    pairs = combinations(range(len(possible)), 2)
    return np.stack([_match(shares[:, [i, j]], min(even[i], even[j]), starts) for i, j in pairs])


def _starts(codes: Codes) -> Positions:
    """Return where runs of equal rows begin."""
    return np.flatnonzero(np.append(True, (codes[1:] != codes[:-1]).any(axis=1)))


def _match(left: Array, even: float, starts: Sequence[Positions]) -> Array:
    """Return the share of people who are matched at each level; `even` is matched without any difference."""
    matched = np.zeros(len(starts))
    before = np.arange(len(left))
    for level, begins in enumerate(starts):
        left = np.add.reduceat(left, np.searchsorted(before, begins), axis=0)
        both = left.min(axis=1, keepdims=True)
        matched[level] = both.sum()
        left, before = left - both, begins
    matched[0] += even
    # Whoever is left, the evenly spread of the rarer value above all, may differ in everything.
    matched[-1] += max(0.0, 1 - matched.sum())
    return matched


def _entropy(records: Records, name: str) -> float:
    counts = np.bincount(records.codes[:, records.schema.index(name)], records.weights)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _laws(release: Release) -> list[LossLaw]:
    """Return the laws of all reports of a release."""
    law = LossLaw.of_release(release)
    if release.times <= _MOST_TIMES:
        return [law] * release.times
    return [LossLaw.of_any(release.times * law.epsilon, min(release.times * law.lost, 1.0))]


def _step(laws: Sequence[LossLaw], budget: float, levels: int) -> float:
    """Return the width of a cell: the budget itself where all are equal, for then nothing is rounded."""
    budgets = {law.epsilon for law in laws if law.epsilon > 0}
    if len(budgets) <= 1:
        return budgets.pop() if budgets else 1.0
    return 2 * budget / max(_FEWEST_CELLS, min(_MOST_CELLS, _LARGEST_MASS // levels))


def _cells(law: LossLaw, step: float) -> tuple[int, int]:
    """Return by how many cells a report raises the loss, or lowers it, both rounded up."""
    return math.ceil(law.epsilon / step - _ROUNDING), math.floor(law.epsilon / step + _ROUNDING)


def _added(mass: Array, law: LossLaw, step: float) -> Array:
    """Return the law of the sum with one more report, finite losses only, on a grid centred at 0."""
    rise, fall = _cells(law, step)
    rest = max(0.0, 1 - law.gain - law.none - law.lost)
    moved = law.none * mass
    moved[rise:] += law.gain * mass[: len(mass) - rise]
    moved[: len(mass) - fall] += rest * mass[fall:]
    return moved
