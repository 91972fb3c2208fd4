"""The wire form of a report: one person's report in a few bytes, the same bytes for the same report.

A report is a byte that says the version, and a body (see `layout`). What a device sends is checked here as a
server must: every report is told apart from what its randomiser can make, each by itself, and nothing that
is sent is ever run, repaired or trusted. The format is in `docs/wire.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Mask, Positions
from sidelight.foundation.errors import InputError, check_is, invalid
from sidelight.mechanisms import Reports
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import FirstPhase, RecordReports, check_people
from sidelight.transport.layout import Bytes, Layout, Refusal

WIRE_VERSION = 1
Payloads = Sequence[bytes] | Bytes
"""One person's report each; as rows of bytes, shape (people, length), where all have one length."""

REFUSALS: Mapping[Refusal, str] = MappingProxyType(
    {
        "length": "the report has another number of bytes than every report of its protocol",
        "version": f"the report is not of version {WIRE_VERSION} of the wire form",
        "part": "the report names a part that its protocol does not have",
        "range": "a code, count or number is outside what its mechanism can report",
        "set": "a set has another size than its mechanism reports, or is not in rising order",
        "padding": "bits after the last field are set",
        "impossible": "no record can lead to what the report's fields say together",
    }
)
"""Why a report is refused, in words. Where there are several reasons, the first in this order is given."""


@dataclass(frozen=True, eq=False)
class Unpacked:
    """What came of payloads: the reports that are some, and what is wrong with the others.

    Attributes:
        reports: those that the protocol can have made, in the order of the payloads.
        kept: where each of them stands among the payloads.
        refused: by place among the payloads, why it is no report; see `REFUSALS`.
    """

    reports: RecordReports
    kept: Positions
    refused: dict[int, Refusal]


@dataclass(frozen=True, eq=False)
class Wire:
    r"""The wire form of a protocol's reports, worked out once for all of them.

    >>> from sidelight.protocols import spl
    >>> from sidelight.schema import Schema, categorical
    >>> protocol = spl(Schema((categorical("a", "xyz"), categorical("b", "uv"))), 1.0)
    >>> sent = Wire(protocol).pack(protocol.randomise(np.array([[2, 1]]), seed=7))
    >>> sent, Wire(protocol).unpack([sent[0], b"no"]).refused
    ([b'\x01\x01'], {1: 'version'})
    """

    protocol: Protocol
    layout: Layout

    def __init__(self, protocol: Protocol) -> None:
        """Take the protocol that the reports are made with."""
        object.__setattr__(self, "protocol", protocol)
        object.__setattr__(self, "layout", Layout(tuple(protocol.forms), protocol.sends_one_part))

    @property
    def length(self) -> int:
        """How many bytes every report has."""
        return 1 + self.layout.length

    def pack(self, reports: RecordReports) -> list[bytes]:
        """Return everybody's report in bytes, after checking that the protocol can have made it."""
        check_people(reports)
        senders = reports.senders
        if self.protocol.sends_one_part:
            sent = np.bincount(
                np.concatenate([np.arange(reports.people) if rows is None else rows for rows in senders]),
                minlength=reports.people,
            )
            if len(sent) != reports.people or np.any(sent != 1):
                raise InputError(f"everyone must report exactly one of {', '.join(self.protocol.labels)}.")
        rows = np.empty((reports.people, self.length), dtype=np.uint8)
        rows[:, 0] = WIRE_VERSION
        rows[:, 1:] = self.layout.packed(reports.parts, senders, reports.people)
        whole, length = rows.tobytes(), self.length
        return [whole[start : start + length] for start in range(0, len(whole), length)]

    def unpack(
        self, payloads: Payloads, *, is_simulation: bool = False, phase: FirstPhase | None = None
    ) -> Unpacked:
        """Return the reports among payloads, and why each of the others is none.

        Args:
            payloads: one person's report each, as it was received; rows of bytes where all have one length.
            is_simulation: whether the noise came from a seed; bytes do not say.
            phase: the collection that they are the first phase of, if any.
        """
        rows, fitting = self._fitting(payloads)
        reasons = np.full(len(payloads), 1 + _ORDER.index("length"))
        reports, reasons[fitting] = self._judged(rows)
        parts = (
            tuple(replace(part, is_simulation=True) for part in reports.parts)
            if is_simulation
            else reports.parts
        )
        whole = replace(reports, parts=parts, is_simulation=is_simulation, phase=phase)
        refused = {int(i): _ORDER[reasons[i] - 1] for i in np.flatnonzero(reasons)}
        return Unpacked(whole, np.flatnonzero(reasons == 0), refused)

    def _fitting(self, payloads: Payloads) -> tuple[Bytes, Positions]:
        """Return the payloads that have the length of a report as rows, and where they stand."""
        if isinstance(payloads, np.ndarray):
            _check_rows(payloads)
            rows = payloads if payloads.shape[1] == self.length else np.empty((0, self.length), np.uint8)
            return rows, np.arange(len(rows))
        _check_bytes(payloads)
        lengths = np.fromiter(map(len, payloads), dtype=np.intp, count=len(payloads))
        places = np.flatnonzero(lengths == self.length)
        own = payloads if len(places) == len(payloads) else [payloads[i] for i in places.tolist()]
        return np.frombuffer(b"".join(own), dtype=np.uint8).reshape(len(places), self.length), places

    def _judged(self, rows: Bytes) -> tuple[RecordReports, Positions]:
        """Return the reports that can have been made, and the reason against each row, 0 for none."""
        reasons = np.zeros(len(rows), dtype=np.intp)
        _note(reasons, "version", rows[:, 0] != WIRE_VERSION)
        parts, senders, faults = self.layout.unpacked(rows[:, 1:])
        for reason, mask in faults.items():
            _note(reasons, reason, mask)
        fine = np.flatnonzero(reasons == 0)
        reports = _of_rows(RecordReports(self.protocol, tuple(parts), tuple(senders), len(rows)), fine)
        strange = self._impossible(reports)
        reasons[fine[strange]] = 1 + _ORDER.index("impossible")
        return _of_rows(reports, np.flatnonzero(~strange)), reasons

    def _impossible(self, reports: RecordReports) -> Mask:
        """Return which reports have the right form and still cannot have been made."""
        strange = np.zeros(reports.people, dtype=np.bool_)
        responses = self.protocol.responses
        for label, part, senders in zip(self.protocol.labels, reports.parts, reports.senders, strict=True):
            if label in responses:
                strange[... if senders is None else senders] |= _failing(responses[label].check, part)
        fine = np.flatnonzero(~strange)
        strange[fine] = self.protocol.strange(_of_rows(reports, fine))
        return strange


