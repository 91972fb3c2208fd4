"""Shrinkage across attributes that share a domain: noisy frequencies lean on their mean and on uniformity.

Z = u + a (pool - u) + w (S - pool): u uniform, pool the mean of the unbiased estimates S of the attributes
that share the domain; w and a are positive-part James-Stein factors (James, Stein 1961; the pooled target is
Lindley's). Below 4 values, or 3 degrees of freedom within, a factor stays 1: no estimator could be better
everywhere. Only attributes that are about as noisy as each other pool: leaning on one that is much noisier
would spoil an accurate estimate. Every step takes many simulations at once: shape (..., attributes, values).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.simplex import to_simplex
from sidelight.schema import Schema

if TYPE_CHECKING:
    from sidelight.estimation.unbiased import Unbiased

_TINY = 1e-300
_PEERS = 4.0
"""Attributes pool whose summed variances lie within one power of this, counted from the least noisy."""


def shared_domains(schema: Schema) -> list[tuple[str, ...]]:
    """Return the attributes grouped by their values; those alone with theirs are groups of one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for attribute in schema:
        groups.setdefault(attribute.values, []).append(attribute.name)
    return [tuple(names) for names in groups.values()]


def shrink(schema: Schema, estimates: Mapping[str, Unbiased]) -> dict[str, Array]:
    """Return shrunken frequencies of every attribute, on the simplex."""
    return _by_domain(schema, estimates, shrunken)


def choose(schema: Schema, estimates: Mapping[str, Unbiased]) -> dict[str, Array]:
    """Return, domain by domain, the shrunken or the projected frequencies, by their predicted error."""
    return _by_domain(schema, estimates, least_risk)


def _by_domain(
    schema: Schema, estimates: Mapping[str, Unbiased], method: Callable[[Array, Array], Array]
) -> dict[str, Array]:
    result: dict[str, Array] = {}
    for names in shared_domains(schema):
        raw = np.stack([estimates[name].estimate for name in names])
        spread = np.stack([estimates[name].variance(to_simplex(estimates[name].estimate)) for name in names])
        result |= dict(zip(names, method(raw, spread.sum(axis=-1)), strict=True))
    return result


def shrunken(estimates: Array, spread: Array) -> Array:
    """Return two-level James-Stein estimates, projected to the simplex.

    Args:
        estimates: unbiased, shape (..., attributes, values).
        spread: the summed variance of each attribute's values, shape (..., attributes).
    """
    return _among_peers(estimates, spread, _shrunken)


def least_risk(estimates: Array, spread: Array) -> Array:
    """Return the shrunken or the merely projected estimates, whichever Stein's estimate of risk prefers."""
    return _among_peers(estimates, spread, lambda some, noise: chosen_risk(some, noise)[0])


def _among_peers(estimates: Array, spread: Array, method: Callable[[Array, Array], Array]) -> Array:
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


def _shrunken(estimates: Array, spread: Array) -> Array:
    return to_simplex(_moved(estimates, *_factors(estimates, spread)[:2]))


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
    turning = 4 * step * np.where(lost_within < 1, lost_within, 0.0)
    turning += 4 * step * np.where(lost_above < 1, lost_above, 0.0)
    return np.clip(1 - lost_within, 0, 1), np.clip(1 - lost_above, 0, 1), turning


def _moved(estimates: Array, within: Array, above: Array) -> Array:
    even = 1 / estimates.shape[-1]
    pool = estimates.mean(axis=-2, keepdims=True)
    return np.asarray(
        even + above[..., None, None] * (pool - even) + within[..., None, None] * (estimates - pool)
    )


def _risk(estimates: Array, result: Array, spread: Array, own: Array) -> Array:
    """Return Stein's unbiased estimate of the risk, factors taken as fixed (Stein 1981).

    Noise adds up to 0 over an attribute's values, evenly in all other directions; a projected attribute
    moves with the noise in as many directions as it has positive values, less one.
    """
    size = estimates.shape[-1]
    directions = np.count_nonzero(result > 0, axis=-1) - 1
    moves = (spread / (size - 1) * directions).sum(axis=-1) * own
    return np.asarray(((result - estimates) ** 2).sum(axis=(-2, -1)) - spread.sum(axis=-1) + 2 * moves)
