"""Audit: every leakage figure of a plan, for every secret, against its limit where it has one."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelight.auditing.stories import Story, rises
from sidelight.auditing.verdict import NAMES, AdversaryName, Outcome, adversary_of, outcome_of, worded
from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import json_plain
from sidelight.foundation.html import html_table
from sidelight.leakage import AverageLeakage, Bound, Leakage, Synergy, pair_leakage, saturation
from sidelight.leakage.bounds import TOO_FEW
from sidelight.leakage.over_time import Repetition, repetitions
from sidelight.plan import Plan, Release, View

if TYPE_CHECKING:
    from sidelight.auditing.changing import Changing

SUPPRESSED = f"budget alone; {TOO_FEW}"
_AVERAGES = ("mutual_information", "prior_vulnerability", "posterior_vulnerability", "min_entropy_leakage")
TITLES = ("secret", "direct", "worst neighbour", "total at least", "total at most", "limit", "verdict")


@dataclass(frozen=True)
class SecretAudit:
    """What the plan reveals about one secret.

    Attributes:
        secret: the attribute.
        limit: how much it may leak in total; None where nobody has set a limit: it is described, not judged.
        direct: through its own report.
        neighbours: through each other released attribute alone, worst first.
        total: through all reports together, as an interval.
        published: what the sum of pairwise figures says; not a bound.
        commonest: the most frequent value and its share: the best guess before anything is released.
        averages: what the report of each neighbour says on average, where its reports can be listed.
        model: the total for an adversary who models the population as a tree, where that was asked for.
        robust: the total for every distribution the sample leaves open, where that was asked for.
        robust_neighbours: the same through each neighbour alone, by neighbour.
        adversary: whose figure the total is.
        whole: the total for an adversary who keeps whole reports and knows the table, where `total` is that
            of a weaker one. Of a table of which only a model is known it is what holds for every table.
        decide_by: the adversary for whom the limit must be kept.
        stories: what the release says at delta, where that was asked for: to someone who knows the
            population, then to someone who knows the table. The worst case is the third.
        null: the worst case of a table whose secret was shuffled, where there are stories.
    """

    secret: str
    limit: float | None
    direct: Leakage
    neighbours: tuple[Leakage, ...]
    total: Leakage
    published: Bound
    commonest: tuple[str, float]
    averages: Mapping[str, AverageLeakage] = field(default_factory=dict)
    model: Bound | None = None
    robust: Leakage | None = None
    robust_neighbours: Mapping[str, Leakage] = field(default_factory=dict)
    adversary: AdversaryName = "report"
    whole: Leakage | None = None
    decide_by: AdversaryName = "report"
    stories: tuple[Story, ...] = ()
    null: Leakage | None = None

    @property
    def worst_case(self) -> Leakage:
        """The total for whoever keeps whole reports and knows the table."""
        return self.whole or self.total

    @property
    def is_noise(self) -> bool:
        """Whether the worst case does not rise above that of a table without any connection."""
        return self.null is not None and not rises(self.worst_case.lower.value, self.null.lower.value)

    @property
    def deciding(self) -> Story | None:
        """The story that decides; None where a worst case does."""
        return next((story for story in self.stories if story.adversary == self.decide_by), None)

    @property
    def decisive(self) -> Bound:
        """The figure that the verdict rests on: how much leaks at most, to the adversary who decides."""
        if self.deciding is not None:
            return self.deciding.leakage.at(self.deciding.leakage.delta).upper
        if self.decide_by in ("model", "model guess") and self.model is not None:
            return self.model
        return (self.total if self.decide_by == self.adversary else self.worst_case).upper

    @property
    def outcomes(self) -> dict[AdversaryName, Outcome]:
        """Whether the limit is kept, for every adversary at hand; first the whole report.

        Without a limit everything is "described".
        """
        own = outcome_of(self.total, self.limit)
        told = {story.adversary: story.outcome(self.limit) for story in self.stories}
        # a report says what its guess says, and no figure at delta is above the worst case
        is_broken = (self.adversary == "guess" and own == "exceeded") or told.get("table") == "exceeded"
        whole = "exceeded" if is_broken else outcome_of(self.worst_case, self.limit)
        if whole == "within" and "table" in told:
            told["table"] = "within"
        outcomes: dict[AdversaryName, Outcome] = {"report": whole, self.adversary: own} | {"report": whole}
        outcomes |= told
        if self.model is not None:
            view: View = "guess" if self.adversary in ("guess", "model guess") else "report"
            modelled = Leakage.exactly(self.secret, (), self.model)
            outcomes[adversary_of(view, is_model=True)] = outcome_of(modelled, self.limit)
        return outcomes

    @property
    def verdict(self) -> str:
        """Whether the total keeps the limit, naming its adversary unless it is the whole report."""
        return worded(self.outcomes[self.adversary], self.adversary)

    @property
    def decision(self) -> Outcome:
        """Whether the limit is kept for the adversary who decides, or for a stronger one, or "described"."""
        return self.outcomes.get(self.decide_by, self.outcomes["report"])

    @property
    def is_judged(self) -> bool:
        """Whether somebody has set a limit to judge by."""
        return self.limit is not None

    @property
    def statement(self) -> str:
        """Say the verdict for whoever decides, beside those for the whole report and of the total."""
        shown = [who for who in (self.decide_by, "report", self.adversary) if who in self.outcomes]
        verdicts = list(dict.fromkeys(worded(self.outcomes[who], who) for who in shown))
        whole = self.outcomes["report"]
        if len(verdicts) > 1:  # side by side each one names its adversary
            named = f", for {NAMES['report']}" if self.deciding is None else " in the worst case"
            verdicts[verdicts.index(whole)] = f"{whole}{named}"
        return "; ".join(verdicts)

    def __repr__(self) -> str:
        total = f"total {self.total.lower.value:.4g} to {self.total.upper.value:.4g}"
        judged = "no limit" if self.limit is None else f"limit {self.limit:g}"
        return f"SecretAudit({self.secret}: {total}, {judged}, {self.statement})"


@dataclass(frozen=True, eq=False)
class Audit:
    """All figures of a plan under a belief.

    Attributes:
        belief: what the adversary knows.
        plan: what is released.
        secrets: the audit of every secret, by name.
        min_support: figures that rest on fewer records are replaced by what the budgets alone say.
        adversary: whether the adversary keeps whole reports or one guessed value of each.
        confidence: with which the robust figures hold together, where there are any.
        synergies: two reports that say more together than apart, worst first, where that was asked for.
        delta: of the stories, where there are any: the probability, averaged over the people with a value,
            with which a release may say more.
        population: what someone knows who knows the population, where a story is about them.
        changing: what leaks where values change by a chain, where that was asked for.
    """

    belief: Belief
    plan: Plan
    secrets: Mapping[str, SecretAudit]
    min_support: int = 0
    adversary: View = "report"
    confidence: float | None = None
    synergies: tuple[Synergy, ...] = ()
    delta: float | None = None
    population: Belief | None = None
    changing: tuple[Changing, ...] = ()

    def __getitem__(self, secret: str) -> SecretAudit:
        if secret not in self.secrets:
            raise InputError(f"{secret!r} was not audited; audited were {', '.join(self.secrets)}.")
        return self.secrets[secret]

    def __iter__(self) -> Iterator[str]:
        return iter(self.secrets)

    def __len__(self) -> int:
        return len(self.secrets)

    def __contains__(self, secret: object) -> bool:
        return secret in self.secrets

    def __repr__(self) -> str:
        verdicts = Counter(item.statement for item in self.secrets.values())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        return f"Audit({len(self)} secrets, {len(self.plan.names)} releases: {counts})"

    def _repr_html_(self) -> str:
        return html_table(repr(self), TITLES, [_shown(item) for item in self.secrets.values()])

    @cached_property
    def pairs(self) -> Array:
        """The leakage of every secret (column) through every release (row); direct where they are one."""
        matrix = np.zeros((len(self.plan.names), len(self.secrets)))
        for column, audit in enumerate(self.secrets.values()):
            for leakage in (*audit.neighbours, audit.direct):
                for name in leakage.through:
                    matrix[self.plan.names.index(name), column] = leakage.value
        return matrix

    @cached_property
    def repeated(self) -> tuple[Repetition, ...]:
        """What the attributes spend that are asked for more than once, and how people can be followed."""
        return repetitions(self.belief, self.plan)

    @property
    def decide_by(self) -> AdversaryName:
        """The adversary for whom the limits must be kept."""
        return next(iter(self.secrets.values())).decide_by

    @property
    def judged(self) -> tuple[SecretAudit, ...]:
        """The secrets that have a limit; of the others an audit only tells what leaks."""
        return tuple(item for item in self.secrets.values() if item.is_judged)

    @property
    def is_within(self) -> bool | None:
        """Whether every limit is certified to be kept, for the adversary who decides; None without any."""
        if not self.judged:
            return None
        told = [item.outcome for item in self.changing if item.limit is not None]
        return all(outcome == "within" for outcome in (*(item.decision for item in self.judged), *told))

    def curve(self, secret: str, neighbour: str, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Return the leakage of the secret through the neighbour at each budget, and its saturation value.

        NaN stands for a figure that rests on too few records to show. Without a budget there is no curve.
        """
        release = self.plan[neighbour]
        if release.epsilon is None:
            return [], math.nan
        plans = [Plan((release.at(epsilon),)) for epsilon in epsilons]
        channels = [plan.channels(self.adversary)[neighbour] for plan in plans]
        bounds = [pair_leakage(self.belief, channel, secret, neighbour).upper for channel in channels]
        bounds.append(saturation(self.belief, secret, neighbour))
        *values, limit = (math.nan if is_rare(bound, self.min_support) else bound.value for bound in bounds)
        return values, limit

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data; infinity becomes the string "infinity"."""
        belief = self.belief
        plain = {
            "belief": {
                "kind": belief.kind,
                "source": belief.source,
                "records": belief.sample_size,
                "smoothing": belief.smoothing,
                "zero_cells": None if self.min_support else belief.zero_cells,
                "is_model": belief.is_model,
            },
            "purpose": self.plan.purpose,
            "plan": [_release_to_dict(release) for release in self.plan.releases],
            "repeated": [item.to_dict() for item in self.repeated],
            "changing": [item.to_dict() for item in self.changing],
            "min_support": self.min_support,
            "adversary": self.adversary,
            "decide_by": self.decide_by,
            "confidence": self.confidence,
            "delta": self.delta,
            "population_gain": _gain(self.population),
            "synergies": [_synergy_to_dict(item) for item in self.synergies],
            "within_limits": self.is_within,
            "secrets": {
                name: {"reason": self.plan.reasons.get(name, ""), **_secret_to_dict(item)}
                for name, item in self.secrets.items()
            },
        }
        return dict(json_plain(plain))

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _shown(item: SecretAudit) -> list[object]:
    """Return a secret's line in a notebook."""
    worst = f"{item.neighbours[0].value:.4g} {item.neighbours[0].through[0]}" if item.neighbours else None
    total = (item.total.lower.value, item.total.upper.value)
    return [item.secret, item.direct.value, worst, *total, item.limit, item.statement]


