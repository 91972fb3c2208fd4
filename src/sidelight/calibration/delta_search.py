"""Budgets under limits at delta: a search on estimates, then a certificate from fresh draws.

A search compares budgets by estimates from the same draws, so what it ends at is right to a few hundredths.
Only then is a certificate drawn. Where it fails, all budgets shrink a little and it is drawn anew; where it
leaves room, it is tried once more with larger ones. The k-th attempt may be wrong with probability
beta / 2^k, so all of them together with beta at most. A plan is called safe only if every secret is certified
to keep its limit; if one does not, that fails but for the beta of that very secret, so beta is not divided
among secrets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sidelight.calibration.at_delta import AtDelta, composed_at_delta
from sidelight.calibration.problem import LARGEST_BUDGET, Problem
from sidelight.calibration.unequal import Certificate, check_errors, error_slopes, unbalanced
from sidelight.calibration.uniform import excess, uniform_budget
from sidelight.foundation.arrays import Array
from sidelight.foundation.progress import track
from sidelight.leakage.totals import DeltaLeakage, leakage_at
from sidelight.leakage.totals.at_delta import BETA
from sidelight.plan import Plan

_AIM = 0.97
"""Estimates are brought to this share of a limit: a certified figure is a few hundredths above."""
_ROUGH, _FINE = 2e-3, 1e-10
"""How closely a budget is searched, as a share of it: on estimates, and where figures are exact."""
_GROWTH = 2.5
_SCANNED = 24
_REACH, _LEAST_REACH = 1.0, 0.1
"""How far the logarithm of a budget goes in one step: at first, and before the search ends."""
_STEPS = 16
_RAISE = 1.01
_WATCHED = 0.7
"""A secret whose figure is expected below this share of its limit is not looked at in a step."""
_ATTEMPTS = 12
_MARGIN = 0.007
"""Certified figures scatter by about as much, so that shrunken budgets are brought so far below a limit."""
_ROOM = 0.02
_TRIES = 2


def uniform_at_delta(problem: Problem, rule: AtDelta) -> float:
    """Return about the largest budget for all free attributes that keeps every limit.

    Secrets come one after the other: one that keeps its limit at what those before it allow asks no more.
    """
    composed = composed_at_delta(problem, rule.delta)
    low = problem.least
    if excess(problem, composed, problem.alike(low)) <= 0:  # it holds for every belief, so for this one
        low = uniform_budget(problem, composed)
    budget = LARGEST_BUDGET
    for number, (secret, limit) in enumerate(_limited(problem)):

        def share(each: float, secret: str = secret, limit: float = limit) -> float:
            return rule.figure(secret, problem.alike(each)) / (limit * aim(rule))

        if number == 0 or share(budget) > 1:
            budget = _largest(share, min(low, budget), budget, rule)
    return budget


def aim(rule: AtDelta) -> float:
    """Return to what share of the limits the search goes."""
    return 1.0 if rule.is_listed else _AIM


def _limited(problem: Problem) -> list[tuple[str, float]]:
    return [(name, limit) for name, limit in problem.limits.items() if math.isfinite(limit)]


def _largest(share: Callable[[float], float], low: float, high: float, rule: AtDelta) -> float:
    """Return the largest budget between a safe one and another at which a figure is its whole share."""
    if rule.is_ordered:
        unsafe = None
        while low < high and unsafe is None:
            step = min(low * _GROWTH, high)
            if share(step) > 1:
                unsafe = step
            else:
                low = step
    else:  # a larger budget may leak less: the largest safe one of many is taken
        points = np.geomspace(low, high, _SCANNED)
        safe = max((place for place, point in enumerate(points) if share(point) <= 1), default=0)
        low = float(points[safe])
        unsafe = float(points[safe + 1]) if safe + 1 < len(points) else None
    return high if unsafe is None else _crossing(share, low, unsafe, _FINE if rule.is_listed else _ROUGH)


def _crossing(share: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return a budget on the safe side of the crossing between two: figures are nearly powers of budgets."""
    from scipy.optimize import brentq

    def over(log: float) -> float:
        return math.log(min(max(share(math.exp(log)), 1e-3), 1e3))

    ends = math.log(low), math.log(high)
    if over(ends[0]) >= 0:  # the budget that composition allows is safe, but for rounding
        return low
    return math.exp(brentq(over, *ends, xtol=precision, rtol=precision) - 2 * precision)


