"""Report files: Parquet, one column for each part, with the protocol and a version in the metadata.

Reports travel in batches under an id, sealed so that damage and mix-ups are seen. The seal is a digest of the
id and of every report. It is no signature: it tells a damaged file from a whole one, not a friend from a
forger.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sidelight.foundation import files
from sidelight.foundation.arrays import Positions
from sidelight.foundation.errors import InputError, invalid, naming
from sidelight.foundation.strict import Strict, parsed_table, validated, versioned
from sidelight.mechanisms import reports_from_arrow, reports_to_arrow
from sidelight.protocols.files import protocol_data, protocol_from
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import FirstPhase, PanelRound, RecordReports, fingerprint

REPORTS_VERSION = 3
"""Since 2 a file may say that its rows are shuffled; one of version 1 is in the order of the records. Since 3
a file may be of a round of a panel; others are written in version 2."""
BATCH_KEY = b"sidelight.batch"
"""Where a report file's metadata hold the stamp."""

_SEAL_BYTES = 16
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class HeadFile(Strict):
    """What a report file's metadata say: as `RecordReports` has it, the protocol as plain data."""

    version: int
    people: int
    is_simulation: bool
    fingerprint: str
    protocol: dict[str, Any]
    phase: FirstPhase | None = None
    is_shuffled: bool = False
    round: PanelRound | None = None


@dataclass(frozen=True, eq=False)
class Form:
    """What all reports of a protocol have in common, worked out once: those of nobody, a file's columns."""

    protocol: Protocol
    fingerprint: str
    nobody: RecordReports
    columns: pa.Schema


def write_reports(
    collected: RecordReports, path: str | Path, batch: str | None = None, *, overwrite: bool = False
) -> Path:
    """Write reports to a .parquet file; it appears whole or not at all.

    They are counted once under the batch's id: the given one, the one they were read with, or a new one.
    """
    import pyarrow.parquet as pq

    if Path(path).suffix.lower() != ".parquet":
        raise InputError(f"{path} must end in .parquet.")
    files.check_overwrite(path, force=overwrite, fix=files.SAY_OVERWRITE)
    table = batch_to_arrow(collected, batch)
    return files.write_atomically(path, lambda temporary: pq.write_table(table, temporary), replace=overwrite)


def read_reports(path: str | Path) -> RecordReports:
    """Read reports from a .parquet file, strictly: nothing is guessed, nothing is repaired."""
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise InputError(f"there is no file {path}.")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a Parquet file, or it is truncated: {reason}") from None
    return from_arrow(table, str(path))


def to_arrow(collected: RecordReports) -> pa.Table:
    """Return reports as an Arrow table; a part that a person did not send is missing."""
    columns = []
    for reports, senders in zip(collected.parts, collected.senders, strict=True):
        column = reports_to_arrow(reports)
        if senders is not None:
            places = np.full(collected.people, -1)
            places[senders] = np.arange(len(senders))
            column = column.take(pa.array(places, mask=places < 0))
        columns.append(column)
    protocol = collected.protocol
    head = {
        "version": 2 if collected.round is None else REPORTS_VERSION, "people": collected.people,
        "is_simulation": collected.is_simulation,
        "fingerprint": fingerprint(protocol), "protocol": protocol_data(protocol),
        "is_shuffled": collected.is_shuffled,
        **({} if collected.phase is None else {"phase": collected.phase.model_dump()}),
        **({} if collected.round is None else {"round": collected.round.model_dump()}),
    }  # fmt: skip
    table = pa.table(columns, names=list(protocol.labels))
    return table.replace_schema_metadata(
        {files.REPORTS_KEY: json.dumps(head, ensure_ascii=False, allow_nan=False)}
    )


def batch_to_arrow(collected: RecordReports, batch: str | None = None) -> pa.Table:
    """Return reports as an Arrow table that carries a batch id: the given one, their own or a new one."""
    table = to_arrow(collected)
    entry = {BATCH_KEY: json.dumps(stamp(collected, batch).model_dump())}
    return table.replace_schema_metadata(table.schema.metadata | entry)


