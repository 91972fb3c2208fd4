"""Whether a plan is fit to be used: what its budgets really are, and whether its limits are kept."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sidelight.auditing import NAMES, AdversaryName, Audit, audit
from sidelight.auditing.verdict import keeps
from sidelight.belief import Belief
from sidelight.foundation.files import json_plain
from sidelight.foundation.html import listed
from sidelight.foundation.numbers import budget
from sidelight.leakage.totals import composition
from sidelight.mechanisms import mechanism_class
from sidelight.plan import Plan, Release

Level = Literal["fault", "warning", "note"]
"""A fault keeps a plan from being used as it says; a warning is for somebody to decide; a note informs."""
_NOTABLE = 0.01
"""A realised budget is named that differs from the nominal one by this share."""
_WEAK = 10.0
"""Above it a guarantee is weak to none (Ponomareva et al. 2023, tier 3)."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found, in words, and how much it matters."""

    level: Level
    text: str


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """What a check of a plan found.

    Attributes:
        plan: the plan.
        findings: in the order of their weight.
        audit: of the plan under a table, where one was given.
    """

    plan: Plan
    findings: tuple[Finding, ...]
    audit: Audit | None = None

    @property
    def is_fit(self) -> bool:
        """Whether nothing keeps the plan from being used as it says."""
        return all(finding.level != "fault" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain = {
            "fit": self.is_fit,
            "findings": [asdict(finding) for finding in self.findings],
            "releases": [_budgets(item) for item in self.plan.releases],
            "within_limits": None if self.audit is None else self.audit.is_within,
        }
        return dict(json_plain(plain))

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        counts = [f"{count} {level}s" for level, count in self._counts().items() if count]
        return f"PlanCheck({', '.join(counts) or 'nothing found'})"

    def _counts(self) -> dict[Level, int]:
        levels: tuple[Level, ...] = ("fault", "warning", "note")
        return {level: sum(finding.level == level for finding in self.findings) for level in levels}


def check(plan: Plan, belief: Belief | None = None) -> PlanCheck:
    """Look for what speaks against a plan; with a belief its limits are judged too.

    Without one, limits are held against the budgets alone, which hold for every population.
    """
    found = [*_budget_findings(plan), *_words(plan)]
    audited = None if belief is None else audit(belief, plan)
    found += _limits_by_budgets(plan) if audited is None else _limits_by_audit(audited)
    order: dict[Level, int] = {"fault": 0, "warning": 1, "note": 2}
    return PlanCheck(plan, tuple(sorted(found, key=lambda finding: order[finding.level])), audited)


def _budget_findings(plan: Plan) -> list[Finding]:
    """Compare what each mechanism realises with what is asked of it, and name what protects little."""
    found = []
    for item in plan.releases:
        mechanism = item.randomiser()
        realised = mechanism.epsilon
        if not mechanism_class(item.mechanism).has_budget:
            if realised > 0:
                found.append(Finding("warning", f"{item.name} is released without noise ({item.mechanism})."))
        elif realised > _WEAK:
            found.append(
                Finding("warning", f"{item.name} is hardly protected: its budget is {budget(realised)}.")
            )
        found += _nominal(item, mechanism.epsilon_unlimited, realised)
        if item.times > 1:
            spent = budget(item.channel().epsilon)
            often = f"{item.name} is reported {item.times} times, {_noise(item)}: {spent} in all"
            found.append(Finding("note", f"{often}; collect it round by round (collect --round)."))
    total = math.fsum(item.channel().epsilon for item in plan.releases)
    return [*found, Finding("note", f"All reports of a person together have a budget of {budget(total)}.")]


def _nominal(item: Release, bounded: float, realised: float) -> list[Finding]:
    """Compare the nominal budget with what it bounds, and say where that is more than one report."""
    found, nominal = [], item.epsilon
    if nominal is not None and abs(bounded - nominal) > _NOTABLE * nominal:
        spent = f"is {budget(nominal)}, the realised one {budget(bounded)}"
        level: Level = "fault" if bounded > nominal else "note"
        found.append(Finding(level, f"The nominal budget of {item.name} {spent}."))
    if bounded - realised > _NOTABLE * bounded:
        unlimited = f"The budget of {item.name} bounds unlimited reports from one kept response"
        one = "the first report spends" if item.keeps else "responses are not kept, and every report spends"
        found.append(Finding("note", f"{unlimited}; {one} {budget(realised)}."))
    return found


def _noise(item: Release) -> str:
    return "from a response that devices keep" if item.keeps else "with fresh noise"


def _words(plan: Plan) -> list[Finding]:
    """Name what a reader of the plan would ask: the reasons that are missing."""
    silent = [name for name in plan.limits if not plan.reasons.get(name) and math.isfinite(plan.limits[name])]
    told = [f"No reason is given for the limit of {listed(silent, 6)}."] if silent else []
    if plan.limit is None and not plan.limits:
        told.append("No limit is set: an audit describes what leaks and judges nothing.")
    if not plan.purpose:
        told.append("It is not said what the collection is for (purpose).")
    return [Finding("note", text) for text in told]


def _limits_by_budgets(plan: Plan) -> list[Finding]:
    """Hold limits of the worst case against the budgets alone: they hold for every population.

    That a secret's own report breaks its limit is sure wherever two of its values that are told apart occur.
    """
    decider: AdversaryName = plan.decide_by or ("report" if plan.delta is None else "table")
    if decider != "report":
        said = f"Whether limits are kept for {NAMES[decider]} depends on the people (--data)."
        return [Finding("note", said)]
    limits = {name: plan.limit_of(name) for name in (*plan.names, *plan.limits)}
    bounded = {name: limit for name, limit in limits.items() if limit is not None and math.isfinite(limit)}
    if not bounded:
        return []
    channels = plan.channels()
    total = composition(channels).value
    own = {name: channels[name].epsilon for name in bounded if name in channels}
    broken = [name for name, spent in own.items() if not keeps(spent, bounded[name])]
    found = [
        Finding("fault", f"{name} may leak {bounded[name]:g}, and its own report alone {budget(own[name])}.")
        for name in broken
    ]
    left = [name for name, limit in bounded.items() if name not in broken and not keeps(total, limit)]
    if left:
        said = f"The budgets add up to {budget(total)}, which does not keep the limit of {listed(left, 6)}"
        found.append(Finding("note", f"{said}; whether it is kept depends on the people (--data)."))
    elif not broken:
        found.append(Finding("note", "All limits are kept for every population: the budgets add up to less."))
    return found


def _limits_by_audit(audited: Audit) -> list[Finding]:
    """Say of every secret with a limit whether it is certified to be kept."""
    found = []
    for item in audited.judged:
        if item.limit is None or math.isinf(item.limit):
            continue
        reached = f"{item.secret} leaks {item.decisive.value:.4g}, and may leak {item.limit:g}"
        is_kept = item.decision == "within"
        found.append(Finding("note" if is_kept else "fault", f"{reached}: {item.statement}."))
    return found


def _budgets(item: Release) -> dict[str, Any]:
    return {
        "attribute": item.name, "mechanism": item.mechanism, "epsilon": item.epsilon,
        "realised_epsilon": item.randomiser().epsilon, "times": item.times,
        "realised_in_all": item.channel().epsilon,
    }  # fmt: skip
