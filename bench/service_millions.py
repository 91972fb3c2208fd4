"""Five million devices answer one round: how long it takes, what memory it needs, whether it is exact.

Uploads are Arrow streams of 10,000 reports; one in fifty is sent twice, as by a device that heard no answer.
At the end the server's sums must be those of the reports that were made, number by number, and closing says
their people. The memory of all workers is read from time to time: after the first tenth it must not grow by
more than a fifth and 64 MiB. Which ids have counted is on the disk; a worker remembers 4 to 12 bytes of each.

    python -m bench.service_millions [REPORTS] [URL of a PostgreSQL database, or "cluster" for one of our own]
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.service import SCHEMA, TASK, Server, database, load, service
from sidelight.transport.wire import Wire

MILLIONS = 5_000_000
SIZE = 10_000
AT_ONCE = 10
AGAIN = 50
ARROW = "application/vnd.apache.arrow.stream"
_MIB = 1 << 20


def upload(ids: bytes, payloads: list[bytes], digest: str) -> bytes:
    """Return an Arrow stream of reports."""
    names = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(payloads), [None, pa.py_buffer(ids)])
    schema = pa.schema([("id", pa.binary(16)), ("report", pa.binary())], {"round": digest})
    batch = pa.record_batch([names, pa.array(payloads, pa.binary())], schema=schema)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def memory(parent: int) -> int:
    """Return how many bytes of memory a process and its children have, without what they share with files."""
    total = 0
    for process in [parent, *_children(parent)]:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
    return total * 1024


def _children(parent: int) -> Iterator[int]:
    yield from map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())


def sent(server: Server, reports: int, parent: int) -> tuple[np.ndarray, list[int]]:
    """Send everything; return the sums that it must lead to, and what the memory was from time to time."""
    protocol = TASK.design.first
    wire, ids = Wire(protocol), np.random.default_rng(1)
    total, sizes = np.zeros(0, dtype=np.int64), []
    for step, start in enumerate(range(0, reports, SIZE * AT_ONCE)):
        count = min(SIZE * AT_ONCE, reports - start)
        rng = np.random.default_rng([2, step])
        records = np.column_stack([rng.integers(0, k, count) for k in SCHEMA.sizes]).astype(np.uint8)
        made = protocol.randomise(records, seed=step)
        part = np.concatenate([item.sums.reshape(-1) for item in made.aggregate().parts])
        total = part if not step else total + part
        payloads = wire.pack(made)
        uploads = [
            upload(ids.bytes(16 * len(chunk)), chunk, server.digest)
            for chunk in (payloads[at : at + SIZE] for at in range(0, count, SIZE))
        ]
        twice = uploads[:1] if step % (AGAIN // AT_ONCE) == 0 else []
        asyncio.run(load(server.url, uploads + twice, ARROW, senders=4))
        sizes.append(memory(parent))
    return total, sizes


def main(reports: int = MILLIONS, place: str | None = None) -> None:
    """Send them, and print what it took."""
    if place == "cluster":
        with database() as url:
            main(reports, url)
        return
    with tempfile.TemporaryDirectory() as folder, service(place or folder, 1) as (server, client):
        parent = _server()
        start = time.perf_counter()
        wanted, sizes = sent(server, reports, parent)
        taken = time.perf_counter() - start
        base = f"/v1/tasks/{TASK.id}/rounds/1"
        closed = client.post(f"{base}/close")
        closed.raise_for_status()
        assert client.get(f"{base}/arrivals").json()["people"] == reports
        table = pq.read_table(io.BytesIO(client.get(f"{base}/export", params={"form": "sums"}).content))
        assert np.array_equal(table["sum"].to_numpy(), wanted), "the sums are not those of the reports"
        early, half, late = (max(sizes[: max(1, len(sizes) * part // 10)]) for part in (1, 5, 10))
        name = "sqlite" if place is None else "postgresql"
        print(
            f"service/{name}: {reports} reports in {taken:.0f} s ({reports / taken:.0f}/s), exact; memory "
            f"{early / _MIB:.0f} MiB in the first tenth, {half / _MIB:.0f} MiB in the first half, "
            f"{late / _MIB:.0f} MiB at most"
        )
        assert late <= 1.2 * early + 64 * _MIB, [size // _MIB for size in sizes]


def _server() -> int:
    """Return the process id of the server among our children: the one that runs Sidelight."""
    for child in _children(os.getpid()):
        if "serve" in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
            return child
    raise AssertionError("there is no server.")


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))
