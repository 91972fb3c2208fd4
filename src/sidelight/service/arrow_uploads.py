"""Uploads as Arrow streams, read message by message, so that a few bytes cannot ask for much memory.

Only plain columns are read. Columns of nulls, dictionaries and compressed buffers say in a few bytes that
millions of rows follow; they are refused before anything is made of them.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pyarrow as pa

from sidelight.service.batches import ID_BYTES, Batch
from sidelight.service.collector import hash_token
from sidelight.service.problems import ProblemError
from sidelight.transport.wire import Payloads

_BYTES = (pa.binary(), pa.large_binary())
_TYPES: dict[str, tuple[pa.DataType, ...]] = {
    "id": (pa.binary(ID_BYTES), *_BYTES),
    "report": _BYTES,
    "token": (pa.string(), pa.large_string()),
}
_NOTHING = Batch(b"", [])
# Places in the flatbuffers of Arrow's format: Message.header, RecordBatch.length and .compression.
_HEADER, _LENGTH, _COMPRESSION = 2, 0, 3


def from_arrow(body: bytes, most: int) -> tuple[str, Batch]:
    """Return the round's digest and the reports of a stream, at most so many."""
    try:
        schema, batches = _read(body, most)
        digest = (schema.metadata or {}).get(b"round", b"").decode()
        return digest, Batch.joined([_reports(batch) for batch in batches if len(batch)] or [_NOTHING])
    except (pa.ArrowException, ValueError, OSError, MemoryError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ProblemError(400, f"The upload is no Arrow stream: {reason}.") from None


def _read(body: bytes, most: int) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    messages = iter(pa.ipc.MessageReader.open_stream(body))
    first = next(messages, None)
    # Arrow takes the header of any message for that of a schema, and follows what is none out of the bytes.
    if first is None or first.type != "schema":
        raise ProblemError(400, "An Arrow upload begins with its schema.")
    schema = pa.ipc.read_schema(first)
    _check_columns(schema)
    batches, rows = [], 0
    for message in messages:
        if message.type != "record batch":
            raise ProblemError(400, f"An Arrow upload has no {message.type}; send plain columns.")
        count, is_compressed = _stated(message.metadata.to_pybytes())
        rows += count
        if is_compressed:
            raise ProblemError(400, "An Arrow upload has no compressed buffers; send plain columns.")
        if count < 0 or rows > most:
            raise ProblemError(413, f"An upload has at most {most} reports; send fewer at once.")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        batches.append(batch)
    return schema, batches


def _check_columns(schema: pa.Schema) -> None:
    names = schema.names
    if not {"id", "report"} <= set(names) <= set(_TYPES) or len(names) != len(set(names)):
        raise ProblemError(
            400, "An Arrow upload has the columns id and report, and token where one is needed."
        )
    for field in schema:
        if field.type not in _TYPES[field.name]:
            wanted = " or ".join(map(str, _TYPES[field.name]))
            raise ProblemError(400, f"The column {field.name} of an Arrow upload is {wanted}.")


def _reports(batch: pa.RecordBatch) -> Batch:
    """Return the reports of a record batch that was validated."""
    names, payloads = batch.column("id"), batch.column("report")
    ids = [] if names.null_count or payloads.null_count else _cells(names)
    if not isinstance(ids, np.ndarray) or ids.shape[1] != ID_BYTES:
        raise ProblemError(400, f"Every id is {ID_BYTES} bytes and every report some; one is not.")
    tokens = batch.column("token").to_pylist() if "token" in batch.schema.names else ()
    hashes = [None if token is None else hash_token(token) for token in tokens]
    return Batch(ids.tobytes(), _cells(payloads), hashes if any(hashes) else ())


def _cells(column: pa.Array) -> Payloads:
    """Return the bytes of a column's cells, as rows where all have one length."""
    *_, ends, content = column.buffers()
    if pa.types.is_fixed_size_binary(column.type):
        shape = (len(column), column.type.byte_width)
        return np.frombuffer(content, dtype=np.uint8, count=prod(shape)).reshape(shape)
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    places = np.frombuffer(ends, dtype=kind, count=len(column) + 1)
    size = places[1] - places[0]
    if not size or np.any(np.diff(places) != size):
        return list(column.to_pylist())
    return np.frombuffer(content, dtype=np.uint8)[places[0] : places[-1]].reshape(-1, size)


def _stated(message: bytes) -> tuple[int, bool]:
    """Return how many rows a record batch says it has, and whether it is compressed.

    The message has been verified by Arrow, which does not tell either before it has made the columns.
    """
    header = _field(message, _number(message, 0, 4), _HEADER)
    batch = header + _number(message, header, 4)
    length = _field(message, batch, _LENGTH)
    return _number(message, length, 8) if length else 0, bool(_field(message, batch, _COMPRESSION))


def _field(message: bytes, table: int, place: int) -> int:
    """Return where a field of a flatbuffer's table is; 0 if it is left out."""
    directory = table - _number(message, table, 4)
    slot = 4 + 2 * place
    offset = _number(message, directory + slot, 2) if slot < _number(message, directory, 2) else 0
    return table + offset if offset else 0


def _number(message: bytes, start: int, size: int) -> int:
    return int.from_bytes(message[start : start + size], "little", signed=True)
