"""The errors Sidelight raises, and the one template their messages follow.

A message names the thing, shows the value and says the fix:

>>> str(invalid("epsilon", "a positive number", -1))
'`epsilon` must be a positive number, got -1.'
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from operator import length_hint
from typing import SupportsFloat, SupportsIndex

_ALIKE = 0.7
"""Names at least this similar are suggested; 'nope' and 'income' have 0.6."""


class SidelightError(Exception):
    """Everything Sidelight raises on purpose."""


class InputError(SidelightError, ValueError):
    """What was handed in cannot be used as it is; the message says what to change."""


class TooLargeError(InputError):
    """The exact answer would need more memory than is allowed; the message names another method."""


class MissingExtraError(SidelightError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


def invalid(name: str, requirement: str, value: object, fix: str = "") -> InputError:
    """Render the one template for a bad argument."""
    message = f"`{name}` must be {requirement}, got {_shown(value)}."
    return InputError(f"{message} {fix}" if fix else message)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Let every refusal inside begin with the place it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _shown(value: object) -> str:
    """Return a value as it is written; Python refuses to write whole numbers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"{type(value).__name__} too long to show"


def closest(value: object, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is most likely meant to be, if there is one.

    >>> closest("GRR", ["grr", "oue"]), closest("mechansim", ["mechanism"]), closest("x", ["grr"])
    ('grr', 'mechanism', None)
    """
    names = {name.casefold(): name for name in known}
    matches = get_close_matches(str(value).casefold(), names, n=1, cutoff=_ALIKE)
    return names[matches[0]] if matches else None


def unknown(noun: str, value: str, known: Iterable[str]) -> InputError:
    """Render the message for a name that does not exist, with the names that do.

    >>> str(unknown("column", "incom", ["age", "income"]))
    "there is no column 'incom'; did you mean 'income'? There are: age, income."
    >>> str(unknown("column", "nope", ["age", "income"]))
    "there is no column 'nope'. There are: age, income."
    >>> str(unknown("value of sex", "x", ["f", "m"]))
    "there is no value 'x' of sex. There are: f, m."
    """
    names = [str(name) for name in known]
    close = closest(value, names)
    hint = "." if close is None else f"; did you mean {close!r}?"
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    kind, of, whole = noun.partition(" of ")
    return InputError(f"there is no {kind} {value!r}{of}{whole}{hint} There are: {shown or 'none'}.")


def check_is(name: str, value: object, kind: type, fix: str = "") -> None:
    """Raise an error that names the argument unless it is of this kind; `fix` says where to get one.

    >>> check_is("belief", 3, dict, "dict() makes one.")
    Traceback (most recent call last):
        ...
    sidelight.foundation.errors.InputError: `belief` must be a `dict`, got 'int'. dict() makes one.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise invalid(name, f"{article} `{kind.__name__}`", type(value).__name__, fix)


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """Return `value` as a float, or raise an error that names the argument."""
    number = _as_float(value)
    is_low = (above is not None and number <= above) or (at_least is not None and number < at_least)
    is_high = (below is not None and number >= below) or (math.isinf(number) and not infinite)
    if math.isnan(number) or is_low or is_high:
        limits = {"above": above, "of at least": at_least, "below": below}
        wanted = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if limit is not None)
        raise invalid(name, f"a {'' if infinite else 'finite '}number {wanted}".strip(), value)
    return number


def _as_float(value: object) -> float:
    """Return a number as a float, and not a number for anything else."""
    if type(value) is float:  # nearly always; asking for a protocol of types takes 20 times as long
        return value
    # A string, or an array with one number in it, would pass `float` as well.
    if isinstance(value, bool) or length_hint(value) or not isinstance(value, SupportsFloat):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int within the limits, or raise an error that names the argument."""
    with suppress(TypeError):  # an array has the method, and refuses unless it is a single whole number
        if type(value) is int:  # nearly always; asking for a protocol of types takes 20 times as long
            number = value
        else:
            number = int(value.__index__()) if isinstance(value, SupportsIndex) else at_least - 1
        if number >= at_least and (at_most is None or number <= at_most) and not isinstance(value, bool):
            return number
    limit = "" if at_most is None else f" and at most {at_most}"
    raise invalid(name, f"a whole number of at least {at_least}{limit}", value)


def check_choice(name: str, value: object, options: Collection[str]) -> str:
    """Return `value` if it is one of `options`, or raise an error that names the argument."""
    if not isinstance(value, str) or value not in options:
        close = closest(value, options)
        fix = "" if close is None else f"Did you mean {close!r}?"
        raise invalid(name, "one of " + ", ".join(repr(option) for option in options), value, fix)
    return value