def from_arrow(table: pa.Table, label: str = "the reports") -> RecordReports:
    """Return the reports that `to_arrow` made a table of."""
    form, head = head_of(table.schema, label)
    if table.num_rows != head.people:
        raise InputError(f"{label} has {table.num_rows} reports, its metadata say {head.people}.")
    collected = collected_of(table, form, head, label)
    if BATCH_KEY not in (table.schema.metadata or {}):
        return collected
    sealed = stamp_of(table.schema.metadata, label)
    check_seal(stamp(collected, sealed.id).seal, sealed, label)
    return replace(collected, batch=sealed.id)


def form_of(protocol: Protocol) -> Form:
    """Return the form of a protocol's reports."""
    nobody = protocol.nobody()
    return Form(protocol, fingerprint(protocol), nobody, to_arrow(nobody).schema)


def head_of(schema: pa.Schema, label: str, known: Mapping[str, Form] | None = None) -> tuple[Form, HeadFile]:
    """Return the form of the reports and what the metadata say, checked against themselves and the columns.

    Forms that are known, by fingerprint, need not be worked out again.
    """
    metadata = schema.metadata or {}
    if files.REPORTS_KEY not in metadata:
        raise InputError(f"{label} holds no reports: its metadata name no protocol; collect with Sidelight.")
    data = parsed_table(metadata[files.REPORTS_KEY].decode("utf-8", "replace"), label)
    head = versioned(HeadFile, data, label, REPORTS_VERSION, "report file")
    form = (known or {}).get(head.fingerprint)
    if form is None or protocol_data(form.protocol) != head.protocol:
        form = form_of(protocol_from(head.protocol, label))
        if form.fingerprint != head.fingerprint:
            raise InputError(f"{label}: the protocol was changed after the reports were made; collect again.")
    try:
        names, labels = tuple(schema.names), form.protocol.labels
    except UnicodeDecodeError:
        raise InputError(f"{label} has a column whose name is no text; the file is damaged.") from None
    if names != labels:
        has, wanted = ", ".join(names), ", ".join(labels)
        raise InputError(f"{label} has the columns {has}; its protocol reports {wanted}.")
    return form, head


def collected_of(table: pa.Table, form: Form, head: HeadFile, label: str) -> RecordReports:
    """Return the reports of a table, or of some of its rows, whose metadata are read already."""
    protocol, is_simulation = form.protocol, head.is_simulation
    partial = protocol.sends_one_part
    parts, senders = [], []
    for name in protocol.labels:
        chunks, wanted = table.column(name), form.columns.field(name).type
        column = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()  # which would copy
        if column.type != wanted:
            raise InputError(
                f"{label}: the column {name!r} holds {column.type}, its protocol reports {wanted}."
            )
        if not partial and column.null_count:
            missing = column.null_count
            raise InputError(f"{label}: {missing} reports of {name!r} are missing; everyone must report it.")
        rows = _present(column) if partial else None
        kept = column if rows is None or len(rows) == len(column) else _taken(column, rows)
        parts.append(reports_from_arrow(kept, is_simulation=is_simulation))
        senders.append(rows)
    if partial and not _is_divided(senders, table.num_rows):
        raise InputError(f"{label}: everyone must report exactly one of {', '.join(protocol.labels)}.")
    return RecordReports(
        protocol, tuple(parts), tuple(senders), table.num_rows, is_simulation, head.phase,
        is_shuffled=head.is_shuffled, round=head.round,
    )  # fmt: skip


def _is_divided(senders: Sequence[Positions | None], people: int) -> bool:
    """Whether everyone is among the senders of exactly one part."""
    has_sent, sent = np.zeros(people, dtype=np.bool_), 0
    for rows in senders:
        if rows is not None:
            has_sent[rows] = True
            sent += len(rows)
    return sent == people and bool(has_sent.all())


