"""The command `knowledge`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
)

if TYPE_CHECKING:
    from sidelight.belief import Belief
    from sidelight.leakage.knowledge import Adversary, Query
    from sidelight.schema import Schema
    from sidelight.sources import Table

Show = Callable[[bool], float]
"""Prints a result, as JSON or not, and returns the largest leakage in it."""
QueryKind = Annotated[str, typer.Option(help="'sum' of codes, 'mean', 'count' or 'histogram'.")]
Scale = Annotated[float, typer.Option(help="Scale of the Laplace noise.")]
Attributes = Annotated[
    list[str] | None, typer.Option(help="What the query is about, parted by commas. All columns by default.")
]
Weight = Annotated[
    list[str] | None, typer.Option(help="Weight of an attribute in a sum, name=number; repeatable.")
]
Count = Annotated[list[str] | None, typer.Option(help="What a count counts, name=value; repeatable.")]
Target = Annotated[
    list[str] | None, typer.Option(help="The attributes under attack, parted by commas. All by default.")
]
Known = Annotated[list[str] | None, typer.Option(help="What the adversary knows, parted by commas.")]


def knowledge(
    data: Data,
    query: QueryKind = "sum",
    scale: Scale = 1.0,
    attributes: Attributes = None,
    weight: Weight = None,
    count: Count = None,
    target: Target = None,
    known: Known = None,
    only: Annotated[bool, typer.Option("--only", help="This adversary alone; for wide tables.")] = False,
    limit: Annotated[
        float | None, typer.Option(help="Most that anyone may learn, in nats; finds the least noise.")
    ] = None,
    belief: Annotated[str, typer.Option(help="'joint' or 'tree' (a model of the table).")] = "joint",
    smoothing: Annotated[float, typer.Option(help="Evenly spread records added to the belief.")] = 0.0,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Tell what one noisy answer reveals to adversaries who already know some attributes."""
    import sidelight as sl
    from sidelight.foundation.errors import check_choice, check_number

    check_number("scale", scale, above=0)
    check_choice("belief", belief, ("joint", "tree"))
    if limit is not None:
        if only:
            raise sl.InputError("--only and --limit exclude each other; a limit looks at every adversary.")
        check_number("limit", limit, above=0)
    check_writable(report, (".html", ".htm"))
    asked, attacked, given = _split(attributes), _split(target), _split(known)
    adversary = _adversary(attacked, given, report, only=only)
    with progress(quiet=json):
        named = list(dict.fromkeys([*asked, *attacked, *given]))
        table = sl.read(
            data, columns=named if asked else None, drop=drop or [], require=named,
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,  # type: ignore[arg-type]
        )  # fmt: skip
        held = sl.Belief.from_data(table, belief, smoothing=smoothing)  # type: ignore[arg-type]
        question = _query(query, table.schema, scale, asked, weight or [], count or [])
        if only and adversary:
            show = _one(held, question, table, adversary)
        else:
            show = _everyone(held, question, table, attacked, adversary, limit, report)
    worst = show(json)
    if limit is not None and worst > limit * (1 + 1e-9):
        raise typer.Exit(1)


def _split(options: list[str] | None) -> list[str]:
    """Split lists at their commas."""
    return [name.strip() for option in options or [] for name in option.split(",") if name.strip()]


def _adversary(attacked: list[str], given: list[str], report: Path | None, *, only: bool) -> Adversary | None:
    """Return the adversary that is named, if one is."""
    import sidelight as sl

    if (only or given) and len(attacked) != 1:
        raise sl.InputError("--known and --only describe one adversary: name one --target.")
    if only and report:
        raise sl.InputError("--only and --report exclude each other; a report shows every adversary.")
    return sl.Adversary(attacked[0], tuple(given)) if only or given else None


def _query(
    kind: str, schema: Schema, scale: float, asked: list[str], weight: list[str], count: list[str]
) -> Query:
    """Return the query; columns that it is not about may be known or attacked, but add nothing."""
    import sidelight as sl
    from sidelight.foundation.errors import check_choice
    from sidelight.leakage.knowledge.query import KINDS

    check_choice("query", kind, KINDS)
    for given, option, fits in ((weight, "--weight", "sum"), (count, "--count", "count")):
        if given and kind != fits:
            raise sl.InputError(f"{option} belongs to --query {fits}, got --query {kind}.")
    silent = {name: 0.0 for name in schema.names if asked and name not in asked}
    if kind == "sum":
        names, weights = named_numbers(weight)
        for name in names:
            if name not in weights:
                raise sl.InputError(f"--weight must be name=number, got {name!r}.")
        return sl.Query.sum(schema, scale, {**silent, **weights})
    if kind == "count":
        return sl.Query.count(schema, _counted(schema, count), scale)
    whole = sl.Query.mean(schema, scale) if kind == "mean" else sl.Query.histogram(schema, scale)
    parts = whole.additive_parts()
    share = len(schema) / (len(schema) - len(silent)) if kind == "mean" else 1.0
    kept = {a.name: share * p for a, p in zip(schema, parts, strict=True) if a.name not in silent}
    return sl.Query.additive(schema, kept, scale, name=kind)


def _counted(schema: Schema, options: list[str]) -> dict[str, list[str]]:
    """Return the values that a count counts, by attribute."""
    import sidelight as sl

    found: dict[str, list[str]] = {}
    for option in options:
        name, _, value = option.partition("=")
        if not value:
            raise sl.InputError(f"--count must be name=value, got {option!r}.")
        schema[name].code(value)
        found.setdefault(name, []).append(value)
    if not found:
        raise sl.InputError("--query count needs at least one --count name=value.")
    return found


def _one(belief: Belief, query: Query, table: Table, adversary: Adversary) -> Show:
    """Compute one adversary's figures; return what prints them."""
    from sidelight.leakage.knowledge.audit import adversary_audit
    from sidelight.report.knowledge_terminal import adversary_json, print_adversary

    found = adversary_audit(belief, query, adversary)

    def show(json: bool) -> float:
        if json:
            typer.echo(adversary_json(found))
        else:
            print_adversary(found, belief, query, table)
        return found.exact.value

    return show


def _everyone(
    belief: Belief,
    query: Query,
    table: Table,
    attacked: list[str],
    adversary: Adversary | None,
    limit: float | None,
    report: Path | None,
) -> Show:
    """Compute every adversary's figures; return what prints them and writes the report."""
    import sidelight as sl
    from sidelight.report.knowledge_terminal import print_knowledge

    named = [adversary] if adversary else []
    found = sl.knowledge_audit(belief, query, attacked or None, named=named, limit=limit)

    def show(json: bool) -> float:
        written = sl.write_report(found, report) if report else None
        if json:
            typer.echo(found.to_json())
        else:
            print_knowledge(found, table)
            if written:
                typer.echo(f"The report is in {written}.")
        return found.worst.exact.value

    return show