@dataclass(frozen=True, eq=False)
class _Place:
    """Budgets, the figures there, and how they grow with the logarithm of each budget.

    Attributes:
        budgets: (free,).
        figures: (secrets,) some of them expected from the place before.
        slopes: (secrets, free).
        bounds: (secrets,) what the figures are to keep.
    """

    budgets: Array
    figures: Array
    slopes: Array
    bounds: Array

    def expected(self, budgets: Array) -> Array:
        """Return the figures at other budgets, to first order."""
        return np.asarray(self.figures + self.slopes @ np.log(budgets / self.budgets))

    @property
    def factor(self) -> float:
        """By what all budgets are to be multiplied so that the worst figure keeps its bound, about."""
        room, slopes = self.bounds - self.figures, self.slopes.sum(axis=1)
        active = np.isfinite(self.bounds) & (slopes > 0)
        steps = room[active] / slopes[active]
        return float(np.exp(np.clip(steps.min(initial=1.0), -1.0, 1.0)))


def unequal_at_delta(problem: Problem, rule: AtDelta, uniform: float) -> Array:
    """Return budgets with less weighted error, from `uniform` for all on.

    Each step takes the figures to be linear in the logarithms of the budgets, and goes to the least error
    within reach of where that holds ("sequential linear programming": Griffith and Stewart 1961).
    """
    check_errors(problem, problem.alike(uniform))
    place = _look(problem, rule, problem.alike(uniform))
    best, error = place, _kept_error(problem, place)
    reach = _REACH
    for _ in track(range(_STEPS), "budgets"):
        place = _look(problem, rule, _step(problem, best, reach), best)
        if (found := _kept_error(problem, place)) < error:
            is_small = found > error * 0.995
            best, error = place, found
            reach = reach / 2 if is_small else reach
        else:
            reach /= 2
        if reach < _LEAST_REACH:
            break
    budgets = _kept(problem, best)
    return _on_ray(problem, rule, budgets) if rule.is_listed else budgets


def _on_ray(problem: Problem, rule: AtDelta, budgets: Array) -> Array:
    """Return the budgets, all multiplied so that limits are kept to the last digits."""

    def scaled(factor: float) -> Array:
        return np.asarray(np.clip(factor * budgets, problem.least, LARGEST_BUDGET))

    def share(factor: float) -> float:
        return float(np.max(rule.figures(scaled(factor)) / problem.bounds))

    low = 1.0
    while share(low) > 1:
        low /= _GROWTH
    return scaled(_largest(share, low, LARGEST_BUDGET / float(budgets.min()), rule))


def _look(problem: Problem, rule: AtDelta, budgets: Array, before: _Place | None = None) -> _Place:
    """Return figures and slopes at these budgets; of secrets far below their limit, what is expected."""
    bounds = problem.bounds * aim(rule)
    figures, slopes = np.zeros(len(bounds)), np.zeros((len(bounds), len(budgets)))
    if before is not None:
        figures, slopes = before.expected(budgets), before.slopes.copy()
    raised = budgets * _RAISE
    for row, (secret, limit) in enumerate(problem.limits.items()):
        if math.isfinite(limit) and (before is None or figures[row] > _WATCHED * limit):
            figures[row] = rule.figure(secret, budgets)
            slopes[row] = rule.growth_of(secret, budgets, raised) / math.log(_RAISE)
    return _Place(budgets, figures, np.maximum(slopes, 0.0), bounds)


def _kept(problem: Problem, place: _Place) -> Array:
    """Return the budgets, all multiplied so that limits are about kept."""
    return np.asarray(np.clip(place.factor * place.budgets, problem.least, LARGEST_BUDGET))


def _kept_error(problem: Problem, place: _Place) -> float:
    return problem.weighted_error(_kept(problem, place))


