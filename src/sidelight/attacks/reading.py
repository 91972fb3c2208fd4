"""From a file to numbers: which columns take part, and on which scale."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.numbers import Numbers
from sidelight.foundation.errors import InputError, unknown
from sidelight.sources.reader import open_settled

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]
MOST_MISSING = 0.1


@dataclass(frozen=True, eq=False)
class NumberFile:
    """Numbers read from a file, and what was left out.

    Attributes:
        numbers: the records.
        secret: the secret's column, as the file writes it.
        notes: what a reader must know.
    """

    numbers: Numbers
    secret: str
    notes: tuple[str, ...]


def read_numbers(
    path: str, secret: str, *, through: Sequence[str] = (), entity: str | None = None, encoding: str = "utf-8"
) -> NumberFile:
    """Read the numeric columns of a CSV, TSV or Parquet file.

    A column may be named in lower case with underscores for whatever is neither a letter nor a digit.

    Args:
        path: the file.
        secret: the column to be reconstructed.
        through: the other columns; all numeric ones by default.
        entity: the column that says whose record it is.
        encoding: of a text file.
    """
    source = open_settled(path, encoding)
    table = source.reader("*").read_all()
    names = list(table.column_names)
    target = find_column(secret, names, path)
    chosen = [find_column(name, names, path) for name in through] or _numeric(table)
    notes = list(source.notes)
    columns = {target: _numbers(table, target, path)}
    for name in chosen:
        if name == target:
            continue
        column = _numbers(table, name, path)
        reason = "" if through else _unfit(column)
        if reason:
            notes.append(f"Column {name!r} {reason}; left out.")
        else:
            columns[name] = column
    whose = None if entity is None else _labels(table, find_column(entity, names, path))
    if len(columns) < 2:
        raise InputError(
            f"there is no number to reconstruct {target!r} from but itself; name another column of numbers "
            "of the same records."
        )
    numbers = Numbers.of(columns, entities=whose)
    if numbers.dropped:
        notes.append(f"{numbers.dropped} records with a missing number were left out.")
    return NumberFile(numbers, target, tuple(notes))


def find_column(name: str, names: Sequence[str], label: str) -> str:
    """Return the column that is meant.

    >>> find_column("total_current_assets", ["Inventory", "Total Current Assets"], "sheet.csv")
    'Total Current Assets'
    """
    if name in names:
        return name
    alike = [known for known in names if _plain(known) == _plain(name)]
    if len(alike) == 1:
        return alike[0]
    raise unknown(f"column of {label}", name, names)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _numeric(table: pa.Table) -> list[str]:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [field.name for field in table.schema if any(kind(field.type) for kind in kinds)]


def _numbers(table: pa.Table, name: str, path: str) -> Array:
    import pyarrow as pa

    try:
        return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowException:
        raise InputError(
            f"column {name!r} of {path} is not numeric; name columns of numbers. For categories make "
            f"reports and attack those: `collect {path} -o REPORTS`, then `attack REPORTS --truth {path}`."
        ) from None


def _unfit(column: Array) -> str:
    finite = np.isfinite(column)
    if not len(column):
        return ""
    if (~finite).mean() > MOST_MISSING:
        return f"lacks {(~finite).mean():.0%} of its numbers"
    return "is constant" if np.ptp(column[finite]) == 0 else ""


def _labels(table: pa.Table, name: str) -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray(table.column(name).cast(pa.string()).to_numpy(zero_copy_only=False)).astype(str)
