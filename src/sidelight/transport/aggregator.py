"""The streaming aggregator: batches of reports come, sums stay, and no batch counts twice.

It keeps the sums of every protocol and the ids of the batches in them, never a report. Sums are whole
numbers, so the order in which batches come, and how aggregators are merged, changes nothing in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from sidelight.estimation.estimates import Estimates, Estimator, estimate
from sidelight.estimation.unbiased import About
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.files import REPORTS_KEY
from sidelight.foundation.html import listed
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordSums, fingerprint
from sidelight.transport.report_files import (
    Form,
    HeadFile,
    Sealer,
    Stamp,
    check_seal,
    collected_of,
    form_of,
    head_of,
    stamp_of,
)

ROWS = 1 << 18
"""So many reports of a file are in memory at a time."""
_MOST_HEADS = 64


@dataclass(frozen=True)
class Batch:
    """What is kept of a batch beside its part of the sums: its seal, and its protocol's fingerprint."""

    seal: str
    people: int
    protocol: str


class Aggregator:
    """Takes batches of one collection, which may have two phases, and estimates from them at any time.

    Reports of the expected protocols are taken; by default the first batch decides: its protocol, and the
    second phases that belong to it. The batches taken are kept by id.
    """

    def __init__(self, expected: Sequence[Protocol] = ()) -> None:
        self.expected = {fingerprint(protocol): protocol for protocol in expected}
        self._forms: dict[str, Form] = {}
        self._heads: dict[bytes, tuple[Form, HeadFile]] = {}
        self._sums: dict[str, RecordSums] = {}
        self.batches: dict[str, Batch] = {}

    @classmethod
    def from_parts(
        cls,
        sums: Iterable[RecordSums],
        batches: Mapping[str, Batch],
        *,
        is_simulation: bool,
        expected: Sequence[Protocol] = (),
    ) -> Aggregator:
        """Return an aggregator that goes on from sums and the batches in them."""
        made = cls(expected)
        for part in sums:
            form = form_of(part.protocol)
            made._check_belongs(form)
            made._forms[form.fingerprint] = form
            made._sums[form.fingerprint] = replace(part, is_simulation=part.is_simulation or is_simulation)
        made.batches.update(batches)
        made.check()
        return made

    @property
    def sums(self) -> tuple[RecordSums, ...]:
        """The sums of every protocol met."""
        return tuple(self._sums.values())

    @property
    def people(self) -> int:
        """How many people's reports are in the sums."""
        return sum(part.people for part in self._sums.values())

    @property
    def is_simulation(self) -> bool:
        """Whether the noise of some batch came from a seed."""
        return any(part.is_simulation for part in self._sums.values())

    def take(self, reports: str | Path | pa.Table | pa.RecordBatch, label: str = "") -> bool:
        """Add a batch up; return whether it was new. One that is refused raises and changes nothing.

        It is a report file, or an Arrow table or record batch as `batch_to_arrow` makes it. The label names
        it in errors; by default a file's path does.
        """
        if isinstance(reports, (str, Path)):
            with opened(reports) as handle:
                return self.take_file(handle, label or str(reports))[1]
        if isinstance(reports, pa.RecordBatch):
            reports = pa.Table.from_batches([reports])
        if not isinstance(reports, pa.Table):
            raise invalid("reports", "a file, an Arrow table or a record batch", type(reports).__name__)
        with _naming(label or "the batch"):
            return self._take(reports.schema, [reports], label or "the batch")[1]

    def take_file(self, handle: BinaryIO, label: str) -> tuple[str, bool]:
        """Add up an open report file, a run of rows at a time; return its id and whether it was new."""
        import pyarrow.parquet as pq

        with _naming(label):
            file = pq.ParquetFile(handle, pre_buffer=False)  # a thread that reads ahead would cost more
            if file.metadata.num_rows <= ROWS:
                return self._take(file.schema_arrow, [file.read(use_threads=False)], label)
            batches = file.iter_batches(ROWS, use_threads=False)
            chunks = (pa.Table.from_batches([batch]) for batch in batches)
            return self._take(file.schema_arrow, chunks, label)

    def _take(self, schema: pa.Schema, chunks: Iterable[pa.Table], label: str) -> tuple[str, bool]:
        form, head = self._head(schema, label)
        if head.round is not None:
            raise InputError(
                f"{label} is round {head.round.number} of a panel; sums of several rounds would count people "
                "several times: estimate the files of all rounds together."
            )
        key = form.fingerprint
        stamp = stamp_of(schema.metadata, label)
        self._check_belongs(form, label)
        sums = _added_up(chunks, form, head, stamp, label)  # first: damage must not pass for a repetition
        taken = self.batches.get(stamp.id)
        if taken is not None:
            if taken.seal == stamp.seal:
                return stamp.id, False
            raise InputError(
                f"{label} carries the id {stamp.id!r} of a batch that was taken already, with other reports; "
                "give it an id of its own."
            )
        # Last of all, so that a batch that is refused has changed nothing.
        self._sums[key] = self._sums[key] + sums if key in self._sums else sums
        self._forms[key] = form
        self.batches[stamp.id] = Batch(stamp.seal, sums.people, key)
        return stamp.id, True

    def _head(self, schema: pa.Schema, label: str) -> tuple[Form, HeadFile]:
        """Return what a batch says of itself; files of as many people say the same, which is read once."""
        said = (schema.metadata or {}).get(REPORTS_KEY, b"")
        known = self._heads.get(said)
        if known is not None and tuple(schema.names) == known[0].protocol.labels:
            return known
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        self._heads[said] = head_of(schema, label, self._forms)
        return self._heads[said]

    def _check_belongs(self, form: Form, label: str = "the state") -> None:
        """Raise unless reports of a protocol are part of this collection."""
        protocol, key = form.protocol, form.fingerprint
        holds = f"{label} holds reports of {protocol.name!r} ({key})"
        if self.expected and key not in self.expected:
            wanted = ", ".join(f"{item.name!r} ({name})" for name, item in self.expected.items())
            raise InputError(f"{holds}; this collection takes {wanted}.")
        collection = protocol.first_phase or key
        for name, part in self._sums.items():
            other = part.protocol
            if name == key:
                return
            if collection != (other.first_phase or name):
                raise InputError(f"{holds}; this collection is {other.name!r} ({name}).")
            if protocol.schema != other.schema:
                raise InputError(f"{holds}, over other attributes or values than {name}.")

    def estimate(
        self, *, estimator: Estimator = "best", confidence: float = 0.95, about: About = "collected"
    ) -> Estimates:
        """Estimate the frequencies from all batches so far, see `sidelight.estimation.estimate`."""
        return estimate(self.sums, estimator=estimator, confidence=confidence, about=about)

    def __add__(self, other: Aggregator) -> Aggregator:
        """Merge two aggregators of one collection that took different batches."""
        shared = sorted(self.batches.keys() & other.batches.keys())
        if shared:
            names = listed(shared, most=3)
            raise InputError(f"both aggregators took the batches {names}; merged, they count twice.")
        sums = dict(self._sums)
        for key, part in other._sums.items():
            self._check_belongs(other._forms[key], "the other aggregator")
            sums[key] = sums[key] + part if key in sums else part
        return Aggregator.from_parts(
            sums.values(), self.batches | other.batches,
            is_simulation=self.is_simulation or other.is_simulation,
            expected=tuple((self.expected or other.expected).values()),
        )  # fmt: skip

    def check(self) -> None:
        """Raise unless the sums are those of the batches, as they are not in the middle of a `take`."""
        people = dict.fromkeys(self._sums, 0)
        for name, batch in self.batches.items():
            if batch.protocol not in people:
                raise InputError(f"the batch {name!r} is of a protocol without sums, {batch.protocol!r}.")
            people[batch.protocol] += batch.people
        for key, part in self._sums.items():
            if part.people != people[key]:
                raise InputError(
                    f"the sums of {key} hold {part.people} people, their batches {people[key]}; start again "
                    "from the last checkpoint."
                )


