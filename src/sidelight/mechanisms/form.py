"""The form of a report: what a file, a reader and a check need to know, without a report being made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Mask, spans
from sidelight.foundation.bits import code_type, row_bytes
from sidelight.mechanisms.checks import impossible
from sidelight.mechanisms.reports import Reports, check_reports

Encoding = Literal["codes", "sets", "bits", "numbers"]
_KINDS = {"codes": "ui", "sets": "ui", "bits": "u", "numbers": "f"}
_OFF_GRID = 1e-3


@dataclass(frozen=True)
class Grid:
    """Where noisy numbers can lie: whole steps from a lower bound, no further out than noise reaches.

    Attributes:
        lower: the lower bound of the numbers without noise.
        step: the length of a step.
        steps: how many steps the upper bound is from the lower one.
        reach: how many steps noise can lead beyond the bounds, but for a probability below 2^-64.
        is_exact: whether doubles hold every number of the grid without rounding.
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
            `foundation.bits`; "numbers".
        dtype: of the values.
        width: how many numbers, codes or bytes one report has; None where it is a single number or code.
        count: how many different codes, or how many bits, there are; 0 for numbers.
        seeded: whether a public seed comes with each report.
        grid: where numbers can lie; None for the other encodings.
    """

    encoding: Encoding
    dtype: np.dtype[Any]
    width: int | None = None
    count: int = 0
    seeded: bool = False
    grid: Grid | None = None

    @classmethod
    def codes(cls, count: int, *, seeded: bool = False) -> Self:
        """Return the form of one code below `count`, in the narrowest type."""
        narrowest = np.uint32 if count > 1 << 16 else code_type(count)
        return cls("codes", np.dtype(narrowest), None, count, seeded)

    @classmethod
    def sets(cls, count: int, width: int) -> Self:
        """Return the form of `width` different codes below `count` in rising order."""
        return cls("sets", np.dtype(np.uint16), width, count)

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

    def every(self) -> Reports:
        """Return each possible report once, where a report is one code."""
        return Reports(np.arange(self.count, dtype=self.dtype))

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
            raise impossible(f"codes from 0 to {self.count - 1}", (values < 0) | (values >= self.count))
        if self.encoding == "sets" and (is_unordered := values[:, 1:] <= values[:, :-1]).any():
            raise impossible("sets in rising order", is_unordered)

    def _check_spare_bits(self, rows: NDArray[np.uint8]) -> None:
        last = rows[:, self.count // 8 :]  # the bytes before are full
        ever_set = np.array([np.bitwise_or.reduce(column) for column in last.T], dtype=np.uint8)
        if np.unpackbits(ever_set, bitorder="little")[self.count % 8 :].any():
            places = np.unpackbits(last, axis=1, bitorder="little")
            spare = places[:, self.count % 8 :].astype(np.bool_)
            raise impossible(f"bits of {self.count} values, none set after the last", spare)
