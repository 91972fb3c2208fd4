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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from sidelight.calibration.at_delta import AtDelta, composed_at_delta
from sidelight.calibration.problem import LARGEST_BUDGET, Problem
from sidelight.calibration.unequal import Certificate, check_errors, error_slopes, unbalanced
from sidelight.calibration.uniform import ROUNDING, excess, uniform_budget
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import steps, track
from sidelight.leakage.totals import DeltaLeakage, leakage_at
from sidelight.leakage.totals.at_delta import BETA
from sidelight.plan import Plan

_AIM = 0.97
"""Estimates are brought to this share of a limit: a certified figure is a few hundredths above."""
_ROUGH, _FINE = 2e-3, 1e-10
"""How closely a budget is searched, as a share of it: on estimates, and where figures are exact."""
_GROWTH = 2.5
"""By how much a safe budget is raised until one is not."""
_SCANNED = 24
"""How many budgets are looked at where they are not ordered."""
_REACH, _LEAST_REACH = 0.6, 0.1
"""How far the logarithm of a budget goes in one step: at first, and before the search ends."""
_STEPS, _MANY_STEPS = 12, 40
"""How often it goes: on estimates, which chance limits, and where figures are exact."""
_WORTH = 0.98
"""A step that gains less than this shows that what is expected holds less far."""
_LANDINGS, _LANDED = 3, 0.02
"""How often budgets are scaled back to the limits, and how close in their logarithm is close enough."""
_LEAST_POWER = 0.5
"""A figure that chance shows to grow more slowly than this with all budgets would send them far away."""
_FLOOR = 0.05
"""As a share of its limit; a smaller figure has no power to speak of."""
_RAISE = 1.01
_WATCHED = 0.7
"""A secret whose figure is expected below this share of its limit is not looked at in a step."""
_ATTEMPTS = 12
"""So often a certificate is drawn before what composition allows is taken."""
_MARGIN = 0.007
"""Certified figures scatter by about as much, so that shrunken budgets are brought so far below a limit."""
_ROOM = 0.02
_TRIES = 4
"""A certificate that leaves more room than this share of a limit is tried again, up to so many times."""


def uniform_at_delta(problem: Problem, rule: AtDelta) -> float:
    """Return about the largest budget for all free attributes that keeps every limit.

    Secrets come one after the other: one that keeps its limit at what those before it allow asks no more.
    """
    composed = composed_at_delta(problem, rule.delta)
    low = problem.least
    if excess(problem, composed, problem.alike(low)) <= 0:  # it holds for every belief, so for this one
        low = uniform_budget(problem, composed)
    budget = tried = LARGEST_BUDGET
    with steps(lambda: f"one budget for all attributes: trying {tried:.3g}") as step:
        for number, (secret, limit) in enumerate(_limited(problem)):

            @cache  # the search asks again about the ends of what holds the budget
            def share(each: float, secret: str = secret, limit: float = limit) -> float:
                nonlocal tried
                tried = each
                step()
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

    ends = math.log(low), math.log(high)
    # What was looked at before is not looked at again, as the exponential of its logarithm might be.
    known = {ends[0]: low, ends[1]: high}

    def over(log: float) -> float:
        return math.log(min(max(share(known.get(log, math.exp(log))), 1e-3), 1e3))

    if over(ends[0]) >= 0:  # the budget that composition allows is safe, but for rounding
        return low
    return math.exp(brentq(over, *ends, xtol=precision, rtol=precision) - 2 * precision)


