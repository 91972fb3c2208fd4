"""From columns to attributes: which values there are, how numbers are binned, what is set aside."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Literal, get_args

from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, unknown
from sidelight.foundation.progress import track
from sidelight.schema import MISSING, OTHER, Attribute, Kind, Missing, Schema, bin_labels
from sidelight.sources.source import Source
from sidelight.sources.sql import is_temporal

Binning = Literal["quantile", "width"]

_TEXT = ("BOOLEAN", "VARCHAR", "ENUM", "UUID")
_INTEGER = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_REAL = ("FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class Coding:
    """How columns become attributes.

    Attributes:
        bins: how many bins a number gets, before values that many records share get theirs.
        binning: "quantile" (equally full bins) or "width" (equally wide ones).
        edges: the inner edges of the bins, for the named columns.
        values: the alphabet in order, for the named columns; what is not listed becomes "(other)".
        kinds: the kind, for the named columns.
        max_values: above so many values the rarest are folded into "(other)".
        few: a column of numbers with at most so many distinct values is categorical.
        missing: whether a missing value is a value of its own or drops its record.
    """

    bins: int = 10
    binning: Binning = "quantile"
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    max_values: int = 50
    few: int = 20
    missing: Missing = "value"

    def __post_init__(self) -> None:
        check_whole("bins", self.bins, at_least=2, at_most=10_000)
        check_choice("binning", self.binning, get_args(Binning))
        check_whole("max_values", self.max_values, at_least=2, at_most=65_000)
        check_whole("few", self.few, at_least=0)
        check_choice("missing", self.missing, ("value", "drop"))
        for name, kind in self.kinds.items():
            check_choice(f"kind of {name}", kind, get_args(Kind))

    @property
    def named(self) -> set[str]:
        """The columns that a rule names."""
        return {*self.edges, *self.values, *self.kinds}


@dataclass(frozen=True)
class SetAside:
    """A column that is no attribute, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class _Profile:
    """What one scan tells about a column."""

    column: str
    type: str
    rows: int
    present: int
    distinct: int

    @property
    def is_number(self) -> bool:
        return self.type.lstrip("U").startswith(_INTEGER + _REAL)

    @property
    def is_real(self) -> bool:
        return self.type.startswith(_REAL)

    @property
    def is_temporal(self) -> bool:
        return is_temporal(self.type)

    @property
    def is_supported(self) -> bool:
        scalar = "[" not in self.type and "(" not in self.type
        return scalar and (self.is_number or self.is_temporal or self.type.startswith(_TEXT))


def infer(
    source: Source, columns: Sequence[str], named: set[str], coding: Coding
) -> tuple[Schema, int, tuple[SetAside, ...]]:
    """Return the schema of `columns`, the number of records, and the columns that were set aside.

    A constant, all-missing, identifying or unsupported column is an error if it is `named`.
    """
    profiles, rows = _profile(source, columns)
    if rows < 2:
        raise InputError(f"{source.label} has {rows} row{'s' * (rows != 1)}; it needs at least two.")
    foreseen = [profile for profile in profiles if profile.is_supported and profile.present]
    source.foresee([item.column for item in foreseen if _is_binned(item, coding)], coding.bins)
    attributes, aside = [], []
    for profile in track(profiles, "reading columns"):
        attribute, reason = _attribute(source, profile, coding)
        if attribute is not None:
            attributes.append(attribute)
        elif profile.column in named:
            raise InputError(f"column {profile.column!r} of {source.label} {reason}; leave it out.")
        else:
            aside.append(SetAside(profile.column, reason))
    return Schema(tuple(attributes)), rows, tuple(aside)


def _profile(source: Source, columns: Sequence[str]) -> tuple[list[_Profile], int]:
    types = source.columns
    rows, figures = source.profile(columns)
    found = zip(columns, figures, strict=True)
    return [_Profile(column, types[column], rows, *figure) for column, figure in found], rows


def _attribute(source: Source, profile: _Profile, coding: Coding) -> tuple[Attribute | None, str]:
    """Return the column's attribute, or None and the reason."""
    column = profile.column
    if not profile.is_supported:
        return None, f"has the type {profile.type}, which cannot be an attribute"
    if profile.present == 0:
        return None, "has no value at all"
    if column not in coding.named and _is_identifier(source, profile):
        return None, "identifies its records (every value occurs once)"
    binned = _is_binned(profile, coding)
    if binned:
        return _numeric(source, profile, coding)
    most = max(coding.max_values, coding.few, len(coding.values.get(column, ())))
    found = _frequent_values(source, profile, most)
    if binned is None and len(found) > coding.few:
        return _numeric(source, profile, coding)
    return _listed(source, profile, coding, found)


def _is_identifier(source: Source, profile: _Profile) -> bool:
    if profile.is_real or profile.is_temporal or profile.distinct < 0.8 * profile.present:
        return False
    if profile.present <= 20:
        return False
    return source.distinct(profile.column) == profile.present


