"""Who should report what: shares of people for pairs and single attributes, by the error to expect.

The error of a table has two parts. Its marginals err as 1/(precision of all who report them). Its dependence,
of squared size D^2, is shrunk: with noise c/s from a share s it errs by D^2 c / (D^2 s + c) (the risk of the
best linear shrinkage), averaged over what is believed about D^2. Both fall convexly in the shares, so the
least total is found by exponentiated gradients (Kivinen, Warmuth 1997).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sidelight.estimation.pair_shrinkage import (
    Shrunken,
    centres_of,
    prior_distances,
    prior_weights,
    shares_values,
)
from sidelight.estimation.set_tables import Names
from sidelight.foundation.arrays import Array, Whole
from sidelight.protocols.groups import BEST, ReportedGroup, make_group, table_moments
from sidelight.protocols.protocol import check_budget
from sidelight.protocols.sets import all_pairs
from sidelight.schema import Schema

LEAST_SHARE = 1e-3
"""Sets that fewer people than this share would report are left out."""
LARGEST_FIRST = 0.2
"""At most this share of people report random pairs before anything is known."""
_SPREAD = 0.2
"""How far marginals lie from uniformity before anything is known, squared."""
_CAUTION = 3.0
"""What is to be shrunk must be found first, so that its noise counts this many times."""
_HEDGE = 0.5
"""This much of what pairs get is shared evenly: one that seemed independent may not be."""
_ROUNDS = 300


@dataclass(frozen=True, eq=False)
class Dependence:
    """What is believed about one pair: probabilities of its squared distances from independence."""

    weights: Array
    distances: Array

    @classmethod
    def prior(cls, schema: Schema, names: Names) -> Dependence:
        """Return what is believed before any report, uniform marginals assumed."""
        even = [np.full(schema[name].size, 1 / schema[name].size) for name in names]
        centres = centres_of(even, shares_values(schema, names))
        weights = prior_weights(len(centres), [len(share) for share in even])
        return cls(weights.reshape(-1), prior_distances(centres).reshape(-1))

    @classmethod
    def of(cls, shrunken: Shrunken) -> Dependence:
        """Return what reports have led to."""
        return cls(shrunken.weights.reshape(-1), shrunken.apart.reshape(-1))

    @classmethod
    def known(cls, distance: float) -> Dependence:
        """Return a squared distance that is taken for granted."""
        return cls(np.ones(1), np.array([distance]))


@dataclass(frozen=True, eq=False)
class Allotment:
    """The error to expect of tables of all pairs, as a function of who reports what.

    Attributes:
        schema: of a record.
        epsilon: of a record's report.
        dependence: by pair, what is believed.
        squares: by attribute, the sum of its squared frequencies.
    """

    schema: Schema
    epsilon: float
    dependence: Mapping[Names, Dependence]
    squares: Mapping[str, float]

    @classmethod
    def prior(cls, schema: Schema, epsilon: float) -> Allotment:
        """Return the error to expect before anything is known."""
        believed = {names: Dependence.prior(schema, names) for names in all_pairs(schema)}
        return cls(schema, check_budget(epsilon), believed, {item.name: 1 / item.size for item in schema})

    @cached_property
    def groups(self) -> dict[Names, ReportedGroup]:
        """What a person may report: every pair, and every attribute by itself."""
        return _groups(self.schema, self.epsilon, tuple(self.dependence))

    @cached_property
    def _precision(self) -> Array:
        """What one report of each set adds to the precision of each attribute, (attributes, sets)."""
        added = np.zeros((len(self.schema), len(self.groups)))
        for column, (names, group) in enumerate(self.groups.items()):
            for name in names:
                none, full = table_moments(group, [name])
                size, square = self.schema[name].size, self.squares[name]
                added[self.schema.index(name), column] = 1 / (size * none + full - none - square)
        return added

    @cached_property
    def _noise(self) -> Array:
        """Of one report of each pair the noise of its dependence, summed over cells."""
        noise = []
        for names in self.dependence:
            none, full = table_moments(self.groups[names], names)
            cells = self.groups[names].size
            free = math.prod(self.schema[name].size - 1 for name in names)
            noise.append(_CAUTION * free * (none + (full - none) / cells - 1 / cells**2))
        return np.array(noise)

    @cached_property
    def _weights(self) -> Array:
        """How much the error of each attribute's marginal counts in the mean error of all tables."""
        counts = np.zeros(len(self.schema))
        for a, b in self.dependence:
            cells = self.schema[a].size * self.schema[b].size * len(self.dependence)
            counts[self.schema.index(a)] += self.squares[b] / cells
            counts[self.schema.index(b)] += self.squares[a] / cells
        return counts

    @cached_property
    def _hypotheses(self) -> tuple[Whole, Array, Array, Array]:
        """Of all pairs in a row: which pair, its distances, their weight in the mean error, its noise."""
        items = list(self.dependence.values())
        places = np.repeat(np.arange(len(items)), [item.weights.size for item in items])
        cells = np.array([self.groups[names].size * len(items) for names in self.dependence])
        weights = np.concatenate([item.weights for item in items]) / cells[places]
        return places, np.concatenate([item.distances for item in items]), weights, self._noise[places]

    def error(self, reports: Mapping[Names, float]) -> float:
        """Return the mean squared error to expect of all tables from so many reports of each set."""
        given = np.array([float(reports.get(names, 0.0)) for names in self.groups])
        return self._risk(given)[0]

    def _risk(self, reports: Array) -> tuple[float, Array]:
        """Return the error and what one more report of each set changes."""
        spread = 1 / (self._precision @ reports + 1 / _SPREAD)
        risk = float(self._weights @ spread)
        slope = -(self._precision.T @ (self._weights * spread**2))
        places, distances, weights, noise = self._hypotheses
        shrunk = distances / (distances * reports[places] + noise)
        part = weights * noise * shrunk
        slope[: len(self.dependence)] -= np.bincount(places, part * shrunk, len(self.dependence))
        return risk + float(part.sum()), slope

    def best(self, people: int, before: Mapping[Names, float] | None = None) -> dict[Names, float]:
        """Return the shares of so many people with the least error, given who has reported before."""
        base = np.array([float((before or {}).get(names, 0.0)) for names in self.groups])
        pairs, singles = len(self.dependence), len(self.schema)
        shares = np.concatenate([np.full(pairs, 0.5 / pairs), np.full(singles, 0.5 / singles)])
        risk, slope = self._risk(base + people * shares)
        step = 1.0
        for _ in range(_ROUNDS):
            moved = shares * np.exp(step * (slope.min() - slope) / np.abs(slope).max())
            moved /= moved.sum()
            new_risk, new_slope = self._risk(base + people * moved)
            if new_risk <= risk:
                shares, risk, slope, step = moved, new_risk, new_slope, step * 1.2
            else:
                step /= 2
            if step < 1e-6:
                break
        together = shares[:pairs].sum()
        shares[:pairs] = (1 - _HEDGE) * shares[:pairs] + _HEDGE * together / pairs
        return self._trimmed(shares)

    def _trimmed(self, shares: Array) -> dict[Names, float]:
        """Leave out what hardly anybody would report, but no attribute altogether."""
        by_set = dict(zip(self.groups, shares.tolist(), strict=True))
        kept = {names: share for names, share in by_set.items() if share >= LEAST_SHARE}
        covered = {name for names in kept for name in names}
        kept |= {(name,): LEAST_SHARE for name in self.schema.names if name not in covered}
        whole = sum(kept.values())
        return {names: share / whole for names, share in kept.items()}


@lru_cache(maxsize=4)
def _groups(schema: Schema, epsilon: float, pairs: tuple[Names, ...]) -> dict[Names, ReportedGroup]:
    sets = [*pairs, *((name,) for name in schema.names)]
    return {names: make_group(schema, names, BEST, epsilon) for names in sets}


def first_share(schema: Schema, epsilon: float, people: int) -> float:
    """Return the share of people who should report random pairs first; 0 where no pair is worth it."""
    shares = Allotment.prior(schema, epsilon).best(people)
    return min(sum(share for names, share in shares.items() if len(names) > 1), LARGEST_FIRST)
