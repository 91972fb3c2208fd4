"""Report files: Parquet, one column for each part, with the protocol and a version in the metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelight.collection.describing import (
    Strict,
    check_version,
    parsed_text,
    protocol_data,
    protocol_from,
    validated,
)
from sidelight.collection.protocol import Codes, Collected, Protocol, fingerprint
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import strict_json, write_atomically
from sidelight.mechanisms import reports_from_arrow, reports_to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

REPORTS_VERSION = 1
_KEY = b"sidelight"


class _Head(Strict):
    version: int
    people: int
    is_simulation: bool
    fingerprint: str
    protocol: dict[str, Any]


def write_reports(collected: Collected, path: str | Path) -> Path:
    """Write reports to a .parquet file; it appears whole or not at all."""
    import pyarrow.parquet as pq

    if Path(path).suffix.lower() != ".parquet":
        raise InputError(f"{path} must end in .parquet.")
    return write_atomically(path, lambda temporary: pq.write_table(to_arrow(collected), temporary))


def read_reports(path: str | Path) -> Collected:
    """Read reports from a .parquet file, strictly: nothing is guessed, nothing is repaired."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise InputError(f"there is no file {path}.")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a Parquet file, or it is truncated: {reason}") from None
    return from_arrow(table, str(path))


def to_arrow(collected: Collected) -> pa.Table:
    """Return reports as an Arrow table; a part that a person did not send is missing."""
    import pyarrow as pa

    columns = []
    for reports, senders in zip(collected.parts, collected.senders, strict=True):
        column = reports_to_arrow(reports)
        if senders is not None:
            places = np.zeros(collected.people, dtype=np.int64)
            places[senders] = np.arange(len(senders))
            absent = np.ones(collected.people, dtype=bool)
            absent[senders] = False
            column = column.take(pa.array(places, mask=absent))
        columns.append(column)
    head = {
        "version": REPORTS_VERSION,
        "people": collected.people,
        "is_simulation": collected.is_simulation,
        "fingerprint": fingerprint(collected.protocol),
        "protocol": protocol_data(collected.protocol),
    }
    table = pa.table(columns, names=list(collected.protocol.labels))
    return table.replace_schema_metadata({_KEY: json.dumps(head, ensure_ascii=False, allow_nan=False)})


def from_arrow(table: pa.Table, label: str = "the reports") -> Collected:
    """Return the reports that `to_arrow` made a table of."""
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise InputError(f"{label} holds no reports: its metadata name no protocol; collect with Sidelight.")
    data = parsed_text(metadata[_KEY].decode("utf-8", "replace"), label, strict_json)
    check_version(data, label, REPORTS_VERSION, "report file")
    head = validated(_Head, data, label)
    protocol = protocol_from(head.protocol, label)
    if fingerprint(protocol) != head.fingerprint:
        raise InputError(f"{label}: the protocol was changed after the reports were made; collect again.")
    if tuple(table.column_names) != protocol.labels:
        raise InputError(
            f"{label} has the columns {', '.join(table.column_names)}; its protocol reports "
            f"{', '.join(protocol.labels)}."
        )
    if table.num_rows != head.people:
        raise InputError(f"{label} has {table.num_rows} reports, its metadata say {head.people}.")
    return _collected(table, protocol, head.is_simulation, label)


def _collected(table: pa.Table, protocol: Protocol, is_simulation: bool, label: str) -> Collected:
    partial = protocol.kind == "sample"
    expected = to_arrow(protocol.randomise(no_records(protocol), seed=0)).schema
    parts, senders = [], []
    for name in protocol.labels:
        column = table.column(name).combine_chunks()
        if column.type != expected.field(name).type:
            raise InputError(
                f"{label}: the column {name!r} holds {column.type}, its protocol reports "
                f"{expected.field(name).type}."
            )
        present = np.asarray(column.is_valid())
        if not partial and not present.all():
            missing = len(present) - int(present.sum())
            raise InputError(f"{label}: {missing} reports of {name!r} are missing; everyone must report it.")
        kept = column.drop_null() if partial else column
        parts.append(reports_from_arrow(kept, is_simulation=is_simulation))
        senders.append(np.flatnonzero(present) if partial else None)
    sent = np.bincount(np.concatenate([rows for rows in senders if rows is not None] or [np.arange(0)]))
    if partial and (len(sent) != table.num_rows or np.any(sent != 1)):
        raise InputError(f"{label}: everyone must report exactly one of {', '.join(protocol.labels)}.")
    return Collected(protocol, tuple(parts), tuple(senders), table.num_rows, is_simulation)


def no_records(protocol: Protocol) -> Codes:
    """Return the record of first values, for the form that its report has."""
    return np.zeros((1, len(protocol.schema)), dtype=np.uint8)
