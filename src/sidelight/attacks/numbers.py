"""Numbers: records of real numbers on a common scale, for attacks that reconstruct a number; from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.foundation.errors import InputError, check_whole, invalid, unknown
from sidelight.sources.reader import open_settled

MOST_MISSING = 0.1
_WIDE = 20.0  # on a linear scale the typical numbers would share a twentieth of the range
_FEW_ENTITIES = 20


@dataclass(frozen=True, eq=False)
class Numbers:
    """Records of numbers, (n, attributes), each attribute scaled to 0..1 between its bounds.

    Attributes:
        lower: (attributes,) the number that became 0, after the logarithm if there is one; `upper` became 1.
        logarithmic: which attributes were replaced by ln(1 + x) first.
        entities: (n,) whose record it is, a person, a vehicle or a company; None where each is its own.
        blocks: (n,) records that are so near to each other that whoever owns one of them knows the others; by
            default those of an entity, where there are at least 20.
        dropped: how many records were left out because a number is missing.
    """

    names: tuple[str, ...]
    values: Array
    lower: Array
    upper: Array
    logarithmic: tuple[bool, ...]
    entities: Positions | None = None
    blocks: Positions | None = None
    dropped: int = 0

    @classmethod
    def of(
        cls,
        columns: Mapping[str, ArrayLike],
        *,
        entities: ArrayLike | None = None,
        blocks: ArrayLike | None = None,
        logarithmic: Sequence[str] | None = None,
        trim: float = 0.0,
    ) -> Numbers:
        """Scale the numbers of each attribute; records with a missing one are left out.

        Logarithms, of numbers that must not be negative, are by default taken of attributes whose largest is
        far above the typical one. `trim` is the share of the numbers at either end that lies outside the
        bounds and is moved to them.

        >>> Numbers.of({"a": [0.0, 5.0, 10.0, 5.0], "b": [1.0, 2.0, 3.0, 4.0]}).values[:, 0]
        array([0. , 0.5, 1. , 0.5])
        """
        raw, kept = _complete(columns)
        whose, near = _labelled("entities", entities, kept), _labelled("blocks", blocks, kept)
        if near is None and whose is not None and whose.max() + 1 >= _FEW_ENTITIES:
            near = whose
        names = tuple(columns)
        logs = _take_logarithms(raw, names, logarithmic)
        lower, upper = np.quantile(raw, [trim, 1 - trim], axis=0)
        for name, low, high in zip(names, lower, upper, strict=True):
            if high <= low:
                raise InputError(f"column {name!r} is constant between its bounds; leave it out.")
        values = np.clip((raw - lower) / (upper - lower), 0.0, 1.0)
        return cls(names, values, lower, upper, logs, whose, near, int((~kept).sum()))

    def __len__(self) -> int:
        return len(self.values)

    def index(self, name: str) -> int:
        """Return the position of an attribute."""
        if name not in self.names:
            raise unknown("attribute", name, self.names)
        return self.names.index(name)

    def columns(self, names: Sequence[str]) -> Array:
        """Return the values of the named attributes, shape (n, names)."""
        return self.values[:, [self.index(name) for name in names]]

    def rows(self, chosen: NDArray[Any]) -> Numbers:
        """Return some of the records."""
        labels = {"entities": self.entities, "blocks": self.blocks}
        kept = {name: part[chosen] for name, part in labels.items() if part is not None}
        return replace(self, values=self.values[chosen], **kept)

    def halves(self, seed: int) -> tuple[Numbers, Numbers]:
        """Shuffle the records and give one half to the attacker, the other to the owner."""
        check_whole("seed", seed, at_least=0)
        return self.divided(len(self) // 2, np.random.default_rng(seed))

    def divided(self, count: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Return about `count` of the records, drawn at random, and the others; no block is cut."""
        if self.blocks is None:
            order = rng.permutation(len(self))
            return self.rows(order[:count]), self.rows(order[count:])
        sizes = np.bincount(self.blocks)
        present = rng.permutation(np.flatnonzero(sizes))
        place = np.empty(len(sizes), dtype=np.intp)
        place[present] = np.arange(len(present))
        ends = np.cumsum(sizes[present])
        cut = int(np.clip(np.abs(ends - count).argmin(), 0, max(len(present) - 2, 0)))
        mine = place[self.blocks] <= cut
        return self.rows(np.flatnonzero(mine)), self.rows(np.flatnonzero(~mine))


