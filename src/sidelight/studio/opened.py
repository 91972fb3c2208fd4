"""The opened table: read as a person corrected its columns, counted once, and kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import file_name
from sidelight.plan import Plan, Release
from sidelight.remedying.coarsening import Coarsening, coarse_belief, coarse_schema, coarsened_to
from sidelight.schema import MISSING, Attribute, Kind, Schema
from sidelight.sources import Dictionary, Table, read
from sidelight.sources.dictionary import UNUSED, as_dictionary
from sidelight.sources.dictionary import Column as Stated
from sidelight.studio import messages as said
from sidelight.studio.document import Choice, Document, Draft, Fix

MOST_ATTRIBUTES = 400
MOST_VALUES = 6_000
"""Of all attributes together: what is known about every two of their values is kept in memory."""
MOST_RELEASES = 10_000
_LISTED = 200
_ALL_SIZES = 24
"""Attributes of at most so many values may be coarsened to any number; others by halves."""


@dataclass(frozen=True)
class Place:
    """Where a table is and how it is read: what another process needs to open it too."""

    source: str
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the table is called; the folders that it lies in are nobody's business."""
        return file_name(self.source)

    @property
    def stem(self) -> str:
        """The name without its ending, for the files that are made from it."""
        return Path(self.name).name.partition(".")[0] or "table"


