"""Leakage at delta without draws, for every belief: the losses of independent reports, added up.

Whatever the attributes have to do with each other, two records differ in at most all of them. The loss of a
release is then the sum of its reports' losses, which are independent given the record. Each report's loss is
dominated by a law on a few points: three for reports that mark a fixed number of values, two for any other
report of the same budget (binary randomised response dominates it; Kairouz, Oh, Viswanath 2015), with the
report's own delta at infinity. Laws are added on a grid. A loss between two grid points is divided among
them so that both probabilities stay, the one given s and the one given s': that only adds information, so the
result is never too low ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.leakage.divergence import hockey_stick, loss_epsilon
from sidelight.plan import Release

Releases = Mapping[str, Release]
"""The releases that are seen, by attribute."""
Mixture = tuple[Positions, Array]
"""Which sets of reports are mixed, and how much of each."""
_CELLS = 1 << 13
_MOST_TIMES, _MOST_REPORTS = 1000, 1 << 14
"""More reports of an attribute, or of all of them, are not added up one by one."""
_MARGIN = 1e-12
_EQUAL = 1e-6
"""Budgets this close count as equal."""
_BLOCK = 1 << 16
"""So many cells are worked on at a time, so that they stay in the processor's cache."""


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
    def of_any(cls, epsilon: float, delta: float = 0.0) -> LossLaw:
        """Return a law that dominates the loss of every report of this budget."""
        if math.isinf(epsilon):
            return cls(0.0, 0.0, 0.0, 1.0)
        return cls(epsilon, (1 - delta) / (1 + math.exp(-epsilon)), 0.0, delta)

    @classmethod
    def of_release(cls, release: Release) -> LossLaw:
        """Return a law that dominates the loss of one report of a release."""
        mechanism = release.sent()[0]
        rates = mechanism.loss_rates
        if rates is None or mechanism.delta or not 0 < mechanism.epsilon < math.inf:
            return cls.of_any(mechanism.epsilon, mechanism.delta)
        return cls(mechanism.epsilon, rates[0], max(0.0, 1 - sum(rates)))

    def reach(self, step: float) -> int:
        """Return by how many cells a report raises or lowers the loss at most."""
        return math.ceil(self.epsilon / step)

    def atoms(self, step: float) -> dict[int, float]:
        """Return the finite losses on a grid: by number of cells, their probability."""
        atoms = {0: self.none}
        for loss, share in ((self.epsilon, self.gain), (-self.epsilon, self._rest)):
            low = math.floor(loss / step)
            # So divided, the probability given s stays, and the one given s', which is e^-loss of it.
            upper = share * math.expm1(step * low - loss) / math.expm1(-step)
            for cells, part in ((low, share - upper), (low + 1, upper)):
                atoms[cells] = atoms.get(cells, 0.0) + part
        return {cells: part for cells, part in atoms.items() if part > 0}

    @property
    def _rest(self) -> float:
        """The probability of the loss -epsilon."""
        return max(0.0, 1 - self.gain - self.none - self.lost)


