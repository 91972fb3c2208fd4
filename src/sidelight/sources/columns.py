"""Column and Coding: what is stated about columns; SetAside and Guess: what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from sidelight.foundation.calendar import Unit
from sidelight.foundation.errors import check_choice, check_whole
from sidelight.schema import BINNED, MISSING, Attribute, Kind, Missing, binned

Binning = Literal["quantile", "width"]
Unused = Literal["identifier", "ignored"]
UNUSED: tuple[Unused, ...] = get_args(Unused)
"""What may be stated instead of a kind: the column is no attribute."""


@dataclass(frozen=True)
class Column:
    """What is stated about a column; None, or nothing, where it is to be inferred."""

    kind: Kind | Unused | None = None  # of its attribute; "identifier" or "ignored" where it is to be none
    values: tuple[str, ...] | None = None  # its alphabet in order; "(other)" at the end takes in the rest
    edges: tuple[float | str, ...] | None = None  # of its bins, the inner ones; dates may be written as such
    bins: int | None = None  # how many it gets
    by: Unit | None = None  # for dates and times: a bin for each "year", "quarter", "month", "day", ...
    missing: Missing | None = None  # what is missing is a value of its own, drops its record, or may not be
    description: str = ""  # what it means, in words

    @property
    def is_shaped(self) -> bool:
        """Whether anything is stated about the attribute it becomes."""
        return any(part is not None for part in (self.kind, self.values, self.edges, self.bins, self.by))

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute if all of it is stated."""
        if self.missing is None or self.kind is None or self.kind in UNUSED:
            return None
        if self.kind in BINNED:
            return None if self.edges is None else binned(name, self.kind, self.edges, self.missing)
        if self.values is None:
            return None
        tail = (MISSING,) if self.missing == "value" else ()
        return Attribute(name, self.kind, self.values + tail, missing=self.missing)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Coding:
    """How columns become attributes: the options of `ReadOptions` of these names, and `columns`.

    The latter are what a data dictionary states; `kinds`, `edges` and `values` come before it.
    """

    bins: int = 10
    binning: Binning = "quantile"
    edges: Mapping[str, Sequence[float | str]] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kinds: Mapping[str, Kind | Unused] = field(default_factory=dict)
    max_values: int = 50
    few: int = 20
    missing: Missing = "value"
    columns: Mapping[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("bins", self.bins, at_least=2, at_most=10_000)
        check_choice("binning", self.binning, get_args(Binning))
        check_whole("max_values", self.max_values, at_least=2, at_most=65_000)
        check_whole("few", self.few, at_least=0)
        check_choice("missing", self.missing, ("value", "drop"))
        for name, kind in self.kinds.items():
            check_choice(f"kind of {name}", kind, (*get_args(Kind), *UNUSED))

    @property
    def named(self) -> set[str]:
        """The columns that a rule names, to be attributes."""
        named = {*self.edges, *self.values, *self.kinds}
        return {name for name in named if self.kinds.get(name) not in UNUSED}

    def column(self, name: str) -> Column:
        """Return what is stated about a column; another kind voids the values and edges of the dictionary."""
        stated = self.columns.get(name, Column())
        kind = self.kinds.get(name, stated.kind)
        if kind != stated.kind and stated.kind is not None:
            stated = Column(missing=stated.missing, description=stated.description)
        if name in self.values:
            stated = replace(stated, values=tuple(str(value) for value in self.values[name]))
        if name in self.edges:
            stated = replace(stated, edges=tuple(self.edges[name]))
        return replace(stated, kind=kind)

    def unused(self, names: Sequence[str]) -> dict[str, SetAside]:
        """Return those of the columns that are stated to be no attributes."""
        kinds = {name: self.column(name).kind for name in names}
        words = {"identifier": "is stated to be an identifier", "ignored": "is stated to be ignored"}
        return {
            name: SetAside(name, words[kind], kind=kind)
            for name, kind in kinds.items()
            if kind == "identifier" or kind == "ignored"
        }


@dataclass(frozen=True)
class SetAside:
    """A column that is no attribute, why, how to change that where it was a guess, and as what it is kept."""

    column: str
    reason: str
    remedy: str = ""
    kind: Unused = "ignored"


@dataclass(frozen=True)
class Guess:
    """What was guessed about a column, and what to state where the guess is wrong."""

    column: str
    reason: str
    remedy: str
