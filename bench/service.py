"""Uploads a second over loopback, beside a bare route that stores the bytes and one that only parses them.

The senders are in this process, the server in another. Connections are kept; every upload is new. All routes
run under uvicorn with the same bodies: "bare" stores each body in SQLite (WAL, FULL), one transaction each;
"parse" decodes it and forgets it. A PostgreSQL database is named by SIDELIGHT_BENCH_DATABASE, or left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np

import sidelight as sl
from sidelight.service import Task, Terms
from sidelight.transport.wire import Wire

SIZES = {1: 600, 100: 120, 1000: 30}
"""Reports of an upload, and how many uploads are sent."""
SENDERS = 16
DATABASE = "SIDELIGHT_BENCH_DATABASE"
SCHEMA = sl.Schema(tuple(sl.categorical(f"question {i}", tuple("abcdefgh"[: 2 + i % 5])) for i in range(6)))
TASK = Task(sl.protocols.spl(SCHEMA, 3.0), "To be measured.", "nobody", terms=Terms(smallest_crowd=1))


def bodies(size: int, digest: str, seed: int) -> list[bytes]:
    """Return uploads of so many reports each."""
    rng = np.random.default_rng(seed)
    uploads = []
    protocol = TASK.design.first
    for number in range(SIZES[size]):
        records = np.column_stack([rng.integers(0, k, size) for k in SCHEMA.sizes]).astype(np.uint8)
        payloads = Wire(protocol).pack(protocol.randomise(records, seed=number))
        reports = [
            {"id": b64encode(rng.bytes(16)).decode(), "report": b64encode(payload).decode()}
            for payload in payloads
        ]
        uploads.append(msgspec.json.encode({"round": digest, "reports": reports}))
    return uploads


async def load(url: str, uploads: list[bytes]) -> tuple[float, list[float]]:
    """Send uploads from several senders at once; return the seconds of all, and of each."""
    waiting, each = iter(uploads), []
    headers = {"Content-Type": "application/json"}

    async def sender(client: httpx.AsyncClient) -> None:
        for content in waiting:
            start = time.perf_counter()
            answer = await client.post(url, content=content, headers=headers)
            each.append(time.perf_counter() - start)
            assert answer.status_code == 200, answer.text

    async with httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=SENDERS)) as client:
        start = time.perf_counter()
        await asyncio.gather(*(sender(client) for _ in range(SENDERS)))
        return time.perf_counter() - start, each


def measured(name: str, url: str, digest: str) -> dict[int, float]:
    """Print one line for each size, and return the reports a second."""
    rates = {}
    for size in SIZES:
        asyncio.run(load(url, bodies(size, digest, 1000 + size)[:SENDERS]))  # warm, with other ids
        seconds, each = asyncio.run(load(url, bodies(size, digest, size)))
        rates[size] = size * SIZES[size] / seconds
        middle, late = np.quantile(each, [0.5, 0.99]) * 1000
        spread = f"p50 {middle:7.1f} ms  p99 {late:7.1f} ms"
        print(f"{name:24} {size:5} a request {rates[size]:10.0f} reports/s  {spread}")
    return rates


def serve(*options: str) -> tuple[subprocess.Popen[str], str, str]:
    """Start `sidelight serve`; return it, its address and its key."""
    command = [sys.executable, "-m", "sidelight", "serve", "--port", "0", "--rate", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    key = url = ""
    for line in process.stdout or ():
        key = (re.findall(r"slk_\S+", line) or [key])[0]
        if found := re.search(r" on (http://\S+);", line):
            url = found.group(1)
            break
    return process, url, key


def ours(name: str, *options: str) -> dict[int, float]:
    """Measure the service."""
    process, url, key = serve(*options)
    try:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=600) as client:
            client.post("/v1/tasks", content=TASK.document).raise_for_status()
            digest = client.post(f"/v1/tasks/{TASK.id}/rounds/1/open").json()["digest"]
            rates = measured(name, f"{url}/v1/tasks/{TASK.id}/rounds/1/reports", digest)
            people = client.get(f"/v1/tasks/{TASK.id}/rounds/1/arrivals").json()["people"]
            sent = sum(size * (count + min(count, SENDERS)) for size, count in SIZES.items())
            assert people == sent, (people, sent)
    finally:
        process.terminate()
        process.wait()
    return rates


def beside(kind: str, folder: str) -> dict[int, float]:
    """Measure a route that does less."""
    command = [sys.executable, "-m", "bench.service", kind, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        return measured(kind, process.stdout.readline().strip(), "0" * 64)
    finally:
        process.terminate()
        process.wait()


def _route(kind: str, folder: str) -> None:
    """Serve the bare or the parsing route."""
    import socket

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from sidelight.service.uploads import UploadIn

    decoder = msgspec.json.Decoder(UploadIn)
    connection = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
    for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE kept (body BLOB)"):
        connection.execute(line)

    async def answer(request: Request) -> Response:
        content: Any = await request.body()
        if kind == "parse":
            return Response(str(len(decoder.decode(content).reports)))
        connection.execute("INSERT INTO kept VALUES (?)", (content,))
        return Response("stored")

    bound = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/", flush=True)
    app = Starlette(routes=[Route("/", answer, methods=["POST"])])
    config = uvicorn.Config(app, access_log=False, log_level="error")
    uvicorn.Server(config).run(sockets=[bound])


def main() -> None:
    """Print rates and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        bare, parsed = beside("bare", folder), beside("parse", tempfile.mkdtemp(dir=folder))
        stores = {"sqlite": ours("sqlite, 1 worker", folder)}
        if database := os.environ.get(DATABASE):
            stores["postgresql"] = ours("postgresql, 2 workers", "--database", database, "--workers", "2")
        for name, rates in stores.items():
            ratios = ", ".join(
                f"{size}: {rates[size] / bare[size]:.2f} of bare, {rates[size] / parsed[size]:.2f} of parse"
                for size in SIZES
            )
            print(f"service/{name}: {ratios}")


if __name__ == "__main__":
    _route(*sys.argv[1:]) if len(sys.argv) > 1 else main()
