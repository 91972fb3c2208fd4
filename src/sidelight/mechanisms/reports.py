"""Reports: what people send, one row for each person, in numpy and in Arrow.

A report's form is what a file, a reader and a check need to know, without a report being made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Mask, Words, spans
from sidelight.foundation.bits import code_type, row_bytes
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.mechanisms.checks import impossible

if TYPE_CHECKING:
    import pyarrow as pa

Encoding = Literal["codes", "sets", "bits", "counts", "numbers"]
_KINDS = {"codes": "ui", "sets": "ui", "bits": "u", "counts": "ui", "numbers": "f"}
_OFF_GRID = 1e-3


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

    Their kind is as numpy writes it, "u", "ui" or "f"; a report is so many numbers, or a single one, comes
    with a seed or not, and is of bytes where bits are packed.
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
    fits &= (reports.seeds is not None) == seeds
    if reports.seeds is not None:
        fits &= reports.seeds.shape == (len(reports),) and reports.seeds.dtype == np.uint64
    if not fits:
        given = f"{reports.values.dtype} of shape {reports.values.shape}"
        if reports.seeds is not None:
            given += f" with {reports.seeds.dtype} seeds of shape {reports.seeds.shape}"
        wanted = f"an array of {'bytes of ' if packed else ''}shape {shape}"
        wanted += f" with uint64 seeds of shape {shape}" if seeds else ""
        raise invalid("reports", f"{wanted}, made by the same mechanism", given)
    return reports.values


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

    Whether their noise came from a seed a column does not say, so whoever kept it must.

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


@dataclass(frozen=True)
class Grid:
    """Where noisy numbers can lie: so many steps of a length from a lower bound, and as far as noise reaches.

    `reach` is how many steps it can lead beyond the bounds, but for a probability below 2^-64; `is_exact` is
    whether doubles hold every number of the grid without rounding.
    """

    lower: float
    step: float
    steps: int
    reach: float
    is_exact: bool = False

    def is_off(self, values: Array) -> Mask:
        """Return which numbers are not finite, not on a step, or further out than noise reaches."""
        most = self.reach + 1  # one step more, for rounding
        with np.errstate(over="ignore", invalid="ignore"):
            away = values - self.lower
            steps = away / self.step
            off = np.abs(steps - np.rint(steps))
            allowed: float | NDArray[np.float64] = 0.0
            if not self.is_exact:
                # A report was rounded three times on its way to the grid and back. Where the step is near the
                # last digit of a double, this allowance covers the grid and only the range is checked.
                rounding = (np.spacing(np.abs(values)) + 3 * np.spacing(np.abs(away))) / (2 * self.step)
                allowed = _OFF_GRID + rounding
            return np.asarray(~((off <= allowed) & (steps >= -most) & (steps <= self.steps + most)))

    def __str__(self) -> str:
        most, upper = self.reach * self.step, self.lower + self.steps * self.step
        return (
            f"numbers on the grid, {self.lower:g} and whole steps of {self.step:g}, from "
            f"{self.lower - most:g} to {upper + most:g}, where noise can lead"
        )


@dataclass(frozen=True)
class ReportForm:
    """What every report of a mechanism looks like.

    Attributes:
        encoding: "codes": one code; "sets": codes in rising order; "bits": one for each value, packed as in
            `foundation.bits`; "counts": how often each mark was sent; "numbers".
        dtype: of the values.
        width: how many numbers, codes or bytes one report has; None where it is a single number or code.
        count: how many different codes or counts, or how many bits, there are; 0 for numbers.
        seeded: whether a public seed comes with each report.
        grid: where numbers can lie; None for the other encodings.
    """

    encoding: Encoding
    dtype: np.dtype[Any]
    width: int | None = None
    count: int = 0
    seeded: bool = False
    grid: Grid | None = None

    @staticmethod
    @lru_cache(maxsize=1 << 10, typed=True)  # every call of a mechanism asks for its form
    def codes(count: int, *, seeded: bool = False) -> ReportForm:
        """Return the form of one code below `count`, at most 2^32, in the narrowest type."""
        check_whole("count", count, at_least=1, at_most=1 << 32)
        narrowest = np.uint32 if count > 1 << 16 else code_type(count)
        return ReportForm("codes", np.dtype(narrowest), None, count, seeded)

    @classmethod
    def sets(cls, count: int, width: int) -> Self:
        """Return the form of `width` different codes below `count`, at most 2^32, in rising order."""
        return cls("sets", np.dtype(np.uint32 if count > 1 << 16 else np.uint16), width, count)

    @classmethod
    def counts(cls, most: int, width: int, *, seeded: bool = False) -> Self:
        """Return the form of `width` counts, each at most `most`."""
        narrowest = np.uint32 if most >= 1 << 16 else code_type(most + 1)
        return cls("counts", np.dtype(narrowest), width, most + 1, seeded)

    @classmethod
    def bits(cls, count: int) -> Self:
        """Return the form of `count` packed bits."""
        return cls("bits", np.dtype(np.uint8), row_bytes(count), count)

    @classmethod
    def numbers(cls, grid: Grid, width: int | None = None) -> Self:
        """Return the form of one double, or of `width` doubles, on a grid."""
        return cls("numbers", np.dtype(np.float64), width, 0, False, grid)

    def empty(self) -> Reports:
        """Return the reports of nobody."""
        shape = (0,) if self.width is None else (0, self.width)
        return Reports(np.zeros(shape, self.dtype), np.zeros(0, np.uint64) if self.seeded else None)

    @property
    def is_listed(self) -> bool:
        """Whether a report is one code and nothing else, so that a channel's matrix has a column for each."""
        return self.encoding == "codes" and not self.seeded

    def check(self, reports: Reports) -> NDArray[Any]:
        """Return the reports' values in the form's type, or raise if no report can look like some of them."""
        packed = self.encoding == "bits"
        values = check_reports(reports, _KINDS[self.encoding], self.width, seeds=self.seeded, packed=packed)
        if self.grid is not None:
            # A number off the grid could move a mean as far as it likes.
            parts = [self.grid.is_off(values[span]) for span in spans(len(values), max(values[:1].size, 1))]
            if any(part.any() for part in parts):
                raise impossible(str(self.grid), np.concatenate(parts))
        elif packed:
            self._check_spare_bits(values)
        else:
            self._check_codes(values)
        return values.astype(self.dtype, copy=False)

    def _check_codes(self, values: NDArray[Any]) -> None:
        is_negative = values.dtype.kind == "i" and int(values.min(initial=0)) < 0
        if is_negative or int(values.max(initial=0)) >= self.count:
            what = "counts" if self.encoding == "counts" else "codes"
            raise impossible(f"{what} from 0 to {self.count - 1}", (values < 0) | (values >= self.count))
        if self.encoding == "sets" and (is_unordered := values[:, 1:] <= values[:, :-1]).any():
            raise impossible("sets in rising order", is_unordered)

    def _check_spare_bits(self, rows: NDArray[np.uint8]) -> None:
        last = rows[:, self.count // 8 :]  # the bytes before are full
        ever_set = np.array([np.bitwise_or.reduce(column) for column in last.T], dtype=np.uint8)
        if np.unpackbits(ever_set, bitorder="little")[self.count % 8 :].any():
            places = np.unpackbits(last, axis=1, bitorder="little")
            spare = places[:, self.count % 8 :].astype(np.bool_)
            raise impossible(f"bits of {self.count} values, none set after the last", spare)
