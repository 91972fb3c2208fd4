"""What the page asks to be changed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sidelight.schema import Missing
from sidelight.studio.messages.base import Budget, ColumnKind, Limit, Message, Name, PlanId, PlanName, Share
from sidelight.studio.messages.plans import Adversary, Group, Secret


class SetBudget(Message):
    """Set the budget of attributes in a plan."""

    change: Literal["budget"] = "budget"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    epsilon: Budget


class SetMechanism(Message):
    """Set the mechanism of attributes in a plan."""

    change: Literal["mechanism"] = "mechanism"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    mechanism: str


class Withhold(Message):
    """Withhold attributes, or release them again."""

    change: Literal["withhold"] = "withhold"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    withheld: bool


class Coarsen(Message):
    """Tell fewer values of an attribute apart in a plan; None undoes it."""

    change: Literal["coarsen"] = "coarsen"
    plan: PlanId
    attribute: Name
    values: Annotated[int, Field(ge=2, le=65_536)] | None


class SetSecrets(Message):
    """Say what is secret, with limits and reasons, and the limit for all."""

    change: Literal["secrets"] = "secrets"
    secrets: list[Secret]
    limit: Limit | None


class SetAdversary(Message):
    """Say who tries to learn, and the delta."""

    change: Literal["adversary"] = "adversary"
    adversary: Adversary
    delta: Share | None


class SetColumn(Message):
    """Correct what a column is; None leaves a part to be inferred."""

    change: Literal["column"] = "column"
    name: Name
    kind: ColumnKind | None = None
    bins: Annotated[int, Field(ge=2, le=1_000)] | None = None
    missing: Missing | None = None


class SetGroups(Message):
    """Say which attributes' sliders move together."""

    change: Literal["groups"] = "groups"
    plan: PlanId
    groups: list[Group]


class SetExpectations(Message):
    """Say how many people will report, how precise frequencies should be, and what for."""

    change: Literal["expectations"] = "expectations"
    people: Annotated[int, Field(ge=1, le=10**12)]
    precision: Share
    purpose: Annotated[str, Field(max_length=10_000)] = ""


class AddPlan(Message):
    """Add a plan: a copy of another one, or one as at the start."""

    change: Literal["add plan"] = "add plan"
    copy_of: PlanId | None = None
    name: PlanName


class RemovePlan(Message):
    """Remove a plan; one stays."""

    change: Literal["remove plan"] = "remove plan"
    plan: PlanId


class RenamePlan(Message):
    """Give a plan another name."""

    change: Literal["rename plan"] = "rename plan"
    plan: PlanId
    name: PlanName


class SelectPlan(Message):
    """Work on another plan; no step of the history."""

    change: Literal["select plan"] = "select plan"
    plan: PlanId


class Adopt(Message):
    """Put what work has found in the place of a plan: a calibration, or one of several remedies."""

    change: Literal["adopt"] = "adopt"
    plan: PlanId
    work: str
    choice: Annotated[int, Field(ge=0)] = 0


class Undo(Message):
    """Take the last change back."""

    change: Literal["undo"] = "undo"


class Redo(Message):
    """Make the change again that was taken back last."""

    change: Literal["redo"] = "redo"


Change = Annotated[
    SetBudget | SetMechanism | Withhold | Coarsen | SetSecrets | SetAdversary | SetColumn | SetGroups
    | SetExpectations | AddPlan | RemovePlan | RenamePlan | SelectPlan | Adopt | Undo | Redo,
    Field(discriminator="change"),
]  # fmt: skip


class Changes(Message):
    """Changes that are made together, as one step of the history; the body of `POST /api/changes`."""

    changes: Annotated[list[Change], Field(min_length=1, max_length=1_000)]
    window: Annotated[str, Field(max_length=100)] = ""
    """Who asks, so that other windows are told and this one is not."""
    gesture: Annotated[str, Field(max_length=100)] = ""
    """Changes that follow each other with the same one, as of one drag, are one step of the history."""
