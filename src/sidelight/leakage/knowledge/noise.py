"""How much noise a limit needs, with the correlations taken into account and without.

More Laplace noise is the same as adding independent noise to the answer afterwards (the quotient of the two
characteristic functions is one of a distribution), so leakage falls as the scale grows: a root can be
bracketed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, check_number
from sidelight.leakage.bounds import Bound, Figure
from sidelight.leakage.knowledge.adversary import Adversary
from sidelight.leakage.knowledge.cells import Cells, cells_of
from sidelight.leakage.knowledge.exact import exact_leakage
from sidelight.leakage.knowledge.query import Query
from sidelight.leakage.knowledge.search import worst_adversary

_PRECISION = 1e-9
_ROUNDS = 64


@dataclass(frozen=True)
class NoiseChoice:
    """The least scale that keeps every adversary under a limit, beside what group privacy would take.

    Attributes:
        limit: how much any adversary may learn, in nats.
        scale: the least scale found; the figure at it is on the safe side.
        adversary: the worst adversary at that scale.
        leakage: what it learns there.
        group_scale: the scale that group privacy needs: the sum of all sensitivities over the limit.
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


def least_noise(
    belief: Belief, query: Query, limit: float, targets: Sequence[str] | None = None
) -> NoiseChoice:
    """Return the least Laplace scale at which no adversary learns more than `limit`.

    The worst adversary is made safe, then whoever is worst at that scale, until no one is above the limit.

    Args:
        belief: the joint distribution; small enough that all adversaries can be tried.
        query: what is asked; its own scale does not matter.
        limit: in nats.
        targets: the attributes to protect; all by default.
    """
    most = check_number("limit", limit, above=0)
    cells = cells_of(belief, query)
    reach = query.sensitivities(cells.possible)
    names = cells.schema.names
    chosen = [cells.schema.index(name) for name in (targets or names)]
    group = float(reach.sum()) / most
    if group == 0:
        raise InputError("no attribute moves the answer, so no noise is needed; check the query's parts.")
    scale = max(float(reach[chosen].max()) / most, group * _PRECISION)
    kind: Figure = "model" if belief.is_model else "exact"
    for _ in range(_ROUNDS):
        adversary, found, _ = worst_adversary(belief, query.with_scale(scale), targets)
        if found.value <= most * (1 + 1e-12):
            bound = exact_leakage(cells, query.with_scale(scale), adversary, kind)
            return NoiseChoice(most, scale, adversary, bound, group)
        scale = _safe_scale(cells, query, adversary, most, scale, group)
    raise ArithmeticError("the search for the least noise did not settle")


def _safe_scale(
    cells: Cells, query: Query, adversary: Adversary, limit: float, low: float, high: float
) -> float:
    """Return the least scale, from above, at which one adversary stays within the limit."""
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if exact_leakage(cells, query.with_scale(middle), adversary).value > limit:
            low = middle
        else:
            high = middle
    return high
