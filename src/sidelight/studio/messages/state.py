"""Everything that a page needs, and what a change makes of it."""

from __future__ import annotations

from typing import Literal

from sidelight.studio.messages.base import Limit, Message, Share, Status, WorkKind
from sidelight.studio.messages.figures import PlanFigures
from sidelight.studio.messages.plans import Adversary, Banner, Column, Mechanism, Plan, Secret, TableInfo
from sidelight.studio.messages.work import WorkResult


class Settings(Message):
    """What holds for all plans."""

    secrets: list[Secret]
    """Every attribute is one where nobody has named any."""
    limit: Limit | None
    adversary: Adversary
    delta: Share | None
    people: int
    """How many people are expected to report."""
    precision: Share
    """How precise frequencies should be."""
    purpose: str


class History(Message):
    """What undo and redo would do, in words; None where there is nothing."""

    undo: str | None
    redo: str | None


class WorkState(Message):
    """Long work, on the way or done."""

    id: str
    kind: WorkKind
    plan: str
    status: Status
    text: str
    done: int
    of: int | None
    left: float | None = None
    """Seconds that it will take, about; None where nobody knows."""
    revision: int


class State(Message):
    """Everything that the page shows."""

    version: Literal[1] = 1
    revision: int
    table: TableInfo
    banner: Banner
    columns: list[Column]
    settings: Settings
    plans: list[Plan]
    active: str
    mechanisms: list[Mechanism]
    figures: list[PlanFigures]
    history: History
    work: list[WorkState]
    results: list[WorkResult]
    saved: int
    """The last revision that opening the same files again would bring back."""


class Update(Message):
    """What a change changed; None where a part is as it was. Figures of plans that are not listed stay."""

    revision: int
    columns: list[Column] | None = None
    settings: Settings | None = None
    plans: list[Plan] | None = None
    active: str
    figures: list[PlanFigures]
    history: History
    milliseconds: float
    """How long the server worked on it."""
