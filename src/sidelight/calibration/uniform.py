"""One budget for all free attributes: the largest that keeps every limit.

CPL, Algorithm 3 steps up by 0.01 and returns a budget up to two steps past the limit. Here the limit is
bracketed, the root found, and a budget returned at which the figures were computed and keep the limits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sidelight.calibration.constraint import Constraint
from sidelight.calibration.problem import LARGEST_BUDGET, Problem
from sidelight.foundation.arrays import Array

RAISE = 1.01
"""A budget is called the largest if this many times it breaks a limit."""
ROUNDING = 1e-12
"""A figure that is over its limit by less than this share of it keeps it: figures are doubles, and a secret
at its limit must not block budgets that do not concern it. Audits allow a billionth."""
_PRECISION = 1e-9
_CLIPPED = 1e3  # an infinite excess would leave the root finder without a slope


def excess(problem: Problem, constraint: Constraint, budgets: Array) -> float:
    """Return how far the worst secret is over its limit, as a share of the limit; negative if none is.

    Limits of 0 are compared as they are.
    """
    return float(np.max(shares_over(constraint.figures(problem.channels(budgets)), problem.bounds)))


def shares_over(figures: Array, limits: Array) -> Array:
    """Return how far each figure is over its limit, as a share of it; an infinite limit is never broken."""
    finite = np.isfinite(limits)
    over = figures - np.where(finite, limits, 0.0)
    scale = np.where((limits > 0) & finite, limits, 1.0)
    return np.asarray(np.where(finite, over / scale - ROUNDING, -np.inf))


def uniform_budget(problem: Problem, constraint: Constraint) -> float:
    """Return the largest budget that keeps all limits when every free attribute has it.

    At most `LARGEST_BUDGET`, where leakage saturates below the limits. The least budget must be safe.
    """
    return largest_safe(lambda budget: excess(problem, constraint, problem.alike(budget)), problem.least)


def largest_safe(over: Callable[[float], float], low: float, high: float = LARGEST_BUDGET) -> float:
    """Return the largest number with over(number) <= 0 that a search from `low`, itself safe, reaches.

    Leakage grows with the budget for the mechanisms that are offered, so there is one root. Should it not,
    the search goes on for as long as a raise by 1 % is safe; what is returned always was computed as safe.
    """
    while low < high:
        low, unsafe = _bracket(over, low, high)
        if unsafe is None:
            return high
        low = _root(over, low, unsafe)
        raised = min(low * RAISE, high)
        if over(raised) > 0:
            return low
        low = raised
    return low


def _bracket(over: Callable[[float], float], low: float, high: float) -> tuple[float, float | None]:
    """Return a safe number and an unsafe one at most a few times as large; None if all are safe."""
    factor = 2.0
    while low < high:
        step = min(low * factor, high)
        if over(step) > 0:
            return low, step
        low, factor = step, factor * factor
    return high, None


def _root(over: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest safe number between a safe and an unsafe one, to a billionth."""
    from scipy.optimize import brentq

    safe, unsafe = low, high

    def clipped(number: float) -> float:
        nonlocal safe, unsafe
        value = over(number)
        if value <= 0:
            safe = max(safe, number)
        else:
            unsafe = min(unsafe, number)
        return min(value, _CLIPPED)

    brentq(clipped, low, high, xtol=_PRECISION * low, rtol=_PRECISION)
    # brentq may end on the unsafe side of the root: look below it, in growing steps, for the last safe number
    step = _PRECISION
    while unsafe - safe > 4 * _PRECISION * unsafe and step < 1:
        clipped(max(safe, unsafe * (1 - step)))
        step *= 4
    return safe
