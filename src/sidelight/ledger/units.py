"""Budgets in whole numbers, so that every client adds them up alike: billionths of a nat.

A budget means the decimal number that it is written as: ten charges of 0.1 are exactly 1. What is finer than
a billionth is rounded against the asker: a charge up, a limit down.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sidelight.foundation.errors import check_number

UNITS = 10**9
MOST_UNITS = (1 << 53) - 1
"""The largest whole number that every client holds exactly, about nine million nats."""


def charged(name: str, epsilon: object) -> int:
    """Return a charge in units, rounded up.

    >>> charged("epsilon", 0.1), charged("epsilon", 1 / 3)
    (100000000, 333333334)
    """
    return _units(name, epsilon, ROUND_CEILING)


def allowed(name: str, epsilon: object) -> int:
    """Return a limit in units, rounded down.

    >>> allowed("epsilon", 1 / 3)
    333333333
    """
    return _units(name, epsilon, ROUND_FLOOR)


def _units(name: str, epsilon: object, rounding: str) -> int:
    number = check_number(name, epsilon, at_least=0, below=MOST_UNITS / UNITS)
    return int((Decimal(repr(number)) * UNITS).to_integral_value(rounding))


def shown(units: int) -> str:
    """Write units as a number of nats, exactly.

    >>> shown(1_500_000_000), shown(100_000_000), shown(2_000_000_000), shown(0), shown(1)
    ('1.5', '0.1', '2', '0', '0.000000001')
    """
    whole, rest = divmod(units, UNITS)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
