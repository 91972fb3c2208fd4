"""Live figures: what a change touches is computed anew, the rest is remembered.

The graph: belief -> channel of each release -> its row of pair figures, its own leakage, the error of its
estimates -> totals. A changed budget is one release: one row, one error, and the totals, whose costly part,
the rows of `JointTotal`, knows no budget and is prepared once. Everything here is exact, certified or an
estimate that says so; `final` replaces it by what an audit finds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from sidelight.auditing import SecretAudit
from sidelight.auditing.result import published_sum
from sidelight.auditing.stories import told_adversaries
from sidelight.auditing.verdict import AdversaryName, adversary_of
from sidelight.belief import Belief
from sidelight.estimation.usefulness import AttributeUse, people_needed, usefulness
from sidelight.foundation.arrays import Array
from sidelight.leakage import Bound, Leakage, total_leakage
from sidelight.leakage.pair import direct_leakage, pair_leakage, pair_matrix
from sidelight.leakage.totals import JointTotal, composition
from sidelight.leakage.totals.exact import is_exact_cheap
from sidelight.leakage.totals.joint import own_leakage
from sidelight.leakage.totals.total import exact_operations
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.generic import baseline_at, generic_worst
from sidelight.plan import Plan, Release, View
from sidelight.protocols import planned
from sidelight.studio import messages as said
from sidelight.studio.document import Choice, Document, Draft
from sidelight.studio.figures import error_figure, pair_figures, real, secret_figures, worst_outcome
from sidelight.studio.opened import Opened

T = TypeVar("T")

_REMEMBERED = 20_000
_LARGEST_KEPT = 1 << 25
"""So many cells of prepared rows are kept, 256 MB; the totals of further secrets are sums of budgets."""
LARGEST_EXACT = 1 << 23
"""Exact totals are live where all of them together take at most so many operations, about 10 ms."""
_MOST_EXACT = 16
"""And of at most so many secrets: each takes a millisecond however small it is."""
ERROR_SECONDS = 0.015
"""Errors are simulated within a change for at most so long; the rest follow."""


@dataclass(eq=False)
class Memory:
    """Results by what they depend on; forgotten all together where they become too many."""

    kept: dict[Hashable, Any] = field(default_factory=dict)

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a result, made at most once."""
        if key not in self.kept:
            if len(self.kept) >= _REMEMBERED:
                self.kept.clear()
            self.kept[key] = make()
        found: T = self.kept[key]
        return found

    def has(self, key: Hashable) -> bool:
        """Whether a result is known."""
        return key in self.kept


