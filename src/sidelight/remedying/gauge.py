"""What the adversary who decides learns from a candidate: quickly, to compare, and certified, to be offered.

Two candidates are compared by the same people and the same random words, as in a search for budgets: the
likelihoods of one release are worked out once and serve every candidate that has it. What is offered is
certified with draws of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sidelight.auditing import AT_DELTA, AdversaryName, Audit, SecretAudit
from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.leakage import Bound, leakage_at, total_leakage, tree_totals
from sidelight.leakage.bounds import Claim
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals import LARGEST_FIGURE, usual_draws
from sidelight.leakage.totals.at_delta import BETA, Question
from sidelight.leakage.totals.base import joint_claim
from sidelight.leakage.totals.composition import composed_losses
from sidelight.plan import Plan, Release, View
from sidelight.remedying.coarsening import Coarsening, coarse_belief
from sidelight.remedying.looks import MOST_CELLS, CommonLooks
from sidelight.remedying.sampling import SAMPLED, sampled_figure

_QUICK_DELTA, _QUICK_DRAWS = 1e-2, 2000
"""Which of two candidates says less is seen at a larger delta with few draws."""
_SEARCH_SHARE = 5
_MOST_SEARCHED = 40_000
_LEADING = 3
"""Quick looks are at so many secrets."""
_LARGEST_LISTED = 1 << 20
"""With more combinations of values than this, no figure is exact."""
_CERTIFIED_SHARE = 2
"""A certificate takes this part of the usual draws, and is a hundredth looser."""
AIM = 0.96
"""Estimates are brought to this share of a limit: a certified figure is a few hundredths above."""


@dataclass(frozen=True)
class Candidate:
    """What would be released.

    Attributes:
        releases: in their order.
        coarsened: how values become fewer, by attribute; the releases have the coarse attributes.
    """

    releases: tuple[Release, ...]
    coarsened: Mapping[str, Coarsening] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The released attributes."""
        return tuple(release.name for release in self.releases)

    def without(self, hidden: Iterable[str]) -> Candidate:
        """Return the candidate that withholds some attributes."""
        gone = set(hidden)
        kept = tuple(release for release in self.releases if release.name not in gone)
        coarsened = {name: item for name, item in self.coarsened.items() if name not in gone}
        return Candidate(kept, coarsened)

    @property
    def by_name(self) -> dict[str, Release]:
        """The releases by attribute."""
        return {release.name: release for release in self.releases}


@dataclass(frozen=True, eq=False)
class Gauge(ABC):
    """The deciding figure of every secret over its limit, for any candidate.

    Attributes:
        belief: what the adversary knows, with the attributes as they are in the audit.
        limits: of the secrets that a remedy must bring back under them, the one furthest over it first.
        table: what the belief was learnt from, where it is a model: people with coarser values are another
            table, from which another model is learnt.
    """

    belief: Belief
    limits: Mapping[str, float]
    table: Belief | None = None
    _coarse: dict[tuple[tuple[str, int], ...], Belief] = field(default_factory=dict, repr=False)

    @abstractmethod
    def aim(self, candidate: Candidate) -> float:
        """Return to what share of a limit a search goes."""

    @abstractmethod
    def figure(self, candidate: Candidate, secret: str, *, quick: bool = False) -> float:
        """Return the figure of one secret; a quick one serves to compare alone."""

    @abstractmethod
    def certified(self, candidate: Candidate, attempt: int, seed: int) -> dict[str, Bound]:
        """Return the figures to act on, of all secrets, at the so manieth attempt (from 1 on)."""

    @abstractmethod
    def sampled(self, candidate: Candidate, secret: str) -> Bound:
        """Return what one report says, of an attribute that is drawn for each person and disclosed."""

    def share(self, candidate: Candidate, *, quick: bool = False) -> float:
        """Return the largest figure as a share of its limit, or the first that is over it.

        A quick look is at the few secrets that were furthest over their limits. Nothing says nothing.
        """
        if not candidate.releases:
            return 0.0
        worst = 0.0
        for secret, limit in list(self.limits.items())[: _LEADING if quick else None]:
            worst = max(worst, _share(self.figure(candidate, secret, quick=quick), limit))
            if worst > 1 and not quick:
                break
        return worst

    def keeps(self, candidate: Candidate) -> bool:
        """Whether the candidate seems to keep every limit, so that a certificate is worth its time."""
        return self.share(candidate) <= self.aim(candidate)

    def known(self, candidate: Candidate) -> Belief:
        """Return what the adversary knows of the attributes as the candidate codes them."""
        if not candidate.coarsened:
            return self.belief
        key = tuple(sorted((name, item.coarse.size) for name, item in candidate.coarsened.items()))
        if key not in self._coarse:
            coarse = coarse_belief(self.table or self.belief, candidate.coarsened)
            self._coarse[key] = coarse if self.table is None else self._learnt(coarse)
        return self._coarse[key]

    def _learnt(self, table: Belief) -> Belief:
        """Return a model of the same kind as the belief, of another table."""
        return Belief.population_of(table) if self.belief.population is not None else Belief.tree_of(table)


