"""Limits that no budget keeps, and which attributes are to blame."""

from __future__ import annotations

import math

import numpy as np

from sidelight.calibration.constraint import Constraint
from sidelight.calibration.problem import Problem
from sidelight.foundation.errors import InputError
from sidelight.leakage.families import worst_ratio
from sidelight.leakage.pair import conditional_rows
from sidelight.mechanisms import FavouringChannel

_SHOWN = 8


def check_feasible(problem: Problem, constraint: Constraint) -> None:
    """Raise if the limits are broken although every free budget is the least one; name the cause."""
    budgets = np.full(len(problem.free), problem.least)
    figures = constraint.figures(problem.channels(budgets))
    over = figures - problem.bounds
    worst = int(np.argmax(over))
    if over[worst] <= 0:
        return
    secret, limit = problem.secrets[worst], float(problem.bounds[worst])
    if limit == 0:
        raise InputError(_nothing_allowed(problem, secret))
    fixed = [release for release in problem.releases if not problem.is_free(release)]
    causes = {release.name: _leaks(problem, release.name, secret) for release in fixed}
    named = sorted((name for name in causes if causes[name] > 0), key=lambda name: -causes[name])
    shown = _listed([f"{name} ({_nats(causes[name])} alone)" for name in named] or problem.free)
    raise InputError(
        f"no budget keeps the limit of {limit:g} for {secret!r}: what is fixed leaks {_nats(figures[worst])} "
        f"already, through {shown}. Withhold or coarsen one of them, give it a budget to choose, or raise "
        f"the limit."
    )


def _nothing_allowed(problem: Problem, secret: str) -> str:
    """Say which releases say anything at all about a secret that may not leak."""
    causes = [release.name for release in problem.releases if _leaks(problem, release.name, secret) > 0]
    return (
        f"a limit of 0 for {secret!r} lets nothing be released that says anything about it, and "
        f"{_listed(causes or [release.name for release in problem.releases])} would. Withhold them, or give "
        f"{secret!r} a limit above 0."
    )


def _leaks(problem: Problem, name: str, secret: str) -> float:
    """Return what one release alone says about the secret; a free one as if it were the truth."""
    release = problem.release(name)
    free = problem.is_free(release)
    channel = FavouringChannel(release.attribute.size, "singletons", 0.0) if free else release.channel()
    if name == secret:
        return channel.epsilon
    return worst_ratio(conditional_rows(problem.belief, secret, name)[0], channel).value


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _nats(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinitely much"
