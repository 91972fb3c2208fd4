"""From columns to attributes: which values there are, how numbers are binned, what is set aside.

What is stated about a column is kept; the rest is inferred, and what may well be wrong is said to be a guess.
"""

from __future__ import annotations

import math
import shlex
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from sidelight.foundation.calendar import starts_between
from sidelight.foundation.errors import InputError, unknown
from sidelight.foundation.progress import track
from sidelight.schema import BINNED, MISSING, OTHER, Attribute, Kind, Missing, Schema, binned, read_edges
from sidelight.sources.bins import MOST_EDGES, date_edges, quantile_edges, width_edges
from sidelight.sources.dictionary import Coding, Column, Guess, SetAside, Unused
from sidelight.sources.names import are_dates, are_moments, looks_like_a_code, tells_time
from sidelight.sources.source import Source
from sidelight.sources.sql import is_temporal

_TEXT = ("BOOLEAN", "VARCHAR", "ENUM", "UUID")
_INTEGER = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_REAL = ("FLOAT", "DOUBLE", "DECIMAL")
_FEW_RECORDS = 20
"""With this few records, no column is taken for an identifier."""
_GLANCE = 20
"""This many values tell whether a column of text is worth a closer look."""


def infer(
    source: Source, columns: Sequence[str], named: set[str], coding: Coding
) -> tuple[Schema, int, tuple[SetAside, ...], tuple[Guess, ...]]:
    """Return the schema of `columns`, the number of records, the columns set aside, and what was guessed.

    A constant, all-missing, identifying or unsupported column is an error if it is `named`.
    """
    rows, figures = source.profile(columns)
    if rows < 2:
        raise InputError(f"{source.label} has {rows} row{'s' * (rows != 1)}; it needs at least two.")
    inferences = [
        _Inference(source, coding, column, source.columns[column], rows, *figure)
        for column, figure in zip(columns, figures, strict=True)
    ]
    source.foresee([item.column for item in inferences if item.will_be_binned], coding.bins)
    attributes, aside, guesses = [], [], []
    for item in track(inferences, "reading columns"):
        outcome = item.outcome()
        if outcome.attribute is not None:
            attributes.append(outcome.attribute)
            guesses += [Guess(item.column, outcome.reason, outcome.remedy)] if outcome.reason else []
        elif item.column in named:
            fix = f"leave it out; {outcome.remedy}" if outcome.remedy else "leave it out"
            raise InputError(f"{item.subject} {outcome.reason}; {fix}.")
        else:
            aside.append(SetAside(item.column, outcome.reason, outcome.remedy, outcome.unused))
    return Schema(tuple(attributes)), rows, tuple(aside), tuple(guesses)


@dataclass(frozen=True)
class _Outcome:
    """What a column became: an attribute, perhaps by a guess; or why it is none, and as what it is kept."""

    attribute: Attribute | None = None
    reason: str = ""
    remedy: str = ""
    unused: Unused = "ignored"