@dataclass(frozen=True, eq=False)
class _Place:
    """Budgets, the figures there, and how they grow.

    Near it, figures are taken for products of powers of the budgets: those of small budgets nearly are.

    Attributes:
        budgets: (free,).
        figures: (secrets,) some of them expected from the place before.
        powers: (secrets, free) of the budgets.
        bounds: (secrets,) what the figures are to keep.
    """

    budgets: Array
    figures: Array
    powers: Array
    bounds: Array

    def expected(self, budgets: Array) -> Array:
        """Return the figures to expect at other budgets."""
        return np.asarray(self.figures * np.exp(self.powers @ np.log(budgets / self.budgets)))

    @property
    def room(self) -> Array:
        """By how much the logarithms of the figures may grow, (secrets,); infinite without a limit."""
        return np.log(self.bounds / self.figures)

    @property
    def factor(self) -> float:
        """By what all budgets are to be multiplied so that the worst figure just keeps its bound."""
        powers = np.maximum(self.powers.sum(axis=1), _LEAST_POWER)
        return float(np.exp(np.clip((self.room / powers).min(), -_REACH, _REACH)))


def unequal_at_delta(problem: Problem, rule: AtDelta, uniform: float) -> Array:
    """Return budgets with less weighted error, from `uniform` for all on.

    Each step goes to the least error that is expected within reach, back to the limits, and looks anew
    ("sequential convex programming"; reach as in trust-region methods).
    """
    check_errors(problem, problem.alike(uniform))
    with steps("how figures grow with each budget") as step:
        step()
        best = _landed(problem, rule, _look(problem, rule, problem.alike(uniform)))
    error = problem.weighted_error(best.budgets)
    reach = _REACH
    most, least = (_MANY_STEPS, _LEAST_REACH / 10) if rule.is_listed else (_STEPS, _LEAST_REACH)
    for _ in track(range(most), "budgets"):
        place = _landed(problem, rule, _look(problem, rule, _step(problem, best, reach), best))
        found = problem.weighted_error(place.budgets)
        if found > error * _WORTH:
            reach /= 2
        if found < error:
            best, error = place, found
        if reach < least:
            break
    budgets = _on_ray(problem, rule, best.budgets) if rule.is_listed else best.budgets
    return min(problem.alike(uniform), budgets, key=problem.weighted_error)


def _landed(problem: Problem, rule: AtDelta, place: _Place) -> _Place:
    """Return a place on the same ray whose worst figure is about its bound."""
    for _ in range(_LANDINGS):
        if abs(math.log(place.factor)) < _LANDED:
            break
        scaled = np.clip(place.factor * place.budgets, problem.least, LARGEST_BUDGET)
        place = _look(problem, rule, scaled, place)
    return place


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
    """Return figures and powers at these budgets; of secrets far below their limit, what is expected."""
    bounds = problem.bounds * aim(rule)
    figures, powers = np.ones(len(bounds)), np.zeros((len(bounds), len(budgets)))
    if before is not None:
        figures, powers = before.expected(budgets), before.powers.copy()
    raised = budgets * _RAISE
    for row, (secret, limit) in enumerate(problem.limits.items()):
        if math.isfinite(limit) and (before is None or figures[row] > _WATCHED * limit):
            figures[row] = max(rule.figure(secret, budgets), _FLOOR * limit)
            grown = rule.growth_of(secret, budgets, raised) / math.log(_RAISE)
            powers[row] = np.maximum(grown, 0.0) / figures[row]
    return _Place(budgets, figures, powers, bounds)


def _step(problem: Problem, place: _Place, reach: float) -> Array:
    """Return the budgets of the least error within reach, as far as figures are what is expected."""
    from scipy.optimize import minimize

    logs = np.log(place.budgets)
    low = np.maximum(logs - reach, math.log(problem.least))
    high = np.minimum(logs + reach, math.log(LARGEST_BUDGET))
    limited = np.isfinite(place.bounds)
    room, powers = place.room[limited], place.powers[limited]
    result = minimize(
        lambda moved: math.log(problem.weighted_error(np.exp(moved))), logs, method="SLSQP",
        jac=lambda moved: error_slopes(problem, moved) / problem.weighted_error(np.exp(moved)),
        bounds=list(zip(low, high, strict=True)), options={"maxiter": 60, "ftol": 1e-6},
        constraints=[{
            "type": "ineq", "fun": lambda moved: room - powers @ (moved - logs), "jac": lambda _: -powers
        }],
    )  # fmt: skip
    return np.asarray(np.exp(np.clip(np.nan_to_num(result.x, nan=low.min()), low, high)))