def _step(problem: Problem, place: _Place, reach: float) -> Array:
    """Return the budgets within reach of the least error, were figures linear in their logarithms."""
    from scipy.optimize import minimize

    logs = np.log(place.budgets)
    least, most = math.log(problem.least), math.log(LARGEST_BUDGET)
    ends = [(max(log - reach, least), min(log + reach, most)) for log in logs]
    limited = np.isfinite(place.bounds)
    slopes = place.slopes[limited] / place.bounds[limited, None]
    room = 1 - place.figures[limited] / place.bounds[limited]
    scale = problem.weighted_error(place.budgets)
    result = minimize(
        lambda moved: math.log(problem.weighted_error(np.exp(moved)) / scale), logs, method="SLSQP",
        jac=lambda moved: error_slopes(problem, moved) / problem.weighted_error(np.exp(moved)),
        bounds=ends, options={"maxiter": 60, "ftol": 1e-6},
        constraints=[{
            "type": "ineq", "fun": lambda moved: room - slopes @ (moved - logs), "jac": lambda _: -slopes
        }],
    )  # fmt: skip
    found = np.nan_to_num(result.x, nan=least)  # SLSQP may end in NaN
    return np.asarray(np.exp(np.clip(found, [low for low, _ in ends], [high for _, high in ends])))


def certificate_at_delta(problem: Problem, rule: AtDelta, budgets: Array, uniform: float) -> Certificate:
    """Say what unequal budgets gain; chance would hide what raising a single one does."""
    place = _look(problem, rule, budgets)
    shares = place.figures / place.bounds
    gain = problem.weighted_error(problem.alike(uniform)) / problem.weighted_error(budgets)
    at_limit = place.figures / shares.max()  # certified figures are at the limit, estimates a little below
    return Certificate({}, gain, unbalanced(problem, at_limit / aim(rule), place.slopes.T, budgets))


@dataclass(frozen=True, eq=False)
class Certified:
    """Budgets, and the certified figures of every secret there."""

    budgets: Array
    leakages: dict[str, DeltaLeakage]


def certified(problem: Problem, rule: AtDelta, budgets: Array, seed: int | None) -> Certified:
    """Return these budgets, all multiplied by a number near 1, that are certified to keep every limit."""
    order, pull = _nearest_first(problem, rule, budgets)
    coins = np.random.default_rng(seed)
    kept: Certified | None = None
    factor = 1.0
    for attempt in range(1, _ATTEMPTS + 1):
        scaled = np.clip(factor * budgets, problem.least, LARGEST_BUDGET)
        leakages = _drawn(problem, rule, scaled, order, BETA / 2**attempt, coins)
        shares = [item.value / problem.limits[name] for name, item in leakages.items()]
        is_safe = len(leakages) == len(problem.limits) and max(shares) <= 1
        if is_safe:
            kept = Certified(scaled, {name: leakages[name] for name in problem.secrets})
        room = 1 - max(shares)
        is_capped = bool((scaled >= LARGEST_BUDGET).all())
        if kept is not None and (
            not is_safe or rule.is_listed or is_capped or room < _ROOM or attempt > _TRIES
        ):
            return kept
        factor *= math.exp(max((room - _MARGIN) / pull, -0.5))
    return _composed(problem, rule, coins)


def _nearest_first(problem: Problem, rule: AtDelta, budgets: Array) -> tuple[list[str], float]:
    """Return the secrets, nearest to its limit first, and how fast that one's share of it grows."""
    figures = rule.figures(budgets)
    shares = figures / problem.bounds
    worst = int(np.argmax(shares))
    order = [problem.secrets[place] for place in np.argsort(-shares, kind="stable")]
    grown = rule.growth_of(problem.secrets[worst], budgets, budgets * _RAISE).sum() / math.log(_RAISE)
    return order, max(float(grown / problem.bounds[worst]), 0.5)


def _drawn(
    problem: Problem, rule: AtDelta, budgets: Array, order: list[str], beta: float, coins: np.random.Generator
) -> dict[str, DeltaLeakage]:
    """Return the certified figures, up to the first that breaks its limit."""
    plan = Plan(problem.releases_at(budgets))
    leakages: dict[str, DeltaLeakage] = {}
    for secret in order:
        seed = int(coins.integers(1 << 62))
        leakages[secret] = leakage_at(rule.belief, plan, secret, rule.delta, beta=beta, seed=seed)
        if leakages[secret].value > problem.limits[secret]:
            break
    return leakages


def _composed(problem: Problem, rule: AtDelta, coins: np.random.Generator) -> Certified:
    """Return the budget that composition allows, where no larger one was certified."""
    budgets = problem.alike(uniform_budget(problem, composed_at_delta(problem, rule.delta)))
    leakages = _drawn(problem, rule, budgets, list(problem.secrets), BETA, coins)
    return Certified(budgets, leakages)
