"""What people send and what a server keeps of it: the reports of whole records, and their sums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sidelight.foundation.arrays import Positions
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.html import html_table
from sidelight.foundation.randomness import permutation
from sidelight.foundation.strict import Strict
from sidelight.mechanisms import Aggregate, Reports

if TYPE_CHECKING:
    from sidelight.protocols.protocol import Protocol


Division = Literal["none", "people", "budget"]
"""What a panel divides over its rounds: nothing, its people, or each person's budget."""


class FirstPhase(Strict):
    """What reports of a first phase say about the collection they open: its method, and a record's budget.

    The second phase must leave out exactly those who took part in the first, so that nobody reports twice:
    the share of people in it travels with the reports.
    """

    method: str
    epsilon: float
    share: float


class PanelRound(Strict):
    """Which round of which panel reports are of, and who has reported before; nobody is named.

    Attributes:
        panel: what the panel's memory is called, drawn at random; "" where nothing is remembered.
        number: the round, from 1 on.
        rounds: how many rounds there are to be.
        people: how many reported in the round, in all its files together.
        stayed: for each earlier round, how many of them had reported in it; None where that is not known.
        kept: the attributes whose reports rest on a response that is kept.
        epoch: how many rounds a kept response lasts; None for all of them.
        follow_changes: whether a new value within an epoch is reported.
        division: what is divided over the rounds: "none", "people" or "budget".
    """

    panel: str
    number: int = Field(ge=1)
    rounds: int
    people: int = Field(ge=0)
    stayed: list[int] | None = None
    kept: list[str] = Field(default_factory=list)
    epoch: int | None = Field(default=None, ge=1)
    follow_changes: bool = False
    division: Division = "none"

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.number > self.rounds:
            raise ValueError(f"round {self.number} of {self.rounds} cannot be")
        stayed = self.stayed
        if stayed is not None and (
            len(stayed) != self.number - 1 or not all(0 <= count <= self.people for count in stayed)
        ):
            raise ValueError("stayed must have a number of the people for each earlier round")
        return self

    def epoch_of(self, number: int) -> int:
        """Return the epoch of a round, from 0 on."""
        return 0 if self.epoch is None else (number - 1) // self.epoch


@dataclass(frozen=True, eq=False)
class RecordReports:
    """The reports of many people about several attributes.

    Attributes:
        parts: one for each of the protocol's labels: the reports of those who sent that part.
        senders: for each part the rows of those who sent it, or None where everyone did.
        is_simulation: whether the noise came from a seed, so that it protects nobody.
        phase: the collection that they are the first phase of, if any.
        batch: the id of the whole batch that was read from a file; None for other reports.
        is_shuffled: whether the rows are in another order than the records that they are reports of.
        round: the round of a panel that they are of, if any.
    """

    protocol: Protocol
    parts: tuple[Reports, ...]
    senders: tuple[Positions | None, ...]
    people: int
    is_simulation: bool = False
    phase: FirstPhase | None = None
    batch: str | None = None
    is_shuffled: bool = False
    round: PanelRound | None = None

    def __len__(self) -> int:
        return self.people

    def __getitem__(self, rows: slice) -> RecordReports:
        """Return the reports of a run of people."""
        start, stop, step = rows.indices(self.people)
        if step != 1:
            raise invalid("rows", "a run without steps", rows)
        sent = []
        for part, senders in zip(self.parts, self.senders, strict=True):
            low, high = (start, stop) if senders is None else np.searchsorted(senders, [start, stop])
            sent.append((part[low:high], None if senders is None else senders[low:high] - start))
        parts, kept = zip(*sent, strict=True)
        return replace(self, parts=parts, senders=kept, people=max(stop - start, 0), batch=None)

    def _repr_html_(self) -> str:
        simulated = "; a simulation, which protects nobody" if self.is_simulation else ""
        caption = f"RecordReports({self.people} people, {self.protocol.name}{simulated})"
        rows = zip(self.protocol.labels, (len(part) for part in self.parts), strict=True)
        return html_table(caption, ("part", "reports"), rows)

    def __add__(self, other: RecordReports) -> RecordReports:
        return joined([self, other])

    def shuffled(self, key: bytes) -> RecordReports:
        """Return the reports in an order that only the key tells, see `permutation`."""
        order = permutation(key, self.people)
        places = np.empty(self.people, dtype=np.intp)
        places[order] = np.arange(self.people)
        sent = []
        for part, senders in zip(self.parts, self.senders, strict=True):
            moved = None if senders is None else places[senders]
            own = order if moved is None else np.argsort(moved)
            sent.append((part[own], None if moved is None else moved[own]))
        parts, kept = zip(*sent, strict=True)
        return replace(self, parts=parts, senders=kept, batch=None, is_shuffled=True)

    @property
    def collected(self) -> RecordReports:
        """The reports themselves; sums have none."""
        return self

    def aggregate(self) -> RecordSums:
        """Add the reports up."""
        return self.protocol.aggregate(self)


