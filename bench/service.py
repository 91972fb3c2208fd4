"""Uploads a second over loopback, beside routes that store the bytes alone, a row a report, or nothing.

The senders are in this process, the servers in others, with one worker and with two. Connections are kept;
every upload is new. All routes run under uvicorn and get the same bodies. "bare" stores each body as one row
in the same kind of store, one transaction each. "a row each" decodes it and stores a row for each report
under its id, one transaction each: the least that any server does which tells a repeated report from a new
one by an index; nothing is checked or added up. "parse" decodes it and forgets it. All take turns, a moment
each, so that whatever else the machine does meets all of them; a ratio is the median over the turns. It needs
a machine with little else to do: where many processes wait for a core, a route gets the more of it the more
connections it keeps busy, and "bare" keeps eight.

What "bare" does not do: it reads no report, checks none, adds nothing up, keeps no id unique, and answers in
one word. An index of random ids alone would cost PostgreSQL twice as much as "bare" does: see `sql_ids`.

PostgreSQL is a cluster of our own where its programs are there, or SIDELIGHT_BENCH_DATABASE, the URL of a
database that may be filled; else it is left out. `python -m bench.service_millions` sends five million.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec
import numpy as np

import sidelight as sl
from sidelight.service import Task, Terms
from sidelight.transport.wire import Wire

SIZES = {1: 160, 100: 64, 1000: 32}
"""Reports of an upload, and how many uploads a route gets in one turn."""
TURNS = 7
WORKERS = (1, 2)
SENDERS = 16
DATABASE = "SIDELIGHT_BENCH_DATABASE"
ROUTES = ("service", "bare", "a row each", "parse")
SCHEMA = sl.Schema(tuple(sl.categorical(f"question {i}", tuple("abcdefgh"[: 2 + i % 5])) for i in range(6)))
TASK = Task(sl.protocols.spl(SCHEMA, 3.0), "To be measured.", "nobody", terms=Terms(smallest_crowd=1))


class Server(NamedTuple):
    """Where uploads go, and the digest of the round that they are for."""

    url: str
    digest: str = "0" * 64


def payloads(people: int, seed: int) -> list[bytes]:
    """Return the reports of so many people."""
    rng, protocol = np.random.default_rng(seed), TASK.design.first
    records = np.column_stack([rng.integers(0, k, people) for k in SCHEMA.sizes]).astype(np.uint8)
    return Wire(protocol).pack(protocol.randomise(records, seed=seed))


def bodies(size: int, count: int, digest: str, seed: int) -> list[bytes]:
    """Return uploads of so many reports each."""
    ids, sent = np.random.default_rng([seed, 1]), iter(payloads(size * count, seed))
    return [
        msgspec.json.encode(
            {"round": digest, "reports": [
                {"id": b64encode(ids.bytes(16)).decode(), "report": b64encode(next(sent)).decode()}
                for _ in range(size)
            ]}
        )
        for _ in range(count)
    ]  # fmt: skip


async def load(
    url: str, uploads: Sequence[bytes], kind: str = "application/json", senders: int = SENDERS
) -> tuple[float, list[float]]:
    """Send uploads from several senders at once; return the seconds of all, and of each."""
    waiting, each, place = iter(uploads), [], urlsplit(url)
    head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: {kind}\r\nContent-Length: "

    async def sender() -> None:
        # Bytes over a socket: a library for HTTP would cost more than the service that is measured.
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 20)
        for content in waiting:
            start = time.perf_counter()
            writer.write(f"{head}{len(content)}\r\n\r\n".encode() + content)
            answer = await reader.readuntil(b"\r\n\r\n")
            said = await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", answer)[0]))
            each.append(time.perf_counter() - start)
            assert answer.startswith(b"HTTP/1.1 200"), answer + said
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(sender() for _ in range(senders)))
    return time.perf_counter() - start, each


@contextmanager
def process(*command: str) -> Iterator[Iterator[str]]:
    """Run something for a while; yields the lines that it prints."""
    running = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield iter(running.stdout or ())
    finally:
        running.terminate()
        running.wait()


@contextmanager
def service(place: str, workers: int) -> Iterator[tuple[Server, httpx.Client]]:
    """Serve the task over a store: its address, and what an operator speaks through."""
    where = ["--database", place] if "://" in place else [place]
    options = ["--port", "0", "--rate", "0", "--body", "64", "--workers", str(workers)]
    with process("sidelight", "serve", *where, *options) as lines:
        key = url = ""
        for line in lines:
            key = (re.findall(r"slk_\S+", line) or [key])[0]
            if found := re.search(r" on (http://\S+);", line):
                url = found.group(1)
                break
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=600) as client:
            client.post("/v1/tasks", content=TASK.document).raise_for_status()
            digest = client.post(f"/v1/tasks/{TASK.id}/rounds/1/open").json()["digest"]
            yield Server(f"{url}/v1/tasks/{TASK.id}/rounds/1/reports", digest), client


@contextmanager
def beside(kind: str, place: str, workers: int) -> Iterator[Server]:
    """Serve a route that does less."""
    with process("bench.service", kind, place, str(workers)) as lines:
        yield Server(next(lines).strip())


def cell(servers: dict[str, Server], size: int, name: str) -> None:
    """Print a line for each route at one size, and the ratios."""
    count = SIZES[size]
    seconds: dict[str, list[float]] = {route: [] for route in ROUTES}
    each: dict[str, list[float]] = {route: [] for route in ROUTES}
    digest = servers["service"].digest
    for turn in range(-1, TURNS):  # the first one warms
        uploads = bodies(size, count, digest, 1000 * size + turn + 1)
        for place in range(len(ROUTES)):
            route = ROUTES[(place + turn) % len(ROUTES)]
            taken, single = asyncio.run(load(servers[route].url, uploads))
            if turn >= 0:
                seconds[route].append(taken)
                each[route] += single
    for route in ROUTES:
        rate = size * count * TURNS / sum(seconds[route])
        middle, late = np.quantile(each[route], [0.5, 0.99]) * 1000
        spread = f"p50 {middle:7.1f} ms  p99 {late:7.1f} ms"
        print(f"{name:22} {route:10} {size:5} a request {rate:10.0f} reports/s  {spread}")
    own = np.array(seconds["service"])
    ratios = [f"{np.median(np.array(seconds[route]) / own):.2f} of {route}" for route in ROUTES[1:]]
    print(f"service/{name}/{size}: {', '.join(ratios)}", flush=True)


def measured(store: str, place: str, bare: str, workers: int) -> None:
    """Measure all sizes over one store."""
    with ExitStack() as stack:
        served, client = stack.enter_context(service(place, workers))
        servers = {"service": served}
        for route in ROUTES[1:]:
            servers[route] = stack.enter_context(beside(route, bare, workers))
        for size in SIZES:
            cell(servers, size, f"{store}, {workers} worker{'s' * (workers > 1)}")
        people = client.get(f"/v1/tasks/{TASK.id}/rounds/1/arrivals").json()["people"]
        sent = sum(size * count * (TURNS + 1) for size, count in SIZES.items())
        assert people == sent, (people, sent)


@contextmanager
def database() -> Iterator[str | None]:
    """Yield the URL of a PostgreSQL database, from a cluster of our own if none is named; else None."""
    if named := os.environ.get(DATABASE):
        yield named
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        yield None
        return
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from postgres import Cluster

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        cluster = Cluster(programs[-1].parent, Path(folder))
        cluster.start()
        try:
            yield cluster.database()
        finally:
            cluster.stop("immediate")


class _Bare:
    """Stores bodies as they are, or their reports: in a SQLite file, or in a table of PostgreSQL."""

    def __init__(self, place: str) -> None:
        self.place, self.kept = place, None

    async def open(self) -> None:
        if "://" in self.place:
            import asyncpg

            self.kept = await asyncpg.create_pool(self.place, min_size=1, max_size=8)
            await self.kept.execute("CREATE TABLE IF NOT EXISTS kept (body BYTEA)")
            await self.kept.execute("CREATE TABLE IF NOT EXISTS each (id BYTEA PRIMARY KEY, report BYTEA)")
            return
        import sqlite3

        self.kept = sqlite3.connect(Path(self.place) / "bare.db", isolation_level=None, timeout=60)
        for line in ("journal_mode = WAL", "synchronous = FULL"):
            self.kept.execute(f"PRAGMA {line}")
        self.kept.execute("CREATE TABLE IF NOT EXISTS kept (body BLOB)")
        self.kept.execute("CREATE TABLE IF NOT EXISTS each (id BLOB PRIMARY KEY, report BLOB) WITHOUT ROWID")

    async def keep(self, content: bytes) -> None:
        if "://" in self.place:
            await self.kept.execute("INSERT INTO kept VALUES ($1)", content)
        else:
            self.kept.execute("INSERT INTO kept VALUES (?)", (content,))

    async def keep_each(self, reports: Sequence[tuple[bytes, bytes]]) -> None:
        if "://" in self.place:
            await self.kept.copy_records_to_table("each", records=reports)
            return
        self.kept.execute("BEGIN IMMEDIATE")
        self.kept.executemany("INSERT INTO each VALUES (?, ?)", reports)
        self.kept.execute("COMMIT")


def bare_app() -> Any:
    """Return one of the routes that do less, as the environment says, for a worker of uvicorn."""
    from contextlib import asynccontextmanager

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from sidelight.service.json_uploads import UploadIn

    kind, place = os.environ["SIDELIGHT_BENCH_ROUTE"].split("|", 1)
    decoder, bare = msgspec.json.Decoder(UploadIn), _Bare(place)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> Any:
        if kind != "parse":
            await bare.open()
        yield

    async def answer(request: Request) -> Response:
        content = await request.body()
        if kind == "bare":
            await bare.keep(content)
            return Response("stored")
        reports = decoder.decode(content).reports
        if kind == "parse":
            return Response(str(len(reports)))
        # In the order of the index, which is quicker in both stores.
        await bare.keep_each(sorted([(item.id, item.payload) for item in reports]))
        return Response("stored")

    return Starlette(routes=[Route("/", answer, methods=["POST"])], lifespan=lifespan)


def _route(kind: str, place: str, workers: str) -> None:
    """Serve one of the routes that do less."""
    import socket

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    os.environ["SIDELIGHT_BENCH_ROUTE"] = f"{kind}|{place}"
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen(512)
    bound.set_inheritable(True)
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/", flush=True)
    config = uvicorn.Config(
        "bench.service:bare_app", factory=True, access_log=False, log_level="error", workers=int(workers)
    )
    if config.workers == 1:
        uvicorn.Server(config).run(sockets=[bound])
    else:
        Multiprocess(config, [bound]).run()


def main() -> None:
    """Print rates and ratios."""
    for workers in WORKERS:
        with tempfile.TemporaryDirectory() as folder:
            measured("sqlite", folder, folder, workers)
        with database() as url:
            if url is not None:
                measured("postgresql", url, url, workers)


if __name__ == "__main__":
    _route(*sys.argv[1:]) if len(sys.argv) > 1 else main()