@dataclass(frozen=True, eq=False)
class Opened:
    """A table and what is known about it.

    Attributes:
        place: where it is.
        dictionary: what is stated about its columns.
        table: as it is read.
        belief: what whoever knows the table knows.
    """

    place: Place
    dictionary: Dictionary | None
    table: Table
    belief: Belief
    fixes: Mapping[str, Fix]
    _coarse: dict[tuple[tuple[str, int], ...], Belief] = field(default_factory=dict)
    _releases: dict[tuple[str, int, Choice], Release] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The attributes as they are read."""
        return self.table.schema

    @cached_property
    def shares(self) -> dict[str, Array]:
        """The frequency of every value, by attribute."""
        return {name: self.belief.prior(name) for name in self.schema.names}

    @cached_property
    def coarser(self) -> dict[str, tuple[int, ...]]:
        """To how many values each attribute may be coarsened."""
        return {item.name: tuple(self._sizes(item.name)) for item in self.schema}

    def _sizes(self, name: str) -> list[int]:
        size = self.schema[name].size
        sizes = list(range(2, size)) if size <= _ALL_SIZES else []
        while size > _ALL_SIZES and size > 2:
            size = (size + 1) // 2
            sizes.insert(0, size)
        return [size for size in sizes if self._coarsened(name, size) is not None]

    def _coarsened(self, name: str, size: int) -> Coarsening | None:
        return coarsened_to(self.schema[name], self.shares[name], size)

    def coarsenings(self, draft: Draft) -> dict[str, Coarsening]:
        """Return how a plan coarsens attributes; what it does not release stays as it is."""
        made = {}
        for name in self.schema.names:
            choice = draft.of(name)
            found = None if choice.values is None or choice.withheld else self._coarsened(name, choice.values)
            if found is not None:
                made[name] = found
        return made

    def known(self, draft: Draft) -> Belief:
        """Return what is known of people whose values the plan codes, merged from what is in memory."""
        made = self.coarsenings(draft)
        key = tuple((name, item.coarse.size) for name, item in made.items())
        if key not in self._coarse:
            self._coarse[key] = coarse_belief(self.belief, made)
        return self._coarse[key]

    def counted(self, plan: Plan) -> Belief:
        """Return the same, counted from the table as the command line does; equal, to the last digit."""
        attributes = {release.name: release.attribute for release in plan.releases}
        if all(self.schema[name] == attribute for name, attribute in attributes.items()):
            return self.belief
        return Belief.from_data(self.table_of(plan))

    def table_of(self, plan: Plan) -> Table:
        """Return the table, coded as a plan says."""
        return read(
            self.place.source, **self._reading, schema=plan.schema,
            rest=True if self.dictionary is None else self.dictionary,
        )  # fmt: skip

    @property
    def _reading(self) -> dict[str, Any]:
        return {name: part for name, part in self.place.reading.items() if name != "schema"}

    def plan(self, document: Document, draft: Draft) -> Plan:
        """Return the plan that a draft means, with the limits of the document."""
        schema = coarse_schema(self.schema, self.coarsenings(draft))
        chosen = {item: draft.of(item.name) for item in schema}
        releases = tuple(
            self._release(item, choice) for item, choice in chosen.items() if not choice.withheld
        )
        settings = document.settings
        named = {secret.name: secret for secret in settings.secrets}
        limits = {name: limit for name, item in named.items()
                  if (limit := settings.limit if item.limit is None else item.limit) is not None}  # fmt: skip
        reasons = {name: item.reason for name, item in named.items() if item.reason}
        return Plan(
            releases, None if named else settings.limit, limits, f"the studio, of {self.place.name}",
            settings.delta, settings.adversary.decide_by, reasons, settings.purpose,
        )  # fmt: skip

    def _release(self, attribute: Attribute, choice: Choice) -> Release:
        """Return a release, made at most once: to check one costs more than to look it up."""
        key = (attribute.name, attribute.size, choice)
        if key not in self._releases:
            if len(self._releases) > MOST_RELEASES:
                self._releases.clear()
            budget = None if choice.mechanism == "identity" else choice.epsilon
            self._releases[key] = Release(attribute, choice.mechanism, budget)
        return self._releases[key]

    def secrets(self, document: Document) -> list[str]:
        """Return the names of the secrets: all attributes where nobody has named any."""
        named = [secret.name for secret in document.settings.secrets if secret.name in self.schema]
        return named or list(self.schema.names)

    def columns(self) -> list[said.Column]:
        """Return the columns as the page shows them, in the order of the file."""
        counts = self.table.counts(*([name] for name in self.schema.names))
        cells = {
            name: np.asarray(item.cells, np.float64)
            for name, item in zip(self.schema.names, counts, strict=True)
        }
        aside = {item.column: item for item in self.table.set_aside}
        names = dict.fromkeys([*self.table.source.columns, *aside])
        return [
            self._attribute(name, cells[name]) if name in cells else self._aside(name, aside)
            for name in names
        ]

    def _attribute(self, name: str, cells: Array) -> said.Column:
        item, rows = self.schema[name], max(self.table.rows, 1)
        listed = [
            said.ValueCount(label=label, count=int(count), share=float(count) / rows)
            for label, count in zip(item.values[:_LISTED], cells, strict=False)
        ]
        lost = float(cells[item.code(MISSING)]) / rows if item.missing == "value" else 0.0
        notes = [f"A guess: it {guess.reason}." for guess in self.table.guesses if guess.column == name]
        return said.Column(
            name=name, kind=item.kind, size=item.size, values=listed, unlisted=max(item.size - _LISTED, 0),
            missing=item.missing, missing_share=lost,
            bins=item.size - (item.missing == "value") if item.is_binned else None,
            kinds=[*get_args(Kind), *UNUSED], notes=notes, is_stated=name in self.fixes,
            coarser=list(self.coarser[name]),
        )  # fmt: skip

    def _aside(self, name: str, aside: Mapping[str, Any]) -> said.Column:
        found = aside.get(name)
        return said.Column(
            name=name, kind="ignored" if found is None else found.kind, size=0, values=[], unlisted=0,
            missing="absent", missing_share=0.0, bins=None, kinds=[*get_args(Kind), *UNUSED],
            notes=[] if found is None else [f"It {found.reason}."], is_stated=name in self.fixes, coarser=[],
        )  # fmt: skip


def open_table(place: Place, fixes: Mapping[str, Fix]) -> Opened:
    """Read a table as its columns were corrected, and count it; refuse one that no page could show."""
    dictionary = _dictionary(place, fixes)
    reading = {name: part for name, part in place.reading.items() if name != "schema"}
    table = read(place.source, **reading, schema=dictionary)
    count, values = len(table.schema), sum(table.schema.sizes)
    fix = "name those that matter with --column, or leave some out with --drop"
    if count > MOST_ATTRIBUTES:
        raise InputError(f"{place.name} has {count} attributes; the studio shows {MOST_ATTRIBUTES}: {fix}.")
    if values > MOST_VALUES:
        raise InputError(
            f"the attributes of {place.name} have {values} values together; the studio shows {MOST_VALUES}: "
            f"{fix}, or fold rare values with --max-values."
        )
    if not count:
        raise InputError(f"no column of {place.name} is an attribute; state what they are with --kind.")
    return Opened(place, dictionary, table, Belief.from_data(table), dict(fixes))


def open_again(place: Place, fixes: Mapping[str, Fix]) -> Opened:
    """Open a table that is on a page; a refusal names it as the page does, without its folders."""
    try:
        return open_table(place, fixes)
    except InputError as error:
        raise InputError(str(error).replace(place.source, place.name)) from None


def _dictionary(place: Place, fixes: Mapping[str, Fix]) -> Dictionary | None:
    """Return what is stated about columns: by a file, and by hand, which comes first."""
    stated = place.reading.get("schema")
    base = Dictionary({}) if stated is None else as_dictionary(stated)
    columns = dict(base.columns)
    for name, fix in fixes.items():
        before = columns.get(name, Stated())
        is_other = fix.kind not in (None, before.kind) or fix.bins is not None
        kept = Stated(missing=before.missing, description=before.description) if is_other else before
        update = {key: part for key, part in fix.model_dump().items() if part is not None}
        columns[name] = replace(kept, **update)
    return replace(base, columns=columns) if columns else None
