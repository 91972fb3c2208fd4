"""Leakage of a secret through one released attribute.

CPL, Algorithm 1: with P = Pr(U | secret) and the channel Q of U's release, the leakage is the largest
log-ratio within a column of P @ Q. A channel's favoured sets replace its matrix where it has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound, Claim, Leakage
from sidelight.leakage.divergence import delta_at
from sidelight.leakage.witnesses import best_pair, witnessed
from sidelight.mechanisms import Channel, FavouringChannel
from sidelight.mechanisms.channel import Worst, as_channel, as_channels
from sidelight.schema import Attribute


def direct_leakage(belief: Belief, channel: Channel | None, secret: str) -> Leakage:
    """Return what the secret's own report says about it: its realised budget; 0 if it is not released."""
    check_belief("belief", belief)
    attribute = belief.schema[secret]
    if channel is None:
        return Leakage.exactly(secret, (), Bound(0.0, "exact", "not released"))
    channel = as_channel(channel)
    check_fit(attribute, channel)
    prior = belief.prior(secret)
    possible = np.flatnonzero(prior > 0)
    if len(possible) < 2:
        return Leakage.exactly(secret, (secret,), Bound(0.0, "exact", "only one value is possible"))
    own = channel.own_pairs(possible)
    pair = best_pair(own, prior[possible])
    worst = Worst(float(own[pair]), *pair, np.zeros(0, dtype=np.intp))
    return _leakage(belief, secret, secret, worst, possible, channel)


def pair_leakage(belief: Belief, channel: Channel, secret: str, neighbour: str) -> Leakage:
    """Return what the neighbour's report alone says about the secret."""
    check_belief("belief", belief)
    channel = as_channel(channel)
    if secret == neighbour:
        raise InputError(f"the neighbour must be another attribute than the secret {secret!r}.")
    check_fit(belief.schema[neighbour], channel)
    rows, possible = conditional_rows(belief, secret, neighbour)
    return _leakage(belief, secret, neighbour, channel.worst_ratio(rows), possible, channel)


@dataclass(frozen=True, eq=False)
class PairMatrix(Sequence["PairRow"]):
    """The leakage of every secret (column) through every other released attribute (row).

    All figures are found at once. What reaches one, and the records behind it, is worked out when its cell is
    read: a table of many attributes has thousands, of which a page shows a few.

    Attributes:
        values: (released attributes, secrets) the figures in nats; NaN for a secret's own report.
    """

    belief: Belief
    channels: Mapping[str, Channel]
    secrets: tuple[str, ...]
    values: Array

    @cached_property
    def _rows(self) -> tuple[PairRow, ...]:
        return tuple(PairRow(self, name) for name in self.channels)

    def __len__(self) -> int:
        return len(self.channels)

    def __getitem__(self, row: Any) -> Any:
        return self._rows[row]


@dataclass(frozen=True, eq=False)
class PairRow(Sequence[Leakage | None]):
    """What one released attribute says about every secret; None for itself."""

    matrix: PairMatrix = field(repr=False)
    name: str
    _made: dict[str, Leakage | None] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.matrix.secrets)

    def __getitem__(self, column: Any) -> Any:
        if isinstance(column, slice):
            return [self[place] for place in range(*column.indices(len(self)))]
        secret = self.matrix.secrets[column]
        if secret not in self._made:
            self._made[secret] = self._cell(secret)
        return self._made[secret]

    def _cell(self, secret: str) -> Leakage | None:
        if secret == self.name:
            return None
        belief, channel = self.matrix.belief, self.matrix.channels[self.name]
        rows, possible = conditional_rows(belief, secret, self.name)
        # As a stack of one, so that the figure has the bits of the matrix; where values cannot occur, alone.
        is_whole = len(possible) == belief.schema[secret].size
        worst = channel.stacked_worst(rows[None], [channel])[0] if is_whole else channel.worst_ratio(rows)
        return _leakage(belief, secret, self.name, worst, possible, channel)


