"""A budget for each free attribute: the least weighted error under all limits.

The error is convex in the budgets, the limits in general are not, so the search (SLSQP; Kraft 1988) ends in
a local optimum. It starts from the uniform budget and from shares of it in proportion to what they gain, is
brought back to the safe side along a ray, and then every budget is raised on its own as far as it goes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sidelight.calibration.constraint import Constraint
from sidelight.calibration.problem import LARGEST_BUDGET, Problem
from sidelight.calibration.uniform import (
    RAISE,
    ROUNDING,
    excess,
    largest_on_line,
    largest_safe,
    shares_over,
)
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.leakage.totals import LARGEST_FIGURE

FEW = 12
"""Up to so many budgets are searched from two starts, and for every point of a frontier."""
_STEP = 1e-5  # of a logarithm: figures are right to 1e-9, so a slope is right to 1e-4
_LEAST_STEP = 1 + 1e-6  # a budget that cannot grow by this much is at its end
_ACTIVE = 1e-3  # a limit counts as reached by a figure this close below it, as a share of it


@dataclass(frozen=True)
class Certificate:
    """What is known about the chosen budgets.

    Attributes:
        blocked: for each free attribute, the secret whose limit breaks if this budget alone is raised by
            1 %; None where no limit does, as for the largest budget that is searched.
        gain: the weighted error of one budget for all over that of these budgets; at least 1.
        stationarity: how far the budgets are from a local optimum to first order: the share of the error's
            gradient that no combination of the active limits balances. Limits with kinks leave some.
    """

    blocked: dict[str, str | None]
    gain: float
    stationarity: float


def unequal_budgets(problem: Problem, constraint: Constraint, uniform: float) -> Array:
    """Return budgets whose weighted error is at most that of `uniform`, the largest safe one for all."""
    start = problem.alike(uniform)
    check_errors(problem, start)
    starts = [start, _proportional(problem, uniform)][: 2 if len(start) <= FEW else 1]
    searched = [_on_ray(problem, constraint, _searched(problem, constraint, first)) for first in starts]
    best = min([start, *searched], key=problem.weighted_error)  # a search may end worse than it began
    return _raised(problem, constraint, best)


def check_errors(problem: Problem, budgets: Array) -> None:
    """Raise if some attribute has no error that could be made small."""
    if np.isnan(problem.errors(budgets)).any():
        raise InputError(
            "unequal budgets need mechanisms that state an error; 'any' states none, so name one."
        )


def _proportional(problem: Problem, uniform: float) -> Array:
    """Return budgets of the same sum in proportion to the cube root of each attribute's weighted error.

    For small budgets the error falls as the budget squared; under a limit on the sum of all budgets this
    is then the optimum.
    """
    shares = np.cbrt(problem.weighting * problem.errors(problem.alike(uniform)))
    return np.asarray(np.clip(uniform * shares / shares.mean(), problem.least, LARGEST_BUDGET))


def _searched(problem: Problem, constraint: Constraint, start: Array) -> Array:
    """Run the optimiser over the logarithms of the budgets."""
    from scipy.optimize import minimize

    # what must leak nothing is left out: rounding alone breaks it, and any budget keeps it or none does
    limited = np.isfinite(problem.bounds) & (problem.bounds > 0)
    scale = problem.weighted_error(start)  # so that the tolerance below is a share of the error

    def slack(logs: Array) -> Array:
        figures = constraint.figures(np.exp(logs))
        return np.asarray(1 - np.minimum(figures[limited], LARGEST_FIGURE) / problem.bounds[limited])

    def slopes(logs: Array) -> Array:
        grown = constraint.growth(np.exp(logs), np.exp(logs + _STEP))
        return np.asarray(-grown[limited] / (problem.bounds[limited, None] * _STEP))

    # Each step takes a figure for every budget. For the 40 attributes of CelebA and a tree, five steps
    # come within 3 % of the error that forty reach.
    steps = max(5, min(40, 200 // len(start)))
    result = minimize(
        lambda logs: problem.weighted_error(np.exp(logs)) / scale, np.log(start), method="SLSQP",
        jac=lambda logs: error_slopes(problem, logs) / scale,
        bounds=[(math.log(problem.least), math.log(LARGEST_BUDGET))] * len(start),
        constraints=[{"type": "ineq", "fun": slack, "jac": slopes}], options={"maxiter": steps, "ftol": 1e-7},
    )  # fmt: skip
    budgets = np.exp(np.nan_to_num(result.x, nan=math.log(problem.least)))  # SLSQP may end in NaN
    return np.asarray(np.clip(budgets, problem.least, LARGEST_BUDGET))


def error_slopes(problem: Problem, logs: Array) -> Array:
    """Return the derivatives of the weighted error by the logarithm of each budget; errors are separate."""
    above, below = (problem.errors(np.exp(logs + step)) for step in (_STEP, -_STEP))
    return np.asarray(problem.weighting * (above - below) / (2 * _STEP))


def _on_ray(problem: Problem, constraint: Constraint, budgets: Array) -> Array:
    """Return the largest safe multiple of the budgets, none beyond the largest one that is set."""

    def scaled(factor: float) -> Array:
        return np.asarray(np.maximum(factor * budgets, problem.least))

    low, high = (end / float(budgets.max()) for end in (problem.least, LARGEST_BUDGET))
    return scaled(_eased(largest_on_line(problem, constraint, scaled, low, high), high))


def _eased(number: float, high: float) -> float:
    """Return a little less than a number that a limit decided: rounding alone then breaks no limit.

    Else a budget that says nothing about a secret at its limit might seem to be over it when it is raised.
    """
    return number if number >= high else number * (1 - ROUNDING)


def _raised(problem: Problem, constraint: Constraint, budgets: Array) -> Array:
    """Raise one budget after the other as far as the limits allow, the most useful first.

    Leakage grows with every budget, so one that was raised to the end stays blocked when others are.
    """
    budgets = budgets.copy()
    figures = constraint.figures(budgets)
    grown = constraint.growth(budgets, budgets * _LEAST_STEP)
    stuck = shares_over(figures + grown.T, problem.bounds).max(axis=1) > 0
    for position in np.argsort(error_slopes(problem, np.log(budgets))):  # steepest fall of the error first
        if stuck[position]:
            continue

        def over(budget: float, position: int = position) -> float:
            return excess(problem, constraint, _with(budgets, position, budget))

        budget = float(budgets[position])
        if budget * _LEAST_STEP < LARGEST_BUDGET and over(budget * _LEAST_STEP) <= 0:
            budgets[position] = _eased(largest_safe(over, budget), LARGEST_BUDGET)
    return budgets


def certificate(problem: Problem, constraint: Constraint, budgets: Array, uniform: float) -> Certificate:
    """Raise every budget on its own by 1 % and see which limit breaks."""
    base = constraint.figures(budgets)
    raised = np.where(budgets * RAISE > LARGEST_BUDGET, budgets, budgets * RAISE)
    grown = constraint.growth(budgets, raised)
    blocked: dict[str, str | None] = {}
    for position, name in enumerate(problem.free):
        over = shares_over(base + grown[:, position], problem.bounds)
        if over.max() <= 0 and raised[position] > budgets[position]:  # it may have grown by more than that
            figures = constraint.figures(_with(budgets, position, raised[position]))
            over = shares_over(figures, problem.bounds)
        worst = int(np.argmax(over))
        blocked[name] = problem.secrets[worst] if over[worst] > 0 else None
    gain = problem.weighted_error(problem.alike(uniform)) / problem.weighted_error(budgets)
    return Certificate(blocked, gain, unbalanced(problem, base, grown.T / math.log(RAISE), budgets))


def _with(budgets: Array, position: int, budget: float) -> Array:
    """Return the budgets with one of them replaced."""
    replaced = budgets.copy()
    replaced[position] = budget
    return replaced


def unbalanced(problem: Problem, figures: Array, slopes: Array, budgets: Array) -> float:
    """Return the share of the error's gradient that no sum of the active limits' gradients balances.

    These are the conditions of Karush, Kuhn and Tucker. Budgets at the largest one are left out: their own
    bound balances them.
    """
    from scipy.optimize import nnls

    gradient = error_slopes(problem, np.log(budgets))
    inner = budgets * RAISE <= LARGEST_BUDGET
    active = np.isfinite(problem.bounds) & (figures >= problem.bounds * (1 - _ACTIVE))
    if not gradient[inner].any():
        return 0.0
    if not active.any():
        return 1.0
    with np.errstate(invalid="ignore"):
        _, left = nnls(slopes[inner][:, active], -gradient[inner])  # a limit can only push budgets down
    return float(left / np.linalg.norm(gradient[inner]))
