"""The commands `collect`, `estimate` and `advise`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Data,
    Drop,
    Encoding,
    EngineName,
    Json,
    Master,
    MaxValues,
    Missing,
    ReportFile,
    check_writable,
    progress,
    read_table,
)
from sidelight.cli.follow import (
    Checkpoint,
    Every,
    Expect,
    Follow,
    Idle,
    Once,
    Showing,
    State,
    estimate_from_state,
)

if TYPE_CHECKING:
    from sidelight.collection import Collected, Protocol, TwoPhase
    from sidelight.plan import Plan
    from sidelight.schema import Schema
    from sidelight.sources import Table

Epsilon = Annotated[float | None, typer.Option(help="Budget of a whole record [1].")]
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
CopyingName = Annotated[
    str | None,
    typer.Option(
        help="With --learn: Corr-RR's copy probabilities, 'published' [the default] or 'corrected'."
    ),
]
Groups = Annotated[
    int | None, typer.Option(help="With --learn: groups that the attributes are divided in [1].")
]
SaveProtocol = Annotated[Path | None, typer.Option(help="Write the protocol to this file (.toml or .json).")]


def collect(
    data: Data,
    output: Output,
    plan: Annotated[Path | None, typer.Option(help="A plan file (.toml or .json).")] = None,
    protocol: ProtocolName = None,
    parameters: Published = None,
    epsilon: Epsilon = None,
    mechanism: MechanismName = None,
    group: Group = None,
    prior: Prior = None,
    share: Share = None,
    seed: Seed = None,
    batches: Batches = None,
    append: Append = False,
    save_protocol: SaveProtocol = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    engine: EngineName = "local",
    master: Master = None,
    json: Json = False,
) -> None:
    """Make one report for each record, as its people would."""
    from sidelight.collection import write_protocol

    _check_output(output, batches, append)
    check_writable(save_protocol, (".toml", ".json"))
    _refuse_several({"--plan": plan, "--protocol": protocol, "--parameters": parameters})
    with progress(quiet=json):
        given = _given(plan, protocol, parameters)
        table = _read(
            given, data, drop or [],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            engine=engine, master=master,
        )  # fmt: skip
        options = {
            "--epsilon": epsilon, "--mechanism": mechanism, "--group": group, "--prior": prior,
            "--share": share,
        }  # fmt: skip
        reports = _collected(table, given, protocol or "best", options, seed, encoding)
        _write(reports, output, batches, append)
    if save_protocol:
        write_protocol(reports.protocol, save_protocol)
    _show_collected(reports, _notes(reports, table, given), output, json)


def estimate(
    reports: Annotated[
        list[Path] | None,
        typer.Argument(help="Report files; of both phases where there are two. Or checkpoints."),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="'best', 'inversion', 'simplex', 'shrinkage', 'em' or 'published'.")
    ] = "best",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    about: Annotated[
        str, typer.Option(help="'collected' (those who reported) or 'population' (theirs).")
    ] = "collected",
    truth: Annotated[
        str | None, typer.Option(help="The true records, to compare with: a CSV, TSV or Parquet file.")
    ] = None,
    learn: Annotated[
        Path | None,
        typer.Option(help="Write the second phase's parameters, learnt from these reports, to this file."),
    ] = None,
    copying: CopyingName = None,
    groups: Groups = None,
    follow: Follow = None,
    checkpoint: Checkpoint = None,
    expect: Expect = None,
    once: Once = False,
    idle: Idle = None,
    every: Every = None,
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Estimate the frequencies of every attribute from reports."""
    import sidelight as sl

    check_writable(report, (".html", ".htm"))
    check_writable(learn, (".toml", ".json"))
    files = reports or []
    state = State(files, follow, checkpoint, expect or [], once, idle, every)
    if learn is None:
        _refuse_without("--learn", {"--copying": copying, "--groups": groups})
    if state.is_asked_for(learn):
        settings = {"estimator": estimator, "confidence": confidence, "about": about}
        known_to = (lambda schema: _truth(truth, schema, encoding)) if truth else None
        estimate_from_state(state, Showing(settings, known_to, report, json))
        return
    with progress(quiet=json):
        read = [sl.read_reports(path) for path in files]
        found = sl.estimate(read, estimator=estimator, confidence=confidence, about=about)  # type: ignore[arg-type]
        known = _truth(truth, found.schema, encoding) if truth else None
        if learn:
            _design(read, copying, groups).learn(read).write(learn)
    result = found.against(known) if known is not None else found
    written = sl.write_report(result, report) if report else None
    if json:
        typer.echo(result.to_json())
    else:
        _show_estimates(result, learn, written)


