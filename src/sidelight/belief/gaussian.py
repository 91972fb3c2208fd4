"""Gaussian: a belief about numbers that are not binned, given by their means and covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, invalid, unknown
from sidelight.foundation.files import file_name
from sidelight.sources import Table

_SINGULAR = 1e-12
"""An eigenvalue of the correlations this close to 0, times the number of attributes, counts as 0."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A multivariate Gaussian distribution of named attributes.

    Attributes:
        names: the attributes.
        covariance: (n, n), symmetric and positive definite.
        source: where it came from, in words.
        is_model: whether it is a model of a table, which need not be Gaussian.
        sample_size: the number of records behind it; None if it was given by hand.
        ranges: how far apart the values of each attribute are in the table; None if it was given by hand.
        kind: what kind of belief this is, in a word.
        smoothing: how many evenly spread records were added: a Gaussian has none.
    """

    kind: ClassVar[str] = "gaussian"
    smoothing: ClassVar[float] = 0.0
    names: tuple[str, ...]
    covariance: Array
    source: str = "by hand"
    is_model: bool = False
    sample_size: int | None = None
    ranges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        try:
            table = np.array(self.covariance, dtype=np.float64)
        except (TypeError, ValueError):
            raise invalid("covariance", "a square table of numbers", self.covariance) from None
        object.__setattr__(self, "covariance", table)
        count = len(self.names)
        if count == 0 or len(set(self.names)) != count:
            raise invalid("names", "different attributes, at least one", list(self.names))
        if table.shape != (count, count) or not np.all(np.isfinite(table)):
            raise invalid("covariance", f"{count} x {count} finite numbers", table.shape)
        size = np.sqrt(np.abs(np.diagonal(table)))
        if np.any(np.abs(table - table.T) > 1e-9 * size[:, None] * size):
            raise InputError("`covariance` must be symmetric; make it (C + C') / 2 if rounding broke it.")
        _check_definite(table)

    @classmethod
    def equicorrelated(cls, count: int, correlation: float) -> Gaussian:
        """Return attributes of variance 1 with the same correlation between any two."""
        table = np.full((count, count), float(correlation))
        np.fill_diagonal(table, 1.0)
        return cls(tuple(f"x{j + 1}" for j in range(count)), table)

    @classmethod
    def from_values(cls, values: ArrayLike, names: Sequence[str], *, source: str = "values") -> Gaussian:
        """Take the covariances of a table of numbers, one column for each attribute: a model of it."""
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(names) or len(table) < 2:
            raise invalid("values", f"a table of {len(names)} columns and at least two rows", table.shape)
        if not np.all(np.isfinite(table)):
            raise InputError("`values` must be finite numbers; leave out records with a missing one.")
        covariance = np.atleast_2d(np.cov(table, rowvar=False))
        ranges = tuple(float(width) for width in np.ptp(table, axis=0))
        return cls(tuple(names), covariance, source, True, len(table), ranges)

    @classmethod
    def from_data(cls, table: Table, names: Sequence[str] | None = None) -> Gaussian:
        """Take the covariances of columns of a table as they are, not binned: a model of it.

        Args:
            table: the records; those with a missing value are left out.
            names: columns of numbers; by default all there are.
        """
        reader = pa.RecordBatchReader.from_stream(table)
        kinds = {field.name: field.type for field in reader.schema}
        chosen = [name for name, kind in kinds.items() if _is_numeric(kind)] if names is None else names
        for name in chosen:
            table.schema.index(name)
            if not _is_numeric(kinds[name]):
                raise InputError(
                    f"the column {name!r} of {table.source.label} holds no numbers; leave it out, or use a "
                    "joint belief."
                )
        if not chosen:
            raise InputError(f"no column of {table.source.label} holds numbers; use a joint belief.")
        values = np.concatenate([np.empty((0, len(chosen))), *(_numbers(batch, chosen) for batch in reader)])
        return cls.from_values(values, chosen, source=file_name(table.source.label))

    def index(self, name: str) -> int:
        """Return the position of an attribute."""
        if name not in self.names:
            raise unknown("attribute", name, self.names)
        return self.names.index(name)

    def regression(self, of: Sequence[str], on: Sequence[str]) -> Array:
        """Return how much each attribute of `of` moves with each of `on`, the others fixed, (of, on)."""
        rows, columns = [self.index(name) for name in of], [self.index(name) for name in on]
        inner = self.covariance[np.ix_(columns, columns)]
        return np.asarray(np.linalg.solve(inner, self.covariance[np.ix_(columns, rows)]).T)

    def residual(self, of: Sequence[str], on: Sequence[str]) -> Array:
        """Return the covariance of `of` given `on`, (of, of)."""
        rows, columns = [self.index(name) for name in of], [self.index(name) for name in on]
        explained = self.regression(of, on) @ self.covariance[np.ix_(columns, rows)]
        return np.asarray(self.covariance[np.ix_(rows, rows)] - explained)


def _numbers(batch: pa.RecordBatch, names: Sequence[str]) -> Array:
    """Return the columns of the complete records, (records, columns)."""
    columns = (batch[name].cast(pa.float64(), safe=False) for name in names)
    values = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    return np.asarray(values[~np.isnan(values).any(axis=1)])


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _check_definite(table: Array) -> None:
    """Raise unless the covariance is that of a proper distribution, after scaling to correlations."""
    variances = np.diagonal(table)
    if variances.min() <= 0:
        raise InputError(
            f"`covariance` must have positive variances, got {variances.min():g}; leave out constant "
            "attributes."
        )
    scale = np.sqrt(variances)
    least = float(np.linalg.eigvalsh(table / np.outer(scale, scale)).min())
    if least < -_SINGULAR * len(table):
        raise InputError(
            f"`covariance` belongs to no distribution: an eigenvalue of its correlations is {least:.4g}. "
            f"Equal correlations of {len(table)} attributes cannot be below {-1 / (len(table) - 1):.4g}."
        )
    if least <= _SINGULAR * len(table):
        raise InputError(
            f"`covariance` is singular: an eigenvalue of its correlations is {least:.2g}; leave out "
            "attributes that are a linear function of others, or take more records than attributes."
        )