def _is_binned(profile: _Profile, coding: Coding) -> bool | None:
    """Whether a column becomes numeric; None if it depends on how many values it really has."""
    column = profile.column
    wanted = coding.kinds.get(column)
    if column in coding.edges or wanted == "numeric":
        if not (profile.is_number or profile.is_temporal):
            raise InputError(f"column {column!r} is {profile.type}, not a number; it cannot be binned.")
        return True
    if wanted is not None or column in coding.values:
        return False
    if not profile.is_number:
        return profile.is_temporal
    return True if profile.distinct > 2 * coding.few + 5 else None


def _missing(profile: _Profile, coding: Coding) -> Missing:
    return coding.missing if profile.present < profile.rows else "absent"


def _listed(
    source: Source, profile: _Profile, coding: Coding, found: Sequence[str]
) -> tuple[Attribute | None, str]:
    column = profile.column
    missing = _missing(profile, coding)
    tail = (MISSING,) if missing == "value" else ()
    wanted = tuple(str(value) for value in coding.values.get(column, ()))
    if column in coding.values:
        listed, is_complete = wanted, set(found) <= set(wanted)
        if len(set(found) & set(wanted)) + (not is_complete) + (missing == "value") < 2:
            raise InputError(
                f"column {column!r} of {source.label}: the listed values leave one occupied value; "
                "list the values as they are in the data."
            )
    else:
        is_complete = len(found) <= coding.max_values
        listed = _in_order(found if is_complete else found[: coding.max_values - 1], profile)
    if len(found) < 2 and missing != "value":
        return None, "is constant"
    kind = coding.kinds.get(column, "ordinal" if column in coding.values else "categorical")
    return Attribute(column, kind, listed + (() if is_complete else (OTHER,)) + tail, missing=missing), ""


def _frequent_values(source: Source, profile: _Profile, most: int) -> list[str]:
    """Return the most frequent labels, one more than `most` if there are more."""
    labels = source.frequent(profile.column, most + 1)
    for reserved in (OTHER, MISSING):
        if reserved in labels:
            raise InputError(
                f"column {profile.column!r} of {source.label} has the value {reserved!r}, which stands for "
                "folded or missing values here; rename it in the data."
            )
    return labels


def _in_order(labels: Sequence[str], profile: _Profile) -> tuple[str, ...]:
    return tuple(sorted(labels, key=Decimal) if profile.is_number else sorted(labels))


def _numeric(source: Source, profile: _Profile, coding: Coding) -> tuple[Attribute | None, str]:
    source.foresee([profile.column], coding.bins)
    low, high = source.ends(profile.column)
    missing = _missing(profile, coding)
    if low is None or high is None:
        return None, "has no finite number"
    if low == high and profile.distinct > 2:
        return None, "has numbers too large to tell apart as doubles"
    if low == high and missing != "value":
        return None, "is constant"
    edges = _edges(source, profile.column, coding, (low, high))
    labels = bin_labels(edges) + ((MISSING,) if missing == "value" else ())
    attribute = Attribute(profile.column, "numeric", labels, edges, missing)
    if missing != "value" and len({bisect_right(edges, end) for end in source.reach(profile.column)}) < 2:
        raise InputError(
            f"column {profile.column!r} of {source.label}: the binning leaves one occupied bin; "
            "give other edges, more bins, or binning='quantile'."
        )
    return attribute, ""


def _edges(source: Source, column: str, coding: Coding, ends: tuple[float, float]) -> tuple[float, ...]:
    """Return the inner edges of a column's bins by the rule that applies to it."""
    low, high = ends
    if column in coding.edges:
        return tuple(check_number(f"edges of {column}", edge) for edge in coding.edges[column])
    if coding.binning == "quantile":
        return _quantile_edges(source, column, low)
    edges = tuple(low + (high / coding.bins - low / coding.bins) * i for i in range(1, coding.bins))
    if any(a >= b for a, b in pairwise((low, *edges, high))):
        raise InputError(
            f"column {column!r} of {source.label} cannot be cut into {coding.bins} bins of equal width; "
            "give its edges, or use binning='quantile'."
        )
    return edges


def _quantile_edges(source: Source, column: str, low: float) -> tuple[float, ...]:
    """Return the edges of equally full bins, with a bin of its own for every value that fills one.

    A plain quantile rule would put such a value into one bin with its neighbours and so erase what it
    leaks: nine in ten records of a census table have a capital gain of 0.
    """
    masses = source.masses(column)
    edges = {*source.quantiles(column), *masses}
    for mass in masses:
        following = source.following(column, mass)
        if following is not None and following not in edges:
            edges.add(math.nextafter(mass, math.inf))
    return tuple(sorted(edges - {float(low)}))


def check_names(source: Source, names: Sequence[str]) -> None:
    """Raise if a name is no column of the source."""
    for name in names:
        if name not in source.columns:
            error = unknown("column", name, source.columns)
            raise InputError(f"{source.label}: {error}")


def check_varied(source: Source, names: Sequence[str]) -> None:
    """Raise if a named column has fewer than two values, missing ones counted."""
    for name in names:
        rows, ((values, _),) = source.profile([name])
        if source.distinct(name) + (values < rows) < 2:
            raise InputError(f"column {name!r} of {source.label} is constant; leave it out.")
