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
    EngineName,
    Json,
    Master,
    MaxValues,
    Missing,
    ReportFile,
    Smoothing,
    check_writable,
    named_numbers,
    progress,
    read_table,
    refuse_both,
)

if TYPE_CHECKING:
    from sidelight.belief import Belief
    from sidelight.calibration import Calibration
    from sidelight.plan import Plan
    from sidelight.sources import Table

_FRONTIER = (0.25, 0.5, 1.0, 2.0, 4.0)


Names = list[str] | None
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the plan to this .toml or .json file.")
]
Limit = Annotated[
    float | None, typer.Option(help="How much every attribute may leak, in nats [1 if no secret is named].")
]
Secrets = Annotated[
    Names, typer.Option(help="A secret, or secret=limit; repeatable. Without --limit the only secrets.")
]
NotSecret = Annotated[Names, typer.Option(help="An attribute that may leak without limit; repeatable.")]
Weight = Annotated[Names, typer.Option(help="attribute=number: how much its error counts [1]; repeatable.")]
Fix = Annotated[Names, typer.Option(help="attribute=budget that is not to be changed; repeatable.")]
Withhold = Annotated[Names, typer.Option(help="An attribute that is not released; repeatable.")]
AsIs = Annotated[Names, typer.Option(help="An attribute that is released without noise; repeatable.")]
MechanismName = Annotated[
    str | None, typer.Option(help="Of every attribute, without a plan [grr]; 'auto' chooses by error.")
]
PlanFile = Annotated[Path | None, typer.Option(help="Take mechanisms and bins from this plan.")]
Uniform = Annotated[bool, typer.Option("--uniform", help="One budget for all attributes.")]
ConstraintChoice = Annotated[
    str, typer.Option(help="'table' (certified), 'tree' (a model), 'robust' or 'published' (no bound).")
]
Method = Annotated[str, typer.Option(help="Of 'table': 'auto', 'exact', 'joint generic', 'composition'.")]
Confidence = Annotated[float | None, typer.Option(help="Of 'robust', between 0 and 1 [0.95].")]
UtilityChoice = Annotated[str, typer.Option(help="'variance' or 'accuracy'.")]
Collected = Annotated[
    str | None, typer.Option(help="A table the plan will be used on; it is audited under that too.")
]


def calibrate(
    data: Data,
    output: Output = None,
    limit: Limit = None,
    secret: Secrets = None,
    not_secret: NotSecret = None,
    weight: Weight = None,
    fix: Fix = None,
    withhold: Withhold = None,
    as_is: AsIs = None,
    mechanism: MechanismName = None,
    plan: PlanFile = None,
    uniform: Uniform = False,
    constraint: ConstraintChoice = "table",
    method: Method = "auto",
    confidence: Confidence = None,
    utility: UtilityChoice = "variance",
    collected: Collected = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    engine: EngineName = "local",
    master: Master = None,
    smoothing: Smoothing = 0.0,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Find the largest budgets that keep every secret under its limit."""
    check_writable(output, (".toml", ".json"))
    check_writable(report, (".html", ".htm"))
    secrets, limits = named_numbers(secret or [])
    fixed, weights = _numbers("--fix", fix or []), _numbers("--weight", weight or [])
    hidden, plain = withhold or [], as_is or []
    _refuse_contradictions(
        {"--withhold": hidden, "--as-is": plain}, {"--secret": secrets, "--not-secret": not_secret or []}
    )
    named = [*secrets, *(not_secret or []), *weights, *fixed, *hidden, *plain]
    rules = {
        "bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding, "engine": engine,
        "master": master,
    }  # fmt: skip
    options: dict[str, Any] = {
        "limits": limits, "budgets": "uniform" if uniform else "unequal", "constraint": constraint,
        "method": method, "confidence": confidence, "mechanism": mechanism or "grr", "fixed": fixed,
        "mechanisms": dict.fromkeys(hidden, "withheld") | dict.fromkeys(plain, "identity"),
        "weights": weights, "utility": utility,
        "frontier": _FRONTIER if report else (), "compare": report is not None,
    }  # fmt: skip
    with progress(quiet=json):
        table, given = _read(data, plan, mechanism, drop or [], named, rules)
        chosen = _secrets(table, secrets, not_secret or [], everyone=limit is not None)
        options |= {"secrets": chosen, "plan": given, "collected": _collected(collected, table, encoding)}
        result = _calibrated(table, smoothing, 1.0 if limit is None else limit, options)
    _show(result, table, output, report, json)
    if not all(audit.is_within for audit in (result.audit, result.collected) if audit is not None):
        raise typer.Exit(1)


def _refuse_contradictions(*pairs: dict[str, list[str]]) -> None:
    """Refuse an attribute that two options say opposite things about."""
    from sidelight.foundation.errors import InputError

    for options in pairs:
        (first, ours), (second, theirs) = options.items()
        for name in set(ours) & set(theirs):
            raise InputError(f"{name!r} is named by {first} and by {second}; choose one.")


def _read(
    data: str,
    plan: Path | None,
    mechanism: str | None,
    drop: list[str],
    named: list[str],
    rules: dict[str, Any],
) -> tuple[Table, Plan | None]:
    """Read the plan that lends its mechanisms, if there is one, and the table, coded as it says."""
    import sidelight as sl

    given = sl.Plan.read(plan) if plan else None
    refuse_both(given, {"--mechanism": mechanism})
    return read_table(data, given, drop, named, **rules), given


def _calibrated(table: Table, smoothing: float, limit: float, options: dict[str, Any]) -> Calibration:
    import sidelight as sl

    return sl.calibrate(sl.Belief.from_data(table, smoothing=smoothing), limit, **options)


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


def _collected(data: str | None, table: Table, encoding: str) -> Belief | None:
    """Read the table the plan will be used on, coded as the first one."""
    import sidelight as sl

    return (
        None if data is None else sl.Belief.from_data(sl.read(data, schema=table.schema, encoding=encoding))
    )


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