def certificate_at_delta(problem: Problem, rule: AtDelta, budgets: Array, uniform: float) -> Certificate:
    """Say what unequal budgets gain; chance would hide what raising a single one does."""
    place = _look(problem, rule, budgets)
    gain = problem.weighted_error(problem.alike(uniform)) / problem.weighted_error(budgets)
    # certified figures are at their limits, estimates a little below
    at_limit = place.figures / np.max(place.figures / problem.bounds)
    slopes = place.figures * place.powers.T
    return Certificate({}, gain, unbalanced(problem, at_limit, slopes, budgets))


@dataclass(frozen=True, eq=False)
class Certified:
    """Budgets, and the certified figures of every secret there.

    Attributes:
        budgets: (free,).
        leakages: by secret.
        share: the largest figure as a share of its limit.
    """

    budgets: Array
    leakages: dict[str, DeltaLeakage]
    share: float


def certified(problem: Problem, rule: AtDelta, budgets: Array, seed: int | None) -> Certified:
    """Return these budgets, all multiplied by a number near 1, that are certified to keep every limit."""
    with steps("what is nearest to its limit") as step:
        step()
        order, power = _nearest_first(problem, rule, budgets)
    coins = np.random.default_rng(seed)
    kept: Certified | None = None
    factor = 1.0
    for attempt in range(1, _ATTEMPTS + 1):
        scaled = np.clip(factor * budgets, problem.least, LARGEST_BUDGET)
        drawn = _drawn(problem, rule, scaled, order, BETA / 2**attempt, coins)
        if drawn.share <= 1 and (kept is None or scaled.sum() > kept.budgets.sum()):
            kept = drawn
        is_last = rule.is_listed or attempt >= _TRIES or bool((scaled >= LARGEST_BUDGET).all())
        if kept is not None and (is_last or kept.share > 1 - _ROOM):
            return replace(kept, leakages={name: kept.leakages[name] for name in problem.secrets})
        factor *= min(max((1 - _MARGIN) / drawn.share, 0.3), 3.0) ** (1 / power)
    return _composed(problem, rule, coins)


def _nearest_first(problem: Problem, rule: AtDelta, budgets: Array) -> tuple[list[str], float]:
    """Return the secrets, nearest to its limit first, and the power by which its figure grows with all."""
    place = _look(problem, rule, budgets)
    shares = place.figures / place.bounds
    order = [problem.secrets[row] for row in np.argsort(-shares, kind="stable")]
    return order, max(float(place.powers[np.argmax(shares)].sum()), _LEAST_POWER)


def _drawn(
    problem: Problem, rule: AtDelta, budgets: Array, order: Sequence[str], beta: float,
    coins: np.random.Generator,
) -> Certified:  # fmt: skip
    """Return the certified figures, up to the first that breaks its limit."""
    plan = Plan(problem.releases_at(budgets))
    leakages: dict[str, DeltaLeakage] = {}
    share = 0.0
    for secret in order:
        seed = int(coins.integers(1 << 62))
        leakages[secret] = leakage_at(rule.belief, plan, secret, rule.delta, beta=beta, seed=seed)
        share = max(share, leakages[secret].value / problem.limits[secret])
        if share > 1:
            break
    return Certified(budgets, leakages, share)


def _composed(problem: Problem, rule: AtDelta, coins: np.random.Generator) -> Certified:
    """Return the budget that composition allows, where no larger one was certified."""
    composed = composed_at_delta(problem, rule.delta)
    if excess(problem, composed, problem.alike(problem.least)) <= 0:
        budgets = problem.alike(uniform_budget(problem, composed))
        drawn = _drawn(problem, rule, budgets, problem.secrets, BETA, coins)
        if drawn.share <= 1 + ROUNDING:
            return drawn
    raise InputError(
        f"no budgets could be certified at delta {rule.delta:g}; allow a larger delta or limit, or give "
        "what is fixed less budget."
    )
