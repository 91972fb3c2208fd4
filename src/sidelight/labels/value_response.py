"""Only the attribute is secret: its value through subset selection, the label as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.bits import code_counts
from sidelight.foundation.errors import InputError
from sidelight.labels.responses import LabelResponse, Shown, check_labelled
from sidelight.leakage.bounds import Bound
from sidelight.mechanisms.mechanism import Aggregate, check_codes, check_estimable, check_reports
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection


@dataclass(frozen=True)
class ValueOnlyResponse(LabelResponse):
    """The label as it is, the value through subset selection at the whole budget.

    A report is the label's code followed by a set of values. The budget is the value's; the label is public,
    so nothing is promised about it.
    """

    name: ClassVar[str] = "valuedp"
    shows: ClassVar[Shown] = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values < 2:
            raise InputError("an attribute with one value has nothing to hide; leave it out.")

    @cached_property
    def mechanism(self) -> SubsetSelection:
        """The subset selection over values."""
        return SubsetSelection(self.values, self.budget)

    @property
    def label_epsilon(self) -> float:
        """Infinite: the label is public."""
        return math.inf

    @property
    def value_epsilon(self) -> float:
        """What a report says about the value at most: the realised budget."""
        return self.mechanism.epsilon

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return the label and a sorted set of values for each person."""
        codes, marks = check_labelled(values, labels, (self.values, self.labels))
        sets = self.mechanism.randomise(codes, seed=seed, offset=offset)
        rows = np.concatenate([marks[:, None].astype(np.uint16), sets.values], axis=1)
        return Reports(rows, is_simulation=sets.is_simulation)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value is in a set together with each label."""
        rows = check_reports(reports, "ui", self.mechanism.width + 1)
        marks = check_codes(np.ascontiguousarray(rows[:, 0]), self.labels, "reports")
        sets = self.mechanism.check(Reports(rows[:, 1:]))
        pairs = (sets.astype(np.int64) * self.labels + marks.astype(np.int64)[:, None]).reshape(-1)
        return Aggregate(len(rows), code_counts(pairs.astype(np.uint16), self.values * self.labels))

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate, shape (values, labels): the value inverted within each label."""
        check_estimable(aggregate, self.values * self.labels, self.name)
        counts = aggregate.sums.reshape(self.values, self.labels) / aggregate.reports
        share = counts.sum(axis=0, keepdims=True) / self.mechanism.width  # every report names so many values
        p, q = self.mechanism.mark_rates
        return np.asarray((counts - float(q) * share) / float(p - q))

    def cell_variance(self, marginal: Array, prior: Array) -> Array:
        """See `LabelResponse`; the value is noisy among those who have a label."""
        return np.asarray(self._mark_variance(marginal)[:, None] * prior)

    def leakage(self, conditionals: ArrayLike) -> Bound:  # noqa: ARG002 - whatever the belief
        """Return what a report says about the label: all of it."""
        return Bound(math.inf, "exact", "the label is public")

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:  # noqa: ARG002
        """See `LabelResponse`; only the label that is shown is possible."""
        return np.asarray(np.eye(self.labels)[reports.values[:, 0].astype(np.int64)])

    def shown_labels(self, reports: Reports) -> Whole:
        """Return the label itself."""
        return reports.values[:, 0].astype(np.int64)
