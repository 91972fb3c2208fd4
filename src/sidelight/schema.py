"""Attribute and Schema: names, kinds and alphabets, and how a raw value becomes a code.

A code is a position in `Attribute.values`. A number is coded by `edges`: value v gets the number of edges
at or below v. A value that many records share is a bin of its own, whose two edges are the value and the
next double after it. Dates are binned in the same way, as seconds since 1970, and times of day as seconds
since midnight; their labels, and their edges in files, are dates and times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from sidelight.foundation import calendar
from sidelight.foundation.errors import InputError, check_choice, check_number, invalid, naming, unknown
from sidelight.foundation.html import html_table, listed

Kind = Literal["categorical", "ordinal", "numeric", "date", "time"]
BINNED: tuple[Kind, ...] = ("numeric", "date", "time")
"""The kinds whose values are coded by edges."""
Missing = Literal["absent", "value", "drop"]

OTHER = "(other)"
MISSING = "(missing)"
LARGEST_ALPHABET = 65_536  # codes are numbers of 16 bits


def _twice(items: Sequence[str]) -> str | None:
    """Return the first item that is listed more than once; None if all are different."""
    return None if len(set(items)) == len(items) else next(item for item in items if items.count(item) > 1)


@dataclass(frozen=True)
class Attribute:
    """One attribute of a record.

    Attributes:
        name: the column's name.
        kind: "categorical", "ordinal" (the values are in order), or, binned by `edges`, "numeric", "date" or
            "time" (of day).
        values: the label of every code, the last ones being "(other)" and "(missing)" where they exist.
        edges: the inner edges of the bins of a binned attribute, strictly increasing.
        missing: whether a missing value is a value of its own, drops its record, or may not occur.
        merged: labels that stand for several raw values, each with those; other labels stand for themselves.
    """

    name: str
    kind: Kind
    values: tuple[str, ...]
    edges: tuple[float, ...] = ()
    missing: Missing = "absent"
    merged: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(Kind))
        check_choice("missing", self.missing, get_args(Missing))
        if not self.name:
            raise InputError("an attribute needs a name, got an empty one.")
        subject, size = f"attribute {self.name!r}", len(self.values)
        if not 1 <= size <= LARGEST_ALPHABET:
            raise InputError(f"{subject} must have 1 to {LARGEST_ALPHABET} values, got {size}.")
        if (twice := _twice(self.values)) is not None:
            raise InputError(f"{subject} lists the value {twice!r} twice.")
        if (self.missing == "value") != (MISSING in self.values):
            rule = f"{MISSING!r} is listed exactly when missing is 'value'"
            raise InputError(f"{subject}: {rule}, got missing = {self.missing!r}.")
        if self.is_binned:
            self._check_edges()
        elif self.edges:
            raise InputError(f"{subject} is {self.kind}; only numbers, dates and times have edges.")
        if self.merged:
            self._check_merged()

    def _check_merged(self) -> None:
        """Refuse merged values of which nobody could say what code they have."""
        subject = f"attribute {self.name!r}"
        if self.is_binned:
            raise InputError(f"{subject} is {self.kind}; its values are merged by its edges.")
        labels, plain = [label for label, _ in self.merged], set(self.values)
        for label in labels:
            if label not in plain - {OTHER, MISSING}:
                raise InputError(f"{subject} merges values into {label!r}, which is none of its values.")
        raws = [raw for _, parts in self.merged for raw in parts]
        if (twice := _twice(labels) or _twice(raws)) is not None:
            raise InputError(f"{subject} merges {twice!r} twice.")
        if stray := (set(raws) & plain) - set(labels):
            raise InputError(f"{subject} lists {min(stray)!r} and merges it too; leave one out.")

    def _check_edges(self) -> None:
        if not all(map(math.isfinite, self.edges)) or any(a >= b for a, b in pairwise(self.edges)):
            raise invalid(f"edges of {self.name}", "finite and strictly increasing", self.edges)
        is_clock = self.kind == "time"
        are_writable = all(calendar.is_writable(edge, clock=is_clock) for edge in self.edges)
        if self.kind != "numeric" and not are_writable:
            within = "times of day" if is_clock else "dates from the year 1 to 9999"
            raise invalid(f"edges of {self.name}", f"{within}, in whole microseconds", self.edges)
        bins, edges = len(self.values) - (self.missing == "value"), len(self.edges)
        if bins != edges + 1:
            labels = f"so it needs {edges + 1} bin labels, got {bins}"
            raise InputError(f"attribute {self.name!r} has {edges} edges, {labels}.")

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.values)

    @property
    def is_binned(self) -> bool:
        """Whether values are coded by edges."""
        return self.kind in BINNED

    @property
    def listed(self) -> tuple[str, ...]:
        """The labels of raw values, without "(other)" and "(missing)"."""
        return tuple(value for value in self.values if value not in (OTHER, MISSING))

    @property
    def has_other(self) -> bool:
        """Whether values that are not listed are folded into one code."""
        return OTHER in self.values

    @property
    def raw_labels(self) -> dict[str, int]:
        """The code of every raw value that is told apart, merged ones among them; "(other)" is one."""
        parts = dict(self.merged)
        return {raw: code for code, label in enumerate(self.values) for raw in parts.get(label, (label,))}

    def code(self, label: str) -> int:
        """Return the code of a label."""
        if label not in self.values:
            raise unknown(f"value of {self.name}", label, self.values)
        return self.values.index(label)


@dataclass(frozen=True)
class Schema:
    """The attributes of a table, in order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if (twice := _twice(self.names)) is not None:
            raise InputError(f"the attribute {twice!r} is listed twice.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The alphabets' sizes."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """Return the position of the attribute called `name`."""
        try:
            return self._places[name]
        except KeyError:
            raise unknown("attribute", name, self.names) from None

    def _repr_html_(self) -> str:
        rows = [[item.name, item.kind, item.size, listed(item.values), item.missing] for item in self]
        titles = ("attribute", "kind", "size", "values", "missing")
        return html_table(f"Schema({len(self)} attributes)", titles, rows)

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of the named attributes, in the order of `names`."""
        return Schema(tuple(self[name] for name in names))


def as_schema(value: object) -> Schema:
    """Return a schema, or that of a table, a belief or a plan."""
    schema = value.schema if isinstance(value, _HasSchema) else value
    if not isinstance(schema, Schema):
        raise invalid("schema", "a `Schema`", type(value).__name__, "A table's is table.schema.")
    return schema


@runtime_checkable
class _HasSchema(Protocol):
    @property
    def schema(self) -> Schema: ...


def file_version(schema: Schema, version: int) -> int:
    """Return the version of a file that holds the schema: 1, which older releases read, without dates."""
    return version if any(attribute.kind in ("date", "time") for attribute in schema) else 1


def categorical(name: str, values: Sequence[str], *, ordinal: bool = False) -> Attribute:
    """Return an attribute with the given labels.

    >>> categorical("sex", ["female", "male"]).size
    2
    """
    return Attribute(name, "ordinal" if ordinal else "categorical", tuple(str(value) for value in values))


def plain_schema(sizes: Iterable[tuple[str, int]]) -> Schema:
    """Return attributes of these names and sizes, whose values are called 0, 1 and so on."""
    return Schema(tuple(categorical(name, [str(code) for code in range(k)]) for name, k in sizes))


def axes_schema(names: Schema | Sequence[str], shape: tuple[int, ...]) -> Schema:
    """Return the schema of an array's axes: as it is given, or made of these names."""
    if isinstance(names, Schema):
        return names
    is_listed = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    if not is_listed or isinstance(names, str) or len(names) != len(shape):
        raise invalid("schema", f"a `Schema` or {len(shape)} names, one for each axis", names)
    return plain_schema(zip(names, shape, strict=True))


def numeric(name: str, edges: Sequence[float], *, missing: Missing = "absent") -> Attribute:
    """Return a numeric attribute binned at the given inner edges.

    >>> numeric("gain", [math.nextafter(0, 1), 5000]).values
    ('up to 0', 'above 0 to below 5000', '5000 or more')
    """
    return binned(name, "numeric", edges, missing)


def binned(name: str, kind: Kind, edges: Sequence[object], missing: Missing = "absent") -> Attribute:
    """Return an attribute of numbers, dates or times binned at the given inner edges.

    >>> binned("born", "date", ["1960", "1980-06", "2000-01"]).values
    ('before 1960-01', '1960-01 to before 1980-06', '1980-06 to before 2000-01', '2000-01 or later')
    """
    inner = read_edges(name, kind, edges)
    labels = bin_labels(inner, kind)
    return Attribute(name, kind, labels + ((MISSING,) if missing == "value" else ()), inner, missing)


def read_edges(name: str, kind: Kind, edges: Sequence[object]) -> tuple[float, ...]:
    """Return inner edges as numbers: those of dates and times may be written as such, or be Python's own."""
    parse = {"date": calendar.parse_moment, "time": calendar.parse_clock}.get(kind)
    plain = partial(check_number, "edge")
    with naming(f"edges of {name!r}"):
        return tuple((plain if parse is None or isinstance(edge, float) else parse)(edge) for edge in edges)


def written_edges(kind: Kind, edges: Sequence[float]) -> list[Any]:
    """Return inner edges as a file has them: dates and times as text."""
    write = {"date": calendar.moment_text, "time": calendar.clock_text}.get(kind)
    return [edge if write is None else write(edge) for edge in edges]


def alphabet_data(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute but for its name as plain data."""
    edges = written_edges(attribute.kind, attribute.edges)
    stated = {"kind": attribute.kind, "values": list(attribute.values), "missing": attribute.missing}
    merged = {label: list(parts) for label, parts in attribute.merged}
    return stated | ({"edges": edges} if edges else {}) | ({"merged": merged} if merged else {})


def read_merged(merged: Mapping[str, Sequence[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return merged values as an attribute has them, from a file's."""
    return tuple((label, tuple(parts)) for label, parts in merged.items())


def bin_labels(inner: Sequence[float], kind: Kind = "numeric") -> tuple[str, ...]:
    """Return a plain-words label for every bin between the inner edges."""
    edges = [float(edge) for edge in inner]
    if not edges:
        return ("any",)
    if kind != "numeric":
        return calendar.labels(edges, clock=kind == "time")
    first = _worded(edges[0], "up to {}", "below {}")
    middle = [_label(low, high) for low, high in pairwise(edges)]
    return (first, *middle, _worded(edges[-1], "above {}", "{} or more"))


def _label(low: float, high: float) -> str:
    if math.nextafter(low, math.inf) == high:
        return _plain(low)
    return f"{_worded(low, 'above {}', '{}')} to {_worded(high, '{}', 'below {}')}"


def _worded(edge: float, closing: str, opening: str) -> str:
    """Word an edge; the double just after a shorter number closes a bin at that number."""
    before = math.nextafter(edge, -math.inf)
    closes = len(repr(before)) < len(repr(edge))
    return closing.format(_plain(before)) if closes else opening.format(_plain(edge))


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
