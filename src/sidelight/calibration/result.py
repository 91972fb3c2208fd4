"""Calibration: the chosen plan, the audits that check it, and what its budgets buy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sidelight.auditing import NAMES, AdversaryName, Audit, Outcome
from sidelight.calibration.constraint import ConstraintName, origin_of
from sidelight.calibration.problem import LARGEST_BUDGET, Utility
from sidelight.calibration.unequal import Certificate
from sidelight.calibration.words import certificate_words, close_words, delta_words, gain_words, kept_words
from sidelight.estimation.expected_error import Frequencies
from sidelight.estimation.prospect import Prospect, prospect
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_number
from sidelight.foundation.html import html_table, listed
from sidelight.leakage.bounds import Bound
from sidelight.leakage.totals import DeltaLeakage
from sidelight.plan import Plan
from sidelight.protocols.direct import Split, planned

Budgets = Literal["unequal", "uniform"]
_CLOSE = 1.1  # less than a tenth more hardly pays for trusting a belief


@dataclass(frozen=True)
class Setting:
    """Budgets and what comes of them.

    Attributes:
        budgets: the nominal budget of every attribute whose budget was to be chosen.
        errors: the expected error of each, see `expected_error`.
        weighted_error: their weighted sum.
        bounds: the figure of every secret under the constraint in use.
    """

    budgets: Mapping[str, float]
    errors: Mapping[str, float]
    weighted_error: float
    bounds: Mapping[str, Bound]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string, an error that is not stated None."""
        leakage = {
            name: {"value": number(bound.value), "kind": bound.kind, "method": bound.method}
            for name, bound in self.bounds.items()
        }
        errors = {name: number(error) for name, error in self.errors.items()}
        figures = {"errors": errors, "weighted_error": number(self.weighted_error), "leakage": leakage}
        return {"budgets": dict(self.budgets), **figures}


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
        budget: the largest nominal budget under it; None where it allows none.
        ratio: that budget over the even split; NaN without one.
        promise: for whom it would keep the limits, in words.
        is_sound: whether it would, for whole reports and the table.
        delta: at which it would keep them; None in the worst case.
    """

    constraint: ConstraintName
    budget: float | None
    ratio: float
    promise: str
    is_sound: bool
    delta: float | None = None


@dataclass(frozen=True, eq=False)
class Calibration:
    """The budgets that keep every limit, with what proves it and what stands beside them.

    Attributes:
        plan: what to release; its origin says for which adversary it is safe.
        audit: of the plan under the constraint's own belief, its totals being the constraint's figures.
        table_audit: of the plan under the belief that was handed in, where the constraint is another one.
        constraint: the name of the constraint in use.
        promise: for whom the limits are kept, in words.
        is_sound: whether keeping the constraint keeps the limits for whole reports and the table; not so for
            a model of the table, nor for the published sum.
        limits: how much each secret may leak.
        weights: how much each free attribute's error counts.
        utility: what the errors are.
        reports: how many people report, for the errors.
        chosen: the budgets of the plan.
        uniform: the largest budget for all free attributes.
        even: the even split of the smallest limit; None where fixed budgets leave nothing to split.
        is_saturated: whether `capped` attributes could be released as they are within all limits.
        collected: the audit under the belief about the people the plan will be used on, where one was given.
        certificate: what is known about unequal budgets; None for a uniform one.
        frontier: weighted error against limit, if it was asked for.
        alternatives: one budget for all under each constraint, if they were asked for.
        delta: at which the limits are kept; None in the worst case.
        leakages: the certified figures of every secret at delta, and at the usual deltas beside it.
        within: the precision that people are counted for, 0.01 where none is given; see `prospect`.
        prior: public frequencies that a guess could be made from.
    """

    plan: Plan
    audit: Audit
    table_audit: Audit | None
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
    is_saturated: bool
    collected: Audit | None = None
    certificate: Certificate | None = None
    frontier: tuple[FrontierPoint, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    delta: float | None = None
    leakages: Mapping[str, DeltaLeakage] = field(default_factory=dict)
    within: float | None = None
    prior: Frequencies | None = None

    @property
    def budgets(self) -> Mapping[str, float]:
        """The nominal budgets that were chosen."""
        return self.chosen.budgets

    @property
    def decide_by(self) -> AdversaryName:
        """The adversary for whom the limits must be kept."""
        return self.audit.decide_by

    @property
    def is_within(self) -> bool:
        """Whether an audit certifies every limit, for the adversary who decides."""
        return bool((self.audit if self.decide_by != "report" else self.strictest).is_within)

    @property
    def strictest(self) -> Audit:
        """The audit that knows most about the table: an audit of the saved plan says the same."""
        return self.table_audit or self.audit

    @property
    def raisable(self) -> tuple[str, ...]:
        """What neither a limit nor the end of the search stops; nothing, if leakage is monotone."""
        blocked = {} if self.certificate is None else self.certificate.blocked
        return tuple(name for name, secret in blocked.items() if secret is None and name not in self.capped)

    @property
    def capped(self) -> tuple[str, ...]:
        """The attributes whose budget is the largest that is searched: no limit stopped them."""
        return tuple(name for name, budget in self.budgets.items() if is_capped(budget))

    @property
    def uniform_ratio(self) -> float:
        """The uniform budget over the even split; NaN without one."""
        if self.even is None:
            return math.nan
        first = next(iter(self.even.budgets))
        return self.uniform.budgets[first] / self.even.budgets[first]

    @cached_property
    def collection(self) -> tuple[Split, dict[str, Array]] | str:
        """How the plan would be collected, and the frequencies to expect; or why it cannot be.

        They are those of the people the plan will be used on, where a belief about them was given.
        """
        belief = (self.collected or self.audit).belief
        try:
            design = planned(self.plan)
        except InputError as error:
            return str(error)
        shares = {name: np.clip(belief.prior(name), 0, 1) for name in design.schema.names}
        return design, {name: share / share.sum() for name, share in shares.items()}

    @cached_property
    def usefulness(self) -> Usefulness | None:
        """The error of the estimates beside that of guessing; None where the plan cannot be collected."""
        if isinstance(self.collection, str):
            return None
        design, shares = self.collection
        return usefulness(design, self.reports, shares, prior=self.prior)

    @cached_property
    def prospect(self) -> Prospect | None:
        """The same with what would help, which takes a moment; None where the plan cannot be collected."""
        if isinstance(self.collection, str):
            return None
        (design, shares), least = self.collection, min(self.limits.values())
        return prospect(design, self.reports, shares, prior=self.prior, within=self.within, limit=least)

    @property
    def beats_guessing(self) -> bool:
        """Whether the estimates would beat guessing, as far as that is predicted."""
        return self.usefulness is None or self.usefulness.beats_guessing

    def notes(self) -> list[str]:
        """Return what a reader of the budgets must know; first whether they are of any use."""
        unknown = f"Whether the estimates would beat guessing is not predicted: {self.collection}"
        notes = [unknown] if self.prospect is None else self.prospect.notes()
        notes.append(f"The plan {'makes' if self.constraint == 'published' else 'is'} {self.promise}.")
        if self.delta is not None:
            notes += delta_words(self.delta, self.leakages)
            notes.append(f"In the worst case of all reports: {table_words(self.strictest)}")
        elif not self.is_sound:
            notes.append(f"For an adversary who knows the table itself: {table_words(self.strictest)}")
        if self.decide_by not in ("report", "table"):
            notes.append(f"The limits need to be kept for {NAMES[self.decide_by]} only, as asked.")
        if self.collected is not None:
            notes.append(f"Applied to {origin_of(self.collected.belief)}: {table_words(self.collected)}")
        if self.is_sound and self.constraint != "tree" and self.uniform_ratio < _CLOSE and not self.capped:
            notes.append(close_words(len(self.budgets)))
        if self.capped:
            notes.append(_capped_words(self))
        kept = [kept_words(item) for item in self.plan.releases if item.name not in self.budgets]
        if kept:
            notes.append(f"Kept as given: {listed(kept, 8)}.")
        if (delta := max(item.total.delta for item in self.audit.secrets.values())) > 0:
            notes.append(
                f"The limits may fail with a probability of up to {delta:.3g} (the mechanisms' delta)."
            )
        if not self.beats_guessing:
            return notes  # what the budgets gain over others is no comfort then
        if self.certificate is not None and self.delta is not None:
            is_drawn = any(item.draws for item in self.leakages.values())
            notes.append(gain_words(self.certificate, is_drawn=is_drawn))
        elif self.certificate is not None and len(self.capped) < len(self.budgets):
            notes.append(certificate_words(self.certificate, self.raisable, is_any_capped=bool(self.capped)))
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string, an error that is not stated None."""
        return {
            "constraint": self.constraint, "promise": self.promise, "is_sound": self.is_sound,
            "decide_by": self.decide_by, "within_limits": self.is_within, "delta": self.delta,
            "leakage_at_delta": {name: item.to_dict() for name, item in self.leakages.items()},
            "limits": {name: number(limit) for name, limit in self.limits.items()},
            "weights": dict(self.weights), "utility": self.utility, "reports": self.reports,
            "chosen": self.chosen.to_dict(), "uniform": self.uniform.to_dict(),
            "even": _plain(self.even), "largest_budget": LARGEST_BUDGET,
            "capped": list(self.capped), "is_saturated": self.is_saturated,
            "certificate": self.certificate and vars(self.certificate),
            "frontier": [{k: number(v) for k, v in vars(point).items()} for point in self.frontier],
            "alternatives": [vars(item) | {"ratio": number(item.ratio)} for item in self.alternatives],
            "usefulness": self.prospect and self.prospect.to_dict(),
            "notes": self.notes(), "plan": json.loads(self.plan.to_json()), "audit": self.audit.to_dict(),
            "table_audit": _plain(self.table_audit), "collected": _plain(self.collected),
        }  # fmt: skip

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        low, high = min(self.budgets.values()), max(self.budgets.values())
        kept = f"limits {'' if self.is_within else 'not '}certified"
        kept += "" if self.decide_by == "report" else f" for {NAMES[self.decide_by]}"
        who = self.constraint if self.delta is None else f"{self.constraint} at delta {self.delta:g}"
        use = "" if self.usefulness is None else f"; {self.usefulness.verdict}"
        return f"Calibration({who}: {len(self.budgets)} budgets, {low:.4g} to {high:.4g}; {kept}{use})"

    def _repr_html_(self) -> str:
        errors = self.chosen.errors
        rows = [[name, self.plan[name].mechanism, each, errors[name]] for name, each in self.budgets.items()]
        return html_table(repr(self), ("attribute", "mechanism", "budget", "expected error"), rows)


