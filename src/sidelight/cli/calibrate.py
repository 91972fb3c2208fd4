"""The command `calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Data,
    Drop,
    Encoding,
    Json,
    MaxValues,
    Missing,
    ReportFile,
    check_writable,
    named_numbers,
    progress,
    read_table,
    refuse_both,
)

if TYPE_CHECKING:
    from sidelight.calibration import Calibration
    from sidelight.sources import Table

_FRONTIER = (0.25, 0.5, 1.0, 2.0, 4.0)


def calibrate(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the plan to this .toml or .json file.")
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(help="How much every attribute may leak, in nats [1 if no secret is named]."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="A secret, or secret=limit; repeatable. Without --limit the only secrets."),
    ] = None,
    not_secret: Annotated[
        list[str] | None, typer.Option(help="An attribute that may leak without limit; repeatable.")
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option(help="attribute=number: how much its error counts [1]; repeatable.")
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(help="attribute=budget that is not to be changed; repeatable.")
    ] = None,
    withhold: Annotated[
        list[str] | None, typer.Option(help="An attribute that is not released; repeatable.")
    ] = None,
    as_is: Annotated[
        list[str] | None, typer.Option(help="An attribute that is released without noise; repeatable.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Of every attribute, without a plan [grr]; 'auto' chooses by error.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Take mechanisms and bins from this plan.")] = None,
    uniform: Annotated[bool, typer.Option("--uniform", help="One budget for all attributes.")] = False,
    constraint: Annotated[
        str, typer.Option(help="'table' (certified), 'tree' (a model), 'robust' or 'published' (no bound).")
    ] = "table",
    method: Annotated[
        str, typer.Option(help="Of 'table': 'auto', 'exact', 'joint generic', 'composition'.")
    ] = "auto",
    confidence: Annotated[float, typer.Option(help="Of 'robust'.")] = 0.95,
    utility: Annotated[str, typer.Option(help="'variance' or 'accuracy'.")] = "variance",
    collected: Annotated[
        str | None, typer.Option(help="A table the plan will be used on; it is audited under that too.")
    ] = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    smoothing: Annotated[float, typer.Option(help="Evenly spread records added to the belief.")] = 0.0,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Find the largest budgets that keep every secret under its limit."""
    import sidelight as sl

    check_writable(output, (".toml", ".json"))
    check_writable(report, (".html", ".htm"))
    secrets, limits = named_numbers(secret or [])
    weights, fixed = _numbers("--weight", weight or []), _numbers("--fix", fix or [])
    named = [*secrets, *(not_secret or []), *weights, *fixed, *(withhold or []), *(as_is or [])]
    rules: dict[str, Any] = {
        "bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding,
    }  # fmt: skip
    with progress(quiet=json):
        given = sl.Plan.read(plan) if plan else None
        refuse_both(given, {"--mechanism": mechanism})
        table = read_table(data, given, drop or [], named, **rules)
        belief = sl.Belief.from_data(table, smoothing=smoothing)
        chosen = _secrets(table, secrets, not_secret or [], everyone=limit is not None)
        result = sl.calibrate(
            belief,
            1.0 if limit is None else limit,
            limits=limits,
            secrets=chosen,
            budgets="uniform" if uniform else "unequal",
            constraint=constraint,  # type: ignore[arg-type]
            method=method,  # type: ignore[arg-type]
            confidence=confidence,
            mechanism=mechanism or "grr",
            mechanisms=dict.fromkeys(withhold or [], "withheld") | dict.fromkeys(as_is or [], "identity"),
            fixed=fixed,
            weights=weights,
            utility=utility,  # type: ignore[arg-type]
            plan=given,
            collected=_collected(collected, table, rules),
            frontier=_FRONTIER if report else (),
            compare=report is not None,
        )
    _show(result, table, output, report, json)
    if result.is_sound and not result.is_within:
        raise typer.Exit(1)


def _numbers(option: str, texts: list[str]) -> dict[str, float]:
    """Read options of the form name=number."""
    from sidelight.foundation.errors import InputError

    names, numbers = named_numbers(texts)
    for name in names:
        if name not in numbers:
            raise InputError(f"`{option}` must be of the form attribute=number, got {name!r}.")
    return numbers


def _secrets(table: Table, named: list[str], excluded: list[str], *, everyone: bool) -> list[str] | None:
    """Return the secrets: all attributes with --limit or if none is named, less those that are not secret."""
    if not excluded:
        return named if named and not everyone else None
    pool = named if named and not everyone else table.schema.names
    return [name for name in pool if name not in excluded]


def _collected(data: str | None, table: Table, rules: dict[str, Any]) -> Any:
    """Read the table the plan will be used on, coded as the first one."""
    import sidelight as sl

    if data is None:
        return None
    return sl.Belief.from_data(sl.read(data, schema=table.schema, encoding=rules["encoding"]))


def _show(result: Calibration, table: Table, output: Path | None, report: Path | None, json: bool) -> None:
    """Write what was asked for, and print the rest."""
    import sidelight as sl

    if output:
        result.plan.write(output)
    written = sl.write_report(result, report) if report else None
    if json:
        typer.echo(result.to_json())
        return
    from sidelight.report.calibration_terminal import print_calibration

    print_calibration(result, table)
    if output:
        typer.echo(f"The plan is in {output}.")
    if written:
        typer.echo(f"The report is in {written}.")
