"""Running the service: the store in a folder, the first key, uvicorn with one worker or several."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import uvicorn
from uvicorn.supervisors import Multiprocess

from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.service.app import SETTINGS, Settings
from sidelight.service.collector import Collector
from sidelight.service.errors import StoreError
from sidelight.service.keys import hash_key, make_key
from sidelight.service.logs import start_logs
from sidelight.service.metrics import SEVERAL
from sidelight.service.store import Store
from sidelight.service.stores import store_of
from sidelight.service.task import read_task

T = TypeVar("T")

STORE = "sidelight-service.db"
"""What the embedded store is called in its folder."""
_WAITING = 2048
_SERVE = "sidelight serve"
_LONGEST_NAME = 200
STOP_SECONDS = 30
"""So long requests that are under way may take when the service stops."""


@dataclass(frozen=True)
class Listening:
    """Where a service listens, with how many workers, and its certificate where it does TLS itself."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        check_whole("port", self.port, at_least=0, at_most=65_535)
        check_whole("workers", self.workers, at_least=1, at_most=256)
        if (self.certificate is None) != (self.key is None):
            raise InputError("a certificate and its key go together; give both, or let a proxy do TLS.")
        if self.certificate is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                    self.certificate, self.key
                )
            except OSError as error:
                raise InputError(
                    f"the certificate {self.certificate} with the key {self.key} cannot be used: "
                    f"{error.strerror or error}."
                ) from None

    def bind(self) -> socket.socket:
        """Return a socket that listens, or raise if the address is taken."""
        # By its protocol asyncio knows that it is TCP, and sends the last bytes of an answer without delay.
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.host, self.port))
            made.listen(_WAITING)  # who comes while workers start waits, and is not turned away
        except OSError as error:
            made.close()
            raise InputError(
                f"{self.host}:{self.port} cannot be listened on: {error.strerror}; choose another address or "
                "port."
            ) from None
        made.set_inheritable(True)
        return made

    def url(self, bound: socket.socket) -> str:
        """Return the address for people."""
        return f"http{'s' if self.certificate else ''}://{bracketed(self.host)}:{bound.getsockname()[1]}"


def bracketed(host: str) -> str:
    """Return a host as an address writes it: that of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def store_in(folder: Path) -> str:
    """Return the name of a folder's embedded store."""
    if not folder.is_dir():
        raise InputError(f"the folder {folder} does not exist; create it first.")
    return str(folder / STORE)


def first_key(store: str) -> str | None:
    """Open a store, making it where it is new, and return a key if it had none."""

    async def work(opened: Store) -> str | None:
        return None if await opened.keys() else await _add(opened, "first")

    return with_store(store, work)


def new_key(store: str, name: str) -> str:
    """Return a new key under a name; an older one of that name is worth nothing from now on."""
    if not name.strip() or len(name) > _LONGEST_NAME:
        raise invalid("name", f"a text of 1 to {_LONGEST_NAME} characters", name)
    return with_store(store, lambda opened: _add(opened, name))


def offer(store: str, document: bytes) -> str:
    """Make a task and open its first round, unless that was done before; return its id."""
    task = read_task(document)

    async def work(opened: Store) -> str:
        collector = Collector(opened)
        await collector.make(task, _SERVE)
        if (await collector.stored(task.id, 1)).state == "draft":
            await collector.open(task.id, 1, _SERVE)
        return task.id

    return with_store(store, work)


async def _add(opened: Store, name: str) -> str:
    key = make_key()
    await opened.add_key(name, hash_key(key))
    return key


def with_store(store: str, work: Callable[[Store], Awaitable[T]]) -> T:
    """Do something with a store that is opened for it; where it does not answer, an error of the input."""

    async def run() -> T:
        opened = store_of(store)
        await opened.open()
        try:
            return await work(opened)
        finally:
            await opened.close()

    try:
        return asyncio.run(run())
    except StoreError as error:
        raise InputError(str(error)) from None


def serve(settings: Settings, listening: Listening, ready: Callable[[str], None]) -> None:
    """Serve until a signal says stop; `ready` is told the address first."""
    bound = listening.bind()
    os.environ[SETTINGS] = settings.to_text()
    start_logs()
    config = uvicorn.Config(
        "sidelight.service.app:app_from_environment", factory=True, workers=listening.workers,
        access_log=False, log_config=None, proxy_headers=False, server_header=False, date_header=False,
        ssl_certfile=listening.certificate, ssl_keyfile=listening.key,
        timeout_graceful_shutdown=STOP_SECONDS, lifespan="on",
    )  # fmt: skip
    with bound:
        ready(listening.url(bound))
        if listening.workers == 1:
            uvicorn.Server(config).run(sockets=[bound])
            return
        with TemporaryDirectory() as folder:
            os.environ[SEVERAL] = folder  # where the workers' metrics are added up
            Multiprocess(config, [bound]).run()
