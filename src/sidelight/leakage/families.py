"""What each family of channels can do to two rows: the largest likelihood ratio, and who reaches it.

| favoured sets | figure |
| --- | --- |
| singletons | the ratios of a + (1-a) P, column by column |
| subsets of w values | Dinkelbach with the w largest |
| all subsets; any channel of the budget | Dinkelbach with all positive gains |
| given by a matrix | the ratios of P Q, column by column |
| noise of a Laplace density | the same, reports at the values themselves and at both ends of the line |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from sidelight.leakage.bounds import Claim
from sidelight.leakage.generic import climb, favoured_set, generic_pairs, generic_worst
from sidelight.leakage.logs import contract_logs, fits_doubles, log_pairs, log_spans, logs_of
from sidelight.mechanisms import Channel, ContinuousChannel, FavouringChannel
from sidelight.schema import Attribute

Array = NDArray[np.float64]
LARGEST_LIST = 1 << 10
LARGEST_STACK = 1 << 22
_LEAST_BASELINE = 1e-300


@dataclass(frozen=True)
class Worst:
    """The largest log-ratio, the two rows that reach it, and the favoured values (or the report's number)."""

    value: float
    likelier: int
    unlikelier: int
    favoured: NDArray[np.intp]


def baseline_of(channel: Channel) -> float:
    """Return the least likelihood of a report over the greatest, e^-epsilon.

    A number too small for doubles becomes 0, which can only raise a figure; figures are capped by the budget.
    """
    baseline = float(getattr(channel, "baseline", math.exp(-channel.epsilon)))
    return baseline if baseline > _LEAST_BASELINE else 0.0


def baseline_at(budget: float) -> float:
    """Return e^-budget; 0, which can only raise a figure, where doubles would lose its digits."""
    baseline = math.exp(-budget)
    return baseline if baseline > _LEAST_BASELINE else 0.0


def single_of(channel: Channel) -> Channel:
    """Return a channel whose figures are surely reached, for lower figures.

    Of several reports that are only bounded by their budgets it is one of them, since one says no more than
    all. Of a channel that may not produce what its figure assumes it is one that says nothing. Where doubles
    do not hold the budget it is the largest that they hold.
    """
    within = getattr(channel, "within", None)
    if within is not None:
        return single_of(within)
    assumed = channel.family == "any" or is_gaussian(channel) or getattr(channel, "is_model", False)
    if assumed or not getattr(channel, "realises_all", True):
        return _saying_nothing(channel.size)
    if isinstance(channel, FavouringChannel) and _is_beyond_doubles(channel):
        return replace(channel, baseline=2 * _LEAST_BASELINE, budget=None)
    return channel


@cache
def _saying_nothing(size: int) -> FavouringChannel:
    return FavouringChannel(size, "singletons", 1.0)


def delta_of(channel: Channel) -> float:
    """Return the probability with which the channel's budget does not hold."""
    return float(getattr(channel, "delta", 0.0))


def is_gaussian(channel: Channel) -> bool:
    """Whether the channel adds Gaussian noise, of which only its epsilon and delta are used."""
    return getattr(channel, "noise", "") == "gaussian"


def claim_of(channel: Channel) -> Claim:
    """Return what a figure through this channel claims: exact if all that it assumes can be reported.

    The law of an idealised mechanism gives the figure that was published for it, whichever one is in use.
    """
    if getattr(channel, "is_model", False):
        return "published"
    known = channel.family != "any" and getattr(channel, "realises_all", True) and not is_gaussian(channel)
    return "exact" if known and not _is_beyond_doubles(channel) else "certified"


def is_idealised(channels: Iterable[Channel]) -> bool:
    """Whether figures through these channels are published ones: a paper idealises the mechanism of one."""
    return any(claim_of(channel) == "published" for channel in channels)


def _is_beyond_doubles(channel: Channel) -> bool:
    """Whether a set's figure is rounded up, since doubles hold e^-epsilon no more."""
    return favours_sets(channel) and math.isfinite(channel.epsilon) and baseline_of(channel) == 0


def favours_sets(channel: Channel) -> bool:
    """Whether a report favours a set of values rather than one, or is given by a matrix."""
    return channel.family in ("any", "all", "subsets") or is_gaussian(channel)


def worst_ratio(rows: Array, channel: Channel) -> Worst:
    """Return the largest log-ratio between two rows of Pr(U | secret value), shape (m, t)."""
    if favours_sets(channel):
        found = generic_worst(rows, baseline_of(channel), width_of(channel))
        return Worst(
            min(found.value, channel.epsilon),
            found.likelier,
            found.unlikelier,
            np.flatnonzero(found.favoured),
        )
    logs = _log_columns(rows, channel)
    spans = log_spans(logs)
    report = int(spans.argmax())
    column = logs[:, report]
    value = min(float(spans[report]), _most(channel))
    return Worst(value, int(column.argmax()), int(column.argmin()), np.array([report]))


def worst_of_pair(rows: Array, channel: Channel, pair: tuple[int, int]) -> Worst:
    """Return the largest log-ratio of one row to another."""
    g, h = rows[list(pair)]
    if favours_sets(channel):
        value = float(climb(g, h, baseline_of(channel), width_of(channel)))
        with np.errstate(over="ignore"):
            favoured = np.flatnonzero(favoured_set(g, h, float(np.exp(value)), width_of(channel)))
        return Worst(min(value, channel.epsilon), *pair, favoured)
    top, bottom = _log_columns(np.array([g, h]), channel)
    with np.errstate(invalid="ignore"):
        logs = np.where(top > -np.inf, top - bottom, -np.inf)
    report = int(np.argmax(logs))
    return Worst(min(max(0.0, float(logs[report])), _most(channel)), *pair, np.array([report]))


def ratio_pairs(rows: Array, channel: Channel) -> Array:
    """Return the largest log-ratio for every ordered pair of rows, shape (m, m)."""
    if favours_sets(channel):
        return np.minimum(generic_pairs(rows, baseline_of(channel), width_of(channel)), channel.epsilon)
    return np.minimum(log_pairs(_log_columns(rows, channel))[0], _most(channel))


def own_pairs(channel: Channel | None, possible: NDArray[np.intp]) -> Array:
    """Return what an attribute's own report says about every two of its possible values, shape (m, m)."""
    same = np.eye(len(possible), dtype=np.bool_)
    if channel is None or width_of(channel) == channel.size:
        return np.zeros(same.shape)
    if favours_sets(channel) or channel.family == "singletons":
        return np.where(same, 0.0, channel.epsilon)  # some report favours the one value and not the other
    return ratio_pairs(np.eye(channel.size)[possible], channel)


def _most(channel: Channel) -> float:
    """Return what no figure through the channel exceeds: its budget, unless a matrix states the channel."""
    return math.inf if channel.family == "dense" else channel.epsilon


def stacked_worst(rows: Array, channels: Sequence[Channel]) -> list[Worst] | None:
    """Return `worst_ratio` of many pairs at once, shape (pairs, m, t).

    The channels are of one family and size. None where the pairs are better done one by one.
    """
    pairs, m, t = rows.shape
    if channels[0].family in ("dense", "continuous") or pairs * m * m * t > LARGEST_STACK:
        return None
    baseline = np.array([baseline_of(channel) for channel in channels])
    if favours_sets(channels[0]) and t > 2:
        return _stacked_sets(rows, channels)
    if width_of(channels[0]) == 2:
        return None
    columns = baseline[:, None, None] + (1 - baseline)[:, None, None] * rows
    high, low = columns.argmax(axis=1), columns.argmin(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(columns)
        spans = (
            np.take_along_axis(logs, high[:, None], 1)[:, 0] - np.take_along_axis(logs, low[:, None], 1)[:, 0]
        )
    spans = np.where(np.isnan(spans), 0.0, spans)
    report = spans.argmax(axis=1)
    at = np.arange(pairs)
    values = np.minimum(spans[at, report], [channel.epsilon for channel in channels])
    found = zip(values, high[at, report], low[at, report], report, strict=True)
    return [Worst(float(value), int(i), int(j), np.array([y])) for value, i, j, y in found]


def _stacked_sets(rows: Array, channels: Sequence[Channel]) -> list[Worst]:
    baseline, width = np.array([baseline_of(channel) for channel in channels]), width_of(channels[0])
    logs = climb(rows[:, :, None], rows[:, None], baseline[:, None, None], width)
    flat = logs.reshape(len(rows), -1)
    best = flat.argmax(axis=1)
    found = []
    for row, value, place, channel in zip(
        rows, flat[np.arange(len(rows)), best], best, channels, strict=True
    ):
        i, j = divmod(int(place), rows.shape[1])
        favoured = favoured_set(row[i], row[j], float(np.exp(value)), width)
        found.append(Worst(min(float(value), channel.epsilon), i, j, np.flatnonzero(favoured)))
    return found


def report_columns(channel: Channel, most: float = LARGEST_LIST) -> Array | None:
    """Return each report's likelihood given each value, up to a factor a report, shape (t, reports).

    These are the reports that can be worst: for a channel that favours sets, all its sets; for one of which
    only the budget is known, all sets too, since a ratio of two forms that are linear in the report's
    likelihoods is largest at their extremes. None if there are more than `most`.
    """
    size = channel.size
    if not favours_sets(channel):
        columns = _columns(np.eye(size), channel)
        return columns if columns.shape[1] <= max(most, size + 2) else None
    width = width_of(channel)
    if count_reports(channel) > most:
        return None
    if width is None:
        sets = (np.arange(1 << size)[None, :] >> np.arange(size)[:, None]) & 1
    else:
        sets = np.zeros((size, comb(size, width)), dtype=np.int64)
        for column, chosen in enumerate(combinations(range(size), width)):
            sets[list(chosen), column] = 1
    return np.where(sets, 1.0, baseline_of(channel))


def count_reports(channel: Channel) -> float:
    """Return how many reports `report_columns` would list."""
    if isinstance(channel, ContinuousChannel) and not is_gaussian(channel):
        return float(channel.size + 2)
    if not favours_sets(channel):
        return float(channel.size if channel.family == "singletons" else channel.matrix().shape[1])
    width = width_of(channel)
    try:
        return 2.0**channel.size if width is None else float(comb(channel.size, width))
    except OverflowError:
        return math.inf


def report_logs(channel: Channel, most: float = LARGEST_LIST) -> Array | None:
    """Return the logarithms of `report_columns`, also of likelihoods too small for doubles."""
    if isinstance(channel, ContinuousChannel) and not is_gaussian(channel):
        return _laplace_logs(channel)
    columns = report_columns(channel, most)
    if columns is None:
        return None
    if channel.family == "dense":
        return logs_of(columns)
    return np.where(columns == columns.max(axis=0), 0.0, -channel.epsilon)


def report_named(channel: Channel, report: int) -> NDArray[np.intp]:
    """Return what names report number `report` of `report_columns`: the values it favours, or its number.

    It has a number where the channel is given by its reports rather than by favoured sets.
    """
    sets = channel.family == "singletons" or favours_sets(channel)
    return report_values(channel, report) if sets else np.array([report])


def named_logs(channel: Channel, named: NDArray[np.intp]) -> Array:
    """Return ln of the likelihood of a report, given by what names it, for every value, shape (size,)."""
    if channel.family == "singletons" or favours_sets(channel):
        logs = np.full(channel.size, -channel.epsilon)
        logs[named] = 0.0
        return logs
    if isinstance(channel, ContinuousChannel):
        return np.asarray(_laplace_logs(channel)[:, int(named[0])])
    return logs_of(channel.likelihood(int(named[0])))


def report_values(channel: Channel, report: int) -> NDArray[np.intp]:
    """Return the values that report number `report` of `report_columns` makes likeliest."""
    columns = report_columns(channel, math.inf)
    if columns is None:
        return np.arange(channel.size)
    return np.flatnonzero(columns[:, report] == columns[:, report].max())


def describe_favoured(attribute: Attribute, channel: Channel, favoured: NDArray[np.intp]) -> str:
    """Say in words which values a report favours, or which number it has."""
    if channel.family == "continuous" and not is_gaussian(channel):
        return f"{attribute.name} reported {_place(attribute, int(favoured[0]))}"
    if channel.family == "dense":
        return f"{attribute.name}: report {int(favoured[0])}"
    shown = [attribute.values[int(code)] for code in favoured]
    if len(shown) == 1:
        return f"{attribute.name} = {shown[0]}"
    listed = ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
    return f"{attribute.name} among {listed or 'none of its values'}"


def _place(attribute: Attribute, report: int) -> str:
    """Say where on the line a report of `_laplace_logs` lies."""
    if report < attribute.size:
        return f"at {attribute.values[report]}"
    return "far below all values" if report == attribute.size else "far above all values"


def width_of(channel: Channel) -> int | None:
    """Return how many values a report favours, None if it may be any number."""
    return int(getattr(channel, "width", 1)) if channel.family == "subsets" else None


def _columns(rows: Array, channel: Channel) -> Array:
    """Return Pr(report | secret value) up to a factor for each report, shape (m, reports)."""
    if channel.family == "singletons":
        baseline = baseline_of(channel)
        return baseline + (1 - baseline) * rows
    if isinstance(channel, ContinuousChannel):
        return np.asarray(rows @ np.exp(_laplace_logs(channel)))
    return rows @ channel.matrix()


def _log_columns(rows: Array, channel: Channel) -> Array:
    """Return the logarithms of `_columns`, also of likelihoods too small for doubles."""
    if channel.family == "singletons":
        logs = logs_of(_columns(rows, channel))
        return logs if baseline_of(channel) > 0 else np.logaddexp(logs, -channel.epsilon)
    reports = report_logs(channel, math.inf)
    if reports is None or fits_doubles(logs_of(rows), reports):
        return logs_of(_columns(rows, channel))
    return contract_logs(logs_of(rows), reports, 1)


def _laplace_logs(channel: ContinuousChannel) -> Array:
    """Return the logarithms of the likelihoods of the reports that can be worst, shape (t, t + 2).

    Between two neighbouring points the ratio of two mixtures of Laplace densities is monotone in the report,
    so it is largest at a point or at one end of the line.
    """
    points = np.asarray(channel.points, dtype=np.float64) / channel.scale
    ends = np.stack([-points + points.min(), points - points.max()], axis=1)
    return np.concatenate([-np.abs(points[:, None] - points), ends], axis=1)