def _present(column: pa.Array) -> Positions:
    """Return the rows of a column that have a value."""
    bits = column.buffers()[0]
    if bits is None or not column.null_count:
        return np.arange(len(column))
    end = column.offset + len(column)
    stored = np.frombuffer(bits, dtype=np.uint8, count=-(-end // 8))
    is_there = np.unpackbits(stored, count=end, bitorder="little").view(np.bool_)
    return np.flatnonzero(is_there[column.offset :])


def _taken(column: pa.Array, rows: Positions) -> pa.Array:
    """Return some rows of a column, none of which is missing."""
    if not pa.types.is_integer(column.type):
        return column.drop_null()
    stored = np.frombuffer(column.buffers()[1], dtype=column.type.to_pandas_dtype())
    return pa.array(stored[column.offset :][rows])


class Stamp(Strict):
    """What a batch says about itself: an id, under which it counts once, and a digest of id and reports."""

    id: str
    seal: str


class Sealer:
    """Digests reports as they come; how they are cut into pieces does not matter."""

    def __init__(self) -> None:
        self._digests: dict[tuple[int, str], Any] = {}
        self._people = 0

    def add(self, collected: RecordReports) -> None:
        """Digest the next piece."""
        for number, (part, senders) in enumerate(zip(collected.parts, collected.senders, strict=True)):
            self._update(number, "values", part.values)
            if part.seeds is not None:
                self._update(number, "seeds", part.seeds)
            if senders is not None:
                self._update(number, "senders", senders.astype(np.int64) + self._people)
        self._people += collected.people

    def _update(self, number: int, what: str, values: NDArray[Any]) -> None:
        digest = self._digests.setdefault((number, what), hashlib.blake2b(digest_size=_SEAL_BYTES))
        plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        digest.update(plain.reshape(-1).view(np.uint8))

    def seal(self, batch: str, made_by: str, *, is_simulation: bool, round: PanelRound | None = None) -> str:
        """Return the seal of all pieces under an id, made by the protocol of that fingerprint in a round."""
        parts = [[*key, digest.hexdigest()] for key, digest in sorted(self._digests.items())]
        said = [batch, made_by, is_simulation, self._people, parts]
        text = json.dumps(said if round is None else [*said, round.model_dump()])
        return hashlib.blake2b(text.encode(), digest_size=_SEAL_BYTES).hexdigest()


def check_batch_id(batch: object) -> str:
    """Return an id that may name a batch, or raise."""
    if not isinstance(batch, str) or not _ID.fullmatch(batch):
        raise invalid("batch", "up to 64 letters, digits, dots, dashes or underscores", batch)
    return batch


def stamp(collected: RecordReports, batch: str | None = None) -> Stamp:
    """Return the stamp of reports, under the id given, the one they were read with, or a new one."""
    given = collected.batch if batch is None else batch
    name = secrets.token_hex(16) if given is None else check_batch_id(given)
    sealer = Sealer()
    sealer.add(collected)
    made_by = fingerprint(collected.protocol)
    return Stamp(
        id=name, seal=sealer.seal(name, made_by, is_simulation=collected.is_simulation, round=collected.round)
    )


def check_seal(seal: str, stamp: Stamp, label: str) -> None:
    """Raise unless the seal of the reports that were read is the one that the stamp holds."""
    if seal != stamp.seal:
        raise InputError(f"{label}: the reports are not those that were sealed; the file is damaged.")


def stamp_of(metadata: Mapping[bytes, bytes] | None, label: str) -> Stamp:
    """Return the stamp that a report file's metadata hold."""
    stored = (metadata or {}).get(BATCH_KEY)
    if stored is None:
        raise InputError(
            f"{label} carries no batch id, so it could be counted twice; write it with `write_reports`."
        )
    data = parsed_table(stored.decode("utf-8", "replace"), f"{label}: the batch id")
    stated = validated(Stamp, data, f"{label}: the batch id")
    with naming(label):
        check_batch_id(stated.id)
    return stated
