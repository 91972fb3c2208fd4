"""Columns of records become codes: numbers in bins of equal weight, other values as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.foundation.errors import InputError, check_whole
from sidelight.schema import Attribute, categorical, numeric


def learn_attributes(columns: NDArray[Any], bins: int, names: Sequence[str]) -> tuple[Attribute, ...]:
    """Return one attribute for each column: numbers in bins of equal weight, others by their values.

    The edges and the values are taken as public: what is coded here is not part of what is promised.
    """
    check_whole("bins", bins, at_least=2, at_most=10_000)
    learnt = []
    for name, column in zip(names, columns.T, strict=True):
        check_present(column, f"column {name!r}")
        if (numbers := _numbers(column, name)) is None:
            learnt.append(categorical(name, sorted({str(value) for value in column})))
        else:
            learnt.append(numeric(name, _edges(numbers, bins).tolist()))
    return tuple(learnt)


def _edges(numbers: Array, bins: int) -> Array:
    """Return the edges of equally full bins, with a bin of its own for every value that fills one.

    Plain quantiles would put such a value into one bin with its neighbours, or leave one bin altogether: nine
    in ten records of a census table have a capital gain of 0.
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    between = (distinct[1:] + distinct[:-1]) / 2
    if len(distinct) <= bins:
        return np.unique(between[between > distinct[:-1]])  # neighbouring doubles have no middle
    is_mass = counts * bins >= len(numbers)  # it fills a bin alone
    others = numbers[~np.isin(numbers, distinct[is_mass])]
    cuts = np.quantile(others, np.arange(1, bins) / bins) if len(others) else np.empty(0)
    around = np.concatenate([distinct[is_mass], between[is_mass[:-1]]])
    edges = np.unique(np.concatenate([cuts, around]))
    return np.asarray(edges[(edges > distinct[0]) & (edges <= distinct[-1])])


def code_columns(columns: NDArray[Any], attributes: Sequence[Attribute]) -> Codes:
    """Return the codes of the columns, shape (rows, attributes)."""
    codes = np.empty((len(columns), len(attributes)), dtype=np.uint16)
    for i, attribute in enumerate(attributes):
        codes[:, i] = _code(columns[:, i], attribute)
    return codes


def distinct_records(records: NDArray[Any]) -> Positions:
    """Return a number for each record, the same for records that are equal in all columns as given."""
    cells = np.zeros(len(records), dtype=np.intp)
    for column in records.T:
        values = column.astype(str) if column.dtype.kind == "O" else column
        _, codes = np.unique(values, return_inverse=True)
        # Numbered anew after each column, so that the products stay below the square of the records.
        _, cells = np.unique(cells * (codes.max() + 1) + codes, return_inverse=True)
    return cells


def _code(column: NDArray[Any], attribute: Attribute) -> NDArray[np.integer]:
    check_present(column, f"column {attribute.name!r}")
    if attribute.kind == "numeric":
        numbers = _numbers(column, attribute.name)
        if numbers is None:
            raise InputError(f"column {attribute.name!r} must be numbers, as it was in training.")
        return np.searchsorted(np.asarray(attribute.edges), numbers, side="right")
    places = {value: code for code, value in enumerate(attribute.values)}
    texts = [str(value) for value in column]
    unseen = sorted({text for text in texts if text not in places})
    if unseen:
        raise InputError(
            f"column {attribute.name!r} has the value {unseen[0]!r}, never seen in training; it had "
            f"{', '.join(attribute.values[:10])}{' ...' if attribute.size > 10 else ''}."
        )
    return np.array([places[text] for text in texts], dtype=np.int64)


def check_present(column: NDArray[Any], name: str) -> None:
    """Refuse a column of objects in which something is missing: it would become a value of its own."""
    if column.dtype.kind != "O":
        return
    missing = [row for row, value in enumerate(column) if value is None or value != value]
    if missing:
        raise InputError(
            f"{name} is missing in {len(missing)} records, first in record {missing[0]}; fill it in, or "
            "leave these records out."
        )


def _numbers(column: NDArray[Any], name: str) -> Array | None:
    """Return the column as finite numbers, or None if it holds anything else."""
    if column.dtype.kind in "OUS" and any(isinstance(value, str) for value in column):
        return None
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(numbers).all():
        raise InputError(f"column {name!r} must hold finite numbers; leave out records with infinite ones.")
    return numbers
