"""The data dictionary: what people state about the columns of a table, in a file that they edit and keep.

It is TOML, versioned and read strictly: one table for each column, held as a `Column`; `Coding` adds the
options of `read`, and `SetAside` and `Guess` say what became of other columns. A draft is made from a table;
what is stated in full is coded without looking at the data again, what is left out is inferred.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from sidelight.foundation.calendar import Unit
from sidelight.foundation.errors import InputError, check_choice, check_whole, invalid, naming, unknown
from sidelight.foundation.files import SAY_OVERWRITE, check_overwrite, read_text, write_text
from sidelight.foundation.strict import FrozenMapping, Strict, check_version, parsed_text, validated
from sidelight.foundation.toml import toml_comment, toml_key, toml_value
from sidelight.schema import BINNED, MISSING, OTHER, Attribute, Kind, Missing, Schema, binned, written_edges

if TYPE_CHECKING:
    from sidelight.sources.source import Source
    from sidelight.sources.table import Table

Binning = Literal["quantile", "width"]
Unused = Literal["identifier", "ignored"]
UNUSED: tuple[Unused, ...] = get_args(Unused)
"""What may be stated instead of a kind: the column is no attribute."""
DICTIONARY_VERSION = 1
_HEAD = """\
{label}
# It names values that occur in the table: keep it as you keep the table, or replace what must not be seen.
# For each column: kind = "categorical", "ordinal", "numeric", "date", "time", "identifier" or "ignored";
# values (in order; "(other)" takes in the rest) or edges of bins, or bins = 10, or by = "month" (dates);
# missing = "value", "drop" or "absent". What you delete is inferred from the table.
# na = ["-9"] before the first column names cells that are missing, besides "?", "NA" and the like.
version = {version}
"""


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


@dataclass(frozen=True)
class Dictionary:
    """What is stated about the columns of a table.

    Attributes:
        columns: the statements, by column.
        remarks: for each column, what a reader should know; comments in the file.
        label: what to call it in messages.
        na: the cells that are missing, in every column, as `read` takes them.
    """

    columns: Mapping[str, Column]
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label: str = "the data dictionary"
    na: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            with naming(f"{self.label}: column {name!r}"):
                _check(name, column)
        object.__setattr__(self, "columns", FrozenMapping(self.columns))
        object.__setattr__(self, "remarks", FrozenMapping(self.remarks))

    @classmethod
    def draft(cls, table: Table, before: Dictionary | None = None) -> Dictionary:
        """Return a dictionary that states how a table is coded, and remarks on what was guessed.

        Descriptions and missing cells that an earlier dictionary states are kept.

        >>> import sidelight as sl
        >>> Dictionary.draft(sl.example("titanic")).columns["sex"].values
        ('female', 'male')
        """
        kinds = {item.column: item.kind for item in table.set_aside}
        columns = {
            name: _stated(table.schema[name]) if name in table.schema else Column(kinds.get(name, "ignored"))
            for name in dict.fromkeys([*table.source.columns, *kinds])
        }
        before = cls({}) if before is None else before
        for name in before.columns.keys() & columns.keys():
            columns[name] = replace(columns[name], description=before.columns[name].description)
        remarks = {item.column: (f"It {item.reason}.",) for item in table.set_aside}
        remarks |= {item.column: (f"A guess: it {item.reason}.",) for item in table.guesses}
        return cls(columns, remarks, f"the data dictionary of {Path(table.source.label).name}", before.na)

    def schema(self, coding: Coding, given: Schema | None = None) -> Schema:
        """Return the attributes that are given, or stated in full and not contradicted by the coding."""
        known = given if given is not None else Schema(())
        stated = (coding.column(name).attribute(name) for name in self.columns if name not in known)
        return Schema((*known, *filter(None, stated)))

    def notes(self, source: Source) -> tuple[str, ...]:
        """Say which columns of a source are not described; raise if one that is described lacks."""
        for name in self.columns:
            if name not in source.columns:
                error = unknown("column", name, source.columns)
                raise InputError(f"{self.label} describes {name!r}, but in {source.label} {error}")
        others = [name for name in source.columns if name not in self.columns]
        shown = ", ".join(others[:10]) + (", ..." if len(others) > 10 else "")
        return (f"Not described in {self.label}, so coded by rule: {shown}.",) if others else ()

    def to_toml(self) -> str:
        """Return the dictionary as TOML, with its remarks as comments."""
        label = toml_comment(f"{self.label[0].upper()}{self.label[1:]}.")
        head = _HEAD.format(label=label, version=DICTIONARY_VERSION)
        parts = [_section(name, column, self.remarks.get(name, ())) for name, column in self.columns.items()]
        na = [] if self.na is None else [f"na = {toml_value(self.na)}\n"]
        return "\n".join([head, *na, *parts])

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the dictionary to a .toml file; only by `overwrite` over one, which may have been edited."""
        target = _toml_path(path)
        check_overwrite(target, force=overwrite, fix=SAY_OVERWRITE)
        return write_text(target, self.to_toml())

    @classmethod
    def read(cls, path: str | Path) -> Dictionary:
        """Read a dictionary from a .toml file, strictly."""
        complaint = f"{path} is not UTF-8 text; a data dictionary is a TOML file."
        return cls.from_toml(read_text(_toml_path(path), complaint), str(path))

    @classmethod
    def from_toml(cls, text: str, label: str = "the data dictionary") -> Dictionary:
        """Read a dictionary from TOML text, strictly."""
        data = parsed_text(text, label, tomllib.loads, "is not valid TOML: {}")
        rule = f"it must have `version = {DICTIONARY_VERSION}`."
        check_version(data, label, DICTIONARY_VERSION, "data dictionary", rule)
        columns = data.get("column", {})
        stray = set(data) - {"version", "column", "na"}
        if stray or not isinstance(columns, dict):
            key = next(iter(stray), "column")
            raise InputError(f"{label}: {unknown('key', key, ('version', 'na', 'column.NAME'))}")
        na = data.get("na")
        if na is not None and not (isinstance(na, list) and all(isinstance(word, str) for word in na)):
            raise InputError(f"{label}: na must be a list of texts, as ['?', '-9'].")
        parsed = {name: _column(name, entry, label) for name, entry in columns.items()}
        return cls(parsed, {}, label, None if na is None else tuple(na))


