"""Attributes that were reported together borrow from their joint, where they share no domain with others.

A group's joint is estimated without bias, projected to the simplex, and summed to marginals. Where the
attributes depend on each other the joint is sparse, and its projection removes noise that no projection of
the marginals can see; where they are independent it only adds bias. Stein's estimate of risk tells which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.estimation.shrinkage import chosen_risk, shared_domains
from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array
from sidelight.foundation.simplex import to_simplex
from sidelight.mechanisms import Aggregate
from sidelight.protocols.groups import ReportedGroup, marginal
from sidelight.protocols.records import RecordSums
from sidelight.schema import Schema


def joint_marginals(
    schema: Schema, parts: Sequence[RecordSums], estimates: Mapping[str, Unbiased]
) -> dict[str, Array]:
    """Return the marginals of those groups whose joint is predicted to estimate them better.

    Args:
        schema: the attributes.
        parts: what was reported.
        estimates: the unbiased ones.
    """
    alone = {names[0] for names in shared_domains(schema) if len(names) == 1}
    people = sum(part.people for part in parts)
    result: dict[str, Array] = {}
    for part in parts:
        groups = part.protocol.groups
        for group, sums in zip(groups, part.parts, strict=False):  # sums may be of no group
            if _may_borrow(group, groups, alone, sums):
                result |= _borrow(group, sums, people, estimates)
    return result


def _may_borrow(
    group: ReportedGroup, groups: Sequence[ReportedGroup], alone: set[str], sums: Aggregate
) -> bool:
    """Whether a group is a group of attributes that only it reports and that share no domain."""
    others = {name for other in groups if other is not group for name in other.names}
    return len(group.names) > 1 and set(group.names) <= alone - others and sums.reports > 0


def _borrow(
    group: ReportedGroup, sums: Aggregate, people: int, estimates: Mapping[str, Unbiased]
) -> dict[str, Array]:
    joint = group.estimate(sums)
    near = to_simplex(joint.reshape(-1)).reshape(group.sizes)
    spread = group.randomiser.variance(sums.reports, near.reshape(-1)).reshape(group.sizes)
    spread = np.maximum(spread - near * (1 - near) / people, 0.0)
    together, apart = 0.0, 0.0
    marginals = {}
    for axis, name in enumerate(group.names):
        marginals[name] = marginal(near, axis)
        item = estimates[name]
        noise = item.variance(to_simplex(item.estimate)).sum()
        away = float(((marginals[name] - item.estimate) ** 2).sum())
        together += away - float(noise) + 2 * marginal_moves(spread, near, axis)
        apart += float(chosen_risk(item.estimate[None, :], np.array([noise]))[1])
    return marginals if together < apart else {}


def marginal_moves(spread: Array, near: Array, axis: int) -> float:
    """Return how much the projected joint's marginals move with the noise.

    With S the cells that stay positive, the projection moves by the noise in S less its mean over S; the
    noise of cells adds up to 0, so its covariance is D - dd'/sum(d), d the cells' variances.
    """
    stays = (near > 0).astype(np.float64)
    whole = max(float(spread.sum()), 1e-300)
    here, inside = marginal(spread, axis), marginal(spread * stays, axis)
    share = marginal(stays, axis) / stays.sum()
    moved = inside - inside * here / whole - share * (inside - inside.sum() * here / whole)
    return float(moved.sum())
