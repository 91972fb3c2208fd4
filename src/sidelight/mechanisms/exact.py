"""Exact arithmetic on thresholds: a probability is a whole number of the 2^64 values of a random word."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from sidelight.foundation.errors import InputError, check_number, check_whole, invalid

WORDS = 1 << 64
LARGEST_SIZE = 65_536
_LARGEST_EXPONENT = 100
_DIGITS = 60


def check_budget(budget: object) -> float:
    """Return a nominal budget after checking that it is a finite number above 0."""
    return check_number("epsilon", budget, above=0)


def check_size(size: object) -> int:
    """Return the number of values after checking that there are 2 to 65,536."""
    return check_whole("size", size, at_least=2, at_most=LARGEST_SIZE)


def check_factor(factor: Fraction, budget: float) -> None:
    """Raise if a budget is so small that 64 random bits cannot tell any value from another."""
    if factor <= 1:
        raise invalid("epsilon", "large enough to be realised with 64 random bits", budget)


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


def log_factor(factor: Fraction) -> float:
    """Return ln(factor) as a double, without losing the digits of a factor near 1."""
    excess = factor - 1
    if excess < 1:
        return math.log1p(float(excess))
    return math.log(factor.numerator) - math.log(factor.denominator)


def word_threshold(name: str, probability: object) -> int:
    """Return the whole number of 2^64 words that gives a probability strictly between 0 and 1."""
    number = check_number(name, probability, above=0, below=1)
    words = round(Fraction(number) * WORDS)
    if not 0 < words < WORDS:
        raise InputError(f"`{name}` must be at least 2^-64, got {number!r}.")
    return words
