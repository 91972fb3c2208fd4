"""`estimate_pairs`: from reports to tables of two or more attributes, and how strongly they depend.

The tables are consistent: all have the same marginals. Each is the posterior mean of `pair_shrinkage`; its
errors and intervals are those of the unbiased table that agrees with the unbiased marginals, so that they
hold whatever the priors are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from sidelight.estimation.dependence import PairDependence, pair_dependence
from sidelight.estimation.estimates import merged
from sidelight.estimation.set_tables import Names, SetTable, check_sets, consistent, left_variance
from sidelight.estimation.table_evidence import Evidence, table_evidence
from sidelight.estimation.unbiased import ABOUT, About, Every
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.foundation.files import SAY_OVERWRITE, check_overwrite, json_number, write_text
from sidelight.foundation.html import html_table
from sidelight.protocols import records
from sidelight.protocols.groups import marginal
from sidelight.protocols.records import RecordSums, Reported
from sidelight.schema import Schema
from sidelight.sources.table import write_rows

_NOBODY = "nobody reported {} together, so their tables show independence"
_IMPLIED = "nobody reported {} together, so their tables show what pairs of them imply"


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """One table, every array in the shape of its values: shares of people, unbiased ones, errors, interval.

    Attributes:
        names: its attributes, one axis each.
        frequencies: not negative, adding up to 1; tables that overlap agree.
        unbiased: the unbiased estimate that agrees with the unbiased marginals.
        standard_error: of the unbiased estimate.
        lower: of each cell's interval, which holds the stated frequency.
        upper: its other end.
        reports: how many people reported all its attributes together.
        distance: the squared distance from independence that the evidence makes likely.
        dependence: of two attributes; None for more.
    """

    names: Names
    frequencies: Array
    unbiased: Array
    standard_error: Array
    lower: Array
    upper: Array
    reports: int
    distance: float
    dependence: PairDependence | None = None


@dataclass(frozen=True, eq=False)
class PairEstimates:
    """Tables of several attributes from one collection, and their common marginals.

    Attributes:
        tables: by the names of their attributes, in the schema's order.
        marginals: by attribute, what all tables agree on.
        about: whether errors are about those who reported or about their population.
        confidence: of the intervals.
        epsilon: what a whole record's report realises at most; `delta` is how likely it does not hold.
        is_simulation: whether the noise came from a seed.
        notes: what a reader must know.
    """

    schema: Schema
    tables: Mapping[Names, TableEstimate]
    marginals: Mapping[str, Array]
    protocol: str
    about: About
    confidence: float
    people: int
    epsilon: float
    is_simulation: bool
    delta: float = 0.0
    notes: tuple[str, ...] = ()

    def __getitem__(self, names: str | Sequence[str]) -> Array:
        """Return the frequencies of a set of attributes, axes as named; of one attribute, its marginal."""
        if isinstance(names, str):
            _ = self.schema[names]
            return self.marginals[names]
        ordered = tuple(sorted(names, key=self.schema.index))
        if ordered not in self.tables:
            known = "; ".join(", ".join(each) for each in self.tables)
            raise InputError(f"there is no table of {', '.join(names)}; there are those of {known}.")
        axes = [ordered.index(name) for name in names]
        return self.tables[ordered].frequencies.transpose(axes)

    @property
    def dependence(self) -> dict[Names, PairDependence]:
        """How strongly the attributes of each pair depend on each other."""
        items = self.tables.items()
        return {names: table.dependence for names, table in items if table.dependence is not None}

    def rows(self) -> Iterator[dict[str, object]]:
        """Return every cell: its attributes and values, frequency, standard error and interval."""
        for names, table in self.tables.items():
            columns = (table.frequencies, table.standard_error, table.lower, table.upper)
            labels = ("frequency", "standard_error", "lower", "upper")
            for place in np.ndindex(*table.frequencies.shape):
                held = [self.schema[name].values[code] for name, code in zip(names, place, strict=True)]
                figures = (float(column[place]) for column in columns)
                yield {
                    "attributes": list(names), "values": held, **dict(zip(labels, figures, strict=True))
                }  # fmt: skip

    def to_arrow(self) -> pa.Table:
        """Return the cells as a table: attributes, values, frequency, standard_error, lower, upper."""
        text = pa.list_(pa.string())
        numbers = [(name, pa.float64()) for name in ("frequency", "standard_error", "lower", "upper")]
        fields = pa.schema([("attributes", text), ("values", text), *numbers])
        return pa.Table.from_pylist(list(self.rows()), schema=fields)

    def dependence_rows(self) -> list[dict[str, object]]:
        """Return the dependence of every pair, the strongest first."""
        items = sorted(self.dependence.items(), key=lambda item: -item[1].cramers_v)
        return [
            {"attributes": list(names), "reports": self.tables[names].reports, **vars(found)}
            for names, found in items
        ]

    def to_json(self) -> str:
        """Return everything as JSON; an infinite number becomes the string "infinity"."""
        head = {
            "protocol": self.protocol, "about": self.about, "confidence": self.confidence,
            "people": self.people, "epsilon": json_number(self.epsilon), "delta": self.delta,
            "is_simulation": self.is_simulation, "notes": list(self.notes),
        }  # fmt: skip
        pairs = [
            {name: json_number(value) if isinstance(value, float) else value for name, value in row.items()}
            for row in self.dependence_rows()
        ]
        data = {**head, "dependence": pairs, "cells": list(self.rows())}
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the cells to a .parquet or .csv file, or everything to a .json file, whole or not at all."""
        check_overwrite(path, force=overwrite, fix=SAY_OVERWRITE)
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            return write_text(path, self.to_json())
        return write_rows(self.to_arrow() if suffix == ".parquet" else _flat(self), path)

    def error(self, truth: Mapping[Names, Array]) -> float:
        """Return the mean over tables of the cells' mean squared error, for those who hold the truth."""
        return float(np.mean([np.mean((self[names] - table) ** 2) for names, table in truth.items()]))

    def __repr__(self) -> str:
        strongest = next(iter(self.dependence_rows()), None)
        about = f"{len(self.tables)} tables of {len(self.schema)} attributes from {self.people} reports"
        if strongest is None:
            return f"PairEstimates({about}; {self.protocol})"
        names = " and ".join(map(str, strongest["attributes"]))  # type: ignore[call-overload]
        return f"PairEstimates({about}; {self.protocol}; {names} depend most, V {strongest['cramers_v']:.2f})"

    def _repr_html_(self) -> str:
        titles = ("pair", "Cramer's V", "lower", "upper", "reports")
        shown = [
            (" x ".join(names), found.cramers_v, found.lower, found.upper, self.tables[names].reports)
            for names, found in self.dependence.items()
        ]
        return html_table(repr(self), titles, shown)


