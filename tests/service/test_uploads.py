"""Uploads as columns are what they are report by report: JSON at once and strictly, Arrow and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from service_cases import task
from service_http import body, opened, path, with_service
from sidelight.service.arrow_uploads import _field, _number, from_arrow
from sidelight.service.batches import Batch, Submission
from sidelight.service.json_uploads import _at_once, from_json, strictly
from sidelight.service.problems import ProblemError
from sidelight.service.uploads import ARROW as ARROW_TYPE

COUNTS = pytest.mark.parametrize(
    "count", [400, pytest.param(100_000, marks=pytest.mark.deep)], ids=["quick", "deep"]
)
ARROW = {"Content-Type": ARROW_TYPE}
DIGEST = "0123456789abcdef" * 4
Read = tuple[str, list[bytes], list[bytes], list[bytes | None]] | tuple[int, str]


def read(reader: Callable[[bytes], tuple[str, Batch]], content: bytes) -> Read:
    """What a reader makes of an upload: its reports, or the refusal."""
    try:
        digest, batch = reader(content)
    except ProblemError as error:
        return error.status, error.detail
    return digest, batch.names, list(batch.listed), list(batch.tokens) or [None] * len(batch)


def reports(rng: np.random.Generator, most: int = 90) -> list[Submission]:
    """Reports of one length, or nearly; few or many."""
    size, strange = int(rng.integers(0, 9)), rng.random() < 0.1
    return [
        Submission(rng.bytes(16), rng.bytes(size + (strange and int(rng.integers(0, 30) == 0))))
        for _ in range(int(rng.integers(0, most)))
    ]


def written(rng: np.random.Generator, items: list[Submission]) -> bytes:
    """An upload as one sender or another writes it."""
    upload = body(DIGEST, items)
    if rng.random() < 0.1 and items:
        upload["reports"][int(rng.integers(len(items)))]["token"] = "given"
    separators = [(",", ":"), (", ", ": "), (",\n\t", " :\r\n")][int(rng.integers(3))]
    return json.dumps(upload, separators=separators, indent=[None, None, 1][int(rng.integers(3))]).encode()


SIGNS = np.frombuffer(b'"\\=A/+_ ,:{}[]u0041\n\x00\x80\xc3\xa9', dtype=np.uint8)


def broken(rng: np.random.Generator, content: bytes) -> bytes:
    """An upload with something else in it, in few places."""
    changed = np.frombuffer(content, dtype=np.uint8).copy()
    kind = int(rng.integers(6))
    if kind == 0 or not len(content):
        return content
    if kind == 1:
        at = rng.integers(0, len(changed), int(rng.integers(1, 4)))
        changed[at] = rng.choice(SIGNS, len(at))
    elif kind == 2:
        return content[: int(rng.integers(len(content)))]
    elif kind == 3:
        at = int(rng.integers(len(content)))
        return content[:at] + rng.choice(SIGNS, int(rng.integers(1, 9))).tobytes() + content[at:]
    elif kind == 4:  # signs that stand for others, in the place of as many
        at = int(rng.integers(len(content)))
        return content[:at] + b"\\u0041" + content[at + 6 :]
    else:
        old, new = [(b"==", b"A="), (b"==", b"AA"), (b'"id"', b'"Id"'), (b"A", b"=")][int(rng.integers(4))]
        return content.replace(old, new, int(rng.integers(1, 4)))
    return changed.tobytes()


@COUNTS
def test_json_at_once_is_what_it_is_report_by_report(count: int) -> None:
    rng, quick, refused = np.random.default_rng(1), 0, 0
    for _ in range(count):
        content = broken(rng, written(rng, reports(rng)))
        wanted = read(strictly, content)
        assert read(from_json, content) == wanted, content
        at_once = _at_once(content)
        assert at_once is None or read(lambda _, found=at_once: found, content) == wanted, content
        quick += at_once is not None
        refused += len(wanted) == 2
    assert quick > count / 10
    assert refused > count / 10


def stream(rng: np.random.Generator, items: list[Submission], tokens: list[str | None]) -> bytes:
    """The same upload as an Arrow stream, with columns of any type, in record batches of any size."""
    types = [pa.binary(), pa.large_binary(), pa.binary(16)]
    columns = {
        "id": pa.array([item.id for item in items], types[int(rng.integers(3))]),
        "report": pa.array([item.payload for item in items], types[int(rng.integers(2))]),
    }
    if tokens:
        columns["token"] = pa.array(tokens, pa.string())
    table = pa.table(columns).replace_schema_metadata({"round": DIGEST})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=int(rng.integers(1, 120)))
    return out.getvalue()


@COUNTS
def test_an_arrow_stream_is_what_the_same_reports_are_as_json(count: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(count):
        items = reports(rng)
        tokens = [["given", None][int(rng.integers(2))] for _ in items] if rng.random() < 0.2 else []
        upload = body(DIGEST, items)
        for item, token in zip(upload["reports"], tokens, strict=False):
            item["token"] = token
        wanted = read(strictly, json.dumps(upload).encode())
        assert read(lambda content: from_arrow(content, 100), stream(rng, items, tokens)) == wanted


@COUNTS
def test_a_hostile_arrow_stream_is_read_or_refused(count: int) -> None:
    rng, refused = np.random.default_rng(3), 0
    for _ in range(count):
        whole = np.frombuffer(stream(rng, reports(rng, 12), []), dtype=np.uint8).copy()
        at = rng.integers(0, len(whole), int(rng.integers(1, 6)))
        whole[at] = rng.choice([0, 1, 2, 4, 8, 127, 128, 255, *whole[:3]], len(at))
        refused += len(read(lambda content: from_arrow(content, 100), whole.tobytes())) == 2
    assert refused > count / 10


def test_a_stream_whose_first_message_is_no_schema_is_refused(tmp_path: Path) -> None:
    made = task()

    async def work(client) -> None:
        await opened(client, made)
        for content in _first_messages():
            answer = await client.post(f"{path(made)}/reports", content=content, headers=ARROW)
            assert answer.status_code == 400, answer.text

    with_service(str(tmp_path / "store.db"), work)


def _first_messages() -> Iterator[bytes]:
    """Streams that begin with a record batch, with nothing, and with messages of every other type."""
    whole = stream(np.random.default_rng(4), [Submission(bytes(16), b"x")] * 3, [])
    message = next(iter(pa.ipc.MessageReader.open_stream(whole))).metadata.to_pybytes()
    start = whole.index(message)
    yield b""
    yield whole[start + len(message) :]
    kind = start + _field(message, _number(message, 0, 4), 1)
    yield from (whole[:kind] + bytes([other]) + whole[kind + 1 :] for other in (0, *range(2, 256)))
