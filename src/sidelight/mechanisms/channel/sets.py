"""Channels whose reports favour sets of values.

What a report says about a correlated secret depends on the *sets of values one report can favour*. Most
mechanisms have two likelihoods only: one for the values a report favours, one for the others. Then the
family of favoured sets and the ratio of the two likelihoods are all that leakage needs, and no report has
to be listed. A channel of which only the budget is known is bounded by the same search: a ratio of two forms
that are linear in a report's likelihoods is largest at their extremes, which are the sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from sidelight.foundation import errors
from sidelight.foundation.arrays import Array, Positions
from sidelight.mechanisms.channel import channel as base
from sidelight.mechanisms.channel import generic
from sidelight.mechanisms.channel.channel import LARGEST_LIST, Channel
from sidelight.mechanisms.channel.logs import logs_of
from sidelight.mechanisms.exact import store
from sidelight.schema import Attribute

Family = Literal["singletons", "subsets", "all"]
LARGEST_STACK = 1 << 22  # 32 MiB of doubles; larger searches go one by one


class SetChannel(Channel):
    """A channel whose worst report is searched among sets of values; reports are named by such a set."""

    method = "worst channel of this budget"
    is_listable = False  # sets do not say how often each report is sent
    favours_sets = True
    favours_every_set = True
    set_size: int | None = None
    """How many values a report favours; None if it may be any number."""

    def count_reports(self) -> float:
        """Return how many sets there are."""
        try:
            return 2.0**self.size if self.set_size is None else float(comb(self.size, self.set_size))
        except OverflowError:
            return math.inf

    def columns(self, most: float = LARGEST_LIST) -> Array | None:
        """Return `all_columns`, or None if there are more than `most` sets."""
        return None if self.favours_sets and self.count_reports() > most else self.all_columns()

    def all_columns(self) -> Array:
        """Return the likelihoods of a report for each set, shape (size, sets), up to a factor for each."""
        if self.set_size is None:
            sets = generic.all_sets(self.size)
        else:
            sets = np.zeros((self.size, comb(self.size, self.set_size)))
            for column, chosen in enumerate(combinations(range(self.size), self.set_size)):
                sets[list(chosen), column] = 1
        return np.where(sets, 1.0, self.floor)

    def all_logs(self) -> Array:
        """Return the logarithms of `all_columns`; the budget gives those that doubles have lost."""
        columns = self.all_columns()
        return np.where(columns == columns.max(axis=0), 0.0, -self.epsilon)

    def worst_ratio(self, rows: Array) -> generic.Worst:
        """Return the largest log-ratio between two of the rows."""
        if not self.favours_sets:
            return super().worst_ratio(rows)
        worst = generic.generic_worst(rows, self.floor, self.set_size)
        return replace(worst, value=min(worst.value, self.epsilon))

    def worst_of_pair(self, rows: Array, pair: tuple[int, int]) -> generic.Worst:
        """Return the largest log-ratio of one row to another."""
        if not self.favours_sets:
            return super().worst_of_pair(rows, pair)
        g, h = rows[list(pair)]
        value = float(generic.climb(g, h, self.floor, self.set_size))
        with np.errstate(over="ignore"):
            favoured = np.flatnonzero(generic.favoured_set(g, h, float(np.exp(value)), self.set_size))
        return generic.Worst(min(value, self.epsilon), *pair, favoured)

    def ratio_pairs(self, rows: Array) -> Array:
        """Return the largest log-ratio of every row to every other, shape (m, m)."""
        if not self.favours_sets:
            return super().ratio_pairs(rows)
        return np.minimum(generic.generic_pairs(rows, self.floor, self.set_size), self.epsilon)

    def own_pairs(self, possible: Positions) -> Array:
        """Return the budget for every two different values: some set holds the one and not the other."""
        says_nothing = self.set_size == self.size
        return np.where(np.eye(len(possible), dtype=np.bool_), 0.0, 0.0 if says_nothing else self.epsilon)

    def stacked_worst(self, rows: Array, channels: Sequence[Channel]) -> list[generic.Worst]:
        """Return `worst_ratio` of many channels of this kind at once, see `Channel.stacked_worst`."""
        pairs, m, t = rows.shape
        by_sets = self.favours_sets and t > 2
        # Of two values a report favours one, or both, which tells nothing: that is no case for singles.
        if pairs * m * m * t > LARGEST_STACK or (self.set_size == 2 and not by_sets):
            return super().stacked_worst(rows, channels)
        floors = np.array([channel.floor for channel in channels])[:, None, None]
        budgets = np.array([channel.epsilon for channel in channels])
        if by_sets:
            return _stacked_sets(rows, floors, budgets, self.set_size)
        return _stacked_singles(rows, floors, budgets)

    def stacked_values(self, rows: Array, channels: Sequence[Channel], which: Positions) -> Array:
        """Return the values of `stacked_worst` without what reaches them, see `Channel.stacked_values`."""
        pairs, m, t = rows.shape
        if (self.favours_sets and t > 2) or pairs * m * m * t > LARGEST_STACK or self.set_size == 2:
            return super().stacked_values(rows, channels, which)
        floors = np.array([channel.floor for channel in channels])[which, None, None]
        budgets = np.array([channel.epsilon for channel in channels])[which]
        return np.asarray(np.minimum(_single_logs(floors + (1 - floors) * rows).max(axis=1), budgets))

    def answers(self, g: Array, h: Array) -> Array:
        """Return the largest log-ratio of every row of `g` to the row of `h` beside it."""
        return np.minimum(generic.climb(g, h, self.floor, self.set_size), self.epsilon)

    def named(self, report: int) -> Positions:
        """Return the values that report number `report` of `all_columns` favours."""
        return super().likeliest(np.array([report]))

    def likeliest(self, named: Positions) -> Positions:
        """Return the values that a report favours: they name it."""
        return named

    def named_logs(self, named: Positions) -> Array:
        """Return ln of the likelihood of a report that favours these values, shape (size,)."""
        logs = np.full(self.size, -self.epsilon)
        logs[named] = 0.0
        return logs

    def describe(self, attribute: Attribute, named: Positions) -> str:
        """Say in words which values a report favours."""
        shown = [attribute.values[int(code)] for code in named]
        if len(shown) == 1:
            return f"{attribute.name} = {shown[0]}"
        listed = ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
        return f"{attribute.name} among {listed or 'none of its values'}"


def _stacked_singles(rows: Array, floors: Array, budgets: Array) -> list[generic.Worst]:
    likely = floors + (1 - floors) * rows
    logs = _single_logs(likely)
    at, report = np.arange(len(rows)), logs.argmax(axis=1)
    values, column = np.minimum(logs[at, report], budgets), likely[at, :, report]
    worst = zip(values, column.argmax(axis=1), column.argmin(axis=1), report, strict=True)
    return [generic.Worst(float(value), int(i), int(j), np.array([y])) for value, i, j, y in worst]


def _single_logs(likely: Array) -> Array:
    """Return ln of the largest ratio within each column, (pairs, columns); 0 where no row sends a report."""
    top, bottom = likely.max(axis=1), likely.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(top / bottom)
        rest = ~np.isfinite(logs)  # no report, one that a row never sends, or a ratio beyond doubles
        if rest.any():
            logs[rest] = np.where(top[rest] > 0, np.log(top[rest]) - np.log(bottom[rest]), 0.0)
    return np.asarray(logs)


def _stacked_sets(rows: Array, floors: Array, budgets: Array, width: int | None) -> list[generic.Worst]:
    logs = generic.climb(rows[:, :, None], rows[:, None], floors, width)
    flat = logs.reshape(len(rows), -1)
    best = flat.argmax(axis=1)
    worst = []
    for row, value, place, budget in zip(rows, flat.max(axis=1), best, budgets, strict=True):
        i, j = divmod(int(place), rows.shape[1])
        favoured = generic.favoured_set(row[i], row[j], float(np.exp(value)), width)
        worst.append(generic.Worst(min(float(value), float(budget)), i, j, np.flatnonzero(favoured)))
    return worst


@dataclass(frozen=True)
class FavouringChannel(SetChannel):
    """A report favours a set of values: each of them is likelier by the same factor.

    Attributes:
        family: which sets: "singletons", "subsets" (all sets of one size) or "all" (every set).
        baseline: the likelihood of a value that is not favoured over that of a favoured one, e^-epsilon.
        width: how many values a report favours, for "singletons" and "subsets".
        realises_all: whether some report favours each set of the family; if not, figures are certified
            upper ends instead of exact ones.
        is_model: whether this is the law of an idealised mechanism that stands for the one in use, as in
            published comparisons; then figures are neither exact nor certified.
        budget: the budget really spent, where it is known better than from the rounded baseline.
    """

    size: int
    family: Family
    baseline: float
    width: int = 1
    realises_all: bool = True
    is_model: bool = False
    budget: float | None = None
    epsilon: float = field(init=False, repr=False, compare=False)
    method = "favoured sets"

    def __post_init__(self) -> None:
        errors.check_choice("family", self.family, ("singletons", "subsets", "all"))
        size = errors.check_whole("size", self.size, at_least=1)
        widest = 1 if self.family == "singletons" else size
        width = errors.check_whole("width", self.width, at_least=1, at_most=widest)
        baseline = errors.check_number("baseline", self.baseline, at_least=0)
        if baseline > 1:
            raise errors.invalid("baseline", "at most 1", self.baseline)
        epsilon = math.inf if baseline == 0 else 0.0 - math.log(baseline)
        if self.budget is not None:
            epsilon = base.check_stated(self.budget, epsilon)
            store(self, budget=epsilon)
        store(self, size=size, width=width, baseline=baseline, epsilon=epsilon)
        single, every = self.family == "singletons", self.family == "all"
        store(self, is_listable=single, favours_sets=not single, favours_every_set=every)
        store(self, set_size=None if every else width, kind=(self.family, width))
        is_certified = self._is_beyond_doubles or not self.realises_all
        store(self, claim="published" if self.is_model else "certified" if is_certified else "exact")

    @property
    def attained(self) -> Channel:
        """This channel if all its sets occur; of a budget beyond doubles the largest that they hold."""
        if self.realises_all and not self.is_model and self._is_beyond_doubles:
            return replace(self, baseline=2 * generic.LEAST_BASELINE, budget=None)
        return super().attained

    @property
    def floor(self) -> float:
        """The baseline; 0 where doubles would lose the digits of its products."""
        return self.baseline if self.baseline > generic.LEAST_BASELINE else 0.0

    def likelihood(self, report: int | Sequence[int]) -> Array:
        """Return Pr(report | value) up to a common factor, shape (size,), by the value or values favoured."""
        codes = [report] if isinstance(report, (int, np.integer)) else list(report)
        if self.family != "all" and len(set(codes)) != self.width:
            raise errors.invalid("report", f"{self.width} different values", report)
        likely = np.full(self.size, self.baseline)
        for code in codes:
            likely[errors.check_whole("report", code, at_least=0, at_most=self.size - 1)] = 1.0
        return likely

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, size), of a channel that reports single values."""
        if self.favours_sets:
            raise errors.TooLargeError(
                f"a channel over {self.size} values whose reports are sets has too many of them for a "
                "matrix; leakage uses its favoured sets instead."
            )
        base.check_matrix_size(self.size, self.size)
        cells = np.full((self.size, self.size), self.baseline)
        np.fill_diagonal(cells, 1.0)
        return cells / (1 + (self.size - 1) * self.baseline)

    def all_columns(self) -> Array:
        """Return the likelihoods of each report that can be worst, see `Channel.all_columns`."""
        return self._reported(np.eye(self.size)) if self.is_listable else super().all_columns()

    def report_rows(self, rows: Array) -> Array:
        """Return Pr(report | secret value); single values need no matrix, so there may be any number."""
        if self.favours_sets:
            return super().report_rows(rows)
        mass = rows.sum(axis=1, keepdims=True)
        reported = self.floor * mass + (1 - self.floor) * rows
        return np.asarray(reported / (1 + (self.size - 1) * self.floor))

    def contract(self, cells: Array, axis: int) -> Array:
        """Replace the values on `axis` by reports."""
        if self.favours_sets:
            return super().contract(cells, axis)
        return np.asarray(self.floor * cells.sum(axis=axis, keepdims=True) + (1 - self.floor) * cells)

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` reports; the truth and nothing say no more when repeated.

        Where every set is favoured, each value is favoured by any number of the reports. A ratio of two forms
        that are linear in the likelihoods is largest where each value is favoured by all or by none: again
        every set, by the factor of all reports.
        """
        if times == 1 or (self.is_listable and self.baseline in (0.0, 1.0)):
            return self
        if self.favours_every_set and self.claim == "exact":
            return replace(self, baseline=self.baseline**times, budget=times * self.epsilon)
        return super().repeated(times)

    @property
    def _is_beyond_doubles(self) -> bool:
        """Whether a set's figure is rounded up, since doubles hold e^-epsilon no more."""
        return self.favours_sets and math.isfinite(self.epsilon) and self.floor == 0

    @property
    def _most(self) -> float:
        return self.epsilon

    def _reported(self, rows: Array) -> Array:
        return self.floor + (1 - self.floor) * rows

    def _reported_logs(self, rows: Array) -> Array:
        logs = logs_of(self._reported(rows))
        # A baseline that doubles lose is still known as a logarithm.
        return logs if self.floor > 0 else np.logaddexp(logs, -self.epsilon)


@cache
def silent_channel(size: int) -> FavouringChannel:
    """Return the channel that says nothing."""
    return FavouringChannel(size, "singletons", 1.0)


@dataclass(frozen=True)
class AnyChannel(SetChannel):
    """Some channel with at most this budget, nothing else known: figures are for the worst of them.

    Attributes:
        within: the channel of a part of the release, where that is known: what it attains is attained.
    """

    size: int
    epsilon: float
    delta: float = 0.0
    within: Channel | None = None

    def __post_init__(self) -> None:
        epsilon = errors.check_number("epsilon", self.epsilon, at_least=0, infinite=True)
        size = errors.check_whole("size", self.size, at_least=1)
        store(self, size=size, epsilon=epsilon, delta=base.check_delta(self.delta))
        if self.within is not None and self.within.claim == "published":
            store(self, claim="published")  # its budget is that of the idealised mechanism

    @property
    def attained(self) -> Channel:
        """What the known part attains, since one report says no more than all; without one, nothing."""
        return silent_channel(self.size) if self.within is None else self.within.attained

    def likelihood(self, report: int) -> Array:
        """Refuse: the channel is not known."""
        raise errors.InputError(f"only the budget is known of this channel, so it has no report {report!r}.")

    def matrix(self) -> Array:
        """Refuse: the channel is not known."""
        raise errors.InputError("only the budget is known of this channel, so it has no matrix.")


@dataclass(frozen=True, eq=False)
class ImplicitChannel(SetChannel):
    """A channel that states the likelihoods of a report but has too many of them for a matrix.

    Leakage treats it as any channel of its budget, so figures are certified; attacks use `likelihood`.
    """

    size: int
    epsilon: float
    law: Callable[[int], Array]

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, shape (size,)."""
        return self.law(report)

    def matrix(self) -> Array:
        """Refuse: it would be too large."""
        raise errors.TooLargeError(
            f"the matrix of this channel over {self.size} values is not built; use `likelihood`."
        )
