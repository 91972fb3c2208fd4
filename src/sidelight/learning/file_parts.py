"""The parts of the rounds' files: each is checked when it is read, and makes the object it stands for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import Strict
from sidelight.labels.budgets import BudgetRule, Ledger
from sidelight.labels.omega import Omega
from sidelight.labels.responses import BasicResponse, HeadsResponse
from sidelight.labels.widths import WidthRule
from sidelight.learning.decision import NodeFile
from sidelight.learning.questions import Question
from sidelight.learning.rounds import Choice, Group, Scheme, TreeSettings

Whole = Annotated[int, Field(ge=0)]


class OmegaFile(Strict):
    """The adversary's belief about one attribute."""

    curve: list[float]
    source: str
    confidence: float | None

    @staticmethod
    def of(omega: Omega) -> dict[str, Any]:
        """Return it as plain data."""
        return {"curve": omega.curve.tolist(), "source": omega.source, "confidence": omega.confidence}


class SettingsFile(Strict):
    """How the tree is grown."""

    epsilon: float
    depth: int
    scheme: Scheme
    budgets: BudgetRule
    protocol: Literal["khr", "basic"]
    k: int | WidthRule
    averaging: Literal["precision", "equal"]
    caution: float

    def made(self) -> TreeSettings:
        """Return the settings."""
        return TreeSettings(**self.model_dump())


class QuestionFile(Strict):
    """A partition of the records."""

    attributes: list[Whole]
    classes: list[list[Whole]]
    nodes: list[Whole]

    def made(self) -> Question:
        """Return the question after checking that its classes are numbered without gaps."""
        if len(self.classes) != len(self.attributes) or any(
            sorted(set(part)) != list(range(max(part, default=-1) + 1)) or not part for part in self.classes
        ):
            raise InputError("a question's classes must be numbered 0, 1, 2, ... for each of its attributes.")
        classes = tuple(tuple(part) for part in self.classes)
        return Question(tuple(self.attributes), classes, tuple(self.nodes))


class LedgerFile(Strict):
    """What a group has spent."""

    epsilon: float
    rounds: int
    leakage: float
    product: float
    done: int
    spent: list[float]


class GroupFile(Strict):
    """People with the same history."""

    ledger: LedgerFile
    drawn: list[Whole]
    question: QuestionFile | None
    width: int | None
    turn: int | None

    def made(self) -> Group:
        """Return the group."""
        ledger = Ledger(**{**self.ledger.model_dump(), "spent": tuple(self.ledger.spent)})
        question = None if self.question is None else self.question.made()
        return Group(ledger, tuple(self.drawn), question, self.width, self.turn)


class StateFile(Strict):
    """The collector's state between rounds, without the evidence."""

    version: int
    settings: SettingsFile
    sizes: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    classes: Annotated[int, Field(ge=2)]
    omegas: list[OmegaFile]
    number: int
    tree: list[NodeFile]
    groups: Annotated[list[GroupFile], Field(min_length=1)]
    questions: list[QuestionFile]
    weights: list[
        Annotated[tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]], Field(strict=False)]
    ]


class HeadsFile(Strict):
    """A kHR response."""

    protocol: Literal["khr"]
    values: int
    labels: int
    budget: float
    width: int
    omega: float

    def made(self) -> HeadsResponse:
        """Return the response."""
        return HeadsResponse(**self.model_dump(exclude={"protocol"}))


class BasicFile(Strict):
    """A response by the basic solution."""

    protocol: Literal["basic"]
    values: int
    labels: int
    budget: float

    def made(self) -> BasicResponse:
        """Return the response."""
        return BasicResponse(**self.model_dump(exclude={"protocol"}))


class ChoiceFile(Strict):
    """What a person may draw."""

    attribute: Whole | None
    turn: int | None
    omega: float
    question: QuestionFile | None = None
    response: Annotated[HeadsFile | BasicFile, Field(discriminator="protocol")] | None = None

    def made(self) -> Choice:
        """Return the choice after checking that the response fits its question."""
        if self.question is None or self.response is None:
            return Choice(self.attribute, omega=self.omega, turn=self.turn)
        question, response = self.question.made(), self.response.made()
        if response.values != question.cells:
            raise InputError(f"a response is for {response.values} cells, its question has {question.cells}.")
        return Choice(self.attribute, question, response, self.omega, self.turn)


class RoundFile(Strict):
    """A published round."""

    version: int
    round: Annotated[int, Field(ge=1)]
    tree: list[NodeFile]
    choices: list[list[ChoiceFile]]


class AnswerFile(Strict):
    """What one person sends."""

    group: Whole
    choice: Whole
    report: Annotated[list[Whole], Field(min_length=1)]


class AnswersFile(Strict):
    """What people send in a round."""

    version: int
    round: Annotated[int, Field(ge=1)]
    is_simulation: bool
    answers: list[AnswerFile]


def choice_to_data(choice: Choice) -> dict[str, Any]:
    """Return a choice as plain data."""
    found: dict[str, Any] = {"attribute": choice.attribute, "turn": choice.turn, "omega": choice.omega}
    if choice.question is not None and choice.response is not None:
        found["question"] = asdict(choice.question)
        found["response"] = {"protocol": choice.response.name, **asdict(choice.response)}
    return found


def group_to_data(group: Group) -> dict[str, Any]:
    """Return a group as plain data."""
    return asdict(group)
