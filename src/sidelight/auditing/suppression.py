"""Figures that rest on few records, replaced by what the budgets alone say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sidelight.auditing.result import SUPPRESSED, SecretAudit, is_rare, published_sum
from sidelight.auditing.stories import Story
from sidelight.leakage import Bound, DeltaPoint, Leakage
from sidelight.leakage.totals import composition
from sidelight.mechanisms import Channel


def suppressed(
    item: SecretAudit,
    channels: Mapping[str, Channel],
    reports: Mapping[str, Channel],
    min_support: int,
    *,
    rarest: int | None,
) -> SecretAudit:
    """Replace every figure of a secret that rests on fewer records by what the budgets alone say.

    Where the secret has a rare value, exact shares would tell how rare: they are rounded or left out.
    `channels` are as the adversary sees them, `reports` as one does who keeps whole reports; `rarest` is how
    many records have the rarest value, where that is known.
    """
    has_rare_value = rarest is not None and rarest < min_support
    budget = composition(reports).value
    direct = _direct(item.direct, min_support)
    neighbours = [_pair(leakage, channels, min_support) for leakage in item.neighbours]
    neighbours.sort(key=lambda leakage: -leakage.value)
    hidden = {leakage.through[0] for leakage in neighbours if leakage.upper.is_suppressed}
    averages = {} if has_rare_value else item.averages
    robust = {name: _pair(leakage, channels, min_support) for name, leakage in item.robust_neighbours.items()}
    return replace(
        item,
        direct=direct,
        neighbours=tuple(neighbours),
        total=_total(item.total, channels, direct, min_support),
        published=published_sum(direct, neighbours),
        commonest=(item.commonest[0], round(item.commonest[1], 1)) if has_rare_value else item.commonest,
        averages={name: average for name, average in averages.items() if name not in hidden},
        model=item.model if item.model and item.model.rests_on(min_support) else None,
        robust=item.robust and _total(item.robust, channels, direct, min_support),
        robust_neighbours=robust,
        whole=item.whole and _total(item.whole, reports, direct, min_support),
        stories=tuple(_story(story, budget, rarest or 0, min_support) for story in item.stories),
        null=item.null and _total(item.null, reports, direct, min_support),
    )


def _story(story: Story, budget: float, rarest: int, min_support: int) -> Story:
    """Replace every figure at delta that fewer people decide by what holds for every table.

    A figure at delta is decided by a share delta of the people with a value: of a value that few have, or at
    a small delta, by hardly anyone. How far releases move odds is kept as long as enough people are moved
    further; all that is said beyond is the budget.
    """
    leakage = story.leakage
    kept = {point.delta for point in leakage.points if point.delta * rarest >= min_support}
    points = [point if point.delta in kept else _composed(point) for point in leakage.points]
    place = int(np.searchsorted(leakage.shares, 1 - min_support / max(rarest, min_support)))
    moves, shares = np.append(leakage.moves[:place], budget), np.append(leakage.shares[:place], 1.0)
    nulls = {delta: null for delta, null in story.nulls.items() if delta in kept}
    shown = replace(leakage, points=tuple(points), moves=moves, shares=shares)
    return replace(story, leakage=shown, nulls=nulls)


def _composed(point: DeltaPoint) -> DeltaPoint:
    """Return a point of which only what holds for every table is left."""
    return DeltaPoint(point.delta, replace(point.composed, method=SUPPRESSED), None, point.composed)


def _pair(leakage: Leakage, channels: Mapping[str, Channel], min_support: int) -> Leakage:
    """Replace a pair's rare figure by the neighbour's budget, which holds for every belief."""
    if not is_rare(leakage.upper, min_support) and not is_rare(leakage.lower, min_support):
        return leakage
    name = leakage.through[0]
    upper = replace(composition({name: channels[name]}), method=SUPPRESSED)
    return replace(leakage, lower=Bound(0.0, "lower", SUPPRESSED), upper=upper)


def _direct(leakage: Leakage, min_support: int) -> Leakage:
    """Hide a rare witness; the figure itself is the budget and says nothing about the data."""
    if not is_rare(leakage.upper, min_support):
        return leakage
    bound = replace(leakage.upper, witness=None, support=None)
    return replace(leakage, lower=bound, upper=bound)


def _total(total: Leakage, channels: Mapping[str, Channel], direct: Leakage, min_support: int) -> Leakage:
    """Replace a total by composition and the direct leakage, unless it is known to rest on enough records."""
    upper, lower = total.upper, total.lower
    if upper.method != composition(channels).method and not upper.rests_on(min_support):
        upper = replace(composition(channels), method=SUPPRESSED)
    if not lower.rests_on(min_support):
        lower = Bound(direct.lower.value, "lower", SUPPRESSED)
    return replace(total, lower=lower, upper=upper)
