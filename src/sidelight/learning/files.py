"""Files of the tree's rounds: the collector's state, and what is published to the people.

The state is one NumPy archive: a JSON text and the evidence as arrays. A published round is JSON. Whoever
reads them may not have written them, so nothing is guessed and everything must fit together.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.files import write_atomically, write_text
from sidelight.foundation.strict import Strict, parsed_table, read_data, versioned
from sidelight.labels import BasicResponse, BudgetRule, HeadsResponse, LabelLedger, Omega, WidthRule
from sidelight.learning.decision_tree import DecisionTree, NodeFile, Whole
from sidelight.learning.participants import Answer
from sidelight.learning.questions import Question
from sidelight.learning.splits import Evidence
from sidelight.learning.tree_rounds import Choice, Group, Round, Scheme, TreeRounds, TreeSettings
from sidelight.mechanisms.reports import Reports

STATE_VERSION = 1
_LARGEST_STATE = 1 << 30
_Weight = Annotated[float, Field(ge=0)]


class _OmegaFile(Strict):
    curve: list[float]
    source: str
    confidence: float | None


class _SettingsFile(Strict):
    epsilon: float
    depth: int
    scheme: Scheme
    budgets: BudgetRule
    protocol: Literal["khr", "basic"]
    k: int | WidthRule
    averaging: Literal["precision", "equal"]
    caution: float


class _QuestionFile(Strict):
    attributes: list[Whole]
    classes: list[list[Whole]]
    nodes: list[Whole]

    def made(self) -> Question:
        if len(self.classes) != len(self.attributes) or any(
            sorted(set(part)) != list(range(max(part, default=-1) + 1)) or not part for part in self.classes
        ):
            raise InputError("a question's classes must be numbered 0, 1, 2, ... for each of its attributes.")
        classes = tuple(tuple(part) for part in self.classes)
        return Question(tuple(self.attributes), classes, tuple(self.nodes))


class _LedgerFile(Strict):
    epsilon: float
    rounds: int
    leakage: float
    product: float
    done: int
    spent: list[float]


class _GroupFile(Strict):
    ledger: _LedgerFile
    drawn: list[Whole]
    question: _QuestionFile | None
    width: int | None
    turn: int | None

    def made(self) -> Group:
        ledger = LabelLedger(**{**self.ledger.model_dump(), "spent": tuple(self.ledger.spent)})
        question = None if self.question is None else self.question.made()
        return Group(ledger, tuple(self.drawn), question, self.width, self.turn)


class _StateFile(Strict):
    version: int
    settings: _SettingsFile
    sizes: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    classes: Annotated[int, Field(ge=2)]
    omegas: list[_OmegaFile]
    number: int
    tree: list[NodeFile]
    groups: Annotated[list[_GroupFile], Field(min_length=1)]
    questions: list[_QuestionFile]
    weights: list[Annotated[tuple[_Weight, _Weight], Field(strict=False)]]


class _ResponseFile(Strict):
    values: int
    labels: int
    budget: float


class _HeadsFile(_ResponseFile):
    protocol: Literal["khr"]
    width: int
    omega: float


class _BasicFile(_ResponseFile):
    protocol: Literal["basic"]


_RESPONSES: dict[str, type[HeadsResponse | BasicResponse]] = {"khr": HeadsResponse, "basic": BasicResponse}


class _ChoiceFile(Strict):
    attribute: Whole | None
    turn: int | None
    omega: float
    question: _QuestionFile | None = None
    response: Annotated[_HeadsFile | _BasicFile, Field(discriminator="protocol")] | None = None

    def made(self) -> Choice:
        if self.question is None or self.response is None:
            return Choice(self.attribute, omega=self.omega, turn=self.turn)
        question, kind = self.question.made(), _RESPONSES[self.response.protocol]
        response = kind(**self.response.model_dump(exclude={"protocol"}))
        if response.values != question.cells:
            raise InputError(f"a response is for {response.values} cells, its question has {question.cells}.")
        return Choice(self.attribute, question, response, self.omega, self.turn)


class _RoundFile(Strict):
    version: int
    round: Annotated[int, Field(ge=1)]
    tree: list[NodeFile]
    choices: list[list[_ChoiceFile]]


class _AnswerFile(Strict):
    group: Whole
    choice: Whole
    report: Annotated[list[Whole], Field(min_length=1)]


class _AnswersFile(Strict):
    version: int
    round: Annotated[int, Field(ge=1)]
    is_simulation: bool
    answers: list[_AnswerFile]


def save_state(state: TreeRounds, path: str | Path) -> Path:
    """Write the collector's state between two rounds; the file appears whole or not at all."""
    questions = list(state.evidence)
    head = {
        "version": STATE_VERSION,
        "settings": asdict(state.settings),
        "sizes": list(state.sizes),
        "classes": state.classes,
        "omegas": [{**asdict(omega), "curve": omega.curve.tolist()} for omega in state.omegas],
        "number": state.number,
        "tree": state.tree.to_data(),
        "groups": [asdict(group) for group in state.groups],
        "questions": [asdict(question) for question in questions],
        "weights": [[state.evidence[q].weight, state.evidence[q].squares] for q in questions],
    }
    arrays = {f"evidence_{i}": state.evidence[question].total for i, question in enumerate(questions)}
    text = np.frombuffer(json.dumps(head, allow_nan=False).encode(), dtype=np.uint8)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, head=text, **arrays)

    return write_atomically(path, write)


