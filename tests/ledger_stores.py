"""Stores for ledgers in tests: in memory, with a model of what a crash leaves."""

from __future__ import annotations

from collections.abc import Sequence

from sidelight.ledger import Ledger, Limit, Question, Store
from sidelight.ledger.ledger import Send, first_line

SECRET = bytes(range(32))


class Crash(BaseException):
    """The power fails."""


class MemoryStore(Store):
    """A store whose content is on a simulated disk; a crash may come before or after every operation.

    What was written is durable after a sync. A crash before that leaves any beginning of it.
    """

    label = "the ledger"

    def __init__(self, content: bytes = b"", crash_at: int = -1) -> None:
        """Begin with durable content; the operation of this number crashes."""
        self.durable, self.cached = content, content
        self.crash_at, self.operations = crash_at, 0

    def _may_crash(self) -> None:
        self.operations += 1
        if self.operations - 1 == self.crash_at:
            raise Crash

    def read(self) -> bytes:
        self._may_crash()
        self.durable = self.cached
        return self.durable

    def append(self, line: bytes) -> None:
        self._may_crash()
        self.cached += line
        self._may_crash()
        self.durable = self.cached
        self._may_crash()

    def cut(self, size: int) -> None:
        self._may_crash()
        self.cached = self.cached[:size]
        self._may_crash()
        self.durable = self.cached

    def replace(self, content: bytes) -> None:
        self._may_crash()
        self.cached = self.durable = content
        self._may_crash()

    def close(self) -> None:
        pass

    def may_remain(self) -> list[bytes]:
        """Return what may be on the disk after a crash now: the durable part and any part of the rest."""
        old, new = self.durable, self.cached
        if len(new) < len(old):
            return [old, new]
        rest = len(new) - len(old)
        cuts = sorted({0, 1, 64, 65, 73, 74, rest // 2, rest - 1, rest} & set(range(rest + 1)))
        return [new[: len(old) + cut] for cut in cuts]


def opened(store: MemoryStore, limits: Sequence[Limit], *, now: int = 0, person: str = "ann") -> Ledger:
    """Return a new ledger in a store."""
    store.durable = store.cached = first_line(person, limits, secret=SECRET, now=now)
    return Ledger(store, person)


def nowhere(_: Question, report: bytes) -> None:
    """Send a report to nobody."""


def into(inbox: list[bytes]) -> Send:
    """Return what sends reports into a list."""
    return lambda _, report: inbox.append(report)


def ask(
    ledger: Ledger,
    question: Question,
    *,
    report: bytes = b"report",
    send: Send = nowhere,
    now: int = 9,
) -> None:
    """Answer a question, by default with a constant report that goes nowhere."""
    ledger.answer(question, lambda _: report, send, now=now)
