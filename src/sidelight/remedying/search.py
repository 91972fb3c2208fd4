"""Searches for candidates that keep the limits: what to withhold, which budgets to lower, what to coarsen.

Withholding is a greedy search: the attribute goes without which the figure is smallest, until the limits are
kept; what turns out not to be needed comes back. The set cannot be made smaller by giving one attribute back,
but a smaller one of other attributes may exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.plan import Release
from sidelight.remedying.coarsening import Coarsening, coarsenings
from sidelight.remedying.gauge import Candidate, Gauge

_LESS = 0.7
"""By how much a budget is lowered to see what that does to a figure."""
_STEPS = 12
_CLOSE = 0.98
"""A figure that reaches this share of its aim is near enough."""
_LEAST_SCALE = 1e-3
_LOOKED_AT = 10
"""After its first step, a greedy search looks at so many candidates in each."""
_ENOUGH = 0.5
"""No more is withheld where a quick look says that this share of a limit is left."""
_MOST_RETURNED = 10
"""Of so many withheld attributes each is tried out again."""
_NEGLIGIBLE = 1e-3
"""A figure that falls by less than this share is not known to fall at all."""
_WORTH = 0.97
"""A coarsening that leaves more of the figure than this is not worth what it takes away."""


def withheld(gauge: Gauge, candidate: Candidate, kept: Collection[str] = ()) -> list[str] | None:
    """Return attributes without which the limits seem to be kept, most telling first; None if there are none.

    Args:
        gauge: what the adversary learns.
        candidate: what would be released otherwise.
        kept: attributes that must stay.
    """
    order = _most_telling(gauge, candidate, kept)
    least = _first(lambda count: gauge.keeps(candidate.without(order[:count])), len(order))
    if least is None or least >= len(candidate.releases):
        return None
    hidden = order[:least]
    for name in hidden[:-1] if least <= _MOST_RETURNED else ():  # without the last the limits are not kept
        fewer = [other for other in hidden if other != name]
        if gauge.keeps(candidate.without(fewer)):
            hidden = fewer
    return hidden


def _most_telling(gauge: Gauge, candidate: Candidate, kept: Collection[str]) -> list[str]:
    """Return the attributes in the order in which a greedy search withholds them.

    All are looked at once; later steps look anew at those that said most so far.
    """
    order: list[str] = []
    free = {release.name: release for release in candidate.releases if release.name not in kept}
    ranked = list(free)

    def after(name: str) -> tuple[float, bool, int]:
        share = gauge.share(candidate.without([*order, name]), quick=True)
        # of equals a secret's own report goes first, then the one with most values, hence most noise
        return round(share, 9), name not in gauge.limits, -free[name].attribute.size

    for step in track(range(len(free)), "what to withhold"):
        seen = {name: after(name) for name in (ranked if step == 0 else ranked[:_LOOKED_AT])}
        ranked = [*sorted(seen, key=lambda name: seen[name]), *(name for name in ranked if name not in seen)]
        order.append(ranked.pop(0))
        if seen[order[-1]][0] <= _ENOUGH:
            break
    return order + ranked


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the least number up to `most` at which a condition holds that goes on to hold; None if never."""
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Rates:
    """By how much budgets may be lowered against each other.

    For small budgets an estimate's variance is a / epsilon^2 and a figure about a sum of w epsilon, so that
    the least total variance under a limit has epsilon in proportion to (a / w)^(1/3).

    Attributes:
        candidate: whose budgets are lowered.
        scale: by attribute, (a / w)^(1/3); infinite for what says nothing.
    """

    candidate: Candidate
    scale: Mapping[str, float]

    @property
    def most(self) -> float:
        """The level from which on no budget is lowered."""
        levels = [
            release.epsilon / self.scale[release.name]
            for release in self.candidate.releases
            if release.epsilon is not None and self.scale.get(release.name, 0.0) > 0
        ]
        return max(levels, default=0.0)

    def at(self, level: float) -> Candidate | None:
        """Return the candidate with budgets at a level, none above what it was; None if one cannot be."""
        releases = []
        for item in self.candidate.releases:
            budget = item.epsilon
            if budget is not None:
                budget = min(budget, level * self.scale[item.name])
            if budget is not None and budget < _LEAST_SCALE * (item.epsilon or 0.0):
                budget = _LEAST_SCALE * (item.epsilon or 0.0)
            try:
                releases.append(item if budget is None else item.at(budget))
            except InputError:  # a mechanism may not do with so little
                return None
        return Candidate(tuple(releases), self.candidate.coarsened)


def rates(
    gauge: Gauge, candidate: Candidate, frequencies: Mapping[str, Array], *, even: bool
) -> Rates | None:
    """Return how budgets are to be lowered; `even` lowers all by one factor. None without any budget."""
    budgets = {item.name: item.epsilon for item in candidate.releases if item.epsilon is not None}
    if not budgets:
        return None
    if even:
        return Rates(candidate, budgets)
    base = gauge.share(candidate, quick=True)
    scale = {}
    for name, budget in track(list(budgets.items()), "which budgets to lower"):
        lowered = _with_budget(candidate, name, _LESS * budget)
        if lowered is None:
            return None
        falls = base - gauge.share(lowered, quick=True)
        slope = max(falls, _NEGLIGIBLE * base) / ((1 - _LESS) * budget)
        scale[name] = math.cbrt(_noise(candidate.by_name[name], frequencies[name]) / max(slope, 1e-12))
    return Rates(candidate, scale)


