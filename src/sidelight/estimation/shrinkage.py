"""Shrinkage across attributes that share a domain: noisy frequencies lean on their mean and on uniformity.

Z = u + a (pool - u) + w (S - pool): u uniform, pool the mean of the unbiased estimates S of the attributes
that share the domain; w and a are positive-part James-Stein factors (James, Stein 1961; the pooled target is
Lindley's). Below 4 values, or 3 degrees of freedom within, a factor stays 1: no estimator could be better
everywhere. Only attributes that are about as noisy as each other pool: leaning on one that is much noisier
would spoil an accurate estimate. Every step takes many simulations at once: shape (..., attributes, values).

Attributes that were reported together borrow from their joint, where they share no domain with others. A
group's joint is estimated without bias, projected to the simplex, and summed to marginals. Where the
attributes depend on each other the joint is sparse, and its projection removes noise that no projection of
the marginals can see; where they are independent it only adds bias. Stein's estimate of risk tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sidelight.estimation.unbiased import Every
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.mechanisms import Aggregate
from sidelight.protocols.groups import ReportedGroup, marginal
from sidelight.protocols.records import RecordSums
from sidelight.schema import Schema

Method = Callable[[Array, Array], Array]
"""From estimates and the summed variance of each attribute to better estimates."""
_TINY = 1e-300  # keeps divisors above 0 and leaves every other number as it is
_PEERS = 4.0
"""Attributes pool whose summed variances lie within one power of this, counted from the least noisy."""


def shared_domains(schema: Schema) -> list[tuple[str, ...]]:
    """Return the attributes grouped by their values; those alone with theirs are groups of one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for attribute in schema:
        groups.setdefault(attribute.values, []).append(attribute.name)
    return [tuple(names) for names in groups.values()]


def by_domain(schema: Schema, estimates: Every, method: Method) -> dict[str, Array]:
    """Return the frequencies that a method, `shrunken` for example, makes of each domain's estimates."""
    result: dict[str, Array] = {}
    for names in shared_domains(schema):
        raw = np.stack([estimates[name].estimate for name in names])
        spread = np.stack([estimates[name].variance(to_simplex(estimates[name].estimate)) for name in names])
        result |= dict(zip(names, method(raw, spread.sum(axis=-1)), strict=True))
    return {name: result[name] for name in schema.names}


def shrunken(estimates: Array, spread: Array) -> Array:
    """Return two-level James-Stein estimates, projected to the simplex.

    They are made of unbiased ones and of the summed variance of each attribute's values, (..., attributes).
    """
    return _among_peers(
        estimates, spread, lambda some, noise: to_simplex(_moved(some, *_factors(some, noise)[:2]))
    )


def least_risk(estimates: Array, spread: Array) -> Array:
    """Return the shrunken or the merely projected estimates, whichever Stein's estimate of risk prefers."""
    return _among_peers(estimates, spread, lambda some, noise: chosen_risk(some, noise)[0])


def _among_peers(estimates: Array, spread: Array, method: Method) -> Array:
    """Apply a method to each set of attributes that are about equally noisy."""
    least = np.maximum(spread.min(axis=-1, keepdims=True), _TINY)
    levels = np.floor(np.log(np.maximum(spread, _TINY) / least) / np.log(_PEERS)).astype(np.int64)
    if not levels.any():
        return method(estimates, spread)
    count, size = estimates.shape[-2:]
    flat, noise = estimates.reshape(-1, count, size), spread.reshape(-1, count)
    patterns, which = np.unique(levels.reshape(-1, count), axis=0, return_inverse=True)
    result = np.empty_like(flat)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == number)
        for level in np.unique(pattern):
            block = np.ix_(rows, np.flatnonzero(pattern == level))
            result[block] = method(flat[block], noise[block])
    return result.reshape(estimates.shape)


def chosen_risk(estimates: Array, spread: Array) -> tuple[Array, Array]:
    """Return what `least_risk` chooses, and its estimated risk, summed over attributes and values."""
    within, above, turning = _factors(estimates, spread)
    moved = to_simplex(_moved(estimates, within, above))
    plain = to_simplex(estimates)
    own = within + (above - within) / estimates.shape[-2]
    moved_risk = _risk(estimates, moved, spread, own) + turning
    plain_risk = _risk(estimates, plain, spread, np.ones_like(own))
    prefers = moved_risk <= plain_risk
    return np.where(prefers[..., None, None], moved, plain), np.where(prefers, moved_risk, plain_risk)


def _factors(estimates: Array, spread: Array) -> tuple[Array, Array, Array]:
    """Return w, a, and what their own dependence on the data adds to the risk."""
    count, size = estimates.shape[-2:]
    pool = estimates.mean(axis=-2)
    free = (count - 1) * (size - 1)
    mean_spread = spread.mean(axis=-1)
    apart = ((estimates - pool[..., None, :]) ** 2).sum(axis=(-2, -1))
    lost_within = max(free - 2, 0) / max(free, 1) * mean_spread * (count - 1) / np.maximum(apart, _TINY)
    far = ((pool - 1 / size) ** 2).sum(axis=-1)
    lost_above = max(size - 3, 0) / (size - 1) * mean_spread / count / np.maximum(far, _TINY)
    step = mean_spread / (size - 1)
    turning = sum(4 * step * np.where(lost < 1, lost, 0.0) for lost in (lost_within, lost_above))
    return np.clip(1 - lost_within, 0, 1), np.clip(1 - lost_above, 0, 1), np.asarray(turning)


def _moved(estimates: Array, within: Array, above: Array) -> Array:
    even = 1 / estimates.shape[-1]
    pool = estimates.mean(axis=-2, keepdims=True)
    a, w = above[..., None, None], within[..., None, None]
    return np.asarray(even + a * (pool - even) + w * (estimates - pool))


def _risk(estimates: Array, result: Array, spread: Array, own: Array) -> Array:
    """Return Stein's unbiased estimate of the risk, factors taken as fixed (Stein 1981).

    Noise adds up to 0 over an attribute's values, evenly in all other directions; a projected attribute
    moves with the noise in as many directions as it has positive values, less one.
    """
    size = estimates.shape[-1]
    directions = np.count_nonzero(result > 0, axis=-1) - 1
    moves = (spread / (size - 1) * directions).sum(axis=-1) * own
    return np.asarray(((result - estimates) ** 2).sum(axis=(-2, -1)) - spread.sum(axis=-1) + 2 * moves)


def joint_marginals(schema: Schema, parts: Sequence[RecordSums], estimates: Every) -> dict[str, Array]:
    """Return the marginals of those groups whose joint is predicted to estimate them better."""
    alone = {names[0] for names in shared_domains(schema) if len(names) == 1}
    people = sum(part.people for part in parts)
    result: dict[str, Array] = {}
    for part in parts:
        groups = part.protocol.groups
        for group, sums in zip(groups, part.parts, strict=False):  # sums may be of no group
            others = {name for other in groups if other is not group for name in other.names}
            if len(group.names) > 1 and set(group.names) <= alone - others and sums.reports > 0:
                result |= _borrow(group, sums, people, estimates)
    return result


def _borrow(group: ReportedGroup, sums: Aggregate, people: int, estimates: Every) -> dict[str, Array]:
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
