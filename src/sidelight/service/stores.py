"""Which store a name means: a PostgreSQL URL, or the path of a SQLite file."""

from __future__ import annotations

from sidelight.foundation.errors import InputError
from sidelight.service.store import Store

_SCHEMES = ("postgresql://", "postgres://")


def store_of(name: str) -> Store:
    """Return the store that a URL or a path names; it is not opened."""
    if name.startswith(_SCHEMES):
        from sidelight.service.postgres import PostgresStore

        return PostgresStore(name)
    if "://" in name:
        raise InputError(
            f"the store {name.partition('://')[0]}://... is not known; give a postgresql:// URL."
        )
    from sidelight.service.sqlite import SqliteStore

    return SqliteStore(name)
