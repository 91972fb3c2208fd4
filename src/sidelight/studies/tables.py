"""The public tables: the folder they are looked for in, and which of them are there."""

from __future__ import annotations

import os
from pathlib import Path

from sidelight.foundation.errors import InputError


def data_folder() -> Path:
    """Return the folder of the public tables: SIDELIGHT_DATA, else `shared/data` beside the repository."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    return Path(os.environ.get("SIDELIGHT_DATA", beside))


def table_file(name: str) -> Path:
    """Return the file in which a public table is looked for."""
    return data_folder() / f"{name}.parquet"


def missing_tables(names: tuple[str, ...]) -> list[str]:
    """Return the tables among `names` that are not there."""
    return [name for name in names if not table_file(name).is_file()]


def existing_table(name: str) -> Path:
    """Return the file of a public table; raise with the folder's name where it is not there."""
    path = table_file(name)
    if not path.is_file():
        where = f"there is no {path.name} in {path.parent}"
        raise InputError(f"{where}; set SIDELIGHT_DATA to the folder of the tables.")
    return path
