"""The statement of a ledger in a terminal."""

from __future__ import annotations

from sidelight.ledger.statement import LimitLine, Statement, TaskLine, when
from sidelight.ledger.units import shown
from sidelight.report.console import print_parts, table_of
from sidelight.report.wording import counted

_WORDS = ("limit", "more is left from", "task", "last asked", "each round spends", "rounds")


def print_statement(statement: Statement) -> None:
    """Print what was spent, what is left and when it returns."""
    level = "" if statement.level is None else f", level {statement.level!r}"
    whose = f"The ledger of {statement.person!r}{level}, opened {when(statement.opened)}; "
    limits = table_of(
        "What is left (nats)",
        ("limit", "spent", "left", "more is left from", "then"),
        [_limit(line) for line in statement.limits],
        left=_WORDS,
    )
    tasks = table_of(
        "What was asked (nats)",
        ("task", "rounds", "last asked", "each round spends"),
        [_task(line) for line in statement.tasks],
        left=_WORDS,
    )
    asked = tasks if statement.tasks else "Nothing was asked yet."
    print_parts([f"{whose}figures of {when(statement.time)}.", limits, asked])


def _limit(line: LimitLine) -> list[str]:
    returns = "nothing is spent" if not line.spent else when(line.returns)
    return [
        line.limit,
        shown(line.spent),
        shown(line.left),
        returns,
        "" if line.then is None else shown(line.then),
    ]


def _task(line: TaskLine) -> list[str]:
    states = ", ".join(f"{count} {state}" for state, count in line.states.items())
    rounds = f"{counted(line.rounds, 'round')}: {states}"
    return [line.task, rounds, f"round {line.latest}, {when(line.time)}", "; ".join(line.charges)]
