"""Calibration: the plan that was found, what checks it, and what it buys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sidelight.auditing import Audit
from sidelight.calibration.constraint import ConstraintName
from sidelight.calibration.problem import LARGEST_BUDGET
from sidelight.calibration.unequal import Certificate
from sidelight.calibration.utility import Utility
from sidelight.leakage.bounds import Bound
from sidelight.plan import Plan

Budgets = Literal["unequal", "uniform"]
_CLOSE = 1.1


@dataclass(frozen=True)
class Setting:
    """Budgets and what comes of them.

    Attributes:
        budgets: of every attribute whose budget was to be chosen.
        errors: the expected error of each, see `expected_error`.
        weighted_error: their weighted sum.
        bounds: the figure of every secret under the constraint in use.
    """

    budgets: Mapping[str, float]
    errors: Mapping[str, float]
    weighted_error: float
    bounds: Mapping[str, Bound]


@dataclass(frozen=True)
class FrontierPoint:
    """What limits a few times as large or small would allow.

    Attributes:
        factor: what all limits are multiplied by.
        even: the weighted error of the even split; NaN where it allows none.
        uniform: the weighted error of the largest budget for all.
        unequal: that of a budget for each; NaN where one budget was asked for.
    """

    factor: float
    even: float
    uniform: float
    unequal: float


@dataclass(frozen=True)
class Alternative:
    """One budget for all under another constraint.

    Attributes:
        constraint: its name.
        budget: the largest under it; None where it allows none.
        ratio: that over the even split; NaN without one.
        promise: for whom it would keep the limits, in words.
        is_sound: whether it would.
    """

    constraint: ConstraintName
    budget: float | None
    ratio: float
    promise: str
    is_sound: bool


@dataclass(frozen=True, eq=False)
class Calibration:
    """The budgets that keep every limit, with what proves it and what stands beside them.

    Attributes:
        plan: what to release; its origin says for which adversary it is safe.
        audit: of the plan under the constraint's own belief, its totals being the constraint's figures.
        table_audit: of the plan under the belief that was handed in, where the constraint is another one.
        collected: of the plan under the belief about the people it will be used on, where one was given.
        constraint: the name of the constraint in use.
        promise: for whom the limits are kept, in words.
        is_sound: whether the constraint keeps the limits for that adversary; not so for the published sum.
        limits: how much each secret may leak.
        weights: how much each free attribute's error counts.
        utility: what the errors are.
        reports: how many people report, for the errors.
        chosen: the budgets of the plan.
        uniform: the largest budget for all free attributes.
        even: the even split of the smallest limit; None where fixed budgets leave nothing to split.
        certificate: what is known about unequal budgets; None for a uniform one.
        frontier: weighted error against limit, if it was asked for.
        alternatives: one budget for all under each constraint, if they were asked for.
    """

    plan: Plan
    audit: Audit
    table_audit: Audit | None
    collected: Audit | None
    constraint: ConstraintName
    promise: str
    is_sound: bool
    limits: Mapping[str, float]
    weights: Mapping[str, float]
    utility: Utility
    reports: int
    chosen: Setting
    uniform: Setting
    even: Setting | None
    certificate: Certificate | None
    frontier: tuple[FrontierPoint, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def budgets(self) -> Mapping[str, float]:
        """The budgets that were chosen."""
        return self.chosen.budgets

    @property
    def is_within(self) -> bool:
        """Whether the audits certify every limit, where the constraint is one that can."""
        return self.is_sound and self.audit.is_within

    @property
    def is_saturated(self) -> bool:
        """Whether some budget could grow without end: leakage saturates below the limits."""
        return any(budget >= LARGEST_BUDGET * (1 - 1e-9) for budget in self.budgets.values())

    @property
    def uniform_ratio(self) -> float:
        """The uniform budget over the even split; NaN without one."""
        if self.even is None:
            return math.nan
        first = next(iter(self.even.budgets))
        return self.uniform.budgets[first] / self.even.budgets[first]

    def notes(self) -> list[str]:
        """Return what a reader of the budgets must know."""
        found = [f"The plan is {self.promise}." if self.is_sound else f"The plan makes {self.promise}."]
        if not self.is_sound:
            found.append(_table_words(self.audit))
        if self.table_audit is not None:
            found.append(f"For an adversary who knows the table itself: {_table_words(self.table_audit)}")
        if self.collected is not None:
            source = self.collected.belief.source
            found.append(f"Applied to {source}: {_table_words(self.collected)}")
        if self.is_sound and self.constraint != "tree" and self.uniform_ratio < _CLOSE:
            found.append(
                "What can be certified with so many attributes is close to the even split of the limit. What "
                "helps: release fewer attributes, coarser bins, limits for the secrets that matter alone, or "
                "an explicit model of the adversary (the constraint 'tree')."
            )
        if self.is_saturated:
            found.append(
                f"A budget of {LARGEST_BUDGET:g} stands for any: what it leaks saturates below the limits."
            )
        delta = max(item.total.delta for item in self.audit.secrets.values())
        if delta > 0:
            found.append(
                f"The limits may fail with a probability of up to {delta:.3g} (the mechanisms' delta)."
            )
        if self.certificate is not None:
            found.append(_certificate_words(self.certificate))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string, an error that is not stated None."""
        return {
            "constraint": self.constraint,
            "promise": self.promise,
            "is_sound": self.is_sound,
            "within_limits": self.is_within,
            "limits": {name: number(limit) for name, limit in self.limits.items()},
            "weights": dict(self.weights),
            "utility": self.utility,
            "reports": self.reports,
            "chosen": _setting_to_dict(self.chosen),
            "uniform": _setting_to_dict(self.uniform),
            "even": None if self.even is None else _setting_to_dict(self.even),
            "certificate": None if self.certificate is None else vars(self.certificate),
            "frontier": [{k: number(v) for k, v in vars(point).items()} for point in self.frontier],
            "alternatives": [vars(item) | {"ratio": number(item.ratio)} for item in self.alternatives],
            "notes": self.notes(),
            "plan": json.loads(self.plan.to_json()),
            "audit": self.audit.to_dict(),
            "table_audit": None if self.table_audit is None else self.table_audit.to_dict(),
            "collected": None if self.collected is None else self.collected.to_dict(),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def number(value: float) -> float | str | None:
    """Return a figure as JSON can say it."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "infinity"


def _setting_to_dict(setting: Setting) -> dict[str, Any]:
    return {
        "budgets": dict(setting.budgets),
        "errors": {name: number(error) for name, error in setting.errors.items()},
        "weighted_error": number(setting.weighted_error),
        "leakage": {
            name: {"value": number(bound.value), "kind": bound.kind, "method": bound.method}
            for name, bound in setting.bounds.items()
        },
    }


def _table_words(audit: Audit) -> str:
    """Say how many secrets an audit finds within, over, or not certified."""
    verdicts = [item.verdict for item in audit.secrets.values()]
    parts = {
        "within": "certified to stay within their limits",
        "not certified": "not certified to do so",
        "exceeded": "exceed them",
    }
    counted = [f"{verdicts.count(key)} {words}" for key, words in parts.items() if key in verdicts]
    return f"of {len(verdicts)} secrets, {', '.join(counted)}."


def _certificate_words(found: Certificate) -> str:
    return (
        "No single budget can be raised by 1 % without breaking a limit, and the weighted error is "
        f"smaller by a factor of {found.gain:.2f} than with one budget for all; a local optimum, not proven "
        "to be the best of all."
    )
