"""Problem: which budgets are free, what must hold, and what is worth how much."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.leakage.pair import conditional_rows, secret_names
from sidelight.leakage.totals import own_leakage
from sidelight.mechanisms import MECHANISMS, Channel, FavouringChannel, Mechanism, make, mechanism_class
from sidelight.plan import Plan, Release

LARGEST_BUDGET = 20.0
"""No nominal budget is set beyond it: a report is then the truth but for one in hundreds of millions."""
LARGEST_WEIGHT = 1e9
LEAST_SHARE = 1e-6
"""The least nominal budget that is tried, as a share of the smallest limit."""
LEAST_BUDGET = 1e-12
"""No smaller budget is tried: the probabilities of a mechanism are whole numbers of 2^-64."""
AUTOMATIC = ("grr", "ss", "oue")
"""What "auto" chooses from: the least variance of the mechanisms whose figures are exact."""
_USUAL_LIMIT = 1.0
"""In nats: what a search keeps to where nobody has set a limit."""
_USUAL_REPORTS = 10_000  # a belief given by hand has no records to count
Utility = Literal["variance", "accuracy"]
UTILITIES: tuple[Utility, ...] = ("variance", "accuracy")
Choice = tuple[tuple[Release, ...], tuple[str, ...], frozenset[str]]
"""The releases, the attributes whose budget is chosen, and those whose mechanism is chosen too."""


def expected_error(mechanism: Mechanism, prior: Array, reports: int, utility: Utility) -> float:
    """Return the error to keep small, of an attribute with these frequencies of which so many people report.

    "variance" is the expected squared distance between the estimated and the true frequencies, the sum of the
    stated variances; "accuracy" the probability that a guess from a report is wrong. Of several reports of a
    person the variance is that of their mean (`Release.variance`).
    """
    if utility == "variance":
        return float(np.sum(mechanism.variance(reports, prior)))
    if mechanism.guess_is_model:
        raise InputError(
            f"the accuracy of a guess from {mechanism.name!r} is not known in closed form; use "
            "utility='variance', or another mechanism."
        )
    return 1.0 - mechanism.guess_accuracy(prior)


def leakage_alone(belief: Belief, channel: Channel, name: str, secret: str) -> float:
    """Return what the report of one attribute alone says about the secret, which may be itself."""
    if name == secret:
        return own_leakage(belief.prior(secret), channel)
    return channel.worst_ratio(conditional_rows(belief, secret, name)[0]).value


def _form(release: Release, *, is_free: bool) -> Hashable:
    """Return what decides on a release's channel, beside the budget that is chosen for it if it is free."""
    fixed = None if is_free else release.epsilon  # parameters of a free one are shares of its budget
    parameters = repr(release.parameters)
    return release.mechanism, release.attribute.size, release.times, release.memory, parameters, fixed


