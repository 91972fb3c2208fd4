"""One budget for all free attributes: the largest that keeps every limit; and limits that no budget keeps.

CPL, Algorithm 3 steps up by 0.01 and returns a budget up to two steps past the limit. Here the limit is
bracketed, the root found, and a budget returned at which the figures were computed and keep the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sidelight.calibration.constraint import Constraint
from sidelight.calibration.problem import LARGEST_BUDGET, Problem, leakage_alone
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.html import listed
from sidelight.foundation.numbers import significant

RAISE = 1.01
"""A budget is called the largest if this many times it breaks a limit."""
ROUNDING = 1e-12
"""A figure that is over its limit by less than this share of it keeps it: figures are doubles, and a secret
at its limit must not block budgets that do not concern it. Audits allow a billionth."""
_INFINITE = "infinitely much"
_MOST = 8
"""How many attributes an error names."""
_PRECISION = 1e-9  # audits allow a billionth, so more digits would change no verdict
_CLIPPED = 1e3  # an infinite excess would leave the root finder without a slope
_BEYOND = 1.02  # so far beyond the root that the first steps expect
_MOST_QUESTIONS = 1000  # a jump far below the upper end takes more than the usual 100
_LEAST_SHARE = 1e-6  # of a limit: what leaks less may grow faster than in proportion


def excess(problem: Problem, constraint: Constraint, budgets: Array) -> float:
    """Return how far the worst secret is over its limit, as a share of the limit; negative if none is.

    Limits of 0 are compared as they are.
    """
    return float(np.max(shares_over(constraint.figures(budgets), problem.bounds)))


_DECIDERS = 5
"""So many secrets are tried as the one that decides, before all are asked about every number."""


@dataclass(eq=False)
class Watch:
    """The excess along a line of budgets that grow with a number, of the secret that decides it.

    Leakage grows with the budgets for the mechanisms that are offered, so one secret mostly decides: the
    furthest over its limit, or the nearest to it, where all were last asked about. From then on it is asked
    about alone; whether others are over their limits where it has its root, `whole` tells.
    """

    problem: Problem
    constraint: Constraint
    budgets: Callable[[float], Array]
    decider: int | None = None

    def __call__(self, number: float) -> float:
        """Return the excess of the secret that decides; the first time, the largest of all."""
        if self.decider is None:
            return self.whole(number)
        alone = np.array([self.decider])
        figures = self.constraint.figures_of(self.budgets(number), alone)
        return float(shares_over(figures, self.problem.bounds[alone]).max())

    def whole(self, number: float) -> float:
        """Return the largest excess of all secrets; its secret decides from now on."""
        shares = shares_over(self.constraint.figures(self.budgets(number)), self.problem.bounds)
        self.decider = int(shares.argmax())
        return float(shares.max())


def largest_on_line(
    problem: Problem, constraint: Constraint, budgets: Callable[[float], Array], low: float, high: float
) -> float:
    """Return the largest number whose budgets keep all limits, from a safe one on; see `largest_safe`."""
    watch, top = Watch(problem, constraint, budgets), high
    for _ in range(_DECIDERS):
        found = largest_safe(watch, low, top)
        if found == low or watch.whole(found) <= 0:
            return found
        top = found  # another secret is over its limit there: now that one decides
    return largest_safe(watch.whole, low, high)


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
    return largest_on_line(problem, constraint, problem.alike, problem.least, LARGEST_BUDGET)


def largest_safe(over: Callable[[float], float], low: float, high: float = LARGEST_BUDGET) -> float:
    """Return the largest number with over(number) <= 0 that a search from `low`, itself safe, reaches.

    Steps are fewest where `over` is a share of the limit, which is -1 if nothing leaks.
    Leakage grows with the budget for the mechanisms that are offered, so there is one root. Should it not,
    the search goes on for as long as a raise by 1 % is safe; what is returned always was computed as safe.
    """
    over = cache(over)  # every step begins where the last one ended
    while low < high:
        low, unsafe = _bracket(over, low, high)
        if unsafe is None:
            return high
        low = _root(over, low, unsafe)
        raised = min(low * RAISE, high)
        if over(raised) > 0:  # where leakage is not monotone, safe budgets may lie beyond a root
            return low
        low = raised
    return low


def _bracket(over: Callable[[float], float], low: float, high: float) -> tuple[float, float | None]:
    """Return a safe number and an unsafe one, not much above the root; None if all are safe.

    Small budgets leak in proportion, beside what is fixed. So the last two points tell about where the root
    is, and the first alone if nothing is fixed. Where leakage grows more slowly, steps get longer.
    """
    number, longer, before = low, _BEYOND, None
    while (share := over(number)) <= 0:
        low = number
        if low >= high:
            return high, None
        if before is None:
            aim = _BEYOND * number / max(1 + share, _LEAST_SHARE)
        else:
            slope = (share - before[1]) / (number - before[0])
            aim = number - _BEYOND * share / slope if slope > 0 else number
        before = number, share
        number = min(max(aim, number * longer), high)
        longer **= 4
    return low, number


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

    end = brentq(clipped, low, high, xtol=_PRECISION * low, rtol=_PRECISION, maxiter=_MOST_QUESTIONS)
    # brentq may end on the unsafe side of the root: look below it, in growing steps, for the last safe number
    step = _PRECISION
    while safe < end and unsafe - safe > 4 * _PRECISION * unsafe and step < 1:
        clipped(max(safe, unsafe * (1 - step)))
        step *= 4
    return safe


def check_feasible(problem: Problem, constraint: Constraint) -> None:
    """Raise if the limits are broken although every free budget is the least one; name the cause."""
    figures = constraint.figures(problem.alike(problem.least))
    if (problem.bounds == 0).any():  # the least budgets could pass a rounding error for nothing at all
        larger = constraint.figures(problem.alike(1.0))
        figures = np.where(problem.bounds == 0, larger, figures)
    over = shares_over(figures, problem.bounds)
    worst = int(np.argmax(over))
    if over[worst] <= 0:
        return
    secret, limit = problem.secrets[worst], float(problem.bounds[worst])
    if limit == 0:
        raise InputError(_nothing_allowed(problem, secret))
    nats = significant(figures[worst], _INFINITE)
    fixed = [release.name for release in problem.releases if not problem.is_free(release)]
    if not fixed:
        raise InputError(
            f"the limit of {limit:g} for {secret!r} is too small: the least budget that is tried, "
            f"{problem.least:g}, leaks {nats}. Raise the limit, or withhold attributes."
        )
    raise InputError(
        f"no budget keeps the limit of {limit:g} for {secret!r}: what is fixed leaks {nats} "
        f"already, through {_causes(problem, fixed, secret)}. Withhold or coarsen one of them, give it a "
        "budget to choose, or raise the limit."
    )


def _causes(problem: Problem, fixed: list[str], secret: str) -> str:
    """Name what is fixed and says something about the secret, the most first; else all of it together."""
    leaks = {name: _leaks(problem, name, secret) for name in fixed}
    named = sorted((name for name in fixed if leaks[name] > ROUNDING), key=lambda name: -leaks[name])
    if not named:
        return f"{listed(fixed, _MOST)} together"
    return listed([f"{name} ({significant(leaks[name], _INFINITE)} alone)" for name in named], _MOST)


def _nothing_allowed(problem: Problem, secret: str) -> str:
    """Say which releases say anything at all about a secret that may not leak."""
    names = [release.name for release in problem.releases]
    causes = [name for name in names if _leaks(problem, name, secret) > ROUNDING]
    shown = listed(causes, _MOST) if causes else f"{listed(names, _MOST)} together"
    return (
        f"a limit of 0 for {secret!r} lets nothing be released that says anything about it, and {shown} "
        f"would. Withhold {'it' if len(causes) == 1 else 'them'}, or give {secret!r} a limit above 0."
    )


def _leaks(problem: Problem, name: str, secret: str) -> float:
    """Return what one release alone says about the secret; a free one as if it were the truth."""
    release = problem.release(name)
    channel = problem.truth(name) if problem.is_free(release) else release.channel()
    return leakage_alone(problem.belief, channel, name, secret)
