"""Starting the studio: the table, the state's file, the address, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import locked, read_text
from sidelight.project.file import Project
from sidelight.service.server import Listening
from sidelight.studio.app import make_app
from sidelight.studio.document import first_document
from sidelight.studio.guard import Keys, hosts_of
from sidelight.studio.history import History, Step, read_state
from sidelight.studio.office import Office
from sidelight.studio.opened import Place, open_table
from sidelight.studio.projects import choices_of, settings_of
from sidelight.studio.session import Session

USUAL_PORT = 8765
"""The port where it is free, so that a page goes on after the studio was started again; else any."""
_STOP_SECONDS = 2


@dataclass(frozen=True)
class Address:
    """Where the studio listens: on this machine alone unless another host is named."""

    host: str = "127.0.0.1"
    port: int | None = None

    def __post_init__(self) -> None:
        if self.port is not None:
            check_whole("port", self.port, at_least=0, at_most=65_535)

    def bind(self) -> socket.socket:
        """Return a socket that listens."""
        if self.port is not None:
            return Listening(self.host, self.port).bind()
        try:
            return Listening(self.host, USUAL_PORT).bind()
        except InputError:
            return Listening(self.host, 0).bind()


def serve(
    place: Place, path: Path, address: Address, ready: Callable[[str, Session], None],
    project: Project | None = None,
) -> None:  # fmt: skip
    """Serve the studio until it is interrupted; `ready` is told the address to open, with its token."""
    with contextlib.closing(locked(path, "state", "close the other studio, or name another with --state")):
        session, key = open_session(place, path, project)
        keys = Keys() if key is None else Keys(key)
        with address.bind() as listening:
            port = listening.getsockname()[1]
            office = Office(session, path, keys.key)
            try:
                app = make_app(office, keys, hosts_of(address.host, port))
                ready(f"{Listening(address.host, port).url(listening)}/?token={keys.token}", session)
                _run(uvicorn.Config(
                    app, log_level="warning", access_log=False, lifespan="off", server_header=False,
                    timeout_graceful_shutdown=_STOP_SECONDS,
                ), listening, office)  # fmt: skip
            finally:
                office.close()


def _run(config: uvicorn.Config, listening: socket.socket, office: Office) -> None:
    """Run the server; streams end with it, or it would wait for pages that listen."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            office.hush()
            await super().shutdown(sockets)

    asyncio.run(Server(config).serve([listening]))


def open_session(place: Place, path: Path, project: Project | None = None) -> tuple[Session, str | None]:
    """Return the session that a file holds, with the key of its pages, or a new one, as a project decided."""
    if path.exists():
        history, file = read_state(
            read_text(path, f"{path} is not UTF-8 text; a state of the studio is JSON."), str(path)
        )
        opened = open_table(place, history.present.columns)
        return Session.start(place, history, opened, file.revision), file.key
    opened = open_table(place, {})
    document = first_document(opened.table.rows, None if project is None else settings_of(project))
    if project is not None:
        project.check_columns(opened.schema.names)
        draft = document.plans[0].model_copy(update={"choices": choices_of(project, opened)})
        document = document.with_plan(draft)
    return Session.start(place, History((Step(document),)), opened), None
