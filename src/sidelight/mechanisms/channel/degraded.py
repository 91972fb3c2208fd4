"""Channels that are a post-processing of a known one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.mechanisms.channel.channel import Channel, Worst
from sidelight.mechanisms.channel.sets import silent_channel
from sidelight.mechanisms.exact import store
from sidelight.schema import Attribute


@dataclass(frozen=True, eq=False)
class DegradedChannel(Channel):
    """Reports that are made from those of a known channel without another look at the value.

    No figure exceeds that of the known channel, nor the channel's own budget; so every figure is the lesser
    of the two, "certified". Reports are listed, numbered and named as those of the known channel.

    Attributes:
        whole: the known channel, of which reports are a post-processing.
        epsilon: the budget that reports really spend, at most that of `whole`.
        within: the channel of a part of the reports, where that is known: what it attains is attained.
    """

    whole: Channel
    epsilon: float
    within: Channel | None = None
    size: int = field(init=False, repr=False)
    method = "kept response"
    is_listable = False  # how often the known channel's reports would be sent says nothing about these

    def __post_init__(self) -> None:
        budget = check_number("epsilon", self.epsilon, at_least=0)
        if budget > self.whole.epsilon:
            raise invalid("epsilon", f"at most that of the known channel, {self.whole.epsilon!r}", budget)
        store(self, size=self.whole.size, epsilon=budget, favours_sets=self.whole.favours_sets)

    @property
    def attained(self) -> Channel:
        """What the known part attains; without one, nothing."""
        return silent_channel(self.size) if self.within is None else self.within.attained

    @property
    def floor(self) -> float:
        """That of the known channel."""
        return self.whole.floor

    def likelihood(self, report: int) -> NoReturn:
        """Refuse: only bounds are known."""
        raise InputError(f"only bounds are known of this channel, so it has no report {report!r}.")

    def matrix(self) -> NoReturn:
        """Refuse: only bounds are known."""
        raise InputError("only bounds are known of this channel, so it has no matrix.")

    def count_reports(self) -> float:
        """Return how many reports the known channel lists."""
        return self.whole.count_reports()

    def all_columns(self) -> Array:
        """Return those of the known channel, which are at least as far apart."""
        return self.whole.all_columns()

    def all_logs(self) -> Array:
        """Return the logarithms of `all_columns`."""
        return self.whole.all_logs()

    def contract(self, cells: Array, axis: int) -> Array:
        """Replace the values on `axis` by reports of the known channel."""
        return self.whole.contract(cells, axis)

    def worst_ratio(self, rows: Array) -> Worst:
        """Return the largest log-ratio between two of the rows."""
        worst = self.whole.worst_ratio(rows)
        return replace(worst, value=min(worst.value, self.epsilon))

    def worst_of_pair(self, rows: Array, pair: tuple[int, int]) -> Worst:
        """Return the largest log-ratio of one row to another."""
        worst = self.whole.worst_of_pair(rows, pair)
        return replace(worst, value=min(worst.value, self.epsilon))

    def ratio_pairs(self, rows: Array) -> Array:
        """Return the largest log-ratio of every row to every other, shape (m, m)."""
        return np.minimum(self.whole.ratio_pairs(rows), self.epsilon)

    def own_pairs(self, possible: Positions) -> Array:
        """Return what a report says about every two of the possible values themselves, shape (m, m)."""
        return np.minimum(self.whole.own_pairs(possible), self.epsilon)

    def stacked_worst(self, rows: Array, channels: Sequence[Channel]) -> list[Worst]:
        """Return `worst_ratio` of many channels, see `Channel.stacked_worst`."""
        return [channel.worst_ratio(part) for part, channel in zip(rows, channels, strict=True)]

    def answers(self, g: Array, h: Array) -> Array:
        """Return the largest log-ratio of every row of `g` to the row of `h` beside it."""
        return np.minimum(self.whole.answers(g, h), self.epsilon)

    def named(self, report: int) -> Positions:
        """Return what names report number `report` of the known channel."""
        return self.whole.named(report)

    def likeliest(self, named: Positions) -> Positions:
        """Return the values that such a report makes likeliest."""
        return self.whole.likeliest(named)

    def named_logs(self, named: Positions) -> Array:
        """Return ln of the likelihood of such a report, shape (size,)."""
        return self.whole.named_logs(named)

    def describe(self, attribute: Attribute, named: Positions) -> str:
        """Say in words what is reported about the attribute."""
        return self.whole.describe(attribute, named)