@dataclass(frozen=True, eq=False)
class Problem:
    """Limits to keep and budgets to choose."""

    belief: Belief  # what the adversary knows
    releases: tuple[Release, ...]  # all of them; the budget of a free one is a placeholder
    free: tuple[str, ...]  # the attributes whose budget is chosen
    limits: Mapping[str, float]  # how much each secret may leak
    weights: Mapping[str, float]  # how much the error of each free attribute counts
    utility: Utility  # what is kept small, see `expected_error`
    reports: int  # how many people report
    automatic: frozenset[str] = frozenset()  # the attributes whose mechanism is chosen too
    _channels: dict[tuple[Hashable, float | None], Channel] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, belief: Belief, limits: Mapping[str, float], choice: Choice,
        weights: Mapping[str, float] | None = None, utility: Utility = "variance", reports: int | None = None,
    ) -> Problem:  # fmt: skip
        """Put limits (see `limits_of`) and releases (see `choice_of`) together; check what counts how much.

        Without `weights` every error counts alike; without `reports` as many people report as the belief has
        records.
        """
        check_choice("utility", utility, UTILITIES)
        releases, free, automatic = choice
        weights = check_mapping("weights", weights)
        for name, weight in weights.items():
            belief.schema.index(name)
            if name not in free:
                is_released = name in {release.name for release in releases}
                why = "no budget to choose" if is_released else "is not released"
                raise InputError(f"{name!r} has a weight but {why}; leave its weight out.")
            check_weight(name, weight)
        count = reports if reports is not None else (belief.sample_size or _USUAL_REPORTS)
        people = check_whole("reports", count, at_least=1)
        counts = MappingProxyType({name: float(weights.get(name, 1.0)) for name in free})
        kept = MappingProxyType(dict(limits))
        return cls(belief, releases, free, kept, counts, utility, people, automatic)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The attributes with a limit."""
        return tuple(self.limits)

    @property
    def bounds(self) -> Array:
        """The limits, in the order of `secrets`."""
        return np.array(list(self.limits.values()))

    @property
    def least(self) -> float:
        """The least budget that is tried."""
        finite = [limit for limit in self.limits.values() if math.isfinite(limit) and limit > 0]
        share = LEAST_SHARE * min([1.0, *finite]) / max(release.times for release in self.releases)
        return max(share, LEAST_BUDGET)

    def even_split(self) -> float | None:
        """Return the nominal budget that composition alone allows every free attribute (SPL), or None.

        It needs no knowledge of the population: the smallest limit, less the fixed budgets, in equal parts,
        one for each report.
        """
        fixed = math.fsum(release.channel().epsilon for release in self.releases if not self.is_free(release))
        reports = sum(release.sent()[1] for release in self.releases if self.is_free(release))
        share = (min(self.limits.values()) - fixed) / reports  # each may concern the strictest secret
        return min(share, LARGEST_BUDGET) if share >= self.least else None

    def alike(self, budget: float) -> Array:
        """Return the same budget for every free attribute."""
        return np.full(len(self.free), budget)

    def is_free(self, release: Release) -> bool:
        """Whether this release's budget is to be chosen."""
        return release.name in self.free

    def channels(self, budgets: Array) -> dict[str, Channel]:
        """Return the channel of every release at the budgets of the free attributes, in their order."""
        chosen = dict(zip(self.free, budgets.tolist(), strict=True))
        channels = {}
        for release, form in zip(self.releases, self._forms, strict=True):
            # A search moves one budget at a time, or all of them alike.
            key = form, chosen.get(release.name)
            if key not in self._channels:
                wanted = release.at(chosen[release.name]) if release.name in chosen else release
                self._channels[key] = wanted.channel()
            channels[release.name] = self._channels[key]
        return channels

    @cached_property
    def _forms(self) -> tuple[Hashable, ...]:
        """What decides on each release's channel, beside the budget that is chosen."""
        free = set(self.free)
        return tuple(_form(release, is_free=release.name in free) for release in self.releases)

    def releases_at(self, budgets: Array) -> tuple[Release, ...]:
        """Return every release with the budgets of the free attributes in place."""
        chosen = dict(zip(self.free, budgets.tolist(), strict=True))
        return tuple(
            release.at(chosen[release.name]) if self.is_free(release) else release
            for release in self.releases
        )

    def errors(self, budgets: Array) -> Array:
        """Return the expected error of every free attribute; NaN where the mechanism states none."""
        chosen = zip(self.free, budgets.tolist(), strict=True)
        return np.array([self._error(self.release(name), budget) for name, budget in chosen])

    def _error(self, release: Release, budget: float) -> float:
        if mechanism_class(release.mechanism).estimates == "nothing":
            return math.nan
        if release.times > 1 and self.utility == "variance":
            sent = release.at(budget)
            return float(np.sum(sent.variance(self.reports, self._priors[release.name])))
        mechanism = make(release.mechanism, release.attribute.size, budget, release.parameters)
        return expected_error(mechanism, self._priors[release.name], self.reports, self.utility)

    @cached_property
    def _priors(self) -> dict[str, Array]:
        """The frequencies of each attribute's values; a sum of cells may round to just over 1."""
        return {release.name: np.clip(self.belief.prior(release.name), 0, 1) for release in self.releases}

    @cached_property
    def weighting(self) -> Array:
        """The weights, in the order of `free`."""
        return np.array([self.weights[name] for name in self.free])

    def weighted_error(self, budgets: Array) -> float:
        """Return the weighted sum of the free attributes' errors."""
        return float(self.weighting @ self.errors(budgets))

    def release(self, name: str) -> Release:
        """Return the release of an attribute."""
        return next(release for release in self.releases if release.name == name)

    def truth(self, name: str) -> Channel:
        """Return the channel that tells an attribute's value as it is."""
        return FavouringChannel(self.belief.schema[name].size, "singletons", 0.0)

    def settled(self, budgets: Array) -> Problem:
        """Return the problem with what depends on the budget frozen as it is best at these budgets.

        "auto" becomes a mechanism, that of a fixed budget too, and subset selection gets the size of its
        sets: with a size that follows the budget its leakage would not be monotone in it.
        """
        fixed = [release for release in self.releases if release.name in self.automatic]
        chosen = {release.name: release.epsilon for release in fixed if release.epsilon is not None}
        chosen |= dict(zip(self.free, budgets.tolist(), strict=True))
        releases = tuple(
            self._settle(release, chosen[release.name]) if release.name in chosen else release
            for release in self.releases
        )
        return replace(self, releases=releases, _channels={})

    def is_settled_as(self, other: Problem) -> bool:
        """Whether mechanisms and parameters are the same as another problem's."""
        return all(
            (mine.mechanism, mine.parameters) == (theirs.mechanism, theirs.parameters)
            for mine, theirs in zip(self.releases, other.releases, strict=True)
        )

    def _settle(self, release: Release, budget: float) -> Release:
        if release.name in self.automatic:
            options = [
                _with_held(replace(release, mechanism=name, epsilon=budget, parameters={}))
                for name in AUTOMATIC
            ]
            return min(options, key=lambda option: self._error(option, budget))
        return _with_held(release.at(budget))