@dataclass(frozen=True, eq=False)
class RecordSums:
    """What a server keeps: the sums of each part of `RecordReports`, which merge in any order, exactly.

    They are a simulation if the noise of any of the reports came from a seed.
    """

    batch: ClassVar[None] = None
    collected: ClassVar[None] = None
    round: ClassVar[None] = None
    protocol: Protocol
    people: int
    parts: tuple[Aggregate, ...]
    is_simulation: bool = False

    def aggregate(self) -> RecordSums:
        """Return the sums: they are added up already."""
        return self

    def __add__(self, other: RecordSums) -> RecordSums:
        check_same(self.protocol, other.protocol)
        parts = tuple(mine + theirs for mine, theirs in zip(self.parts, other.parts, strict=True))
        is_simulation = self.is_simulation or other.is_simulation
        return RecordSums(self.protocol, self.people + other.people, parts, is_simulation)


Reported = RecordReports | RecordSums


def listed(reports: Reported | Iterable[Reported]) -> list[Reported]:
    """Return the reports or sums of one protocol, or of several, as a list; raise where it is neither."""
    given: list[Any] = list(reports) if isinstance(reports, Iterable) else [reports]
    for item in given:
        if not isinstance(item, Reported):
            raise invalid("reports", "what `collect` or `read_reports` returned", type(item).__name__)
    return given


def reports_among(given: Sequence[Reported]) -> list[RecordReports]:
    """Return reports after checking that no sums are among them, from which no likelihood can be read."""
    reports = [item.collected for item in given if item.collected is not None]
    if len(reports) < len(given):
        raise InputError("the estimator 'em' needs the reports themselves, got aggregates.")
    return reports


def joined(items: Sequence[RecordReports]) -> RecordReports:
    """Return the reports of several runs of people of one protocol, in order."""
    first = items[0]
    check_once(items)
    for item in items[1:]:
        check_same(first.protocol, item.protocol)
        if item.phase != first.phase:
            raise InputError(
                f"reports of different first phases are mixed, {first.phase} and {item.phase}; learn from "
                "those of one share of people."
            )
    *starts, people = np.cumsum([0, *(item.people for item in items)]).tolist()
    senders = tuple(
        None if columns[0] is None
        else np.concatenate([rows + start for rows, start in zip(columns, starts, strict=True)])
        for columns in zip(*(item.senders for item in items), strict=True)
    )  # fmt: skip
    parts = tuple(Reports.joined(columns) for columns in zip(*(item.parts for item in items), strict=True))
    return RecordReports(
        first.protocol, parts, senders, people, any(item.is_simulation for item in items), first.phase,
        is_shuffled=any(item.is_shuffled for item in items), round=first.round,
    )  # fmt: skip


def _check_one_round(items: Sequence[Reported]) -> None:
    """Raise if reports are of several rounds of a panel: added up, its people would count several times."""
    rounds = {item.round.number: item.round for item in items if item.round is not None}
    if len(rounds) > 1 or (rounds and any(item.round is None for item in items)):
        named = ", ".join(map(str, sorted(rounds)))
        raise InputError(
            f"reports of different rounds of a panel are mixed, {named}; estimate them with "
            "`estimate_rounds`, which counts everybody once in each."
        )


def check_once(items: Sequence[Reported], *, rounds: bool = False) -> None:
    """Raise if the same reports, or their sums, are among them twice: their people would count twice.

    So they would if reports were of several rounds of a panel, unless they are kept apart by `rounds`.
    """
    if not rounds:
        _check_one_round(items)
    places: dict[str | int, int] = {}
    for place, item in enumerate(items, start=1):
        if not item.people:
            continue
        batch = item.batch
        earlier = places.setdefault(id(item) if batch is None else batch, place)
        if earlier != place:
            same = f"are the same batch, {batch!r}" if batch else "are the very same"
            raise InputError(
                f"reports {earlier} and {place} of {len(items)} {same}; name each once, else its people "
                "count twice."
            )


def fingerprint(protocol: Protocol) -> str:
    """Return a short digest that two protocols share exactly when they are the same."""
    # what is merged counts where something is: the digests of all other protocols stay what they were
    schema = [
        [a.name, a.kind, a.values, a.edges, a.missing, *([a.merged] if a.merged else [])]
        for a in protocol.schema
    ]
    text = json.dumps([protocol.to_file(), schema], sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def mixed(first: Protocol, second: Protocol) -> InputError:
    """Return the error for reports that were made in different ways."""
    return InputError(
        f"reports of two protocols are mixed: {first.name!r} ({fingerprint(first)}) and {second.name!r} "
        f"({fingerprint(second)}); estimate each on its own."
    )


def check_same(first: Protocol, second: Protocol) -> None:
    """Raise if two protocols differ."""
    if first is not second and fingerprint(first) != fingerprint(second):
        raise mixed(first, second)


def check_people(collected: RecordReports) -> None:
    """Raise unless everyone sent every part, or each part came from those who are said to have sent it."""
    columns = zip(collected.protocol.labels, collected.parts, collected.senders, strict=True)
    for label, part, senders in columns:
        wanted = collected.people if senders is None else len(senders)
        if len(part) != wanted:
            raise InputError(f"there must be {wanted} reports of {label!r}, one a person, got {len(part)}.")
