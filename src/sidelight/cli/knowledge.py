"""The command `knowledge`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli.common import (
    Bins,
    Data,
    Drop,
    Encoding,
    Json,
    Kinds,
    MaxValues,
    MinSupport,
    Missing,
    Na,
    ReportFile,
    SchemaFile,
    Smoothing,
    Sql,
    check_counts,
    check_writable,
    check_written,
    named_numbers,
    progress,
    stated,
)
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.belief import Belief, Gaussian
    from sidelight.knowledge import Adversary, AdversaryAudit, KnowledgeAudit, NumberSum, Query
    from sidelight.schema import Schema
    from sidelight.sources import Table

Show = Callable[[bool], float]
"""Prints a result, as JSON or not, and returns the largest leakage in it."""
QueryKind = Annotated[str, typer.Option(help="'sum' of codes, 'mean', 'count' or 'histogram'.")]
Scale = Annotated[float, typer.Option(help="Scale of the Laplace noise.")]
Attributes = Annotated[
    list[str] | None,
    typer.Option(help="What the query is about: a column or several parted by commas; repeatable [all]."),
]
Weight = Annotated[
    list[str] | None, typer.Option(help="Weight of an attribute in a sum, name=number; repeatable.")
]
Count = Annotated[list[str] | None, typer.Option(help="What a count counts, name=value; repeatable.")]
Target = Annotated[
    list[str] | None,
    typer.Option(help="The attributes under attack: one or several parted by commas; repeatable [all]."),
]
Known = Annotated[
    list[str] | None,
    typer.Option(help="What the adversary knows: an attribute or several parted by commas; repeatable."),
]
Only = Annotated[bool, typer.Option("--only", help="This adversary alone; for wide tables.")]
Limit = Annotated[
    float | None, typer.Option(help="Most that anyone may learn, in nats; finds the least noise.")
]
DecideBy = Annotated[
    str,
    typer.Option(
        help="For whom --limit must be kept: who knows the 'table', or who takes a 'model' for it "
        "(--belief tree or gaussian)."
    ),
]
BeliefKind = Annotated[
    str, typer.Option(help="'joint', or a model: 'tree', or 'gaussian' of numbers as they are, not binned.")
]
Reach = Annotated[
    float | None,
    typer.Option(help="With --belief gaussian: how far apart two values may be; as in the table by default."),
]
GraphFile = Annotated[
    Path | None, typer.Option(help="Write the published graph (IC, IR and LS of every edge): .json or .dot.")
]


def knowledge(
    data: Data,
    query: QueryKind = "sum",
    scale: Scale = 1.0,
    attributes: Attributes = None,
    weight: Weight = None,
    count: Count = None,
    target: Target = None,
    known: Known = None,
    only: Only = False,
    limit: Limit = None,
    decide_by: DecideBy = "table",
    belief: BeliefKind = "joint",
    reach: Reach = None,
    smoothing: Smoothing = 0.0,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    schema: SchemaFile = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    na: Na = None,
    sql: Sql = None,
    min_support: MinSupport = 0,
    graph: GraphFile = None,
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Tell what one noisy answer reveals to adversaries who already know some attributes."""
    import sidelight as sl
    from sidelight.foundation.errors import check_number

    lists = (attributes or [], target or [], known or [])
    columns = _columns(data, encoding, sql, [*lists[0], *lists[1], *lists[2], *(drop or [])])
    check_written(columns, drop or [])
    asked, attacked, given = (_split(options, columns) for options in lists)
    named = list(dict.fromkeys([*asked, *attacked, *given]))
    wanted = Wanted(
        query=query, scale=check_number("scale", scale, above=0), asked=asked, attacked=attacked,
        weight=weight or [], count=count or [], adversary=_adversary(attacked, given, only=only), only=only,
        limit=limit, decide_by=decide_by, belief=belief, reach=reach, smoothing=smoothing,
        min_support=min_support, files={"--report": report, "--graph": graph},
    )  # fmt: skip
    _check(wanted)
    with progress(quiet=json):
        table = sl.read(
            data, columns=named if asked else None, drop=drop or [], require=named,
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,  # type: ignore[arg-type]
            na=na, sql=sql, **stated(schema, kinds),
        )  # fmt: skip
        show = _gaussian(wanted, table) if belief == "gaussian" else _listed(wanted, table)
    worst = show(json)
    if limit is not None and worst > limit * (1 + 1e-9):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    query: str
    scale: float
    asked: list[str]
    attacked: list[str]
    weight: list[str]
    count: list[str]
    adversary: Adversary | None
    only: bool
    limit: float | None
    decide_by: str
    belief: str
    reach: float | None
    smoothing: float
    min_support: int
    files: dict[str, Path | None]