def _share(figure: float, limit: float) -> float:
    if limit == 0:
        return 0.0 if figure <= 0 else LARGEST_FIGURE
    return min(figure, LARGEST_FIGURE) / limit


@dataclass(frozen=True, eq=False)
class WorstCase(Gauge):
    """The worst case of all reports, of whole ones or of guesses, for the table or for a tree."""

    view: View = "report"
    is_tree: bool = False

    def aim(self, candidate: Candidate) -> float:  # noqa: ARG002 - so it is for every one
        """Return all of a limit: figures are bounds already."""
        return 1.0

    def figure(self, candidate: Candidate, secret: str, *, quick: bool = False) -> float:  # noqa: ARG002
        """Return the upper end of the total."""
        return self._bounds(candidate, [secret])[secret].value

    def certified(self, candidate: Candidate, attempt: int, seed: int) -> dict[str, Bound]:  # noqa: ARG002
        """Return the upper ends of the totals, which need no draws."""
        return self._bounds(candidate, list(self.limits))

    def sampled(self, candidate: Candidate, secret: str) -> Bound:
        """Return the most that the report of one attribute says."""
        parts = [self._bounds(Candidate((release,)), [secret])[secret] for release in candidate.releases]
        worst = max(parts, key=lambda bound: bound.value)
        kinds = {bound.kind for bound in parts}
        return Bound(worst.value, "certified" if kinds == {"exact", "certified"} else worst.kind, SAMPLED)

    def _bounds(self, candidate: Candidate, secrets: list[str]) -> dict[str, Bound]:
        belief = self.known(candidate)
        channels = Plan(candidate.releases).channels(self.view)
        if self.is_tree:
            return dict(tree_totals(belief, channels, secrets))
        return {secret: total_leakage(belief, channels, secret).upper for secret in secrets}


