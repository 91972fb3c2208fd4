"""The steps of a document that can be taken back, and the file that keeps them.

A state file is strict JSON with a version. Plans that several steps share are written once. It holds names
and decisions, never a row of the table, so that it can be shared; the key of open pages is in the server's
own file alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pydantic import Field

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import strict_json
from sidelight.foundation.strict import Strict, parsed_text, versioned
from sidelight.studio import messages as said
from sidelight.studio.document import Document, Draft, Fix

STATE_VERSION = 1
MOST_STEPS = 100
LARGEST_STATE = 32 << 20


@dataclass(frozen=True)
class Step:
    """A document, and what led to it, in words."""

    document: Document
    words: str = ""


@dataclass(frozen=True)
class History:
    """All steps that are known, and which one is present.

    Attributes:
        steps: the oldest first; those after the present one were taken back.
        at: the place of the present one.
        gesture: of the last change; another one with the same takes its place.
    """

    steps: tuple[Step, ...]
    at: int = 0
    gesture: str = field(default="", compare=False)

    @property
    def present(self) -> Document:
        """The document as it is."""
        return self.steps[self.at].document

    @property
    def undo_words(self) -> str | None:
        """What would be taken back."""
        return self.steps[self.at].words if self.at > 0 else None

    @property
    def redo_words(self) -> str | None:
        """What would be done again."""
        return self.steps[self.at + 1].words if self.at + 1 < len(self.steps) else None

    def then(self, document: Document, words: str, gesture: str = "") -> History:
        """Return the history with another step; one of the same gesture as the last takes its place."""
        is_same = bool(gesture) and gesture == self.gesture and self.at > 0
        kept = self.steps[: self.at if is_same else self.at + 1]
        steps = (*kept, Step(document, words))[-MOST_STEPS:]
        return History(steps, len(steps) - 1, gesture)

    def in_place(self, document: Document) -> History:
        """Return the history whose present is this document, as when another plan is selected."""
        steps = list(self.steps)
        steps[self.at] = replace(steps[self.at], document=document)
        return replace(self, steps=tuple(steps))

    def moved(self, by: int) -> History:
        """Return the history a step back (-1) or forth (1)."""
        if not 0 <= self.at + by < len(self.steps):
            raise InputError("there is nothing to take back." if by < 0 else "there is nothing to do again.")
        return History(self.steps, self.at + by)


class _StepFile(Strict):
    words: str = Field(max_length=20_000)
    columns: dict[str, Fix]
    settings: said.Settings
    plans: list[int] = Field(min_length=1, max_length=4)
    active: str


class StateFile(Strict):
    """A state as it is written."""

    version: int
    studio: str
    """What the table is called."""
    revision: int = Field(ge=0)
    at: int = Field(ge=0)
    steps: list[_StepFile] = Field(min_length=1, max_length=MOST_STEPS)
    drafts: list[Draft]
    key: str | None = None
    """What the cookie of open pages holds; None in a file that is shared."""


def state_text(history: History, table: str, revision: int, key: str | None = None) -> str:
    """Return a state file."""
    places: dict[int, int] = {}
    drafts: list[Draft] = []
    for step in history.steps:
        for draft in step.document.plans:
            if id(draft) not in places:  # steps share the plans that they did not change
                places[id(draft)] = len(drafts)
                drafts.append(draft)
    steps = [
        _StepFile(
            words=step.words, columns=step.document.columns, settings=step.document.settings,
            plans=[places[id(draft)] for draft in step.document.plans], active=step.document.active,
        )
        for step in history.steps
    ]  # fmt: skip
    made = StateFile(
        version=STATE_VERSION, studio=table, revision=revision, at=history.at, steps=steps, drafts=drafts,
        key=key,
    )  # fmt: skip
    return made.model_dump_json(exclude_defaults=True) + "\n"


def read_state(text: str, label: str) -> tuple[History, StateFile]:
    """Return the history that a state file holds, and the file itself; strictly."""
    if len(text) > LARGEST_STATE:
        raise InputError(f"{label} is too large for a state of the studio.")
    rule = "it must be a file that the studio has written."
    data = parsed_text(text, label, strict_json, "is not valid JSON: {}")
    parsed = versioned(StateFile, data, label, STATE_VERSION, "studio state", rule)
    if parsed.at >= len(parsed.steps) or any(
        not 0 <= place < len(parsed.drafts) for step in parsed.steps for place in step.plans
    ):
        raise InputError(f"{label} names a step or a plan that it does not hold.")
    steps = tuple(
        Step(
            Document(
                columns=step.columns, settings=step.settings, active=step.active,
                plans=[parsed.drafts[place] for place in step.plans],
            ),
            step.words,
        )
        for step in parsed.steps
    )  # fmt: skip
    for step in steps:
        step.document.plan(step.document.active)
        if len({draft.id for draft in step.document.plans}) < len(step.document.plans):
            raise InputError(f"{label} has two plans with one id.")
    return History(steps, parsed.at), parsed
