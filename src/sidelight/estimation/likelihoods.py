"""What each report says about each value, for estimators that use whole reports instead of counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Mechanism, Reports
from sidelight.mechanisms.cells import InCells
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.hashing import Hashing
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.protocols.protocol import Array

LARGEST_TABLE = 1 << 26
"""Tables of reports by values are kept below so many cells."""


def report_likelihoods(mechanism: Mechanism, reports: Reports) -> tuple[Array, NDArray[np.intp]]:
    """Return Pr(report | value), up to a factor for each report, and which row each person's report is.

    Returns:
        The likelihoods of the distinct reports, shape (distinct, values), and the row of each person.
    """
    if isinstance(mechanism, InCells):
        return mechanism.law.T, mechanism.cells_of(reports)
    channel = mechanism.channel
    if channel.is_listable and reports.values.ndim == 1:
        return channel.matrix().T, reports.values.astype(np.intp)
    if isinstance(channel, FavouringChannel):
        favoured = _favoured(mechanism, reports)
        distinct, rows = np.unique(favoured, axis=0, return_inverse=True)
        return np.where(distinct, 1.0, channel.baseline), rows.reshape(-1)
    raise InputError(
        f"the reports of {mechanism.name!r} have no likelihood that is written out; estimate by inversion."
    )


def _favoured(mechanism: Mechanism, reports: Reports) -> NDArray[np.bool_]:
    """Return which values each report favours, shape (reports, values)."""
    people, size = len(reports), mechanism.size
    if people * size > LARGEST_TABLE:
        raise InputError(
            f"{people} reports over {size} values are more than {LARGEST_TABLE} cells; estimate by inversion."
        )
    if isinstance(mechanism, Hashing):
        seeds = np.asarray(reports.seeds, dtype=np.uint64)
        columns = [
            mechanism.hashed(np.full(people, value, dtype=np.uint16), seeds) == reports.values
            for value in range(size)
        ]
        return np.stack(columns, axis=1)
    if isinstance(mechanism, SubsetSelection):
        favoured = np.zeros((people, size), dtype=bool)
        np.put_along_axis(favoured, reports.values.astype(np.intp), True, axis=1)
        return favoured
    if reports.values.dtype == np.uint8 and reports.values.ndim == 2:
        bits = np.unpackbits(reports.values, axis=1, bitorder="little")
        return bits[:, :size].astype(bool)
    raise InputError(
        f"the reports of {mechanism.name!r} have no likelihood that is written out; estimate by inversion."
    )


def joined_rows(rows: list[NDArray[np.intp]], sizes: list[int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct combinations of several row numbers, and how often each occurs.

    Returns:
        Combinations, shape (distinct, columns), and counts, shape (distinct,).
    """
    if math.prod(sizes) < 1 << 62:
        flat = np.zeros(len(rows[0]), dtype=np.int64)
        for column, size in zip(rows, sizes, strict=True):
            flat = flat * size + column
        _, first, counts = np.unique(flat, return_index=True, return_counts=True)
        return np.stack([column[first] for column in rows], axis=1), counts
    distinct, counts = np.unique(np.stack(rows, axis=1), axis=0, return_counts=True)
    return distinct, counts
