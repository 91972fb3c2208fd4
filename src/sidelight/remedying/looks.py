"""Estimates of the leakage at delta for many candidates, from the same people and the same random words.

As in a search for budgets, candidates then differ by what they release and hardly by chance. Here the
likelihoods of each release are kept, since most candidates have most releases in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sidelight.belief.views import SecretView
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.leakage.totals.certificate import Draws
from sidelight.leakage.totals.draws import DrawnBlock, joint_likelihoods
from sidelight.plan import Release
from sidelight.remedying.coarsening import Coarsening

MOST_CELLS = 1 << 26
"""So many likelihoods of common draws are kept: 512 MiB."""
_SEED = 0
"""Of the common draws, fixed: the same audit has the same remedies."""
_BATCH = 1 << 13
Key = tuple[int, str, str, float | None, int, int]


@dataclass(frozen=True, eq=False)
class CommonLooks:
    """People for each value of a secret who report any release always with the same random words.

    Attributes:
        view: the belief, seen from the secret.
        delta: at which the leakage is estimated.
        wanted: how many people.
        cells: how many likelihoods are kept; there are fewer people where theirs would be more.
    """

    view: SecretView
    delta: float
    wanted: int
    cells: int = MOST_CELLS
    _tables: dict[Key, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def possible(self) -> Positions:
        """The values of the secret that can occur."""
        return np.flatnonzero(self.view.prior > 0)

    @cached_property
    def count(self) -> int:
        """How many people there are for each value."""
        cells = sum(self.view.schema.sizes) * len(self.possible)
        return max(min(self.wanted, self.cells // cells), 16)

    @cached_property
    def people(self) -> tuple[Codes, ...]:
        """The records of people with each possible value."""
        rng = np.random.default_rng(_SEED)
        return tuple(self.view.draw(int(value), self.count, rng) for value in self.possible)

    def figure(self, releases: Mapping[str, Release], coarsened: Mapping[str, Coarsening]) -> float:
        """Have everybody report, and return the estimate of the leakage at delta."""
        if len(self.possible) < 2:
            return 0.0
        logs = (self._logs(row, releases, coarsened) for row in range(len(self.possible)))
        return Draws((DrawnBlock.of(logs, 0.0).ratios,), self.count, 0.0).estimated(self.delta)[0]

    def _logs(self, row: int, releases: Mapping[str, Release], coarsened: Mapping[str, Coarsening]) -> Array:
        tables = {
            name: self._likelihoods(row, release, coarsened.get(name)) for name, release in releases.items()
        }
        parts = []
        for start in range(0, self.count, _BATCH):
            some = {name: table[start : start + _BATCH] for name, table in tables.items()}
            parts.append(self.view.log_probabilities(some)[:, self.possible])
        return np.concatenate(parts)

    def _likelihoods(self, row: int, release: Release, coarsening: Coarsening | None) -> Array:
        """Return Pr(reports | fine value) of the people with one value, up to a factor for each."""
        size = release.attribute.size
        way = f"{release.mechanism} {dict(release.parameters)} {release.keeps}"
        key = (row, release.name, way, release.epsilon, release.times, size)
        if key not in self._tables:
            place, (mechanism, times) = self.view.schema.index(release.name), release.sent()
            codes = self.people[row][:, place].astype(np.intp)
            values = mechanism.inputs(codes if coarsening is None else coarsening.codes[codes])
            seeds = np.random.default_rng([_SEED, row, place]).integers(1 << 62, size=times)
            reports = (mechanism.randomise(values, seed=int(seed)) for seed in seeds)
            product, _ = joint_likelihoods(mechanism, reports)
            self._forget(release.name, row)
            self._tables[key] = product if coarsening is None else product[:, coarsening.codes]
        return self._tables[key]

    def _forget(self, name: str, row: int) -> None:
        """Drop what other budgets of a release left behind, but for two: a search goes to and fro."""
        old = [key for key in self._tables if key[:2] == (row, name)]
        for key in old[1:-1]:
            del self._tables[key]