def pair_matrix(belief: Belief, channels: Mapping[str, Channel], secrets: Sequence[str]) -> PairMatrix:
    """Return the leakage of every secret (column) through every other released attribute (row).

    Pairs of the same shape are computed together.
    """
    channels = checked_channels(belief, channels)
    alike: dict[tuple[object, ...], list[int]] = {}
    for row, channel in enumerate(channels.values()):
        alike.setdefault((type(channel), channel.kind, channel.size), []).append(row)
    released, wanted = (
        np.array([*map(belief.schema.index, names)], dtype=np.intp) for names in (channels, secrets)
    )
    sizes = np.array(belief.schema.sizes)
    columns = [np.flatnonzero(sizes[wanted] == size) for size in np.unique(sizes[wanted])]
    used, values = list(channels.values()), np.empty((len(channels), len(secrets)))
    stacks = [(np.array(rows), some) for rows in alike.values() for some in columns]
    for rows, some in track(stacks, "pairs"):
        values[rows[:, None], some] = _stack(belief, used, rows, released[rows], wanted[some])
    values[released[:, None] == wanted] = np.nan
    return PairMatrix(belief, channels, tuple(secrets), values)


def _stack(
    belief: Belief, channels: Sequence[Channel], own: Positions, released: Positions, wanted: Positions
) -> Array:
    """Return the figures of all pairs of these attributes, released and secret, which have one shape.

    They go together where all their values can occur; those of a secret's own report have no meaning.
    `own` says where the channels of those released stand.
    """
    first, second = (
        belief.offsets[part][:, None] + np.arange(belief.schema.sizes[part[0]]) for part in (wanted, released)
    )
    blocks = belief.conditionals[first.reshape(-1, 1), second.reshape(-1)]
    # The pairs lie side by side in memory, so that few long steps serve them all.
    blocks = np.ascontiguousarray(blocks.reshape(*first.shape, *second.shape).transpose(1, 3, 2, 0))
    rows = np.moveaxis(blocks.reshape(*blocks.shape[:2], -1), -1, 0)
    which = np.repeat(own, len(wanted))
    whole: Mask = np.asarray(~np.isnan(rows[:, :, 0]).any(axis=1))
    values = np.zeros(len(rows))
    if whole.all():
        values = channels[own[0]].stacked_values(rows, channels, which)
    elif whole.any():
        values[whole] = channels[own[0]].stacked_values(rows[whole], channels, which[whole])
    for place in np.flatnonzero(~whole).tolist():  # rows of values that cannot occur
        possible = ~np.isnan(rows[place, :, 0])
        values[place] = channels[which[place]].worst_ratio(rows[place][possible]).value
    return values.reshape(len(own), -1)


def _block(belief: Belief, secret: str, neighbour: str) -> Array:
    i, j, at = belief.schema.index(secret), belief.schema.index(neighbour), belief.offsets
    return belief.conditionals[at[i] : at[i + 1], at[j] : at[j + 1]]


def conditional_rows(belief: Belief, secret: str, neighbour: str) -> tuple[Array, Positions]:
    """Return Pr(neighbour | secret) for the secret values that can occur, and which values those are."""
    rows = _block(belief, secret, neighbour)
    possible = np.flatnonzero(~np.isnan(rows[:, 0]))
    return rows[possible], possible


def secret_rows(belief: Belief, channel: Channel, secret: str, neighbour: str) -> tuple[Array, Positions]:
    """Return Pr(neighbour's report | secret) for the secret values that can occur, and which those are.

    The neighbour may be the secret itself: its own report. Average cases and profiles need to know how often
    each report is sent, so its reports must be few enough to be listed.
    """
    channel = as_channel(channel)
    check_fit(belief.schema[neighbour], channel)
    if secret == neighbour:
        possible = np.flatnonzero(belief.prior(secret) > 0)
        values = np.eye(belief.schema[secret].size)[possible]
    else:
        values, possible = conditional_rows(belief, secret, neighbour)
    try:
        return channel.report_rows(values), possible
    except InputError as error:
        raise InputError(
            f"the reports of {neighbour!r} ({channel.size} values) cannot be listed; use a mechanism that "
            f"reports single values, for example 'grr', or coarser bins ({error})"
        ) from error


