"""A belief seen from one secret: drawing people given its value, and how likely a release is for each value.

A release is given by its likelihoods: for each attribute that was reported the numbers Pr(report | value) for
every value, up to a factor for each report. What is returned is exact up to a stated rounding error and up to
a factor for each release, which no comparison of two values of the secret can see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import TooLargeError
from sidelight.schema import Schema

Array = NDArray[np.float64]
Codes = NDArray[np.uint16]
Likelihoods = Mapping[str, Array]
"""By attribute: (releases, values), the likelihood of each release's report for each value."""

_LARGEST_GROUP = 512
CHUNK = 64
"""So many products are added up before the kernel keeps their sum in double precision."""
_SINGLE_RANGE = 80.0
"""Products within e^-80 keep all digits in single precision, whose least number is e^-87."""
_DOUBLE_RANGE = 690.0


@dataclass(frozen=True, eq=False)
class SecretView(ABC):
    """What a belief says about one secret and a release.

    Attributes:
        schema: the attributes of a record.
        secret: the attribute that is secret.
    """

    schema: Schema
    secret: str

    @property
    @abstractmethod
    def prior(self) -> Array:
        """The probability of each value of the secret, shape (m,); values that cannot occur have 0."""

    @abstractmethod
    def draw(self, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records of people who have this value of the secret, shape (count, attributes)."""

    @abstractmethod
    def log_probabilities(self, likelihoods: Likelihoods) -> Array:
        """Return ln Pr(release | value) of each release and value, up to a number a release, shape (n, m).

        Values that cannot occur get NaN.
        """

    @abstractmethod
    def rounding(self, likelihoods: Likelihoods) -> float:
        """Return how far each of these logarithms may be from the truth, at most."""


@dataclass(frozen=True, eq=False)
class TableView(SecretView):
    """The table itself: someone who knows every record.

    Attributes:
        codes: (records, attributes).
        weights: (records,), positive.
        spread: the weight of further records, spread evenly over all combinations of values.
    """

    codes: Codes
    weights: Array
    spread: float = 0.0

    @cached_property
    def _masses(self) -> Array:
        """The weight of each value of the secret."""
        size = self.schema[self.secret].size
        own = np.bincount(self.codes[:, self.schema.index(self.secret)], self.weights, minlength=size)
        return np.asarray(own + self.spread / size)

    @property
    def prior(self) -> Array:
        """The probability of each value of the secret."""
        return np.asarray(self._masses / self._masses.sum())

    def draw(self, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records of people who have this value of the secret."""
        place = self.schema.index(self.secret)
        rows = np.flatnonzero(self.codes[:, place] == value)
        reach = np.append(np.cumsum(self.weights[rows]), self._masses[value])
        which = np.searchsorted(reach, rng.random(count) * self._masses[value], side="right")
        made = which >= len(rows)
        drawn = np.empty((count, len(self.schema)), dtype=np.uint16)
        drawn[~made] = self.codes[rows[which[~made]]]
        drawn[made] = rng.integers(0, self.schema.sizes, size=(np.count_nonzero(made), len(self.schema)))
        drawn[:, place] = value
        return drawn

    def log_probabilities(self, likelihoods: Likelihoods) -> Array:
        """Return ln Pr(release | value) of each release and value."""
        others = {name: scaled(table) for name, table in likelihoods.items() if name != self.secret}
        own = likelihoods.get(self.secret)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.log_sums(others) - np.log(self._masses)
            return np.asarray(logs if own is None else logs + np.log(own))

    def log_sums(self, likelihoods: Likelihoods) -> Array:
        """Return ln of the weighted sum of likelihoods over the records of each value, shape (n, m)."""
        sums = self._mixed(likelihoods)
        if self.spread:
            # evenly spread records: each report by itself, the same for every value of the secret
            even = np.prod([table.mean(axis=1) for table in likelihoods.values()], axis=0)
            sums += self.spread / sums.shape[1] * np.reshape(even, (-1, 1))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(sums))

    def rounding(self, likelihoods: Likelihoods) -> float:
        """Return a bound: each product and each sum of a chunk rounds by at most half a unit a step."""
        others = [table for name, table in likelihoods.items() if name != self.secret]
        steps = 2 * len(others) + CHUNK + 8
        return steps * float(np.finfo(self._digits([scaled(table) for table in others])).eps)

    def _digits(self, tables: Sequence[Array]) -> type[np.floating[Any]]:
        """Return the precision in which no product of likelihoods and weights loses digits."""
        with np.errstate(divide="ignore"):
            logs = [
                np.abs(np.log(table, where=table > 0, out=np.zeros_like(table))).max() for table in tables
            ]
        reach = float(np.sum(logs)) + float(np.log(self.weights.max() / self.weights.min()))
        if reach > _DOUBLE_RANGE:
            raise TooLargeError(
                f"a release of {len(tables)} attributes spends so much that its probabilities leave the "
                "range of doubles; release fewer attributes, or smaller budgets."
            )
        return np.float32 if reach <= _SINGLE_RANGE else np.float64

    def _mixed(self, likelihoods: Likelihoods) -> Array:
        """Return the weighted sum of products of likelihoods over the records of each value, (n, m)."""
        from sidelight.belief.kernels import mix_records

        if not likelihoods:
            return (self._masses - self.spread / len(self._masses))[None, :].copy()
        digits = self._digits(list(likelihoods.values()))
        grouped = self._grouped(tuple(likelihoods))
        ones = np.ones((len(next(iter(likelihoods.values()))), 1))
        lined = np.concatenate([*likelihoods.values(), ones], axis=1, dtype=digits)
        least = self.weights.min()
        out = np.empty((len(lined), len(self._masses)))
        mix_records(
            lined, grouped.members, grouped.codes, grouped.weights.astype(digits), grouped.starts, out
        )
        return np.asarray(out * least)

    def _grouped(self, names: tuple[str, ...]) -> _Grouped:
        """Return the records laid out for the kernel; kept, since every batch of releases asks again."""
        if names not in self._layouts:
            self._layouts[names] = _lay_out(self, names)
        return self._layouts[names]

    @cached_property
    def _layouts(self) -> dict[tuple[str, ...], _Grouped]:
        return {}


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Records of some attributes as `mix_records` takes them."""

    members: NDArray[np.int32]
    codes: NDArray[np.int32]
    weights: Array
    starts: NDArray[np.int64]


def scaled(table: Array) -> Array:
    """Return likelihoods divided, release by release, by the middle of their range.

    Products of many then stay near 1 instead of falling out of the range of floating point.
    """
    low = np.where(table > 0, table, np.inf).min(axis=1, keepdims=True)
    return np.asarray(table / np.sqrt(table.max(axis=1, keepdims=True) * low))


def _lay_out(view: TableView, names: tuple[str, ...]) -> _Grouped:
    columns = [view.schema.index(name) for name in names]
    secret = view.codes[:, view.schema.index(view.secret)]
    order = np.lexsort((*view.codes[:, columns].T, secret))
    codes = view.codes[order][:, columns].astype(np.int64)
    secret = secret[order]
    fresh = np.append(True, (np.diff(codes, axis=0) != 0).any(axis=1) | (np.diff(secret) != 0))
    firsts = np.flatnonzero(fresh)
    weights = np.add.reduceat(view.weights[order], firsts) / view.weights.min()
    starts = np.searchsorted(secret[firsts], np.arange(len(view._masses) + 1))
    offsets = np.concatenate([[0], np.cumsum([view.schema.sizes[column] for column in columns])])
    groups = _groups(codes[firsts])
    width = max(len(group) for group, _ in groups)
    members, rows, base = [], [], 0
    for group, combination in groups:
        _, at = np.unique(combination, return_index=True)
        table = np.full((len(at), width), -1, dtype=np.int32)
        table[:, : len(group)] = codes[firsts][at][:, group] + offsets[group]
        members.append(table)
        rows.append(combination + base)
        base += len(at)
    if len(groups) % 2:  # the kernel takes groups by two: one whose only product is 1
        members.append(np.full((1, width), -1, dtype=np.int32))
        members[-1][0, 0] = offsets[-1]
        rows.append(np.full(len(firsts), base))
    return _Grouped(
        np.concatenate(members), np.stack(rows, axis=1).astype(np.int32), weights, starts.astype(np.int64)
    )


def _groups(codes: NDArray[np.int64]) -> list[tuple[list[int], NDArray[np.int64]]]:
    """Divide the columns greedily into groups with few distinct combinations, and number these."""
    left = sorted(range(codes.shape[1]), key=lambda column: -int(codes[:, column].max()))
    groups = []
    while left:
        members = [left.pop(0)]
        _, combination = np.unique(codes[:, members[0]], return_inverse=True)
        for column in list(left):
            both = combination * (int(codes[:, column].max()) + 1) + codes[:, column]
            distinct, numbers = np.unique(both, return_inverse=True)
            if len(distinct) <= _LARGEST_GROUP:
                members.append(column)
                left.remove(column)
                combination = numbers
        groups.append((members, combination))
    return groups
