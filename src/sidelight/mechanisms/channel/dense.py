"""Channels given by a matrix, and the door through which channels from outside come in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.mechanisms.channel.channel import LARGEST_MATRIX, Channel, check_matrix_size, check_stated
from sidelight.mechanisms.channel.sets import AnyChannel, ImplicitChannel
from sidelight.mechanisms.exact import store
from sidelight.schema import Attribute

_MOST_REPEATED = 1 << 12
"""So many combinations of reports are listed at most."""
_LEAST_LOG = -600.0


@dataclass(frozen=True, eq=False)
class DenseChannel(Channel):
    """A channel given by its matrix Pr(report | value), shape (values, reports).

    `budget` is what is really spent, where that is known better than from the rounded matrix.
    """

    cells: Array
    budget: float | None = None
    size: int = field(init=False, repr=False)
    epsilon: float = field(init=False, repr=False)
    claim = "exact"

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells, dtype=np.float64)
        if cells.ndim != 2 or not cells.size or not np.all(np.isfinite(cells)) or cells.min(initial=0) < 0:
            raise InputError("a channel is a matrix of probabilities, one row for each value.")
        check_matrix_size(*cells.shape)
        if np.abs(cells.sum(axis=1) - 1).max(initial=0) > 1e-9:
            raise InputError("every row of a channel must sum to 1.")
        epsilon = largest_ratio(cells)
        if self.budget is not None:
            epsilon = check_stated(self.budget, epsilon)
            store(self, budget=epsilon)
        store(self, cells=cells, size=len(cells), epsilon=epsilon)

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, shape (size,)."""
        code = check_whole("report", report, at_least=0, at_most=self.cells.shape[1] - 1)
        return np.asarray(self.cells[:, code])

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, reports)."""
        return self.cells


@dataclass(frozen=True, eq=False)
class CountedChannel(DenseChannel):
    """Several reports of one value: a column for each way to count them.

    Attributes:
        counts: (columns, reports) how often each report is sent.
    """

    counts: Whole | None = None

    def describe(self, attribute: Attribute, named: Positions) -> str:
        """Say how often each report was sent; one that is a value by its label."""
        if self.counts is None:
            return super().describe(attribute, named)
        row = self.counts[int(named[0])]
        labels = attribute.values if len(row) == attribute.size else [f"report {y}" for y in range(len(row))]
        often = [(int(row[y]), labels[y]) for y in np.argsort(-row, kind="stable") if row[y]]
        listed = ", ".join(
            f"{label} {count} times" if count > 1 else f"{label} once" for count, label in often[:4]
        )
        return f"{attribute.name}: {listed}" + (f" and {len(often) - 4} more" if len(often) > 4 else "")


def channel_of_columns(size: int, reports: int, epsilon: float, law: Callable[[Positions], Array]) -> Channel:
    """Return the channel of a law of report numbers, shape (reports, size): a matrix if small enough."""
    if size * reports <= LARGEST_MATRIX:
        return DenseChannel(law(np.arange(reports)).T, epsilon)

    def likelihood(report: int) -> Array:
        check_whole("report", report, at_least=0, at_most=reports - 1)
        return np.asarray(law(np.array([report]))[0])

    return ImplicitChannel(size, epsilon, likelihood)


def repeated_law(channel: Channel, times: int) -> CountedChannel | None:
    """Return the exact channel of several reports, a column for each multiset of them; None if too many.

    Reports are independent given the value, so that how often each was sent says everything.
    """
    reports = int(min(channel.count_reports(), LARGEST_MATRIX))
    many = math.comb(times + reports - 1, times) if reports + times < _MOST_REPEATED else math.inf
    if many > _MOST_REPEATED:
        return None
    cells = channel.matrix()
    counts = report_counts(reports, times)
    least = math.log(cells[cells > 0].min())
    if times * least < _LEAST_LOG:  # a false zero would be a false certainty
        return None
    from scipy.special import gammaln, xlogy

    ways = gammaln(times + 1) - gammaln(counts + 1).sum(axis=1)
    law = np.exp(xlogy(counts[None], cells[:, None]).sum(axis=2) + ways)
    return CountedChannel(law / law.sum(axis=1, keepdims=True), times * channel.epsilon, counts)


def report_counts(reports: int, times: int) -> Whole:
    """Return how often each report occurs in every multiset of `times` of them, shape (multisets, reports).

    >>> report_counts(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    # Reports - 1 bars among as many places more than reports are sent; between two bars lies a count.
    places = times + reports - 1
    bars = np.array(list(combinations(range(places), reports - 1)), dtype=np.int64).reshape(-1, reports - 1)
    return np.asarray(np.diff(bars, axis=1, prepend=-1, append=places)[::-1] - 1)


def largest_ratio(cells: Array) -> float:
    """Return the largest log-ratio within a column; reports that are never sent do not count."""
    used = cells[:, cells.max(axis=0) > 0]
    low, high = used.min(axis=0), used.max(axis=0)
    return math.inf if (low == 0).any() else float(np.log(high / low).max(initial=0.0))


@runtime_checkable
class _HasMatrix(Protocol):
    def matrix(self) -> Array: ...


@runtime_checkable
class _HasBudget(Protocol):
    size: int
    epsilon: float


@runtime_checkable
class _HasDelta(Protocol):
    delta: float


def as_channel(channel: object) -> Channel:
    """Return a channel for anything that states enough to be one.

    A `Channel` is taken at its word. From anything else only two statements are used: a `matrix()`, which is
    the law itself, or else a size and a budget, of which the worst channel is assumed.

    >>> class Coin:
    ...     size, epsilon = 2, 1.0
    >>> as_channel(Coin()).claim
    'certified'
    """
    if isinstance(channel, Channel):
        return channel
    if isinstance(channel, _HasMatrix) and not isinstance(channel, type):
        try:
            return DenseChannel(channel.matrix())
        except TooLargeError:
            pass  # its budget still bounds what it says
    if isinstance(channel, _HasBudget):
        delta = channel.delta if isinstance(channel, _HasDelta) else 0.0
        return AnyChannel(channel.size, channel.epsilon, delta)
    raise invalid("channel", "a `Channel`", type(channel).__name__, "A plan's are in plan.channels().")


def as_channels(channels: object) -> dict[str, Channel]:
    """Return the channels of a mapping by attribute, see `as_channel`."""
    if not isinstance(channels, Mapping):
        kind = type(channels).__name__
        raise invalid("channels", "a mapping from attributes to channels", kind, "plan.channels() makes one.")
    return {name: as_channel(channel) for name, channel in channels.items()}
