"""From columns to attributes: which values there are, how numbers are binned, what is set aside.

What is stated about a column is kept; the rest is inferred, and what may well be wrong is said to be a guess.
"""

from __future__ import annotations

import math
import shlex
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Literal, get_args

from sidelight.foundation.calendar import Unit, starts_between
from sidelight.foundation.errors import InputError, check_choice, check_whole, unknown
from sidelight.foundation.progress import track
from sidelight.schema import (
    BINNED,
    LARGEST_ALPHABET,
    MISSING,
    OTHER,
    Attribute,
    Kind,
    Missing,
    Schema,
    bin_labels,
    binned,
    read_edges,
)
from sidelight.sources.codes import looks_like_a_code
from sidelight.sources.dates import are_dates, are_moments, date_edges, tells_time
from sidelight.sources.source import Source
from sidelight.sources.sql import is_temporal

Binning = Literal["quantile", "width"]
Unused = Literal["identifier", "ignored"]
UNUSED: tuple[Unused, ...] = get_args(Unused)
"""What may be stated instead of a kind: the column is no attribute."""

_TEXT = ("BOOLEAN", "VARCHAR", "ENUM", "UUID")
_INTEGER = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_REAL = ("FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class Column:
    """What is stated about a column; None, or nothing, where it is to be inferred.

    Attributes:
        kind: that of its attribute; "identifier" or "ignored" where it is to be none.
        values: its alphabet in order; "(other)" at the end takes in what is not listed.
        edges: the inner edges of its bins; dates and times may be written as such.
        bins: how many bins it gets.
        by: for dates and times: a bin for each "year", "quarter", "month", "day", "hour", ...
        missing: whether a missing value is a value of its own, drops its record, or may not occur.
        description: what it means, in words.
    """

    kind: Kind | Unused | None = None
    values: tuple[str, ...] | None = None
    edges: tuple[float | str, ...] | None = None
    bins: int | None = None
    by: Unit | None = None
    missing: Missing | None = None
    description: str = ""

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
    """How columns become attributes.

    Attributes:
        bins: how many bins a number gets, before values that many records share get theirs.
        binning: "quantile" (equally full bins) or "width" (equally wide ones).
        edges: the inner edges of the bins, for the named columns.
        values: the alphabet in order, for the named columns; what is not listed becomes "(other)".
        kinds: the kind, for the named columns; "identifier" or "ignored" leaves a column out.
        max_values: above so many values the rarest are folded into "(other)".
        few: a column of numbers with at most so many distinct values is categorical.
        missing: whether a missing value is a value of its own or drops its record.
        columns: what a data dictionary states; `kinds`, `edges` and `values` come before it.
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

    @property
    def binned_kind(self) -> Kind | None:
        """The kind of its bins; None for text."""
        if self.is_temporal:
            return "date" if self.type.startswith(("DATE", "TIMESTAMP")) else "time"
        return "numeric" if self.is_number else None


@dataclass(frozen=True)
class _Found:
    """What a column became: an attribute, perhaps by a guess; or why it is none, and as what it is kept."""

    attribute: Attribute | None = None
    reason: str = ""
    remedy: str = ""
    unused: Unused = "ignored"


def infer(
    source: Source, columns: Sequence[str], named: set[str], coding: Coding
) -> tuple[Schema, int, tuple[SetAside, ...], tuple[Guess, ...]]:
    """Return the schema of `columns`, the number of records, the columns set aside, and what was guessed.

    A constant, all-missing, identifying or unsupported column is an error if it is `named`.
    """
    profiles, rows = _profile(source, columns)
    if rows < 2:
        raise InputError(f"{source.label} has {rows} row{'s' * (rows != 1)}; it needs at least two.")
    foreseen = [profile for profile in profiles if profile.is_supported and profile.present]
    source.foresee([item.column for item in foreseen if _is_foreseen(item, coding)], coding.bins)
    attributes, aside, guesses = [], [], []
    for profile in track(profiles, "reading columns"):
        column = profile.column
        found = _attribute(source, profile, coding)
        if found.attribute is not None:
            attributes.append(found.attribute)
            guesses += [Guess(column, found.reason, found.remedy)] if found.reason else []
        elif column in named:
            fix = f"leave it out; {found.remedy}" if found.remedy else "leave it out"
            raise InputError(f"column {column!r} of {source.label} {found.reason}; {fix}.")
        else:
            aside.append(SetAside(column, found.reason, found.remedy, found.unused))
    return Schema(tuple(attributes)), rows, tuple(aside), tuple(guesses)


def _is_foreseen(profile: _Profile, coding: Coding) -> bool:
    """Whether a column will surely be binned, by the usual number of bins."""
    is_stated = coding.column(profile.column).is_shaped
    return not is_stated and (profile.is_temporal or _is_plain_number(profile, coding))


def _profile(source: Source, columns: Sequence[str]) -> tuple[list[_Profile], int]:
    types = source.columns
    rows, figures = source.profile(columns)
    found = zip(columns, figures, strict=True)
    return [_Profile(column, types[column], rows, *figure) for column, figure in found], rows


def _attribute(source: Source, profile: _Profile, coding: Coding) -> _Found:
    """Return the column's attribute, with what was guessed about it; or none, and the reason."""
    stated = coding.column(profile.column)
    if not profile.is_supported:
        return _Found(None, f"has the type {profile.type}, which cannot be an attribute")
    if profile.present == 0:
        return _Found(None, "has no value at all")
    if stated.is_shaped:
        return _stated(source, profile, coding, stated)
    if profile.is_temporal:
        return _binned(source, profile, coding, stated, profile.binned_kind)
    reason = _date_reason(source, profile, coding)
    if reason:
        found = _binned(source, profile, coding, stated, "date")
        return _guessed(found, reason, _state(profile, "numeric" if profile.is_number else "categorical"))
    if _is_identifier(source, profile):
        return _identifier(profile, "identifies its records (every value occurs once)")
    if _is_plain_number(profile, coding):
        return _binned(source, profile, coding, stated, "numeric")
    labels = _frequent_values(source, profile, max(coding.max_values, coding.few))
    if profile.is_number and len(labels) > coding.few:
        return _number(source, profile, coding, stated, labels)
    listed = _listed(source, profile, coding, stated, labels)
    return listed if profile.is_number else _unless_identifier(source, profile, listed)


def _date_reason(source: Source, profile: _Profile, coding: Coding) -> str:
    """Return why a column of text or numbers is taken for one of dates; "" where it is not."""
    column = profile.column
    if profile.type == "VARCHAR":
        seen = source.frequent(column, max(coding.max_values, coding.few) + 1)  # asked again for the values
        looks_so = are_dates(seen[:_GLANCE]) and source.dates(column) == profile.present
        return "holds text that reads as dates and is taken as dates" if looks_so else ""
    if not profile.is_number or not tells_time(column):
        return ""
    source.foresee([column], coding.bins)
    low, high = source.ends(column)
    looks_so = low is not None and high is not None and are_moments(low, high)
    return "holds numbers that are taken as seconds since 1970" if looks_so else ""


def _is_plain_number(profile: _Profile, coding: Coding) -> bool:
    """Whether a column surely has more than a few numbers, and its name suggests nothing but an amount."""
    is_suspect = looks_like_a_code(profile.column, math.inf)
    return profile.is_number and profile.distinct > 2 * coding.few + 5 and not is_suspect


def _number(
    source: Source, profile: _Profile, coding: Coding, stated: Column, labels: Sequence[str]
) -> _Found:
    """Return the attribute of a column of many numbers, some of which are labelled so."""
    source.foresee([profile.column], coding.bins)
    low, _ = source.ends(profile.column)
    is_whole = not profile.is_real or all(label.endswith(".0") for label in labels)
    if low is None or not is_whole or not looks_like_a_code(profile.column, low):
        return _binned(source, profile, coding, stated, "numeric")
    found = _guessed(
        _listed(source, profile, coding, stated, labels),
        "looks like a code by its name, so its numbers are taken as categories",
        _state(profile, "numeric"),
    )
    return _unless_identifier(source, profile, found)


def _identifier(profile: _Profile, reason: str) -> _Found:
    return _Found(
        None, reason, _state(profile, "numeric" if profile.is_number else "categorical"), "identifier"
    )


def _state(profile: _Profile, kind: str) -> str:
    """Return how to say that a column is of another kind."""
    return f"if that is wrong, state its kind (--kind {shlex.quote(f'{profile.column}={kind}')})"


def _guessed(found: _Found, reason: str, remedy: str) -> _Found:
    return found if found.attribute is None else _Found(found.attribute, reason, remedy)


def _unless_identifier(source: Source, profile: _Profile, found: _Found) -> _Found:
    """Set a column aside that is called a code and has hardly two records for each value."""
    is_close = profile.present > _FEW_RECORDS and 1.9 * profile.distinct > profile.present
    if not is_close or not looks_like_a_code(profile.column, 0):
        return found
    if 2 * source.distinct(profile.column) <= profile.present:
        return found
    return _identifier(
        profile, "seems to identify its records (by its name, and hardly a value occurs twice)"
    )


_FEW_RECORDS = 20
"""Among so few records nothing is taken for an identifier."""
_GLANCE = 20
"""So many values tell whether a column of text is worth a closer look."""


def _is_identifier(source: Source, profile: _Profile) -> bool:
    if profile.is_real or profile.is_temporal or profile.distinct < 0.8 * profile.present:
        return False
    if profile.present <= _FEW_RECORDS:
        return False
    return source.distinct(profile.column) == profile.present


def _stated(source: Source, profile: _Profile, coding: Coding, stated: Column) -> _Found:
    """Return the attribute of a column about which something is stated."""
    kind = stated.kind
    if kind is None and stated.values is not None:
        kind = "ordinal"
    if kind in BINNED or kind is None:
        wanted = _check_binned(source, profile, kind)
        return _binned(source, profile, coding, stated, wanted)
    most = max(coding.max_values, coding.few, len(stated.values or ()))
    found = _frequent_values(source, profile, most)
    return _listed(source, profile, coding, stated, found)


def _check_binned(source: Source, profile: _Profile, kind: Kind | None) -> Kind:
    """Return the kind of a column's bins, or raise where it cannot be binned so."""
    column = profile.column
    if profile.type == "VARCHAR" and kind in ("date", None):
        if source.dates(column) == profile.present:
            return "date"
        if kind == "date":
            raise InputError(
                f"column {column!r} of {source.label} has texts that are no dates; write all as 2020-06-07 "
                "or 2020-06-07 12:30:00."
            )
    natural = profile.binned_kind
    if natural is None:
        raise InputError(f"column {column!r} is {profile.type}, not a number; it cannot be binned.")
    if natural != (kind or natural) and (kind == "time" or natural == "time"):
        raise InputError(
            f"column {column!r} is {profile.type}, so its kind cannot be {kind!r}; state {natural!r}."
        )
    return kind or natural


def _missing(profile: _Profile, coding: Coding, stated: Column) -> Missing:
    if stated.missing is not None:
        return stated.missing
    return coding.missing if profile.present < profile.rows else "absent"


def _listed(
    source: Source, profile: _Profile, coding: Coding, stated: Column, found: Sequence[str]
) -> _Found:
    column = profile.column
    missing = _missing(profile, coding, stated)
    tail = (MISSING,) if missing == "value" else ()
    if stated.values is not None:
        listed = tuple(value for value in stated.values if value != OTHER)
        is_complete = set(found) <= set(listed) and OTHER not in stated.values
        if len(set(found) & set(listed)) + (not is_complete) + (missing == "value") < 2:
            raise InputError(
                f"column {column!r} of {source.label}: the listed values leave one occupied value; "
                "list the values as they are in the data."
            )
    else:
        is_complete = len(found) <= coding.max_values
        listed = _in_order(found if is_complete else found[: coding.max_values - 1], profile)
    if len(found) < 2 and missing != "value":
        return _Found(None, "is constant")
    kind = stated.kind or ("categorical" if stated.values is None else "ordinal")
    values = listed + (() if is_complete else (OTHER,)) + tail
    return _Found(Attribute(column, kind, values, missing=missing))  # type: ignore[arg-type]


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


def _binned(source: Source, profile: _Profile, coding: Coding, stated: Column, kind: Kind | None) -> _Found:
    source.foresee([profile.column], stated.bins or coding.bins)
    low, high = source.ends(profile.column)
    missing = _missing(profile, coding, stated)
    if low is None or high is None:
        return _Found(None, "has no finite number")
    if low == high and profile.distinct > 2:
        return _Found(None, "has numbers too large to tell apart as doubles")
    if low == high and missing != "value":
        return _Found(None, "is constant")
    chosen = kind or "numeric"
    edges = _edges(source, profile.column, coding, stated, chosen, (low, high))
    labels = bin_labels(edges, chosen) + ((MISSING,) if missing == "value" else ())
    attribute = Attribute(profile.column, chosen, labels, edges, missing)
    if missing != "value" and len({bisect_right(edges, end) for end in source.reach(profile.column)}) < 2:
        raise InputError(
            f"column {profile.column!r} of {source.label}: the binning leaves one occupied bin; "
            "give other edges, more bins, or binning='quantile'."
        )
    return _Found(attribute)


def _edges(
    source: Source, column: str, coding: Coding, stated: Column, kind: Kind, ends: tuple[float, float]
) -> tuple[float, ...]:
    """Return the inner edges of a column's bins by the rule that applies to it."""
    bins = stated.bins or coding.bins
    if stated.edges is not None:
        return read_edges(column, kind, stated.edges)
    if kind != "numeric":
        return _date_edges(source, column, coding, stated, ends)
    if coding.binning == "quantile":
        return _quantile_edges(source, column, ends[0])
    return _width_edges(source, column, bins, ends)


def _date_edges(
    source: Source, column: str, coding: Coding, stated: Column, ends: tuple[float, float]
) -> tuple[float, ...]:
    bins = stated.bins or coding.bins
    if stated.by is not None:
        starts = starts_between(*ends, stated.by, LARGEST_ALPHABET - 2)
        if starts is None:
            raise InputError(
                f"column {column!r} of {source.label} spans more than {LARGEST_ALPHABET - 2} {stated.by}s; "
                f"bin it by a longer unit than {stated.by!r}."
            )
        return tuple(starts)
    if coding.binning == "width":
        return date_edges(ends, _width_edges(source, column, bins, ends), (), bins)
    masses = [(mass, source.following(column, mass)) for mass in source.masses(column)]
    return date_edges(ends, source.quantiles(column), masses, bins)


def _width_edges(source: Source, column: str, bins: int, ends: tuple[float, float]) -> tuple[float, ...]:
    low, high = ends
    edges = tuple(low + (high / bins - low / bins) * i for i in range(1, bins))
    if any(a >= b for a, b in pairwise((low, *edges, high))):
        raise InputError(
            f"column {column!r} of {source.label} cannot be cut into {bins} bins of equal width; "
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
