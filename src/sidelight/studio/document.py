"""The studio's document: what a person has decided, and what each change makes of it.

It is frozen data; a change gives another document, so that taking it back is to hold the one before. Its file
is read strictly: a state that somebody shares is input like any other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pydantic import Field

from sidelight.foundation.errors import InputError, check_choice, unknown
from sidelight.foundation.strict import Strict
from sidelight.plan import AT_DELTA
from sidelight.schema import Missing
from sidelight.studio import messages as said

MOST_PLANS = 4
MENU: dict[str, tuple[str, str]] = {
    "grr": ("Randomised response", "Few values: the true one, or another at random."),
    "oue": ("Optimised unary encoding", "Many values: one noisy bit for each."),
    "olh": ("Optimised local hashing", "Many values, short reports: a noisy bucket of a hash."),
    "ss": ("Subset selection", "A middling number of values: a set that likely holds the true one."),
    "hadamard": ("Hadamard response", "Very many values, the shortest reports."),
    "sue": ("Symmetric unary encoding", "Basic RAPPOR: zeros and ones flipped alike."),
    "the": ("Thresholded histogram", "Noise on every count, cut off at a threshold."),
    "identity": ("As it is", "The true value, without any noise."),
}
"""The mechanisms that the page offers, each with its name and when to choose it."""
WITHHELD = "withheld"
"""What plans call an attribute that is not released at all; here it is a state of its own."""


class Choice(Strict):
    """How one attribute is released; the budget is kept while it has none to spend."""

    mechanism: str = "grr"
    epsilon: said.Budget = 1.0
    withheld: bool = False
    values: int | None = None
    """To how many values it is coarsened."""


class Draft(Strict):
    """A plan as it was decided; attributes without a choice have the usual one."""

    id: said.PlanId
    name: str
    choices: dict[str, Choice] = Field(default_factory=dict)
    groups: list[said.Group] = Field(default_factory=list)

    def of(self, name: str) -> Choice:
        """Return how an attribute is released."""
        return self.choices.get(name, _USUAL)

    def chosen(self, names: Collection[str], change: Callable[[Choice], Choice]) -> Draft:
        """Return the plan with other choices for some attributes."""
        choices = {**self.choices, **{name: change(self.of(name)) for name in names}}
        return self.model_copy(update={"choices": choices})


class Fix(Strict):
    """What somebody stated about a column; None where it is inferred."""

    kind: said.ColumnKind | None = None
    bins: int | None = None
    missing: Missing | None = None


class Document(Strict):
    """Everything that was decided."""

    columns: dict[str, Fix] = Field(default_factory=dict)
    settings: said.Settings
    plans: list[Draft] = Field(min_length=1, max_length=MOST_PLANS)
    active: said.PlanId

    def plan(self, identity: str) -> Draft:
        """Return a plan by its id."""
        for draft in self.plans:
            if draft.id == identity:
                return draft
        raise unknown("plan", identity, [draft.id for draft in self.plans])

    def with_plan(self, draft: Draft) -> Document:
        """Return the document with this plan in the place of the one with its id."""
        self.plan(draft.id)
        plans = [draft if item.id == draft.id else item for item in self.plans]
        return self.model_copy(update={"plans": plans})


_USUAL = Choice()


@dataclass(frozen=True)
class Known:
    """What a change may name: the attributes and columns, sizes to coarsen to, and plans that work found."""

    attributes: Collection[str]
    columns: Collection[str]
    coarser: Mapping[str, Collection[int]]
    found: Callable[[str, int], Mapping[str, Choice]]

    def check(self, names: Collection[str]) -> None:
        """Raise unless all names are attributes."""
        for name in names:
            if name not in self.attributes:
                raise unknown("attribute", name, self.attributes)


def first_document(people: int, settings: said.Settings | None = None) -> Document:
    """Return the document that a table starts with: randomised response at budget 1, no limits.

    Settings that name no people are about as many as the table has.
    """
    usual = said.Settings(
        secrets=[], limit=None, adversary=said.Adversary(), delta=None, people=max(people, 1), precision=0.02,
        purpose="",
    )  # fmt: skip
    if settings is not None and settings.people:
        usual = settings
    elif settings is not None:
        usual = settings.model_copy(update={"people": usual.people})
    return Document(settings=usual, plans=[Draft(id="plan-1", name="Plan 1")], active="plan-1")


def changed(document: Document, change: said.Change, known: Known) -> Document:
    """Return the document after a change that is no step in its history, or raise what is wrong with it."""
    match change:
        case said.SetBudget() | said.SetMechanism() | said.Withhold() | said.Coarsen():
            return _released(document, change, known)
        case said.SetSecrets() | said.SetAdversary() | said.SetExpectations():
            return _settled(document, change, known)
        case said.SetColumn():
            return _fixed(document, change, known)
        case said.SetGroups():
            draft = document.plan(change.plan)
            for group in change.groups:
                known.check(group.attributes)
            return document.with_plan(draft.model_copy(update={"groups": list(change.groups)}))
        case said.Adopt():
            draft = document.plan(change.plan)
            choices = {**draft.choices, **known.found(change.work, change.choice)}
            return document.with_plan(draft.model_copy(update={"choices": choices}))
        case said.AddPlan() | said.RemovePlan() | said.RenamePlan() | said.SelectPlan():
            return _planned(document, change)
        case _:
            raise InputError(f"{change.change!r} is a step in the history, which stands alone.")


def _released(
    document: Document,
    change: said.SetBudget | said.SetMechanism | said.Withhold | said.Coarsen,
    known: Known,
) -> Document:
    """Return the document with attributes released in another way."""
    draft = document.plan(change.plan)
    names = [change.attribute] if isinstance(change, said.Coarsen) else change.attributes
    known.check(names)
    update: dict[str, object]
    match change:
        case said.SetBudget():
            update = {"epsilon": change.epsilon}
        case said.SetMechanism():
            check_choice("mechanism", change.mechanism, MENU)
            update = {"mechanism": change.mechanism}
        case said.Withhold():
            update = {"withheld": change.withheld}
        case said.Coarsen():
            if change.values is not None and change.values not in known.coarser[change.attribute]:
                sizes = ", ".join(map(str, known.coarser[change.attribute])) or "nothing less"
                raise InputError(f"{change.attribute!r} can be coarsened to {sizes}, got {change.values}.")
            update = {"values": change.values}
    draft = draft.chosen(names, lambda choice: choice.model_copy(update=update))
    if all(draft.of(name).withheld for name in known.attributes):
        raise InputError("a plan must release at least one attribute; release another one first.")
    return document.with_plan(draft)


def _settled(
    document: Document, change: said.SetSecrets | said.SetAdversary | said.SetExpectations, known: Known
) -> Document:
    """Return the document with other settings for all plans."""
    update: dict[str, object]
    match change:
        case said.SetSecrets():
            names = [secret.name for secret in change.secrets]
            known.check(names)
            if len(set(names)) < len(names):
                raise InputError("a secret is listed twice; list it once.")
            update = {"secrets": list(change.secrets), "limit": change.limit}
        case said.SetAdversary():
            check_adversary(change.adversary, change.delta)
            update = {"adversary": change.adversary, "delta": change.delta}
        case said.SetExpectations():
            update = {"people": change.people, "precision": change.precision, "purpose": change.purpose}
    return document.model_copy(update={"settings": document.settings.model_copy(update=update)})


def check_adversary(adversary: said.Adversary, delta: float | None) -> None:
    """Raise if nothing would be computed for the adversary who is to decide."""
    decider = adversary.decide_by
    if decider in AT_DELTA and delta is None:
        raise InputError(f"what {decider!r} learns is told at delta; set a delta, as 0.01.")
    offered = (None, "report", "table", "population", *(("guess",) if adversary.view == "guess" else ()))
    if decider not in offered:
        raise InputError(f"the studio has no figures for {decider!r}; choose {offered[1:]}.")


def _fixed(document: Document, change: said.SetColumn, known: Known) -> Document:
    """Return the document with a column corrected; a plan's coarsening of it is void."""
    if change.name not in known.columns:
        raise unknown("column", change.name, known.columns)
    fix = Fix(kind=change.kind, bins=change.bins, missing=change.missing)
    columns = {**document.columns, change.name: fix}
    if fix == Fix():
        del columns[change.name]
    plans = [
        draft.chosen([change.name], lambda choice: choice.model_copy(update={"values": None}))
        if change.name in draft.choices
        else draft
        for draft in document.plans
    ]
    return document.model_copy(update={"columns": columns, "plans": plans})