@dataclass(eq=False)
class Live:
    """The live figures of one opened table.

    Attributes:
        opened: the table.
        rows: by secret, what `JointTotal` needs to know about all others; None where it is too large.
    """

    opened: Opened
    rows: dict[str, Array | None] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    told: dict[tuple[str, str], SecretAudit] = field(default_factory=dict)
    """By plan and secret the last final audit: its lower figure and stories are shown until new ones come."""

    @cached_property
    def exact(self) -> bool:
        """Whether exact totals are quick enough to be live."""
        schema = self.opened.schema
        work = len(schema) * exact_operations(dict(zip(schema.names, schema.sizes, strict=True)))
        return len(schema) <= _MOST_EXACT and work <= LARGEST_EXACT

    def prepare(self) -> None:
        """Prepare the costly part of totals; may run beside questions, which sum budgets until it is done."""
        belief, kept = self.opened.belief, 0
        names = list(belief.schema.names)
        for name in names:
            rows = JointTotal.of(belief, names, name, "auto").for_many_budgets().rows
            kept += 0 if rows is None else rows.size
            self.rows[name] = None if kept > _LARGEST_KEPT else rows

    def figures(
        self, document: Document, draft: Draft, revision: int, *, hurry: bool = True
    ) -> said.PlanFigures:
        """Return all figures of a plan that can be had at once; `hurry` leaves errors for later."""
        plan = self.opened.plan(document, draft)
        secrets = self.opened.secrets(document)
        belief = self.opened.known(draft)
        decider, view = decider_of(document, belief), document.settings.adversary.view
        question = _Question(self, belief, plan, view, decider)
        found = [question.secret(name) for name in secrets]
        shown = [
            secret_figures(item, lower_is_stale=is_kept, fresh=())
            for item, is_kept in (self._with_last(draft.id, item) for item in found)
        ]
        errors, is_whole = self._errors(document, plan, hurry=hurry)
        names = list(plan.names)
        columns = [self.opened.schema.index(name) for name in secrets]
        rows = question.rows[:, columns]
        pending = ["leakage of all reports together"]
        pending += (
            [] if document.settings.delta is None else [f"figures at delta {document.settings.delta:g}"]
        )
        pending += [] if is_whole else ["errors of estimates"]
        return said.PlanFigures(
            plan=draft.id, revision=revision, outcome=worst_outcome(item.outcome for item in shown),
            secrets=shown, pairs=pair_figures(names, secrets, rows, "exact"), errors=errors,
            people=document.settings.people, pending=[*pending, "people needed"],
        )  # fmt: skip

    def _with_last(self, plan: str, item: SecretAudit) -> tuple[SecretAudit, bool]:
        """Return the figures with the last final ones of what is not computed at once."""
        last = self.told.get((plan, item.secret))
        if last is None:
            return item, False
        stories = last.stories if item.decide_by == last.decide_by else ()
        keeps = item.total.upper.kind != "exact" and last.total.lower.value <= item.total.upper.value
        total = replace(item.total, lower=last.total.lower) if keeps else item.total
        return replace(item, total=total, stories=stories), keeps

    def _errors(self, document: Document, plan: Plan, *, hurry: bool) -> tuple[list[said.ErrorFigure], bool]:
        """Return the errors of estimates, as many as there is time for, and whether that is all of them."""
        people, until = document.settings.people, time.perf_counter() + ERROR_SECONDS
        shown, is_whole = [], True
        for release in plan.releases:
            key = ("error", _key(release), people)
            if hurry and not self.memory.has(key) and time.perf_counter() > until:
                is_whole = False
                last = self.memory.kept.get(("last error", release.name))
                if last is not None:
                    stale = last.error.model_copy(update={"stale": True})
                    shown.append(last.model_copy(update={"error": stale}))
                continue
            use, rough = self.memory.of(key, partial(self._use, release, people))
            precise = ("people", _key(release), document.settings.precision)
            is_rough = not self.memory.has(precise)
            needed = _least(rough, document.settings.precision) if is_rough else self.memory.kept[precise]
            made = error_figure(use, people, needed, is_rough=is_rough)
            self.memory.kept["last error", release.name] = made
            shown.append(made)
        return shown, is_whole

    def _use(self, release: Release, people: int) -> tuple[AttributeUse, float]:
        """Return what an attribute's estimates are worth, and the variance that one person's report has."""
        return estimated(release, people, self.opened.shares, self.opened.known(_alone(release)))

    def errors(self, document: Document, draft: Draft) -> list[said.ErrorFigure]:
        """Return the errors of all estimates, however long it takes."""
        return self._errors(document, self.opened.plan(document, draft), hurry=False)[0]

    def learn(self, plan: Plan, worth: Worth, document: Document) -> None:
        """Remember what the estimates of a release are worth."""
        if worth.attribute in plan.names:
            key, settings = _key(plan[worth.attribute]), document.settings
            self.memory.kept["error", key, settings.people] = worth.use, worth.variance
            self.memory.kept["people", key, settings.precision] = worth.people_needed

    def realised(self, release: Release) -> said.Real:
        """Return what a report really spends."""
        made = self.memory.of(("channel", "report", _key(release)), partial(channel_of, release, "report"))
        return real(made.epsilon)


@dataclass(frozen=True)
class Worth:
    """What the estimates of one release are worth, and how many people they need."""

    attribute: str
    use: AttributeUse
    variance: float
    people_needed: int | None


def _alone(release: Release) -> Draft:
    choice = Choice(values=release.attribute.size)
    return Draft(id="alone", name="alone", choices={release.name: choice})


def estimated(
    release: Release, people: int, shares: Mapping[str, Array], belief: Belief
) -> tuple[AttributeUse, float]:
    """Return what an attribute's estimates are worth, and the mean variance of one person's unbiased ones."""
    known = shares[release.name]
    if len(known) != release.attribute.size:
        known = belief.prior(release.name)
    design = planned(Plan((release,)))
    (use,) = usefulness(design, people, {release.name: known}).attributes
    return use, use.unbiased_error**2 * people


def precise_people(release: Release, precision: float, prior: Array) -> int | None:
    """Return how many people must report for a precision of this attribute, within 1 %."""
    return people_needed(planned(Plan((release,))), precision, {release.name: prior})


def _least(variance: float, precision: float) -> int | None:
    """Return the people that the unbiased estimates need; the best ones need no more."""
    needed = variance / precision**2
    return int(np.ceil(needed)) if needed < 1e15 else None


def _key(release: Release) -> tuple[object, ...]:
    return release.name, release.attribute.size, release.mechanism, release.epsilon


