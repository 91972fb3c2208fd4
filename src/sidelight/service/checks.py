"""What `sidelight doctor` asks a service's store: whether it answers, is up to date, is safe, has room.

Nothing is made or changed: a store that is not there is said not to be there.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sidelight.foundation.errors import InputError
from sidelight.service.migrating import NEWEST
from sidelight.service.server import STORE
from sidelight.service.stores import is_url

LEAST_FREE = 1 << 30
"""With fewer bytes free a store is said to be short of room."""
_REPORT_BYTES = 20
"""What a counted report costs on the disk: its id, and the room that pages leave free."""
_SECONDS = 5.0
_MILLION = 1_000_000


class Check(NamedTuple):
    """What was looked at, whether it is as it should be, and what was found."""

    subject: str
    is_fine: bool
    detail: str


def check_store(place: str) -> list[Check]:
    """Look at a store, named by its folder or a postgresql:// URL."""
    return asyncio.run(_postgres(place)) if is_url(place) else _sqlite(Path(place))


def _sqlite(folder: Path) -> list[Check]:
    path = folder / STORE
    if not path.is_file():
        return [Check("service store", False, f"{path} is not there; `sidelight serve {folder}` makes it")]
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            version = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            wrong = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        return [Check("service store", False, f"{path} cannot be read: {error}; restore a backup")]
    is_sound = mode == "wal" and wrong == "ok"
    return [
        _version(version),
        Check("service store", is_sound, f"{path} is sound" if is_sound else f"{path}: {mode}, {wrong}"),
        _room(folder),
    ]


def _version(version: str) -> Check:
    newer = f"has version {version}, this Sidelight knows {NEWEST}"
    if version > NEWEST:
        return Check("service tables", False, f"{newer}; use a newer Sidelight")
    return Check("service tables", True, version if version == NEWEST else f"{newer}: the start brings it up")


def _room(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    said = f"{free / (1 << 30):.1f} GiB free, about {free // _REPORT_BYTES // _MILLION} million reports"
    is_enough = free >= LEAST_FREE
    return Check("service disk", is_enough, said if is_enough else f"{said}; make room, or move the store")


async def _postgres(url: str) -> list[Check]:
    import asyncpg

    try:
        connection = await asyncpg.connect(url, timeout=_SECONDS, command_timeout=_SECONDS)
    except ValueError as error:
        raise InputError(f"the URL of the store cannot be used: {error}.") from None
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        said = f"PostgreSQL does not answer: {type(error).__name__}: {error}"
        return [Check("service store", False, f"{said}; look at its address, its user and its log")]
    try:
        return await _answers(connection)
    finally:
        await connection.close()


async def _answers(connection: Any) -> list[Check]:
    said = {
        name: await connection.fetchval("SELECT current_setting($1)", name)
        for name in ("server_version", "fsync", "synchronous_commit")
    }
    named = await connection.fetchval("SELECT to_regclass('alembic_version')")
    version = await connection.fetchval("SELECT version_num FROM alembic_version") if named else None
    size = await connection.fetchval("SELECT pg_database_size(current_database())")
    own = "" if said["synchronous_commit"] != "off" else "; synchronous_commit is off, the service sets it on"
    none = Check("service tables", True, "none yet: the start makes them")
    return [
        none if version is None else _version(version),
        Check("service store", True, f"PostgreSQL {said['server_version']}, {size / (1 << 20):.0f} MiB{own}"),
        Check(
            "service commits", said["fsync"] == "on",
            "wait for the disk" if said["fsync"] == "on" else "do not last: fsync is off; turn it on",
        ),
    ]  # fmt: skip
