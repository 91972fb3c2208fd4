"""Exact arithmetic on thresholds: a probability is a whole number of the 2^64 values of a random word."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from sidelight.foundation.errors import InputError, SidelightError, check_number, check_whole, invalid

WORDS = 1 << 64
LARGEST_SIZE = 65_536
_LARGEST_EXPONENT = 100  # above e^88.7 = 2^128, the square of the largest ratio of two thresholds
_DIGITS = 60  # products of two 64-bit thresholds have 39, so what is cut off never decides


def store(owner: object, **fields: object) -> None:
    """Write checked fields into a frozen dataclass while it is being made."""
    for name, value in fields.items():
        object.__setattr__(owner, name, value)


def check_budget(budget: object) -> float:
    """Return a nominal budget as a float after checking that it is a finite number above 0."""
    return check_number("epsilon", budget, above=0)


def check_word_budget(budget: object) -> float:
    """Return a nominal budget that a random word might realise: no threshold has a factor below 1 + 2^-64."""
    number = check_budget(budget)
    if number < 1 / WORDS:
        raise too_small(budget)
    return number


def too_small(budget: object) -> InputError:
    """Return the error for a budget that 64 random bits cannot tell from 0."""
    return invalid("epsilon", "large enough to be realised with 64 random bits", budget)


def check_size(size: object) -> int:
    """Return the number of values as an int after checking that there are 2 to 65,536."""
    return check_whole("size", size, at_least=2, at_most=LARGEST_SIZE)


def check_factor(factor: Fraction, budget: float) -> None:
    """Raise if a budget is too small to tell any value from another, or if the thresholds overspend it."""
    if factor <= 1:
        raise too_small(budget)
    if factor > exp_below(budget):
        raise SidelightError(
            f"the thresholds spend more than the `epsilon` of {budget!r}; the mechanism is at fault, do not "
            "use it."
        )


@lru_cache(maxsize=1024)
def exp_below(exponent: float) -> Fraction:
    """Return a number just below e^exponent, so that what keeps it keeps the budget.

    No word-sized probability reaches a factor of e^100, so larger exponents say no more.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        context.rounding = ROUND_FLOOR
        return Fraction(Decimal(min(exponent, _LARGEST_EXPONENT)).exp().next_minus())


def least_share(size: int, budget: float) -> int:
    """Return the least w with (2^64 - (size-1) w) / w <= e^budget."""
    return math.floor(WORDS / (size - 1 + exp_below(budget))) + 1


@lru_cache(maxsize=1024)
def log_factor(factor: Fraction) -> float:
    """Return the double nearest to ln(factor).

    A budget is a double, so a factor of at most e^budget has a logarithm that rounds to at most the budget.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return float((Decimal(factor.numerator) / Decimal(factor.denominator)).ln())


def budget_above(factor: Fraction) -> float:
    """Return the least double that is at least ln(factor), as far as `exp_below` can tell."""
    budget = log_factor(factor)
    while factor > exp_below(budget):
        budget = math.nextafter(budget, math.inf)
    return budget


def word_threshold(name: str, probability: object) -> int:
    """Return the whole number of 2^64 words that gives a probability strictly between 0 and 1."""
    number = check_number(name, probability, above=0, below=1)
    words = round(Fraction(number) * WORDS)
    if not 0 < words < WORDS:
        raise InputError(f"`{name}` must be at least 2^-64, got {number!r}.")
    return words