@dataclass(frozen=True, eq=False)
class AtDelta(Gauge):
    """Figures at delta, of someone who knows the table, the population, or a tree.

    Attributes:
        delta: the probability with which a release may say more.
    """

    delta: float = 1e-3
    _draws: dict[tuple[str, bool], CommonLooks] = field(default_factory=dict, repr=False)

    def aim(self, candidate: Candidate) -> float:
        """Return all of a limit for exact figures, else less by about what a certificate is above them."""
        is_exact = all(self._rows(candidate, secret) is not None for secret in self.limits)
        return 1.0 if is_exact else AIM

    def _rows(self, candidate: Candidate, secret: str) -> Array | None:
        sizes = [item.attribute.size for item in candidate.releases if item.name != secret]
        is_large = math.prod(sizes) > _LARGEST_LISTED
        if is_large or (candidate.coarsened and self.table is not None):  # no model is learnt for a look
            return None
        return Question(self.known(candidate), candidate.by_name, secret).exact_rows()

    def figure(self, candidate: Candidate, secret: str, *, quick: bool = False) -> float:
        """Return the exact figure where all is listed, else an estimate from common draws.

        What cannot be drawn is bounded.
        """
        if (rows := self._rows(candidate, secret)) is not None:
            return epsilon_at(rows, self.delta)[0]
        question = Question(self.belief, candidate.by_name, secret)
        if not question.runnable or not self.belief.knows_joints:
            return composed_losses(candidate.by_name).leakage(self.delta)
        drawn = {release.name: release for release in question.runnable.values()}
        look = self._common(secret, quick=quick).figure(drawn, candidate.coarsened)
        return look + question.beyond

    def certified(self, candidate: Candidate, attempt: int, seed: int) -> dict[str, Bound]:
        """Return figures from fresh draws; the k-th attempt may be too low with probability beta / 2^k."""
        belief, plan = self.known(candidate), Plan(candidate.releases)
        fewer = max(16, usual_draws(self.delta) // _CERTIFIED_SHARE)
        bounds = {}
        for place, secret in enumerate(self.limits):
            beta = BETA / 2**attempt
            question = Question(belief, candidate.by_name, secret)
            most = question.wanted_draws(self.delta, beta, None)
            draws = None if most is None else min(most, fewer)
            drawn = leakage_at(belief, plan, secret, self.delta, draws=draws, beta=beta, seed=seed + place)
            bounds[secret] = drawn.upper
        return bounds

    def sampled(self, candidate: Candidate, secret: str) -> Bound:
        """Return the exact figure; reports that cannot be listed are bounded by their worst case."""
        laws, beyond = [], [0.0]
        for release in candidate.releases:
            rows = Question(self.belief, {release.name: release}, secret).exact_rows()
            if rows is not None:
                laws.append(rows)
            else:
                alone = total_leakage(self.belief, Plan((release,)).channels(), secret)
                beyond.append(alone.upper.value)
        value = sampled_figure(laws, len(candidate.releases), max(beyond), self.delta)
        claim: Claim = "certified" if len(beyond) > 1 else joint_claim(Plan(candidate.releases).channels())
        return Bound(value, "model" if self.belief.is_model else claim, SAMPLED)

    def _common(self, secret: str, *, quick: bool) -> CommonLooks:
        if (secret, quick) not in self._draws:
            delta = max(self.delta, _QUICK_DELTA) if quick else self.delta
            count = _QUICK_DRAWS if quick else min(usual_draws(delta) // _SEARCH_SHARE, _MOST_SEARCHED)
            cells = MOST_CELLS // (2 * len(self.limits))
            self._draws[secret, quick] = CommonLooks(self.belief.view(secret), delta, count, cells)
        return self._draws[secret, quick]


def gauge_of(audit: Audit, limits: Mapping[str, float]) -> Gauge:
    """Return the gauge of the adversary who decides in an audit."""
    decider: AdversaryName = audit.decide_by
    belief = known = audit.belief
    is_modelled = any(item.model is not None for item in audit.secrets.values())
    is_tree = decider == "tree" or (decider in ("model", "model guess") and is_modelled)
    if decider == "population" and audit.population is not None:
        known = audit.population
    elif is_tree:
        known = Belief.tree_of(belief)
    table = None if known is belief else belief
    if is_told(audit) and audit.delta is not None:
        return AtDelta(known, limits, table, delta=audit.delta)
    view: View = "guess" if decider in ("guess", "model guess") else "report"
    return WorstCase(known, limits, table, view=view, is_tree=is_tree)


def is_told(audit: Audit) -> bool:
    """Whether a figure at delta decides."""
    return audit.decide_by in AT_DELTA and audit.delta is not None


def deciding(item: SecretAudit) -> Bound:
    """Return the figure that decides whether a secret keeps its limit."""
    upper, worst = item.decisive, item.worst_case.upper
    # no figure at delta is above the worst case
    return worst if item.decide_by == "table" and worst.value < upper.value else upper
