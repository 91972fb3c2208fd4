"""Brings the tables of a store up to date. Alembic writes the SQL; the steps are in `migrations`.

A store runs the SQL itself, in one transaction that keeps other processes away: of two that start at once
the second finds the work done.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Literal

from sidelight.foundation.errors import InputError

Dialect = Literal["sqlite", "postgresql"]
BASE = "base"
"""The version of a store without tables."""
NEWEST = "0001"
LOCK = 0x5_1DE_1167
"""PostgreSQL's advisory lock under which a store is migrated."""


def migration(dialect: Dialect, version: str) -> list[str]:
    """Return the statements that bring a store of a version up to date, its new version included.

    >>> migration("sqlite", NEWEST)
    []
    >>> migration("sqlite", BASE)[0].split("(")[0].strip()
    'CREATE TABLE alembic_version'
    """
    if version == NEWEST:
        return []
    # Loaded where there is something to do: workers start without it.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    written = StringIO()
    config = Config(output_buffer=written)
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["dialect"] = dialect
    try:
        command.upgrade(config, f"{version}:head", sql=True)
    except CommandError:
        raise InputError(
            f"the store has version {version}, this Sidelight knows {NEWEST}; use a newer Sidelight."
        ) from None
    lines = [line for line in written.getvalue().splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]
