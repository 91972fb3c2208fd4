"""The kinds of remedies: each looks for a candidate, has it certified, and says what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sidelight.auditing import AT_DELTA, Audit, SecretAudit
from sidelight.auditing.verdict import keeps
from sidelight.estimation.usefulness import people_needed, usefulness
from sidelight.foundation.arrays import Array
from sidelight.foundation.html import listed
from sidelight.foundation.progress import track
from sidelight.leakage import Bound
from sidelight.plan import Plan
from sidelight.protocols.direct import planned
from sidelight.protocols.protocol import Protocol
from sidelight.remedying.gauge import Candidate, Gauge, gauge_of
from sidelight.remedying.result import Kind, Remedy, Tradeoff
from sidelight.remedying.sampling import sample_of
from sidelight.remedying.search import Rates, coarsened, lowered, rates, scaled, withheld

_ATTEMPTS = 4
"""So often a certificate is drawn for a remedy before it is given up."""
_MARGIN = 0.985
_SAME = 0.999
"""A budget that is lowered by less is not said to be."""
_WORDS = 6
_CURVE = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
"""Levels of budgets at which the trade between leakage and error is estimated."""
_ROOM = 0.9
"""Own reports that use up more of a limit leave no room for others."""


@dataclass(frozen=True, eq=False)
class Search:
    """Looks for remedies of every kind.

    Attributes:
        over: the limits of the secrets that are to come back under them.
        stated: the limits of all audited secrets: what may say more about another secret must keep its limit.
        coins: where the seeds of certificates come from.
        missing: why a kind has no remedy.
    """

    audit: Audit
    over: Mapping[str, float]
    stated: Mapping[str, float]
    people: int
    within: float
    coins: np.random.Generator
    missing: dict[Kind, str] = field(default_factory=dict)

    @cached_property
    def gauge(self) -> Gauge:
        """What the adversary who decides learns about the secrets that are over."""
        return gauge_of(self.audit, self.over)

    @cached_property
    def whole(self) -> Gauge:
        """The same about all audited secrets with a limit."""
        return gauge_of(self.audit, self.stated)

    @property
    def start(self) -> Candidate:
        """The plan as it is, less what it withholds anyway."""
        kept = tuple(item for item in self.audit.plan.releases if item.mechanism != "withheld")
        return Candidate(kept)

    @cached_property
    def frequencies(self) -> dict[str, Array]:
        """The frequencies of all released attributes, as the audit's belief has them."""
        return {name: self.audit.belief.prior(name) for name in self.start.names}

    @cached_property
    def now(self) -> Remedy:
        """The plan as it is, told as a remedy."""
        bounds = {name: deciding(self.audit[name]) for name in self.over}
        return self._priced("as it is", (), self.start, bounds)

    def all(self) -> tuple[Remedy, ...]:
        """Return all remedies, those with the smallest loss first."""
        kinds: list[Callable[[], Iterator[Remedy]]] = [
            self.withholding, self.lowering, self.coarsening, self.sampling, self.together
        ]  # fmt: skip
        found = [remedy for kind in track(kinds, "remedies") for remedy in kind()]
        return tuple(sorted(found, key=lambda item: item.loss))

    def quick(self) -> list[Remedy]:
        """Return the remedies that take least time to find."""
        return [*self.withholding(), *self.sampling()]

    @cached_property
    def _hidden(self) -> list[str] | None:
        return withheld(self.gauge, self.start)

    def withholding(self) -> Iterator[Remedy]:
        """Yield a small set to withhold, and one that leaves the secrets' own reports where they can stay."""
        sets = [self._hidden]
        if self._hidden is not None and set(self._hidden) & set(self.over) and self._leaves_room:
            sets.append(withheld(self.gauge, self.start, kept=self.over))
        found = False
        for hidden in sets:
            sure = None if hidden is None else self._certified(self.start.without(hidden), self._without_one)
            if sure is not None:
                gone = [name for name in self.start.names if name not in sure[0].names]
                found = True
                yield self._priced("withhold", (f"without {_names(gone)}",), *sure)
        if not found:
            self.missing["withhold"] = "the limits are kept only where nothing is collected."

    @property
    def _leaves_room(self) -> bool:
        """Whether the secrets' own reports leave something of the limits for other reports."""
        others = [name for name in self.start.names if name not in self.over]
        return self.gauge.share(self.start.without(others)) < _ROOM

    def lowering(self) -> Iterator[Remedy]:
        """Yield lower budgets: of the attributes that say most for their use, and of all alike."""
        for even in (False, True):  # by one factor where a budget for each does not do
            ways = rates(self.gauge, self.start, self.frequencies, even=True) if even else self._ways
            tried = None if ways is None else lowered(self.gauge, ways)
            sure = None if tried is None else self._certified(tried, scaled)
            if sure is not None:
                yield self._priced("budgets", self._budget_words(sure[0]), *sure)
                return
        self.missing["budgets"] = "no lower budgets keep the limits: something is released without noise."

    @cached_property
    def _ways(self) -> Rates | None:
        return rates(self.gauge, self.start, self.frequencies, even=False)

    def curve(self) -> tuple[Tradeoff, ...]:
        """Return what budgets cost on the way from the plan as it is to far below the limits, estimated."""
        ways = self._ways
        if ways is None:
            return ()
        points = []
        for part in track(_CURVE, "what leakage costs"):
            tried = ways.at(ways.most * part)
            if tried is not None:
                errors = usefulness(planned(Plan(tried.releases)), self.people, self.frequencies)
                points.append(Tradeoff(self.gauge.share(tried), errors.error))
        return tuple(points)

    def coarsening(self) -> Iterator[Remedy]:
        """Yield the first coarser values that keep the limits, or coarser values and lower budgets."""
        if self.audit.belief.is_model:
            self.missing["coarsen"] = "a model of the table is not coarsened; audit the table itself."
            return
        last = None
        for tried in coarsened(self.gauge, self.start, self.frequencies, self.stated):
            last = tried
            if self.gauge.keeps(tried):
                break
        if last is None:
            self.missing["coarsen"] = "fewer values of attributes that are no secrets would not say less."
            return
        words = tuple(item.says for item in last.coarsened.values())
        if self.gauge.keeps(last):
            sure = self._certified(last, _give_up)
            if sure is not None:
                yield self._priced("coarsen", words, *sure)
                return
        ways = rates(self.gauge, last, self._frequencies_of(last), even=False)
        tried_lower = None if ways is None else lowered(self.gauge, ways)
        sure = None if tried_lower is None else self._certified(tried_lower, scaled)
        if sure is None:
            self.missing["coarsen"] = "coarser values alone do not keep the limits."
        else:
            yield self._priced("several", (*words, *self._budget_words(sure[0])), *sure)

    def sampling(self) -> Iterator[Remedy]:
        """Yield the protocol that asks each person for one attribute, with budgets no larger than now."""
        protocol = sample_of(self.start.releases)
        if protocol is None:
            self.missing["sample"] = "it needs two attributes or more, each reported once with noise."
            return
        tried = self._sampled(self.start)
        candidate = self.start
        if not self._keeps(tried):
            lower = _largest_scaled(lambda each: self._keeps(self._sampled(each)), self.start)
            if lower is None:
                self.missing["sample"] = "one attribute a person says more than the limits allow."
                return
            candidate, protocol, tried = lower, sample_of(lower.releases), self._sampled(lower)
        count = len(candidate.releases)
        words = (f"one of {count} attributes, drawn for each person", *self._budget_words(candidate))
        yield self._priced("sample", words, candidate, tried, protocol)

    def _sampled(self, candidate: Candidate) -> dict[str, Bound]:
        return {secret: self.gauge.sampled(candidate, secret) for secret in self.over}

    def together(self) -> Iterator[Remedy]:
        """Yield what lies between: the most telling attributes withheld, the budgets of others lowered."""
        if self._hidden is None or len(self._hidden) < 2:
            return
        gone = self._hidden[: (len(self._hidden) + 1) // 2]
        ways = rates(self.gauge, self.start.without(gone), self.frequencies, even=False)
        tried = None if ways is None else lowered(self.gauge, ways)
        sure = None if tried is None else self._certified(tried, scaled)
        if sure is not None:
            words = (f"without {_names(gone)}", *self._budget_words(sure[0]))
            yield self._priced("several", words, *sure)

    def _certified(
        self, candidate: Candidate, tighter: Callable[[Candidate, float], Candidate | None]
    ) -> tuple[Candidate, dict[str, Bound]] | None:
        """Return the candidate, or a tighter one, with figures that certify it; None if none does."""
        gauge = self.whole if candidate.coarsened or not _degrades(candidate) else self.gauge
        tried: Candidate | None = candidate
        for attempt in range(1, _ATTEMPTS + 1):
            if tried is None or not tried.releases:
                return None
            bounds = gauge.certified(tried, attempt, int(self.coins.integers(1 << 40)))
            if self._keeps(bounds):
                return tried, bounds
            worst = max(bound.value / self.stated[name] for name, bound in bounds.items())
            tried = tighter(tried, _MARGIN / worst if math.isfinite(worst) else 0.5)
        return None

    def _keeps(self, bounds: Mapping[str, Bound]) -> bool:
        return all(keeps(bound.value, self.stated[name]) for name, bound in bounds.items())

    def _without_one(self, candidate: Candidate, factor: float) -> Candidate:  # noqa: ARG002
        """Return the candidate without the attribute that says most."""
        names = candidate.names
        shares = [self.gauge.share(candidate.without([name]), quick=True) for name in names]
        return candidate.without([names[int(np.argmin(shares))]])

    def _budget_words(self, candidate: Candidate) -> tuple[str, ...]:
        """Say which budgets are lower than now."""
        before = self.start.by_name
        lower = {
            item.name: item.epsilon
            for item in candidate.releases
            if item.epsilon is not None and item.epsilon < _SAME * (before[item.name].epsilon or 0.0)
        }
        if not lower:
            return ()
        if len(set(lower.values())) == 1 and len(lower) == len(candidate.releases) > 1:
            return (f"budget {next(iter(lower.values())):.3g} for every attribute",)
        words = [f"{name} {budget:.3g}" for name, budget in sorted(lower.items(), key=lambda each: each[1])]
        return (f"budgets: {listed(words, _WORDS)}",)

    def _frequencies_of(self, candidate: Candidate) -> dict[str, Array]:
        return {
            name: candidate.coarsened[name].frequencies(self.frequencies[name])
            if name in candidate.coarsened
            else self.frequencies[name]
            for name in candidate.names
        }

    def _priced(
        self, kind: Kind, words: tuple[str, ...], candidate: Candidate, bounds: Mapping[str, Bound],
        protocol: Protocol | None = None,
    ) -> Remedy:  # fmt: skip
        """Put a certified candidate's plan and price together."""
        shares = self._frequencies_of(candidate)
        plan = self._plan(candidate, words)
        design = protocol or planned(plan)
        use = usefulness(design, self.people, shares)
        loss = self._loss(candidate, {item.attribute: item.error for item in use.attributes})
        needed = people_needed(design, self.within, shares)
        limits = {name: self.stated[name] for name in bounds}
        return Remedy(kind, words, None if protocol else plan, protocol, bounds, limits, use, needed, loss)

    def _plan(self, candidate: Candidate, words: tuple[str, ...]) -> Plan:
        """Return the plan of a candidate, with the limits it keeps and what was done to the one before."""
        before = self.audit.plan
        done = f"remedy: {'; '.join(words)}" if words else ""
        origin = "; ".join(part for part in (before.origin, done) if part)
        limits = {**before.limits, **self.stated}
        judged: dict[str, Any] = {"delta": None, "decide_by": before.decide_by}
        if is_told(self.audit):  # an audit of the plan then asks what this one asked
            judged = {"delta": self.audit.delta, "decide_by": self.audit.decide_by}
        return replace(before, releases=candidate.releases, limits=limits, origin=origin, **judged)

    def _loss(self, candidate: Candidate, errors: Mapping[str, float]) -> float:
        """Return the error over all attributes as they were; of what is not collected, of knowing nothing.

        Knowing nothing, all frequencies of k values are equally likely: by a flat Dirichlet distribution each
        has the variance (k - 1) / (k^2 (k + 1)). So it is inside a coarse value too, of which it is a share.
        """
        squares = []
        for name, truth in self.frequencies.items():
            size = len(truth)
            if name not in errors:
                squares.append((size - 1) / (size**2 * (size + 1)))
            elif name not in candidate.coarsened:
                squares.append(errors[name] ** 2)
            else:
                item = candidate.coarsened[name]
                sizes = np.bincount(item.codes, minlength=item.coarse.size)
                unknown = item.frequencies(truth) ** 2 * (sizes - 1) / (sizes * (sizes + 1))
                squares.append(float((unknown + errors[name] ** 2 / sizes).sum()) / size)
        return math.sqrt(sum(squares) / len(squares))


def _degrades(candidate: Candidate) -> bool:
    """Whether lower budgets never say more."""
    return all(item.sent()[0].degrades for item in candidate.releases if item.epsilon is not None)


def _give_up(candidate: Candidate, factor: float) -> None:
    """Say that nothing tighter is to be tried."""


def _names(names: list[str]) -> str:
    return listed(names, _WORDS)


def _largest_scaled(holds: Callable[[Candidate], bool], candidate: Candidate) -> Candidate | None:
    """Return the candidate with all budgets multiplied by the largest number below 1 that holds, nearly."""
    low, high, best = 0.0, 1.0, None
    for _ in range(12):
        middle = (low + high) / 2
        tried = scaled(candidate, middle)
        if tried is not None and holds(tried):
            low, best = middle, tried
        else:
            high = middle
    return best


def is_told(audit: Audit) -> bool:
    """Whether a figure at delta decides."""
    return audit.decide_by in AT_DELTA and audit.delta is not None


def deciding(item: SecretAudit) -> Bound:
    """Return the figure that decides whether a secret keeps its limit."""
    if item.deciding is not None:
        upper = item.deciding.leakage.upper
        # no figure at delta is above the worst case
        worst = item.worst_case.upper
        return worst if item.decide_by == "table" and worst.value < upper.value else upper
    if item.decide_by in ("model", "model guess") and item.model is not None:
        return item.model
    return item.total.upper if item.decide_by == item.adversary else item.worst_case.upper
