"""Labels behind subset selection: unbiased targets, and the way back from what is reported to what is true.

A report is a set of w of the labels, which holds the true one with probability p and any other with q. So
(held - q) / (p - q) has the true label's indicator as its mean: every loss that is linear in the indicator is
estimated without bias by putting it in its place (the backward correction of Natarajan et al. 2013 and of
Patrini et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Mask, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection


@dataclass(frozen=True, eq=False)
class PrivateTargets:
    """Everyone's report of a label: which labels its set holds, (people, labels), and how it was made."""

    selection: SubsetSelection
    held: Mask

    @classmethod
    def of(cls, selection: SubsetSelection, reports: Reports) -> PrivateTargets:
        """Read the reports; they are checked against the mechanism."""
        return cls(selection, selection.marked(reports))

    @classmethod
    def simulated(
        cls, labels: ArrayLike, classes: int, epsilon: float, *, seed: int | None = None
    ) -> PrivateTargets:
        """Randomise labels, codes below `classes`; the noise is secure without a seed."""
        selection = SubsetSelection(classes, epsilon)
        return cls.of(selection, selection.randomise(labels, seed=seed))

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, people: Mask) -> PrivateTargets:
        return PrivateTargets(self.selection, self.held[people])

    @property
    def gap(self) -> float:
        """How much likelier the true label is to be in the set, p - q: the signal of one report."""
        p, q = self.selection.mark_rates
        return float(p - q)

    @cached_property
    def unbiased(self) -> Array:
        """An unbiased estimate of everyone's label as an indicator, (people, labels); each row sums to 1."""
        return np.asarray((self.held - float(self.selection.mark_rates[1])) / self.gap)

    def posterior(self, prior: Array) -> Array:
        """Return Pr(label | report) for each person, given the probabilities before it, (people, labels)."""
        likely = np.where(self.held, float(self.selection.factor), 1.0) * prior
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def shares(self) -> Array:
        """Return the labels' frequencies as estimated, none of them 0: one report stands for each label."""
        if not len(self):
            raise InputError("there are no reports to learn from; collect some first.")
        raised = to_simplex(self.unbiased.mean(axis=0)) + 1 / len(self)
        return np.asarray(raised / raised.sum())


def restored(reported: Array, selection: SubsetSelection) -> Array:
    """Return the labels' probabilities from those of a reported label, one of the set by chance.

    The inverse of the channel may leave the simplex; the nearest distribution is returned.
    """
    p, q = selection.mark_rates
    return to_simplex((selection.width * reported - float(q)) / float(p - q))