def _with_held(release: Release) -> Release:
    """Return the release with the parameters that must be held while its budget is searched."""
    return replace(release, parameters={**release.randomiser().held, **release.parameters})


def choice_of(
    belief: Belief, mechanism: str = "grr", mechanisms: Mapping[str, str] | None = None,
    fixed: Mapping[str, float] | None = None, plan: Plan | None = None,
) -> Choice:  # fmt: skip
    """Return what is released and what is left to choose; see `calibrate` for the arguments."""
    check_belief("belief", belief)
    mechanisms, fixed = check_mapping("mechanisms", mechanisms), check_mapping("fixed", fixed)
    schema = belief.schema if plan is None else plan.schema
    for name in [*mechanisms, *fixed]:
        belief.schema.index(name)
        if name not in schema and not _tells_nothing(mechanisms.get(name)):
            raise InputError(f"{name!r} is given a mechanism or a budget, but the plan does not release it.")
    releases, automatic = [], set()
    for attribute in schema:
        given = None if plan is None else plan[attribute.name]
        reason = given.reason if given else ""
        name = mechanisms.get(attribute.name, given.mechanism if given else mechanism)
        check_choice("mechanism", name, ("auto", *MECHANISMS))
        if name == "auto":
            automatic.add(attribute.name)
            name = AUTOMATIC[0]  # a placeholder till budgets are known; see `settled`
        kind = mechanism_class(name)
        if not kind.has_budget:
            if attribute.name in fixed:
                raise InputError(f"{attribute.name!r} is {name} and has no budget; it cannot be fixed.")
            releases += [] if kind.estimates == "nothing" else [Release(attribute, name, reason=reason)]
            continue
        is_same = given is not None and name == given.mechanism
        kept = kind.relative(given.parameters, given.epsilon) if given and is_same else {}
        times, memory = (given.times, given.memory) if given else (1, None)
        releases.append(Release(attribute, name, fixed.get(attribute.name, 1.0), times, kept, reason, memory))
    if not releases:
        raise InputError("a plan must release at least one attribute; all are withheld.")
    free = tuple(item.name for item in releases if item.epsilon is not None and item.name not in fixed)
    if not free:
        raise InputError(
            "there is no budget to choose: every attribute is fixed, withheld or released as it is."
        )
    return tuple(releases), free, frozenset(automatic)


def limits_of(
    belief: Belief, limit: float | None = None, limits: Mapping[str, float] | None = None,
    secrets: Iterable[str] | None = None, plan: Plan | None = None,
) -> dict[str, float]:  # fmt: skip
    """Return the limit of every secret: its own, else the one for all, else the plan's, else 1.

    Where a plan has limits for some secrets and none for all, the others are no secrets.
    """
    own, names = check_mapping("limits", limits), secret_names(belief, secrets)
    for name in own:
        belief.schema.index(name)
    if limit is not None:
        general = check_number("limit", limit, at_least=0, infinite=True)
        bounds = dict.fromkeys([*names, *own], general)
    else:
        of_plan = {} if plan is None else plan.limits
        usual = usual_limit(None, plan)
        bounds = {name: of_plan.get(name, math.inf if usual is None else usual) for name in names}
        open_ones = [name for name, bound in bounds.items() if math.isinf(bound) and name not in own]
        if secrets is not None and open_ones:
            named = f"{open_ones[0]!r} is named as a secret"
            raise InputError(f"{named}, but the plan lets it leak without limit; give its limit.")
        # what the plan lets leak without limit is no secret
        bounds = {name: bound for name, bound in bounds.items() if name not in open_ones} or bounds
    for name, value in own.items():
        bounds[name] = check_number(f"limit of {name}", value, at_least=0, infinite=True)
    if all(math.isinf(value) for value in bounds.values()):
        raise InputError(
            "every limit is infinite, so any budget keeps them; give at least one secret a limit."
        )
    return bounds


def usual_limit(limit: float | None, plan: Plan | None) -> float | None:
    """Return the limit of secrets without one of their own: the one given, else the plan's, else 1.

    None where a plan limits some secrets alone.
    """
    if limit is not None:
        return limit
    if plan is None or (plan.limit is None and not plan.limits):
        return _USUAL_LIMIT
    return plan.limit


def check_weight(name: str, weight: object) -> float:
    """Return the weight of an attribute as a float; beyond a billion nothing else would count."""
    return check_number(f"weight of {name}", weight, above=0, below=LARGEST_WEIGHT)


def check_mapping(name: str, value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what is given for some attributes, nothing for None; raise unless it is a mapping."""
    if value is not None and not isinstance(value, Mapping):
        raise invalid(name, "a mapping from attributes, for example {'age': 0.5}", value)
    return value or {}


def _tells_nothing(mechanism: str | None) -> bool:
    kind = None if mechanism not in MECHANISMS else mechanism_class(mechanism)
    return kind is not None and not kind.has_budget and kind.estimates == "nothing"
