"""Formulas as papers print them. They are neither upper nor lower bounds; each says where it fails."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sidelight.belief import Belief
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import direct_leakage, pair_leakage
from sidelight.mechanisms import Channel


def pairwise_sum(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the direct leakage plus every pair's leakage (CPL, eq. (6)).

    Not a bound: two reports that each say nothing can tell the secret together. For X = A xor B with fair
    coins A, B and randomised response of budget 1 on all three it gives 1; the truth is 1.43378.
    """
    parts = [direct_leakage(belief, channels.get(secret), secret).value]
    parts += [
        pair_leakage(belief, channel, secret, name).value
        for name, channel in channels.items()
        if name != secret
    ]
    return Bound(math.fsum(parts), "published", "pairwise sum (CPL, eq. (6))")
