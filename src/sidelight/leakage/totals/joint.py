"""The joint generic bound: all other reports as one release of the sum of their budgets.

Where it is not smaller than the sum of all budgets, or the joint is unknown or too large, composition takes
its place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import own_pairs
from sidelight.leakage.totals.base import ONE_VALUE, Channels, Totals, composition
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.generic import Worst, baseline_at, generic_worst

LARGEST_ROWS = 1 << 24
LARGEST_SEARCH = 1 << 31
MANY_RECORDS = 1 << 18
"""Of more records, a share says first whether the joint generic bound is worth what it costs."""
THINNED = 1 << 16
"""About so many records are in that share, or up to twice as many."""
WORTH = 0.98
"""A bound that is not below so much of the sum of all budgets is not worth it."""


@dataclass(frozen=True, eq=False)
class JointTotal(Totals):
    """The total of one secret by the joint generic bound, by composition, or by the smaller of the two.

    Attributes:
        prior: the probabilities of the secret's values.
        secret: whose total is wanted.
        rows: Pr(all other released attributes | secret), one column for each distinct record; None for
            composition alone.
        method: "auto", "joint generic" or "composition".
    """

    prior: Array
    secret: str
    rows: Array | None
    method: str

    @classmethod
    def of(cls, belief: Belief, released: Sequence[str], secret: str, method: str) -> JointTotal:
        """Prepare the rows where they are known and not too large."""
        others = [name for name in released if name != secret]
        rows = None
        if others and method != "composition" and (belief.records is not None or method == "joint generic"):
            try:
                rows = record_rows(belief, secret, others)
            except TooLargeError:
                if method == "joint generic":
                    raise
        return cls(belief.prior(secret), secret, rows, method)

    def for_many_budgets(self) -> JointTotal:
        """Drop the rows where they can never help; to find that out costs as much as one question."""
        if self.rows is None or self.method != "auto":
            return self
        # Two rows that share no record reach the whole budget, whatever it is.
        is_composition = generic_worst(self.rows, math.exp(-1)).value >= 1 - 1e-12
        return replace(self, rows=None) if is_composition else self

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total with what it claims."""
        return {self.secret: self._bound(channels)}

    def among(self, secrets: Collection[str]) -> JointTotal | None:
        """Return it if its secret is one of these."""
        return self if self.secret in secrets else None

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return by how much the total grows at least with each of the moved channels alone.

        The two rows and the favoured set that reach it now are still there after a move; to first order they
        remain the worst ones.
        """
        kept = None if self.rows is None else generic_worst(self.rows, baseline_at(self._rest(channels)))
        base = self._bound(channels).value
        grown = [self._bound({**channels, name: moved[name]}, kept).value - base for name in moved]
        return {self.secret: np.array(grown)}

    def _bound(self, channels: Channels, kept: Worst | None = None) -> Bound:
        """Return the total; of the joint generic bound only the part that `kept` reaches, if it is given."""
        if np.count_nonzero(self.prior) < 2:
            return ONE_VALUE
        sums, joint = composition(channels), self._joint(channels, kept)
        if joint is None or self.method == "composition":
            return sums
        return joint if self.method == "joint generic" or joint.value < sums.value else sums

    def _joint(self, channels: Channels, kept: Worst | None) -> Bound | None:
        """Return the own report's leakage plus the bound on all others as one; None without their rows."""
        own = own_leakage(self.prior, channels.get(self.secret))
        if set(channels) <= {self.secret}:
            return Bound(own, "certified", "own report alone")
        if self.rows is None:
            return None
        rest = self._rest(channels)
        baseline = baseline_at(rest)
        worst = (
            generic_worst(self.rows, baseline).value if kept is None else _reached(self.rows, kept, baseline)
        )
        return Bound(own + min(worst, rest), "certified", "joint generic")

    def _rest(self, channels: Channels) -> float:
        """Return the realised budget of all other reports together."""
        return math.fsum(channel.epsilon for name, channel in channels.items() if name != self.secret)


