"""The trail: every change of a task, one after another, each with the digest of the one before.

    digest = SHA-256(digest before || body), before the first 32 zero bytes
    body   = canonical JSON of number, time, kind and what the kind says

Nothing in it is about people: it says when which operator made, opened, closed or published something.
Replayed, it gives the present state of all rounds; `check_trail` compares the two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sidelight.foundation.errors import InputError
from sidelight.service.canonical import canonical, parsed_document
from sidelight.service.rounds import State

Kind = Literal["made", "opened", "closed", "published", "retired", "tokens", "restored"]
_START = bytes(32)
_REACHED: dict[str, State] = {"opened": "open", "closed": "closed", "published": "published"}


@dataclass(frozen=True)
class Change:
    """What is written down: its kind, what belongs to it, such as the round and a digest, and by whom.

    `by` is the name of an operator's key; empty where the service did it by itself.
    """

    kind: Kind
    said: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True)
class Entry:
    """One entry of a trail as it is stored."""

    number: int
    body: bytes
    digest: bytes

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says."""
        return parsed_document(self.body, f"entry {self.number} of the trail")


@dataclass(frozen=True)
class RoundState:
    """What a trail says of a round; digests of its document, its sums and what was published."""

    state: State = "draft"
    digest: str | None = None
    sums: str | None = None
    published: str | None = None
    is_retired: bool = False


def next_entry(last: Entry | None, time: int, change: Change) -> Entry:
    """Return the entry that follows the last one; its time is never before that one's."""
    number, before = (0, _START) if last is None else (last.number + 1, last.digest)
    moment = time if last is None else max(time, int(last.data["time"]))
    by = {"by": change.by} if change.by else {}
    body = canonical({"number": number, "time": moment, "kind": change.kind, **change.said, **by})
    return Entry(number, body, hashlib.sha256(before + body).digest())


def check_chain(entries: Sequence[Entry]) -> None:
    """Raise unless every entry follows the one before it."""
    before = _START
    for number, entry in enumerate(entries):
        before = hashlib.sha256(before + entry.body).digest()
        if entry.number != number or entry.data.get("number") != number or entry.digest != before:
            raise InputError(f"the trail was changed: entry {number} does not follow the one before it.")


def replay(entries: Sequence[Entry], rounds: int) -> dict[int, RoundState]:
    """Return the state of every round that the entries lead to."""
    check_chain(entries)
    states = {number: RoundState() for number in range(1, rounds + 1)}
    for entry in entries:
        data = entry.data
        if data["kind"] not in (*_REACHED, "retired"):
            continue
        number = int(data["round"])
        if number not in states:
            raise InputError(f"the trail tells of a round {number}; the task has {rounds}.")
        states[number] = _after(states[number], data)
    return states


def _after(before: RoundState, data: Mapping[str, Any]) -> RoundState:
    known = {**vars(before)}
    if data["kind"] == "retired":
        return RoundState(**{**known, "is_retired": True})
    known["state"] = _REACHED[data["kind"]]
    for name in ("digest", "sums", "published"):
        known[name] = data.get(name, known[name])
    return RoundState(**known)


def check_trail(entries: Sequence[Entry], present: Mapping[int, RoundState]) -> None:
    """Raise unless the trail replays to the present state."""
    told = replay(entries, len(present))
    for number, state in present.items():
        if told[number] != state:
            raise InputError(
                f"round {number} is {state}, the trail says {told[number]}; it was changed by hand."
            )
