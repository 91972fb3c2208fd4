"""How much noise a limit needs, with the correlations taken into account and without.

More Laplace noise is the same as adding independent noise to the answer afterwards (the quotient of the two
characteristic functions is one of a distribution), so leakage falls as the scale grows: a root can be
bracketed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError, check_number, invalid
from sidelight.foundation.files import json_number
from sidelight.knowledge.adversary import Adversary
from sidelight.knowledge.cells import Cells, cells_of
from sidelight.knowledge.exact import exact_leakage
from sidelight.knowledge.query import WIDEST, Query
from sidelight.knowledge.search import worst_adversary
from sidelight.leakage.bounds import TOO_FEW, Bound

SUPPRESSED = f"group privacy alone; {TOO_FEW}"
_PRECISION = 1e-9  # finer than any noise that is worth saving
_TOLERANCE = 1e-12
"""How far a figure at the chosen scale may exceed the limit by rounding alone."""
_ROUNDS = 256  # each makes at least one more adversary safe; far fewer are ever needed


@dataclass(frozen=True)
class NoiseChoice:
    """The least scale that keeps every adversary under a limit, beside what group privacy would take.

    Attributes:
        limit: how much any adversary may learn, in nats.
        scale: the least scale found; the figure at it is on the safe side.
        leakage: what the worst adversary learns at that scale.
        group_scale: the scale that group privacy needs: the sum of all sensitivities over the limit; infinite
            for a Gaussian, whose values have no limits.
    """

    limit: float
    scale: float
    adversary: Adversary
    leakage: Bound
    group_scale: float

    @property
    def saving(self) -> float:
        """How many times less noise than group privacy takes."""
        return self.group_scale / self.scale

    def shown(self, targets: Sequence[str], min_support: int) -> NoiseChoice:
        """Return the choice, or what group privacy takes where the worst figure rests on too few records."""
        if not min_support or self.leakage.rests_on(min_support):
            return self
        bound = Bound(self.limit, "certified", SUPPRESSED)
        return replace(self, scale=self.group_scale, adversary=Adversary(targets[0]), leakage=bound)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {
            "limit": self.limit,
            "scale": self.scale,
            "group_scale": json_number(self.group_scale),
            "saving": json_number(self.saving),
            **self.adversary.to_dict(),
            "leakage": self.leakage.to_dict(),
        }


def least_noise(
    belief: Belief, query: Query, limit: float, targets: Sequence[str] | None = None
) -> NoiseChoice:
    """Return the least Laplace scale at which no adversary learns more than `limit`.

    The worst adversary is made safe, then whoever is worst at that scale, until no one is above the limit.
    The scale is within 1e-9 of the least one; where even a billionth of what group privacy takes is enough,
    or smaller scales are too much work to try, it is the smallest that was tried. The query's own scale does
    not matter; the belief must be small enough that all adversaries can be tried.
    """
    most = check_number("limit", limit, above=0)
    cells = cells_of(belief, query)
    reach = query.sensitivities(cells.possible)
    chosen = [cells.schema.index(name) for name in (targets or cells.schema.names)]
    group = float(reach.sum()) / most
    if group == 0:
        raise InputError("no attribute moves the answer, so no noise is needed; check the query's parts.")
    scale = max(float(reach[chosen].max()) / most, group * _PRECISION)
    scale = _start(belief, query, most, scale, targets)
    for _ in range(_ROUNDS):
        adversary, bound, _ = worst_adversary(belief, query.with_scale(scale), targets)
        if bound.value <= most * (1 + _TOLERANCE):
            return NoiseChoice(most, scale, adversary, bound, group)
        scale = _safe_scale(cells, query, adversary, most, scale, group)
    raise ArithmeticError("the search for the least noise did not settle")


def _start(belief: Belief, query: Query, limit: float, scale: float, targets: Sequence[str] | None) -> float:
    """Return a scale that is not above the least: halve until someone is at the limit.

    What an attribute adds over the limit is too much where the other attributes leave it no choice.
    """
    floor = max(scale * _PRECISION, query.span / WIDEST)
    tried = scale = max(scale, floor)
    while True:
        try:
            _, bound, _ = worst_adversary(belief, query.with_scale(scale), targets)
        except TooLargeError:
            return tried
        if bound.value >= limit * (1 - _PRECISION) or scale <= floor:
            return scale
        tried, scale = scale, max(scale / 2, floor)


def _safe_scale(
    cells: Cells, query: Query, adversary: Adversary, limit: float, low: float, high: float
) -> float:
    """Return the least scale, from above, at which one adversary stays within the limit.

    Group privacy's scale `high` is enough up to rounding, so it may have to grow a little first.
    """

    def is_safe(scale: float) -> bool:
        return exact_leakage(cells, query.with_scale(scale), adversary).value <= limit

    growth = _PRECISION
    while not is_safe(high):
        if growth > 1:
            raise invalid("limit", "large enough to be told from rounding", limit, "Take 1e-12 or more.")
        low, high, growth = high, high * (1 + growth), 2 * growth
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_safe(middle) else (middle, high)
    return high  # the side on which the limit is known to be kept
