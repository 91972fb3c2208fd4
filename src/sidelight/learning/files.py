"""Files of the tree's rounds: the collector's state, and what is published to the people.

The state is one NumPy archive: a JSON text and the evidence as arrays. A published round is JSON.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sidelight.collection.labels.budgets import Ledger
from sidelight.collection.labels.omega import Omega
from sidelight.collection.labels.responses import BasicResponse, HeadsResponse
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically, write_text
from sidelight.learning.decision import DecisionTree
from sidelight.learning.growing import Evidence
from sidelight.learning.questions import Question
from sidelight.learning.rounds import Choice, Group, Round, TreeRounds, TreeSettings

STATE_VERSION = 1


def save_state(state: TreeRounds, path: str | Path) -> Path:
    """Write the collector's state between two rounds; the file appears whole or not at all."""
    questions = list(state.evidence)
    head = {
        "version": STATE_VERSION,
        "settings": asdict(state.settings),
        "sizes": list(state.sizes),
        "classes": state.classes,
        "omegas": [
            {"curve": omega.curve.tolist(), "source": omega.source, "confidence": omega.confidence}
            for omega in state.omegas
        ],
        "number": state.number,
        "tree": state.tree.to_data(),
        "groups": [_group_to_data(group) for group in state.groups],
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
    """Read the state that `save_state` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            head = json.loads(archive["head"].tobytes())
            totals = [archive[f"evidence_{i}"] for i in range(len(head["questions"]))]
        return _state_from_data(head, totals)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not the state of a tree's rounds, or it is damaged.") from None


def _state_from_data(head: dict[str, Any], totals: list[Any]) -> TreeRounds:
    if head["version"] != STATE_VERSION:
        raise InputError(f"the state has version {head['version']!r}; this release reads {STATE_VERSION}.")
    questions = [_question(entry) for entry in head["questions"]]
    evidence = {
        question: Evidence(total, weight, squares)
        for question, total, (weight, squares) in zip(questions, totals, head["weights"], strict=True)
    }
    return TreeRounds(
        TreeSettings(**head["settings"]),
        tuple(head["sizes"]),
        head["classes"],
        tuple(
            Omega(np.array(entry["curve"]), entry["source"], entry["confidence"]) for entry in head["omegas"]
        ),
        head["number"],
        DecisionTree.from_data(head["tree"]),
        tuple(_group(entry) for entry in head["groups"]),
        evidence,
    )


def publish_round(asked: Round, path: str | Path) -> Path:
    """Write what the people are asked in a round as JSON."""
    return write_text(path, json.dumps(round_to_data(asked), allow_nan=False))


def read_round(path: str | Path) -> Round:
    """Read the round that `publish_round` wrote."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return round_from_data(data)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a published round, or it is damaged.") from None


def round_to_data(asked: Round) -> dict[str, Any]:
    """Return the round as plain data."""
    choices = [[_choice_to_data(choice) for choice in options] for options in asked.choices]
    return {"version": STATE_VERSION, "round": asked.number, "tree": asked.tree.to_data(), "choices": choices}


def round_from_data(data: dict[str, Any]) -> Round:
    """Return the round that `round_to_data` made plain."""
    choices = tuple(tuple(_choice(entry) for entry in options) for options in data["choices"])
    return Round(data["round"], DecisionTree.from_data(data["tree"]), choices)


def _choice_to_data(choice: Choice) -> dict[str, Any]:
    found: dict[str, Any] = {"attribute": choice.attribute, "turn": choice.turn, "omega": choice.omega}
    if choice.question is not None and choice.response is not None:
        found["question"] = asdict(choice.question)
        found["response"] = {"protocol": choice.response.name, **asdict(choice.response)}
    return found


def _choice(entry: dict[str, Any]) -> Choice:
    if "question" not in entry:
        return Choice(entry["attribute"], omega=entry["omega"], turn=entry["turn"])
    fields = dict(entry["response"])
    kind = HeadsResponse if fields.pop("protocol") == "khr" else BasicResponse
    return Choice(
        entry["attribute"], _question(entry["question"]), kind(**fields), entry["omega"], entry["turn"]
    )


def _group_to_data(group: Group) -> dict[str, Any]:
    question = None if group.question is None else asdict(group.question)
    return {
        "ledger": asdict(group.ledger),
        "drawn": list(group.drawn),
        "question": question,
        "width": group.width,
        "turn": group.turn,
    }


def _group(entry: dict[str, Any]) -> Group:
    fields = dict(entry["ledger"])
    fields["spent"] = tuple(fields["spent"])
    question = None if entry["question"] is None else _question(entry["question"])
    return Group(Ledger(**fields), tuple(entry["drawn"]), question, entry["width"], entry["turn"])


def _question(entry: dict[str, Any]) -> Question:
    return Question(
        tuple(entry["attributes"]),
        tuple(tuple(part) for part in entry["classes"]),
        tuple(entry["nodes"]),
    )
