"""A person's ledger: one over all who ask. It spends before it sends, and sends one noise for a question.

A question goes through four steps, each durable before the next: the charge is *reserved* together with the
very bytes of the report, they are marked as *sent* before they leave, and they are *acknowledged* when the
server has them. A crash anywhere leaves one of these states; the same bytes are then sent again. What was
reserved and never sent may be *withdrawn*: its charge comes back, and the question gets no other answer.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sidelight.foundation.errors import InputError, check_is, invalid
from sidelight.ledger.book import Answer, Book
from sidelight.ledger.compaction import compacted
from sidelight.ledger.entries import (
    Entry,
    Mark,
    Opening,
    Reservation,
    Step,
    entry_data,
    opening_data,
    read_entries,
    read_opening,
)
from sidelight.ledger.limits import Limit, Remaining, spent_in
from sidelight.ledger.lines import damaged, line_of, read_lines
from sidelight.ledger.question import Question, check_text
from sidelight.ledger.store import FileStore, Head, Store
from sidelight.ledger.windows import check_time
from sidelight.mechanisms.longitudinal.memory import SECRET_BYTES, KeyedMemory, Memory

Make = Callable[[Memory], bytes]
"""What makes a report, from the device's memory where it needs that."""
Send = Callable[[Question, bytes], object]
"""What sends the report of a question to whoever asked it.

It returns when the server's answer is final (accepted, repeated or refused), and raises otherwise, an OSError
where the server cannot be reached: the same bytes are then sent again.
"""


