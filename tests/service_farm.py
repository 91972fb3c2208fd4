"""Workers of a service that start in a moment, so that many can be killed: each is a fork of one process.

Run as a script it takes orders, a line of JSON each: `listen` makes a socket and says its port; `start`, with
a port and the settings, forks a worker and says its process id.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import httpx
import numpy as np

from conftest import AT_MOST, usual_signals
from service_cases import NOW, task
from service_http import body
from sidelight.service.app import SETTINGS, Settings
from sidelight.service.batches import Submission
from sidelight.service.collector import Collector
from sidelight.service.rates import Limits
from sidelight.service.stores import store_of
from sidelight.service.task import Task

_BACK_OFF = 0.05
_ONCE = (
    "sidelight.service.postgres", "sidelight.service.sqlite", "uvicorn.loops.auto", "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)  # fmt: skip
"""What every worker loads; it is loaded before the forks."""


class _Nursery:
    """The process whose forks the workers are; one for all tests, since it takes seconds to load."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, preexec_fn=usual_signals, start_new_session=True,
            env=os.environ | {
                "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
        )  # fmt: skip
        atexit.register(self._close)

    def ask(self, *words: str) -> int:
        """Give an order, and return the number that it is answered with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def _close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=AT_MOST)


@cache
def _nursery() -> _Nursery:
    return _Nursery()


class Farm:
    """Workers over one store, behind sockets of their own."""

    def __init__(self, place: str, sockets: int = 1) -> None:
        self._settings = Settings(place, Limits(rate=0)).to_text()
        self._ports = [_nursery().ask("listen") for _ in range(sockets)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self.workers: list[int] = []

    def start(self, number: int = 0) -> None:
        """Start a worker on a socket."""
        self.workers.append(_nursery().ask("start", str(self._ports[number]), self._settings))

    def kill(self, place: int) -> None:
        """Kill a worker without a word."""
        os.kill(self.workers.pop(place), signal.SIGKILL)

    def close(self) -> None:
        """Kill everything."""
        while self.workers:
            self.kill(0)


def prepared(place: str) -> tuple[Task, str]:
    """Open a round in a new store; return its task and the round's digest."""
    made = task()

    async def run() -> str:
        store = store_of(place)
        await store.open()
        collector = Collector(store, clock=lambda: NOW)
        await collector.make(made)
        await collector.open(made.id, 1)
        digest = (await collector.asked(made.id, 1)).round.digest
        await store.close()
        return digest

    return made, asyncio.run(run())


def check_sums(place: str, made: Task, reports: Sequence[Submission]) -> None:
    """Assert that the sums are those of these reports, each once, and that the trail replays."""

    async def run() -> None:
        store = store_of(place)
        await store.open()
        collector = Collector(store)
        asked = await collector.asked(made.id, 1)
        wanted = asked.tally.row(asked.wire.unpack([item.payload for item in reports]).reports)
        assert np.array_equal(await store.sums(asked.key), wanted)
        await collector.trail(made.id)
        await store.close()

    asyncio.run(run())


async def send(client: httpx.AsyncClient, url: str, digest: str, items: Sequence[Submission]) -> list[str]:
    """Send an upload until it is answered, the same bytes each time; return the words."""
    while True:
        try:
            answer = await client.post(url, json=body(digest, items))
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            return [item["status"] for item in answer.json()["answers"]]
        assert answer is None or answer.status_code == 503, answer.text
        await asyncio.sleep(_BACK_OFF)  # so that senders leave the processor to who starts again


def _main() -> None:
    import uvicorn

    from sidelight.service.app import app_from_environment

    for name in _ONCE:
        import_module(name)
    sockets: dict[str, socket.socket] = {}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order, *words = json.loads(line)
        if order == "listen":
            made = socket.create_server(("127.0.0.1", 0), backlog=512)
            answer = made.getsockname()[1]
            sockets[str(answer)] = made
        elif (answer := os.fork()) == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            port, os.environ[SETTINGS] = words
            config = uvicorn.Config(
                app_from_environment, factory=True, access_log=False, log_config=None, ws="none"
            )
            uvicorn.Server(config).run(sockets=[sockets[port]])
            os._exit(0)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    _main()
