"""Reports: what people send, one row for each person, and its form in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Words
from sidelight.foundation.errors import InputError, invalid

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Reports:
    """The reports of one attribute.

    Attributes:
        values: (n,) codes or numbers, (n, bytes) packed bits as uint8, (n, w) sets or (n, k) numbers.
        seeds: (n,) the public seeds of local hashing, else None.
        is_simulation: whether the noise came from a seed, so that it protects nobody.
    """

    values: NDArray[Any]
    seeds: Words | None = None
    is_simulation: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Reports:
        seeds = None if self.seeds is None else self.seeds[rows]
        return Reports(self.values[rows], seeds, self.is_simulation)

    @classmethod
    def joined(cls, parts: Sequence[Reports]) -> Reports:
        """Return the reports of several parts as one; a simulated part makes the whole a simulation."""
        if not parts:
            raise InputError("there are no reports to join.")
        seeds = [part.seeds for part in parts if part.seeds is not None]
        if seeds and len(seeds) < len(parts):
            raise InputError("only reports of the same mechanism can be joined.")
        if len({(part.values.shape[1:], part.values.dtype) for part in parts}) > 1:
            raise InputError(
                "only reports of the same mechanism can be joined; their shapes or types differ."
            )
        values = np.concatenate([part.values for part in parts])
        all_seeds = np.concatenate(seeds) if seeds else None
        return cls(values, all_seeds, any(part.is_simulation for part in parts))


def check_reports(
    reports: Reports, kind: str, width: int | None = None, *, seeds: bool = False, packed: bool = False
) -> NDArray[Any]:
    """Return the reports' values after checking their form.

    Args:
        reports: what was sent.
        kind: the kinds of numbers that may stand there, as numpy writes them: "u", "ui" or "f".
        width: how many numbers a report has; None where it is a single one.
        seeds: whether each report comes with a seed.
        packed: whether the numbers are packed bits, so that bytes are wanted.
    """
    if not isinstance(reports, Reports) or not all(
        isinstance(part, np.ndarray) and not isinstance(part, np.ma.MaskedArray)
        for part in ([reports.values] if reports.seeds is None else [reports.values, reports.seeds])
    ):
        given = type(reports).__name__
        raise invalid("reports", "`Reports` of plain arrays, as `randomise` returns them", given)
    shape = (len(reports),) if width is None else (len(reports), width)
    fits = reports.values.shape == shape and (reports.values.dtype.kind in kind or not len(reports))
    fits &= not packed or reports.values.dtype == np.uint8
    if not fits or not _seeds_fit(reports, seeds):
        given = f"{reports.values.dtype} of shape {reports.values.shape}"
        if reports.seeds is not None:
            given += f" with {reports.seeds.dtype} seeds of shape {reports.seeds.shape}"
        wanted = f"an array of {'bytes of ' if packed else ''}shape {shape}"
        wanted += f" with uint64 seeds of shape {shape}" if seeds else ""
        raise invalid("reports", f"{wanted}, made by the same mechanism", given)
    return reports.values


def _seeds_fit(reports: Reports, wanted: bool) -> bool:
    if reports.seeds is None or not wanted:
        return (reports.seeds is not None) == wanted
    return reports.seeds.shape == (len(reports),) and reports.seeds.dtype == np.uint64


def reports_to_arrow(reports: Reports) -> pa.Array:
    """Return reports as one Arrow column, without copying.

    Codes and numbers become a plain column, packed bits fixed-size binary, sets and histograms fixed-size
    lists, hashed values a struct of seed and value.

    >>> reports_to_arrow(Reports(np.array([[3], [5]], dtype=np.uint8))).type
    FixedSizeBinaryType(fixed_size_binary[1])
    """
    import pyarrow as pa

    values = _native(reports.values)
    if reports.seeds is not None:
        parts = [pa.array(_native(reports.seeds)), pa.array(values)]
        return pa.StructArray.from_arrays(parts, ["seed", "value"])
    if values.ndim == 1:
        return pa.array(values)
    if values.dtype == np.uint8:
        buffer = pa.py_buffer(values)
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(values.shape[1]), len(values), [None, buffer])
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def reports_from_arrow(column: pa.Array, *, is_simulation: bool) -> Reports:
    """Return the reports that `reports_to_arrow` made a column of.

    Args:
        column: the reports.
        is_simulation: whether their noise came from a seed; a column does not say, so whoever kept it must.

    >>> column = reports_to_arrow(Reports(np.array([4, 2], dtype=np.uint8)))
    >>> reports_from_arrow(column, is_simulation=False).values
    array([4, 2], dtype=uint8)
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        raise invalid("column", "an Arrow array, as `reports_to_arrow` returns it", type(column).__name__)
    if column.null_count:
        raise InputError(f"a column of reports has no missing values, got {column.null_count}.")
    if pa.types.is_struct(column.type):
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        if names != ["seed", "value"]:
            raise InputError(f"hashed reports are a struct of seed and value, got {', '.join(names)}.")
        return Reports(_plain(column.field(1)), _plain(column.field(0)), is_simulation)
    if pa.types.is_fixed_size_binary(column.type):
        width = column.type.byte_width
        stored = np.frombuffer(column.buffers()[1], dtype=np.uint8)
        first = column.offset * width
        values = stored[first : first + len(column) * width].reshape(len(column), width)
        return Reports(values, None, is_simulation)
    if pa.types.is_fixed_size_list(column.type):
        flat = _plain(column.flatten())
        return Reports(flat.reshape(len(column), column.type.list_size), None, is_simulation)
    return Reports(_plain(column), None, is_simulation)


def _plain(column: pa.Array) -> NDArray[Any]:
    if column.null_count:
        raise InputError(f"a column of reports has no missing values, got {column.null_count}.")
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "uif":
        raise invalid("column", "codes, numbers, packed bits or sets of one width", str(column.type))
    return values


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array in one block and in the machine's order of bytes, the only one that Arrow takes."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
