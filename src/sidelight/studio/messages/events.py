"""Events, as JSON in the data of server-sent events whose name is their `event`; and all that is said."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sidelight.studio.messages.base import Message
from sidelight.studio.messages.changes import Changes
from sidelight.studio.messages.figures import PairDetail, PlanFigures
from sidelight.studio.messages.state import State, Update, WorkState
from sidelight.studio.messages.work import WorkOrder, WorkResult


class FiguresEvent(Message):
    """Figures of a plan were refined."""

    event: Literal["figures"] = "figures"
    figures: PlanFigures


class WorkEvent(Message):
    """Work goes on, or ended."""

    event: Literal["work"] = "work"
    work: WorkState


class ResultEvent(Message):
    """Work has found something."""

    event: Literal["result"] = "result"
    result: WorkResult


class SavedEvent(Message):
    """The state was written to its file."""

    event: Literal["saved"] = "saved"
    revision: int
    problem: str = ""
    """Why it could not be, where it could not."""


class HelloEvent(Message):
    """The stream begins: who has another revision fetches the state."""

    event: Literal["hello"] = "hello"
    revision: int


class ChangedEvent(Message):
    """Another window changed the state: fetch it again."""

    event: Literal["changed"] = "changed"
    revision: int
    window: str


StudioEvent = Annotated[
    HelloEvent | FiguresEvent | WorkEvent | ResultEvent | SavedEvent | ChangedEvent,
    Field(discriminator="event"),
]


class Problem(Message):
    """Why something was refused (application/problem+json)."""

    title: str
    status: int
    detail: str


class Everything(Message):
    """All that is said, in one schema; nothing is sent as such."""

    state: State
    update: Update
    changes: Changes
    order: WorkOrder
    detail: PairDetail
    problem: Problem
    event: StudioEvent
