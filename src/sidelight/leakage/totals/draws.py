"""Releases drawn given each value of a secret, and how likely each value makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.belief.views import SecretView
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.leakage.totals.certificate import DrawnRatios, Pair
from sidelight.mechanisms import Mechanism
from sidelight.plan import Release

_BATCH = 1 << 13
"""So many releases are drawn at a time: their likelihoods fit in memory for thousands of attributes."""


@dataclass(frozen=True, eq=False)
class DrawnBlock:
    """So many releases for each possible value of the secret.

    Attributes:
        count: how many.
        ratios: the log-ratios of every ordered pair of values.
        moves: (values, draws) by how much each release moves the odds of any two values at most.
    """

    count: int
    ratios: Mapping[Pair, DrawnRatios]
    moves: Array


@dataclass(frozen=True, eq=False)
class ReleaseSampler:
    """Draws people, has them report, and asks how likely each value of the secret makes the reports.

    Attributes:
        view: the belief, seen from the secret.
        reporters: by attribute, its mechanism and how often each person reports.
        seeds: where the coins come from.
    """

    view: SecretView
    reporters: Mapping[str, tuple[Mechanism, int]]
    seeds: np.random.Generator

    @classmethod
    def of(cls, view: SecretView, releases: Mapping[str, Release], seed: int | None) -> ReleaseSampler:
        """Prepare releases that can be run."""
        reporters = {name: (release.randomiser(), release.times) for name, release in releases.items()}
        return cls(view, reporters, np.random.default_rng(seed))

    @property
    def possible(self) -> Positions:
        """The values of the secret that can occur."""
        return np.flatnonzero(self.view.prior > 0)

    def block(self, count: int, floor: float) -> DrawnBlock:
        """Draw so many releases given each value of the secret; see `DrawnRatios` for the floor."""
        ratios: dict[Pair, DrawnRatios] = {}
        moves = []
        # Several values at once where few releases are drawn of each: the kernel likes long work.
        together = max(1, _BATCH // count)
        for first in range(0, len(self.possible), together):
            for row, logs in enumerate(self._logs(self.possible[first : first + together], count), first):
                moves.append(logs.max(axis=1) - logs.min(axis=1))
                for column in range(len(self.possible)):
                    if column != row:
                        ratios[row, column] = DrawnRatios.of(logs[:, row] - logs[:, column], floor)
        return DrawnBlock(count, ratios, np.stack(moves))

    def _logs(self, values: Positions, count: int) -> Array:
        """Return ln Pr(release | value) for the possible values, of releases drawn given some of them.

        The drawn value's own logarithm is rounded up and the others down: no ratio to it is too small.

        Returns:
            Shape (some values, releases, possible values).
        """
        parts = []
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            codes = [self.view.draw(int(value), size, self.seeds) for value in values]
            logs, error = self.log_probabilities(np.concatenate(codes))
            logs[np.arange(len(logs)), np.repeat(values, size)] += 2 * error
            parts.append(logs[:, self.possible].reshape(len(values), size, -1))
        return np.concatenate(parts, axis=1)

    def log_probabilities(self, codes: Codes) -> tuple[Array, float]:
        """Have people report, and return ln Pr(release | value) of each and the rounding error.

        Shape (people, values), up to a number for each release; NaN for values that cannot occur.
        """
        likelihoods = self._likelihoods(codes)
        return self.view.log_probabilities(likelihoods), self.view.rounding(likelihoods)

    def _likelihoods(self, codes: Codes) -> dict[str, Array]:
        """Have everybody report, and return Pr(report | value) of each attribute's reports together."""
        likelihoods = {}
        for name, (mechanism, times) in self.reporters.items():
            values = mechanism.inputs(codes[:, self.view.schema.index(name)])
            seeds = self.seeds.integers(1 << 62, size=times)
            tables = (mechanism.likelihoods(mechanism.randomise(values, seed=int(seed))) for seed in seeds)
            product = next(tables)
            for table in tables:
                product = product * table
            likelihoods[name] = product
        return likelihoods
