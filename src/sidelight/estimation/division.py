"""What T rounds are worth, predicted: a kept response, people divided over rounds, or each person's budget.

With v(e) the variance of one report's noise at budget e, n people and the frequency f, a round's level has

    kept and sent again as it is       v(eps) / n,
    budget divided                     v(eps / T) / n,
    people divided                     (T v(eps) + (T-1) f(1-f)) / n   about all n people,

so that people win over budgets below the budget where v(eps/T) = T v(eps) + (T-1) f(1-f) (after LDP-IDS: Ren
et al. 2022). The mean over the rounds of values that stay the same has

    kept and sent again v(eps) / n,   budget divided v(eps / T) / (n T),   people divided v(eps) / n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_whole
from sidelight.mechanisms import Mechanism, create
from sidelight.protocols.protocol import check_budget, even_part

ONE_SHOT = ("grr", "ss", "oue", "olh")
"""The mechanisms of fresh noise that are compared."""
SENT_AGAIN = ("grr", "oue", "olh")
"""Those whose response can be kept and sent again as it is."""
NOISE_ON_TOP = ("l-grr", "l-osue", "loloha")
"""Those that keep a response and add fresh noise to it in every report."""
_STEPS = 200


def noise(mechanism: Mechanism, frequencies: Array) -> float:
    """Return the mean over values of the variance of one report's noise: without that of people."""
    spread = mechanism.variance(1, frequencies) - frequencies * (1 - frequencies)
    return float(np.maximum(spread, 0.0).mean())


def least_noise(names: Sequence[str], epsilon: float, frequencies: Array) -> Mechanism:
    """Return the mechanism among those named with the least noise at a budget, in their usual settings."""
    made = [create(name, len(frequencies), epsilon) for name in names if name != "ss" or len(frequencies) > 2]
    return min(made, key=lambda mechanism: noise(mechanism, frequencies))


def people_error(mechanism: Mechanism, rounds: int, frequencies: Array) -> float:
    """Return n times the error of a round's level about all people, where one in T reports in it."""
    people = float((frequencies * (1 - frequencies)).mean())
    return rounds * noise(mechanism, frequencies) + (rounds - 1) * people


def crossing_budget(name: str, rounds: int, frequencies: Array, largest: float = 50.0) -> float | None:
    """Return the budget above which dividing it errs less than dividing the people; None if there is none.

    >>> even = np.full(2, 0.5)
    >>> [round(crossing_budget("grr", rounds, even), 2) for rounds in (2, 10)]
    [3.06, 6.53]
    """
    count = check_whole("rounds", rounds, at_least=2)
    size = len(frequencies)

    def divides_people(epsilon: float) -> bool:
        part = create(name, size, even_part(epsilon, count))
        return noise(part, frequencies) > people_error(create(name, size, epsilon), count, frequencies)

    low, high = 1e-3, check_budget(largest)
    try:
        if divides_people(high):
            return None
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if divides_people(middle) else (low, middle)
            if high - low < 1e-9:
                break
    except InputError:  # a part so small that the mechanism has no thresholds for it
        return None
    return high
