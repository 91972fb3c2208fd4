"""Final figures: those of an audit, secret by secret, then what is drawn; they replace the live ones.

`auditing.audit`, `leakage_at` and `people_needed` make them with a fixed seed, so that the exported plan,
audited on the command line with the same seed, shows the same digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial

from sidelight.auditing import Sampling, SecretAudit, audit
from sidelight.auditing.stories import Story, told_adversaries
from sidelight.auditing.verdict import AdversaryName
from sidelight.belief import Belief
from sidelight.foundation.progress import track
from sidelight.foundation.threads import one_thread
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
_MOST_CODINGS = 8
"""So many ways to code the table are kept: those of plans side by side, and of some before them."""
_STEP = 0.2
_AT_ONCE = 2
"""So many figures at delta are drawn at once: each leaves a processor idle between its compiled loops."""


@dataclass(frozen=True)
class Refined:
    """Some figures of a plan that are final, and what is still to come."""

    secrets: tuple[SecretAudit, ...] = ()
    worth: tuple[Worth, ...] = ()
    pending: tuple[str, ...] = ()
    is_rough: bool = False
    """Whether figures at delta come from a few draws, to be followed by more."""
    is_decided: bool = False
    """Whether these are the last of the figures that decide."""


@dataclass(eq=False)
class _Known:
    """What is known of people whose values are coded in one way: the table, and the population behind it.

    Attributes:
        belief: what someone knows who knows the table.
        fitting: what someone knows who knows the population, once it was asked for: it takes long.
    """

    belief: Belief
    fitting: Future[Belief] | None = None

    def fit(self, threads: ThreadPoolExecutor) -> None:
        """Begin to fit the population, unless that was begun before."""
        if self.fitting is None or self.fitting.cancelled():
            self.fitting = threads.submit(Belief.population_of, self.belief)

    def population(self) -> Belief:
        """Wait for the population, in steps between which the work can be stopped."""
        assert self.fitting is not None  # noqa: S101 - whoever asks for it has begun it
        for _ in track(iter(self.fitting.done, True), "fitting the population"):
            wait([self.fitting], timeout=_STEP)
        return self.fitting.result()


@dataclass(eq=False)
class Refiner:
    """Makes the final figures of one table's plans; what does not depend on a plan is kept.

    Attributes:
        opened: the table.
        fitter: the thread that fits populations, one after the other.
    """

    opened: Opened
    fitter: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "population"))
    _known: dict[str, _Known] = field(default_factory=dict)
    _told_of: set[str] = field(default_factory=set)
    """Secrets that have figures at delta on the page: greyed, they say more than a first look."""

    def refined(self, document: Document, plan_id: str) -> Iterator[Refined]:
        """Yield the figures of a plan as they come."""
        draft = document.plan(plan_id)
        plan = self.opened.plan(document, draft)
        known = self._known_of(plan)
        belief = known.belief
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
        if delta is None:
            self._told_of.clear()
            yield Refined(worth=tuple(self._worth(plan, belief, document)))
            return
        stories = self._told(plan, known, found, delta, decider)
        for told_part in stories:  # what decides comes first, then what else is awaited
            yield replace(told_part, pending=(*drawn, *people))
            if told_part.is_decided:
                yield Refined(worth=tuple(self._worth(plan, belief, document)), pending=drawn)
                break
        yield from stories
        yield Refined()

    def prepare(self) -> None:
        """Begin to learn what someone knows who knows the population, before anybody waits for it."""
        belief = self.opened.belief
        is_small = (belief.sample_size or 0) * len(belief.schema) <= _LARGEST_PREPARED
        if is_small and "population" in told_adversaries(belief):
            self._known.setdefault("", _Known(belief)).fit(self.fitter)

    def _known_of(self, plan: Plan) -> _Known:
        """Return what is known of people as the plan codes them, counted at most once for each coding."""
        schema = self.opened.schema
        is_coarse = any(release.attribute != schema[release.name] for release in plan.releases)
        key = repr([release.attribute for release in plan.releases]) if is_coarse else ""
        if key not in self._known:
            if len(self._known) > _MOST_CODINGS:
                self.forget()
                self._known = {name: item for name, item in self._known.items() if not name}
            self._known[key] = _Known(self.opened.counted(plan))
        return self._known[key]

    def forget(self, but: _Known | None = None) -> None:
        """Let no population be fitted that nobody asks for any more, unless it was begun."""
        for known in self._known.values():
            if known is not but and known.fitting is not None:
                known.fitting.cancel()

    def _told(
        self, plan: Plan, known: _Known, found: dict[str, SecretAudit], delta: float, decider: AdversaryName
    ) -> Iterator[Refined]:
        """Yield figures at delta, those that decide first: from a few draws, then as an audit has them."""
        belief, pending = known.belief, (f"figures at delta {delta:g}",)
        who: tuple[AdversaryName, ...] = told_adversaries(belief)
        order = sorted(found.values(), key=lambda item: (item.limit is None, belief.schema[item.secret].size))
        draws = draws_at(belief, plan, found, delta)
        unseen = [item for item in order if _is_drawn(belief, plan, item.secret, self._told_of)]
        for item in track(unseen, "a first look at delta"):
            story = told(belief, who[-1], plan, item.secret, delta, _FEW_DRAWS)
            yield Refined((replace(item, stories=(story,)),), pending=pending, is_rough=True)
        if len(who) > 1:
            self.forget(known)
            known.fit(self.fitter)

        def tell(name: AdversaryName, item: SecretAudit) -> Story:
            knows = known.population() if name == "population" and len(who) > 1 else belief
            return told(knows, name, plan, item.secret, delta, draws)

        wanted = [(name, item) for name in sorted(who, key=lambda name: name != decider) for item in order]
        for count, ((_, item), story) in enumerate(_side_by_side(tell, wanted), 1):
            both = (*found[item.secret].stories, story)
            full = replace(item, stories=tuple(sorted(both, key=lambda each: who.index(each.adversary))))
            found[item.secret] = full
            self._told_of.add(item.secret)
            yield Refined((full,), pending=pending, is_decided=count == len(order))

    def _worth(self, plan: Plan, belief: Belief, document: Document) -> Iterator[Worth]:
        settings = document.settings
        for release in track(plan.releases, "people needed"):
            use, variance = estimated(release, settings.people, self.opened.shares, belief)
            needed = precise_people(release, settings.precision, belief.prior(release.name))
            yield Worth(release.name, use, variance, needed)


def _side_by_side(
    tell: Callable[[AdversaryName, SecretAudit], Story], wanted: Sequence[tuple[AdversaryName, SecretAudit]]
) -> Iterator[tuple[tuple[AdversaryName, SecretAudit], Story]]:
    """Yield the stories in their order; some are told at once, as compiled loops leave room beside them."""
    # one thread a product throughout: whoever is done first would else give threads back to the others
    with one_thread(), ThreadPoolExecutor(_AT_ONCE, "story") as pool:
        # each in a context of its own, in which the work is stopped too once nobody wants it any more
        begun = [pool.submit(copy_context().run, partial(tell, *each)) for each in wanted]
        try:
            for each, story in zip(track(wanted, "figures at delta"), begun, strict=True):
                for _ in track(iter(story.done, True), f"what who knows the {each[0]} learns"):
                    wait([story], timeout=_STEP)
                yield each, story.result()
        finally:
            for story in begun:
                story.cancel()


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


def _is_drawn(belief: Belief, plan: Plan, secret: str, told_of: Collection[str]) -> bool:
    """Whether a first look is worth it, and memory holds its draws: of very many values it does not."""
    if secret in told_of:
        return False
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
