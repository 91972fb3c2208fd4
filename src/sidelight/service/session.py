"""One transaction of a store, in the SQL that both kinds know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, TypeVar

Row = Sequence[Any]
T = TypeVar("T")


class Session(ABC):
    """One transaction. SQL is written for PostgreSQL, with $1 for the first argument."""

    shared: ClassVar[str] = ""
    """What a SELECT ends with that keeps a round as it is, others doing the same."""
    alone: ClassVar[str] = ""
    """What a SELECT ends with that keeps all others away."""

    @abstractmethod
    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """Run one statement and return its rows."""

    @abstractmethod
    async def many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run one statement for each row."""

    @abstractmethod
    async def add_new_ids(self, key: int, ids: Sequence[bytes]) -> bool:
        """Add ids to a round; False if some were there, and then the transaction must not be committed."""

    @abstractmethod
    async def add_ids(self, key: int, ids: Sequence[bytes]) -> set[bytes]:
        """Add those ids to a round that are not there, and return those that were."""

    @abstractmethod
    async def known_ids(self, key: int, ids: Sequence[bytes]) -> set[bytes]:
        """Return which ids a round has."""

    @abstractmethod
    async def drop_ids(self, key: int, ids: Sequence[bytes]) -> None:
        """Remove ids that this transaction added."""

    @abstractmethod
    async def take_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Remove the hashes of tokens, and return those that were there."""

    async def run(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Do what awaits nothing but this transaction; a store may have a quicker way than step by step."""
        return await work(self)

    async def prepare_round(self, key: int) -> None:  # noqa: B027 - not all need it
        """Make room for a round's ids."""

    async def drop_round(self, key: int) -> None:
        """Remove all of a round's ids."""
        await self.fetch("DELETE FROM ids WHERE round = $1", key)

    async def after_load(self) -> None:  # noqa: B027 - not all need it
        """Let new rounds have keys after those that were loaded."""