def _check(wanted: Wanted) -> None:
    """Refuse before the work what does not go together."""
    import sidelight as sl
    from sidelight.foundation.errors import check_choice, check_number
    from sidelight.knowledge.query import KINDS

    check_choice("belief", wanted.belief, ("joint", "tree", "gaussian"))
    check_choice(
        "decide_by", wanted.decide_by, ("table",) if wanted.belief == "joint" else ("table", "model")
    )
    is_gaussian = wanted.belief == "gaussian"
    check_choice("query", wanted.query, ("sum", "mean") if is_gaussian else KINDS)
    if wanted.limit is not None:
        check_number("limit", wanted.limit, above=0)
    check_counts(smoothing=wanted.smoothing, min_support=wanted.min_support)
    check_writable(wanted.files["--report"], (".html", ".htm"))
    check_writable(wanted.files["--graph"], (".json", ".dot"))
    for given, option, fits in ((wanted.weight, "--weight", "sum"), (wanted.count, "--count", "count")):
        if given and wanted.query != fits:
            raise sl.InputError(f"{option} belongs to --query {fits}, got --query {wanted.query}.")
    everyone = {"--limit": wanted.limit, **wanted.files}
    for option, value in everyone.items():
        if wanted.only and value is not None:
            raise sl.InputError(f"--only and {option} exclude each other; {option[2:]} is about everyone.")
    if wanted.reach is not None and not is_gaussian:
        raise sl.InputError("--reach belongs to --belief gaussian; other beliefs know how far values go.")
    if wanted.files["--graph"] and (is_gaussian or wanted.min_support):
        raise sl.InputError(
            "--graph needs a joint or tree belief and no --min-support: the graph is that of a joint "
            "distribution, and no records are counted behind its edges."
        )
    if is_gaussian and wanted.smoothing:
        raise sl.InputError("--smoothing is for joint and tree beliefs; leave it out.")
    if is_gaussian and wanted.min_support and wanted.reach is None:
        raise sl.InputError(
            "--min-support with --belief gaussian needs --reach: how far values go in the table rests on "
            "its two outermost records."
        )


def _columns(data: str, encoding: str, sql: str | None, options: list[str]) -> list[str]:
    """Return the columns of a table, if a comma in an option makes it matter what they are called."""
    from sidelight.sources import column_names

    return column_names(data, encoding=encoding, sql=sql) if any("," in option for option in options) else []


def _split(options: list[str], columns: list[str]) -> list[str]:
    """Split lists at their commas, but not the name of a column that has some."""
    lists = [[option] if option in columns else option.split(",") for option in options]
    return [
        name.strip() if name not in columns else name for names in lists for name in names if name.strip()
    ]


def _adversary(attacked: list[str], given: list[str], *, only: bool) -> Adversary | None:
    """Return the adversary that is named, if one is."""
    import sidelight as sl

    if (only or given) and len(attacked) != 1:
        raise sl.InputError("--known and --only describe one adversary: name one --target.")
    return sl.Adversary(attacked[0], tuple(given)) if only or given else None


def _weights(wanted: Wanted, names: Sequence[str]) -> dict[str, float]:
    """Return the weights of a sum: 0 for columns that it is not about, which may be known or attacked."""
    import sidelight as sl

    listed, weights = named_numbers(wanted.weight)
    for name in listed:
        if name not in weights:
            raise sl.InputError(f"--weight must be name=number, got {name!r}.")
    return {**{name: 0.0 for name in names if wanted.asked and name not in wanted.asked}, **weights}


def _query(wanted: Wanted, schema: Schema) -> Query:
    """Return the query; columns that it is not about add nothing."""
    import sidelight as sl

    if wanted.query == "count":
        return sl.Query.count(schema, _counted(schema, wanted.count), wanted.scale)
    weights = _weights(wanted, schema.names)
    if wanted.query == "sum":
        return sl.Query.sum(schema, wanted.scale, weights)
    is_mean = wanted.query == "mean"
    whole = sl.Query.mean(schema, wanted.scale) if is_mean else sl.Query.histogram(schema, wanted.scale)
    share = len(schema) / (len(schema) - len(weights)) if is_mean else 1.0
    parts = zip(schema, whole.additive_parts(), strict=True)
    kept = {a.name: share * part for a, part in parts if a.name not in weights}
    return sl.Query.additive(schema, kept, wanted.scale, name=wanted.query)


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