def pack(reports: RecordReports) -> list[bytes]:
    """Return everybody's report in the wire form, see `Wire.pack`."""
    check_is("reports", reports, RecordReports, "It is what `collect` or `read_reports` returns.")
    return Wire(reports.protocol).pack(reports)


def unpack(protocol: Protocol, payloads: Sequence[bytes]) -> Unpacked:
    """Return the reports among payloads that are said to be a protocol's, see `Wire.unpack`."""
    return Wire(protocol).unpack(payloads)


_ORDER: tuple[Refusal, ...] = tuple(REFUSALS)


def _note(reasons: Positions, reason: Refusal, where: Mask) -> None:
    """Note a reason where there is none yet: they are noted in the order in which they count."""
    if where.any():
        reasons[(reasons == 0) & where] = 1 + _ORDER.index(reason)


def _check_bytes(payloads: Sequence[Any]) -> None:
    for kind in set(map(type, payloads)):
        if not issubclass(kind, bytes):
            raise invalid("payloads", "bytes, one person's report each", kind.__name__)


def _check_rows(payloads: NDArray[Any]) -> None:
    if payloads.ndim != 2 or payloads.dtype != np.uint8:
        raise invalid("payloads", "rows of bytes", f"{payloads.dtype} of shape {payloads.shape}")


def _failing(check: Callable[[Reports], object], reports: Reports) -> Mask:
    """Return which reports a mechanism refuses; halves are tried until single ones are left."""
    try:
        check(reports)
    except InputError:
        if len(reports) == 1:
            return np.ones(1, dtype=np.bool_)
        half = len(reports) // 2
        return np.concatenate([_failing(check, reports[:half]), _failing(check, reports[half:])])
    return np.zeros(len(reports), dtype=np.bool_)


def _of_rows(reports: RecordReports, rows: Positions) -> RecordReports:
    """Return the reports of some people, in order."""
    if len(rows) == reports.people:
        return reports
    places = np.full(reports.people, -1)
    places[rows] = np.arange(len(rows))
    parts: list[Reports] = []
    kept: list[Positions | None] = []
    for part, senders in zip(reports.parts, reports.senders, strict=True):
        own = rows if senders is None else np.flatnonzero(places[senders] >= 0)
        parts.append(part[own])
        kept.append(None if senders is None else places[senders[own]])
    return replace(reports, parts=tuple(parts), senders=tuple(kept), people=len(rows))
