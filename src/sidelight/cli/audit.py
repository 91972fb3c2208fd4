"""The commands `demo` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    MinSupport,
    Missing,
    Na,
    ReportFile,
    SchemaFile,
    Secret,
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
    from sidelight.auditing import Audit
    from sidelight.plan import Plan
    from sidelight.sources import Table


PlanFile = Annotated[Path | None, typer.Option(help="A plan file (.toml or .json).")]
Epsilon = Annotated[float | None, typer.Option(help="Budget of every attribute, without a plan [1].")]
Mechanism = Annotated[str | None, typer.Option(help="Mechanism of every attribute, without a plan [grr].")]
Limit = Annotated[
    float | None, typer.Option(help="How much each secret may leak, in nats [as in the plan, else 1].")
]
Withhold = Annotated[list[str] | None, typer.Option(help="An attribute that is not released; repeatable.")]
BeliefKind = Annotated[
    str, typer.Option(help="'auto', 'joint', 'pairwise', or 'tree': also the figure of a tree model.")
]
Adversary = Annotated[str, typer.Option(help="Keeps the whole 'report', or one 'guess' from it.")]
DecideBy = Annotated[
    str,
    typer.Option(
        help="For whom limits must be kept: the whole 'report', or a weaker adversary that was asked for: "
        "'guess' (--adversary guess), 'model' (--belief tree), 'model guess' (both)."
    ),
]
Confidence = Annotated[
    float | None, typer.Option(help="Also figures that hold together with this confidence, as 0.95.")
]
Synergies = Annotated[int, typer.Option(help="How many pairs of reports to name that say more together.")]
Method = Annotated[str, typer.Option(help="Of the total: 'auto', 'exact', 'joint generic' or 'composition'.")]
SavePlan = Annotated[Path | None, typer.Option(help="Write the plan that was audited to this file.")]


def demo(report: ReportFile = None, json: Json = False) -> None:
    """Audit a bundled table: the 2,201 people of the Titanic."""
    import sidelight as sl

    with progress(quiet=json):
        table = sl.example("titanic")
        plan = sl.Plan.uniform(table.schema)
        result = sl.audit(sl.Belief.from_data(table), plan)
    _show(result, table, report, json)
    if not json:
        from sidelight.report.audit import print_lesson

        print_lesson()


def audit(
    data: Data,
    plan: PlanFile = None,
    epsilon: Epsilon = None,
    mechanism: Mechanism = None,
    limit: Limit = None,
    secret: Secret = None,
    withhold: Withhold = None,
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
    belief: BeliefKind = "auto",
    adversary: Adversary = "report",
    decide_by: DecideBy = "report",
    confidence: Confidence = None,
    synergy: Synergies = 0,
    smoothing: Smoothing = 0.0,
    method: Method = "auto",
    min_support: MinSupport = 0,
    save_plan: SavePlan = None,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Tell what a release reveals about each attribute through the others.

    Exit code 0 means that every secret is certified to stay within its limit, for the adversary who decides.
    """
    import sidelight as sl

    secrets, limits = named_numbers(secret or [])
    check_writable(report, (".html", ".htm"))
    check_writable(save_plan, (".toml", ".json"))
    check_limits(limit, limits)
    _check(epsilon, belief, method, adversary, confidence, decide_by)
    check_counts(smoothing=smoothing, synergies=synergy, min_support=min_support)
    with progress(quiet=json):
        given = sl.Plan.read(plan) if plan else None
        refuse_both(given, {"--epsilon": epsilon, "--mechanism": mechanism})
        table = read_table(
            data, given, drop or [], [*secrets, *(withhold or [])],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            columns=column, na=na, sql=sql,
            engine=engine, master=master, numbered=secrets, **stated(schema, kinds),
        )  # fmt: skip
        plain = given or sl.Plan.uniform(
            table.schema, mechanism or "grr", 1.0 if epsilon is None else epsilon
        )
        kept = plain.withholding(withhold) if withhold else plain
        chosen = _limited(kept, limit, limits, secrets if given else [])
        kind = "auto" if belief == "tree" else belief
        known = sl.Belief.from_data(table, kind, smoothing=smoothing)  # type: ignore[arg-type]
        result = sl.audit(
            known, chosen, secrets or None,
            method=method, adversary=adversary, model=belief == "tree",  # type: ignore[arg-type]
            confidence=confidence, synergies=synergy, min_support=min_support,
            decide_by=decide_by,  # type: ignore[arg-type]
        )  # fmt: skip
    if save_plan:
        chosen.write(save_plan)
    _show(result, table, report, json)
    if not result.is_within:
        raise typer.Exit(1)


def _check(
    epsilon: float | None,
    belief: str,
    method: str,
    adversary: str,
    confidence: float | None,
    decide_by: str,
) -> None:
    """Refuse before the work what no table makes right."""
    from sidelight.auditing import check_decider
    from sidelight.foundation.errors import check_choice, check_number, invalid

    if epsilon is not None:
        check_number("epsilon", epsilon, above=0)
    if confidence is not None:
        check_number("confidence", confidence, above=0, below=1)
    check_choice("belief", belief, ("auto", "joint", "pairwise", "tree"))
    check_choice("adversary", adversary, ("report", "guess"))
    check_decider(decide_by, adversary, is_model=False, has_model=belief == "tree")  # type: ignore[arg-type]
    if method == "tree":  # a model's figure is no bound, so no verdict may rest on it
        raise invalid("method", "a bound on the total", method, "--belief tree shows that figure beside it.")
    check_choice("method", method, ("auto", "exact", "joint generic", "composition"))


def _limited(plan: Plan, limit: float | None, limits: dict[str, float], secrets: list[str]) -> Plan:
    """Return the plan with the limits that were given: one for a secret, one for all audited, the plan's."""
    import sidelight as sl

    if limit is None:
        return sl.Plan(plan.releases, plan.limit, {**plan.limits, **limits}, plan.origin)
    if secrets:
        own = {**plan.limits, **dict.fromkeys(secrets, limit), **limits}
        return sl.Plan(plan.releases, plan.limit, own, plan.origin)
    return sl.Plan(plan.releases, limit, limits, plan.origin)


def _show(result: Audit, table: Table, report: Path | None, json: bool) -> None:
    """Print the audit, and write the report if one is asked for."""
    import sidelight as sl

    written = sl.write_report(result, report) if report else None
    if json:
        say_json(result.to_json())
        return
    from sidelight.report.audit import print_audit

    print_audit(result, table)
    if written:
        say(f"The report is in {written}.")
