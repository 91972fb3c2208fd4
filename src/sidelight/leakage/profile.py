"""Privacy profiles: how the leakage falls when a failure of probability delta is allowed.

For a known channel all is exact. With M[x, y] = Pr(report y | secret x),

    delta(e) = max over ordered pairs x, x' of sum_y max(M[x, y] - e^e M[x', y], 0),

the hockey-stick divergence; a release keeps (e, delta) exactly if delta(e) <= delta. The sum is a maximum
over sets of reports, so delta bounds *events*. A delta that is checked report by report says nothing: split
a report into fifty equal ones and it falls to a fiftieth.

Where only the neighbour's (epsilon, delta) is known: a tight pair, and the published one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import check_number
from sidelight.leakage.bounds import Bound, Leakage
from sidelight.leakage.divergence import delta_at, epsilon_at
from sidelight.leakage.pair import conditional_rows, pair_leakage, secret_rows
from sidelight.mechanisms import AnyChannel, Channel
from sidelight.mechanisms.channel.channel import check_delta
from sidelight.mechanisms.channel.generic import generic_worst

NOTHING = Bound(0.0, "lower", "nothing is known of the release but its budget")


@dataclass(frozen=True)
class ProfilePoint:
    """One point of a privacy profile: the release leaks (epsilon, delta), and no smaller delta will do.

    Attributes:
        epsilon: the leakage; infinity where no finite one keeps the delta.
        delta: the probability with which it may fail; at infinity, that a report rules a value out.
        likelier: the secret value of the worst pair that the worst reports favour; None if all leak alike.
        unlikelier: the other one.
    """

    epsilon: float
    delta: float
    likelier: str | None
    unlikelier: str | None


def privacy_profile(
    belief: Belief, channel: Channel, secret: str, neighbour: str, epsilon: float
) -> ProfilePoint:
    """Return the exact delta of the secret's leakage at `epsilon` through the neighbour's report.

    The channel's reports must be few enough to be listed. The secret as its own neighbour: its own report.
    """
    check_belief("belief", belief)
    level = check_number("epsilon", epsilon, at_least=0, infinite=True)
    rows, possible = secret_rows(belief, channel, secret, neighbour)
    delta, i, j = delta_at(rows, level)
    return ProfilePoint(level, delta, *_labels(belief, secret, possible, i, j))


def profile_epsilon(
    belief: Belief, channel: Channel, secret: str, neighbour: str, delta: float
) -> ProfilePoint:
    """Return the smallest leakage whose delta is at most `delta`: the inverse of `privacy_profile`.

    The point's own delta is the exact one at that leakage: at most `delta`, but for rounding (1e-12 of it)
    where `delta` is just the probability that a report rules a secret value out.
    """
    check_belief("belief", belief)
    allowed = check_delta(delta)
    rows, possible = secret_rows(belief, channel, secret, neighbour)
    epsilon, i, j = epsilon_at(rows, allowed)
    reached, *pair = delta_at(rows, epsilon)
    i, j = (i, j) if i != j else pair
    return ProfilePoint(epsilon, reached, *_labels(belief, secret, possible, i, j))


def _labels(
    belief: Belief, secret: str, possible: Positions, likelier: int, unlikelier: int
) -> tuple[str | None, str | None]:
    if likelier == unlikelier:
        return None, None
    labels = belief.schema[secret].values
    return labels[possible[likelier]], labels[possible[unlikelier]]


def approximate_pair(belief: Belief, epsilon: float, delta: float, secret: str, neighbour: str) -> Leakage:
    """Return what any (epsilon, delta)-LDP release of the neighbour says about the secret: a tight pair.

    The leakage is L, the generic bound at epsilon, failing with probability delta (e^L - 1)/(e^epsilon - 1),
    or delta times the total variation distance at epsilon = 0. Proof: an event's probabilities q given the
    neighbour's values lie in [c, e^epsilon c + delta] for some c. With H = e^L and E = sum max(g - H h, 0)
    then (g - H h) q <= c (1 - H + (e^epsilon - 1) E) + delta E, where the bracket is at most 0 because L is
    the generic bound; and E <= (H - 1)/(e^epsilon - 1), with equality for the worst pair.

    The delta must be one over events; one checked for single reports will not do.
    """
    bound, rows = _generic_bound(belief, epsilon, secret, neighbour)
    failure = check_delta(delta) * delta_at(rows, bound.value)[0]
    upper = replace(bound, method="worst release of this epsilon and delta")
    return Leakage(secret, (neighbour,), NOTHING, upper, failure)


def published_approximate_pair(
    belief: Belief, epsilon: float, delta: float, secret: str, neighbour: str
) -> Leakage:
    """Return the published pair (L, f*), f* = delta g(S*) (CPL, eq. (20)).

    Valid if delta bounds events, and looser than `approximate_pair`. The paper asks for delta per report,
    and then it fails: reveal a bit with probability 0.9 as one of fifty equal reports, so that no report
    needs more than 0.018, and let the secret agree with the bit with probability 0.965. At epsilon = 1 the
    pair states a failure of 0.017; it is 0.79. Values that tie for S* are left out, the smaller reading.
    """
    bound, rows = _generic_bound(belief, epsilon, secret, neighbour)
    worst = generic_worst(rows, math.exp(-epsilon))
    failure = check_delta(delta) * min(float(rows[worst.likelier, worst.report].sum()), 1.0)
    upper = replace(bound, kind="published", method="(L, f*) (CPL, Algorithm 2)")
    return Leakage(secret, (neighbour,), NOTHING, upper, failure)


def _generic_bound(belief: Belief, epsilon: float, secret: str, neighbour: str) -> tuple[Bound, Array]:
    """Return the worst release of this budget, and Pr(neighbour | secret)."""
    check_belief("belief", belief)
    channel = AnyChannel(belief.schema[neighbour].size, check_number("epsilon", epsilon, at_least=0))
    bound = pair_leakage(belief, channel, secret, neighbour).upper
    return bound, conditional_rows(belief, secret, neighbour)[0]
