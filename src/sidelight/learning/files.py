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
from typing import Any

import numpy as np

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import strict_json, write_atomically, write_text
from sidelight.foundation.strict import validated
from sidelight.labels.omega import Omega
from sidelight.labels.responses import BasicResponse
from sidelight.learning.answering import Answer
from sidelight.learning.decision import DecisionTree
from sidelight.learning.file_parts import (
    AnswersFile,
    OmegaFile,
    RoundFile,
    StateFile,
    choice_to_data,
    group_to_data,
)
from sidelight.learning.growing import Evidence
from sidelight.learning.rounds import Round, TreeRounds
from sidelight.mechanisms.reports import Reports
from sidelight.protocols.files import check_version, parsed_text, read_data

STATE_VERSION = 1
_LARGEST_STATE = 1 << 30


def save_state(state: TreeRounds, path: str | Path) -> Path:
    """Write the collector's state between two rounds; the file appears whole or not at all."""
    questions = list(state.evidence)
    head = {
        "version": STATE_VERSION,
        "settings": asdict(state.settings),
        "sizes": list(state.sizes),
        "classes": state.classes,
        "omegas": [OmegaFile.of(omega) for omega in state.omegas],
        "number": state.number,
        "tree": state.tree.to_data(),
        "groups": [group_to_data(group) for group in state.groups],
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
    data = parsed_text(text, str(path), strict_json)
    check_version(data, str(path), STATE_VERSION, "state of a tree's rounds")
    return _state(validated(StateFile, data, str(path)), totals, str(path))


def _state(head: StateFile, totals: dict[str, Any], label: str) -> TreeRounds:
    try:
        settings = head.settings.made()
        omegas = tuple(Omega(np.array(part.curve), part.source, part.confidence) for part in head.omegas)
        questions = [part.made() for part in head.questions]
        groups = tuple(part.made() for part in head.groups)
        tree = DecisionTree.from_data(head.tree)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
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
        and all(
            part.total.dtype == np.float64
            and part.total.shape == (question.cells, head.classes)
            and np.isfinite(part.total).all()
            for question, part in evidence.items()
        )
        and all(group.fits(settings, head.sizes, len(tree.nodes)) for group in groups)
    )
    if not fits:
        raise InputError(f"{label} is damaged: its parts do not fit together; take an earlier state.")
    return TreeRounds(settings, tuple(head.sizes), head.classes, omegas, head.number, tree, groups, evidence)


def publish_round(asked: Round, path: str | Path) -> Path:
    """Write what the people are asked in a round as JSON."""
    choices = [[choice_to_data(choice) for choice in options] for options in asked.choices]
    data = {"version": STATE_VERSION, "round": asked.number, "tree": asked.tree.to_data(), "choices": choices}
    return write_text(path, json.dumps(data, allow_nan=False))


def read_round(path: str | Path) -> Round:
    """Read the round that `publish_round` wrote, strictly."""
    data = read_data(path)
    check_version(data, str(path), STATE_VERSION, "published round")
    found = validated(RoundFile, data, str(path))
    try:
        choices = tuple(tuple(part.made() for part in options) for options in found.choices)
        return Round(found.round, DecisionTree.from_data(found.tree), choices)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_answers(answers: Sequence[Answer], asked: Round, path: str | Path) -> Path:
    """Write what some people send in a round as JSON; nothing in it says who sent what."""
    sent = [
        {"group": part.group, "choice": part.choice, "report": part.report.values[0].tolist()}
        for part in answers
    ]
    simulated = any(part.report.is_simulation for part in answers)
    data = {"version": STATE_VERSION, "round": asked.number, "is_simulation": simulated, "answers": sent}
    return write_text(path, json.dumps(data))


def read_answers(path: str | Path, asked: Round) -> list[Answer]:
    """Read the answers that `write_answers` wrote, strictly; `add_up` checks each against its question."""
    data = read_data(path)
    check_version(data, str(path), STATE_VERSION, "file of answers")
    found = validated(AnswersFile, data, str(path))
    if found.round != asked.number:
        raise InputError(f"{path} answers round {found.round}; round {asked.number} is due.")
    is_packed = any(isinstance(choice.response, BasicResponse) for part in asked.choices for choice in part)
    kind, largest = (np.uint8, 255) if is_packed else (np.uint16, 65_535)
    if any(max(part.report) > largest for part in found.answers):
        raise InputError(f"{path} is damaged: a report holds a number above {largest}.")
    return [
        Answer(part.group, part.choice, Reports(np.array([part.report], kind), None, found.is_simulation))
        for part in found.answers
    ]
