"""A statement of a ledger: what was spent, what is left, and when it returns. Nothing is changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.ledger.book import Answer, Book
from sidelight.ledger.ledger import loaded
from sidelight.ledger.limits import Limit, Use, spent_in
from sidelight.ledger.question import Charge
from sidelight.ledger.units import shown
from sidelight.ledger.windows import check_time, written


@dataclass(frozen=True)
class LimitLine:
    """What a limit has left.

    Attributes:
        limit: in words.
        spent: the budgets that count now, added up, in units.
        left: the largest charge that still fits, in units.
        returns: the second from which a larger charge fits; None if never, or if nothing is spent.
        then: what is left from then on, in units.
    """

    limit: str
    spent: int
    left: int
    returns: int | None
    then: int | None


@dataclass(frozen=True)
class TaskLine:
    """What a task has asked.

    Attributes:
        task: its name.
        rounds: how many of its rounds are on file.
        latest: the number of the last one.
        time: when that was.
        charges: what each round spends, in words.
        states: how many rounds are reserved, sent, acknowledged or withdrawn.
    """

    task: str
    rounds: int
    latest: int
    time: int
    charges: tuple[str, ...]
    states: dict[str, int]


@dataclass(frozen=True)
class Statement:
    """What a ledger says, but for its secret, its values and its reports.

    Attributes:
        person: whose it is.
        level: of privacy that was chosen, if any.
        opened: when.
        time: of which the statement is.
        limits: what each limit has left.
        tasks: what each task has asked, in the order in which they came.
    """

    person: str
    level: str | None
    opened: int
    time: int
    limits: tuple[LimitLine, ...]
    tasks: tuple[TaskLine, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; budgets are in units, billionths of a nat."""
        return asdict(self)


def read_statement(path: str | Path, *, now: int | None = None) -> Statement:
    """Read what a ledger's file says at a time, by default now; it may be in use, and stays as it is."""
    try:
        if not Path(path).is_file():
            raise InputError(f"there is no ledger {path}; Ledger.create makes one.")
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"the ledger {path} cannot be read: {error.strerror}.") from None
    _, book, _ = loaded(content, str(path))
    moment = book.time_of(check_time("now", int(time.time()) if now is None else now))
    opening = book.opening
    limits = tuple(_limit_line(limit, book, moment) for limit in opening.limits)
    return Statement(opening.person, opening.level, opening.opened, moment, limits, _task_lines(book))


def _limit_line(limit: Limit, book: Book, now: int) -> LimitLine:
    uses, opened = book.uses, book.opening.opened
    spent = spent_in(uses, limit.window, opened, now)
    left = limit.left(spent)
    returns, then = _next(limit, uses, opened, now, left)
    return LimitLine(str(limit), sum(spent), left, returns, then)


def _next(
    limit: Limit, uses: Sequence[Use], opened: int, now: int, left: int
) -> tuple[int | None, int | None]:
    """Return when more than now is left, if nothing else is asked, and how much."""
    ends = {limit.window.leaves(use.time, opened) for use in uses}
    for end in sorted(end for end in ends if end is not None and end > now):
        if (then := limit.left(spent_in(uses, limit.window, opened, end))) > left:
            return end, then
    return None, None


def _task_lines(book: Book) -> tuple[TaskLine, ...]:
    by_task: dict[str, list[Answer]] = {}
    for answer in book.answers.values():
        by_task.setdefault(answer.question.task, []).append(answer)
    lines = []
    for task, answers in by_task.items():
        last = answers[-1]
        states = dict(Counter[str](answer.state for answer in answers))
        charges = tuple(_charged(charge) for charge in last.question.charges)
        lines.append(TaskLine(task, len(answers), last.question.round, last.time, charges, states))
    return tuple(lines)


def _charged(charge: Charge) -> str:
    once = "" if charge.memo is None else ", once an epoch"
    return f"{shown(charge.units)} for {charge.attribute}{once}"


def when(moment: int | None) -> str:
    """Write a time for people; nothing returns never.

    >>> when(None), when(0)
    ('never', '1970-01-01 00:00:00 UTC')
    """
    return "never" if moment is None else written(moment)
