"""Numbers: records of real numbers on a common scale, for attacks that reconstruct a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import InputError, check_whole, invalid, unknown

Array = NDArray[np.float64]
_WIDE = 20.0
_FEW_ENTITIES = 20


@dataclass(frozen=True, eq=False)
class Numbers:
    """Records of numbers, each attribute scaled to 0..1 between its bounds.

    Attributes:
        names: the attributes.
        values: (n, attributes) between 0 and 1.
        lower: (attributes,) the number that became 0, after the logarithm where there is one.
        upper: (attributes,) the number that became 1.
        logarithmic: which attributes were replaced by ln(1 + x) first.
        entities: (n,) whose record it is, a person, a vehicle or a company; None where each is its own.
        blocks: (n,) records that are so near to each other that whoever owns one of them knows the others; by
            default those of an entity, where there are at least 20.
        dropped: how many records were left out because a number is missing.
    """

    names: tuple[str, ...]
    values: Array
    lower: Array
    upper: Array
    logarithmic: tuple[bool, ...]
    entities: NDArray[np.intp] | None = None
    blocks: NDArray[np.intp] | None = None
    dropped: int = 0

    @classmethod
    def of(
        cls,
        columns: Mapping[str, ArrayLike],
        *,
        entities: ArrayLike | None = None,
        blocks: ArrayLike | None = None,
        logarithmic: Sequence[str] | None = None,
        trim: float = 0.0,
    ) -> Numbers:
        """Scale columns of numbers; records with a missing number are left out.

        Args:
            columns: the numbers of each attribute.
            entities: whose record each is.
            blocks: which records stay together when they are shared out.
            logarithmic: the attributes to take logarithms of, which must not be negative; by default those
                whose largest number is far above the typical one.
            trim: this share of the numbers at either end lies outside the bounds and is moved to them.

        >>> Numbers.of({"a": [0.0, 5.0, 10.0, 5.0], "b": [1.0, 2.0, 3.0, 4.0]}).values[:, 0]
        array([0. , 0.5, 1. , 0.5])
        """
        raw, kept = _complete(columns)
        whose = _labelled("entities", entities, kept)
        near = _labelled("blocks", blocks, kept)
        if near is None and whose is not None and whose.max() + 1 >= _FEW_ENTITIES:
            near = whose
        names = tuple(columns)
        logs = tuple(
            _is_wide(raw[:, i]) if logarithmic is None else name in logarithmic
            for i, name in enumerate(names)
        )
        for name in logarithmic or ():
            if name not in names:
                raise unknown("column", name, names)
        for i, name in enumerate(names):
            if logs[i]:
                if raw[:, i].min() < 0:
                    raise InputError(f"column {name!r} has negative numbers; it has no logarithmic scale.")
                raw[:, i] = np.log1p(raw[:, i])
        lower, upper = np.quantile(raw, [trim, 1 - trim], axis=0)
        for name, low, high in zip(names, lower, upper, strict=True):
            if high <= low:
                raise InputError(f"column {name!r} is constant between its bounds; leave it out.")
        values = np.clip((raw - lower) / (upper - lower), 0.0, 1.0)
        return cls(names, values, lower, upper, logs, whose, near, int((~kept).sum()))

    def __len__(self) -> int:
        return len(self.values)

    def index(self, name: str) -> int:
        """Return the position of an attribute."""
        if name not in self.names:
            raise unknown("attribute", name, self.names)
        return self.names.index(name)

    def columns(self, names: Sequence[str]) -> Array:
        """Return the values of the named attributes, shape (n, names)."""
        return self.values[:, [self.index(name) for name in names]]

    def rows(self, chosen: NDArray[Any]) -> Numbers:
        """Return some of the records."""
        entities, blocks = (
            None if labels is None else labels[chosen] for labels in (self.entities, self.blocks)
        )
        return replace(self, values=self.values[chosen], entities=entities, blocks=blocks)

    def halves(self, seed: int) -> tuple[Numbers, Numbers]:
        """Shuffle the records and give one half to the attacker, the other to the owner."""
        check_whole("seed", seed, at_least=0)
        return self.divided(len(self) // 2, np.random.default_rng(seed))

    def divided(self, count: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Return about `count` of the records, drawn at random, and the others; no block is cut."""
        if self.blocks is None:
            order = rng.permutation(len(self))
            return self.rows(order[:count]), self.rows(order[count:])
        sizes = np.bincount(self.blocks)
        present = rng.permutation(np.flatnonzero(sizes))
        place = np.empty(len(sizes), dtype=np.intp)
        place[present] = np.arange(len(present))
        ends = np.cumsum(sizes[present])
        cut = int(np.clip(np.abs(ends - count).argmin(), 0, max(len(present) - 2, 0)))
        mine = place[self.blocks] <= cut
        return self.rows(np.flatnonzero(mine)), self.rows(np.flatnonzero(~mine))


def _complete(columns: Mapping[str, ArrayLike]) -> tuple[Array, NDArray[np.bool_]]:
    """Return the records that have all numbers, and which they are."""
    if len(columns) < 2:
        raise invalid("columns", "at least two attributes", list(columns))
    arrays = [np.asarray(column, dtype=np.float64) for column in columns.values()]
    if len({len(array) for array in arrays}) > 1 or any(array.ndim != 1 for array in arrays):
        raise InputError("all columns of numbers must have the same length.")
    raw = np.stack(arrays, axis=1)
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(raw).all(axis=1))
    if whole.sum() < 4:
        raise InputError(f"{int(whole.sum())} records have all numbers; at least four are needed.")
    return raw[whole], whole


def _labelled(name: str, labels: ArrayLike | None, kept: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """Return the labels of the kept records as whole numbers from 0."""
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.shape != kept.shape:
        raise invalid(name, f"one label for each of {len(kept)} records", given.shape)
    return np.unique(given[kept], return_inverse=True)[1].reshape(-1)


def _is_wide(column: Array) -> bool:
    """Whether a column of numbers from 0 up has a largest one far above the median of those above 0."""
    above = column[column > 0]
    return bool(column.min() >= 0 and len(above) and column.max() > _WIDE * np.median(above))