def _with_budget(candidate: Candidate, name: str, budget: float) -> Candidate | None:
    try:
        lowered = tuple(item.at(budget) if item.name == name else item for item in candidate.releases)
    except InputError:
        return None
    return Candidate(lowered, candidate.coarsened)


def _noise(release: Release, shares: Array) -> float:
    """Return the variance of the estimates from one person's reports, times the square of their budget."""
    try:
        mean = float(release.variance(1, shares).mean())
    except InputError:
        mean = 1.0
    return max(mean, 1e-12) * (release.epsilon or 1.0) ** 2


def lowered(gauge: Gauge, ways: Rates) -> Candidate | None:
    """Return the candidate with the largest budgets that seem to keep the limits; None if there are none."""
    best: Candidate | None = None
    aim, high = gauge.aim(ways.candidate), (ways.most, gauge.share(ways.candidate))
    low: tuple[float, float] | None = None
    level = high[0]
    for _ in track(range(_STEPS), "how far to lower budgets"):
        level = _between(low, high, aim)
        tried = None if level < _LEAST_SCALE * ways.most else ways.at(level)
        if tried is None:
            break
        share = gauge.share(tried)
        if share <= aim:
            low, best = (level, share), tried
            if share >= _CLOSE * aim:
                break
        else:
            high = level, share
    return best


def _between(low: tuple[float, float] | None, high: tuple[float, float], aim: float) -> float:
    """Return a level at which a share is expected a little below the aim, given levels with their shares.

    Figures are nearly powers of budgets.
    """
    if low is None or low[1] <= 0:
        least = 0.0 if low is None else low[0]
        return max(0.95 * high[0] * max(aim / high[1], 0.1), math.sqrt(least * high[0]))
    power = math.log(high[1] / low[1]) / math.log(high[0] / low[0])
    wanted = low[0] * math.pow(aim * math.sqrt(_CLOSE) / low[1], 1 / max(power, 0.1))
    # not too near an end that is known already
    ends = (low[0] * math.pow(high[0] / low[0], part) for part in (0.05, 0.95))
    return min(max(wanted, next(ends)), next(ends))


def scaled(candidate: Candidate, factor: float) -> Candidate | None:
    """Return the candidate with all budgets multiplied; None where a mechanism may not do with so little."""
    try:
        releases = tuple(
            item if item.epsilon is None else item.at(factor * item.epsilon) for item in candidate.releases
        )
    except InputError:
        return None
    return Candidate(releases, candidate.coarsened)


def coarsened(
    gauge: Gauge, candidate: Candidate, frequencies: Mapping[str, Array], kept: Collection[str]
) -> Iterator[Candidate]:
    """Yield coarser and coarser candidates, each with a smaller figure than the one before.

    Fewer values do not always say less: a report of one of few values names the truth more often. So only
    coarsenings are taken that lower the figure. Those in `kept` keep their values: a secret with fewer values
    would be another secret.
    """
    ladders = {
        release.name: list(coarsenings(release.attribute, frequencies[release.name]))
        for release in candidate.releases
        if release.name not in kept and not release.parameters
    }
    steps = [item for ladder in ladders.values() for item in ladder]
    now, share = candidate, gauge.share(candidate, quick=True)
    while steps:
        tried = [(_with_coarse(now, item.fine.name, item), item) for item in steps]
        looks = [
            _Look(made, item, gauge.share(made, quick=True), now.by_name[item.fine.name].attribute.size)
            for made, item in track(tried, "what to coarsen")
            if made is not None
        ]
        ranked = sorted(looks, key=lambda look: -look.gain(share))
        if not ranked or ranked[0].share >= _WORTH * share:
            return
        best = ranked[0]
        now, share = best.candidate, best.share
        yield now
        is_finer = {name: item.coarse.size for name, item in now.coarsened.items()}
        rest = [look.item for look in ranked[1:]]
        steps = [it for it in rest if it.coarse.size < is_finer.get(it.fine.name, it.fine.size)][:_LOOKED_AT]


@dataclass(frozen=True, eq=False)
class _Look:
    """A candidate with one attribute coarser, what it leaves of the figures, and the values there were."""

    candidate: Candidate
    item: Coarsening
    share: float
    values: int

    def gain(self, before: float) -> float:
        """Return what is gained for the detail that is lost, both as logarithms; nothing below a worth."""
        if self.share >= _WORTH * before:
            return 0.0
        return math.log(before / max(self.share, 1e-9)) / math.log(self.values / self.item.coarse.size)


def _with_coarse(candidate: Candidate, name: str, item: Coarsening) -> Candidate | None:
    try:
        releases = tuple(
            replace(release, attribute=item.coarse) if release.name == name else release
            for release in candidate.releases
        )
    except InputError:  # a mechanism may need more values
        return None
    return Candidate(releases, {**candidate.coarsened, name: item})
