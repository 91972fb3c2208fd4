"""A ledger's file made short again: what nothing to come depends on is left out.

Reports that arrived, and the steps of their sending, go; so do rounds that count in no window any more, but
for the latest of each task, after which only later rounds may follow, and the latest that used a memo, whose
budget stays the same. What stays has the same order. All frozen values stay: one that is frozen anew would
be another. A file that was compacted is of version 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidelight.ledger.book import Book
from sidelight.ledger.entries import (
    HEAD_DIGITS,
    Compacted,
    Entry,
    Reservation,
    Settled,
    Step,
    entry_data,
    opening_data,
)
from sidelight.ledger.lines import line_of


def compacted(book: Book, digests: Sequence[bytes]) -> bytes:
    """Return the short file of a book whose present file has lines of these digests."""
    line, digest = line_of(None, opening_data(book.opening, compacted=True))
    lines = [line]
    for entry in _kept(book, digests):
        line, digest = line_of(digest, entry_data(entry))
        lines.append(line)
    return b"".join(lines)


def _kept(book: Book, digests: Sequence[bytes]) -> list[Entry]:
    heads = (*book.heads, *(digest.hex()[:HEAD_DIGITS] for digest in digests))
    entries: list[Entry] = [Compacted(heads, book.frozen)]
    for answer in book.answers.values():
        if answer.state in ("acknowledged", "withdrawn"):
            if not book.is_settled(answer):
                entries.append(Settled(answer.question, answer.time, answer.state))
            continue
        entries.append(Reservation(answer.question, answer.time, answer.report or b"", {}))
        if answer.state == "sent":
            entries.append(Step("send", *answer.question.key))
    return entries
