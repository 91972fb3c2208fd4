"""Which store a name means: a PostgreSQL URL, or the path of a SQLite file."""

from __future__ import annotations

from sidelight.foundation.errors import InputError
from sidelight.service.store import Store

_SCHEMES = ("postgresql://", "postgres://")


def is_url(name: str) -> bool:
    """Return whether a name is a PostgreSQL URL."""
    return name.startswith(_SCHEMES)


def store_of(name: str) -> Store:
    """Return the store that a URL or a path names; it is not opened."""
    if is_url(name):
        from sidelight.service.postgres import PostgresStore

        return PostgresStore(name)
    if "://" in name:
        raise InputError(
            f"the store {name.partition('://')[0]}://... is not known; give a postgresql:// URL."
        )
    from sidelight.service.sqlite import SqliteStore

    return SqliteStore(name)
