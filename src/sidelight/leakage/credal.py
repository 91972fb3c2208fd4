"""Robust leakage: the most that any distribution within a credal set leaks.

A report that favours a set S says about two secret values at most
(a + (1-a) Pr(S | x)) / (a + (1-a) Pr(S | x')), a = e^-epsilon, and the region limits both probabilities for
every set at once. So the upper limit over the lower one, taken over the sets a channel can favour, bounds
the leakage of every distribution in the region; the lower over the upper one is reached by all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sidelight.belief import Credal
from sidelight.belief.credal import Region
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_is
from sidelight.leakage.bounds import Bound, Claim, Leakage, Witness
from sidelight.leakage.pair import check_fit, checked_channels, direct_leakage, is_idealised
from sidelight.leakage.witnesses import records_behind, witnessed
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel import LARGEST_LIST, as_channel
from sidelight.mechanisms.channel.generic import all_sets, baseline_at, climb
from sidelight.mechanisms.channel.logs import log_pairs, logs_of

LARGEST_ALPHABET = 10
LARGEST_JOINT = 1 << 12
_GRID = np.unique(np.concatenate([np.linspace(0, 1, 129), np.geomspace(1e-6, 1, 61)]))


@dataclass(frozen=True)
class _Worst:
    """The largest log-ratio, the two secret values, and the number of the report; -1 if it is not known."""

    value: float
    likelier: int = 0
    unlikelier: int = 1
    report: int = -1


def robust_pair(credal: Credal, channel: Channel, secret: str, neighbour: str) -> Leakage:
    """Return what the neighbour's report alone says about the secret, for every distribution in the set.

    With the credal set's confidence, the true leakages of all pairs lie within their intervals together. A
    secret value that was never seen may still occur, with any row: then the figure is close to the budget.
    The values are those of the schema: a value that neither the sample nor the schema has is not covered, so
    give the schema where it is known.
    """
    check_is("credal", credal, Credal, "belief.credal() makes one.")
    channel = as_channel(channel)
    if secret == neighbour:
        raise InputError(f"the neighbour must be another attribute than the secret {secret!r}.")
    belief = credal.belief
    check_fit(belief.schema[neighbour], channel)
    if belief.schema[secret].size < 2:
        return Leakage.exactly(secret, (neighbour,), Bound(0.0, "certified", "only one value is possible"))
    region, attained = credal.pair(secret, neighbour), channel.attained

    def bound(worst: _Worst, kind: Claim, reporting: Channel) -> Bound:
        pair = worst.likelier, worst.unlikelier
        figure = Bound(min(worst.value, channel.epsilon), kind, _method(credal))
        if worst.report >= 0:
            named = reporting.named(worst.report)
            return witnessed(figure, belief, {neighbour: reporting}, secret, pair, {neighbour: named})
        labels = belief.schema[secret].values
        witness = Witness(f"{neighbour}: its worst report", labels[pair[0]], labels[pair[1]])
        support = records_behind(belief, secret, pair, {})
        return replace(figure, witness=witness if worst.value > 0 else None, support=support)

    lower = bound(_least(region, attained), "lower", attained)
    upper = bound(_largest(region, channel), _claim([channel]), channel)
    return Leakage(secret, (neighbour,), lower, upper, channel.delta)


def robust_total(credal: Credal, channels: Mapping[str, Channel], secret: str) -> Leakage:
    """Return the leakage of the secret through every release, for every distribution in the set.

    The lower end is what the own report or one pair surely tells; the upper one is `robust_upper`. All of it
    holds with the pairs, for one plan.
    """
    check_is("credal", credal, Credal, "belief.credal() makes one.")
    belief = credal.belief
    channels = checked_channels(belief, channels)
    others = [name for name in channels if name != secret]
    pairs = [robust_pair(credal, channels[name], secret, name) for name in others]
    seen = replace(belief, smoothing=0.0)  # a value that smoothing alone makes possible is not surely there
    own = direct_leakage(seen, channels.get(secret), secret).lower
    lower = max([own, *(pair.lower for pair in pairs)], key=lambda bound: bound.value)
    upper = robust_upper(credal, channels, secret, joint_region(credal, secret, others))
    delta = math.fsum(channel.delta for channel in channels.values())
    return Leakage(secret, tuple(channels), Bound(lower.value, "lower", _method(credal)), upper, delta)


def robust_upper(
    credal: Credal, channels: Mapping[str, Channel], secret: str, region: Region | None
) -> Bound:
    """Return the most that all releases together leak about the secret, for any distribution in the set.

    It is the least of composition, which holds for every belief; the own report with the pair's robust
    figure, where one other attribute is released; and the robust joint generic bound, where the other
    attributes together have few combinations: `region` is their `joint_region`, which no budget changes.
    """
    method = _method(credal)
    others = [name for name in channels if name != secret]
    budget = channels[secret].epsilon if secret in channels else 0.0
    rest = math.fsum(channels[name].epsilon for name in others)
    bounds = [Bound(budget + rest, "certified", "composition")]
    if len(others) == 1:
        pair = robust_pair(credal, channels[others[0]], secret, others[0])
        bounds.append(Bound(budget + pair.value, "certified", f"own report and one pair, {method}"))
    if region is not None:
        value = robust_generic(region, baseline_at(rest)).value
        bounds.append(Bound(budget + min(value, rest), "certified", f"joint generic, {method}"))
    return replace(min(bounds, key=lambda bound: bound.value), kind=_claim(channels.values()))


def _claim(channels: Iterable[Channel]) -> Claim:
    return "published" if is_idealised(channels) else "certified"


def _method(credal: Credal) -> str:
    return f"credal set, confidence {credal.confidence:g}"


def joint_region(credal: Credal, secret: str, others: list[str]) -> Region | None:
    """Return the region of all other released attributes as one; None where it is unknown or too large."""
    schema, records = credal.belief.schema, credal.belief.records
    cells = math.prod(float(schema[name].size) for name in others)
    if records is None or not others or schema[secret].size < 2 or cells > LARGEST_JOINT:
        return None
    return credal.joint(records.cells([secret, *others]).reshape(schema[secret].size, -1))


def _largest(region: Region, channel: Channel) -> _Worst:
    """Return the largest leakage in the region."""
    reports = channel.columns(math.inf if channel.is_listable else LARGEST_LIST)
    return (
        robust_generic(region, channel.floor) if reports is None else _worst(*_likelihoods(region, reports))
    )


def _least(region: Region, channel: Channel) -> _Worst:
    """Return a leakage that all of the region reaches; 0 if the reports are too many to list."""
    reports = channel.columns()
    return _Worst(0.0) if reports is None else _worst(*reversed(_likelihoods(region, reports)))


def _likelihoods(region: Region, reports: Array) -> tuple[Array, Array]:
    """Return the largest and the least Pr(report | secret value) of each report, shape (m, reports)."""
    least, most = reports.min(axis=0), reports.max(axis=0)
    favoured = (reports == most) & (most > least)
    if (favoured | (reports == least)).all():
        sets = favoured.astype(np.float64)
        high, low = region.upper(sets), region.lower(sets)
        return least + (most - least) * high, least + (most - least) * low
    layers = [_layers(region, report) for report in reports.T]
    return np.column_stack([high for high, _ in layers]), np.column_stack([low for _, low in layers])


def _layers(region: Region, report: Array) -> tuple[Array, Array]:
    """Return the limits of Pr(report | secret value): a likelihood is a sum of its level sets."""
    order = np.argsort(-report)
    levels = report[order]
    prefixes = np.zeros((len(report), len(report)))
    prefixes[order] = np.triu(np.ones_like(prefixes))
    steps = levels - np.append(levels[1:], 0.0)
    return region.upper(prefixes) @ steps, region.lower(prefixes) @ steps


def _worst(high: Array, low: Array) -> _Worst:
    """Return the largest log-ratio of a row of `high` to another row of `low` within a column."""
    values, reports = log_pairs(logs_of(high), logs_of(low))
    pair = divmod(int(values.argmax()), len(values))
    return _Worst(float(values[pair]), *pair, int(reports[pair])) if values[pair] > 0 else _Worst(0.0)


def robust_generic(region: Region, baseline: float) -> _Worst:
    """Return the robust generic bound over all ordered pairs of secret values."""
    if region.counts.shape[1] <= LARGEST_ALPHABET:
        sets = all_sets(region.counts.shape[1])
        high, low = region.upper(sets), region.lower(sets)
        return _worst(baseline + (1 - baseline) * high, baseline + (1 - baseline) * low)
    best = _Worst(0.0)
    for i in range(len(region.counts)):
        by_values = climb(region.high[i], region.low, baseline)
        bounds = np.minimum(by_values, share_bounds(region, i, baseline))
        bounds[i] = 0.0
        j = int(bounds.argmax())
        if bounds[j] > best.value:
            best = _Worst(float(bounds[j]), i, j)
    return best


def share_bounds(region: Region, i: int, baseline: float) -> Array:
    """Bound the log-ratio of secret value i to each other one over all sets, many as they are, shape (m,).

    Among the sets whose share under x' is at most z, the share under x is at most G(z), the curve of
    Neyman and Pearson (1933) through the sets in the order of their ratios. Both limits grow with the
    share, so on each interval (z, z'] of a grid the ratio is at most that of the limits of G(z') and z.
    """
    grids = np.empty((len(region.counts), len(_GRID) + region.counts.shape[1] + 1))
    curves = np.empty_like(grids)
    for j, row in enumerate(region.shares):
        grids[j], curves[j] = _curve(region.shares[i], row)
    high = baseline + (1 - baseline) * region.upper_share(curves, i)
    low = baseline + (1 - baseline) * (1 - region.upper_share(1 - grids))
    with np.errstate(divide="ignore"):
        first = np.log(high[:, 0]) - math.log(baseline) if baseline > 0 else np.full(len(high), np.inf)
        later = np.log(high[:, 1:]) - np.log(low[:, :-1])
    return np.asarray(np.maximum(first, later.max(axis=1)))


def _curve(g: Array, h: Array) -> tuple[Array, Array]:
    """Return a grid of shares z under h, and the largest share under g of a set with share z under h."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(h > 0, g / h, np.where(g > 0, np.inf, -1.0))
    order = np.argsort(-ratios)
    shares = np.append(0.0, np.minimum(np.cumsum(h[order]), 1.0))
    reached = np.append(0.0, np.minimum(np.cumsum(g[order]), 1.0))
    grid = np.sort(np.concatenate([_GRID, shares]))
    last = np.append(np.diff(shares) > 0, True)  # of equal shares the one with every value that costs none
    return grid, np.interp(grid, shares[last], reached[last])
