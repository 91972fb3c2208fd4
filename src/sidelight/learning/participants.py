"""The people's side of a tree's rounds: each person draws a choice, answers it and keeps a ledger.

`answer` simulates all people at once. A `Participant` is one person's device in a real collection: it takes
neither the collector's omega nor its budgets on trust, and refuses a round that would break the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import BasicResponse, HeadsResponse, LabelLedger, LabelledRows, Omega
from sidelight.labels.collection import deal
from sidelight.learning.questions import Question
from sidelight.learning.tree_rounds import Key, Round, TreeSettings, question_omega
from sidelight.mechanisms.mechanism import Aggregate
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True, eq=False)
class Answers:
    """The added-up reports of each (group, choice) in a round, and each person's group afterwards."""

    aggregates: Mapping[Key, Aggregate]
    groups: Whole


def answer(asked: Round, rows: LabelledRows, groups: Whole, *, seed: int | None = None) -> Answers:
    """Answer a round on the people's side: each person draws one of the group's choices and reports.

    Groups are those of each person, (people,); the seed is for simulation, without one the noise is secure.
    """
    if len(groups) != len(rows):
        raise InputError(f"there must be one group for each of {len(rows)} people, got {len(groups)}.")
    if len(groups) and not 0 <= groups.min() <= groups.max() < len(asked.choices):
        raise InputError(
            f"`groups` must be from 0 to {len(asked.choices) - 1}, as the round before left them, got "
            f"{groups.min()} to {groups.max()}."
        )
    starts = np.cumsum([0, *(len(options) for options in asked.choices)])
    after = np.empty(len(rows), dtype=np.int64)
    aggregates: dict[Key, Aggregate] = {}
    stream = f"round/{asked.number}"
    order = np.argsort(groups, kind="stable")  # one sort finds the members of all groups
    ends = np.searchsorted(groups[order], np.arange(len(asked.choices) + 1))
    for number, options in enumerate(asked.choices):
        members = order[ends[number] : ends[number + 1]]
        drawn = deal(len(members), len(options), seed=seed, stream=f"{stream}/{number}")
        after[members] = starts[number] + drawn
        for place, choice in enumerate(options):
            part = rows[members[drawn == place]]
            if len(part) and choice.question is not None and choice.response is not None:
                noise = derive_seed(seed, f"{stream}/{number}/{place}")
                cells = choice.question.code(part.codes, asked.tree)
                reports = choice.response.randomise(cells, part.labels, seed=noise)
                aggregates[number, place] = choice.response.aggregate(reports)
    return Answers(aggregates, after)


@dataclass(frozen=True, eq=False)
class Answer:
    """What one person sends in a round: the group and the choice, which are chance, and the report."""

    group: int
    choice: int
    report: Reports


@dataclass(frozen=True)
class Participant:
    """One person's side of all rounds; make one with `Participant.join`, and keep it between rounds.

    Attributes:
        omegas: of each attribute, as published at the start; the promise rests on them.
        ledger: what this person's reports have spent.
        group: the group after the rounds so far.
        turn: the only round to answer in; None before it is drawn, or if all are answered.
    """

    codes: tuple[int, ...]
    label: int
    omegas: tuple[Omega, ...]
    ledger: LabelLedger
    group: int = 0
    turn: int | None = None

    @classmethod
    def join(
        cls, settings: TreeSettings, omegas: Sequence[Omega], codes: Sequence[int], label: int
    ) -> Participant:
        """Take part with a coded record, on the published settings and omegas."""
        if len(codes) != len(omegas) or any(
            not 0 <= code < len(omega.curve) for code, omega in zip(codes, omegas, strict=False)
        ):
            raise InputError(f"`codes` must be one for each of {len(omegas)} attributes, got {codes!r}.")
        return cls(tuple(int(code) for code in codes), int(label), tuple(omegas), settings.ledger())

    def answer(self, asked: Round, *, seed: int | None = None) -> tuple[Participant, Answer | None]:
        """Return the participant's state after the round, and what to send; None in a silent round.

        Store the state before the answer is sent: a device that forgets an answer may give it twice. The seed
        is for simulation; without one the noise is secure.
        """
        if not 0 <= self.group < len(asked.choices):
            raise InputError(f"round {asked.number} knows no group {self.group}; was a round missed?")
        options = asked.choices[self.group]
        place = int(deal(1, len(options), seed=seed, stream=f"round/{asked.number}/choice")[0])
        choice = options[place]
        turn = choice.turn if self.turn is None else self.turn
        after = replace(self, group=asked.next_group(self.group, place), turn=turn)
        if choice.question is None or choice.response is None:
            return (after if turn is not None else replace(after, ledger=self.ledger.silent())), None
        ledger = self._spent(choice.question, choice.response)
        noise = derive_seed(seed, f"round/{asked.number}/report")
        cell = choice.question.code(np.array([self.codes]), asked.tree)
        report = choice.response.randomise(cell, [self.label], seed=noise)
        return replace(after, ledger=ledger), Answer(self.group, place, report)

    def _spent(self, question: Question, response: HeadsResponse | BasicResponse) -> LabelLedger:
        """Return this person's ledger after the response, by the published omegas; refuses to overspend."""
        if response.values != question.cells:
            raise InputError("the response does not fit its question; the published round is damaged.")
        for attribute, part in zip(question.attributes, question.classes, strict=True):
            if not 0 <= attribute < len(self.codes) or len(part) != len(self.omegas[attribute].curve):
                raise InputError("the question does not fit the record; the published round is damaged.")
        # The published one, not the one the round claims.
        omega = question_omega(question, self.omegas, response.width)
        return self.ledger.after(float(response.factor), omega, response.budget)


def add_up(asked: Round, answers: Sequence[Answer]) -> dict[Key, Aggregate]:
    """Return the added-up answers of each (group, choice), as `TreeRounds.receive` takes them."""
    sent: dict[Key, list[Reports]] = {}
    for part in answers:
        sent.setdefault((part.group, part.choice), []).append(part.report)
    return {
        (group, place): asked.response(group, place).aggregate(Reports.joined(reports))
        for (group, place), reports in sent.items()
    }