def _added_up(chunks: Iterable[pa.Table], form: Form, head: HeadFile, stamp: Stamp, label: str) -> RecordSums:
    """Return the sums of a batch whose reports are complete and as they were sealed."""
    sealer, sums = Sealer(), None
    for table in chunks:
        collected = collected_of(table, form, head, label)
        sealer.add(collected)
        try:
            part = collected.aggregate()
        except InputError as error:
            if sums is None:
                raise
            raise InputError(f"{label}, from row {sums.people} on: {error}") from None
        sums = part if sums is None else sums + part
    if sums is None:
        sums = form.nobody.aggregate()
        sealer.add(form.nobody)
    if sums.people != head.people:
        raise InputError(f"{label} has {sums.people} reports, its metadata say {head.people}.")
    seal = sealer.seal(stamp.id, form.fingerprint, is_simulation=head.is_simulation)
    check_seal(seal, stamp, label)
    return sums


def opened(path: str | Path) -> BinaryIO:
    """Open a report file, or raise naming it."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


@contextmanager
def _naming(label: str) -> Iterator[None]:
    """Turn whatever a bad batch raises into one line that names it, since one must not stop the rest."""
    try:
        yield
    except InputError as error:
        message = str(error)
        raise InputError(message if label in message else f"{label}: {message}") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or ["empty"])[0]
        raise InputError(f"{label} is not a Parquet file, or it is truncated: {reason}") from None