def _plain(part: Setting | Audit | None) -> dict[str, Any] | None:
    return None if part is None else part.to_dict()


def number(value: float) -> float | str | None:
    """Return a figure as JSON can say it."""
    return None if math.isnan(value) else json_number(value)


def is_capped(budget: float) -> bool:
    """Whether a budget is the largest that is searched."""
    return budget >= LARGEST_BUDGET * (1 - 1e-9)  # the search ends within a billionth of a root


def table_words(audit: Audit) -> str:
    """Say how many secrets an audit finds within, over, or not certified, for the whole report."""
    verdicts = [item.outcomes["report"] for item in audit.secrets.values()]
    kept = "certified to stay within its limit", "certified to stay within their limits"
    parts: dict[Outcome, tuple[str, str]] = {
        "within": (f"is {kept[0]}", f"are {kept[1]}"),
        "not certified": (f"is not {kept[0]}", f"are not {kept[1]}"),
        "exceeded": ("exceeds its limit", "exceed their limits"),
    }
    if len(set(verdicts)) == 1:
        subject = "the secret" if len(verdicts) == 1 else f"all {len(verdicts)} secrets"
        return f"{subject} {parts[verdicts[0]][len(verdicts) > 1]}."
    counts = {key: verdicts.count(key) for key in parts if key in verdicts}
    words = [f"{count} {parts[key][count > 1]}" for key, count in counts.items()]
    return f"of {len(verdicts)} secrets, {', '.join(words)}."


def _capped_words(result: Calibration) -> str:
    """Say that the search and not a limit stopped some budgets, and whether that matters."""
    stopped = f"No limit stops {listed(result.capped, 8)}, but the search, which ends at {LARGEST_BUDGET:g}"
    if result.is_saturated:
        return f"{stopped}: leakage has saturated there, and even without noise every limit would be kept."
    return f"{stopped}: leakage still grows there, and some larger budget would break a limit."
