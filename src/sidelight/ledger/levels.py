"""Levels of privacy that people choose themselves, and what a published level says.

A level is fixed before there is a value to choose it by; a ledger keeps it in its first line. If a level
depends on the value and is published, it is a report of its own: a level l adds ln max Pr(l|x) / Pr(l|x').
Such a level is better planned, and audited, as an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_number, invalid, unknown
from sidelight.foundation.strict import FrozenMapping

_EQUAL = 1e-9


class Levels(FrozenMapping[float]):
    """The budgets of the levels that a task offers, by name.

    >>> Levels({"careful": 0.5, "open": 2.0}).budget("careful")
    0.5
    """

    def __init__(self, items: Mapping[str, float]) -> None:
        """Take a positive budget for each level."""
        if not items:
            raise invalid("items", "at least one level with its budget", dict(items))
        super().__init__({name: check_number(name, budget, above=0) for name, budget in items.items()})

    def budget(self, level: str | None) -> float:
        """Return the budget of the level that a person chose."""
        if level is None:
            raise InputError("no level was chosen; choose one when the ledger is made, before any value.")
        if level not in self:
            raise unknown("level", level, self)
        return self[level]

    def leakage(self, shares: ArrayLike | None = None) -> dict[str, float]:
        """Return what a person of each level reveals with one report and the published level.

        Args:
            shares: Pr(level | value), shape (values, levels); by default levels do not depend on the value.
        """
        added = np.zeros(len(self)) if shares is None else published_cost(shares)
        if len(added) != len(self):
            raise invalid("shares", f"a column for each of {len(self)} levels", f"{len(added)} columns")
        return {name: self[name] + float(cost) for name, cost in zip(self, added, strict=True)}


def published_cost(shares: ArrayLike) -> Array:
    """Return what publishing each level adds to the leakage: ln max Pr(l|x) / Pr(l|x'), shape (levels,).

    Infinite where only some values choose a level; a level that nobody chooses adds nothing.

    >>> published_cost([[0.2, 0.8], [0.05, 0.95]]).round(4)
    array([1.3863, 0.1719])
    """
    table = np.asarray(shares, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.all((table >= 0) & (table <= 1)):
        raise invalid("shares", "Pr(level | value), of shape (values, levels)", table.shape)
    if np.any(np.abs(table.sum(axis=1) - 1) > _EQUAL):
        raise invalid("shares", "a row for each value that adds up to 1", table.sum(axis=1).tolist())
    most, least = table.max(axis=0), table.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(most > 0, np.log(most / least), 0.0)