def saturation(belief: Belief, secret: str, neighbour: str) -> Bound:
    """Return what the neighbour's true value says about the secret: the limit as its budget grows."""
    check_belief("belief", belief)
    channel = FavouringChannel(belief.schema[neighbour].size, "singletons", 0.0)
    return replace(pair_leakage(belief, channel, secret, neighbour).upper, method="saturation")


def checked_channels(belief: Belief, channels: object) -> dict[str, Channel]:
    """Return the channels by attribute after checking that each is over its attribute's values."""
    checked = as_channels(channels)
    for name, channel in checked.items():
        check_fit(belief.schema[name], channel)
    return checked


def check_fit(attribute: Attribute, channel: Channel) -> None:
    """Raise if a channel is not over the attribute's values."""
    if channel.size != attribute.size:
        raise InputError(
            f"the release of {attribute.name!r} is for {channel.size} values, the belief has "
            f"{attribute.size}; read the table with schema=plan.schema."
        )


def own_pairs(channel: Channel | None, possible: Positions) -> Array:
    """Return what an attribute's own report says about every two of its possible values, shape (m, m)."""
    return np.zeros((len(possible), len(possible))) if channel is None else channel.own_pairs(possible)


def secret_names(belief: Belief, secrets: Iterable[str] | None) -> list[str]:
    """Return the attributes in question, all by default, after checking that the belief knows them."""
    if secrets is not None and not isinstance(secrets, Iterable):
        raise invalid("secrets", "a list of attributes", secrets)
    chosen = [secrets] if isinstance(secrets, str) else belief.schema.names if secrets is None else secrets
    names = list(chosen)
    if not names:
        raise InputError("`secrets` must name at least one attribute, got none.")
    for name in names:
        belief.schema.index(name)
    return names


def is_idealised(channels: Iterable[Channel]) -> bool:
    """Whether figures through these channels are published ones: a paper idealises the mechanism of one."""
    return any(channel.claim == "published" for channel in channels)


def _leakage(
    belief: Belief, secret: str, neighbour: str, worst: Worst, possible: Positions, channel: Channel
) -> Leakage:
    pair = int(possible[worst.likelier]), int(possible[worst.unlikelier])
    kind: Claim = "model" if belief.is_model else channel.claim
    upper = Bound(worst.value, kind, channel.method)
    reports = {neighbour: worst.report} if neighbour != secret else {}
    upper = witnessed(upper, belief, {neighbour: channel}, secret, pair, reports)
    attained = channel.attained
    if attained is channel:
        return Leakage.exactly(secret, (neighbour,), upper)
    kind = "model" if belief.is_model else "lower"
    lower = Bound(0.0, kind, "nothing is surely reached")
    if attained.epsilon > 0:
        reached = direct_leakage(belief, attained, secret) if neighbour == secret else None
        reached = reached or pair_leakage(belief, attained, secret, neighbour)
        lower = replace(reached.upper, kind=kind, method="what surely is reached")
    return Leakage(secret, (neighbour,), lower, upper, _failure(belief, channel, secret, neighbour, upper))


def _failure(belief: Belief, channel: Channel, secret: str, neighbour: str, upper: Bound) -> float:
    """Return the probability with which a figure fails if the channel's own budget does (see profile.py)."""
    if channel.delta == 0 or neighbour == secret:
        return channel.delta
    rows, _ = conditional_rows(belief, secret, neighbour)
    return channel.delta * delta_at(rows, upper.value)[0]