def _flat(estimates: PairEstimates) -> pa.Table:
    """Return the cells with columns of plain text, as CSV files need them."""
    cells = estimates.to_arrow()
    for place, name in enumerate(("attributes", "values")):
        joined = [" x ".join(item) for item in cells.column(name).to_pylist()]
        cells = cells.set_column(place, name, [joined])
    return cells


def estimate_pairs(
    reports: Reported | Iterable[Reported], *, sets: Sequence[Sequence[str]] | None = None,
    confidence: float = 0.95, about: About = "collected",
) -> PairEstimates:  # fmt: skip
    """Estimate the tables of all pairs of attributes, or of chosen sets, from reports.

    Args:
        reports: of the protocol "pairs", of both phases of "adaptive-pairs" (as a list), or of another in
            which people report groups; merged aggregates do as well. What no group holds together is shown
            as independent, with a note.
        sets: the attributes of each table; all pairs by default.
        confidence: of the intervals.
        about: the frequencies among those who reported ("collected") or in their population.
    """
    check_choice("about", about, ABOUT)
    level = check_number("confidence", confidence, above=0, below=1)
    given = records.listed(reports)
    records.check_once(given)
    parts = merged([item.aggregate() for item in given])
    schema = parts[0].protocol.schema
    _check_told(parts)
    wanted = check_sets(schema, sets)
    evidence = table_evidence(parts, wanted, about)
    deviations = NormalDist().inv_cdf(0.5 + level / 2)
    tables = {names: _estimated(evidence, names, deviations) for names in wanted}
    unknown = [names for names, table in tables.items() if not table.reports]
    notes = [
        words.format("; ".join(" and ".join(names) for names in some))
        for words, some in (
            (_NOBODY, [names for names in unknown if len(names) == 2]),
            (_IMPLIED, [names for names in unknown if len(names) > 2]),
        )
        if some
    ]
    return PairEstimates(
        schema, tables, _common(evidence), parts[-1].protocol.name, about, level,
        sum(part.people for part in parts), max(part.protocol.epsilon for part in parts),
        any(part.is_simulation for part in parts), max(part.protocol.delta for part in parts),
        tuple(notes),
    )  # fmt: skip


def _check_told(parts: Sequence[RecordSums]) -> None:
    """Raise unless people report groups of attributes whose cells can be estimated."""
    for part in parts:
        groups = part.protocol.groups
        if not groups or any(group.randomiser.mark_rates is None for group in groups):
            raise InputError(
                f"the reports of {part.protocol.name!r} say nothing about tables by themselves; collect with "
                "the protocol 'pairs', or call estimate_joint."
            )


def _common(evidence: Evidence) -> dict[str, Array]:
    """Return the marginals that the tables share; of an attribute in no table, its own."""
    own = dict(evidence.shares)
    for names, item in evidence.shrunken.items():
        own |= {name: marginal(item.cells, axis) for axis, name in enumerate(names) if len(names) == 2}
    return own


def _estimated(evidence: Evidence, names: Names, deviations: float) -> TableEstimate:
    """Return one table with its errors, its intervals and its dependence."""
    table, found = evidence.tables[names], evidence.shrunken[names]
    raw, variance = (cells.reshape(table.sizes) for cells in consistent(table, evidence.marginals))
    error = np.sqrt(np.maximum(variance, 0.0))
    low, high = (np.clip(np.clip(raw, 0, 1) + sign * deviations * error, 0, 1) for sign in (-1, 1))
    lower, upper = np.minimum(low, found.cells), np.maximum(high, found.cells)
    told = None
    if len(names) == 2:
        noise = _beside_independence(table, found.cells, evidence.marginals)
        told = pair_dependence(
            found.cells, None if table.cells is None else raw, noise, found.dependent, deviations
        )
    return TableEstimate(
        names, found.cells, raw, error, lower, upper, table.reports, found.distance, told
    )  # fmt: skip


def _beside_independence(table: SetTable, stated: Array, marginals: Every) -> Array:
    """Return the variance of a pair's unbiased distance from independence: of the table, of the marginals.

    Marginals that err move the product; only what differs from an even shift is not in the table as well.
    """
    own = left_variance(table, stated.reshape(-1), (0.0, 0.0))
    first, second = (marginal(stated, axis) for axis in (0, 1))
    noise = [
        marginals[name].variance(share) for name, share in zip(table.names, (first, second), strict=True)
    ]
    uneven = [(share - 1 / share.size) ** 2 for share in (first, second)]
    return np.asarray(own + np.outer(noise[0], uneven[1] + noise[1]) + np.outer(uneven[0], noise[1]))
