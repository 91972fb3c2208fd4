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

from sidelight.foundation.arrays import Array, Positions, offsets

Likelihoods = Mapping[int, Array]
"""By the position of an attribute, (releases, values): Pr(report | value)."""

DOUBLE_REACH = 690.0
"""Products within e^690 of 1 keep all digits of doubles, which end at e^-708 and e^709."""
HALF_UNIT = 2.0**-53
"""The largest relative error of one operation on doubles."""


@dataclass(frozen=True, eq=False)
class Centred:
    """Likelihoods divided, report by report, by the middle of their range.

    Products of many of them then stay near 1 instead of leaving the range of floating point. The releases of
    a value stand side by side, so that every step is a vector operation.

    Attributes:
        lined: (values, releases), of one attribute below those of the other.
        places: the position of each attribute.
        at: the row at which the values of each attribute begin, and where the last ones end.
        shift: (releases, 1), the logarithm of what they were divided by.
        reach: how far from 0 the logarithm of any product of them can be, other than a product that is 0.
        has_zeros: whether a report is impossible for some value.
    """

    lined: Array
    places: tuple[int, ...]
    at: Positions
    shift: Array
    reach: float
    has_zeros: bool

    @cached_property
    def tables(self) -> Mapping[int, Array]:
        """By position, (values, releases)."""
        return {place: self.lined[a:b] for place, (a, b) in zip(self.places, pairwise(self.at), strict=True)}

    @property
    def magnitude(self) -> float:
        """How far from 0 the logarithm of a product of the original likelihoods can be."""
        return self.reach + float(np.abs(self.shift).max(initial=0.0))

    @cached_property
    def singles(self) -> NDArray[np.float32]:
        """All tables below each other in single precision, for compiled loops."""
        return self.lined.astype(np.float32)


def centre(likelihoods: Likelihoods) -> Centred:
    """Divide every report's likelihoods by the geometric mean of the largest and the least that is not 0."""
    releases = len(next(iter(likelihoods.values()))) if likelihoods else 1
    at = offsets([table.shape[1] for table in likelihoods.values()])
    lined = np.empty((at[-1], releases))
    for table, (a, b) in zip(likelihoods.values(), pairwise(at), strict=True):
        lined[a:b] = table.T
    return centre_lined(lined, tuple(likelihoods), at)


def centre_lined(lined: Array, places: tuple[int, ...], at: Positions) -> Centred:
    """Do as `centre` for likelihoods that are lined up, in place."""
    if not places:
        return Centred(lined, places, at, np.zeros((lined.shape[1], 1)), 0.0, has_zeros=False)
    spans = list(pairwise(at))
    # attribute by attribute: reductions of uneven parts at once would cost several times as much
    high = np.stack([lined[a:b].max(axis=0) for a, b in spans])
    low = np.stack([lined[a:b].min(axis=0) for a, b in spans])
    if has_zeros := not low.all():
        high[high == 0] = 1.0  # a report that no value allows: its products are 0 at any scale
        parts = zip(high, spans, strict=True)
        low = np.stack([np.where(lined[a:b] > 0, lined[a:b], top).min(axis=0) for top, (a, b) in parts])
    high, low = np.log(high), np.log(low)
    middle = np.maximum((low + high) / 2, -DOUBLE_REACH)  # what they are divided by must not overflow
    for factor, (a, b) in zip(np.exp(-middle), spans, strict=True):
        lined[a:b] *= factor
    reach = float(np.maximum(high - middle, middle - low).sum(axis=0).max(initial=0.0))
    return Centred(lined, places, at, middle.sum(axis=0)[:, None], reach, has_zeros)
