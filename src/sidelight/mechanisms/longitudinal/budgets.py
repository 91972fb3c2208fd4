"""What T reports through one kept response spend, exactly.

A *memo* z is drawn once through the permanent channel P[x, z]; every report y is drawn afresh through the
instantaneous channel I[z, y]. Given the value, T reports have the probability

    Pr(y_1..y_T | x) = sum over z of P[x, z] prod over t of I[z, y_t],

so that counts of equal reports suffice. The budget eps_T rises from that of the first report to that of the
memo itself, and is *not* bounded by T times the first: only by min(eps_inf, T eps_I), eps_I being the budget
of I alone (Arcolezi et al. 2022 give the chains; the budgets of T reports are derived here).

All terms below are sums of positive numbers, so that 60 digits lose none of a double's.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

_DIGITS = 60

Rates = tuple[Fraction, Fraction]
"""How likely the true value's mark is kept, and how likely another one is made."""


def response_budget(size: int, permanent: Rates, instant: Rates, times: int) -> float:
    """Return eps_T of randomised response on top of a kept one, over `size` values.

    With r = p2/q2, the worst T reports are all alike: one value's likelihood is p + (k-1) q r^-T, and any
    other's q + (p + (k-2) q) r^-T.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        p, q = map(_decimal, permanent)
        shrunk = _power(_decimal(instant[1] / instant[0]), times)
        top = p + (size - 1) * q * shrunk
        bottom = q + (p + (size - 2) * q) * shrunk
        return float((top / bottom).ln())


def unary_budget(permanent: Rates, instant: Rates, times: int) -> float:
    """Return eps_T of bits on top of kept bits: two values differ in two of them.

    With f(a, c) the likelihood of a bit that is set c times in T and whose memo is set with probability a,
    the worst is f(p, T) f(q, 0) / (f(q, T) f(p, 0)); the ratio f(p, c) / f(q, c) rises with c.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        p, q = map(_decimal, permanent)
        never = _power(_decimal((1 - instant[0]) / (1 - instant[1])), times)
        always = _power(_decimal(instant[1] / instant[0]), times)
        top = (p + (1 - p) * always) * (q * never + (1 - q))
        bottom = (q + (1 - q) * always) * (p * never + (1 - p))
        return float((top / bottom).ln())


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _power(ratio: Decimal, times: int) -> Decimal:
    """Return ratio^times; what is too small even for decimals adds nothing."""
    return ratio**times if ratio else Decimal(0)
