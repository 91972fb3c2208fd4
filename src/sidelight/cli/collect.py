"""The command `collect`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Column,
    Data,
    Drop,
    Encoding,
    EngineName,
    Force,
    Json,
    Kinds,
    Master,
    MaxValues,
    Missing,
    Na,
    RecordEpsilon,
    SaveProtocol,
    SchemaFile,
    Sql,
    check_writable,
    echo_json,
    progress,
    read_table,
    refuse_several,
    stated,
)
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.plan import Plan
    from sidelight.protocols import Protocol, RecordReports, TwoPhase
    from sidelight.schema import Schema
    from sidelight.sources import Table

Output = Annotated[
    Path, typer.Option("-o", "--output", help="Write the reports to this .parquet file, or folder.")
]
ProtocolName = Annotated[
    str | None,
    typer.Option(
        help="A protocol file, or 'best' [the default], 'spl', 'smp', 'product', 'rs+fd', 'rs+rfd', "
        "'corr-rr', 'cond-rr' (the last two: the first phase)."
    ),
]
Published = Annotated[Path | None, typer.Option(help="Published parameters: collect the second phase.")]
MechanismName = Annotated[
    str | None, typer.Option(help="Inside 'spl', 'smp' and 'product': a name, or 'best' [grr].")
]
Group = Annotated[
    list[str] | None, typer.Option(help="Inside 'product': attributes together, a,b,c; repeatable.")
]
Prior = Annotated[
    str | None, typer.Option(help="For 'rs+rfd': a public table whose frequencies the fakes follow.")
]
Share = Annotated[
    float | None, typer.Option(help="For 'corr-rr', 'cond-rr': people in the first phase, of all [0.1].")
]
Seed = Annotated[int | None, typer.Option(help="Simulate; without a seed the noise protects people.")]
Batches = Annotated[
    int | None, typer.Option(help="Write so many report files, each a batch of its own, into a folder.")
]
Append = Annotated[
    bool, typer.Option("--append", help="With --batches: the folder holds reports of other people already.")
]


Shuffle = Annotated[
    bool,
    typer.Option(
        help="Write the reports in a random order, so that row i is not person i; `attack` needs the order."
    ),
]


def collect(
    data: Data,
    output: Output,
    plan: Annotated[Path | None, typer.Option(help="A plan file (.toml or .json).")] = None,
    protocol: ProtocolName = None,
    parameters: Published = None,
    epsilon: RecordEpsilon = None,
    mechanism: MechanismName = None,
    group: Group = None,
    prior: Prior = None,
    share: Share = None,
    seed: Seed = None,
    batches: Batches = None,
    append: Append = False,
    shuffle: Shuffle = True,
    force: Force = False,
    save_protocol: SaveProtocol = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    schema: SchemaFile = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    column: Column = None,
    na: Na = None,
    sql: Sql = None,
    engine: EngineName = "local",
    master: Master = None,
    json: Json = False,
) -> None:
    """Make one report for each record, as its people would."""
    import sidelight as sl
    from sidelight.foundation.randomness import order_key
    from sidelight.protocols import write_protocol
    from sidelight.transport import digest_of, write_batches

    _check_output(output, batches, append, (data, prior), force)
    check_writable(save_protocol, (".toml", ".json"), sources=(data, prior, plan, parameters))
    refuse_several({"--plan": plan, "--protocol": protocol, "--parameters": parameters})
    with progress(quiet=json):
        given = _given(plan, protocol, parameters)
        table = _read(
            given, data, drop or [],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            columns=column, na=na, sql=sql,
            engine=engine, master=master, **stated(schema, kinds),
        )  # fmt: skip
        options = {
            "--epsilon": epsilon, "--mechanism": mechanism, "--group": group, "--prior": prior,
            "--share": share,
        }  # fmt: skip
        reports = _collected(table, given, protocol or "best", options, seed, encoding)
        order = order_key(seed) if shuffle else None
        if batches is None:
            arranged = reports if order is None else reports.shuffled(order)
            sl.write_reports(arranged, output, overwrite=force)
            resumed = []
        else:
            records = "" if engine == "spark" else digest_of(table, reports.protocol.schema, seed)
            resumed = _resumed(output)
            write_batches(reports, output, batches, append=append, records=records, order=order)
    if save_protocol:
        write_protocol(reports.protocol, save_protocol)
    _show_collected(reports, [*resumed, *_notes(reports, table, given)], output, json)


def _check_output(
    output: Path, batches: int | None, append: bool, sources: Sequence[str | Path | None], force: bool
) -> None:
    """Refuse before the work what could not, or must not, be written after it."""
    from sidelight.foundation.errors import InputError, check_whole
    from sidelight.foundation.files import check_not_read
    from sidelight.transport.folder import check_inbox
    from sidelight.transport.manifest import read_manifest

    if batches is None:
        if append:
            raise InputError("--append goes with --batches; give it, or leave --append out.")
        check_writable(output, (".parquet",), sources=sources, force=force)
        return
    if force:
        raise InputError("--force replaces a file, never a folder of reports; name another folder.")
    check_whole("batches", batches, at_least=1)
    for place in (output, output / "batch.parquet"):
        check_not_read(place, *sources)
    if not append and read_manifest(output) is None:
        check_inbox(output)


def _resumed(folder: Path) -> list[str]:
    """Say that an interrupted collection is continued, if one is."""
    from sidelight.transport.manifest import read_manifest

    begun = read_manifest(folder)
    if begun is None:
        return []
    return [
        f"An interrupted collection was continued: {begun.done} of {begun.batches} batches were finished; "
        "their people have no second report."
    ]


def _given(plan: Path | None, protocol: str | None, parameters: Path | None) -> Any:
    """Return the plan, protocol or parameters that a file holds; None where a name is given."""
    import sidelight as sl
    from sidelight.protocols import read_protocol

    if plan:
        return sl.Plan.read(plan)
    if parameters:
        return sl.protocols.SecondPhase.read(parameters)
    if protocol and Path(protocol).suffix.lower() in (".toml", ".json"):
        return read_protocol(protocol)
    return None


def _read(given: Any, data: str, drop: list[str], **rules: Any) -> Table:
    """Open the table by the schema of what a file gives, if anything; its other columns do not matter."""
    import sidelight as sl

    if given is None:
        return read_table(data, None, drop, [], **rules)
    schema = given.second.schema if isinstance(given, sl.protocols.SecondPhase) else given.schema
    plan = given if isinstance(given, sl.Plan) else sl.Plan.uniform(schema)
    giver = "plan" if isinstance(given, sl.Plan) else "protocol"
    columns = rules.pop("columns") or list(schema.names)
    return read_table(data, plan, drop, [], giver=giver, columns=columns, **rules)


def _notes(reports: RecordReports, table: Table, given: Any) -> list[str]:
    """Return what whoever collects must know."""
    from sidelight.report.collection_terminal import collected_notes
    from sidelight.report.publishing import publishing_notes

    if given is not None:
        return collected_notes(reports)
    schema = reports.protocol.schema
    return [*collected_notes(reports), *table.notes(), *publishing_notes(schema, "every report file")]


def _collected(
    table: Table, given: Any, name: str, options: dict[str, Any], seed: int | None, encoding: str
) -> RecordReports:
    import sidelight as sl
    from sidelight.transport import collect_phase

    if given is not None:
        for option, value in options.items():
            if value is not None:
                raise sl.InputError(f"{option} is in the file already; change it there, or leave it out.")
        if isinstance(given, sl.protocols.SecondPhase):
            return collect_phase(table, given.design, given, seed=seed)
        protocol: Plan | Protocol = given
        return sl.collect(table, protocol, seed=seed)
    made = _named_protocol(table.schema, name, options, encoding)
    if isinstance(made, sl.protocols.TwoPhase):
        return collect_phase(table, made, seed=seed)
    return sl.collect(table, made, seed=seed)


USES = {
    "--mechanism": ("spl", "smp", "product"),
    "--group": ("product",),
    "--prior": ("rs+rfd",),
    "--share": ("corr-rr", "cond-rr"),
}
"""Which protocols an option says something about."""


def _named_protocol(schema: Schema, name: str, options: dict[str, Any], encoding: str) -> Protocol | TwoPhase:
    import sidelight as sl
    from sidelight.advice import choose_protocol
    from sidelight.foundation.files import file_name
    from sidelight.transport import make_protocol, true_frequencies

    for option, names in USES.items():
        if options[option] is not None and name not in names:
            raise sl.InputError(
                f"{option} belongs to --protocol {' or '.join(names)}, got {name!r}; leave one out."
            )
    budget = 1.0 if options["--epsilon"] is None else options["--epsilon"]
    if name == "best":
        return choose_protocol(schema, budget)
    groups = [part.split(",") for part in options["--group"] or []] or None
    prior = options["--prior"]
    if name == "rs+rfd" and prior is None:
        raise sl.InputError(
            "--protocol rs+rfd needs --prior, a public table whose frequencies the fakes follow."
        )
    public = sl.read(prior, schema=schema, encoding=encoding) if prior else None
    return make_protocol(
        name, schema, budget, mechanism=options["--mechanism"] or "grr", groups=groups,
        priors=true_frequencies(public, schema) if public is not None else None,
        origin=f"public data: {file_name(prior or '')}",
        share=0.1 if options["--share"] is None else options["--share"],
    )  # fmt: skip


def _show_collected(reports: RecordReports, notes: list[str], output: Path, json: bool) -> None:
    protocol = reports.protocol
    if json:
        shown = {
            "protocol": protocol.name, "people": reports.people, "epsilon": protocol.epsilon,
            "delta": protocol.delta, "proof": protocol.proof, "is_simulation": reports.is_simulation,
            "output": str(output), "notes": notes,
        }  # fmt: skip
        echo_json(shown)
        return
    say(f"{reports.people} reports of {protocol.name!r} are in {output}.")
    failing = f", with delta {protocol.delta:.3g}" if protocol.delta else ""
    if math.isfinite(protocol.epsilon):
        say(f"A record's budget is {protocol.epsilon:.6g}{failing}: {protocol.proof}.")
    else:
        say("A record's budget is infinite.")
    for note in notes:
        say(note)
