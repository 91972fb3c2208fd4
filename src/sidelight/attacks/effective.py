"""What an attribute's budget is worth once correlated attributes are released too."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError
from sidelight.leakage.bounds import Bound, Leakage
from sidelight.leakage.published import reconstruction_advanced, reconstruction_sum
from sidelight.leakage.totals import TotalMethod, total_leakage
from sidelight.plan import Plan


@dataclass(frozen=True)
class EffectiveBudget:
    """The stated budget of a secret beside what the whole release spends on it.

    Attributes:
        stated: the budget of its own report, 0 where it is not released.
        leakage: exact or certified, for the belief, with its own delta.
        independent, interdependent: Theorems 1 and 2 of the reconstruction paper, as published.
        failure: Theorem 1 for the deltas.
    """

    secret: str
    stated: float
    leakage: Leakage
    independent: Bound
    interdependent: Bound
    failure: Bound

    @property
    def is_understated(self) -> bool:
        """Whether Theorem 1 is below a figure that the leakage surely reaches."""
        return self.independent.value < self.leakage.lower.value - 1e-9  # beyond what rounding explains


def effective_budget(
    belief: Belief, plan: Plan, secret: str, *, slack: float = 1e-6, method: TotalMethod = "auto"
) -> EffectiveBudget:
    """Return the stated budget, the leakage and the two published figures for one secret.

    Theorem 2 takes one budget for all other attributes; where they differ it gets the largest. It may fail
    with the probability `slack`. The `method` is that of the leakage's upper end.
    """
    channels = plan.channels()
    for name, channel in channels.items():
        if math.isinf(channel.epsilon):
            raise InputError(f"the plan sends {name!r} as it is; there is no budget to add up.")
    budgets = {name: channel.epsilon for name, channel in channels.items() if channel.epsilon}
    deltas = {name: channels[name].delta for name in budgets}
    own, own_delta = budgets.pop(secret, 0.0), deltas.pop(secret, 0.0)
    parts = list(budgets.values())
    if not parts:
        raise InputError(f"the plan releases nothing beside {secret!r}; there is nothing to add up.")
    leakage, independent = total_leakage(belief, channels, secret, method), reconstruction_sum(own, parts)
    interdependent = reconstruction_advanced(own, max(parts), len(parts), slack)
    failure = reconstruction_sum(own_delta, list(deltas.values()))
    return EffectiveBudget(secret, own, leakage, independent, interdependent, failure)
