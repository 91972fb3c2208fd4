"""`collect`: from a table to reports, through a plan or a protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import overload

import numpy as np

from sidelight.collection.direct import planned, product, smp, spl
from sidelight.collection.hidden import rs_fd, rs_rfd
from sidelight.collection.phases import Parameters, TwoPhase
from sidelight.collection.protocol import Array, Codes, Collected, Protocol
from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.randomness import derive_seed
from sidelight.plan import Plan
from sidelight.schema import Schema
from sidelight.sources import Table
from sidelight.sources.engine import Place
from sidelight.sources.spark import SparkEngine

PROTOCOLS = ("spl", "smp", "product", "rs+fd", "rs+rfd", "corr-rr", "cond-rr")


@overload
def collect(table: Table, plan: TwoPhase, seed: int | None = None) -> list[Collected]: ...


@overload
def collect(table: Table, plan: Plan | Protocol, seed: int | None = None) -> Collected: ...


def collect(
    table: Table, plan: Plan | Protocol | TwoPhase, seed: int | None = None
) -> Collected | list[Collected]:
    """Make one report for each record of a table, as its people would.

    Args:
        table: whose attributes are coded as the plan or protocol says.
        plan: a plan (every attribute as it says), a protocol, or a two-phase design (then both phases'
            reports are returned, in order).
        seed: for simulation; without one the noise is secure.
    """
    if isinstance(plan, TwoPhase):
        first = collect_phase(table, plan, seed=seed)
        parameters = plan.learn(first, people=max(table.rows - len(first), 1))
        return [first, collect_phase(table, plan, parameters, seed=seed)]
    protocol = planned(plan) if isinstance(plan, Plan) else plan
    check_schema(table, protocol.schema)
    return _over_batches(table, protocol, seed, None)


def collect_phase(
    table: Table, design: TwoPhase, parameters: Parameters | None = None, *, seed: int | None = None
) -> Collected:
    """Make the reports of one phase: the first without parameters, the second with them.

    Who is in which phase is a public function of the row number, so the phases can run apart.
    """
    check_schema(table, design.schema)
    protocol: Protocol = design.first if parameters is None else parameters.second
    return _over_batches(table, protocol, seed, (design, parameters is None))


def _over_batches(
    table: Table, protocol: Protocol, seed: int | None, phase: tuple[TwoPhase, bool] | None
) -> Collected:
    """Randomise batch by batch, where the rows are, and bring the reports here."""
    found = list(table.engine.map_batches(table, reporter(table, protocol, seed, phase)))
    if not found:
        raise InputError("the table has no rows to report.")
    return reduce(Collected.__add__, found)


def reporter(
    table: Table, protocol: Protocol, seed: int | None, phase: tuple[TwoPhase, bool] | None = None
) -> Callable[[Codes, Place], Collected]:
    """Return the function that makes reports of a batch of a table's codes.

    Rows keep their addresses, so batches do not change a simulation; each part of a distributed table has a
    seed of its own, so that no two of its rows share their noise.
    """
    if phase is not None and isinstance(table.engine, SparkEngine):
        raise InputError(
            "two phases need rows that keep their numbers, and those of a Spark DataFrame do not; split it "
            "by a public function of each person, and collect the phases apart."
        )
    columns = [table.schema.index(name) for name in protocol.schema.names]

    def report(codes: Codes, place: Place) -> Collected:
        kept = codes[:, columns]
        if phase is not None:
            design, is_first = phase
            kept = kept[design.in_first(len(codes), place.start) == is_first]
        own = derive_seed(seed, f"part {place.part}") if place.part else seed
        return protocol.randomise(kept, seed=own, offset=place.start)

    return report


def check_schema(table: Table, schema: Schema) -> None:
    """Raise unless the table has the protocol's attributes, coded alike."""
    for attribute in schema:
        if table.schema[attribute.name] != attribute:
            raise InputError(
                f"the table codes {attribute.name!r} as {table.schema[attribute.name].values[:5]}, the "
                f"protocol as {attribute.values[:5]}; read the table with the protocol's schema."
            )


def make_protocol(
    name: str,
    schema: Schema,
    epsilon: float,
    *,
    mechanism: str = "grr",
    groups: Sequence[Sequence[str]] | None = None,
    priors: dict[str, Array] | None = None,
    origin: str = "",
) -> Protocol | TwoPhase:
    """Return the protocol called `name` over a schema at a record's budget.

    Args:
        name: one of "spl", "smp", "product", "rs+fd", "rs+rfd", "corr-rr", "cond-rr".
        schema: the attributes.
        epsilon: the budget of a whole record.
        mechanism: inside SPL, SMP and product; "best" takes the one with the least variance.
        groups: the groups of "product"; all attributes in one by default.
        priors: the frequencies that RS+RFD draws its fakes from.
        origin: where the priors came from.
    """
    check_choice("protocol", name, PROTOCOLS)
    if name == "spl":
        return spl(schema, epsilon, mechanism)
    if name == "smp":
        return smp(schema, epsilon, mechanism)
    if name == "product":
        return product(schema, epsilon, groups, mechanism)
    if name == "rs+fd":
        return rs_fd(schema, epsilon)
    if name == "rs+rfd":
        if priors is None:
            raise InputError("RS+RFD needs priors to draw its fakes from; name a table that is public.")
        return rs_rfd(schema, epsilon, priors, origin)
    return TwoPhase(schema, epsilon, "corr-rr" if name == "corr-rr" else "cond-rr")


def true_frequencies(table: Table, schema: Schema) -> dict[str, Array]:
    """Return the frequencies among a table's records, for those who hold it."""
    check_schema(table, schema)
    counts = table.counts(*([name] for name in schema.names))
    return {
        name: np.asarray(item.cells / item.cells.sum(), dtype=np.float64)
        for name, item in zip(schema.names, counts, strict=True)
    }
