"""Leakage of a secret through one released attribute.

CPL, Algorithm 1: with P = Pr(U | secret) and the channel Q of U's release, the leakage is the largest
log-ratio within a column of P @ Q. A channel's favoured sets replace its matrix where it has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound, Leakage
from sidelight.leakage.divergence import delta_at
from sidelight.leakage.entry import check_channel
from sidelight.leakage.families import (
    Worst,
    claim_of,
    delta_of,
    own_pairs,
    single_of,
    stacked_worst,
    worst_ratio,
)
from sidelight.leakage.support import best_pair, witnessed
from sidelight.mechanisms import Channel, FavouringChannel
from sidelight.schema import Attribute

Array = NDArray[np.float64]
METHODS = {
    "singletons": "favoured sets",
    "subsets": "favoured sets",
    "all": "favoured sets",
    "any": "worst channel of this budget",
    "dense": "channel matrix",
    "continuous": "noise on the values' points",
}


def direct_leakage(belief: Belief, channel: Channel | None, secret: str) -> Leakage:
    """Return what the secret's own report says about it: its realised budget; 0 if it is not released."""
    check_belief("belief", belief)
    attribute = belief.schema[secret]
    if channel is None:
        return Leakage.exactly(secret, (), Bound(0.0, "exact", "not released"))
    check_channel(channel)
    check_fit(attribute, channel)
    prior = belief.prior(secret)
    possible = np.flatnonzero(prior > 0)
    if len(possible) < 2:
        return Leakage.exactly(secret, (secret,), Bound(0.0, "exact", "only one value is possible"))
    own = own_pairs(channel, possible)
    pair = best_pair(own, prior[possible])
    worst = Worst(float(own[pair]), *pair, np.zeros(0, dtype=np.intp))
    return _leakage(belief, secret, secret, worst, possible, channel)


def pair_leakage(belief: Belief, channel: Channel, secret: str, neighbour: str) -> Leakage:
    """Return what the neighbour's report alone says about the secret."""
    check_belief("belief", belief)
    check_channel(channel)
    if secret == neighbour:
        raise InputError(f"the neighbour must be another attribute than the secret {secret!r}.")
    check_fit(belief.schema[neighbour], channel)
    rows, possible = conditional_rows(belief, secret, neighbour)
    return _leakage(belief, secret, neighbour, worst_ratio(rows, channel), possible, channel)


def pair_matrix(
    belief: Belief, channels: Mapping[str, Channel], secrets: Sequence[str]
) -> list[list[Leakage | None]]:
    """Return the leakage of every secret (column) through every other released attribute (row).

    Pairs of the same shape are computed together.
    """
    for name, channel in channels.items():
        check_fit(belief.schema[name], channel)
    pairs = [(name, secret) for name in channels for secret in secrets if name != secret]
    stacks: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for name, secret in pairs:
        channel = channels[name]
        key = (channel.family, getattr(channel, "width", 1), belief.schema[secret].size, channel.size)
        stacks.setdefault(key, []).append((name, secret))
    found: dict[tuple[str, str], Leakage] = {}
    for stack in track(list(stacks.values()), "pairs"):
        found.update(_stack(belief, channels, stack))
    return [[found.get((name, secret)) for secret in secrets] for name in channels]


def _stack(
    belief: Belief, channels: Mapping[str, Channel], pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Leakage]:
    """Return the leakage of pairs of one shape, together where all their values can occur."""
    rows = np.stack([_block(belief, secret, name) for name, secret in pairs])
    used = [channels[name] for name, _ in pairs]
    worst = stacked_worst(rows, used) if not np.isnan(rows).any() else None
    if worst is None:
        return {(name, secret): pair_leakage(belief, channels[name], secret, name) for name, secret in pairs}
    everything = np.arange(rows.shape[1])
    return {
        (name, secret): _leakage(belief, secret, name, found, everything, channels[name])
        for (name, secret), found in zip(pairs, worst, strict=True)
    }


def _block(belief: Belief, secret: str, neighbour: str) -> Array:
    i, j, at = belief.schema.index(secret), belief.schema.index(neighbour), belief.offsets
    return belief.conditionals[at[i] : at[i + 1], at[j] : at[j + 1]]


def conditional_rows(belief: Belief, secret: str, neighbour: str) -> tuple[Array, NDArray[np.intp]]:
    """Return Pr(neighbour | secret) for the secret values that can occur, and which values those are."""
    rows = _block(belief, secret, neighbour)
    possible = np.flatnonzero(~np.isnan(rows[:, 0]))
    return rows[possible], possible


def saturation(belief: Belief, secret: str, neighbour: str) -> Bound:
    """Return what the neighbour's true value says about the secret: the limit as its budget grows."""
    check_belief("belief", belief)
    channel = FavouringChannel(belief.schema[neighbour].size, "singletons", 0.0)
    return replace(pair_leakage(belief, channel, secret, neighbour).upper, method="saturation")


def check_fit(attribute: Attribute, channel: Channel) -> None:
    """Raise if a channel is not over the attribute's values."""
    if channel.size != attribute.size:
        raise InputError(
            f"the release of {attribute.name!r} is for {channel.size} values, the belief has "
            f"{attribute.size}; read the table with schema=plan.schema."
        )


def _leakage(
    belief: Belief, secret: str, neighbour: str, worst: Worst, possible: NDArray[np.intp], channel: Channel
) -> Leakage:
    pair = int(possible[worst.likelier]), int(possible[worst.unlikelier])
    kind = "model" if belief.is_model else claim_of(channel)
    upper = Bound(worst.value, kind, METHODS[channel.family])
    reports = {neighbour: worst.favoured} if neighbour != secret else {}
    upper = witnessed(upper, belief, {neighbour: channel}, secret, pair, reports)
    single = single_of(channel)
    if single is channel:
        return Leakage.exactly(secret, (neighbour,), upper)
    kind = "model" if belief.is_model else "lower"
    lower = Bound(0.0, kind, "nothing is surely reached")
    if single.epsilon > 0:
        reached = direct_leakage(belief, single, secret) if neighbour == secret else None
        reached = reached or pair_leakage(belief, single, secret, neighbour)
        lower = replace(reached.upper, kind=kind, method="what surely is reached")
    return Leakage(secret, (neighbour,), lower, upper, _failure(belief, channel, secret, neighbour, upper))


def _failure(belief: Belief, channel: Channel, secret: str, neighbour: str, upper: Bound) -> float:
    """Return the probability with which a figure fails if the channel's own budget does (see profile.py)."""
    delta = delta_of(channel)
    if delta == 0 or neighbour == secret:
        return delta
    rows, _ = conditional_rows(belief, secret, neighbour)
    return delta * delta_at(rows, upper.value)[0]
