"""Likelihoods as logarithms: the largest ratio within a column, and sums too small for doubles."""

from __future__ import annotations

import math

import numpy as np

from sidelight.foundation.arrays import Array, Positions

_LEAST_LOG = math.log(1e-280)
"""Products above this keep all their digits; below it, a sum may lose them or become a false zero."""


def logs_of(cells: Array, out: Array | None = None) -> Array:
    """Return the logarithms, in `out` if it is given; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(cells, out=out))


def fits_doubles(*factors: Array) -> bool:
    """Whether products of one number of each, given as logarithms, keep their digits; true zeros do."""
    return sum(float(logs[logs > -math.inf].min(initial=0.0)) for logs in factors) > _LEAST_LOG


def contract_logs(logs: Array, columns: Array, axis: int) -> Array:
    """Replace the values on `axis` by reports: ln of the sum over values of e^(logs + column).

    `columns` are logarithms of likelihoods, shape (values, reports).
    """
    lines = np.moveaxis(logs, axis, -1)
    reports = [np.logaddexp.reduce(lines + column, axis=-1) for column in columns.T]
    return np.asarray(np.stack(reports, axis=axis))


def log_spans(logs: Array) -> Array:
    """Return the largest difference within each column; 0 for a column that is minus infinity throughout."""
    with np.errstate(invalid="ignore"):
        if len(logs) == 2:  # in one table: those of large ones take longer to be made than to be filled
            spans = logs[0] - logs[1]
            np.abs(spans, out=spans)
        else:
            spans = logs.max(axis=0)
            spans -= logs.min(axis=0)
    spans[np.isnan(spans)] = 0.0
    return np.asarray(spans)


def log_gains(top: Array, bottom: Array) -> Array:
    """Return how far `top` is above `bottom`; minus infinity where `top` is, as nothing is gained there."""
    with np.errstate(invalid="ignore"):  # both may be minus infinity
        return np.asarray(np.where(top > -np.inf, top - bottom, -np.inf))


def log_ratios(high: Array, low: Array) -> Array:
    """Return ln(high / low): infinite where only `low` is 0, 0 where both are, which never happens."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(high > 0, np.log(high) - np.log(low), 0.0))


def log_pairs(logs: Array, others: Array | None = None) -> tuple[Array, Positions]:
    """Return the largest difference within a column for every ordered pair of rows, and that column.

    Both are (m, columns), minus infinity for what cannot happen; rows are compared with `others`, by default
    with each other.
    """
    others = logs if others is None else others
    values = np.zeros((len(logs), len(others)))
    chosen = np.zeros(values.shape, dtype=np.intp)
    for i, row in enumerate(logs):
        seen = np.flatnonzero(~np.isneginf(row))  # the rest would be infinity less infinity
        if len(seen):
            differences = row[seen] - others[:, seen]
            best = differences.argmax(axis=1)
            values[i] = np.maximum(differences[np.arange(len(others)), best], 0.0)
            chosen[i] = seen[best]
    np.fill_diagonal(values, 0.0)
    return values, chosen
