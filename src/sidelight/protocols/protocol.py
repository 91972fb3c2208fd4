"""The contract of a protocol: how whole records become reports, and what a server keeps of them."""

from __future__ import annotations

import hashlib
import json
import math
import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.foundation.html import html_table
from sidelight.foundation.randomness import permutation
from sidelight.mechanisms import Aggregate, Reports
from sidelight.plan import LARGEST_EPSILON
from sidelight.schema import Schema

Array = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger[Any]]

LARGEST_CHANNEL = 1 << 22
"""A protocol's law is written out only up to so many cells."""


class Protocol(typing.Protocol):
    """A randomiser of whole records: frozen data, written to a file, the same on both sides."""

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """What people call it: "spl", "smp", "rs+fd" and so on."""

    @property
    def schema(self) -> Schema:
        """The attributes of a record, in order."""

    @property
    def epsilon(self) -> float:
        """The realised budget of a whole record: no two records are told apart by more."""

    @property
    def delta(self) -> float:
        """The probability that the budget does not hold, at most; 0 where it always does."""

    @property
    def proof(self) -> str:
        """Why that budget holds, in one sentence."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the report's parts, one column each."""

    def randomise(self, records: Codes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, shape (n, attributes).

        Args:
            records: codes in the schema's order.
            seed: for simulation; without one the noise is secure.
            offset: the first record's position in the whole table, so that chunks of it agree.
        """

    def aggregate(self, collected: RecordReports) -> RecordSums:
        """Add reports up."""

    def matrix(self) -> Array:
        """Return Pr(report | record), shape (records, reports), both in C order; refused above 2^22 cells."""

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""


@dataclass(frozen=True)
class FirstPhase:
    """What reports of a first phase say about the collection they open.

    The second phase must leave out exactly those who took part in the first, so that nobody reports twice:
    the share of people in it travels with the reports.

    Attributes:
        method: "corr-rr" or "cond-rr".
        epsilon: the nominal budget of a record, in either phase.
        share: how many of all people take part in the first phase.
    """

    method: str
    epsilon: float
    share: float


@dataclass(frozen=True, eq=False)
class RecordReports:
    """The reports of many people about several attributes.

    Attributes:
        protocol: what made them.
        parts: one for each of the protocol's labels: the reports of those who sent that part.
        senders: for each part the rows of those who sent it, or None where everyone did.
        people: how many people reported.
        is_simulation: whether the noise came from a seed, so that it protects nobody.
        phase: the collection that they are the first phase of, if any.
        batch: the id of the whole batch that was read from a file; None for other reports.
        is_shuffled: whether the rows are in another order than the records that they are reports of.
    """

    protocol: Protocol
    parts: tuple[Reports, ...]
    senders: tuple[NDArray[np.intp] | None, ...]
    people: int
    is_simulation: bool = False
    phase: FirstPhase | None = None
    batch: str | None = None
    is_shuffled: bool = False

    def __len__(self) -> int:
        return self.people

    def __getitem__(self, rows: slice) -> RecordReports:
        """Return the reports of a run of people."""
        start, stop, step = rows.indices(self.people)
        if step != 1:
            raise invalid("rows", "a run without steps", rows)
        parts: list[Reports] = []
        kept: list[NDArray[np.intp] | None] = []
        for part, senders in zip(self.parts, self.senders, strict=True):
            if senders is None:
                parts.append(part[start:stop])
                kept.append(None)
            else:
                low, high = np.searchsorted(senders, [start, stop])
                parts.append(part[low:high])
                kept.append(senders[low:high] - start)
        people = max(stop - start, 0)
        return replace(self, parts=tuple(parts), senders=tuple(kept), people=people, batch=None)

    def _repr_html_(self) -> str:
        simulated = "; a simulation, which protects nobody" if self.is_simulation else ""
        caption = f"RecordReports({self.people} people, {self.protocol.name}{simulated})"
        rows = zip(self.protocol.labels, (len(part) for part in self.parts), strict=True)
        return html_table(caption, ("part", "reports"), rows)

    def __add__(self, other: RecordReports) -> RecordReports:
        return joined([self, other])

    def shuffled(self, key: bytes) -> RecordReports:
        """Return the reports in an order that only the key tells, see `permutation`."""
        order = permutation(key, self.people)
        places = np.empty(self.people, dtype=np.intp)
        places[order] = np.arange(self.people)
        parts: list[Reports] = []
        kept: list[NDArray[np.intp] | None] = []
        for part, senders in zip(self.parts, self.senders, strict=True):
            moved = None if senders is None else places[senders]
            own = order if moved is None else np.argsort(moved)
            parts.append(part[own])
            kept.append(None if moved is None else moved[own])
        return replace(self, parts=tuple(parts), senders=tuple(kept), batch=None, is_shuffled=True)

    def aggregate(self) -> RecordSums:
        """Add the reports up."""
        return self.protocol.aggregate(self)


@dataclass(frozen=True, eq=False)
class RecordSums:
    """What a server keeps: sums that merge in any order, exactly.

    Attributes:
        protocol: what made the reports.
        people: how many people reported.
        parts: the sums of each part.
        is_simulation: whether the noise of any of them came from a seed.
    """

    protocol: Protocol
    people: int
    parts: tuple[Aggregate, ...]
    is_simulation: bool = False

    def __add__(self, other: RecordSums) -> RecordSums:
        check_same(self.protocol, other.protocol)
        parts = tuple(mine + theirs for mine, theirs in zip(self.parts, other.parts, strict=True))
        is_simulation = self.is_simulation or other.is_simulation
        return RecordSums(self.protocol, self.people + other.people, parts, is_simulation)


def joined(items: Sequence[RecordReports]) -> RecordReports:
    """Return the reports of several runs of people of one protocol, in order."""
    first = items[0]
    check_once(items)
    for item in items[1:]:
        check_same(first.protocol, item.protocol)
        if item.phase != first.phase:
            raise InputError(
                f"reports of different first phases are mixed, {first.phase} and {item.phase}; learn from "
                "those of one share of people."
            )
    starts = np.cumsum([0, *(item.people for item in items)])
    senders = tuple(
        None if columns[0] is None else np.concatenate(
            [rows + start for rows, start in zip(columns, starts[:-1], strict=True)]
        )
        for columns in zip(*(item.senders for item in items), strict=True)
    )  # fmt: skip
    parts = tuple(Reports.joined(columns) for columns in zip(*(item.parts for item in items), strict=True))
    is_simulation = any(item.is_simulation for item in items)
    is_shuffled = any(item.is_shuffled for item in items)
    return RecordReports(
        first.protocol, parts, senders, int(starts[-1]), is_simulation, first.phase, is_shuffled=is_shuffled
    )


def check_once(items: Sequence[RecordReports | RecordSums]) -> None:
    """Raise if the same reports, or their sums, are among them twice: their people would count twice."""
    places: dict[str | int, int] = {}
    for place, item in enumerate(items, start=1):
        if not item.people:
            continue
        batch = item.batch if isinstance(item, RecordReports) else None
        earlier = places.setdefault(id(item) if batch is None else batch, place)
        if earlier != place:
            same = f"are the same batch, {batch!r}" if batch else "are the very same"
            raise InputError(
                f"reports {earlier} and {place} of {len(items)} {same}; name each once, else its people "
                "count twice."
            )


def check_budget(epsilon: object) -> float:
    """Return the budget of a record or of a part of it, within what a plan may spend as well."""
    return check_number("epsilon", epsilon, above=0, below=LARGEST_EPSILON)


def even_part(epsilon: float, parts: int) -> float:
    """Return the largest double of which so many do not add up to more than the budget, exactly."""
    part = epsilon / parts
    return part if Fraction(part) * parts <= Fraction(epsilon) else math.nextafter(part, 0.0)


def fingerprint(protocol: Protocol) -> str:
    """Return a short digest that two protocols share exactly when they are the same."""
    schema = [[a.name, a.kind, a.values, a.edges, a.missing] for a in protocol.schema]
    text = json.dumps([protocol.to_file(), schema], sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def mixed(first: Protocol, second: Protocol) -> InputError:
    """Return the error for reports that were made in different ways."""
    return InputError(
        f"reports of two protocols are mixed: {first.name!r} ({fingerprint(first)}) and {second.name!r} "
        f"({fingerprint(second)}); estimate each on its own."
    )


def check_records(records: Any, schema: Schema) -> Codes:
    """Return records after checking that they are codes of the schema's attributes."""
    array = np.asarray(records)
    if array.ndim != 2 or array.shape[1] != len(schema) or array.dtype.kind not in "ui":
        shape = f"{array.dtype} of shape {array.shape}"
        raise invalid("records", f"integer codes of shape (people, {len(schema)})", shape)
    for column, attribute in zip(array.T, schema, strict=True):
        if len(column) and (int(column.max()) >= attribute.size or int(column.min()) < 0):
            raise InputError(
                f"`records` of {attribute.name!r} must be codes from 0 to {attribute.size - 1}, got "
                f"{int(column.min())} to {int(column.max())}."
            )
    return array


def check_same(first: Protocol, second: Protocol) -> None:
    """Raise if two protocols differ."""
    if first is not second and fingerprint(first) != fingerprint(second):
        raise mixed(first, second)


def check_people(collected: RecordReports) -> None:
    """Raise unless everyone sent every part, or each part came from those who are said to have sent it."""
    for label, part, senders in zip(
        collected.protocol.labels, collected.parts, collected.senders, strict=True
    ):
        wanted = collected.people if senders is None else len(senders)
        if len(part) != wanted:
            raise InputError(f"there must be {wanted} reports of {label!r}, one a person, got {len(part)}.")


def check_channel_size(rows: int, columns: int) -> None:
    """Refuse to write out a law that is too large."""
    if rows * columns > LARGEST_CHANNEL:
        raise InputError(
            f"the protocol's law would have {rows} x {columns} cells, more than {LARGEST_CHANNEL}; take "
            "fewer attributes or values."
        )


def domain_size(sizes: Sequence[int]) -> int:
    """Return the number of combinations of values."""
    return math.prod(sizes)
