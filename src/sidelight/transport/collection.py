"""`collect`: from a table to reports, through a plan or a protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import overload

import numpy as np

from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.arrays import AnyCodes, Array
from sidelight.foundation.errors import InputError, check_is, invalid
from sidelight.foundation.randomness import derive_seed
from sidelight.plan import PLAN_FIX, Plan
from sidelight.protocols.direct import planned
from sidelight.protocols.panel import Panel
from sidelight.protocols.panel_memory import PanelMemory
from sidelight.protocols.protocol import Design, Protocol
from sidelight.protocols.records import RecordReports, joined
from sidelight.protocols.two_phase import SecondPhase, TwoPhase
from sidelight.schema import Schema
from sidelight.sources import Table
from sidelight.sources.table import Place
from sidelight.transport.panel_collection import panel_reports

NO_ROW_NUMBERS = (
    "two phases need rows that keep their numbers, and those of a Spark DataFrame do not; split it by a "
    "public function of each person, and collect the phases apart."
)


@overload
def collect(table: Table, plan: TwoPhase, seed: int | None = None) -> list[RecordReports]: ...


@overload
def collect(
    table: Table, plan: Plan | Protocol | Panel, seed: int | None = None, *, round: int | None = None,
    memory: PanelMemory | None = None, people: Sequence[str] | None = None,
) -> RecordReports: ...  # fmt: skip


def collect(
    table: Table, plan: Plan | Design | Panel, seed: int | None = None, *, round: int | None = None,
    memory: PanelMemory | None = None, people: Sequence[str] | None = None,
) -> RecordReports | list[RecordReports]:  # fmt: skip
    """Make one report for each record of a table, as its people would.

    Args:
        table: whose attributes are coded as the plan or protocol says.
        plan: a plan (every attribute as it says), a protocol, a two-phase design (then both phases' reports
            are returned, in order), or a panel.
        seed: for simulation; without one the noise is secure.
        round: which round of a panel it is, from 1 on; a plan whose `times` are above 1 is one.
        memory: what the panel remembers between rounds, see `PanelMemory`; it goes on.
        people: a name for each row, the same in every round, by which its memory is found; the number of the
            row by default. Reports hold no names.
    """
    check_is("table", table, Table, "sl.read opens one.")
    if round is not None or isinstance(plan, Panel):
        return collect_round(table, plan, 1 if round is None else round, memory, people, seed)
    if memory is not None or people is not None:
        raise InputError("`memory` and `people` are of a panel; say which `round` it is, or leave them out.")
    design = design_of(plan)
    first = collect_phase(table, design, seed=seed)
    if design.two_phase is None:
        return first
    parameters = learn_second_phase(design.two_phase, first, people=max(table.rows - len(first), 1))
    return [first, collect_phase(table, design, parameters, seed=seed)]


def collect_round(
    table: Table, plan: Plan | Design | Panel, number: int, memory: PanelMemory | None = None,
    people: Sequence[str] | None = None, seed: int | None = None,
) -> RecordReports:  # fmt: skip
    """Make the reports of one round of a panel, see `collect`."""
    if not isinstance(plan, (Plan, Panel)):
        raise invalid("plan", "a `Plan` or a `Panel` where a `round` is given", type(plan).__name__)
    if not table.engine.keeps_row_numbers:
        raise InputError("a panel needs rows that keep their order, and those of a Spark DataFrame do not.")
    panel = plan if isinstance(plan, Panel) else Panel(plan)
    schema = panel.protocol(number).schema
    check_schema(table, schema)
    dropping = [item.name for item in schema if item.missing == "drop"]
    if dropping and people is None and panel.needs_memory:
        raise InputError(
            f"records whose {dropping[0]!r} is missing are left out, so that row i is not the same person in "
            "every round; name everybody with `people` (--id)."
        )
    records = table.codes()[:, [table.schema.index(name) for name in schema.names]]
    return panel_reports(panel, number, records, people, memory, seed=seed)


def design_of(plan: Plan | Design) -> Design:
    """Return how a plan is collected, or a protocol or a two-phase design as it is; raise for others."""
    if isinstance(plan, Plan):
        return planned(plan)
    if not isinstance(plan, Design):
        raise invalid("plan", "a `Plan`, a protocol or a `TwoPhase` design", type(plan).__name__, PLAN_FIX)
    return plan


def collect_phase(
    table: Table, design: Design, parameters: SecondPhase | None = None, *, seed: int | None = None
) -> RecordReports:
    """Make the reports of one phase: the first without parameters, the second with them.

    Who is in which phase is a public function of the row number, so the phases can run apart. Reports are
    made batch by batch and joined; batches do not change a simulation.
    """
    check_schema(table, design.schema)
    protocol = design.first if parameters is None else parameters.second
    phased = design.two_phase
    if phased is None:
        batches = list(table.engine.map_batches(table, reporter(table, protocol, seed)))
    else:
        batches = list(_phase_reports(table, protocol, seed, phased, parameters is None))
    if not any(map(len, batches)):
        out = f"no row of {table.rows} is in this phase of the collection; change `share`."
        empty = f"{table.source.label} has no rows to report; name another table."
        raise InputError(out if table.rows else empty)
    phase = phased.phase if phased is not None and parameters is None else None
    return replace(joined(batches), phase=phase)


def _phase_reports(
    table: Table, protocol: Protocol, seed: int | None, design: TwoPhase, is_first: bool
) -> Iterator[RecordReports]:
    """Randomise the rows of one phase, numbered throughout."""
    if not table.engine.keeps_row_numbers:
        raise InputError(NO_ROW_NUMBERS)
    columns = [table.schema.index(name) for name in protocol.schema.names]

    def members(codes: AnyCodes, place: Place) -> AnyCodes:
        wanted = design.in_first(len(codes), place.start) == is_first
        kept: AnyCodes = codes[wanted][:, columns]
        return kept

    sent = 0
    for codes in table.engine.map_batches(table, members):
        yield protocol.randomise(codes, seed=seed, offset=sent)
        sent += len(codes)


def reporter(
    table: Table, protocol: Protocol, seed: int | None
) -> Callable[[AnyCodes, Place], RecordReports]:
    """Return the function that makes reports of a batch of a table's codes.

    Rows keep their addresses, so batches do not change a simulation; each part of a distributed table has a
    seed of its own, so that no two of its rows share their noise.
    """
    columns = [table.schema.index(name) for name in protocol.schema.names]

    def report(codes: AnyCodes, place: Place) -> RecordReports:
        own = derive_seed(seed, f"part {place.part}") if place.part else seed  # one part: as a local table
        kept = codes if columns == list(range(codes.shape[1])) else codes[:, columns]
        return protocol.randomise(kept, seed=own, offset=place.start)

    return report


def digest_of(table: Table, schema: Schema, seed: int | None = None) -> str:
    """Return a digest of a table's records in order, and of the seed: the same for the same collection."""
    columns = [table.schema.index(name) for name in schema.names]
    digest = hashlib.blake2b(repr(seed).encode(), digest_size=16)
    for codes in table.engine.map_batches(table, lambda codes, _place: codes[:, columns]):
        digest.update(np.ascontiguousarray(codes, dtype="<u2").tobytes())
    return digest.hexdigest()


def check_schema(table: Table, schema: Schema) -> None:
    """Raise unless the table has the protocol's attributes, coded alike."""
    for attribute in schema:
        if table.schema[attribute.name] != attribute:
            raise InputError(
                f"the table codes {attribute.name!r} as {table.schema[attribute.name].values[:5]}, the "
                f"protocol as {attribute.values[:5]}; read the table with the protocol's schema."
            )


def true_frequencies(table: Table, schema: Schema) -> dict[str, Array]:
    """Return the frequencies among a table's records, for those who hold it."""
    check_schema(table, schema)
    each = zip(schema.names, table.counts(*([name] for name in schema.names)), strict=True)
    return {name: np.asarray(item.cells / item.cells.sum(), dtype=np.float64) for name, item in each}