def _take_logarithms(raw: Array, names: Sequence[str], wanted: Sequence[str] | None) -> tuple[bool, ...]:
    """Replace x by ln(1 + x) where it is wanted, or where a column is wide; return for which columns."""
    for name in wanted or ():
        if name not in names:
            raise unknown("column", name, names)
    logs = []
    for name, column in zip(names, raw.T, strict=True):
        logs.append(_is_wide(column) if wanted is None else name in wanted)
        if logs[-1] and column.min() < 0:
            raise InputError(f"column {name!r} has negative numbers; it has no logarithmic scale.")
        if logs[-1]:
            column[:] = np.log1p(column)  # which takes 0 as well
    return tuple(logs)


def _complete(columns: Mapping[str, ArrayLike]) -> tuple[Array, Mask]:
    """Return the records that have all numbers, and which they are."""
    if len(columns) < 2:
        raise invalid("columns", "at least two attributes", list(columns))
    arrays = [np.asarray(column, dtype=np.float64) for column in columns.values()]
    if len({len(array) for array in arrays}) > 1 or any(array.ndim != 1 for array in arrays):
        raise InputError("all columns of numbers must have the same length.")
    raw = np.stack(arrays, axis=1)
    whole: Mask = np.asarray(np.isfinite(raw).all(axis=1))
    if whole.sum() < 4:
        raise InputError(f"{int(whole.sum())} records have all numbers; at least four are needed.")
    return raw[whole], whole


def _labelled(name: str, labels: ArrayLike | None, kept: Mask) -> Positions | None:
    """Return the labels of the kept records as whole numbers from 0."""
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.shape != kept.shape:
        raise invalid(name, f"one label for each of {len(kept)} records", given.shape)
    return np.unique(given[kept], return_inverse=True)[1].reshape(-1)


def _is_wide(column: Array) -> bool:
    """Whether a column of numbers from 0 up has a largest one far above the median of those above 0."""
    above = column[column > 0]
    return bool(column.min() >= 0 and len(above) and column.max() > _WIDE * np.median(above))


@dataclass(frozen=True, eq=False)
class NumberFile:
    """Numbers read from a file, the secret's column as the file writes it, and what a reader must know."""

    numbers: Numbers
    secret: str
    notes: tuple[str, ...]


def read_numbers(
    path: str, secret: str, *, through: Sequence[str] = (), entity: str | None = None, encoding: str = "utf-8"
) -> NumberFile:
    """Read the numeric columns of a CSV, TSV or Parquet file.

    The secret is the column to be reconstructed, `through` the others (all numeric ones by default), `entity`
    the one that says whose record it is. A column may be named in lower case with underscores for whatever is
    neither a letter nor a digit.
    """
    import pyarrow as pa

    source = open_settled(path, encoding)
    table = source.reader("*").read_all()
    names = list(table.column_names)
    target = find_column(secret, names, path)
    columns, notes = _columns(table, target, [find_column(name, names, path) for name in through], path)
    if len(columns) < 2:
        raise InputError(
            f"there is no number to reconstruct {target!r} from but itself; name another column of numbers "
            "of the same records."
        )
    whose = None
    if entity is not None:
        labels = table.column(find_column(entity, names, path)).cast(pa.string())
        whose = np.asarray(labels.to_numpy(zero_copy_only=False)).astype(str)
    numbers = Numbers.of(columns, entities=whose)
    if numbers.dropped:
        notes.append(f"{numbers.dropped} records with a missing number were left out.")
    return NumberFile(numbers, target, (*source.notes, *notes))


def _columns(table: Any, target: str, named: Sequence[str], path: str) -> tuple[dict[str, Array], list[str]]:
    """Return the target and the named columns, or all numeric ones that are fit, and which were left out."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numeric = [field.name for field in table.schema if any(kind(field.type) for kind in kinds)]
    columns, notes = {target: _numbers(table, target, path)}, []
    for name in named or numeric:
        if name == target:
            continue
        column = _numbers(table, name, path)
        if reason := "" if named else _unfit(column):
            notes.append(f"Column {name!r} {reason}; left out.")
        else:
            columns[name] = column
    return columns, notes


def find_column(name: str, names: Sequence[str], label: str) -> str:
    """Return the column that is meant.

    >>> find_column("total_current_assets", ["Inventory", "Total Current Assets"], "sheet.csv")
    'Total Current Assets'
    """
    if name in names:
        return name

    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")

    alike = [known for known in names if plain(known) == plain(name)]
    if len(alike) == 1:
        return alike[0]
    raise unknown(f"column of {label}", name, names)


def _numbers(table: Any, name: str, path: str) -> Array:
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
    if len(column) and (missing := (~finite).mean()) > MOST_MISSING:
        return f"lacks {missing:.0%} of its numbers"
    return "is constant" if len(column) and np.ptp(column[finite]) == 0 else ""