def as_dictionary(value: object) -> Dictionary:
    """Return a dictionary, or read that of a path."""
    if isinstance(value, Dictionary):
        return value
    if not isinstance(value, str | os.PathLike):
        raise invalid("schema", "a `Schema`, or a data dictionary or the path of one", type(value).__name__)
    return Dictionary.read(Path(value))


class _ColumnFile(Strict):
    kind: Kind | Unused | None = None
    values: list[str] | None = None
    edges: list[float | str] | None = None
    bins: int | None = None
    by: Unit | None = None
    missing: Missing | None = None
    description: str = ""


def _column(name: str, entry: Any, label: str) -> Column:
    """Return what a file states about a column."""
    if not isinstance(entry, dict):
        raise InputError(f"{label}: column {name!r} must be a table, as [column.{toml_key(name)}].")
    where = f"{label}: column {name!r}"
    choices = {"kind": (*get_args(Kind), *UNUSED), "by": get_args(Unit), "missing": get_args(Missing)}
    for key, known in choices.items():  # the error names the choice that was meant where one is misspelt
        if key in entry and entry[key] not in known:
            raise InputError(f"{where}: {unknown(key, str(entry[key]), known)}")
    plain = {key: [_plain(key, item) for item in part] if isinstance(part, list) else part
             for key, part in entry.items()}  # fmt: skip
    stated: dict[str, Any] = dict(validated(_ColumnFile, plain, where))
    return Column(**(stated | {key: tuple(part) for key, part in stated.items() if isinstance(part, list)}))


def _plain(key: str, value: Any) -> Any:
    """Return TOML's own dates and times as text, and numbers and truth values that are labels."""
    if key == "edges" and isinstance(value, date | time):
        return value.isoformat()
    return json.dumps(value) if key == "values" and isinstance(value, bool | int | float) else value


def _check(name: str, column: Column) -> None:
    """Raise if what is stated about a column contradicts itself."""
    fitting = {
        "values": (column.values, ("categorical", "ordinal")), "edges": (column.edges, BINNED),
        "bins": (column.bins, BINNED), "by": (column.by, ("date", "time")),
    }  # fmt: skip
    stated = {key: kinds for key, (part, kinds) in fitting.items() if part is not None}
    if len(stated) > 1:
        raise InputError("{} and {} exclude each other; keep one.".format(*stated))
    for key, kinds in stated.items():
        if column.kind is not None and column.kind not in kinds:
            raise InputError(f"it is {column.kind}, so it has no {key}; leave one out.")
    if column.bins is not None:
        check_whole("bins", column.bins, at_least=2, at_most=10_000)
    if column.values is not None and MISSING in column.values:
        raise InputError(f'{MISSING!r} is no value to list; state missing = "value" instead.')
    if column.values is not None and OTHER in column.values[:-1]:
        raise InputError(f"{OTHER!r} must be the last of the values.")
    column.attribute(name)


def _stated(attribute: Attribute) -> Column:
    """Return the statement that an attribute is the whole of."""
    if attribute.is_binned:
        edges = tuple(written_edges(attribute.kind, attribute.edges))
        return Column(attribute.kind, edges=edges, missing=attribute.missing)
    values = tuple(value for value in attribute.values if value != MISSING)
    return Column(attribute.kind, values, missing=attribute.missing)


def _section(name: str, column: Column, remarks: Iterable[str]) -> str:
    """Return the part of the file for one column."""
    said = {"description": column.description} | asdict(column)  # which comes first
    lines = [f"{key} = {toml_value(value)}" for key, value in said.items() if value not in (None, "")]
    return "\n".join([f"[column.{toml_key(name)}]", *map(toml_comment, remarks), *lines, ""])


def _toml_path(path: str | Path) -> Path:
    if Path(path).suffix.lower() != ".toml":
        raise InputError(f"{path} must end in .toml; a data dictionary is a TOML file.")
    return Path(path)