def _planned(
    document: Document, change: said.AddPlan | said.RemovePlan | said.RenamePlan | said.SelectPlan
) -> Document:
    """Return the document with a plan more, less, renamed or selected."""
    plans = document.plans
    match change:
        case said.AddPlan():
            if len(plans) >= MOST_PLANS:
                raise InputError(f"{MOST_PLANS} plans stand side by side at most; remove one first.")
            identity = f"plan-{secrets.token_hex(4)}"
            like = Draft(id=identity, name=change.name)
            if change.copy_of is not None:
                update = {"id": identity, "name": change.name}
                like = document.plan(change.copy_of).model_copy(update=update)
            return document.model_copy(update={"plans": [*plans, like], "active": identity})
        case said.RemovePlan():
            document.plan(change.plan)
            if len(plans) == 1:
                raise InputError("one plan must stay; add another one first.")
            kept = [draft for draft in plans if draft.id != change.plan]
            active = document.active if document.active != change.plan else kept[0].id
            return document.model_copy(update={"plans": kept, "active": active})
        case said.RenamePlan():
            draft = document.plan(change.plan)
            return document.with_plan(draft.model_copy(update={"name": change.name}))
        case said.SelectPlan():
            return document.model_copy(update={"active": document.plan(change.plan).id})


def in_words(change: said.Change) -> str:
    """Say what a change does, for the buttons of undo and redo."""
    match change:
        case said.SetBudget() | said.SetMechanism() | said.Withhold():
            some = (
                change.attributes[0]
                if len(change.attributes) == 1
                else f"{len(change.attributes)} attributes"
            )
            what = {"budget": "budget of", "mechanism": "mechanism of", "withhold": "withholding of"}
            return f"{what[change.change]} {some}"
        case said.Coarsen():
            return f"coarsening of {change.attribute}"
        case said.SetColumn():
            return f"correction of {change.name}"
        case said.Adopt():
            return "adopted plan"
        case said.SetExpectations():
            return "expectations"
        case _:
            return change.change
