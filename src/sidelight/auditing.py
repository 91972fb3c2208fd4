"""Audit: every leakage figure of a plan, for every secret, against its limit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.progress import track
from sidelight.leakage import (
    Bound,
    Leakage,
    direct_leakage,
    pair_leakage,
    pair_matrix,
    saturation,
    total_leakage,
)
from sidelight.leakage.total import TotalMethod, composition
from sidelight.mechanisms import Channel
from sidelight.plan import Plan

Verdict = Literal["within", "exceeded", "not certified"]
_SUPPRESSED = "budget alone; the figure rests on too few records to show"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SecretAudit:
    """What the plan reveals about one secret.

    Attributes:
        secret: the attribute.
        limit: how much it may leak in total.
        direct: through its own report.
        neighbours: through each other released attribute alone, worst first.
        total: through all reports together, as an interval.
        published: what the sum of pairwise figures says; not a bound.
        commonest: the most frequent value and its share: the best guess before anything is released.
    """

    secret: str
    limit: float
    direct: Leakage
    neighbours: tuple[Leakage, ...]
    total: Leakage
    published: Bound
    commonest: tuple[str, float]

    @property
    def verdict(self) -> Verdict:
        """Return "within" if the upper end keeps the limit, "exceeded" if the lower end breaks it.

        Figures are doubles: one that is over the limit by less than a billionth of it keeps it.
        """
        most = self.limit * (1 + _ROUNDING)
        if self.total.upper.value <= most:
            return "within"
        return "exceeded" if self.total.lower.value > most else "not certified"


@dataclass(frozen=True, eq=False)
class Audit:
    """All figures of a plan under a belief.

    Attributes:
        belief: what the adversary knows.
        plan: what is released.
        secrets: the audit of every secret, by name.
        min_support: figures that rest on fewer records are replaced by what the budgets alone say.
    """

    belief: Belief
    plan: Plan
    secrets: Mapping[str, SecretAudit]
    min_support: int = 0

    def __getitem__(self, secret: str) -> SecretAudit:
        if secret not in self.secrets:
            raise InputError(f"{secret!r} was not audited; audited were {', '.join(self.secrets)}.")
        return self.secrets[secret]

    @cached_property
    def pairs(self) -> NDArray[np.float64]:
        """The leakage of every secret (column) through every release (row); direct where they are one."""
        matrix = np.zeros((len(self.plan.names), len(self.secrets)))
        for column, audit in enumerate(self.secrets.values()):
            for leakage in (*audit.neighbours, audit.direct):
                for name in leakage.through:
                    matrix[self.plan.names.index(name), column] = leakage.value
        return matrix

    @property
    def is_within(self) -> bool:
        """Whether every secret is certified to stay within its limit."""
        return all(audit.verdict == "within" for audit in self.secrets.values())

    def curve(self, secret: str, neighbour: str, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Return the leakage of the secret through the neighbour at each budget, and its saturation value.

        NaN stands for a figure that rests on too few records to show.
        """
        release = self.plan[neighbour]
        channels = [replace(release, epsilon=epsilon).channel() for epsilon in epsilons]
        found = [pair_leakage(self.belief, channel, secret, neighbour).upper for channel in channels]
        found.append(saturation(self.belief, secret, neighbour))
        *values, limit = (math.nan if _is_rare(bound, self.min_support) else bound.value for bound in found)
        return values, limit

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data; infinity becomes the string "infinity"."""
        return {
            "belief": {
                "kind": self.belief.kind,
                "source": self.belief.source,
                "records": self.belief.sample_size,
                "smoothing": self.belief.smoothing,
                "zero_cells": self.belief.zero_cells,
                "is_model": self.belief.is_model,
            },
            "plan": [
                {
                    "attribute": release.name,
                    "values": release.attribute.size,
                    "mechanism": release.mechanism,
                    "epsilon": release.epsilon,
                    "realised_epsilon": release.randomiser().epsilon,
                    "times": release.times,
                }
                for release in self.plan.releases
            ],
            "min_support": self.min_support,
            "within_limits": self.is_within,
            "secrets": {name: _secret_to_dict(audit) for name, audit in self.secrets.items()},
        }

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def audit(
    belief: Belief,
    plan: Plan,
    secrets: Iterable[str] | None = None,
    *,
    method: TotalMethod = "auto",
    min_support: int = 0,
) -> Audit:
    """Compute what a plan reveals about each secret to an adversary who holds the belief.

    Args:
        belief: what the adversary knows.
        plan: what is released.
        secrets: the attributes to protect; all of the belief's by default.
        method: of the upper end of the total, see `total_leakage`.
        min_support: replace figures that rest on fewer records by what the budgets alone say.
    """
    check_whole("min_support", min_support, at_least=0)
    names = (
        [secrets] if isinstance(secrets, str) else list(belief.schema.names if secrets is None else secrets)
    )
    if not names:
        raise InputError("`secrets` must name at least one attribute, got none.")
    for name in [*names, *plan.limits]:
        belief.schema.index(name)
    check_plan(belief, plan)
    channels = plan.channels()
    pairs = pair_matrix(belief, channels, names)
    audited = {}
    for column, name in enumerate(track(names, "totals")):
        neighbours = [leakage for row in pairs if (leakage := row[column]) is not None]
        total = total_leakage(belief, channels, name, method)
        direct = direct_leakage(belief, channels.get(name), name)
        if min_support:
            neighbours = [_pair_suppressed(item, channels, min_support) for item in neighbours]
            direct = _direct_suppressed(direct, min_support)
            total = _total_suppressed(total, channels, direct, min_support)
        audited[name] = _secret_audit(belief, plan, name, direct, neighbours, total)
    return Audit(belief, plan, audited, min_support)


def check_plan(belief: Belief, plan: Plan) -> None:
    """Raise if the plan releases attributes the belief does not know, or codes them otherwise."""
    for release in plan.releases:
        if release.name not in belief.schema:
            raise InputError(
                f"the plan releases {release.name!r}, which is not among the table's attributes: "
                f"{', '.join(belief.schema.names)}."
            )
        known = belief.schema[release.name]
        if (known.values, known.edges) != (release.attribute.values, release.attribute.edges):
            raise InputError(
                f"the plan and the table disagree about the values of {release.name!r} "
                f"({release.attribute.size} and {known.size}); read the table with schema=plan.schema."
            )


def _secret_audit(
    belief: Belief, plan: Plan, name: str, direct: Leakage, neighbours: list[Leakage], total: Leakage
) -> SecretAudit:
    neighbours.sort(key=lambda leakage: -leakage.value)
    pairwise = math.fsum([direct.value, *(leakage.value for leakage in neighbours)])
    shown = any(leakage.upper.method == _SUPPRESSED for leakage in neighbours)
    method = "pairwise sum of the figures shown" if shown else "pairwise sum (CPL, eq. (6))"
    published = Bound(pairwise, "published", method)
    prior = belief.prior(name)
    code = int(prior.argmax())
    commonest = (belief.schema[name].values[code], float(prior[code]))
    return SecretAudit(name, plan.limit_of(name), direct, tuple(neighbours), total, published, commonest)


def _is_rare(bound: Bound, min_support: int) -> bool:
    return bound.support is not None and bound.support < min_support


def _pair_suppressed(leakage: Leakage, channels: Mapping[str, Channel], min_support: int) -> Leakage:
    """Replace a pair's rare figure by the neighbour's budget, which holds for every belief."""
    if not _is_rare(leakage.upper, min_support):
        return leakage
    upper = Bound(channels[leakage.through[0]].epsilon, "certified", _SUPPRESSED)
    return replace(leakage, lower=Bound(0.0, "lower", _SUPPRESSED), upper=upper)


def _direct_suppressed(leakage: Leakage, min_support: int) -> Leakage:
    """Hide a rare witness; the figure itself is the budget and says nothing about the data."""
    if not _is_rare(leakage.upper, min_support):
        return leakage
    bound = replace(leakage.upper, witness=None, support=None)
    return replace(leakage, lower=bound, upper=bound)


def _total_suppressed(
    total: Leakage, channels: Mapping[str, Channel], direct: Leakage, min_support: int
) -> Leakage:
    """Replace a rare total by composition and the direct leakage; the joint generic figure always is rare."""
    upper, lower = total.upper, total.lower
    if _is_rare(upper, min_support) or upper.method == "joint generic":
        upper = replace(composition(channels), method=_SUPPRESSED)
    if _is_rare(lower, min_support):
        lower = Bound(direct.value, "lower", _SUPPRESSED)
    return replace(total, lower=lower, upper=upper)


def _secret_to_dict(item: SecretAudit) -> dict[str, Any]:
    return {
        "limit": _number(item.limit),
        "verdict": item.verdict,
        "commonest": {"value": item.commonest[0], "share": item.commonest[1]},
        "direct": _leakage_to_dict(item.direct),
        "total": _leakage_to_dict(item.total),
        "published_pairwise_sum": _number(item.published.value),
        "neighbours": [_leakage_to_dict(leakage) for leakage in item.neighbours],
    }


def _leakage_to_dict(leakage: Leakage) -> dict[str, Any]:
    return {
        "through": list(leakage.through),
        "lower": _bound_to_dict(leakage.lower),
        "upper": _bound_to_dict(leakage.upper),
    }


def _bound_to_dict(bound: Bound) -> dict[str, Any]:
    witness = None if bound.witness is None else vars(bound.witness)
    return {
        "value": _number(bound.value),
        "kind": bound.kind,
        "method": bound.method,
        "witness": witness,
        "support": bound.support,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "infinity"
