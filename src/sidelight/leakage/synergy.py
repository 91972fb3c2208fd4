"""Synergy scan: which two reports say more about a secret together than the sum of what each says.

For every secret and every two released neighbours: the exact leakage through both reports, less the two
pairwise leakages. A positive excess is what a pairwise figure does not see (CPL, eq. (6), adds pairs up).

All triples are counted at once: for each value of the secret, one block matrix of the records that have it
holds the tables of all pairs of neighbours. Put through the channels it holds all pairs of reports, and the
greatest and the least of these matrices over the secret's values give every triple's leakage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, TooLargeError, check_whole
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Witness
from sidelight.leakage.pair import checked_channels, pair_leakage, secret_names
from sidelight.leakage.totals import total_leakage
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.logs import log_ratios
from sidelight.sources import Records
from sidelight.sources.counts import LARGEST_GRAM, block_counts

_MOST_REPORTS = 1 << 13


@dataclass(frozen=True)
class Synergy:
    """Two reports that together say more (or less) about a secret than the sum of each alone; exact.

    Attributes:
        secret: the attribute in question, its own report left out.
        first: one released neighbour.
        second: the other.
        joint: the leakage through both reports, in nats.
        pair_sum: the leakage through the first alone plus that through the second alone.
        excess: `joint` less `pair_sum`; 0 where both are infinite.
        witness: the two reports and the two secret values that reach `joint`.
        support: the fewest records behind that witness; None for a belief given by hand.
    """

    secret: str
    first: str
    second: str
    joint: float
    pair_sum: float
    excess: float
    witness: Witness | None = None
    support: int | None = None


@dataclass(frozen=True, eq=False)
class _Releases:
    """The released attributes: their names, columns and the matrices of their channels."""

    names: tuple[str, ...]
    columns: Positions
    matrices: tuple[Array, ...]

    @property
    def sizes(self) -> list[int]:
        return [len(matrix) for matrix in self.matrices]

    @property
    def reports(self) -> Positions:
        """Where each attribute's reports start when they stand in one line; last, their number."""
        return np.cumsum([0, *(matrix.shape[1] for matrix in self.matrices)]).astype(np.intp)


def synergy_scan(
    belief: Belief, channels: Mapping[str, Channel], secrets: Sequence[str] | None = None, top: int = 50
) -> list[Synergy]:
    """Return the `top` triples with the largest excess, worst first; that of the last may be negative.

    Pairs are not enough as a belief, and the channels' reports must be few enough to be listed.
    """
    check_belief("belief", belief)
    channels = checked_channels(belief, channels)
    check_whole("top", top, at_least=1)
    if belief.records is None:
        raise InputError(
            f"a synergy scan needs the joint of three attributes, which a {belief.kind} belief does not "
            "hold; make it with kind='joint'."
        )
    names = secret_names(belief, secrets or None)
    releases = _listed(belief, channels)
    if len(channels) < 2:
        return []
    synergies: list[Synergy] = []
    for secret in track(names, "synergies"):
        synergies += _of_secret(belief, belief.records, releases, secret, top)
    synergies.sort(key=lambda synergy: -synergy.excess)
    shown = [_witnessed(belief, channels, synergy) for synergy in synergies[:top]]
    # Sorted again: a joint figure that underflowed to infinity is finite once its witness is known.
    return sorted(shown, key=lambda synergy: -synergy.excess)


def _reports(name: str, channel: Channel) -> Array:
    """Return the likelihoods of each report that can be worst, up to a factor a report."""
    columns = channel.columns(_MOST_REPORTS) if channel.claim == "exact" else None
    if columns is None:
        raise InputError(
            f"a synergy scan lists all reports of {name!r} ({channel.size} values), which are unknown or too "
            "many; use a mechanism with few reports, for example 'grr', or withhold it."
        )
    return columns


def _listed(belief: Belief, channels: Mapping[str, Channel]) -> _Releases:
    matrices = tuple(_reports(name, channel) for name, channel in channels.items())
    columns = np.array([belief.schema.index(name) for name in channels], dtype=np.intp)
    releases = _Releases(tuple(channels), columns, matrices)
    largest = max(sum(releases.sizes), int(releases.reports[-1]))
    if largest > LARGEST_GRAM:
        raise TooLargeError(
            f"the released attributes have {largest} values or reports in all, more than {LARGEST_GRAM}; "
            "scan fewer of them, or use coarser bins."
        )
    return releases


