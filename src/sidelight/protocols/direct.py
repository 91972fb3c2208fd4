"""Protocols that randomise true values: all units with a split budget (SPL), or one with all of it (SMP)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, cast

import numpy as np

from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import below_each, derive_seed, randomness
from sidelight.mechanisms import Aggregate
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.plan import Plan
from sidelight.protocols.groups import BEST, ReportedGroup, check_units, make_unit
from sidelight.protocols.protocol import (
    Array,
    Codes,
    RecordReports,
    RecordSums,
    check_budget,
    check_channel_size,
    check_people,
    check_records,
    check_same,
    domain_size,
    even_part,
)
from sidelight.schema import Schema


class GroupProtocol:
    """What protocols share whose reports are those of units, one column each."""

    schema: Schema
    units: tuple[ReportedGroup, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The units' labels."""
        return tuple(unit.label for unit in self.units)

    @property
    def sole_numbers(self) -> dict[str, BinnedNumbers]:
        """The mechanisms of attributes that are reported as a noisy number and in no other way."""
        ways = Counter(name for unit in self.units for name in unit.names)
        return {
            unit.label: unit.randomiser
            for unit in self.units
            if isinstance(unit.randomiser, BinnedNumbers) and ways[unit.label] == 1
        }

    @property
    def has_numbers(self) -> bool:
        """Whether some unit reports a noisy number."""
        return any(isinstance(unit.randomiser, BinnedNumbers) for unit in self.units)

    @property
    def is_pure(self) -> bool:
        """Whether the budget holds without a delta: no unit's mechanism has one."""
        return not any(unit.randomiser.delta for unit in self.units)

    def aggregate(self, collected: RecordReports) -> RecordSums:
        """Add reports up."""
        protocol = cast("Split | Sample", self)
        check_same(protocol, collected.protocol)
        check_people(collected)
        sums = tuple(unit.aggregate(part) for unit, part in zip(self.units, collected.parts, strict=True))
        return RecordSums(protocol, collected.people, sums, collected.is_simulation)


