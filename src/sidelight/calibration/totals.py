"""Certified totals, prepared so that they can be asked for at many budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound, Figure
from sidelight.leakage.cone import column_pairs
from sidelight.leakage.families import figure_of, own_pairs, report_columns
from sidelight.leakage.generic import generic_worst
from sidelight.leakage.joint import record_rows
from sidelight.leakage.total import LARGEST_EXACT, TotalMethod
from sidelight.mechanisms import Channel

Array = NDArray[np.float64]
Channels = Mapping[str, Channel]
_LARGEST_EXPONENT = 600.0


def own_report(prior: Array, channel: Channel | None) -> float:
    """Return what the secret's own report says about it; 0 if it is not released."""
    return float(own_pairs(channel, np.flatnonzero(prior > 0)).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class ExactTotals:
    """Exact totals of several secrets at once, by contracting the joint with every other channel.

    The tables of two secrets differ in one axis each, so the axes are halved again and again, and every
    half is contracted once for all secrets of the other half: n log n contractions instead of n^2.

    Attributes:
        names: one for each axis.
        cells: the joint probabilities.
        secrets: whose totals are wanted.
    """

    names: tuple[str, ...]
    cells: Array
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, belief: Belief, names: Sequence[str], secrets: Sequence[str]) -> ExactTotals:
        """Take the joint of the named attributes."""
        size = math.prod(float(belief.schema[name].size) for name in names)
        if size > LARGEST_EXACT:
            raise TooLargeError(
                f"the exact total needs {size:.3g} cells, more than {LARGEST_EXACT}; release fewer "
                "attributes, use coarser bins, or method='auto'."
            )
        return cls(tuple(names), belief.joint(list(names)), tuple(secrets))

    @cached_property
    def priors(self) -> tuple[Array, ...]:
        """The probabilities of each attribute's values."""
        axes = range(self.cells.ndim)
        return tuple(self.cells.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes)

    def __call__(self, channels: Channels) -> dict[str, float]:
        """Return the total of each secret."""
        columns = [
            _columns(channels.get(name), size)
            for name, size in zip(self.names, self.cells.shape, strict=True)
        ]
        wanted = [axis for axis, name in enumerate(self.names) if name in self.secrets]
        rest = [axis for axis in range(self.cells.ndim) if axis not in wanted]
        most = math.fsum(channel.epsilon for channel in channels.values())
        found: dict[str, float] = {}
        waiting = [(wanted, _contracted(self.cells, columns, rest))]
        while waiting:
            axes, cells = waiting.pop()
            if len(axes) == 1:
                name = self.names[axes[0]]
                found[name] = min(self._largest(cells, axes[0], channels.get(name)), most)
                continue
            half = len(axes) // 2
            waiting.append((axes[:half], _contracted(cells, columns, axes[half:])))
            waiting.append((axes[half:], _contracted(cells, columns, axes[:half])))
        return found

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the totals with what they claim."""
        known = all(figure_of(channel) == "exact" for channel in channels.values())
        kind: Figure = "exact" if known else "certified"
        return {name: Bound(value, kind, "exact joint") for name, value in self(channels).items()}

    def _largest(self, cells: Array, axis: int, own: Channel | None) -> float:
        """Return the largest log-ratio between two values on the axis, their own report's added."""
        possible = np.flatnonzero(self.priors[axis] > 0)
        rows = np.moveaxis(cells, axis, 0).reshape(cells.shape[axis], -1)[possible]
        pairs, _ = column_pairs(rows / self.priors[axis][possible, None])
        return float((pairs + own_pairs(own, possible)).max())


def _columns(channel: Channel | None, size: int) -> Array:
    """Return each report's likelihood given each value; of an attribute that is not released, one report."""
    listed = np.ones((size, 1)) if channel is None else report_columns(channel)
    if listed is None:
        raise InputError("the exact total needs channels whose reports can be listed; use method='auto'.")
    return listed


def _contracted(cells: Array, columns: Sequence[Array], axes: Sequence[int]) -> Array:
    """Replace the values on each of the axes by the reports of its channel."""
    for axis in axes:
        before, after = cells.shape[:axis], cells.shape[axis + 1 :]
        flat = cells.reshape(math.prod(before), cells.shape[axis], math.prod(after))
        cells = np.matmul(columns[axis].T, flat).reshape(*before, columns[axis].shape[1], *after)
    return cells


@dataclass(frozen=True, eq=False)
class JointTotal:
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
    method: TotalMethod

    @classmethod
    def of(cls, belief: Belief, released: Sequence[str], secret: str, method: TotalMethod) -> JointTotal:
        """Prepare the rows where they are known and not too large."""
        others = [name for name in released if name != secret]
        rows = None
        if others and method != "composition" and (belief.records is not None or method == "joint generic"):
            try:
                rows = record_rows(belief, secret, others)
            except TooLargeError:
                if method == "joint generic":
                    raise
        if rows is not None and method == "auto" and generic_worst(rows, math.exp(-1)).value >= 1 - 1e-12:
            rows = None  # two rows share no record, so the bound is composition at every budget
        return cls(belief.prior(secret), secret, rows, method)

    def __call__(self, channels: Channels) -> dict[str, float]:
        """Return the total of the secret."""
        return {name: bound.value for name, bound in self.bounds(channels).items()}

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total with what it claims."""
        return {self.secret: self._bound(channels)}

    def _bound(self, channels: Channels) -> Bound:
        if np.count_nonzero(self.prior) < 2:
            return Bound(0.0, "exact", "only one value is possible")
        rest = math.fsum(channel.epsilon for name, channel in channels.items() if name != self.secret)
        total = Bound(math.fsum(c.epsilon for c in channels.values()), "certified", "composition")
        if self.method == "composition":
            return total
        own = own_report(self.prior, channels.get(self.secret))
        if set(channels) <= {self.secret}:
            return Bound(own, "certified", "own report alone")
        if self.rows is None:
            return total
        baseline = math.exp(-rest) if rest < _LARGEST_EXPONENT else 0.0  # 0 can only raise the figure
        value = own + min(generic_worst(self.rows, baseline).value, rest)
        joint = Bound(value, "certified", "joint generic")
        return joint if self.method != "auto" or joint.value < total.value else total