def _release_to_dict(release: Release) -> dict[str, Any]:
    mechanism = release.randomiser()
    _, in_all, unlimited = release.realised
    return {
        "attribute": release.name,
        "values": release.attribute.size,
        "mechanism": release.mechanism,
        "epsilon": release.epsilon,
        "realised_epsilon": mechanism.epsilon,
        "realised_in_all": in_all,
        "realised_unlimited": unlimited,
        "delta": mechanism.delta,
        "times": release.times,
        "memory": "kept" if release.keeps else "fresh",
        "reason": release.reason,
    }


def _secret_to_dict(item: SecretAudit) -> dict[str, Any]:
    return {
        "limit": item.limit,
        "verdict": item.verdict,
        "adversary": item.adversary,
        "verdicts": item.outcomes,
        "within_limit": item.decision == "within" if item.is_judged else None,
        "commonest": {"value": item.commonest[0], "share": item.commonest[1]},
        "direct": _leakage_to_dict(item.direct),
        "total": _leakage_to_dict(item.total),
        "whole_report": None if item.whole is None else _leakage_to_dict(item.whole),
        "published_pairwise_sum": item.published.value,
        "neighbours": [_leakage_to_dict(leakage) for leakage in item.neighbours],
        "average": {name: {key: getattr(x, key) for key in _AVERAGES} for name, x in item.averages.items()},
        "model": None if item.model is None else item.model.to_dict(),
        "robust": None if item.robust is None else _leakage_to_dict(item.robust),
        "robust_neighbours": {name: _leakage_to_dict(x) for name, x in item.robust_neighbours.items()},
        "stories": [*(story.to_dict() for story in item.stories), _worst_case_to_dict(item)],
    }


