"""One transaction of a store, in the SQL that both kinds know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, TypeVar

Row = Sequence[Any]
T = TypeVar("T")


class Session(ABC):
    """One transaction. SQL is written for PostgreSQL, with $1 for the first argument."""

    alone: ClassVar[str] = ""
    """What a SELECT ends with that keeps all others away."""

    @abstractmethod
    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """Run one statement and return its rows."""

    @abstractmethod
    async def many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run one statement for each row."""

    @abstractmethod
    async def take_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Remove the hashes of tokens, and return those that were there."""

    async def append(self, key: int, place: int, block: bytes, sums: tuple[int, bytes]) -> None:
        """Append a block of ids to a round, and set its sums: people and cells."""
        await self.fetch("INSERT INTO id_blocks (round, place, ids) VALUES ($1, $2, $3)", key, place, block)
        set_sums = "UPDATE sums SET place = $2, people = $3, cells = $4 WHERE round = $1"
        await self.fetch(set_sums, key, place, *sums)

    async def run(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Do what awaits nothing but this transaction; a store may have a quicker way than step by step."""
        return await work(self)

    async def after_load(self) -> None:  # noqa: B027 - not all need it
        """Let new rounds have keys after those that were loaded."""
