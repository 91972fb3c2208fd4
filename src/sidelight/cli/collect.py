"""The commands `collect`, `estimate` and `advise`."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from sidelight.collection import Collected, Protocol
    from sidelight.plan import Plan
    from sidelight.schema import Schema
    from sidelight.sources import Table

Epsilon = Annotated[float | None, typer.Option(help="Budget of a whole record [1].")]


def collect(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write the reports to this .parquet file.")],
    plan: Annotated[Path | None, typer.Option(help="A plan file (.toml or .json).")] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="A protocol file, or 'best' [the default], 'spl', 'smp', 'product', 'rs+fd', 'corr-rr', "
            "'cond-rr' (the last two: the first phase)."
        ),
    ] = None,
    parameters: Annotated[
        Path | None, typer.Option(help="Published parameters: collect the second phase.")
    ] = None,
    epsilon: Epsilon = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Inside 'spl', 'smp' and 'product': a name, or 'best' [grr].")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="Attributes reported together, a,b,c; repeatable.")
    ] = None,
    share: Annotated[float, typer.Option(help="People in the first phase, of all.")] = 0.1,
    seed: Annotated[
        int | None, typer.Option(help="Simulate; without a seed the noise protects people.")
    ] = None,
    save_protocol: Annotated[
        Path | None, typer.Option(help="Write the protocol to this file (.toml or .json).")
    ] = None,
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
    import sidelight as sl
    from sidelight.collection import write_protocol

    check_writable(output, (".parquet",))
    check_writable(save_protocol, (".toml", ".json"))
    _refuse_several({"--plan": plan, "--protocol": protocol, "--parameters": parameters})
    with progress(quiet=json):
        given = _given(plan, protocol, parameters)
        read = _reading(given)
        table = read_table(
            data, read, drop or [], [],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            engine=engine, master=master,
        )  # fmt: skip
        reports = _collected(table, given, protocol, epsilon, mechanism, group or [], share, seed)
        sl.write_reports(reports, output)
    if save_protocol:
        write_protocol(reports.protocol, save_protocol)
    _show_collected(reports, output, json)


def estimate(
    reports: Annotated[list[Path], typer.Argument(help="Report files; of both phases where there are two.")],
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
    copying: Annotated[
        str, typer.Option(help="Corr-RR's copy probabilities: 'published' or 'corrected'.")
    ] = "published",
    method: Annotated[str, typer.Option(help="With --learn: 'corr-rr' or 'cond-rr'.")] = "corr-rr",
    share: Annotated[float, typer.Option(help="With --learn: people in the first phase, of all.")] = 0.1,
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Estimate the frequencies of every attribute from reports."""
    import sidelight as sl

    check_writable(report, (".html", ".htm"))
    check_writable(learn, (".toml", ".json"))
    with progress(quiet=json):
        read = [sl.read_reports(path) for path in reports]
        if learn:
            design = _design(read[0], method, copying, share)
            design.learn(read).write(learn)
        found = sl.estimate(read, estimator=estimator, confidence=confidence, about=about)  # type: ignore[arg-type]
        known = _truth(truth, found.schema, encoding) if truth else None
    result = found.against(known) if known is not None else found
    written = sl.write_report(result, report) if report else None
    if json:
        typer.echo(result.to_json())
        return
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
    save_protocol: Annotated[
        Path | None, typer.Option(help="Write the advised protocol to this file (.toml or .json).")
    ] = None,
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
        schema, rows, known, origin = _assumed(
            data, attributes, values, public, first or [], drop or [], rules
        )
        count = people if people is not None else rows
        if count is None:
            raise sl.InputError("say how many people will report with --people, got none.")
        advice = sl.advise(schema, budget, count, known, origin)
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


def _reading(given: Any) -> Plan | None:
    """Return a plan by whose schema the table is read."""
    import sidelight as sl

    if given is None or isinstance(given, sl.Plan):
        return given
    schema = given.second.schema if isinstance(given, sl.Parameters) else given.schema
    return sl.Plan.uniform(schema)


