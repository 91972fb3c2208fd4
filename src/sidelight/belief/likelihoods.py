"""Likelihoods of releases: how probable each release's report is for every value of an attribute.

They come up to a factor for each report, which no comparison of two values of a secret can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, offsets

Likelihoods = Mapping[int, Array]
"""By the position of an attribute, (releases, values): Pr(report | value)."""

DOUBLE_REACH = 690.0
"""Products within e^690 of 1 keep all digits of doubles, which end at e^-708 and e^709."""
HALF_UNIT = 2.0**-53
"""The largest relative error of one operation on doubles."""


@dataclass(frozen=True, eq=False)
class Centred:
    """Likelihoods divided, report by report, by the middle of their range.

    Products of many of them then stay near 1 instead of leaving the range of floating point.

    Attributes:
        tables: by position, (releases, values).
        shift: (releases, 1), the logarithm of what they were divided by.
        reach: how far from 0 the logarithm of any product of them can be, other than a product that is 0.
        has_zeros: whether a report is impossible for some value.
    """

    tables: Likelihoods
    shift: Array
    reach: float
    has_zeros: bool

    @property
    def magnitude(self) -> float:
        """How far from 0 the logarithm of a product of the original likelihoods can be."""
        return self.reach + float(np.abs(self.shift).max(initial=0.0))

    @cached_property
    def singles(self) -> NDArray[np.float32]:
        """All tables below each other in single precision, (values, releases), for compiled loops."""
        return np.concatenate([table.T for table in self.tables.values()], dtype=np.float32)


def centre(likelihoods: Likelihoods) -> Centred:
    """Divide every report's likelihoods by the geometric mean of the largest and the least that is not 0."""
    if not likelihoods:
        return Centred({}, np.zeros((1, 1)), 0.0, has_zeros=False)
    # all attributes in one line: reductions over a few values at a time would cost more than all else
    lined = np.concatenate(list(likelihoods.values()), axis=1, dtype=np.float64)
    at = offsets([table.shape[1] for table in likelihoods.values()])
    high, low = np.maximum.reduceat(lined, at[:-1], axis=1), np.minimum.reduceat(lined, at[:-1], axis=1)
    if has_zeros := not low.all():
        high[high == 0] = 1.0  # a report that no value allows: its products are 0 at any scale
        top = np.repeat(high, np.diff(at), axis=1)
        low = np.minimum.reduceat(np.where(lined > 0, lined, top), at[:-1], axis=1)
    high, low = np.log(high), np.log(low)
    middle = np.maximum((low + high) / 2, -DOUBLE_REACH)  # what they are divided by must not overflow
    lined *= np.repeat(np.exp(-middle), np.diff(at), axis=1)
    tables = {place: lined[:, a:b] for place, (a, b) in zip(likelihoods, pairwise(at), strict=True)}
    reach = float(np.maximum(high - middle, middle - low).sum(axis=1).max(initial=0.0))
    return Centred(tables, middle.sum(axis=1, keepdims=True), reach, has_zeros)