@dataclass(frozen=True, eq=False)
class Losses:
    """Mixtures of summed losses; what leaks is at most the worst of them.

    Attributes:
        losses: (cells,) the positive losses on a grid.
        mass: (mixtures, cells) how likely each is.
        lost: (mixtures,) how likely an infinite one is.
        budget: what no sum of finite losses exceeds.
    """

    losses: Array
    mass: Array
    lost: Array
    budget: float

    @classmethod
    def of(cls, laws: Sequence[LossLaw], sets: Whole, mixtures: Sequence[Mixture], cells: int) -> Losses:
        """Add up the losses of each set of reports, and mix the sets.

        Args:
            laws: those that occur, each once.
            sets: (sets, laws) how many reports of each law a set has.
            mixtures: what is mixed.
            cells: how fine the grid is, where budgets differ.
        """
        most = sets.max(axis=0, initial=0)
        budget = math.fsum(law.epsilon * int(count) for law, count in zip(laws, most, strict=True))
        step = grid_step(laws, budget, cells)
        half = sum(law.reach(step) * int(count) for law, count in zip(laws, most, strict=True))
        kept = np.prod([(1 - law.lost) ** sets[:, column] for column, law in enumerate(laws)], axis=0)
        mass = np.empty((len(sets), half))
        block = max(1, _BLOCK // (2 * half + 1))
        for start in range(0, len(sets), block):
            mass[start : start + block] = _summed(laws, sets[start : start + block], step, half)
        losses = np.asarray(step * np.arange(1, half + 1), dtype=np.float64)
        weights = [np.bincount(which, shares, len(sets)) for which, shares in mixtures]
        mixed = [row @ mass for row in weights]
        lost = [row @ np.broadcast_to(1 - kept, len(sets)) for row in weights]
        return cls(losses, np.reshape(mixed, (len(mixtures), half)), np.asarray(lost), budget)

    def leakage(self, delta: float) -> float:
        """Return the least limit at which no mixture has more divergence than delta, rounded up."""
        if self.lost.max(initial=0.0) > delta:
            return math.inf
        if not delta:  # the rarest sums may have probabilities below what doubles hold
            return self.budget
        level, margin = 0.0, _MARGIN
        while len(excess := self.mass @ hockey_stick(self.losses, level) + self.lost):
            worst = int(excess.argmax())
            if excess[worst] <= delta or level >= self.budget:
                break
            losses, mass = np.append(self.losses, math.inf), np.append(self.mass[worst], self.lost[worst])
            # The crossing is exact but for rounding: step up, ever faster, until all mixtures agree.
            level = loss_epsilon(losses, mass, delta) * (1 + margin) + margin
            margin *= 2
        return min(level, self.budget)


def composed_losses(releases: Releases) -> Losses:
    """Return the losses of these releases together, for every belief."""
    laws, counts = law_counts(releases.values())
    everything = (np.zeros(1, dtype=np.intp), np.ones(1))
    return Losses.of(laws, counts.sum(axis=0, keepdims=True), [everything], _CELLS)


def law_counts(releases: Iterable[Release]) -> tuple[list[LossLaw], Whole]:
    """Return the laws that occur, and how many reports of each a release has, shape (releases, laws)."""
    seen = list(releases)
    most = _MOST_TIMES if sum(release.sent()[1] for release in seen) <= _MOST_REPORTS else 1
    reports = [_reports(release, most) for release in seen]
    laws = list(dict.fromkeys(law for law, _ in reports))
    counts = np.zeros((len(reports), len(laws)), dtype=np.int64)
    for row, (law, times) in enumerate(reports):
        counts[row, laws.index(law)] = times
    return laws, counts


def _reports(release: Release, most: int) -> tuple[LossLaw, int]:
    """Return the law of a release's reports and their number; too many count as one of their budget."""
    law = LossLaw.of_release(release)
    _, times = release.sent()
    if times <= most:
        return law, times
    return LossLaw.of_any(times * law.epsilon, min(times * law.lost, 1.0)), 1


def grid_step(laws: Sequence[LossLaw], budget: float, cells: int) -> float:
    """Return the width of a cell: the budget itself where all are equal, for then few cells are enough."""
    budgets = [law.epsilon for law in laws if law.epsilon > 0]
    # Budgets are realised in whole numbers of coins, so that equal ones may differ in the last digits.
    is_equal = not budgets or max(budgets) - min(budgets) < _EQUAL * max(budgets)
    return max(budgets, default=1.0) if is_equal or not budget else 2 * budget / cells


def _summed(laws: Sequence[LossLaw], sets: Whole, step: float, half: int) -> Array:
    """Return how likely each positive sum of finite losses is, shape (sets, half)."""
    mass = np.zeros((len(sets), 2 * half + 1))
    mass[:, half] = 1.0
    for column, law in enumerate(laws):
        for number in range(sets[:, column].max(initial=0)):
            rows = np.flatnonzero(sets[:, column] > number)
            before = mass[rows]
            after = np.zeros_like(before)
            for shift, share in law.atoms(step).items():
                width = before.shape[1] - abs(shift)
                after[:, max(shift, 0) :][:, :width] += share * before[:, max(-shift, 0) :][:, :width]
            mass[rows] = after
    return mass[:, half + 1 :]
