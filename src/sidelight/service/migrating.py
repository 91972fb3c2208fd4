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
_FOLDER = Path(__file__).parent / "migrations"
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
    if version == BASE:
        return _statements((_FOLDER / f"{dialect}.sql").read_text("utf-8"))
    return _statements(written(dialect, version))


def written(dialect: Dialect, version: str) -> str:
    """Return the SQL of all steps after a version, as Alembic writes it.

    What it writes for a new store is kept in `migrations`: to load Alembic takes longer than all the rest.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    output = StringIO()
    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["dialect"] = dialect
    try:
        command.upgrade(config, f"{version}:head", sql=True)
    except CommandError:
        raise InputError(
            f"the store has version {version}, this Sidelight knows {NEWEST}; use a newer Sidelight."
        ) from None
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def _statements(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


if __name__ == "__main__":  # after a new step: python -m sidelight.service.migrating
    for name in ("sqlite", "postgresql"):
        (_FOLDER / f"{name}.sql").write_text(written(name, BASE), "utf-8")
