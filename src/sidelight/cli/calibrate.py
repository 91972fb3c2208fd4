"""The command `calibrate`."""

from __future__ import annotations

import math
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
    Json,
    Kinds,
    Master,
    MaxValues,
    Missing,
    Na,
    ReportFile,
    SchemaFile,
    Smoothing,
    Sql,
    check_counts,
    check_limits,
    check_writable,
    named_numbers,
    progress,
    read_table,
    refuse_both,
    stated,
)
from sidelight.foundation.terminal import say, say_json

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
    float | None,
    typer.Option(
        help="How much every attribute may leak, in nats [if no secret is named: the plan's, or 1]."
    ),
]
Secrets = Annotated[
    Names,
    typer.Option(
        help="A secret, or secret=limit [the plan's, or 1]; repeatable. Without --limit the only ones."
    ),
]
NotSecret = Annotated[Names, typer.Option(help="An attribute that may leak without limit; repeatable.")]
Weight = Annotated[Names, typer.Option(help="attribute=number: how much its error counts [1]; repeatable.")]
Fix = Annotated[Names, typer.Option(help="attribute=budget that is not to be changed; repeatable.")]
Withhold = Annotated[Names, typer.Option(help="An attribute that is not released; repeatable.")]
AsIs = Annotated[Names, typer.Option(help="An attribute that is released without noise; repeatable.")]
MechanismName = Annotated[
    str | None, typer.Option(help="Of every attribute, without a plan [grr]; 'auto' chooses by error.")
]
PlanFile = Annotated[
    Path | None, typer.Option(help="Take mechanisms, bins and limits that are not given from here.")
]
Uniform = Annotated[bool, typer.Option("--uniform", help="One budget for all attributes.")]
ConstraintChoice = Annotated[
    str, typer.Option(help="'table' (certified), 'tree' (a model), 'robust' or 'published' (no bound).")
]
Method = Annotated[str, typer.Option(help="Of 'table': 'auto', 'exact', 'joint generic', 'composition'.")]
Confidence = Annotated[float | None, typer.Option(help="Of 'robust', between 0 and 1 [0.95].")]
DecideBy = Annotated[
    str,
    typer.Option(
        help="For whom limits must be kept in the end: the whole 'report', or a 'model' (--constraint tree)."
    ),
]
UtilityChoice = Annotated[str, typer.Option(help="'variance' or 'accuracy'.")]
CollectedTable = Annotated[
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
    decide_by: DecideBy = "report",
    utility: UtilityChoice = "variance",
    collected: CollectedTable = None,
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
    smoothing: Smoothing = 0.0,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Find the largest budgets that keep every secret under its limit.

    Exit code 0 means that every secret is certified to stay within its limit, for the adversary who decides.
    """
    check_writable(output, (".toml", ".json"))
    check_writable(report, (".html", ".htm"))
    secrets, limits = named_numbers(secret or [])
    check_limits(limit, limits)
    fixed, weights = _numbers("--fix", fix or []), _numbers("--weight", weight or [])
    _check(fixed, weights, utility, constraint, method, confidence, smoothing)
    _check_decider(decide_by, constraint)
    hidden, plain, free = withhold or [], as_is or [], not_secret or []
    _refuse_opposites({"--withhold": hidden, "--as-is": plain}, {"--secret": secrets, "--not-secret": free})
    named = [*secrets, *free, *weights, *fixed, *hidden, *plain]
    rules = {
        "bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding, "engine": engine,
        "columns": column, "na": na, "sql": sql,
        "master": master, "numbered": secrets, **stated(schema, kinds),
    }  # fmt: skip
    options: dict[str, Any] = {
        "limit": limit, "limits": limits, "budgets": "uniform" if uniform else "unequal",
        "constraint": constraint, "method": method, "confidence": confidence, "fixed": fixed,
        "mechanisms": dict.fromkeys(hidden, "withheld") | dict.fromkeys(plain, "identity"),
        "mechanism": mechanism or "grr", "weights": weights, "utility": utility,
        "frontier": _FRONTIER if report else (), "compare": report is not None, "decide_by": decide_by,
    }  # fmt: skip
    with progress(quiet=json):
        table, given = _read(data, plan, mechanism, drop or [], named, rules)
        chosen = _secrets(table, secrets, free, given, everyone=limit is not None)
        options |= {"secrets": chosen, "plan": given, "collected": _collected(collected, table, encoding)}
        result = _calibrated(table, smoothing, options)
    is_given = limit is not None or bool(secrets and set(secrets) <= set(limits))
    _show(result, table, output, report, json, lender=None if is_given else plan)
    if not (result.is_within and (result.collected is None or result.collected.is_within)):
        raise typer.Exit(1)


def _refuse_opposites(*pairs: dict[str, list[str]]) -> None:
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


def _check(
    fixed: dict[str, float],
    weights: dict[str, float],
    utility: str,
    constraint: str,
    method: str,
    confidence: float | None,
    smoothing: float,
) -> None:
    """Refuse before the work what no table makes right."""
    from sidelight.calibration.constraint import check_constraint
    from sidelight.calibration.problem import check_weight
    from sidelight.calibration.utility import UTILITIES
    from sidelight.foundation.errors import check_choice, check_number
    from sidelight.plan import LARGEST_EPSILON

    check_constraint(constraint, method, confidence)
    check_counts(smoothing=smoothing)
    check_choice("utility", utility, UTILITIES)
    for name, budget in fixed.items():
        check_number(f"epsilon of {name}", budget, above=0, below=LARGEST_EPSILON)
    for name, weight in weights.items():
        check_weight(name, weight)


def _check_decider(decide_by: str, constraint: str) -> None:
    """Refuse before the work to let a model decide where there is none."""
    from sidelight.auditing import check_decider

    check_decider(decide_by, "report", is_model=constraint == "tree", has_model=False)


def _calibrated(table: Table, smoothing: float, options: dict[str, Any]) -> Calibration:
    import sidelight as sl

    return sl.calibrate(sl.Belief.from_data(table, smoothing=smoothing), **options)


def _numbers(option: str, texts: list[str]) -> dict[str, float]:
    """Read options of the form name=number."""
    from sidelight.foundation.errors import InputError

    names, numbers = named_numbers(texts)
    for name in names:
        if name not in numbers:
            raise InputError(f"`{option}` must be of the form attribute=number, got {name!r}.")
    return numbers


def _secrets(
    table: Table, named: list[str], excluded: list[str], plan: Plan | None, *, everyone: bool
) -> list[str] | None:
    """Return the secrets: all attributes with --limit or if none is named, less those that are not secret.

    Where the limits are the plan's, what it lets leak without limit is no secret either.
    """
    if named and not everyone:
        return [name for name in named if name not in excluded]
    if not excluded:
        return None
    names = table.schema.names
    if plan is not None and not everyone:
        names = tuple(name for name in names if plan.limit_of(name) < math.inf)
    return [name for name in names if name not in excluded]


def _collected(data: str | None, table: Table, encoding: str) -> Belief | None:
    """Read the table the plan will be used on, coded as the first one."""
    import sidelight as sl

    return (
        None if data is None else sl.Belief.from_data(sl.read(data, schema=table.schema, encoding=encoding))
    )


def _show(
    result: Calibration,
    table: Table,
    output: Path | None,
    report: Path | None,
    json: bool,
    lender: Path | None,
) -> None:
    """Write what was asked for, and print the rest; the plan that lent limits is named."""
    import sidelight as sl

    if output:
        result.plan.write(output)
    written = sl.write_report(result, report) if report else None
    if json:
        say_json(result.to_json())
        return
    from sidelight.report.calibration import print_calibration

    print_calibration(result, table)
    if lender:
        say(f"Limits that were not given are those of {lender}.")
    if output:
        say(f"The plan is in {output}.")
    if written:
        say(f"The report is in {written}.")