def _show_estimates(result: Any, learn: Path | None, written: Path | None) -> None:
    from sidelight.report.collection_terminal import print_estimates

    print_estimates(result)
    for path, what in ((learn, "parameters of the second phase"), (written, "report")):
        if path:
            typer.echo(f"The {what} {'are' if what.startswith('param') else 'is'} in {path}.")


def advise(
    data: Annotated[
        str | None, typer.Argument(help="A table whose schema is meant; or give its numbers below.")
    ] = None,
    epsilon: Epsilon = None,
    people: Annotated[int | None, typer.Option(help="How many will report [the table's rows].")] = None,
    attributes: Annotated[int | None, typer.Option(help="Without a table: how many attributes.")] = None,
    values: Annotated[int | None, typer.Option(help="Without a table: how many values each has.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="The table is public: use its frequencies, not uniform ones.")
    ] = False,
    first: Annotated[
        list[Path] | None, typer.Option(help="Reports of a first phase to take frequencies from; repeatable.")
    ] = None,
    save_protocol: SaveProtocol = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Compare protocols by the error to expect."""
    import sidelight as sl
    from sidelight.collection import write_protocol

    check_writable(report, (".html", ".htm"))
    check_writable(save_protocol, (".toml", ".json"))
    budget = 1.0 if epsilon is None else epsilon
    with progress(quiet=json):
        rules = {"bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding}
        assumed = _assumed(data, attributes, values, public, first or [], drop or [], rules)
        count = people if people is not None else assumed.rows
        if count is None:
            raise sl.InputError("say how many people will report with --people, got none.")
        advice = sl.advise(assumed.schema, budget, count, assumed.known, assumed.origin)
        advice = replace(advice, notes=assumed.notes(save_protocol))
    if save_protocol:
        write_protocol(advice.choice, save_protocol)
    written = sl.write_report(advice, report) if report else None
    if json:
        typer.echo(advice.to_json())
        return
    from sidelight.report.collection_terminal import print_advice

    print_advice(advice)
    if written:
        typer.echo(f"The report is in {written}.")


def _check_output(output: Path, batches: int | None, append: bool) -> None:
    """Refuse before the work what could not, or must not, be written after it."""
    from sidelight.collection.following import check_inbox
    from sidelight.foundation.errors import InputError, check_whole

    if batches is None:
        check_writable(output, (".parquet",))
        if append:
            raise InputError("--append goes with --batches; give it, or leave --append out.")
        return
    check_whole("batches", batches, at_least=1)
    if not append:
        check_inbox(output)


def _write(reports: Collected, output: Path, batches: int | None, append: bool) -> None:
    import sidelight as sl
    from sidelight.collection.following import write_batches

    if batches is None:
        sl.write_reports(reports, output)
    else:
        write_batches(reports, output, batches, append=append)


def _refuse_several(options: dict[str, object]) -> None:
    import sidelight as sl

    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise sl.InputError(f"{' and '.join(given)} exclude each other; leave one out.")


def _given(plan: Path | None, protocol: str | None, parameters: Path | None) -> Any:
    """Return the plan, protocol or parameters that a file holds; None where a name is given."""
    import sidelight as sl
    from sidelight.collection import read_protocol

    if plan:
        return sl.Plan.read(plan)
    if parameters:
        return sl.Parameters.read(parameters)
    if protocol and Path(protocol).suffix.lower() in (".toml", ".json"):
        return read_protocol(protocol)
    return None


def _read(given: Any, data: str, drop: list[str], **rules: Any) -> Table:
    """Open the table by the schema of what a file gives, if anything."""
    import sidelight as sl

    if given is None or isinstance(given, sl.Plan):
        return read_table(data, given, drop, [], **rules)
    schema = given.second.schema if isinstance(given, sl.Parameters) else given.schema
    try:
        return read_table(data, sl.Plan.uniform(schema), drop, [], **rules)
    except sl.InputError as error:  # no plan was given
        raise sl.InputError(str(error).replace("the plan releases", "the protocol reports", 1)) from None


def _notes(reports: Collected, table: Table, given: Any) -> list[str]:
    """Return what whoever collects must know."""
    from sidelight.report.collection_terminal import collected_notes
    from sidelight.report.table_notes import publishing_notes, reading_notes

    if given is not None:
        return collected_notes(reports)
    schema = reports.protocol.schema
    return [*collected_notes(reports), *reading_notes(table), *publishing_notes(schema, "every report file")]


def _collected(
    table: Table, given: Any, name: str, options: dict[str, Any], seed: int | None, encoding: str
) -> Collected:
    import sidelight as sl
    from sidelight.collection import collect_phase

    if given is not None:
        for option, value in options.items():
            if value is not None:
                raise sl.InputError(f"{option} is in the file already; change it there, or leave it out.")
        if isinstance(given, sl.Parameters):
            return collect_phase(table, given.design, given, seed=seed)
        protocol: Plan | Protocol = given
        return sl.collect(table, protocol, seed=seed)
    made = _named_protocol(table.schema, name, options, encoding)
    if isinstance(made, sl.TwoPhase):
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
    from sidelight.collection import choose_protocol, make_protocol, true_frequencies

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
        origin=f"public data: {prior}", share=0.1 if options["--share"] is None else options["--share"],
    )  # fmt: skip


def _refuse_without(needed: str, options: dict[str, object]) -> None:
    import sidelight as sl

    for name, value in options.items():
        if value is not None:
            raise sl.InputError(f"{name} goes with {needed}; give it, or leave {name} out.")


def _design(reports: list[Collected], copying: str | None, groups: int | None) -> TwoPhase:
    """Return the two-phase design whose first phase these reports are."""
    import sidelight as sl

    phase = reports[0].phase
    if phase is None:
        raise sl.InputError(
            f"--learn needs reports of a first phase, made with --protocol corr-rr or cond-rr; got "
            f"{reports[0].protocol.name!r}."
        )
    schema = reports[0].protocol.schema
    return sl.TwoPhase(
        schema, phase.epsilon, phase.method, copying or "published",  # type: ignore[arg-type]
        phase.share, 1 if groups is None else groups,
    )  # fmt: skip


def _truth(data: str, schema: Schema, encoding: str) -> Any:
    import sidelight as sl
    from sidelight.collection import true_frequencies

    return true_frequencies(sl.read(data, schema=schema, encoding=encoding), schema)


@dataclass(frozen=True)
class _Assumed:
    """The schema that is meant, and what is assumed of it.

    Attributes:
        schema: the attributes.
        known: frequencies, or the estimates of a first phase; None where nothing is known.
        origin: where they came from.
        table: the table that the schema was inferred from, if any.
    """

    schema: Schema
    known: Any = None
    origin: str = ""
    table: Table | None = None

    @property
    def rows(self) -> int | None:
        return None if self.table is None else self.table.rows

    def notes(self, written: Path | None) -> tuple[str, ...]:
        """Say what the table's reading left out, and what a protocol that is written holds of it."""
        from sidelight.report.table_notes import publishing_notes, reading_notes

        if self.table is None:
            return ()
        published = publishing_notes(self.schema, "the protocol file, and every report made by it")
        return (*reading_notes(self.table), *(published if written else []))


def _assumed(
    data: str | None, attributes: int | None, values: int | None, public: bool, first: list[Path],
    drop: list[str], rules: dict[str, Any],
) -> _Assumed:  # fmt: skip
    """Return the schema, and the frequencies that are assumed, with their origin."""
    import sidelight as sl
    from sidelight.collection import true_frequencies
    from sidelight.foundation.errors import check_whole

    numbers = None if attributes is None and values is None else "--attributes and --values"
    _refuse_several({"a table": data, "--first": first or None, str(numbers): numbers})
    if public and data is None:
        raise sl.InputError("--public is said of a table; name it, or leave --public out.")
    if drop and data is None:
        raise sl.InputError(f"--drop {drop[0]} is a column of a table; name it, or leave --drop out.")
    if first:
        found = sl.estimate([sl.read_reports(path) for path in first])
        return _Assumed(found.schema, found)
    if data is None:
        if attributes is None or values is None:
            raise sl.InputError("name a table, or give --attributes and --values.")
        labels = [str(value) for value in range(check_whole("values", values, at_least=2))]
        count = check_whole("attributes", attributes, at_least=1)
        named = tuple(sl.categorical(f"x{number + 1}", labels) for number in range(count))
        return _Assumed(sl.Schema(named))
    table = read_table(data, None, drop, [], **rules)
    if not public:
        return _Assumed(table.schema, table=table)
    return _Assumed(table.schema, true_frequencies(table, table.schema), f"public data: {data}", table)


def _show_collected(reports: Collected, notes: list[str], output: Path, json: bool) -> None:
    import json as writer

    from sidelight.foundation.files import json_number

    protocol = reports.protocol
    if json:
        shown = {
            "protocol": protocol.name, "people": reports.people, "epsilon": json_number(protocol.epsilon),
            "delta": protocol.delta, "proof": protocol.proof, "is_simulation": reports.is_simulation,
            "output": str(output), "notes": notes,
        }  # fmt: skip
        typer.echo(writer.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(f"{reports.people} reports of {protocol.name!r} are in {output}.")
    failing = f", with delta {protocol.delta:.3g}" if protocol.delta else ""
    if math.isfinite(protocol.epsilon):
        typer.echo(f"A record's budget is {protocol.epsilon:.6g}{failing}: {protocol.proof}.")
    else:
        typer.echo("A record's budget is infinite.")
    for note in notes:
        typer.echo(note)
