"""Leakage of a secret through one released attribute.

CPL, Algorithm 1: with P = Pr(U | secret) and the channel Q of U's release, the leakage is the largest
log-ratio within a column of P @ Q. A channel's favoured sets replace its matrix where it has them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound, Figure, Leakage, Witness
from sidelight.leakage.generic import favoured_set, generic_pairs, generic_worst
from sidelight.mechanisms import Channel
from sidelight.schema import Attribute

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Worst:
    """The largest log-ratio, the two rows that reach it, and the favoured values (or the report's number)."""

    value: float
    likelier: int
    unlikelier: int
    favoured: NDArray[np.intp]


def direct_leakage(belief: Belief, channel: Channel | None, secret: str) -> Leakage:
    """Return what the secret's own report says about it: its realised budget; 0 if it is not released."""
    attribute = belief.schema[secret]
    if channel is None:
        return Leakage.exactly(secret, (), Bound(0.0, "exact", "not released"))
    check_fit(attribute, channel)
    possible = np.flatnonzero(belief.prior(secret) > 0)
    if len(possible) < 2:
        return Leakage.exactly(secret, (secret,), Bound(0.0, "exact", "only one value is possible"))
    rows = np.eye(attribute.size)[possible]
    return _leakage(belief, secret, secret, _worst(rows, channel), possible, channel)


def pair_leakage(belief: Belief, channel: Channel, secret: str, neighbour: str) -> Leakage:
    """Return what the neighbour's report alone says about the secret."""
    if secret == neighbour:
        raise InputError(f"the neighbour must be another attribute than the secret {secret!r}.")
    check_fit(belief.schema[neighbour], channel)
    rows, possible = conditional_rows(belief, secret, neighbour)
    return _leakage(belief, secret, neighbour, _worst(rows, channel), possible, channel)


def pair_witness(
    belief: Belief, channel: Channel, secret: str, neighbour: str, pair: tuple[int, int]
) -> tuple[Witness, int | None]:
    """Return the report that best tells two secret values apart, and the support behind it.

    `pair` numbers the likelier and the unlikelier among the secret values that can occur.
    """
    rows, possible = conditional_rows(belief, secret, neighbour)
    leakage = _leakage(belief, secret, neighbour, _worst_of_pair(rows, channel, pair), possible, channel)
    labels = belief.schema[secret].values
    nothing = Witness(f"any report of {neighbour}", labels[possible[pair[0]]], labels[possible[pair[1]]])
    return leakage.upper.witness or nothing, leakage.upper.support


def pair_matrix(
    belief: Belief, channels: Mapping[str, Channel], secrets: Sequence[str]
) -> list[list[Leakage | None]]:
    """Return the leakage of every secret (column) through every other released attribute (row)."""
    return [
        [pair_leakage(belief, channel, secret, name) if secret != name else None for secret in secrets]
        for name, channel in track(list(channels.items()), "pairs")
    ]


def conditional_rows(belief: Belief, secret: str, neighbour: str) -> tuple[Array, NDArray[np.intp]]:
    """Return Pr(neighbour | secret) for the secret values that can occur, and which values those are."""
    rows = belief.conditional(neighbour, given=secret)
    possible = np.flatnonzero(~np.isnan(rows[:, 0]))
    return rows[possible], possible


def ratio_pairs(rows: Array, channel: Channel) -> Array:
    """Return the largest log-ratio for every ordered pair of rows, shape (m, m)."""
    if channel.family in ("any", "all"):
        return generic_pairs(rows, baseline_of(channel))
    columns = _columns(rows, channel)
    values = np.empty((len(rows), len(rows)))
    with np.errstate(divide="ignore"):
        logs = np.log(columns)
    for i, row in enumerate(logs):
        seen = ~np.isneginf(row)
        values[i] = (row[seen] - logs[:, seen]).max(axis=1, initial=0.0)
    return values


def saturation(belief: Belief, secret: str, neighbour: str) -> float:
    """Return what the neighbour's true value says about the secret: the limit as its budget grows."""
    rows, _ = conditional_rows(belief, secret, neighbour)
    return generic_worst(rows, 0.0).value


def check_fit(attribute: Attribute, channel: Channel) -> None:
    """Raise if a channel is not over the attribute's values."""
    if channel.size != attribute.size:
        raise InputError(
            f"the release of {attribute.name!r} is for {channel.size} values, the belief has "
            f"{attribute.size}; read the table with schema=plan.schema."
        )


def figure_of(channel: Channel) -> Figure:
    """Return what a figure through this channel claims: exact if the channel is known."""
    return "certified" if channel.family == "any" else "exact"


def baseline_of(channel: Channel) -> float:
    """Return the least likelihood of a report over the greatest, e^-epsilon."""
    return float(getattr(channel, "baseline", math.exp(-channel.epsilon)))


def _columns(rows: Array, channel: Channel) -> Array:
    """Return Pr(report | secret value) up to a factor for each report, shape (m, reports)."""
    if channel.family == "singletons":
        baseline = baseline_of(channel)
        return baseline + (1 - baseline) * rows
    columns = rows @ channel.matrix()
    return columns[:, columns.max(axis=0) > 0]


def _worst(rows: Array, channel: Channel) -> _Worst:
    if channel.family in ("any", "all"):
        worst = generic_worst(rows, baseline_of(channel))
        return _Worst(worst.value, worst.likelier, worst.unlikelier, np.flatnonzero(worst.favoured))
    columns = _columns(rows, channel)
    high, low = columns.max(axis=0), columns.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(high > 0, np.log(high) - np.log(low), 0.0)
    report = int(np.argmax(logs))
    column = columns[:, report]
    return _Worst(float(logs[report]), int(column.argmax()), int(column.argmin()), np.array([report]))


def _worst_of_pair(rows: Array, channel: Channel, pair: tuple[int, int]) -> _Worst:
    g, h = rows[list(pair)]
    value = float(ratio_pairs(np.array([g, h]), channel)[0, 1])
    if channel.family in ("any", "all"):
        return _Worst(value, *pair, np.flatnonzero(favoured_set(g, h, float(np.exp(value)))))
    top, bottom = _columns(np.array([g, h]), channel)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(top > 0, np.log(top) - np.log(bottom), -np.inf)
    return _Worst(value, *pair, np.array([int(np.argmax(logs))]))


def _leakage(
    belief: Belief, secret: str, neighbour: str, worst: _Worst, possible: NDArray[np.intp], channel: Channel
) -> Leakage:
    labels = belief.schema[secret].values
    pair = [int(possible[worst.likelier]), int(possible[worst.unlikelier])]
    witness = None
    if worst.value > 0:
        witness = Witness(
            _describe(belief.schema[neighbour], worst, channel), labels[pair[0]], labels[pair[1]]
        )
    method = {"any": "worst channel of this budget", "dense": "channel matrix"}.get(
        channel.family, "favoured sets"
    )
    counts = belief.support(secret)
    support = None if counts is None else int(counts[pair].min())
    return Leakage.exactly(
        secret, (neighbour,), Bound(worst.value, figure_of(channel), method, witness, support)
    )


def _describe(attribute: Attribute, worst: _Worst, channel: Channel) -> str:
    """Say in words which report reaches the figure."""
    if channel.family == "dense":
        return f"{attribute.name}: report {int(worst.favoured[0])}"
    shown = [attribute.values[int(code)] for code in worst.favoured]
    if len(shown) == 1:
        return f"{attribute.name} = {shown[0]}"
    listed = ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
    return f"{attribute.name} among {listed}"