def _worst_case_to_dict(item: SecretAudit) -> dict[str, Any]:
    """Return the last story; it has a null where there are others."""
    null = None if item.null is None else _leakage_to_dict(item.null)
    told = {"adversary": "report", **_leakage_to_dict(item.worst_case)}
    return {**told, "null": null, "is_noise": item.is_noise}


def _gain(population: Belief | None) -> float | None:
    """Return by how many nats a record a population predicts better than independence does."""
    return None if population is None or population.population is None else population.population.gain


def _leakage_to_dict(leakage: Leakage) -> dict[str, Any]:
    ends = {"lower": leakage.lower.to_dict(), "upper": leakage.upper.to_dict()}
    return {"through": list(leakage.through), **ends, "delta": leakage.delta}


def _synergy_to_dict(item: Synergy) -> dict[str, Any]:
    fields = asdict(item)
    witness = fields.pop("witness")
    return fields | {"witness": witness}


def is_rare(bound: Bound, min_support: int) -> bool:
    """Whether a figure rests on fewer records than are to be shown."""
    return bound.support is not None and bound.support < min_support


def published_sum(direct: Leakage, neighbours: Sequence[Leakage]) -> Bound:
    """Return the sum of the pairwise figures at hand; of suppressed ones it is not the published formula."""
    value = math.fsum([direct.value, *(leakage.value for leakage in neighbours)])
    is_partial = any(leakage.upper.is_suppressed for leakage in neighbours)
    method = "pairwise sum of the figures shown" if is_partial else "pairwise sum (CPL, eq. (6))"
    return Bound(value, "published", method)