def _collected(
    table: Table, given: Any, name: str | None, epsilon: float | None, mechanism: str | None,
    group: list[str], share: float, seed: int | None,
) -> Collected:  # fmt: skip
    import sidelight as sl
    from sidelight.collection import choose_protocol, collect_phase, make_protocol

    options = {"--epsilon": epsilon, "--mechanism": mechanism, "--group": group or None}
    for option, value in options.items():
        if given is not None and value is not None:
            raise sl.InputError(f"{option} is in the file already; change it there, or leave it out.")
    if isinstance(given, sl.Parameters):
        return collect_phase(table, given.design, given, seed=seed)
    if given is not None:
        protocol: Plan | Protocol = given
        return sl.collect(table, protocol, seed=seed)
    budget = 1.0 if epsilon is None else epsilon
    if name in (None, "best"):
        return sl.collect(table, choose_protocol(table.schema, budget), seed=seed)
    groups = [part.split(",") for part in group] or None
    made = make_protocol(str(name), table.schema, budget, mechanism=mechanism or "grr", groups=groups)
    if isinstance(made, sl.TwoPhase):
        design = sl.TwoPhase(table.schema, budget, made.method, share=share)
        return collect_phase(table, design, seed=seed)
    return sl.collect(table, made, seed=seed)


def _design(reports: Collected, method: str, copying: str, share: float) -> Any:
    import sidelight as sl

    protocol: Protocol = reports.protocol
    units = getattr(protocol, "units", ())
    nominal = sum(unit.epsilon or 0.0 for unit in units)
    if protocol.name != "spl" or not nominal:
        raise sl.InputError(f"--learn needs reports of a first phase, SPL with 'grr'; got {protocol.name!r}.")
    return sl.TwoPhase(protocol.schema, round(nominal, 12), method, copying, share)  # type: ignore[arg-type]


def _truth(data: str, schema: Schema, encoding: str) -> Any:
    import sidelight as sl
    from sidelight.collection import true_frequencies

    return true_frequencies(sl.read(data, schema=schema, encoding=encoding), schema)


def _assumed(
    data: str | None, attributes: int | None, values: int | None, public: bool, first: list[Path],
    drop: list[str], rules: dict[str, Any],
) -> tuple[Schema, int | None, Any, str]:  # fmt: skip
    """Return the schema, the table's rows, and the frequencies that are assumed, with their origin."""
    import sidelight as sl
    from sidelight.collection import true_frequencies

    if first:
        found = sl.estimate([sl.read_reports(path) for path in first])
        return found.schema, None, found, ""
    if data is None:
        if attributes is None or values is None:
            raise sl.InputError("name a table, or give --attributes and --values.")
        labels = [str(value) for value in range(values)]
        named = tuple(sl.categorical(f"x{number + 1}", labels) for number in range(attributes))
        return sl.Schema(named), None, None, ""
    table = read_table(data, None, drop, [], **rules)
    if not public:
        return table.schema, table.rows, None, ""
    return table.schema, table.rows, true_frequencies(table, table.schema), f"public data: {data}"


def _show_collected(reports: Collected, output: Path, json: bool) -> None:
    import json as writer

    protocol = reports.protocol
    if json:
        shown = {
            "protocol": protocol.name, "people": reports.people, "epsilon": protocol.epsilon,
            "proof": protocol.proof, "is_simulation": reports.is_simulation, "output": str(output),
        }  # fmt: skip
        typer.echo(writer.dumps(shown, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{reports.people} reports of {protocol.name!r} are in {output}.")
    typer.echo(f"A record's budget is {protocol.epsilon:.6g}: {protocol.proof}.")
    if reports.is_simulation:
        typer.echo("The noise came from a seed: a simulation, which protects nobody.")