class Ledger:
    """What one person, or one device, has spent and sent; open for one process at a time.

    It is a context: `with Ledger.open(path, person) as ledger`. One thread at a time may use it, and only in
    the process that opened it: others are refused, for two lines after one would damage the file.
    """

    def __init__(self, store: Store, person: str, *, known: Head | None = None) -> None:
        """Take over a store that holds a ledger; see `open`."""
        self._store: Store | None = store
        self._busy, self._process = threading.Lock(), os.getpid()
        try:
            content = store.read()
        except OSError as error:
            raise InputError(f"the ledger {store.label} cannot be read: {error.strerror}.") from None
        self._digests, self._book, size = loaded(content, store.label)
        opening = self._book.opening
        if opening.person != person:
            raise InputError(
                f"{store.label} is the ledger of another person, {opening.person!r}, not of {person!r}; each "
                "has one."
            )
        self._check_known(known, store.label)
        if size < len(content):
            self._durably(lambda: store.cut(size))

    @classmethod
    def create(
        cls,
        path: str | Path,
        person: str,
        limits: Sequence[Limit],
        *,
        level: str | None = None,
        secret: bytes | None = None,
        now: int | None = None,
    ) -> Ledger:
        """Make a new ledger and open it; a file that is there stays.

        Args:
            path: its file.
            person: whose it is, or which device's.
            limits: what may be spent; all of them hold.
            level: of privacy that the person chooses, before there is a value to choose it by.
            secret: of the device's memory, 32 bytes; by default a new one.
            now: the time in seconds since 1970; by default the clock's.
        """
        FileStore.create(path, first_line(person, limits, level=level, secret=secret, now=now))
        return cls.open(path, person)

    @classmethod
    def open(cls, path: str | Path, person: str, *, known: Head | None = None) -> Ledger:
        """Open a ledger, and finish or drop what a crash left unfinished.

        Args:
            path: its file.
            person: whose it must be.
            known: how far it had come, if that was kept elsewhere: an older copy is then refused.
        """
        store = FileStore(path)
        try:
            return cls(store, person, known=known)
        except BaseException:
            store.close()
            raise

    @property
    def person(self) -> str:
        """Whose ledger it is."""
        return self._book.opening.person

    @property
    def level(self) -> str | None:
        """The level of privacy that the person chose."""
        return self._book.opening.level

    @property
    def head(self) -> Head:
        """How far the ledger has come, to be kept elsewhere."""
        return Head(len(self._book.heads) + len(self._digests), self._digests[-1].hex())

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All questions that were paid for."""
        return tuple(self._book.answers.values())

    @property
    def pending(self) -> tuple[Answer, ...]:
        """Those whose reports may not have arrived."""
        return tuple(answer for answer in self.answers if answer.state in ("reserved", "sent"))

    def remaining(self, *, now: int | None = None) -> tuple[Remaining, ...]:
        """Return the largest charge that each limit leaves, in billionths of a nat."""
        book, moment = self._book, self._book.time_of(_now(now))
        return tuple(
            Remaining(limit, limit.left(spent_in(book.uses, limit.window, book.opening.opened, moment)))
            for limit in book.opening.limits
        )

    def check(self, question: Question, *, now: int | None = None) -> None:
        """Raise if a question would be refused; nothing is spent."""
        if self._book.asked(question) is None:
            self._book.check_fits(question, self._book.time_of(_now(now)))

    def reserve(self, question: Question, make: Make, *, now: int | None = None) -> bytes:
        """Spend what a question costs, and return the bytes of its report: the same ones for ever.

        They are made once, and kept before this returns. A question that was asked before costs nothing more.
        """
        check_is("question", question, Question)
        with self._alone():
            answer = self._book.asked(question)
            if answer is None:
                return self._reserved(question, make, now)
        if answer.report is None:
            raise InputError(f"{question} is {answer.state}; it has no report any more.")
        return answer.report

    def _reserved(self, question: Question, make: Make, now: int | None) -> bytes:
        """Make the report of a new question, and keep it with its charge."""
        moment = self._book.time_of(_now(now))
        self._book.check_fits(question, moment)
        # The values that get frozen meanwhile hold only if the reservation does.
        memory = KeyedMemory(self._book.opening.secret, self._book.frozen)
        report = make(memory)
        if not isinstance(report, bytes):
            raise invalid("make", "a function that returns the report's bytes", type(report).__name__)
        frozen = {key: value for key, value in memory.frozen.items() if key not in self._book.frozen}
        self._write(Reservation(question, moment, report, frozen))
        return report

    def send(self, question: Question, send: Send) -> None:
        """Send the report of a reserved question, the same bytes each time, and acknowledge it."""
        with self._alone():
            answer = self._book.answers.get(question.key)
            if answer is None or answer.report is None:
                state = "not reserved" if answer is None else answer.state
                raise InputError(f"{question} is {state}; there is nothing to send.")
            if answer.state == "reserved":
                self._mark("send", question)
            send(question, answer.report)
            self._mark("acknowledge", question)

    def answer(self, question: Question, make: Make, send: Send, *, now: int | None = None) -> None:
        """Reserve a question, send its report and acknowledge it; one that has been answered stays so."""
        answer = self._book.asked(question)
        if answer is None or answer.state != "acknowledged":
            self.reserve(question, make, now=now)
            self.send(question, send)

    def resume(self, send: Send) -> None:
        """Send whatever may not have arrived, oldest first; a server that is away does not hold up others."""
        away: OSError | None = None
        for answer in self.pending:
            try:
                self.send(answer.question, send)
            except OSError as error:
                away = away or error
        if away is not None:
            raise away

    def withdraw(self, question: Question) -> None:
        """Take back a report that was never sent, with its charge; the question gets no other answer."""
        with self._alone():
            self._mark("withdraw", question)

    def compact(self) -> Head:
        """Make the file short again, and return how far the ledger has come: nothing that counts is lost.

        The file is replaced whole or not at all. Rounds that count in no window any more are forgotten but
        for the latest of each task: to ask for one again is then refused, as rounds go forward.
        """
        with self._alone():
            store = self._open_store()
            content = compacted(self._book, self._digests)
            digests, book, _ = loaded(content, store.label)
            self._durably(lambda: store.replace(content))
            self._digests, self._book = digests, book
        return self.head

    def close(self) -> None:
        """Let another process open the ledger."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the ledger for one use of it: whatever makes or sends a report may not spend meanwhile."""
        if os.getpid() != self._process:
            raise InputError("the ledger was opened by another process; each process opens its own.")
        if not self._busy.acquire(blocking=False):
            raise InputError("the ledger is in use: a report is being made or sent; wait until that is done.")
        try:
            yield
        finally:
            self._busy.release()

    def _mark(self, mark: Mark, question: Question) -> None:
        step = Step(mark, *question.key)
        self._book.check_step(step)
        self._write(step)

    def _write(self, entry: Entry) -> None:
        """Make an entry durable, then take it over."""
        store, (line, digest) = self._open_store(), line_of(self._digests[-1], entry_data(entry))
        self._durably(lambda: store.append(line))
        self._book.apply(entry)
        self._digests.append(digest)

    def _open_store(self) -> Store:
        if self._store is None:
            raise InputError("the ledger is closed; open it again.")
        return self._store

    def _durably(self, change: Callable[[], None]) -> None:
        """Change the file; where that fails, only the file knows what holds: it must be read again."""
        try:
            change()
        except BaseException as error:
            label = "" if self._store is None else self._store.label
            self.close()
            if isinstance(error, OSError):
                raise InputError(
                    f"the ledger {label} cannot be written: {error.strerror or error}; nothing was sent. "
                    "Mend that, and open it again."
                ) from None
            raise

    def _check_known(self, known: Head | None, label: str) -> None:
        if known is None:
            return
        heads = [*self._book.heads, *(digest.hex() for digest in self._digests)]
        is_there = 0 < known.lines <= len(heads)
        # Of lines that were there before the file was compacted, the first digits are left.
        if not is_there or not known.digest.startswith(heads[known.lines - 1]):
            raise InputError(
                f"{label} is not the ledger that had {known.lines} lines, or an older copy of it: it has "
                f"{len(heads)}; take the latest copy, for this one would spend again."
            )


def loaded(content: bytes, label: str) -> tuple[list[bytes], Book, int]:
    """Return the digests of a file's lines, what they add up to, and how many bytes they are."""
    chain = read_lines(content, label)
    book = Book(read_opening(chain, label))
    for number, entry in enumerate(read_entries(chain, label), start=2):
        try:
            book.apply(entry)
        except InputError as error:
            raise damaged(label, number, f"cannot follow: {str(error).rstrip('.')}") from None
    return list(chain.digests), book, chain.size


def first_line(
    person: str,
    limits: Sequence[Limit],
    *,
    level: str | None = None,
    secret: bytes | None = None,
    now: int | None = None,
) -> bytes:
    """Return the first line of a new ledger, see `Ledger.create`."""
    if not check_text("person", person):
        raise invalid("person", "the name of a person or device", person)
    if not isinstance(limits, Sequence) or not limits:
        raise invalid(
            "limits", "at least one limit, in a list", limits, "Limit.of(1.0) allows 1 for all time."
        )
    if level is not None:
        check_text("level", level)
    for limit in limits:
        check_is("limits", limit, Limit, "Limit.of makes one.")
    drawn = os.urandom(SECRET_BYTES) if secret is None else secret
    KeyedMemory(drawn)
    opening = Opening(person, _now(now), drawn, tuple(limits), level)
    return line_of(None, opening_data(opening))[0]


def _now(now: int | None) -> int:
    return check_time("now", int(time.time()) if now is None else now)
