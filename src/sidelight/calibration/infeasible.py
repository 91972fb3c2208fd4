"""Limits that no budget keeps, and which attributes are to blame."""

from __future__ import annotations

import numpy as np

from sidelight.calibration.constraint import Constraint, leakage_alone
from sidelight.calibration.problem import Problem
from sidelight.calibration.uniform import ROUNDING, shares_over
from sidelight.foundation.errors import InputError
from sidelight.foundation.html import listed
from sidelight.foundation.numbers import significant

_MOST = 8
"""How many attributes an error names."""


def check_feasible(problem: Problem, constraint: Constraint) -> None:
    """Raise if the limits are broken although every free budget is the least one; name the cause."""
    figures = constraint.figures(problem.channels(problem.alike(problem.least)))
    if (problem.bounds == 0).any():  # the least budgets could pass a rounding error for nothing at all
        larger = constraint.figures(problem.channels(problem.alike(1.0)))
        figures = np.where(problem.bounds == 0, larger, figures)
    over = shares_over(figures, problem.bounds)
    worst = int(np.argmax(over))
    if over[worst] <= 0:
        return
    secret, limit = problem.secrets[worst], float(problem.bounds[worst])
    if limit == 0:
        raise InputError(_nothing_allowed(problem, secret))
    fixed = [release.name for release in problem.releases if not problem.is_free(release)]
    if not fixed:
        raise InputError(
            f"the limit of {limit:g} for {secret!r} is too small: the least budget that is tried, "
            f"{problem.least:g}, leaks {_nats(figures[worst])}. Raise the limit, or withhold attributes."
        )
    raise InputError(
        f"no budget keeps the limit of {limit:g} for {secret!r}: what is fixed leaks {_nats(figures[worst])} "
        f"already, through {_causes(problem, fixed, secret)}. Withhold or coarsen one of them, give it a "
        "budget to choose, or raise the limit."
    )


def _causes(problem: Problem, fixed: list[str], secret: str) -> str:
    """Name what is fixed and says something about the secret, the most first; else all of it together."""
    leaks = {name: _leaks(problem, name, secret) for name in fixed}
    named = sorted((name for name in fixed if leaks[name] > ROUNDING), key=lambda name: -leaks[name])
    if not named:
        return f"{listed(fixed, _MOST)} together"
    return listed([f"{name} ({_nats(leaks[name])} alone)" for name in named], _MOST)


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


def _nats(value: float) -> str:
    return significant(value, "infinitely much")
