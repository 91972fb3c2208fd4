"""The contract of a store: the only state that the processes of a service share.

Ids and sums change in one transaction, so that a report id counts once in its round, for ever: a retired
round has no ids any more, and is closed. Who counts in a round or closes it has its lock to himself: nothing
lands after "closed" was answered. Every change of a task is in its trail, in the transaction that
makes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sidelight.foundation.arrays import Whole
from sidelight.service.batches import Batch
from sidelight.service.rounds import State
from sidelight.service.task import Terms
from sidelight.service.trail import Change, Entry, RoundState

Outcome = Literal["accepted", "repeated", "closed", "over quota", "bad token"]
AddUp = Callable[[Sequence[int]], Whole]
"""What gives the row of some of the reports, by their places."""


@dataclass(frozen=True)
class StoredRound:
    """A round as a store has it.

    Attributes:
        key: what the store knows it by.
        task: the id of its task.
        number: from 1.
        state: see `rounds.STATES`.
        document: from when it is open; else None.
        sums: the digest of its sums, from when it is closed.
        published: what was published of it.
        digests: of the document and of what was published.
        is_retired: whether its sums and ids have been dropped.
    """

    key: int
    task: str
    number: int
    state: State
    document: bytes | None = None
    sums: str | None = None
    published: bytes | None = None
    digests: tuple[str | None, str | None] = (None, None)
    is_retired: bool = False

    @property
    def told(self) -> RoundState:
        """What the trail must say of it."""
        return RoundState(self.state, self.digests[0], self.sums, self.digests[1], self.is_retired)


@dataclass(frozen=True)
class Step:
    """What a round becomes, and what the trail says of it; `values` are the columns that change."""

    state: State
    change: Change
    values: dict[str, Any] = field(default_factory=dict)
    cells: int = 0
    """Of the row of a round that is opened; 0 for every other step."""


Decide = Callable[[StoredRound, Whole | None], Step | None]
"""Says what becomes of a round, given its sums where it has some; None if nothing does."""


class Store(ABC):
    """What a service needs of a place to keep its tasks, ids and sums; every method is one transaction."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and bring the tables up to date."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything."""

    @abstractmethod
    async def ping(self) -> None:
        """Raise `StoreError` unless the store answers."""

    @abstractmethod
    async def add_task(self, task: str, document: bytes, rounds: int, time: int, by: str = "") -> bool:
        """Keep a task with its rounds as drafts, made by an operator; False if it was there."""

    @abstractmethod
    async def task(self, task: str) -> bytes | None:
        """Return a task's document; None if there is no such task."""

    @abstractmethod
    async def tasks(self) -> list[str]:
        """Return the ids of all tasks, in the order in which they were made."""

    @abstractmethod
    async def rounds(self, task: str) -> list[StoredRound]:
        """Return the rounds of a task."""

    @abstractmethod
    async def change(self, task: str, number: int, time: int, decide: Decide) -> StoredRound:
        """Take the round's lock for oneself, let `decide` say what follows, and do it."""

    @abstractmethod
    async def retire(self, task: str, number: int, time: int) -> None:
        """Drop a published round's ids, sums, reports and tokens."""

    @abstractmethod
    async def accept(self, key: int, batch: Batch, terms: Terms, add_up: AddUp) -> list[Outcome]:
        """Count those reports of a round that were not counted before; no id may be among them twice."""

    @abstractmethod
    async def sums(self, key: int) -> Whole | None:
        """Return the row of a round; None if it was never opened or is retired."""

    @abstractmethod
    async def add_tokens(
        self, task: str, number: int, hashes: Sequence[bytes], time: int, by: str = ""
    ) -> None:
        """Let so many reports come, each with a token of one of these hashes."""

    @abstractmethod
    def reports(self, key: int, step: int = 10_000) -> AsyncIterator[list[bytes]]:
        """Return the kept reports of a round, so many at a time, in the order of their random ids."""

    @abstractmethod
    async def trail(self, task: str) -> list[Entry]:
        """Return the trail of a task."""

    @abstractmethod
    async def add_key(self, name: str, key_hash: bytes) -> None:
        """Keep the hash of an operator's key under a name; an older one of that name is replaced."""

    @abstractmethod
    async def keys(self) -> dict[str, bytes]:
        """Return the hashes of all operators' keys, by name."""

    @abstractmethod
    def dump(self, step: int = 200) -> AsyncIterator[tuple[str, list[list[Any]]]]:
        """Return everything that is kept as of one moment: names of tables, and rows."""

    @abstractmethod
    async def load(self, rows: AsyncIterator[tuple[str, list[list[Any]]]], time: int) -> None:
        """Take over what `dump` gave, into an empty store, in one transaction; trails say so."""