def load_state(path: str | Path) -> TreeRounds:
    """Read the state that `save_state` wrote, strictly."""
    try:
        with zipfile.ZipFile(path) as archive:
            # What is compressed may unpack to anything: its size is checked before it is read.
            if sum(part.file_size for part in archive.infolist()) > _LARGEST_STATE:
                raise InputError(f"{path} is larger than any state, over {_LARGEST_STATE} bytes.")
        with np.load(path, allow_pickle=False) as arrays:
            text = arrays["head"].tobytes().decode("utf-8")
            totals = {name: arrays[name] for name in arrays.files if name != "head"}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(f"{path} is not the state of a tree's rounds, or it is damaged.") from None
    data = parsed_table(text, str(path))
    head = versioned(_StateFile, data, str(path), STATE_VERSION, "state of a tree's rounds")
    with naming(str(path)):
        state = _state(head, totals)
    if state is None:
        raise InputError(f"{path} is damaged: its parts do not fit together; take an earlier state.")
    return state


def _state(head: _StateFile, totals: dict[str, Any]) -> TreeRounds | None:
    """Return the state, or None where its parts do not fit together."""
    settings = TreeSettings(**head.settings.model_dump())
    omegas = tuple(Omega(np.array(part.curve), part.source, part.confidence) for part in head.omegas)
    questions = [part.made() for part in head.questions]
    groups = tuple(part.made() for part in head.groups)
    tree = DecisionTree.from_data(head.tree)
    evidence = {
        question: Evidence(np.asarray(totals.get(f"evidence_{i}")), *head.weights[i])
        for i, question in enumerate(questions)
        if i < len(head.weights)
    }
    fits = (
        0 <= head.number <= settings.depth
        and tuple(len(omega.curve) for omega in omegas) == tuple(head.sizes)
        and tree.fits(head.sizes, head.classes)
        and len(evidence) == len(questions) == len(head.weights) == len(totals)
        and all(question.fits(head.sizes, len(tree.nodes)) for question in questions)
        and all(part.fits(question.cells, head.classes) for question, part in evidence.items())
        and all(group.fits(settings, head.sizes, len(tree.nodes)) for group in groups)
    )
    if not fits:
        return None
    return TreeRounds(settings, tuple(head.sizes), head.classes, omegas, head.number, tree, groups, evidence)


def publish_round(asked: Round, path: str | Path) -> Path:
    """Write what the people are asked in a round as JSON."""
    choices = [[_choice_to_data(choice) for choice in options] for options in asked.choices]
    data = {"version": STATE_VERSION, "round": asked.number, "tree": asked.tree.to_data(), "choices": choices}
    return write_text(path, json.dumps(data, allow_nan=False))


def _choice_to_data(choice: Choice) -> dict[str, Any]:
    data: dict[str, Any] = {"attribute": choice.attribute, "turn": choice.turn, "omega": choice.omega}
    if choice.question is not None and choice.response is not None:
        data["question"] = asdict(choice.question)
        data["response"] = {"protocol": choice.response.name, **asdict(choice.response)}
    return data


def read_round(path: str | Path) -> Round:
    """Read the round that `publish_round` wrote, strictly."""
    file = versioned(_RoundFile, read_data(path), str(path), STATE_VERSION, "published round")
    with naming(str(path)):
        choices = tuple(tuple(part.made() for part in options) for options in file.choices)
        return Round(file.round, DecisionTree.from_data(file.tree), choices)


def write_answers(answers: Sequence[Answer], asked: Round, path: str | Path) -> Path:
    """Write what some people send in a round as JSON; nothing in it says who sent what."""
    sent = [{**vars(part), "report": part.report.values[0].tolist()} for part in answers]
    simulated = any(part.report.is_simulation for part in answers)
    data = {"version": STATE_VERSION, "round": asked.number, "is_simulation": simulated, "answers": sent}
    return write_text(path, json.dumps(data))


def read_answers(path: str | Path, asked: Round) -> list[Answer]:
    """Read the answers that `write_answers` wrote, strictly; `add_up` checks each against its question."""
    file = versioned(_AnswersFile, read_data(path), str(path), STATE_VERSION, "file of answers")
    if file.round != asked.number:
        raise InputError(f"{path} answers round {file.round}; round {asked.number} is due.")
    responses = [choice.response for options in asked.choices for choice in options if choice.response]
    word = responses[0].word if responses else np.uint16
    largest = np.iinfo(word).max
    if any(max(part.report) > largest for part in file.answers):
        raise InputError(f"{path} is damaged: a report holds a number above {largest}.")
    return [
        Answer(part.group, part.choice, Reports(np.array([part.report], word), None, file.is_simulation))
        for part in file.answers
    ]
