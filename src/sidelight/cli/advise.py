"""The command `advise`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import (
    SETTINGS,
    Shown,
    check_writable,
    first_given,
    progress,
    read_table,
    refuse_several,
    show,
)
from sidelight.cli.options import WITHOUT_ENGINE, Reading, RecordEpsilon, SaveProtocol, flag, grouped
from sidelight.cli.wanted import Wanted
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import file_name


@dataclass(frozen=True)
class Collected:
    """What is to be collected: a table, a first phase, or numbers that stand for either."""

    data: Annotated[
        str | None, typer.Argument(help="A table whose schema is meant; or give its numbers below.")
    ] = None
    epsilon: RecordEpsilon = None
    people: int | None = flag(None, "How many will report [the table's rows].")
    attributes: int | None = flag(None, "Without a table: how many attributes.")
    values: int | None = flag(None, "Without a table: how many values each has.")
    public: bool = flag(False, "The table is public: use its frequencies, not uniform ones.", "--public")
    first: list[Path] | None = flag(None, "Reports of a first phase to take frequencies from; repeatable.")
    rounds: int | None = flag(
        None, "Ask the same people so many times: compare kept responses, divided people and budgets."
    )
    epoch: int | None = flag(
        None, "With --rounds: compare with responses kept for so many rounds, the value frozen."
    )
    delta: float | None = flag(None, "With --rounds: say also what all reports say at this delta.")
    save_protocol: SaveProtocol = None
    pairs: bool = flag(
        False, "Compare collections by the tables of all pairs, not by frequencies.", "--pairs"
    )


@grouped(without=WITHOUT_ENGINE)
def advise(collected: Collected, wanted: Wanted, reading: Reading, shown: Shown) -> None:
    """Compare protocols by the error to expect, and say whether their estimates would beat guessing."""
    check_writable(collected.save_protocol, SETTINGS)
    option = first_given({"--epoch": collected.epoch, "--delta": collected.delta})
    if option and collected.rounds is None:
        raise InputError(f"{option} goes with --rounds; say how many there are, or leave it out.")
    with progress(quiet=shown.json):
        schema, table, known, origin = _assumed(collected, reading)
        people = collected.people
        if people is None and table is not None:
            people = table.rows
        if people is None:
            raise InputError("say how many people will report with --people, got none.")
        epsilon = 1.0 if collected.epsilon is None else collected.epsilon
        if collected.pairs:
            _advise_pairs(collected, wanted, shown, schema, epsilon, people)
            return
        again = (
            None if collected.rounds is None else _again(collected, schema, epsilon, people, known, wanted)
        )
    if again is not None:
        show(again, shown, lambda: sl.report.print_rounds_advice(again))
        return
    with progress(quiet=shown.json):
        advice = sl.advise(schema, epsilon, people, known, origin)
        notes = [] if table is None else table.notes()
        if table is not None and collected.save_protocol:
            notes += sl.report.publishing_notes(schema, "the protocol file, and every report made by it")
        prior = wanted.guess(schema, reading.encoding)
        advice = replace(advice, notes=tuple(notes), within=wanted.within, prior=prior)
    if collected.save_protocol:
        sl.protocols.write_protocol(advice.choice, collected.save_protocol)
    show(advice, shown, lambda: sl.report.print_advice(advice))


def _again(
    collected: Collected, schema: sl.Schema, epsilon: float, people: int, known: Any, wanted: Wanted
) -> sl.advice.RoundsAdvice:
    """Return the advice for several rounds; refuse what is said of a single collection."""
    single = {
        "--save-protocol": collected.save_protocol, "--within": wanted.within, "--prior": wanted.prior,
        "--first": collected.first or None,
    }  # fmt: skip
    if option := first_given(single):
        raise InputError(f"{option} is for a single collection, and --rounds for several; leave one out.")
    rounds = check_whole("rounds", collected.rounds, at_least=2)
    return sl.advice.advise_rounds(
        schema, epsilon, people, rounds, known, epoch=collected.epoch, delta=collected.delta
    )


def _advise_pairs(
    collected: Collected, wanted: Wanted, shown: Shown, schema: sl.Schema, epsilon: float, people: int
) -> None:
    """Compare collections by the tables of all pairs, and show the comparison."""
    others = {"--public": collected.public or None, "--within": wanted.within, "--prior": wanted.prior}
    if option := first_given(others):
        raise InputError(f"{option} is said of frequencies; leave it or --pairs out.")
    known = None
    if collected.first:
        known = sl.estimate_pairs([sl.read_reports(path) for path in collected.first])
    advice = sl.advice.advise_pairs(schema, epsilon, people, known)
    if collected.save_protocol:
        if advice.choice.two_phase is not None:
            raise InputError(
                "two phases are advised, which no protocol file holds; collect with --protocol "
                f"adaptive-pairs --share {advice.choice.two_phase.share:.3g}, or leave --save-protocol out."
            )
        sl.protocols.write_protocol(advice.choice.first, collected.save_protocol)
    show(advice, shown, lambda: sl.report.print_pair_advice(advice))


def _assumed(collected: Collected, reading: Reading) -> tuple[sl.Schema, sl.Table | None, Any, str]:
    """Return the schema, the table it was inferred from, and the frequencies assumed, with their origin.

    In place of frequencies there may be the estimates of a first phase, or None where nothing is known.
    """
    data, first = collected.data, collected.first
    is_numbered = collected.attributes is not None or collected.values is not None
    given = {"a table": data, "--first": first or None, "--attributes and --values": is_numbered or None}
    refuse_several(given)
    if data is None:
        _refuse_table_options(collected, reading)
    if first:
        estimates = sl.estimate([sl.read_reports(path) for path in first])
        return estimates.schema, None, estimates, ""
    if data is None:
        return _numbered_schema(collected), None, None, ""
    table = read_table(data, reading)
    if not collected.public:
        return table.schema, table, None, ""
    known = sl.transport.true_frequencies(table, table.schema)
    return table.schema, table, known, f"public data: {file_name(data)}"


def _refuse_table_options(collected: Collected, reading: Reading) -> None:
    """Refuse what can only be said of a table."""
    if collected.public:
        raise InputError("--public is said of a table; name it, or leave --public out.")
    if reading.drop:
        raise InputError(f"--drop {reading.drop[0]} is a column of a table; name it, or leave --drop out.")
    if reading.schema or reading.stated:
        raise InputError("--schema and --kind are said of a table; name it, or leave them out.")


def _numbered_schema(collected: Collected) -> sl.Schema:
    """Return a schema of as many attributes, with as many values each, as the options say."""
    if collected.attributes is None or collected.values is None:
        raise InputError("name a table, or give --attributes and --values.")
    values = [str(value) for value in range(check_whole("values", collected.values, at_least=2))]
    count = check_whole("attributes", collected.attributes, at_least=1)
    return sl.Schema(tuple(sl.categorical(f"x{number + 1}", values) for number in range(count)))
