"""Group privacy: what holds for every belief, however the attributes go together (PDP, eq. (16))."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import check_is
from sidelight.knowledge.adversary import ADVERSARY_FIX, Adversary, mask_of
from sidelight.knowledge.cells import check_query
from sidelight.knowledge.query import Query
from sidelight.leakage.bounds import Bound

Array = NDArray[np.float64]
METHOD = "group privacy (PDP, eq. (16))"
_UPWARDS = 1 + 2.0**-46


def reaches(query: Query, possible: Sequence[NDArray[np.bool_]]) -> Array:
    """Return how far each attribute moves the answer, in units of the noise's scale: LS / lambda, (n,)."""
    return query.sensitivities(possible) / query.scale


def group_values(reach: Array) -> Array:
    """Return the group bound for every set of known attributes, (2^n,), rounded up.

    Bit j of a column's number stands for attribute j; the target is among the attributes not known.
    """
    count = len(reach)
    is_free = (np.arange(1 << count) >> np.arange(count)[:, None] & 1) == 0
    return np.asarray(reach @ is_free * _UPWARDS)


def group_bound(belief: Belief, query: Query, adversary: Adversary) -> Bound:
    """Return the sum of the sensitivities of the target and all unknown attributes over the scale (eq. (16)).

    Sound for every joint distribution of the values that can occur; rounded up.
    """
    check_belief("belief", belief)
    check_is("adversary", adversary, Adversary, ADVERSARY_FIX)
    check_query(belief, query)
    names = query.schema.names
    adversary.check(names)
    reach = reaches(query, [belief.prior(name) > 0 for name in names])
    known = mask_of(names, adversary.known)
    free = [float(value) for j, value in enumerate(reach) if not known >> j & 1]
    return Bound(sum(free) * _UPWARDS, "certified", METHOD)
