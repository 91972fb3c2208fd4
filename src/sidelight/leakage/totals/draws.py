"""Releases drawn given each value of a secret, and how likely each value makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.belief.views import SecretView
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.foundation.errors import check_whole
from sidelight.leakage.totals.certificate import Block, DrawnRatios, Pair
from sidelight.mechanisms import Mechanism, Reports
from sidelight.plan import Release

_BATCH = 1 << 13
"""So many releases are drawn at a time, or fewer where there are very many values."""
_CELLS = 1 << 26
"""So many likelihoods of a report and a value are held at a time: 512 MiB."""


@dataclass(frozen=True, eq=False)
class DrawnBlock:
    """So many releases for each possible value of the secret.

    Attributes:
        count: how many.
        ratios: the log-ratios of every ordered pair of values.
        moves: (values, draws) by how much each release moves the odds of any two values at most.
    """

    count: int
    ratios: Block
    moves: Array

    @classmethod
    def of(cls, logs: Iterable[Array], floor: float) -> DrawnBlock:
        """Take ln Pr(release | value), (draws, values), of the releases drawn given each value in turn.

        The floor is that of `DrawnRatios`.
        """
        ratios: dict[Pair, DrawnRatios] = {}
        moves = []
        for row, part in enumerate(logs):
            moves.append(part.max(axis=1) - part.min(axis=1))
            for column in range(part.shape[1]):
                if column != row:
                    ratios[row, column] = DrawnRatios.of(part[:, row] - part[:, column], floor)
        return cls(len(moves[0]), ratios, np.stack(moves))


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
        reporters = {name: release.sent() for name, release in releases.items()}
        coins = None if seed is None else check_whole("seed", seed, at_least=0)
        return cls(view, reporters, np.random.default_rng(coins))

    @property
    def possible(self) -> Positions:
        """The values of the secret that can occur."""
        return np.flatnonzero(self.view.prior > 0)

    @property
    def _batch(self) -> int:
        """How many releases are drawn at a time."""
        values = len(self.view.prior) + sum(self.view.schema[name].size for name in self.reporters)
        return max(1, min(_BATCH, _CELLS // values))

    def block(self, count: int, floor: float) -> DrawnBlock:
        """Draw so many releases given each value of the secret; see `DrawnRatios` for the floor."""
        # Several values at once where few releases are drawn of each: the kernel likes long work.
        together = max(1, self._batch // count)
        runs = range(0, len(self.possible), together)
        values = (self.possible[first : first + together] for first in runs)
        return DrawnBlock.of((logs for some in values for logs in self._logs(some, count)), floor)

    def _logs(self, values: Positions, count: int) -> Array:
        """Return ln Pr(release | value) for the possible values, of releases drawn given some of them.

        The drawn value's own logarithm is rounded up and the others down: no ratio to it is too small.

        Returns:
            Shape (some values, releases, possible values).
        """
        parts = []
        for start in range(0, count, self._batch):
            size = min(self._batch, count - start)
            codes = [self.view.draw(int(value), size, self.seeds) for value in values]
            logs, error = self.log_probabilities(np.concatenate(codes))
            logs[np.arange(len(logs)), np.repeat(values, size)] += 2 * error
            parts.append(logs[:, self.possible].reshape(len(values), size, -1))
        return np.concatenate(parts, axis=1)

    def log_probabilities(self, codes: Codes) -> tuple[Array, float]:
        """Have people report, and return ln Pr(release | value) of each and the rounding error.

        Shape (people, values), up to a number for each release; NaN for values that cannot occur.
        """
        return self.view.with_rounding(self._likelihoods(codes))

    def _likelihoods(self, codes: Codes) -> dict[str, Array]:
        """Have everybody report, and return each attribute's Pr(reports | value) up to a factor."""
        likelihoods = {}
        for name, (mechanism, times) in self.reporters.items():
            values = mechanism.inputs(codes[:, self.view.schema.index(name)])
            seeds = self.seeds.integers(1 << 62, size=times)
            reports = (mechanism.randomise(values, seed=int(seed)) for seed in seeds)
            likelihoods[name], _ = joint_likelihoods(mechanism, reports)
        return likelihoods


def joint_likelihoods(mechanism: Mechanism, reports: Iterable[Reports]) -> tuple[Array, Array]:
    """Return how likely every value makes all of a person's reports of an attribute together.

    Args:
        mechanism: what they were made by.
        reports: one of each person, then another one of each, and so on.

    Returns:
        Pr(reports | value) up to a factor for each person, (people, values); and the logarithm of what they
        were divided by besides the factors that `likelihoods` leaves out, (people, 1).
    """
    tables = (mechanism.likelihoods(part) for part in reports)
    product = next(tables)
    taken = np.zeros((len(product), 1))
    for table in tables:
        product = product * table
        # Reports that are unlikely whatever the value must not all underflow to 0.
        top = product.max(axis=1, keepdims=True)
        product /= top
        taken += np.log(top)
    return product, taken
