"""The command line: thin, since every command is a few calls of the library.

Exit codes: 0 fine, 1 a limit is exceeded (or not certified to be kept), 2 bad input, 3 internal error.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sidelight.auditing import Audit
    from sidelight.plan import Plan
    from sidelight.sources import Table

app = typer.Typer(
    name="sidelight",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")]


def _version(wanted: bool) -> None:
    if wanted:
        from sidelight import __version__

        typer.echo(f"sidelight {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Tell what the attributes of a private data collection reveal about each other."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(report: ReportFile = None, json: Json = False) -> None:
    """Audit a bundled table: the 2,201 people of the Titanic."""
    import sidelight as sl

    with _progress(quiet=json):
        table = sl.example("titanic")
        plan = sl.Plan.uniform(table.schema)
        result = sl.audit(sl.Belief.from_data(table), plan)
    _show(result, table, report, json)
    if not json:
        from sidelight.report.terminal import print_lesson

        print_lesson()


@app.command()
def audit(
    data: Annotated[str, typer.Argument(help="A CSV, TSV or Parquet file, a glob or a folder.")],
    plan: Annotated[Path | None, typer.Option(help="A plan file (.toml or .json).")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Budget of every attribute, without a plan [1].")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Mechanism of every attribute, without a plan [grr].")
    ] = None,
    limit: Annotated[float | None, typer.Option(help="How much each secret may leak, in nats [1].")] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="A secret, or secret=limit; repeatable. All attributes by default."),
    ] = None,
    withhold: Annotated[
        list[str] | None, typer.Option(help="An attribute that is not released; repeatable.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
    bins: Annotated[int, typer.Option(help="Bins of a numeric column.")] = 10,
    max_values: Annotated[int, typer.Option(help="Fold the rarest values above so many into one.")] = 50,
    missing: Annotated[str, typer.Option(help="'value' (of its own) or 'drop' (the record).")] = "value",
    encoding: Annotated[str, typer.Option(help="Of a text file.")] = "utf-8",
    belief: Annotated[str, typer.Option(help="'auto', 'joint' or 'pairwise'.")] = "auto",
    smoothing: Annotated[float, typer.Option(help="Evenly spread records added to the belief.")] = 0.0,
    method: Annotated[
        str, typer.Option(help="Of the total: 'auto', 'exact', 'joint generic', 'composition'.")
    ] = "auto",
    min_support: Annotated[int, typer.Option(help="Suppress figures that rest on fewer records.")] = 0,
    save_plan: Annotated[
        Path | None, typer.Option(help="Write the plan that was audited to this file.")
    ] = None,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Tell what a release reveals about each attribute through the others."""
    import sidelight as sl

    secrets, limits = _secrets(secret or [])
    _check_writable(report, (".html", ".htm"))
    _check_writable(save_plan, (".toml", ".json"))
    with _progress(quiet=json):
        given = sl.Plan.read(plan) if plan else None
        _refuse_both(given, {"--epsilon": epsilon, "--mechanism": mechanism})
        table = _read(
            data, given, drop or [], [*secrets, *(withhold or [])],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
        )  # fmt: skip
        chosen = _plan(table, given, epsilon, mechanism, limit, limits, withhold or [])
        known = sl.Belief.from_data(table, belief, smoothing=smoothing)  # type: ignore[arg-type]
        result = sl.audit(known, chosen, secrets or None, method=method, min_support=min_support)  # type: ignore[arg-type]
    if save_plan:
        chosen.write(save_plan)
    _show(result, table, report, json)
    if not result.is_within:
        raise typer.Exit(1)


@app.command()
def doctor(json: Json = False) -> None:
    """Check the installation: versions, extras, randomness, compiled kernels."""
    from sidelight.doctor import diagnose, print_diagnosis

    findings = diagnose()
    if json:
        import json as writer

        typer.echo(writer.dumps([vars(finding) for finding in findings], indent=2))
    else:
        print_diagnosis(findings)
    if not all(finding.is_fine for finding in findings if finding.is_required):
        raise typer.Exit(3)


def _secrets(options: list[str]) -> tuple[list[str], dict[str, float]]:
    """Split `--secret name` and `--secret name=limit`; a name may have an = itself."""
    names, limits = [], {}
    for option in options:
        name, _, text = option.rpartition("=")
        limit = _number(text) if name else None
        if limit is not None:
            limits[name] = limit
        names.append(name if limit is not None else option)
    return names, limits


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _refuse_both(plan: Plan | None, options: dict[str, object]) -> None:
    from sidelight.foundation.errors import InputError

    for name, value in options.items():
        if plan is not None and value is not None:
            raise InputError(f"{name} and --plan exclude each other; change the plan, or leave one out.")


def _check_writable(path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Refuse before the work what could not be written after it."""
    from sidelight.foundation.errors import InputError

    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path} must end in {' or '.join(suffixes)}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: its folder does not exist, or it is a folder itself.")


def _read(data: str, plan: Plan | None, drop: list[str], named: list[str], **rules: Any) -> Table:
    """Open the table; columns that the plan releases are coded as the plan says."""
    import sidelight as sl
    from sidelight.sources import column_names

    if plan is None:
        return sl.read(data, drop=drop, require=named, **rules)
    columns = column_names(data, encoding=rules["encoding"])
    missing = [name for name in plan.names if name not in columns]
    if missing:
        raise sl.InputError(
            f"the plan releases {missing[0]!r}, which is not a column of {data}; its columns are "
            f"{', '.join(columns[:20])}."
        )
    return sl.read(data, drop=drop, schema=plan.schema, rest=True, require=named, **rules)


def _plan(
    table: Table,
    given: Plan | None,
    epsilon: float | None,
    mechanism: str | None,
    limit: float | None,
    limits: dict[str, float],
    withhold: list[str],
) -> Plan:
    import sidelight as sl

    budget = 1.0 if epsilon is None else epsilon
    plan = given or sl.Plan.uniform(table.schema, mechanism or "grr", budget)
    kept = plan.withholding(withhold) if withhold else plan
    general = limit if limit is not None else kept.limit
    return sl.Plan(kept.releases, general, {**kept.limits, **limits}, kept.origin)


def _show(result: Audit, table: Table, report: Path | None, json: bool) -> None:
    import sidelight as sl

    written = sl.write_report(result, report) if report else None
    if json:
        typer.echo(result.to_json())
        return
    from sidelight.report.terminal import print_audit

    print_audit(result, table)
    if written:
        typer.echo(f"The report is in {written}.")


def _progress(*, quiet: bool) -> Any:
    from sidelight.foundation.progress import progress_bars

    return nullcontext() if quiet else progress_bars()


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    try:
        code = app(standalone_mode=False)
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing was left half written.", err=True)
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last line of defence turns everything into an exit code
        sys.exit(_explain(error))
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> int:
    from sidelight.foundation.errors import SidelightError

    if os.environ.get("SIDELIGHT_TRACEBACK"):
        raise error
    usage = getattr(error, "format_message", None)
    if isinstance(error, SidelightError) or usage:
        message = usage() if usage else str(error)
        typer.echo("error: " + " ".join(message.split()), err=True)
        return 2
    kind = type(error).__name__
    typer.echo(
        f"internal error ({kind}): {error}. Set SIDELIGHT_TRACEBACK=1 to see where, and report it.", err=True
    )
    return 3
