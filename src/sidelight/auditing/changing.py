"""What an audit says of values that change by a chain: about the round that is told most of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sidelight.auditing.compute import check_plan
from sidelight.auditing.result import Audit
from sidelight.auditing.verdict import AT_DELTA, Outcome, keeps, outcome_of
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.leakage import Bound, Leakage
from sidelight.leakage.bounds import Claim
from sidelight.leakage.over_time import Chain, OverTime, leakage_over_time, leakage_over_time_at
from sidelight.mechanisms.longitudinal import instant_budget
from sidelight.plan import Plan, Release

MOST_TOLD = 24
"""Of so many rounds there are figures at delta: each has draws of its own."""


@dataclass(frozen=True, eq=False)
class Changing:
    """What reports of all rounds say about a secret whose value changes.

    Attributes:
        over_time: the figures of each round, through the attributes of the chain.
        beyond: what reports of other attributes add at most: their whole budgets.
        limit: how much may leak; None where nobody has set a limit.
        at_delta: the largest figure at delta over all rounds, with what lies beyond; None if not asked for
            or where rounds are too many.
        decides_at_delta: whether the limit is to be kept at delta, not in the worst case.
    """

    over_time: OverTime
    beyond: float
    limit: float | None
    at_delta: Bound | None = None
    decides_at_delta: bool = False

    @property
    def worst(self) -> Leakage:
        """The leakage about the round that is told most of, in the worst case."""
        worst = self.over_time.worst
        if not self.beyond:
            return worst
        lower = worst.lower if worst.lower.kind != "exact" else replace(worst.lower, kind="lower")
        return replace(worst, lower=lower, upper=_with_budgets(worst.upper, self.beyond))

    @property
    def unlimited(self) -> float | None:
        """What unlimited rounds say at most, by their budgets; None where that is not known."""
        if self.over_time.unlimited is None or self.beyond:
            return None
        return self.over_time.unlimited

    @property
    def outcome(self) -> Outcome:
        """Whether the limit is kept, at delta or in the worst case, as it is decided."""
        told = outcome_of(self.worst, self.limit)
        if self.limit is None or not self.decides_at_delta:
            return told
        if self.at_delta is not None and keeps(self.at_delta.value, self.limit):
            return "within"
        return "not certified" if told == "exceeded" else told

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        rounds = [leakage.upper.to_dict() for leakage in self.over_time.rounds]
        return {
            "secret": self.over_time.secret,
            "epoch": self.over_time.epoch,
            "rounds": rounds,
            "beyond": self.beyond,
            "worst": {"round": self.worst.secret, **self.worst.upper.to_dict()},
            "at_delta": None if self.at_delta is None else self.at_delta.to_dict(),
            "unlimited": self.unlimited,
            "limit": self.limit,
            "outcome": self.outcome,
        }


def with_chain(audit: Audit, chain: Chain, *, epoch: int | None = None, seed: int | None = None) -> Audit:
    """Return an audit that also says what leaks where values change by a chain, and judges it.

    Secrets of the chain are told about through its attributes; reports of others add their whole budgets.

    Args:
        audit: of values that stay the same.
        chain: how some of its attributes change.
        epoch: for how many rounds a value is frozen, after which a memory begins anew.
        seed: for figures at delta that can be repeated.
    """
    inside = tuple(release for release in audit.plan.releases if release.name in chain.schema)
    if not inside:
        raise InputError(f"the plan releases no attribute of the chain: {', '.join(chain.schema.names)}.")
    for name in chain.schema.names:
        if name in audit.belief.schema and audit.belief.schema[name].values != chain.schema[name].values:
            raise InputError(f"the chain and the table disagree about the values of {name!r}.")
    plan = Plan(inside)
    check_plan(audit.belief, plan)
    beyond = math.fsum(_whole(item) for item in audit.plan.releases if item not in inside)
    secrets = [name for name in audit.secrets if name in chain.schema]
    if not secrets:
        raise InputError(f"no secret is among the chain's attributes: {', '.join(chain.schema.names)}.")
    told = []
    for secret in track(secrets, "values that change"):
        found = leakage_over_time(chain, plan, secret, epoch=epoch)
        limit, at_delta = audit.plan.limit_of(secret), audit.decide_by in AT_DELTA
        item = Changing(found, beyond, limit, decides_at_delta=at_delta)
        if audit.delta is not None and len(found.rounds) <= MOST_TOLD:
            item = replace(item, at_delta=_at_delta(item, chain, plan, audit.delta, seed))
        told.append(item)
    return replace(audit, changing=tuple(told))


def _whole(release: Release) -> float:
    """Return what all reports of an attribute say at most, however its values change."""
    mechanism = release.randomiser()
    if mechanism.delta:
        return math.inf
    if release.times == 1:
        return mechanism.epsilon
    return release.times * instant_budget(mechanism, kept=release.keeps)


def _at_delta(item: Changing, chain: Chain, plan: Plan, delta: float, seed: int | None) -> Bound:
    """Return the largest figure of all rounds: too low only if that of the round with most is."""
    found, rounds = item.over_time, range(1, len(item.over_time.rounds) + 1)
    figures = [
        leakage_over_time_at(chain, plan, found.secret, time, delta, epoch=found.epoch, seed=seed)
        for time in rounds
    ]
    return _with_budgets(max(figures, key=lambda bound: bound.value), item.beyond)


def _with_budgets(bound: Bound, beyond: float) -> Bound:
    """Return what is revealed at most where reports of these budgets are added."""
    if not beyond:
        return bound
    kind: Claim = "certified" if bound.kind == "exact" else bound.kind
    return Bound(bound.value + beyond, kind, f"{bound.method}, and all budgets beyond the chain")
