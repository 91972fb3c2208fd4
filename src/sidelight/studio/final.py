"""Final figures: those of an audit, secret by secret, then what is drawn; they replace the live ones.

`auditing.audit`, `leakage_at` and `people_needed` make them with a fixed seed, so that the exported plan,
audited on the command line with the same seed, shows the same digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from sidelight.auditing import Sampling, SecretAudit, audit
from sidelight.auditing.stories import Story, told_adversaries
from sidelight.auditing.verdict import AdversaryName
from sidelight.belief import Belief
from sidelight.foundation.progress import track
from sidelight.leakage import leakage_at
from sidelight.leakage.totals.at_delta import BETA, Question, usual_draws
from sidelight.plan import Plan
from sidelight.studio.document import Document
from sidelight.studio.live import Worth, decider_of, estimated, precise_people
from sidelight.studio.opened import Opened

SEED = 1
"""Of every drawn figure of the studio, and of the commands that it exports."""
_TOGETHER = 8
"""So many secrets are audited before their figures are shown."""
_FEW_DRAWS = 400
"""A first look at figures at delta takes so many draws, where they are drawn at all."""
_LEAST_DRAWS = 20_000
_SHOWN_NEIGHBOURS = 3
_LARGEST_PREPARED = 2_000_000
"""Of tables with more cells the population is fitted only when somebody asks for it."""
_STEP = 0.2


@dataclass(frozen=True)
class Refined:
    """Some figures of a plan that are final, and what is still to come."""

    secrets: tuple[SecretAudit, ...] = ()
    worth: tuple[Worth, ...] = ()
    pending: tuple[str, ...] = ()
    is_rough: bool = False
    """Whether figures at delta come from a few draws, to be followed by more."""


@dataclass(eq=False)
class Refiner:
    """Makes the final figures of one table's plans; what does not depend on a plan is kept.

    Attributes:
        opened: the table.
    """

    opened: Opened
    _fitted: Future[Belief] | None = None
    _counted: dict[str, Belief] = field(default_factory=dict)

    def refined(self, document: Document, plan_id: str) -> Iterator[Refined]:
        """Yield the figures of a plan as they come."""
        draft = document.plan(plan_id)
        plan = self.opened.plan(document, draft)
        belief = self._belief(plan)
        decider = decider_of(document, belief)
        delta = document.settings.delta
        drawn = () if delta is None else (f"figures at delta {delta:g}",)
        people = ("people needed",)
        names = self.opened.secrets(document)
        found: dict[str, SecretAudit] = {}
        for part in [names[at : at + _TOGETHER] for at in range(0, len(names), _TOGETHER)]:
            made = tuple(worst_cases(belief, plan, part, document, decider))
            found |= {item.secret: item for item in made}
            rest = () if len(found) == len(names) else ("leakage of all reports together",)
            yield Refined(made, pending=(*rest, *drawn, *people))
        if delta is not None:
            yield from self._told(plan, belief, found, delta, people)
        yield Refined(worth=tuple(self._worth(plan, document)))

    def prepare(self) -> None:
        """Learn beforehand what someone knows who knows the population: it takes long."""
        belief = self.opened.belief
        is_small = (belief.sample_size or 0) * len(belief.schema) <= _LARGEST_PREPARED
        if self._fitted is None and is_small and "population" in told_adversaries(belief):
            self._population_later()

    def _population_later(self) -> Future[Belief]:
        if self._fitted is None:
            thread = ThreadPoolExecutor(1, "population")
            self._fitted = thread.submit(Belief.population_of, self.opened.belief)
            thread.shutdown(wait=False)
        return self._fitted

    def _population(self) -> Belief:
        """Return what someone knows who knows the population; a step that can be stopped on the way."""
        fitted = self._population_later()
        for _ in track(iter(lambda: fitted.done(), True), "fitting the population"):
            wait([fitted], timeout=_STEP)
        return fitted.result()

    def _belief(self, plan: Plan) -> Belief:
        """Return what is known of people as the plan codes them, counted at most once for each coding."""
        key = repr([release.attribute for release in plan.releases])
        if key not in self._counted:
            if len(self._counted) > 8:  # plans side by side, and those before them
                self._counted.clear()
            self._counted[key] = self.opened.counted(plan)
        return self._counted[key]

    def _told(
        self, plan: Plan, belief: Belief, found: dict[str, SecretAudit], delta: float, people: tuple[str, ...]
    ) -> Iterator[Refined]:
        """Yield figures at delta: first from a few draws, then as an audit has them."""
        who: tuple[AdversaryName, ...] = told_adversaries(belief)
        order = sorted(found.values(), key=lambda item: (item.limit is None, belief.schema[item.secret].size))
        pending = (f"figures at delta {delta:g}", *people)
        knows = "table" if "table" in who else who[-1]
        draws = draws_at(belief, plan, found, delta)
        for item in track(
            [item for item in order if _is_drawn(belief, plan, item.secret)], "a first look at delta"
        ):
            story = told(belief, knows, plan, item.secret, delta, _FEW_DRAWS)
            yield Refined((replace(item, stories=(story,)),), pending=pending, is_rough=True)
        for item in track(order, "figures at delta"):
            story = told(belief, knows, plan, item.secret, delta, draws)
            found[item.secret] = replace(item, stories=(story,))
            yield Refined((found[item.secret],), pending=pending)
        if "population" in who and knows != "population":
            known = self._population() if belief is self.opened.belief else Belief.population_of(belief)
            for item in track(order, "figures of who knows the population"):
                story = told(known, "population", plan, item.secret, delta, draws)
                full = replace(found[item.secret], stories=(story, *found[item.secret].stories))
                yield Refined((full,), pending=pending)

    def _worth(self, plan: Plan, document: Document) -> Iterator[Worth]:
        settings = document.settings
        coarse = self._belief(plan)
        for release in track(plan.releases, "people needed"):
            use, variance = estimated(release, settings.people, self.opened.shares, coarse)
            needed = precise_people(release, settings.precision, coarse.prior(release.name))
            yield Worth(release.name, use, variance, needed)


def draws_at(belief: Belief, plan: Plan, secrets: Iterable[str], delta: float) -> int | None:
    """Return how many releases are drawn for each value; None for as many as an audit draws by itself.

    Whoever moves sliders waits for them, so of very many draws a third must do: twice as many as can certify
    anything, they leave figures some hundredths of a nat higher. Where memory holds fewer than the usual ones
    of a secret with very many values, an audit finds out how many.
    """
    usual = usual_draws(delta)
    wanted = max(usual // 3, math.ceil(-2 * math.log(BETA) / delta), _LEAST_DRAWS)
    offered = [Question.of(belief, plan, name, None).wanted_draws(delta, BETA, None) for name in secrets]
    return wanted if wanted < usual and all(most == usual for most in offered) else None


def _is_drawn(belief: Belief, plan: Plan, secret: str) -> bool:
    """Whether memory holds the draws of a first look: of very many values it does not."""
    return Question.of(belief, plan, secret, None).wanted_draws(1.0 / _FEW_DRAWS, BETA, None) is not None


def sampling_of(opened: Opened, document: Document, plan: Plan) -> Sampling:
    """Return how an audit draws the figures that the studio shows."""
    delta = document.settings.delta
    if delta is None:
        return Sampling(seed=SEED)
    return Sampling(draws_at(opened.counted(plan), plan, opened.secrets(document), delta), seed=SEED)


def worst_cases(
    belief: Belief, plan: Plan, secrets: list[str], document: Document, decider: AdversaryName
) -> Iterator[SecretAudit]:
    """Yield what an audit finds about some secrets in the worst case, with as much as a page shows."""
    bare = replace(plan, delta=None, decide_by=None)
    made = audit(belief, bare, secrets, adversary=document.settings.adversary.view)
    for item in made.secrets.values():
        shown = item.neighbours[:_SHOWN_NEIGHBOURS]
        yield replace(item, neighbours=shown, averages={}, decide_by=decider)


def told(
    belief: Belief, who: AdversaryName, plan: Plan, secret: str, delta: float, draws: int | None = None
) -> Story:
    """Return what an audit tells at delta, without the null beside it."""
    leakage = leakage_at(belief, plan, secret, delta, draws=draws, seed=SEED)
    beyond = Question.of(belief, plan, secret, None).beyond if leakage.draws else 0.0
    return Story(who, leakage, {}, beyond)