def is_joint_worth(belief: Belief, channels: Channels, secret: str) -> bool:
    """Whether the joint generic bound is likely to be clearly smaller than the sum of all budgets.

    Of many records only a share is looked at, so that the cost of a total that no record can lower does not
    grow with them. Either bound is sound, whatever the share says.
    """
    records, others = belief.records, [name for name in channels if name != secret]
    if records is None or len(records.weights) <= MANY_RECORDS or not others:
        return True
    some = records.thinned(others, THINNED)
    if some.groups(others)[1] < THINNED // 8:  # so few combinations of the others say little, or are none
        return True
    share = replace(belief, records=some, smoothing=belief.smoothing * some.total / records.total)
    bound = JointTotal.of(share, list(channels), secret, "auto").bounds(channels)[secret]
    return bound.value < WORTH * composition(channels).value


def own_leakage(prior: Array, channel: Channel | None) -> float:
    """Return what the secret's own report says about it; 0 if it is not released."""
    return float(own_pairs(channel, np.flatnonzero(prior > 0)).max(initial=0.0))


def _reached(rows: Array, kept: Worst, baseline: float) -> float:
    """Return ln of the ratio of two rows for a report that favours this set by 1 / baseline."""
    pair = rows[[kept.likelier, kept.unlikelier]]
    top, bottom = baseline + (1 - baseline) * pair[:, kept.report].sum(axis=1)
    return math.log(top / bottom) if bottom > 0 else math.inf


def record_rows(belief: Belief, secret: str, others: Sequence[str]) -> Array:
    """Return Pr(all others | secret), one column for each distinct record of the others.

    Columns with the same ratios leak as much as their sum, so they are merged: those of combinations that
    only one secret value has (per value and weight), and those that were never seen.
    """
    group, code, weight = _distinct_cells(belief, secret, others)
    size = belief.schema[secret].size
    combinations = math.prod(float(belief.schema[name].size) for name in others)
    spread = belief.smoothing / (size * combinations)
    sharing = np.bincount(group) > 1
    is_shared = sharing[group]
    together, alone = np.flatnonzero(is_shared), np.flatnonzero(~is_shared)
    shared = int(sharing.sum())
    column = code[alone]
    if spread:
        weights, position = np.unique(weight[alone], return_inverse=True)
        column = column * len(weights) + position
    width = shared + int(column.max(initial=-1)) + 2
    if size * width > LARGEST_ROWS or size * size * width > LARGEST_SEARCH:
        raise TooLargeError(
            f"the joint generic bound of {secret!r} would compare {size} rows of {width} cells; "
            "use method='composition'."
        )
    merged = np.ones(width)
    merged[shared:] = np.bincount(column, minlength=width - shared)
    merged[-1] = combinations - len(sharing)
    rows = np.tile(spread * merged, (size, 1))
    cells = code[together] * shared + (np.cumsum(sharing) - 1)[group[together]]
    rows[:, :shared] += np.bincount(cells, weight[together], size * shared).reshape(size, shared)
    cells = code[alone] * (width - shared) + column
    rows[:, shared:] += np.bincount(cells, weight[alone], size * (width - shared)).reshape(size, -1)
    possible = rows.sum(axis=1) > 0
    return np.asarray(rows[possible] / rows[possible].sum(axis=1, keepdims=True))


def _distinct_cells(belief: Belief, secret: str, others: Sequence[str]) -> tuple[Positions, Positions, Array]:
    """Return the seen cells of (others, secret): the others' group, the secret's code and the weight."""
    records = belief.records
    if records is None:
        raise InputError(
            f"the joint generic bound needs a joint belief, got a {belief.kind} one; use kind='joint', or "
            "method='composition'."
        )
    group, _ = records.groups(others)
    code = records.codes[:, belief.schema.index(secret)].astype(np.intp)
    if len(others) + 1 == len(belief.schema):
        return group, code, records.weights  # the records are the cells
    cell, position = np.unique(group * belief.schema[secret].size + code, return_inverse=True)
    weight = np.bincount(position, weights=records.weights).astype(np.float64, copy=False)
    return *np.divmod(cell, belief.schema[secret].size), weight