def _listed(wanted: Wanted, table: Table) -> Show:
    """Compute the figures for a joint or a tree belief; return what prints them."""
    import sidelight as sl
    from sidelight.knowledge.audit import adversary_audit

    belief = sl.Belief.from_data(table, wanted.belief, smoothing=wanted.smoothing)  # type: ignore[arg-type]
    query = _query(wanted, table.schema)
    if wanted.only and wanted.adversary:
        found = adversary_audit(belief, query, wanted.adversary, min_support=wanted.min_support)
        return _show_one(found, belief, query, table)
    audit = sl.knowledge_audit(
        belief, query, wanted.attacked or None, named=[wanted.adversary] if wanted.adversary else [],
        limit=wanted.limit, min_support=wanted.min_support,
    )  # fmt: skip
    return _show_everyone(audit, wanted, table)


def _gaussian(wanted: Wanted, table: Table) -> Show:
    """Compute the figures for a Gaussian of columns of numbers; return what prints them."""
    import sidelight as sl
    from sidelight.knowledge.gaussian_audit import gaussian_figures

    named = wanted.adversary
    listed = [*wanted.asked, *wanted.attacked, *(named.known if named else ())]
    belief = sl.belief.Gaussian.from_data(table, list(dict.fromkeys(listed)) if wanted.asked else None)
    weights = _weights(wanted, belief.names)
    if wanted.query == "mean":
        share = 1 / (len(belief.names) - len(weights))
        weights = {name: weights.get(name, share) for name in belief.names}
    rules = {"scale": wanted.scale, "reach": wanted.reach, "weights": weights}
    if wanted.only and named:
        query, found = gaussian_figures(belief, named, **rules)  # type: ignore[arg-type]
        return _show_one(found, belief, query, table)
    audit = sl.knowledge.gaussian_audit(
        belief, wanted.attacked or None, named=[named] if named else [], limit=wanted.limit,
        **rules,  # type: ignore[arg-type]
    )  # fmt: skip
    return _show_everyone(audit, wanted, table)


def _show_one(
    found: AdversaryAudit, belief: Belief | Gaussian, query: Query | NumberSum, table: Table
) -> Show:
    from sidelight.report.knowledge_terminal import adversary_json, print_adversary

    def show(json: bool) -> float:
        if json:
            say_json(adversary_json(found))
        else:
            print_adversary(found, belief, query, table)
        return found.exact.value

    return show


def _show_everyone(audit: KnowledgeAudit, wanted: Wanted, table: Table) -> Show:
    """Return what prints every adversary's figures and writes the files that were asked for."""
    import sidelight as sl
    from sidelight.report.knowledge_terminal import print_knowledge

    def show(json: bool) -> float:
        report, graph = wanted.files["--report"], wanted.files["--graph"]
        written = {"graph": _write_graph(audit, graph)} if graph else {}
        written |= {"report": sl.write_report(audit, report)} if report else {}
        if json:
            say_json(audit.to_json())
        else:
            print_knowledge(audit, table)
            for name, path in written.items():
                say(f"The {name} is in {path}.")
        return _decisive(audit, wanted.decide_by)

    return show


def _decisive(audit: KnowledgeAudit, decide_by: str) -> float:
    """Return the figure that must keep the limit.

    A model's figure shows nothing about the table. Unless it is asked to decide, the group bound does, which
    holds for every table.
    """
    if decide_by == "model" or not audit.belief.is_model:
        return audit.worst.exact.value
    return audit.group.worst()[1]


def _write_graph(audit: KnowledgeAudit, path: Path) -> Path:
    """Write the published graph: all of it as JSON, or that of the worst adversary's target for Graphviz."""
    import json

    import sidelight as sl
    from sidelight.foundation.files import write_text

    if audit.graph is None:
        raise sl.InputError(
            "this query has no published graph to write: it needs one number as an answer, and at most "
            "12 attributes with a small joint table."
        )
    if path.suffix.lower() == ".dot":
        return write_text(path, audit.graph.to_dot(audit.worst.adversary.target) + "\n")
    return write_text(path, json.dumps(audit.graph.to_dict(), indent=2, ensure_ascii=False) + "\n")
