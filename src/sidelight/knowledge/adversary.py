"""Adversary: whose value is attacked and which values are known; Values: a figure for every adversary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array, Mask
from sidelight.foundation.errors import InputError, unknown

ADVERSARY_FIX = "Adversary(target, known) makes one."


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raise unless all given attributes exist."""
    for name in given:
        if name not in names:
            raise unknown("attribute", name, names)


@dataclass(frozen=True)
class Adversary:
    """Someone who attacks one attribute and knows the values of some others (PDP, section III-A).

    The strongest adversary knows all others, the weakest none.

    >>> Adversary("income", ("age",)).unknown(("age", "sex", "income"))
    ('sex',)
    """

    target: str
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.known
        if isinstance(given, str):
            raise InputError(f"`known` must be a list of attributes, got the text {given!r}.")
        object.__setattr__(self, "known", tuple(self.known))
        if self.target in self.known:
            raise InputError(
                f"the target {self.target!r} is among the known attributes; an adversary who knows it "
                "has nothing to learn, leave it out."
            )
        if len(set(self.known)) != len(self.known):
            twice = next(name for name in self.known if self.known.count(name) > 1)
            raise InputError(f"the known attribute {twice!r} is listed twice.")

    @classmethod
    def strongest(cls, target: str, names: Sequence[str]) -> Adversary:
        """Return the one who knows everything but the target."""
        return cls(target, tuple(name for name in names if name != target))

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all attributes exist."""
        check_names((self.target, *self.known), names)

    def unknown(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the attributes that are neither known nor attacked."""
        taken = {self.target, *self.known}
        return tuple(name for name in names if name not in taken)

    def place(self, names: Sequence[str]) -> tuple[int, int]:
        """Return the row and the column of `Values`: the target's number and the known attributes as bits."""
        self.check(names)
        return names.index(self.target), sum(1 << names.index(name) for name in self.known)

    def to_dict(self) -> dict[str, str | list[str]]:
        """Return target and known attributes as plain data."""
        return {"target": self.target, "known": list(self.known)}

    def __str__(self) -> str:
        return f"{self.target} knowing {', '.join(self.known) or 'nothing'}"


def adversary_of(names: Sequence[str], target: int, mask: int) -> Adversary:
    """Return the adversary whose known attributes are the bits of `mask`, the first attribute the lowest."""
    return Adversary(names[target], tuple(name for bit, name in enumerate(names) if mask >> bit & 1))


@dataclass(frozen=True, eq=False)
class Values:
    """A figure for every adversary on some attributes, (n, 2^n).

    Rows are targets, columns sets of known attributes (bit j stands for attribute j); NaN where there is no
    such adversary or it was not looked at.
    """

    names: tuple[str, ...]
    table: Array

    def of(self, adversary: Adversary) -> float:
        """Return the figure for one adversary."""
        return float(self.table[adversary.place(self.names)])

    def worst(self, known: int | None = None) -> tuple[Adversary, float]:
        """Return the adversary with the largest figure, of all or of those who know `known` attributes."""
        table = self.table if known is None else np.where(self._knows(known), self.table, np.nan)
        target, mask = divmod(int(np.nanargmax(table)), table.shape[1])
        return adversary_of(self.names, target, mask), float(table[target, mask])

    def layer(self, known: int) -> Array:
        """Return the figures of all adversaries who know `known` attributes."""
        chosen = self.table[:, self._knows(known)]
        return np.asarray(chosen[~np.isnan(chosen)])

    def of_targets(self, targets: Sequence[str]) -> Values:
        """Return the figures of those who attack one of the targets."""
        rows = np.array([name in targets for name in self.names])
        return Values(self.names, np.where(rows[:, None], self.table, np.nan))

    def _knows(self, known: int) -> Mask:
        return np.asarray(np.bitwise_count(np.arange(self.table.shape[1])) == known)


def check_targets(
    names: Sequence[str], targets: Sequence[str] | None, named: Sequence[Adversary] = ()
) -> tuple[str, ...]:
    """Return the attributes under attack, all by default; named adversaries must attack one of them."""
    if targets is not None and (isinstance(targets, str) or not len(targets)):
        raise InputError(f"`targets` must be a list of at least one attribute, got {targets!r}.")
    chosen = tuple(names if targets is None else targets)
    check_names(chosen, names)
    for adversary in named:
        adversary.check(names)
        if adversary.target not in chosen:
            raise InputError(
                f"the named adversary attacks {adversary.target!r}, which is not among the targets "
                f"{', '.join(chosen)}; add it to them."
            )
    return chosen
