"""Calibration: the chosen plan, the audits that check it, and what its budgets buy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sidelight.auditing import NAMES, AdversaryName, Audit, Outcome
from sidelight.calibration.constraint import ConstraintName, origin_of
from sidelight.calibration.problem import LARGEST_BUDGET, Utility
from sidelight.calibration.unequal import Certificate
from sidelight.estimation.expected_error import Frequencies
from sidelight.estimation.prospect import Prospect, prospect
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_number
from sidelight.foundation.html import html_table, listed
from sidelight.leakage.bounds import Bound
from sidelight.leakage.totals import DeltaLeakage
from sidelight.plan import Plan, Release
from sidelight.protocols.direct import planned

Budgets = Literal["unequal", "uniform"]
_CLOSE = 1.1  # less than a tenth more hardly pays for trusting a belief
_GAIN = 1.005  # a smaller gain would be written as a factor of 1
_BALANCED = 0.02  # limits have kinks, so a little stays unbalanced at an optimum too


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
    def prospect(self) -> Prospect | str:
        """What the estimates would be worth, were the plan collected; or why that is not predicted.

        The frequencies are those of the people the plan will be used on, where they were given.
        """
        belief = (self.collected or self.audit).belief
        try:
            design = planned(self.plan)
            shares = {name: np.clip(belief.prior(name), 0, 1) for name in design.schema.names}
            return prospect(
                design, self.reports, {name: share / share.sum() for name, share in shares.items()},
                prior=self.prior, within=self.within, limit=min(self.limits.values()),
            )  # fmt: skip
        except InputError as error:
            return str(error)

    @property
    def beats_guessing(self) -> bool:
        """Whether the estimates would beat guessing, as far as that is predicted."""
        return isinstance(self.prospect, str) or self.prospect.usefulness.beats_guessing

    def notes(self) -> list[str]:
        """Return what a reader of the budgets must know; first whether they are of any use."""
        if isinstance(self.prospect, str):
            notes = [f"Whether the estimates would beat guessing is not predicted: {self.prospect}"]
        else:
            notes = self.prospect.notes()
        notes.append(f"The plan {'makes' if self.constraint == 'published' else 'is'} {self.promise}.")
        if self.delta is not None:
            notes += _delta_words(self.delta, self.leakages)
            notes.append(f"In the worst case of all reports: {table_words(self.strictest)}")
        elif not self.is_sound:
            notes.append(f"For an adversary who knows the table itself: {table_words(self.strictest)}")
        if self.decide_by not in ("report", "table"):
            notes.append(f"The limits need to be kept for {NAMES[self.decide_by]} only, as asked.")
        if self.collected is not None:
            notes.append(f"Applied to {origin_of(self.collected.belief)}: {table_words(self.collected)}")
        if self.is_sound and self.constraint != "tree" and self.uniform_ratio < _CLOSE and not self.capped:
            notes.append(_close_words(len(self.budgets)))
        if self.capped:
            notes.append(_capped_words(self))
        kept = [_kept_words(item) for item in self.plan.releases if item.name not in self.budgets]
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
            notes.append(_gain_words(self.certificate, is_drawn=is_drawn))
        elif self.certificate is not None and len(self.capped) < len(self.budgets):
            notes.append(_certificate_words(self.certificate, self.raisable, is_any_capped=bool(self.capped)))
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
            "usefulness": None if isinstance(self.prospect, str) else self.prospect.to_dict(),
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
        use = "" if self.beats_guessing else "; worse than guessing"
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


def _delta_words(delta: float, leakages: Mapping[str, DeltaLeakage]) -> list[str]:
    """Say what a delta allows, and how sure the figures are."""
    words = [
        f"Delta averages over people: {delta:g} lets {_one_in(delta)} be exposed beyond a limit, and some "
        "are more exposed than others. Look at the figures at smaller deltas too."
    ]
    beta = max(item.beta for item in leakages.values())
    if any(item.upper.kind != "exact" and item.draws for item in leakages.values()):
        words.append(
            f"The figures at delta were certified with fresh draws; one is too low with a probability of "
            f"{beta:.1g} at most, over the draws' own coin flips."
        )
    return words


def _one_in(delta: float) -> str:
    """Write a small probability as people say it.

    >>> _one_in(0.01), _one_in(0.003)
    ('1 person in 100', '1 person in 333')
    """
    return f"1 person in {1 / delta:.0f}"


def _gain_words(known: Certificate, *, is_drawn: bool) -> str:
    """Say what unequal budgets at delta gain; where releases are drawn, one budget for all is estimated."""
    gain = f"The weighted error is smaller by a factor of {known.gain:.3g} than with one budget for all"
    if known.gain <= _GAIN:
        gain = "The weighted error is that of one budget for all"
    estimated = ", which is estimated and not certified here" if is_drawn else ""
    return f"{gain}{estimated}; better budgets may exist, since the search ends near a local optimum."


def _kept_words(release: Release) -> str:
    """Say how an attribute is released whose budget was not to be chosen."""
    if release.epsilon is None:
        return f"{release.name} (no noise)"
    return f"{release.name} ({release.mechanism}, budget {release.epsilon:g})"


def _close_words(count: int) -> str:
    """Say that little was gained, and what could help; with one attribute there is nothing to split."""
    if count == 1:
        return "With one budget to choose there is nothing to split: it is close to what the limit leaves."
    return (
        "The largest budget for all that can be certified is close to the even split of the limit. What "
        "helps: release fewer attributes, coarser bins, limits for the secrets that matter alone, or an "
        "explicit model of the adversary (the constraint 'tree')."
    )


def _capped_words(result: Calibration) -> str:
    """Say that the search and not a limit stopped some budgets, and whether that matters."""
    stopped = f"No limit stops {listed(result.capped, 8)}, but the search, which ends at {LARGEST_BUDGET:g}"
    if result.is_saturated:
        return f"{stopped}: leakage has saturated there, and even without noise every limit would be kept."
    return f"{stopped}: leakage still grows there, and some larger budget would break a limit."


def _certificate_words(known: Certificate, raisable: Sequence[str], *, is_any_capped: bool) -> str:
    """Say what is known about unequal budgets, and no more."""
    subject = "Of the other budgets none" if is_any_capped else "No single budget"
    if raisable:
        subject = f"No single budget but those of {listed(raisable, 8)}"
    gain = "that of one budget for all"
    end = "the search ended short of a local optimum, so better budgets may exist"
    if known.gain > _GAIN:
        gain = f"smaller by a factor of {known.gain:.3g} than with one budget for all"
    if known.stationarity < _BALANCED:
        end = "a local optimum to first order, not proven to be the best of all"
    return (
        f"{subject} can be raised by 1 % without breaking a limit, and the weighted error is {gain}; {end}."
    )
