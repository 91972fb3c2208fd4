"""Checks of what mechanisms are given; each raises an error that names the argument and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Mask
from sidelight.foundation.bits import code_type
from sidelight.foundation.errors import InputError, check_number, check_whole, closest, invalid

LARGEST_OFFSET = 1 << 40
_NAMED_ROWS = 3


def check_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return `values` as an array after checking that no entry is masked, which numpy would forget."""
    if isinstance(values, np.ma.MaskedArray):
        raise invalid(name, "an array without a mask", "a masked array", "Fill or drop the masked entries.")
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise invalid(name, "one array", type(values).__name__, "Its rows differ in length.") from None


def check_numbers(values: ArrayLike) -> Array:
    """Return `values` as doubles after checking that they are finite numbers, shape (n,)."""
    array = check_array("values", values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "uif"):
        raise invalid("values", "a one-dimensional array of numbers", f"{array.ndim}-d {array.dtype}")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("`values` must be finite numbers; some are not.")
    return numbers


def check_list(name: str, numbers: Any) -> tuple[float, ...]:
    """Return a list of numbers as a tuple of floats."""
    is_list = isinstance(numbers, Iterable) and not isinstance(numbers, (str, bytes, Mapping))
    if not is_list:
        raise invalid(name, "a list of numbers", numbers)
    return tuple(check_number(name, number) for number in np.atleast_1d(check_array(name, numbers)).tolist())


def check_offset(offset: object) -> int:
    """Return the position of the first row; beyond 2^40 rows the addresses of random words would run out."""
    return check_whole("offset", offset, at_least=0, at_most=LARGEST_OFFSET)


def check_shares(frequencies: ArrayLike, size: int, *, single: bool = False) -> Array:
    """Return frequencies from 0 to 1 as doubles, one for each value.

    `single`: whether one may stand alone, where a value's variance depends on its own frequency only.
    """
    share = check_array("frequencies", frequencies)
    fits = share.shape == (size,) or (single and share.ndim == 0)
    if not fits or share.dtype.kind not in "uif":
        raise invalid("frequencies", f"{size} numbers, one for each value", f"{share.dtype} {share.shape}")
    if not ((share >= 0) & (share <= 1)).all():
        raise InputError(
            "`frequencies` must be from 0 to 1; some are not. Estimates may lie outside: clip them first."
        )
    return share.astype(np.float64)


def check_codes(values: ArrayLike, size: int, name: str = "values") -> AnyCodes:
    """Return codes in the narrowest type after checking that each is in 0..size-1; copied only if need be."""
    array = check_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "ui"):
        raise invalid(name, "a one-dimensional array of integer codes", f"{array.ndim}-d {array.dtype}")
    if array.size and (int(array.max()) >= size or (array.dtype.kind == "i" and int(array.min()) < 0)):
        raise impossible(f"codes from 0 to {size - 1}", (array < 0) | (array >= size), name)
    return array.astype(code_type(size), copy=False)


def impossible(wanted: str, strange: Mask, name: str = "reports") -> InputError:
    """Return the error for what no randomiser can have made, or can be given: how many, and the first rows.

    What stands there is not shown, as it is about people. `strange` marks the rows that are not as wanted,
    shape (rows,) or (rows, numbers of a report).
    """
    rows = np.flatnonzero(strange.reshape(len(strange), -1).any(axis=1))
    first = ("row " if len(rows) == 1 else "rows ") + ", ".join(map(str, rows[:_NAMED_ROWS]))
    more = f" and {len(rows) - _NAMED_ROWS} more" if len(rows) > _NAMED_ROWS else ""
    fix = " Leave them out, or read them with the protocol that made them." if name != "values" else ""
    return InputError(
        f"`{name}` must be {wanted}; {len(rows)} of {len(strange)} are not ({first}{more}, counted from "
        f"0).{fix}"
    )


def need_budget(name: str, epsilon: float | None) -> float:
    """Return the budget a plan gives, or raise if it gives none."""
    if epsilon is None:
        raise InputError(f"the mechanism {name!r} needs an `epsilon`, got none.")
    return epsilon


def refuse_parameters(name: str, parameters: Mapping[str, Any], known: tuple[str, ...] = ()) -> None:
    """Raise if a plan gives the mechanism a parameter it does not have."""
    for parameter in parameters:
        if parameter not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            close = closest(parameter, known)
            hint = "" if close is None else f" Did you mean {close!r}?"
            raise InputError(f"the mechanism {name!r} has no parameter {parameter!r}; {takes}.{hint}")