@dataclass(eq=False)
class _Question:
    """What is asked of every secret alike."""

    live: Live
    belief: Belief
    plan: Plan
    view: View
    decider: AdversaryName

    def __post_init__(self) -> None:
        self.sizes = self.belief.schema.sizes
        self.releases = {release.name: release for release in self.plan.releases}
        self.channels = {
            name: self.live.memory.of(
                ("channel", self.view, _key(release)), partial(channel_of, release, self.view)
            )
            for name, release in self.releases.items()
        }

    @cached_property
    def whole(self) -> _Question:
        """The same question of an adversary who keeps whole reports."""
        return replace(self, view="report")

    @cached_property
    def rows(self) -> Array:
        """What every release says about every attribute; nothing about itself."""
        made = [self._row(name) for name in self.releases]
        return np.array(made).reshape(len(made), len(self.belief.schema))

    def _row(self, name: str) -> Array:
        made = {name: self.channels[name]}
        return self.live.memory.of(
            ("row", self.view, self.sizes, _key(self.releases[name])),
            lambda: pair_matrix(self.belief, made, self.belief.schema.names).values[0],
        )

    @cached_property
    def worst(self) -> list[int]:
        """For every attribute, which release of another one says most about it."""
        return (
            np.where(np.isnan(self.rows), -np.inf, self.rows).argmax(axis=0).tolist()
            if len(self.rows)
            else []
        )

    def secret(self, name: str) -> SecretAudit:
        """Put the figures of a secret together that can be had at once."""
        memory, belief, key = self.live.memory, self.belief, (self.view, self.sizes)
        own = self.releases.get(name)
        direct = memory.of(
            ("own", *key, name, None if own is None else _key(own)),
            lambda: direct_leakage(belief, self.channels.get(name), name),
        )
        worst = self._worst(name)
        total = self._total(name, direct, worst)
        prior = belief.prior(name)
        code = int(prior.argmax())
        who = adversary_of(self.view, is_model=belief.is_model and not total.is_exact)
        whole = None if who == "report" else self.whole.secret(name).total
        return SecretAudit(
            name, self.plan.limit_of(name), direct, () if worst is None else (worst,), total,
            published_sum(direct, () if worst is None else (worst,)),
            (belief.schema[name].values[code], float(prior[code])), adversary=who, whole=whole,
            decide_by=self.decider,
        )  # fmt: skip

    def _worst(self, secret: str) -> Leakage | None:
        """Return what the neighbour says whose report alone says most."""
        if not set(self.releases) - {secret}:
            return None
        name = list(self.releases)[self.worst[self.belief.schema.index(secret)]]
        key = ("pair", self.view, self.sizes, secret, _key(self.releases[name]))
        return self.live.memory.of(key, lambda: pair_leakage(self.belief, self.channels[name], secret, name))

    @cached_property
    def sums(self) -> Bound:
        """The sum of all budgets."""
        return composition(self.channels)

    def _total(self, secret: str, direct: Leakage, worst: Leakage | None) -> Leakage:
        """Return the total: exact where that is quick, else certified, the best single report below it."""
        channels = self.channels
        if self.live.exact and is_exact_cheap(self.belief, channels, secret):
            return total_leakage(self.belief, channels, secret)
        upper = self._upper(secret)
        reached = max([direct, *([] if worst is None else [worst])], key=lambda item: item.lower.value)
        method = f"report of {', '.join(reached.through) or 'nobody'}"
        lower = replace(
            reached.lower, kind="lower", method=method, value=min(reached.lower.value, upper.value)
        )
        if self.belief.is_model:
            lower, upper = replace(lower, kind="model"), replace(upper, kind="model")
        delta = math.fsum(channel.delta for channel in channels.values())
        return Leakage(secret, tuple(channels), lower, upper, delta)

    def _upper(self, secret: str) -> Bound:
        """Return the smaller of the sum of budgets and the joint generic bound (see `JointTotal`).

        Rows of all attributes as they were read serve plans that release fewer or coarser ones: a report is
        a function of its record, whatever else the record holds.
        """
        rows = self.live.rows.get(secret)
        is_alone = set(self.channels) <= {secret}
        own = own_leakage(self.belief.prior(secret), self.channels.get(secret))
        if is_alone:
            return Bound(own, "certified", "own report alone")
        if rows is None:
            return self.sums
        rest = math.fsum(value for name, value in self.budgets.items() if name != secret)
        value = own + min(generic_worst(rows, baseline_at(rest)).value, rest)
        return Bound(value, "certified", "joint generic") if value < self.sums.value else self.sums

    @cached_property
    def budgets(self) -> dict[str, float]:
        """What each report really spends."""
        return {name: channel.epsilon for name, channel in self.channels.items()}


def channel_of(release: Release, view: View) -> Channel:
    """Return a release as an adversary sees it."""
    return release.channel() if view == "report" else release.randomiser().guess_channel()


def decider_of(document: Document, belief: Belief) -> AdversaryName:
    """Return for whom limits must be kept, as an audit chooses it."""
    settings = document.settings
    if settings.adversary.decide_by is not None:
        return settings.adversary.decide_by
    return "report" if settings.delta is None else told_adversaries(belief)[-1]
