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
from functools import cached_property

import numpy as np

from sidelight.auditing import AT_DELTA, AdversaryName, Audit
from sidelight.belief import Belief
from sidelight.belief.views import SecretView
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.leakage import Bound, leakage_at, total_leakage, tree_totals
from sidelight.leakage.bounds import Claim
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals import LARGEST_FIGURE, usual_draws
from sidelight.leakage.totals.at_delta import BETA, Question
from sidelight.leakage.totals.base import joint_claim
from sidelight.leakage.totals.certificate import DrawnRatios, Draws
from sidelight.leakage.totals.composition import composed_losses
from sidelight.plan import Plan, Release, View
from sidelight.remedying.coarsening import Coarsening, coarse_belief
from sidelight.remedying.sampling import SAMPLED, sampled_figure

_SEED = 0
"""Of the common draws, fixed: the same audit has the same remedies."""
_QUICK_DELTA, _QUICK_DRAWS = 1e-2, 2000
"""Which of two candidates says less is seen at a larger delta with few draws."""
_SEARCH_SHARE = 5
_MOST_SEARCHED = 40_000
_MOST_CELLS = 1 << 26
"""So many likelihoods of common draws are kept: 512 MiB."""
_LEADING = 3
"""Quick looks are at so many secrets."""
_BATCH = 1 << 13
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
    """

    belief: Belief
    limits: Mapping[str, float]
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
            self._coarse[key] = self._known(candidate.coarsened)
        return self._coarse[key]

    def _known(self, coarsened: Mapping[str, Coarsening]) -> Belief:
        return coarse_belief(self.belief, coarsened)


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
            return dict(tree_totals(Belief.tree_of(belief), channels, secrets))
        return {secret: total_leakage(belief, channels, secret).upper for secret in secrets}


@dataclass(frozen=True, eq=False)
class AtDelta(Gauge):
    """Figures at delta, of someone who knows the table, the population, or a tree.

    Attributes:
        delta: the probability with which a release may say more.
        table: what the population was learnt from, where it was: people with coarser values are another
            table, from which another population is learnt.
    """

    delta: float = 1e-3
    table: Belief | None = None
    _draws: dict[tuple[str, bool], CommonLooks] = field(default_factory=dict, repr=False)

    def aim(self, candidate: Candidate) -> float:
        """Return all of a limit for exact figures, else less by about what a certificate is above them."""
        is_exact = all(self._rows(candidate, secret) is not None for secret in self.limits)
        return 1.0 if is_exact else AIM

    def _rows(self, candidate: Candidate, secret: str) -> Array | None:
        sizes = [item.attribute.size for item in candidate.releases if item.name != secret]
        is_large = math.prod(sizes) > _LARGEST_LISTED
        if is_large or (candidate.coarsened and self.table is not None):  # no population is learnt for a look
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
            draws = fewer if question.wanted_draws(self.delta, beta, None) is not None else None
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

    def _known(self, coarsened: Mapping[str, Coarsening]) -> Belief:
        if self.table is None:
            return coarse_belief(self.belief, coarsened)
        return Belief.population_of(coarse_belief(self.table, coarsened))

    def _common(self, secret: str, *, quick: bool) -> CommonLooks:
        if (secret, quick) not in self._draws:
            delta = max(self.delta, _QUICK_DELTA) if quick else self.delta
            count = _QUICK_DRAWS if quick else min(usual_draws(delta) // _SEARCH_SHARE, _MOST_SEARCHED)
            cells = _MOST_CELLS // (2 * len(self.limits))
            self._draws[secret, quick] = CommonLooks(self.belief.view(secret), delta, count, cells)
        return self._draws[secret, quick]


Key = tuple[int, str, str, float | None, int, int]


@dataclass(frozen=True, eq=False)
class CommonLooks:
    """People for each value of a secret who report any release always with the same random words.

    Attributes:
        view: the belief, seen from the secret.
        delta: at which the leakage is estimated.
        wanted: how many people.
        cells: how many likelihoods are kept; there are fewer people where theirs would be more.
    """

    view: SecretView
    delta: float
    wanted: int
    cells: int = _MOST_CELLS
    _tables: dict[Key, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def possible(self) -> Positions:
        """The values of the secret that can occur."""
        return np.flatnonzero(self.view.prior > 0)

    @cached_property
    def count(self) -> int:
        """How many people there are for each value."""
        cells = sum(self.view.schema.sizes) * len(self.possible)
        return max(min(self.wanted, self.cells // cells), 16)

    @cached_property
    def people(self) -> tuple[Codes, ...]:
        """The records of people with each possible value."""
        rng = np.random.default_rng(_SEED)
        return tuple(self.view.draw(int(value), self.count, rng) for value in self.possible)

    def figure(self, releases: Mapping[str, Release], coarsened: Mapping[str, Coarsening]) -> float:
        """Have everybody report, and return the estimate of the leakage at delta."""
        if len(self.possible) < 2:
            return 0.0
        block = {}
        for row in range(len(self.possible)):
            logs = self._logs(row, releases, coarsened)
            for column in range(len(self.possible)):
                if column != row:
                    block[row, column] = DrawnRatios.of(logs[:, row] - logs[:, column], 0.0)
        return Draws((block,), self.count, 0.0).estimated(self.delta)[0]

    def _logs(self, row: int, releases: Mapping[str, Release], coarsened: Mapping[str, Coarsening]) -> Array:
        tables = {
            name: self._likelihoods(row, release, coarsened.get(name)) for name, release in releases.items()
        }
        parts = []
        for start in range(0, self.count, _BATCH):
            some = {name: table[start : start + _BATCH] for name, table in tables.items()}
            parts.append(self.view.log_probabilities(some)[:, self.possible])
        return np.concatenate(parts)

    def _likelihoods(self, row: int, release: Release, coarsening: Coarsening | None) -> Array:
        """Return Pr(reports | fine value) of the people with one value, up to a factor for each."""
        size = release.attribute.size
        way = f"{release.mechanism} {dict(release.parameters)} {release.keeps}"
        key = (row, release.name, way, release.epsilon, release.times, size)
        if key not in self._tables:
            place, (mechanism, times) = self.view.schema.index(release.name), release.sent()
            codes = self.people[row][:, place].astype(np.intp)
            values = mechanism.inputs(codes if coarsening is None else coarsening.codes[codes])
            seeds = np.random.default_rng([_SEED, row, place]).integers(1 << 62, size=times)
            product = np.ones((self.count, size))
            for seed in seeds:
                product = product * mechanism.likelihoods(mechanism.randomise(values, seed=int(seed)))
                product /= product.max(axis=1, keepdims=True)
            self._forget(release.name, row)
            self._tables[key] = product if coarsening is None else product[:, coarsening.codes]
        return self._tables[key]

    def _forget(self, name: str, row: int) -> None:
        """Drop what other budgets of a release left behind, but for two: a search goes to and fro."""
        old = [key for key in self._tables if key[:2] == (row, name)]
        for key in old[1:-1]:
            del self._tables[key]


def gauge_of(audit: Audit, limits: Mapping[str, float]) -> Gauge:
    """Return the gauge of the adversary who decides in an audit."""
    decider: AdversaryName = audit.decide_by
    belief = audit.belief
    if decider in AT_DELTA and audit.delta is not None:
        if decider == "population" and audit.population is not None:
            return AtDelta(audit.population, limits, delta=audit.delta, table=belief)
        return AtDelta(belief, limits, delta=audit.delta)
    view: View = "guess" if decider in ("guess", "model guess") else "report"
    return WorstCase(belief, limits, view=view, is_tree=decider in ("model", "model guess"))
