"""Temporal privacy leakage: what all reports of a chain say about the state of one round, from budgets alone.

Rooted at the state of round t, the reports before it and those after it are independent given that state.
What the reports up to t say is a_t = eps + generic(Pr(X_{t-1} | X_t), a_{t-1}), what those from t on say is
f_t = eps + generic(Pr(X_{t+1} | X_t), f_{t+1}), and all of them a_t + f_t - eps (Cao, Yoshikawa, Xiao, Xiong
2017). `generic` is what any channel of that budget reaches (CPL, Algorithm 2), so that no figure is too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_number, check_whole, invalid
from sidelight.leakage.over_time.chain import Chain
from sidelight.mechanisms.channel.generic import baseline_at, generic_worst

_MOST_POLICIES = 1 << 10


@dataclass(frozen=True)
class Recursion:
    """What reports say about the state of each round.

    Attributes:
        budgets: of each round's reports.
        before: what the reports up to each round say about its state, its own included.
        after: what those from each round on say, its own included.
    """

    budgets: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def totals(self) -> tuple[float, ...]:
        """What all reports of all rounds say about the state of each."""
        each = zip(self.before, self.after, self.budgets, strict=True)
        return tuple(math.inf if math.isinf(own) else a + f - own for a, f, own in each)


def accumulated(rows: Array | Sequence[Array], budgets: Sequence[float]) -> tuple[float, ...]:
    """Return what reports say as they accumulate, one after the other.

    Args:
        rows: Pr(state whose reports are known | state in question), of each step or of all of them.
        budgets: of each round's reports, at most.

    >>> steps = accumulated(np.array([[0.8, 0.2], [0.0, 1.0]]), [0.1] * 4)
    >>> [round(step, 2) for step in steps]
    [0.1, 0.18, 0.25, 0.3]
    """
    spent = [check_number("budgets", budget, at_least=0, infinite=True) for budget in budgets]
    steps = [rows] * (len(spent) - 1) if isinstance(rows, np.ndarray) else list(rows)
    if not spent or len(steps) != len(spent) - 1:
        raise invalid("rows", "as many steps as there are between the budgets", len(steps))
    figures = [spent[0]]
    for step, own in zip(steps, spent[1:], strict=True):
        figures.append(own + generic_worst(step, baseline_at(figures[-1])).value)
    return tuple(figures)


def chain_recursion(chain: Chain, budgets: Sequence[float]) -> Recursion:
    """Return what reports of these budgets, one of each round, say about the state of each round.

    Budgets are those of *fresh* noise. Of reports through a memory they are what one report says about the
    memo, eps_I: given all memos, which do not depend on the data, reports are fresh. The first report's
    budget, eps_1, is not enough.
    """
    parts = chain.marginals(len(budgets))
    # A state that cannot occur in a round has no row, and nothing to be told from.
    possible = [part > 0 for part in parts]
    backward, forward = [], []
    for t in range(1, len(parts)):
        joint = parts[t - 1][:, None] * chain.transition
        joint = joint[possible[t - 1]][:, possible[t]]
        backward.append(joint.T / joint.sum(axis=0)[:, None])
        forward.append(joint / joint.sum(axis=1, keepdims=True))
    spent = [float(budget) if some.sum() > 1 else 0.0 for budget, some in zip(budgets, possible, strict=True)]
    before = accumulated(backward, spent)
    after = accumulated(forward[::-1], spent[::-1])[::-1]
    return Recursion(tuple(spent), before, after)


def unlimited(rows: Array, budget: float) -> float:
    """Return what reports say in the end, however many there are: the limit of `accumulated`.

    For two rows and a set of states, q and d their probabilities of the set, a step takes z = e^a to
    e^eps (q z + 1 - q) / (d z + 1 - d). It rises and is concave, so that it has one fixed point above 1, at
    d z^2 - (d + q e^eps - 1) z - (1 - q) e^eps = 0, or none if d = 0 and q e^eps >= 1. A step takes the
    best rows and set, so its limit is the largest of their fixed points: each time the best ones at the
    figure so far say where to go on.

    >>> round(unlimited(np.array([[0.8, 0.2], [0.0, 1.0]]), 0.1), 4)
    0.6459
    """
    own = check_number("budget", budget, at_least=0, infinite=True)
    figure = own
    for _ in range(_MOST_POLICIES):
        worst = generic_worst(rows, baseline_at(figure))
        high, low = (float(rows[place, worst.report].sum()) for place in (worst.likelier, worst.unlikelier))
        reached = _fixed_point(high, low, own)
        if reached <= figure * (1 + 1e-13):
            return figure
        figure = reached
    return math.inf


def _fixed_point(q: float, d: float, budget: float) -> float:
    """Return the fixed point of the step of one pair and set, in nats; infinite where there is none."""
    if budget == 0 or q <= d:
        return budget
    if budget > 300:
        return math.inf
    factor = math.exp(budget)
    if d == 0:
        return math.log((1 - q) * factor / (1 - q * factor)) if q * factor < 1 else math.inf
    s = d + q * factor - 1
    root = math.sqrt(4 * d * factor * (1 - q) + s * s)
    # The same root in two forms: of each sign of s, the one that takes no difference of near numbers.
    return math.log((root + s) / (2 * d) if s > 0 else 2 * factor * (1 - q) / (root - s))


def chain_limit(chain: Chain, budget: float, epoch: int = 1) -> float | None:
    """Return what reports of all rounds, however many, say about the state of one in the middle.

    With an epoch, reports of the state at its start spend the budget, and the figure is of its worst round:
    in between, the reports of two epochs may say more about the state than about that of either start.
    None for a chain whose rounds differ, of which no round is in the middle for ever.
    """
    check_number("budget", budget, at_least=0, infinite=True)
    length = check_whole("epoch", epoch, at_least=1)
    if not chain.is_steady:
        return None
    possible = chain.start > 0
    if check_whole("states", int(possible.sum()), at_least=1) == 1:
        return 0.0
    if math.isinf(budget):
        return math.inf
    joint = (chain.start[:, None] * chain.transition)[possible][:, possible]
    backward, forward = joint.T / joint.sum(axis=0)[:, None], joint / joint.sum(axis=1, keepdims=True)
    before, after = (unlimited(np.linalg.matrix_power(rows, length), budget) for rows in (backward, forward))
    if length == 1:
        return before + after - budget
    steps = range(length)
    return max(_told(backward, step, before) + _told(forward, length - step, after) for step in steps)


def _told(rows: Array, steps: int, known: float) -> float:
    """Return what is told about a state so many steps away from one of which so much is known."""
    if not steps or math.isinf(known):
        return known
    return generic_worst(np.linalg.matrix_power(rows, steps), baseline_at(known)).value
