"""A session: the table, the document with its history, and the figures of every plan.

One thread at a time uses it; the application sees to that. What the page shows is a view of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sidelight.auditing import SecretAudit
from sidelight.auditing.verdict import adversary_of
from sidelight.foundation.errors import InputError
from sidelight.leakage import pair_leakage, saturation
from sidelight.leakage.pair import direct_leakage
from sidelight.mechanisms import mechanism_class
from sidelight.plan import AT_DELTA
from sidelight.studio import messages as said
from sidelight.studio.document import MENU, Choice, Document, Draft, Known, changed, check_adversary, in_words
from sidelight.studio.exports import Snapshot
from sidelight.studio.figures import figure, real, secret_figures, worst_outcome
from sidelight.studio.final import Refined
from sidelight.studio.history import History
from sidelight.studio.jobs import Found
from sidelight.studio.live import Live, channel_of
from sidelight.studio.opened import Opened, Place, open_again

BANNER = (
    "Every figure here is computed from the table itself, without noise. Figures, and this page, tell about "
    "the people in it: keep them as you keep the table."
)
_MOST_RESULTS = 12
_CURVE = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
"""Budgets at which a cell of the heat map shows how its figure grows."""


@dataclass(eq=False)
class Session:
    """What a person works on.

    Attributes:
        place: where the table is.
        history: the document and its steps.
        live: the figures that are had at once.
        figures: of every plan, by its id.
        revision: counts changes.
        saved: the last revision that opening the same files again would bring back.
    """

    place: Place
    history: History
    live: Live
    revision: int = 0
    saved: int = 0
    figures: dict[str, said.PlanFigures] = field(default_factory=dict)
    columns: list[said.Column] = field(default_factory=list)
    work: dict[str, said.WorkState] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)

    @classmethod
    def start(cls, place: Place, history: History, opened: Opened, revision: int = 0) -> Session:
        """Return a session whose figures are ready; of a state that does not fit the table, raise why."""
        session = cls(place, history, Live(opened), revision, saved=revision)
        session._check(session.document)
        session.columns = opened.columns()
        session.history = history.in_place(session._fitting(session.document))
        session._compute(session.document.plans)
        return session

    @property
    def document(self) -> Document:
        """The document as it is."""
        return self.history.present

    @property
    def opened(self) -> Opened:
        """The table as it is read now."""
        return self.live.opened

    @property
    def known(self) -> Known:
        """What a change may name."""
        names = self.opened.schema.names
        return Known(names, [item.name for item in self.columns], self.opened.coarser, self._adoptable)

    def _adoptable(self, work: str, choice: int) -> Mapping[str, Choice]:
        found = self.found.get(work)
        if found is None or choice >= len(found.adoptable) or not found.adoptable[choice]:
            raise InputError("there is no such plan to adopt; do the work again.")
        return {name: item for name, item in found.adoptable[choice].items() if name in self.opened.schema}

    # Changes

    def change(self, changes: said.Changes) -> said.Update:
        """Make changes, all or none of them, and return what they changed."""
        return self._reached(lambda: self._changed(changes))

    def import_history(self, history: History) -> said.Update:
        """Take another state's present as a step that can be taken back."""
        self._check(history.present)
        return self._reached(lambda: self.history.then(history.present, "imported state"))

    def _reached(self, made: Callable[[], History]) -> said.Update:
        """Make another history the present, with its figures; where they cannot be had, nothing changes."""
        started = time.perf_counter()
        before, opened = self.document, self.opened
        kept = self.history, self.live, self.columns, self.revision, self.figures
        try:
            self._reach(made())
            return self._update(before, opened, started)
        except Exception:
            self.history, self.live, self.columns, self.revision, self.figures = kept
            raise

    def _changed(self, changes: said.Changes) -> History:
        """Return the history after all changes."""
        steps = [change for change in changes.changes if isinstance(change, said.Undo | said.Redo)]
        if steps and len(changes.changes) > 1:
            raise InputError("a step in the history stands alone; send it by itself.")
        if steps:
            return self.history.moved(-1 if isinstance(steps[0], said.Undo) else 1)
        document = self.document
        for change in changes.changes:
            document = changed(document, change, self.known)
        if all(isinstance(change, said.SelectPlan) for change in changes.changes):
            return self.history.in_place(document)
        first = next(change for change in changes.changes if not isinstance(change, said.SelectPlan))
        return self.history.then(document, in_words(first), changes.gesture)

    def _reach(self, history: History) -> None:
        """Make a history's present the present; the table is read anew where its columns are corrected."""
        document = history.present
        if document.columns != self.document.columns:
            opened = open_again(self.place, document.columns)
            live = Live(opened)
            self.live, self.columns = live, opened.columns()
        self.history = history.in_place(self._fitting(document))
        self.revision += 1

    def _fitting(self, document: Document) -> Document:
        """Return a document whose secrets and plans are about attributes that are there."""
        names = self.opened.schema.names
        settings = document.settings
        kept = [secret for secret in settings.secrets if secret.name in names]
        if len(kept) < len(settings.secrets):
            document = document.model_copy(update={"settings": settings.model_copy(update={"secrets": kept})})
        return document

    def _check(self, document: Document) -> None:
        """Raise if a state names mechanisms, or attributes to release, that are not there."""
        check_adversary(document.settings.adversary, document.settings.delta)
        for draft in document.plans:
            for name, choice in draft.choices.items():
                if choice.mechanism not in MENU:
                    raise InputError(
                        f"the state releases {name!r} by {choice.mechanism!r}, which is not offered."
                    )
        names = {name for draft in document.plans for name in draft.choices}
        names |= {secret.name for secret in document.settings.secrets} | set(document.columns)
        there = {*self.opened.table.source.columns, *self.opened.schema.names}
        if stray := sorted(names - there):
            raise InputError(
                f"the state is about another table: {self.place.name} has no column {stray[0]!r}; "
                "name another state with --state."
            )

    def _update(self, before: Document, opened: Opened, started: float) -> said.Update:
        """Compute what a change touched, and return it."""
        now = self.document
        is_all = now.settings != before.settings or self.opened is not opened
        old = {draft.id: draft for draft in before.plans}
        touched = [draft for draft in now.plans if is_all or old.get(draft.id) != draft]
        self.figures = {draft.id: self.figures[draft.id] for draft in now.plans if draft.id in self.figures}
        self._compute(touched)
        return said.Update(
            revision=self.revision, columns=None if self.opened is opened else self.columns,
            settings=None if now.settings == before.settings else now.settings,
            plans=self.plans() if touched or len(old) != len(now.plans) else None, active=now.active,
            figures=[self.figures[draft.id] for draft in touched], history=self.steps(),
            milliseconds=1000 * (time.perf_counter() - started),
        )  # fmt: skip

    def _compute(self, drafts: list[Draft]) -> None:
        for draft in drafts:
            self.figures[draft.id] = self.live.figures(self.document, draft, self.revision)

    # What comes later

    def refine(self, plan: str, part: Refined) -> said.PlanFigures | None:
        """Take final figures of a plan, and return its figures with them; None where it is gone."""
        if plan not in self.figures:
            return None
        draft, shown = self.document.plan(plan), self.figures[plan]
        for worth in part.worth:
            self.live.learn(self.opened.plan(self.document, draft), worth, self.document)
        if part.worth:
            shown = shown.model_copy(update={"errors": self.live.errors(self.document, draft)})
        found = {item.secret: self._told(plan, item, is_rough=part.is_rough) for item in part.secrets}
        secrets = [found.get(item.secret, item) for item in shown.secrets]
        outcome = worst_outcome(item.outcome for item in secrets)
        update = {
            "secrets": secrets, "outcome": outcome, "pending": list(part.pending), "revision": self.revision
        }  # fmt: skip
        self.figures[plan] = shown.model_copy(update=update)
        return self.figures[plan]

    def _told(self, plan: str, item: SecretAudit, *, is_rough: bool) -> said.SecretFigures:
        """Return final figures of a secret; those at delta stay, greyed, until they are told anew."""
        last = self.live.told.get((plan, item.secret))
        fresh = [] if is_rough else [story.adversary for story in item.stories]
        if last is not None and last.decide_by == item.decide_by and self.document.settings.delta is not None:
            stories = {story.adversary: story for story in (*last.stories, *item.stories)}
            item = replace(item, stories=tuple(stories[name] for name in AT_DELTA if name in stories))
        self.live.told[plan, item.secret] = item
        return secret_figures(item, fresh=fresh)

    def keep(self, work: str, found: Found) -> None:
        """Keep what work has found, to be shown and adopted; the oldest is forgotten."""
        self.found[work] = found
        while len(self.found) > _MOST_RESULTS:
            gone = next(iter(self.found))
            del self.found[gone]
            self.work.pop(gone, None)

    # The view

    def plans(self) -> list[said.Plan]:
        """Return the plans as the page shows them."""
        return [self._plan(draft) for draft in self.document.plans]

    def _plan(self, draft: Draft) -> said.Plan:
        plan = self.opened.plan(self.document, draft)
        releases = {release.name: release for release in plan.releases}
        rows = []
        for attribute in self.opened.schema:
            choice, release = draft.of(attribute.name), releases.get(attribute.name)
            coarse = release is not None and release.attribute.size != attribute.size
            rows.append(
                said.Release(
                    attribute=attribute.name, mechanism=choice.mechanism,
                    epsilon=choice.epsilon if mechanism_class(choice.mechanism).has_budget else None,
                    withheld=choice.withheld,
                    values=attribute.size if release is None else release.attribute.size,
                    coarsened=choice.values if coarse else None,
                    realised=0.0 if release is None else self.live.realised(release),
                )
            )  # fmt: skip
        names = set(self.opened.schema.names)
        groups = [
            replace_group(group, [name for name in group.attributes if name in names])
            for group in draft.groups
        ]
        return said.Plan(id=draft.id, name=draft.name, releases=rows, groups=groups)

    def snapshot(self, plan: str | None) -> Snapshot:
        """Return what an export needs; the active plan where none is named."""
        chosen = self.document.plan(self.document.active if plan is None else plan)
        return Snapshot(self.opened, self.history, self.revision, chosen.id)

    def pair(self, plan: str, secret: str, through: str) -> said.PairDetail:
        """Return one cell of the heat map in full."""
        draft = self.document.plan(plan)
        known, made = self.opened.known(draft), self.opened.plan(self.document, draft)
        view, release = self.document.settings.adversary.view, made[through]
        known.schema.index(secret)
        channel = made.channels(view)[through]
        if secret == through:
            bound = direct_leakage(known, channel, secret).upper
            curve, most = [], channel.epsilon
        else:
            bound = pair_leakage(known, channel, secret, through).upper
            most = saturation(known, secret, through).value
            curve = (
                []
                if release.epsilon is None
                else [
                    (
                        epsilon,
                        real(
                            pair_leakage(known, channel_of(release.at(epsilon), view), secret, through).value
                        ),
                    )
                    for epsilon in _CURVE
                ]
            )
        shown = figure(bound, adversary_of(view, is_model=known.is_model))
        return said.PairDetail(
            secret=secret, through=through, figure=shown, saturation=real(most), curve=curve
        )

    def steps(self) -> said.History:
        """Return what undo and redo would do."""
        return said.History(undo=self.history.undo_words, redo=self.history.redo_words)

    def state(self) -> said.State:
        """Return everything that the page shows."""
        table = self.opened.table
        document = self.document
        return said.State(
            revision=self.revision, saved=self.saved,
            table=said.TableInfo(
                name=self.place.name, rows=table.rows, columns=len(self.columns),
                set_aside=len(table.set_aside), notes=table.notes(),
            ),
            banner=said.Banner(text=BANNER, is_raw=True), columns=self.columns, settings=document.settings,
            plans=self.plans(), active=document.active, mechanisms=menu(),
            figures=[self.figures[draft.id] for draft in document.plans], history=self.steps(),
            work=list(self.work.values()), results=[found.result for found in self.found.values()],
        )  # fmt: skip


def replace_group(group: said.Group, names: list[str]) -> said.Group:
    """Return a group of other attributes."""
    return group.model_copy(update={"attributes": names})


def menu() -> list[said.Mechanism]:
    """Return the mechanisms that may be chosen."""
    return [
        said.Mechanism(name=name, title=title, has_budget=mechanism_class(name).has_budget, words=words)
        for name, (title, words) in MENU.items()
    ]


def fresh(history: History) -> History:
    """Return a history without the steps before and after the present."""
    return replace(history, steps=(history.steps[history.at],), at=0)