@dataclass(frozen=True)
class _Inference:
    """A column of DuckDB's `type` on its way to an attribute.

    So many of its rows are `present`, having a value, and about so many different values are `distinct`.
    """

    source: Source
    coding: Coding
    column: str
    type: str
    rows: int
    present: int
    distinct: int

    @cached_property
    def stated(self) -> Column:
        """What is stated about the column."""
        return self.coding.column(self.column)

    @property
    def subject(self) -> str:
        """The name of the column in messages."""
        return f"column {self.column!r} of {self.source.label}"

    @property
    def is_number(self) -> bool:
        return self.type.lstrip("U").startswith(_INTEGER + _REAL)

    @property
    def is_real(self) -> bool:
        return self.type.startswith(_REAL)

    @property
    def is_supported(self) -> bool:
        scalar = "[" not in self.type and "(" not in self.type
        return scalar and (self.is_number or is_temporal(self.type) or self.type.startswith(_TEXT))

    @property
    def binned_kind(self) -> Kind | None:
        """The kind of its bins; None for text."""
        if is_temporal(self.type):
            return "date" if self.type.startswith(("DATE", "TIMESTAMP")) else "time"
        return "numeric" if self.is_number else None

    @property
    def is_plain_number(self) -> bool:
        """Whether it surely has more than a few numbers, and its name suggests nothing but an amount."""
        is_suspect = looks_like_a_code(self.column, math.inf)
        # Twice as many as a few and five more: however the approximate count errs, they are not few.
        return self.is_number and self.distinct > 2 * self.coding.few + 5 and not is_suspect

    @property
    def will_be_binned(self) -> bool:
        """Whether it will surely be binned, by the usual number of bins."""
        if not self.is_supported or not self.present or self.stated.is_shaped:
            return False
        return is_temporal(self.type) or self.is_plain_number

    @property
    def bins(self) -> int:
        return self.stated.bins or self.coding.bins

    @property
    def missing(self) -> Missing:
        if self.stated.missing is not None:
            return self.stated.missing
        return self.coding.missing if self.present < self.rows else "absent"

    def outcome(self) -> _Outcome:
        """Return the column's attribute, with what was guessed about it; or none, and the reason."""
        if not self.is_supported:
            return _Outcome(None, f"has the type {self.type}, which cannot be an attribute")
        if self.present == 0:
            return _Outcome(None, "has no value at all")
        if self.stated.is_shaped:
            return self._as_stated()
        if is_temporal(self.type):
            return self._binned(self.binned_kind)
        if reason := self._date_reason():
            return self._guessed(self._binned("date"), reason, "numeric" if self.is_number else "categorical")
        if self._is_identifier():
            return self._identifier("identifies its records (every value occurs once)")
        if self.is_plain_number:
            return self._binned("numeric")
        labels = self._frequent_values(max(self.coding.max_values, self.coding.few))
        if not self.is_number:
            return self._unless_identifier(self._listed(labels))
        return self._number(labels) if len(labels) > self.coding.few else self._listed(labels)

    def _date_reason(self) -> str:
        """Return why a column of text or numbers is taken for one of dates; "" where it is not."""
        if self.type == "VARCHAR":
            most = max(self.coding.max_values, self.coding.few) + 1  # as many as will be asked for as values
            seen = self.source.frequent(self.column, most)[:_GLANCE]
            looks_so = are_dates(seen) and self.source.dates(self.column) == self.present
            return "holds text that reads as dates and is taken as dates" if looks_so else ""
        if not self.is_number or not tells_time(self.column):
            return ""
        looks_so = are_moments(*self.source.summary(self.column, self.coding.bins).ends)
        return "holds numbers that are taken as seconds since 1970" if looks_so else ""

    def _number(self, labels: Sequence[str]) -> _Outcome:
        """Return the attribute of a column of many numbers, some of which are labelled so."""
        low, _ = self.source.summary(self.column, self.coding.bins).ends
        is_whole = not self.is_real or all(label.endswith(".0") for label in labels)
        if low is None or not is_whole or not looks_like_a_code(self.column, low):
            return self._binned("numeric")
        reason = "looks like a code by its name, so its numbers are taken as categories"
        return self._unless_identifier(self._guessed(self._listed(labels), reason, "numeric"))

    def _is_identifier(self) -> bool:
        # The number of different values is approximate; only where all may differ are they counted.
        if self.is_real or self.distinct < 0.8 * self.present or self.present <= _FEW_RECORDS:
            return False
        return self.source.distinct(self.column) == self.present

    def _unless_identifier(self, outcome: _Outcome) -> _Outcome:
        """Set a column aside that is called a code and has hardly two records for each value."""
        # Two records for each value, and a tenth more, since the number of different values is approximate.
        is_close = self.present > _FEW_RECORDS and 2.2 * self.distinct > self.present
        if not is_close or not looks_like_a_code(self.column, 0):
            return outcome
        reason = "seems to identify its records (by its name, and hardly a value occurs twice)"
        is_sure = 2 * self.source.distinct(self.column) > self.present
        return self._identifier(reason) if is_sure else outcome

    def _identifier(self, reason: str) -> _Outcome:
        remedy = self._state("numeric" if self.is_number else "categorical")
        return _Outcome(None, reason, remedy, "identifier")

    def _guessed(self, outcome: _Outcome, reason: str, otherwise: Kind) -> _Outcome:
        """Say that an attribute is a guess, and the kind to state where it is wrong."""
        if outcome.attribute is None:
            return outcome
        return replace(outcome, reason=reason, remedy=self._state(otherwise))

    def _state(self, kind: str) -> str:
        """Return how to say that the column is of another kind."""
        return f"if that is wrong, state its kind (--kind {shlex.quote(f'{self.column}={kind}')})"

    def _as_stated(self) -> _Outcome:
        """Return the attribute of a column about which something is stated."""
        kind, values = self.stated.kind, self.stated.values
        if kind in BINNED or (kind is None and values is None):
            return self._binned(self._checked_kind(kind))
        most = max(self.coding.max_values, self.coding.few, len(values or ()))
        return self._listed(self._frequent_values(most))

    def _checked_kind(self, kind: Kind | None) -> Kind:
        """Return the kind of the column's bins, or raise where it cannot be binned so."""
        if self.type == "VARCHAR" and kind in ("date", None):
            if self.source.dates(self.column) == self.present:
                return "date"
            if kind == "date":
                raise InputError(
                    f"{self.subject} has texts that are no dates; write all as 2020-06-07 or "
                    "2020-06-07 12:30:00."
                )
        natural = self.binned_kind
        if natural is None:
            raise InputError(f"column {self.column!r} is {self.type}, not a number; it cannot be binned.")
        if natural != (kind or natural) and (kind == "time" or natural == "time"):
            raise InputError(
                f"column {self.column!r} is {self.type}, so its kind cannot be {kind!r}; state {natural!r}."
            )
        return kind or natural

    def _listed(self, labels: Sequence[str]) -> _Outcome:
        """Return an attribute with a value for each label, those that are stated or else those that occur."""
        stated, missing = self.stated.values, self.missing
        if stated is not None:
            listed = tuple(value for value in stated if value != OTHER)
            is_complete = set(labels) <= set(listed) and OTHER not in stated
            if len(set(labels) & set(listed)) + (not is_complete) + (missing == "value") < 2:
                raise InputError(
                    f"{self.subject}: the listed values leave one occupied value; list the values as they "
                    "are in the data."
                )
        else:
            is_complete = len(labels) <= self.coding.max_values
            shown = labels if is_complete else labels[: self.coding.max_values - 1]
            listed = tuple(sorted(shown, key=Decimal) if self.is_number else sorted(shown))
        if len(labels) < 2 and missing != "value":
            return _Outcome(None, "is constant")
        kind = self.stated.kind or ("categorical" if stated is None else "ordinal")
        values = listed + (() if is_complete else (OTHER,)) + ((MISSING,) if missing == "value" else ())
        return _Outcome(Attribute(self.column, kind, values, missing=missing))  # type: ignore[arg-type]

    def _frequent_values(self, most: int) -> list[str]:
        """Return the most frequent labels, one more than `most` if there are more."""
        labels = self.source.frequent(self.column, most + 1)
        for reserved in (OTHER, MISSING):
            if reserved in labels:
                raise InputError(
                    f"{self.subject} has the value {reserved!r}, which stands for folded or missing values "
                    "here; rename it in the data."
                )
        return labels

    def _binned(self, kind: Kind | None) -> _Outcome:
        """Return an attribute whose values are bins of numbers, dates or times."""
        summary = self.source.summary(self.column, self.bins)
        (low, high), missing = summary.ends, self.missing
        if low is None or high is None:
            return _Outcome(None, "has no finite number")
        if low == high and self.distinct > 2:
            return _Outcome(None, "has numbers too large to tell apart as doubles")
        if low == high and missing != "value":
            return _Outcome(None, "is constant")
        chosen = kind or "numeric"
        edges = self._edges(chosen, (low, high))
        attribute = binned(self.column, chosen, edges, missing)
        if missing != "value" and len({bisect_right(edges, end) for end in summary.reach}) < 2:
            raise InputError(
                f"{self.subject}: the binning leaves one occupied bin; give other edges, more bins, or "
                "binning='quantile'."
            )
        return _Outcome(attribute)

    def _edges(self, kind: Kind, ends: tuple[float, float]) -> tuple[float, ...]:
        """Return the inner edges of the bins by the rule that applies to the column."""
        summary = self.source.summary(self.column, self.bins)
        if self.stated.edges is not None:
            return read_edges(self.column, kind, self.stated.edges)
        if kind != "numeric" and (unit := self.stated.by) is not None:
            starts = starts_between(*ends, unit, MOST_EDGES)
            if starts is None:
                span = f"spans more than {MOST_EDGES} {unit}s"
                raise InputError(f"{self.subject} {span}; bin it by a longer unit than {unit!r}.")
            return tuple(starts)
        if self.coding.binning == "width":
            edges = width_edges(ends, self.bins)
            if edges is None:
                reason = f"cannot be cut into {self.bins} bins of equal width"
                raise InputError(f"{self.subject} {reason}; give its edges, or use binning='quantile'.")
            return edges if kind == "numeric" else date_edges(ends, edges, self.bins)
        if kind == "numeric":
            return quantile_edges(summary, ends[0])
        return date_edges(ends, summary.cuts, self.bins, summary.following)


def check_names(source: Source, names: Sequence[str]) -> None:
    """Raise if a name is no column of the source."""
    for name in names:
        if name not in source.columns:
            raise InputError(f"{source.label}: {unknown('column', name, source.columns)}")


def check_varied(source: Source, names: Sequence[str]) -> None:
    """Raise if a named column has fewer than two values, missing ones counted."""
    for name in names:
        rows, ((values, _),) = source.profile([name])
        if source.distinct(name) + (values < rows) < 2:
            raise InputError(f"column {name!r} of {source.label} is constant; leave it out.")