@dataclass(frozen=True)
class Split(GroupProtocol):
    """SPL: everyone reports every unit; the budgets add up (with a group of all: the product domain).

    Attributes:
        schema: the attributes of a record.
        units: what is reported, each attribute in exactly one.
    """

    kind: ClassVar[str] = "split"
    schema: Schema
    units: tuple[ReportedGroup, ...]

    def __post_init__(self) -> None:
        check_units(self.schema, self.units, disjoint=True)

    @property
    def name(self) -> str:
        """SPL by its short name, or "product" where a unit is a group."""
        return "product" if any(len(unit.names) > 1 for unit in self.units) else "spl"

    @property
    def epsilon(self) -> float:
        """The sum of the units' realised budgets."""
        return math.fsum(unit.randomiser.epsilon for unit in self.units)

    @property
    def delta(self) -> float:
        """The sum of the units' deltas, an upper end (Dwork, Roth 2014, Theorem 3.16)."""
        return min(sum(unit.randomiser.delta for unit in self.units), 1.0)

    @property
    def proof(self) -> str:
        """Why."""
        if not self.is_pure:
            return "units have noise of their own: their budgets add up, and their deltas do at most"
        if self.has_numbers:
            return (
                "units have noise of their own, so their likelihood ratios multiply: the budgets add up, "
                "reached where points lie at both bounds"
            )
        return (
            "units have noise of their own, so their likelihood ratios multiply: the budgets add up, exactly"
        )

    def randomise(self, records: Codes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`."""
        checked = check_records(records, self.schema)
        parts = tuple(
            unit.randomiser.randomise(
                unit.codes(checked, _columns(self.schema, unit)),
                seed=derive_seed(seed, unit.label),
                offset=offset,
            )
            for unit in self.units
        )
        return RecordReports(self, parts, (None,) * len(parts), len(checked), seed is not None)

    def matrix(self) -> Array:
        """Return Pr(report | record), see `Protocol.matrix`."""
        laws = [_law(self.schema, unit) for unit in self.units]
        check_channel_size(len(laws[0]), domain_size([law.shape[1] for law in laws]))
        return reduce(_side_by_side, laws)

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        return {"protocol": self.kind, "unit": [unit.to_file() for unit in self.units]}


@dataclass(frozen=True)
class Sample(GroupProtocol):
    """SMP: everyone reports one unit, drawn at random and disclosed, with the whole budget.

    Attributes:
        schema: the attributes of a record.
        units: what may be reported; every attribute in at least one.
        shares: how likely each unit is drawn, in whole numbers; all equal by default.
    """

    kind: ClassVar[str] = "sample"
    schema: Schema
    units: tuple[ReportedGroup, ...]
    shares: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_units(self.schema, self.units, disjoint=False)
        shares = self.shares or (1,) * len(self.units)
        if len(shares) != len(self.units):
            raise InputError(
                f"`shares` must have one number for each of {len(self.units)} units, got {shares}."
            )
        checked = tuple(check_whole("shares", share, at_least=1, at_most=1 << 40) for share in shares)
        object.__setattr__(self, "shares", checked)

    @property
    def name(self) -> str:
        """SMP by its short name, "smp on groups" where a unit is one."""
        return "smp on groups" if any(len(unit.names) > 1 for unit in self.units) else "smp"

    @property
    def epsilon(self) -> float:
        """The largest realised budget of a unit."""
        return max(unit.randomiser.epsilon for unit in self.units)

    @property
    def delta(self) -> float:
        """The mean of the units' deltas: a report is of one unit, known which, at its share."""
        whole = sum(self.shares)
        return sum(
            unit.randomiser.delta * share / whole for unit, share in zip(self.units, self.shares, strict=True)
        )

    @property
    def proof(self) -> str:
        """Why."""
        if not self.is_pure:
            return (
                "the choice depends on no value, and a report is of one unit: the largest budget, and the "
                "mean of the deltas at most"
            )
        return (
            "the choice depends on no value, and a report is of one unit: the largest budget, reached by "
            "records that differ in it" + (" from bound to bound" if self.has_numbers else "")
        )

    def randomise(self, records: Codes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`.

        A seeded simulation stays the same in chunks: every unit's noise is drawn for all rows.
        """
        checked = check_records(records, self.schema)
        chosen = self._choose(len(checked), seed, offset)
        parts, senders = [], []
        for number, unit in enumerate(self.units):
            rows = np.flatnonzero(chosen == number)
            columns = _columns(self.schema, unit)
            if seed is None:
                reports = unit.randomiser.randomise(unit.codes(checked[rows], columns))
            else:
                every = unit.codes(checked, columns)
                noise = derive_seed(seed, unit.label)
                reports = unit.randomiser.randomise(every, seed=noise, offset=offset)[rows]
            parts.append(reports)
            senders.append(rows)
        return RecordReports(self, tuple(parts), tuple(senders), len(checked), seed is not None)

    def _choose(self, people: int, seed: int | None, offset: int) -> np.ndarray[Any, np.dtype[np.intp]]:
        ends = np.cumsum(self.shares)
        bounds = np.full(people, ends[-1], dtype=np.uint64)
        drawn = below_each(randomness(seed, "collection/choice"), offset, bounds)
        return np.searchsorted(ends, drawn.astype(np.int64), side="right")

    def matrix(self) -> Array:
        """Return Pr(report | record), the units' reports side by side, see `Protocol.matrix`."""
        laws = [_law(self.schema, unit) for unit in self.units]
        check_channel_size(len(laws[0]), sum(law.shape[1] for law in laws))
        whole = sum(self.shares)
        return np.hstack([law * (share / whole) for law, share in zip(laws, self.shares, strict=True)])

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        return {
            "protocol": self.kind,
            "shares": list(self.shares),
            "unit": [unit.to_file() for unit in self.units],
        }


def spl(
    schema: Schema, epsilon: float, mechanism: str = "grr", parameters: Mapping[str, Any] | None = None
) -> Split:
    """Return SPL: each of d attributes through the mechanism at epsilon / d, rounded down."""
    part = even_part(check_budget(epsilon), len(schema))
    return Split(
        schema, tuple(make_unit(schema, [name], mechanism, part, parameters) for name in schema.names)
    )


def smp(
    schema: Schema, epsilon: float, mechanism: str = "grr", shares: Sequence[int] = (),
    parameters: Mapping[str, Any] | None = None,
) -> Sample:  # fmt: skip
    """Return SMP: one of d attributes, disclosed, through the mechanism at epsilon."""
    units = tuple(make_unit(schema, [name], mechanism, epsilon, parameters) for name in schema.names)
    return Sample(schema, units, tuple(shares))


def product(
    schema: Schema, epsilon: float, groups: Sequence[Sequence[str]] | None = None, mechanism: str = "grr"
) -> Split | Sample:
    """Return the product domain of all attributes, or one group, drawn and disclosed, at epsilon.

    An attribute that no group names is a group of one.
    """
    parts = [list(group) for group in groups] if groups is not None else [list(schema.names)]
    named = {name for part in parts for name in part}
    parts += [[name] for name in schema.names if name not in named]
    units = tuple(make_unit(schema, part, mechanism, epsilon) for part in parts)
    return Split(schema, units) if len(units) == 1 else Sample(schema, units)


def planned(plan: Plan) -> Split:
    """Return the collection that a plan describes: every released attribute, as it says."""
    units = []
    for release in plan.releases:
        if release.times != 1:
            raise InputError(
                f"the plan asks for {release.times} reports of {release.name!r}, and a collection takes one: "
                "set `times` to 1. Several need noise that each person's device keeps between them, which no "
                "collection does; with fresh noise each report spends its budget again."
            )
        if release.mechanism != "withheld":
            units.append(
                make_unit(plan.schema, [release.name], release.mechanism, release.epsilon, release.parameters)
            )
    if not units:
        raise InputError("the plan withholds every attribute; there is nothing to collect.")
    kept = plan.schema.select([unit.names[0] for unit in units])
    return Split(kept, tuple(units))


def number_parts(
    parts: Sequence[RecordSums], *, alone: bool = False
) -> list[tuple[str, BinnedNumbers, Aggregate]]:
    """Return the attributes that someone reported as a number, each with its mechanism and sums.

    Args:
        parts: what was reported.
        alone: whether to leave out attributes that are reported in another way too.
    """
    found = []
    for part in parts:
        if isinstance(part.protocol, GroupProtocol):
            sole = part.protocol.sole_numbers
            found += [
                (unit.label, unit.randomiser, sums)
                for unit, sums in zip(part.protocol.units, part.parts, strict=True)
                if isinstance(unit.randomiser, BinnedNumbers) and sums.reports
                if not alone or unit.label in sole
            ]
    return found


def _columns(schema: Schema, unit: ReportedGroup) -> list[int]:
    return [schema.index(name) for name in unit.names]


def _law(schema: Schema, unit: ReportedGroup) -> Array:
    """Return Pr(report of the unit | record) for every record of the schema's domain."""
    if isinstance(unit.randomiser, BinnedNumbers):
        raise InputError(
            f"the reports of {unit.label!r} are numbers, too many to enumerate; take the protocol's "
            "`epsilon` and `delta`, which hold by proof."
        )
    law = unit.randomiser.channel.matrix()
    check_channel_size(domain_size(schema.sizes), law.shape[1])
    grid = np.indices(schema.sizes).reshape(len(schema), -1)
    cells = np.ravel_multi_index(tuple(grid[column] for column in _columns(schema, unit)), unit.sizes)
    return np.asarray(law[cells])


def _side_by_side(first: Array, second: Array) -> Array:
    """Return the law of two independent reports given the record."""
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(first), -1))


__all__ = ["BEST", "Sample", "Split", "number_parts", "planned", "product", "smp", "spl"]
