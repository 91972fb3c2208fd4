"""Uploads as JSON: read strictly by msgspec, or at once where they look as senders write them.

All reports of a protocol have one length, so what a sender writes repeats the same text with other ids and
reports in it. Where an upload does so to the letter, both are read as columns. Whatever differs, be it by one
byte, is read strictly, and gets the answer that it gets there.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import numpy as np

from sidelight.service.batches import ID_BYTES, Batch
from sidelight.service.collector import hash_token
from sidelight.service.problems import ProblemError
from sidelight.transport.layout import Bytes

_Id = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
_Token = Annotated[str, msgspec.Meta(max_length=100)]


class ReportIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A report as JSON has it; bytes are in base 64."""

    id: _Id
    payload: bytes = msgspec.field(name="report")
    token: _Token | None = None


class UploadIn(msgspec.Struct, forbid_unknown_fields=True):
    """An upload: the digest of the round that the reports were made for, and the reports."""

    round: str
    reports: list[ReportIn]


_SHORT = 4096
"""An upload of fewer bytes is read report by report in less time."""
_decoder = msgspec.json.Decoder(UploadIn)
_bytes = msgspec.json.Decoder(bytes)


def _spaced(pattern: str) -> re.Pattern[bytes]:
    """Return a pattern in which each space stands for any number of those that JSON takes."""
    return re.compile(pattern.replace(" ", "[\t\n\r\x20]*").encode())


_FIRST = _spaced(
    r' { "round" : "(?P<round>[0-9a-f]{64})" , "reports" : \[ (?P<whole>{'
    r' "id" : "(?P<id>[A-Za-z0-9+/]{22})==" , "report" : "(?P<report>[A-Za-z0-9+/]+)(?P<padding>={0,2})" }'
    r")(?P<comma> , )"
)
_END = _spaced(r" \] } ")


def from_json(body: bytes) -> tuple[str, Batch]:
    """Return the round's digest and the reports of an upload."""
    return (len(body) >= _SHORT and _at_once(body)) or strictly(body)


def strictly(body: bytes) -> tuple[str, Batch]:
    """Return what `from_json` does, report by report."""
    try:
        upload = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, f"The upload cannot be read: {error}.") from None
    ids, payloads = [item.id for item in upload.reports], [item.payload for item in upload.reports]
    # Without its name, in whatever spelling, there is no token.
    if b'"token"' not in body and b"\\" not in body:
        return upload.round, Batch(b"".join(ids), payloads)
    tokens = [None if item.token is None else hash_token(item.token) for item in upload.reports]
    return upload.round, Batch(b"".join(ids), payloads, tokens)


def _at_once(body: bytes) -> tuple[str, Batch] | None:
    """Return what an upload holds if it is the text of its first report again and again; else None."""
    first = _FIRST.match(body)
    if first is None:
        return None
    start, size, comma = first.start("whole"), first.end() - first.start("whole"), first["comma"]
    count = (len(body) - start + len(comma)) // size
    end = start + count * size - len(comma)
    if _END.fullmatch(body, end) is None:
        return None
    rows = np.frombuffer(body[start:end] + comma, dtype=np.uint8).reshape(count, size)
    (name, after_name), (report, after_report) = (
        (at - start for at in first.span(part)) for part in ("id", "report")
    )
    if any(map(_differ, (rows[:, :name], rows[:, after_name:report], rows[:, after_report:]))):
        return None
    ids = _decoded(rows[:, name:after_name], 2)
    payloads = _decoded(rows[:, report:after_report], len(first["padding"]))
    if ids is None or payloads is None:
        return None
    return first["round"].decode(), Batch(ids.tobytes(), payloads)


def _differ(rows: Bytes) -> bool:
    """Whether not all rows are the same."""
    return rows.tobytes() != rows[:1].tobytes() * len(rows)


def _decoded(signs: Bytes, padding: int) -> Bytes | None:
    """Return the bytes that rows of base 64 stand for, without their padding; None if one is none."""
    count, length = len(signs), signs.shape[1] + padding
    # In the place of padding another sign, so that the whole is one number in base 64.
    whole = np.full((count, length), ord("A"), dtype=np.uint8)
    whole[:, : signs.shape[1]] = signs
    try:
        content = _bytes.decode(b'"' + whole.tobytes() + b'"')
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    size = 3 * length // 4
    if length % 4 or len(content) != count * size:  # what was escaped stands for fewer signs
        return None
    return np.frombuffer(content, dtype=np.uint8).reshape(count, size)[:, : size - padding]
