"""Estimates of the leakage at delta from the same people and the same random words at all budgets.

With common random numbers, estimates at two budgets differ by what the budgets do and hardly by chance, so
that a search sees a figure that rises smoothly. They are estimates all the same: what a search returns is
certified afterwards, with draws of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidelight.belief.views import SecretView
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.leakage.totals import LARGEST_FIGURE
from sidelight.leakage.totals.certificate import Draws, Pair
from sidelight.leakage.totals.composition import Releases
from sidelight.leakage.totals.draws import DrawnBlock, joint_likelihoods
from sidelight.mechanisms import Reports
from sidelight.plan import Release

_BATCH = 1 << 13
"""So many releases are looked at together: their likelihoods fit in memory for thousands of attributes."""
_FAR = 1.1
"""A budget is raised so far where only estimates can be compared: by less, chance would hide its effect."""


@dataclass(frozen=True, eq=False)
class Look:
    """What the common draws show at some budgets.

    Attributes:
        logs: by possible value of the secret, (draws, possible values): ln Pr(release | value).
        figure: the estimate of the leakage at delta.
        pair: the values that reach it, the one that the releases were drawn given first.
    """

    logs: tuple[Array, ...]
    figure: float
    pair: Pair

    @property
    def gains(self) -> Array:
        """The log-ratios of the worst pair, shape (draws,)."""
        row, column = self.pair
        return np.asarray(self.logs[row][:, row] - self.logs[row][:, column])


@dataclass(frozen=True, eq=False)
class CommonDraws:
    """So many people for each value of a secret, who always report with the same random words.

    Attributes:
        view: the belief, seen from the secret.
        delta: at which the leakage is estimated.
        count: how many people.
        seed: where the people and the words come from.
    """

    view: SecretView
    delta: float
    count: int
    seed: int

    @cached_property
    def possible(self) -> Positions:
        """The values of the secret that can occur."""
        return np.flatnonzero(self.view.prior > 0)

    @cached_property
    def people(self) -> tuple[Codes, ...]:
        """The records of people with each possible value."""
        rng = np.random.default_rng(self.seed)
        return tuple(self.view.draw(int(value), self.count, rng) for value in self.possible)

    def look(self, releases: Releases) -> Look:
        """Have everybody report, and estimate the leakage."""
        logs = tuple(self._logs(row, releases) for row in range(len(self.possible)))
        drawn = Draws((DrawnBlock.of(logs, 0.0).ratios,), self.count, 0.0)
        return Look(logs, *drawn.estimated(self.delta))

    def growth(self, look: Look, releases: Releases, raised: Releases) -> Array:
        """Return by how much the estimate grows, to first order, with each raised release alone.

        The divergence of two values s and s' is E[max(0, 1 - e^(L - llr)) | s]; at a fixed divergence, a
        change of budgets changes L by E[1(llr > L) (S - e^(L - llr) S')] / E[1(llr > L) e^(L - llr)], with S
        and S' the changes of ln Pr(release | s) and ln Pr(release | s'). Only releases above L count.
        """
        row, column = look.pair
        gains = look.gains
        tail = np.flatnonzero(gains > look.figure)
        shares = np.exp(look.figure - gains[tail])
        reports = {
            name: [part[tail] for part in parts] for name, parts in self._reports(row, releases).items()
        }
        now = {name: joint_likelihoods(releases[name].sent()[0], parts) for name, parts in reports.items()}
        likely = {name: table for name, (table, _) in now.items()}
        grown = []
        for name, release in raised.items():
            scales = _scaled(releases[name], release, reports[name])
            if scales is None:
                grown.append(self._far_growth(look, releases, releases[name], release))
                continue
            table, taken = joint_likelihoods(release.sent()[0], reports[name])
            moved = self._values(likely | {name: table}) + taken - now[name][1]
            change = moved - look.logs[row][tail] + scales[:, None]
            with np.errstate(invalid="ignore"):  # s' may be ruled out, and then it has no share
                lost = np.where(shares > 0, shares * change[:, column], 0.0)
            grown.append(_ratio(float((change[:, row] - lost).sum()), float(shares.sum())))
        return np.array(grown)

    def _far_growth(self, look: Look, releases: Releases, release: Release, raised: Release) -> float:
        """Return the growth by comparing two estimates, for mechanisms that do not state what it takes."""
        far = replace(release, epsilon=_FAR * _budget(release))
        grown = self.look({**releases, release.name: far}).figure - look.figure
        return grown * math.log(_budget(raised) / _budget(release)) / math.log(_FAR)

    def _logs(self, row: int, releases: Releases) -> Array:
        """Return ln Pr(release | value) of the people with one value, shape (people, possible values)."""
        reports = self._reports(row, releases)
        parts = []
        for start in range(0, self.count, _BATCH):
            some = slice(start, start + _BATCH)
            likely = {
                name: joint_likelihoods(releases[name].sent()[0], (part[some] for part in each))[0]
                for name, each in reports.items()
            }
            parts.append(
                np.broadcast_to(self._values(likely), (min(_BATCH, self.count - start), len(self.possible)))
            )
        return np.concatenate(parts)

    def _values(self, likely: Mapping[str, Array]) -> Array:
        return self.view.log_probabilities(likely)[:, self.possible]

    def _reports(self, row: int, releases: Releases) -> dict[str, list[Reports]]:
        """Return every report of the people with one value; an attribute's words do not depend on others."""
        reports = {}
        for name, release in releases.items():
            place = self.view.schema.index(name)
            mechanism, times = release.sent()
            values = mechanism.inputs(self.people[row][:, place])
            seeds = np.random.default_rng([self.seed, row, place]).integers(1 << 62, size=times)
            reports[name] = [mechanism.randomise(values, seed=int(seed)) for seed in seeds]
        return reports


def _scaled(release: Release, raised: Release, reports: list[Reports]) -> Array | None:
    """Return by how much the logarithms of the factors that likelihoods leave out change with the budget."""
    (before, _), (after, _) = release.sent(), raised.sent()
    change = np.zeros(len(reports[0]))
    for part in reports:
        old, new = before.log_scales(part), after.log_scales(part)
        if old is None or new is None:
            return None
        change += new - old
    return change


def _budget(release: Release) -> float:
    assert release.epsilon is not None  # noqa: S101 - only budgets that can be chosen are raised
    return release.epsilon


def _ratio(change: float, share: float) -> float:
    """Return the growth, as large as can be where nothing but a larger figure would bring the tail down."""
    if share > 0:
        return change / share
    return LARGEST_FIGURE if change > 0 else 0.0
