"""The contract of a channel: everything that leakage, calibration and attacks may ask of a release.

The defaults read the matrix, so a channel from outside needs no more than one. They claim nothing that a
matrix does not show: figures through such a channel are "certified", and none of them counts as attained.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import TooLargeError, check_number, invalid
from sidelight.mechanisms.channel.generic import Worst as Worst
from sidelight.mechanisms.channel.generic import baseline_at, worst_column
from sidelight.mechanisms.channel.logs import contract_logs, fits_doubles, log_gains, log_pairs, logs_of
from sidelight.schema import Attribute

ChannelClaim = Literal["exact", "certified", "published"]
LARGEST_MATRIX = 1 << 22  # 32 MiB of doubles
LARGEST_LIST = 1 << 10
_LOST = 34.0
_ROUNDED_UP = 1e-5  # whole-number weights leave a few millionths open


class Channel(ABC):
    """The law of a report given the value.

    `rows` below are Pr(value | secret value), shape (m, size). Reports are numbered as `all_columns` lists
    them; what names one is the codes of the values it favours, or its number where it favours no set.

    Attributes:
        size: the number of values.
        epsilon: the budget that a report really spends on the value itself; totals rely on it.
        delta: the probability with which that budget does not hold.
        claim: what figures through this channel claim. "exact": every report that they assume is sent.
            "certified": they are never below the truth. "published": they are those of an idealised
            mechanism that stands for the one in use.
        method: how figures through this channel are computed, in words.
        kind: what channels of one class and size must share to be searched together by `stacked_worst`.
        is_listable: whether `report_rows` knows how often each report is sent; worst cases need less.
        favours_sets: whether the worst report is searched among favoured sets rather than listed.
        favours_every_set: whether every set is favoured by some report, so that the budget says it all.
    """

    size: int
    epsilon: float
    delta: float = 0.0
    claim: ChannelClaim = "certified"
    method: str = "channel matrix"
    kind: Hashable = None
    is_listable: bool = True
    favours_sets: bool = False
    favours_every_set: bool = False

    @abstractmethod
    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, up to a common factor, shape (size,)."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, reports); refused where it is unknown or too large."""

    @property
    def attained(self) -> Channel:
        """A channel whose figures this release surely attains, for lower figures.

        It is this one where figures are exact, and one that says nothing where nothing is surely attained.
        """
        from sidelight.mechanisms.channel.sets import silent_channel

        return self if self.claim == "exact" else silent_channel(self.size)

    @property
    def floor(self) -> float:
        """The least likelihood of a report over its greatest; 0 where doubles would lose its digits."""
        return baseline_at(self.epsilon)

    def count_reports(self) -> float:
        """Return how many reports `all_columns` lists; infinity where they are beyond counting."""
        return float(self.matrix().shape[1])

    def columns(self, most: float = LARGEST_LIST) -> Array | None:
        """Return `all_columns`, or None if there are more than `most` reports and than the values and two."""
        return self.all_columns() if self.count_reports() <= max(most, self.size + 2) else None

    def all_columns(self) -> Array:
        """Return likelihoods of each report that can be worst, up to a factor each, (size, reports)."""
        return self.matrix()

    def all_logs(self) -> Array:
        """Return the logarithms of `all_columns`, also of likelihoods too small for doubles."""
        return logs_of(self.all_columns())

    def report_rows(self, rows: Array) -> Array:
        """Return Pr(report | secret value), shape (m, reports), where the channel is listable."""
        return np.asarray(rows @ self.matrix())

    def contract(self, cells: Array, axis: int) -> Array:
        """Replace the values on `axis` by reports, their likelihoods up to a factor for each report."""
        return np.moveaxis(np.tensordot(cells, self.all_columns(), axes=(axis, 0)), -1, axis)

    def worst_ratio(self, rows: Array) -> Worst:
        """Return the largest log-ratio between two of the rows."""
        worst = worst_column(self._reported_logs(rows))
        return replace(worst, value=min(worst.value, self._most))

    def worst_of_pair(self, rows: Array, pair: tuple[int, int]) -> Worst:
        """Return the largest log-ratio of one row to another."""
        logs = log_gains(*self._reported_logs(rows[list(pair)]))
        report = int(np.argmax(logs))
        return Worst(min(max(0.0, float(logs[report])), self._most), *pair, np.array([report]))

    def ratio_pairs(self, rows: Array) -> Array:
        """Return the largest log-ratio of every row to every other, shape (m, m)."""
        return np.minimum(log_pairs(self._reported_logs(rows))[0], self._most)

    def own_pairs(self, possible: Positions) -> Array:
        """Return what a report says about every two of the possible values themselves, shape (m, m)."""
        return self.ratio_pairs(np.eye(self.size)[possible])

    def stacked_values(self, rows: Array, channels: Sequence[Channel], which: Positions) -> Array:
        """Return the values of `stacked_worst`; `which` says whose channel each of the rows is for."""
        each = self.stacked_worst(np.ascontiguousarray(rows), [channels[i] for i in which])
        return np.array([worst.value for worst in each])

    def stacked_worst(self, rows: Array, channels: Sequence[Channel]) -> list[Worst]:
        """Return `worst_ratio` of many channels of this kind and size; rows are (channels, m, size)."""
        return [channel.worst_ratio(part) for part, channel in zip(rows, channels, strict=True)]

    def answers(self, g: Array, h: Array) -> Array:
        """Return the largest log-ratio of every row of `g` to the row of `h` beside it.

        `g` and `h` broadcast against each other, values on the last axis. Channels that favour sets search
        many pairs of rows at once and list nothing.
        """
        top, bottom = (self._reported_logs(part.reshape(-1, self.size)) for part in (g, h))
        gains = log_gains(top.reshape(*g.shape[:-1], -1), bottom.reshape(*h.shape[:-1], -1))
        return np.asarray(np.clip(gains.max(axis=-1), 0.0, self._most))

    def named(self, report: int) -> Positions:
        """Return what names report number `report` of `all_columns`."""
        return np.array([report])

    def likeliest(self, named: Positions) -> Positions:
        """Return the values that a report, given by what names it, makes likeliest."""
        column = self.all_columns()[:, int(named[0])]
        return np.flatnonzero(column == column.max())

    def named_logs(self, named: Positions) -> Array:
        """Return ln of the likelihood of a report, given by what names it, for every value, shape (size,)."""
        return np.asarray(self.all_logs()[:, int(named[0])])

    def describe(self, attribute: Attribute, named: Positions) -> str:
        """Say in words what is reported about the attribute."""
        return f"{attribute.name}: report {int(named[0])}"

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` independent reports of one value: budgets and deltas add up.

        It is exact where few enough combinations of reports are possible; else only its budget is kept.
        """
        from sidelight.mechanisms.channel.dense import repeated_law
        from sidelight.mechanisms.channel.sets import AnyChannel

        if times == 1:
            return self
        if self.claim == "exact" and self.is_listable and (law := repeated_law(self, times)) is not None:
            return law
        return AnyChannel(self.size, times * self.epsilon, min(times * self.delta, 1.0), within=self)

    @property
    def _most(self) -> float:
        """What no figure exceeds. A matrix states its own ratios, whatever the budget beside it says."""
        return math.inf

    def _reported(self, rows: Array) -> Array:
        """Return Pr(report | secret value) up to a factor for each report, shape (m, reports)."""
        return np.asarray(rows @ self.all_columns())

    def _reported_logs(self, rows: Array) -> Array:
        """Return the logarithms of `_reported`, also of likelihoods too small for doubles."""
        reports = self.all_logs()
        if fits_doubles(logs_of(rows), reports):
            return logs_of(self._reported(rows))
        return contract_logs(logs_of(rows), reports, 1)


def check_matrix_size(rows: int, columns: int) -> None:
    """Raise if a matrix would have more than 2^22 cells."""
    if rows * columns > LARGEST_MATRIX:
        raise TooLargeError(
            f"the channel matrix would have {rows} x {columns} cells, more than {LARGEST_MATRIX}; "
            "use its favoured sets or `likelihood(report)`."
        )


def check_stated(budget: object, shown: float) -> float:
    """Return a budget that is stated beside a law, or raise where it is not what the law itself shows.

    It may be known to more digits, or rounded up: pairs rely on the law, totals on the budget too.
    """
    number = check_number("budget", budget, at_least=0, infinite=True)
    least = min(number, shown)
    # Beside the greatest likelihood a double loses digits of the least, and from about e^-34 all of them.
    if least < _LOST and abs(number - shown) > _ROUNDED_UP + 1e-15 * math.exp(least):
        raise invalid("budget", f"what the channel spends, {shown:.9g}", budget, "It may be left out.")
    return number


def check_delta(delta: object) -> float:
    """Return a delta after checking that it is a probability."""
    number = check_number("delta", delta, at_least=0)
    if number > 1:
        raise invalid("delta", "a probability, at most 1", delta)
    return number