def _of_secret(belief: Belief, records: Records, releases: _Releases, secret: str, top: int) -> list[Synergy]:
    """Return the secret's triples with the largest excess."""
    joint, single = _leakages(belief, records, releases, secret)
    neighbours = np.array([i for i, name in enumerate(releases.names) if name != secret], dtype=np.intp)
    first, second = (neighbours[part] for part in np.triu_indices(len(neighbours), 1))
    together, apart = joint[first, second], single[first] + single[second]
    excess = np.zeros_like(together)
    np.subtract(together, apart, out=excess, where=np.isfinite(apart))
    return [
        Synergy(
            secret,
            *(releases.names[part[pair]] for part in (first, second)),
            *(float(part[pair]) for part in (together, apart, excess)),
        )
        for pair in np.argsort(-excess, kind="stable")[:top]
    ]


def _leakages(belief: Belief, records: Records, releases: _Releases, secret: str) -> tuple[Array, Array]:
    """Return the secret's leakage through every two reports, shape (n, n), and through each, shape (n,)."""
    width = int(releases.reports[-1])
    high, low = np.zeros((width, width)), np.full((width, width), np.inf)
    high_single, low_single = np.zeros(width), np.full(width, np.inf)
    for tables in _conditional_tables(belief, records, releases, secret):
        single = _through(np.diagonal(tables)[None], releases)[0]
        both = _through(_through(tables, releases).T, releases).T
        np.maximum(high, both, out=high)
        np.minimum(low, both, out=low)
        np.maximum(high_single, single, out=high_single)
        np.minimum(low_single, single, out=low_single)
    starts = releases.reports[:-1]
    pairs = np.maximum.reduceat(log_ratios(high, low), starts, axis=0)
    singles = np.maximum.reduceat(log_ratios(high_single, low_single), starts)
    return np.maximum.reduceat(pairs, starts, axis=1), singles


def _conditional_tables(
    belief: Belief, records: Records, releases: _Releases, secret: str
) -> Iterator[Array]:
    """Yield, for each possible secret value, the tables of all pairs of neighbours given that value.

    The diagonal holds the neighbours' marginals; the rest of the diagonal blocks is not meant to be read.
    """
    share = np.repeat(1 / np.array(releases.sizes), releases.sizes)
    spread = np.outer(share, share)
    np.fill_diagonal(spread, share)
    extra = belief.smoothing / belief.schema[secret].size
    for weight, counted in _counted(belief, records, releases, secret):
        if weight + extra > 0:
            yield (counted + extra * spread) / (weight + extra)


def _counted(
    belief: Belief, records: Records, releases: _Releases, secret: str
) -> Iterator[tuple[float, Array]]:
    """Yield the weight of each secret value and the tables of the records that have it.

    The commonest value's tables are what the others leave of the whole, which saves most of the counting;
    only whole numbers can be subtracted without rounding, so other weights are counted in full.
    """
    code = records.codes[:, belief.schema.index(secret)]
    mass = np.bincount(code, weights=records.weights, minlength=belief.schema[secret].size)
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(mass) + 1))
    is_whole = bool(np.all(records.weights == np.floor(records.weights)))
    commonest = int(mass.argmax()) if is_whole else -1
    at = np.concatenate([np.arange(*belief.offsets[[column, column + 1]]) for column in releases.columns])
    rest = belief.blocks[np.ix_(at, at)]
    for value, (start, stop) in enumerate(pairwise(bounds)):
        if value == commonest:
            continue
        chosen = order[start:stop]
        codes = records.codes[np.ix_(chosen, releases.columns)]
        counted = block_counts(codes, releases.sizes, records.weights[chosen])
        rest -= counted
        yield float(mass[value]), counted
    if is_whole:
        yield float(mass[commonest]), rest


def _through(cells: Array, releases: _Releases) -> Array:
    """Replace values by reports along the last axis, attribute by attribute."""
    parts = np.split(cells, np.cumsum(releases.sizes)[:-1], axis=1)
    moved = [part @ matrix for part, matrix in zip(parts, releases.matrices, strict=True)]
    return np.concatenate(moved, axis=1)


def _witnessed(belief: Belief, channels: Mapping[str, Channel], synergy: Synergy) -> Synergy:
    """Add what reaches the joint leakage; an infinite one may be an underflow, so it is looked at again."""
    released = {name: channels[name] for name in (synergy.first, synergy.second)}
    bound = total_leakage(belief, released, synergy.secret, "exact").upper
    if math.isinf(synergy.joint):
        pairs = (pair_leakage(belief, channel, synergy.secret, name) for name, channel in released.items())
        apart = sum(pair.value for pair in pairs)
        excess = bound.value - apart if math.isfinite(apart) else 0.0
        synergy = replace(synergy, joint=bound.value, pair_sum=apart, excess=excess)
    return replace(synergy, witness=bound.witness, support=bound.support)
