"""What kind of thing an argument must be: checked at the door, with a word on how to come by one."""

from __future__ import annotations

from sidelight.foundation.errors import invalid


def check_is(name: str, value: object, kind: type, fix: str = "") -> None:
    """Raise in terms of `name` unless `value` is of this kind.

    >>> check_is("belief", 3, dict, "dict() makes one.")
    Traceback (most recent call last):
        ...
    sidelight.foundation.errors.InputError: `belief` must be a `dict`, got 'int'. dict() makes one.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise invalid(name, f"{article} `{kind.__name__}`", type(value).__name__, fix)
