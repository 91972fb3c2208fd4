"""The command `knowledge`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli import common
from sidelight.cli.common import Shown, check_counts, check_writable, echo_json, progress, read_table, show
from sidelight.cli.options import WITHOUT_ENGINE, Data, MinSupport, Names, Reading, Smoothing, flag, grouped
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.foundation.files import write_text

Found = tuple[Any, Any, Any]
"""The figures of one adversary or of everyone, the belief and the query."""
GraphFile = Annotated[
    Path | None, typer.Option(help="Write the published graph (IC, IR and LS of every edge): .json or .dot.")
]


@dataclass(frozen=True)
class Asked:
    """The query, the adversaries and the belief."""

    query: str = flag("sum", "'sum' of codes, 'mean', 'count' or 'histogram'.")
    scale: float = flag(1.0, "Scale of the Laplace noise.")
    attributes: Names = flag(
        None, "What the query is about: a column or several parted by commas; repeatable [all]."
    )
    weight: Names = flag(None, "Weight of an attribute in a sum, name=number; repeatable.")
    count: Names = flag(None, "What a count counts, name=value; repeatable.")
    target: Names = flag(
        None, "The attributes under attack: one or several parted by commas; repeatable [all]."
    )
    known: Names = flag(
        None, "What the adversary knows: an attribute or several parted by commas; repeatable."
    )
    only: bool = flag(False, "This adversary alone; for wide tables.", "--only")
    limit: float | None = flag(None, "Most that anyone may learn, in nats; finds the least noise.")
    decide_by: str = flag(
        "table",
        "For whom --limit must be kept: who knows the 'table', or who takes a 'model' for it "
        "(--belief tree or gaussian).",
    )
    belief: str = flag(
        "joint", "'joint', or a model: 'tree', or 'gaussian' of numbers as they are, not binned."
    )
    reach: float | None = flag(
        None, "With --belief gaussian: how far apart two values may be; as in the table by default."
    )
    smoothing: Smoothing = 0.0


@grouped(without=(*WITHOUT_ENGINE, "column"))
def knowledge(
    data: Data, *, asked: Asked, reading: Reading, min_support: MinSupport = 0, graph: GraphFile = None,
    shown: Shown,
) -> None:  # fmt: skip
    """Tell what one noisy answer reveals to adversaries who already know some attributes."""
    check_number("scale", asked.scale, above=0)
    lists = (asked.attributes or [], asked.target or [], asked.known or [])
    columns = _columns(data, reading, [*lists[0], *lists[1], *lists[2], *(reading.drop or [])])
    about, attacked, given = (_split(options, columns) for options in lists)
    named = list(dict.fromkeys([*about, *attacked, *given]))
    adversary = _adversary(attacked, given, only=asked.only)
    wanted = Wanted(asked, about, attacked, adversary, min_support, graph, shown)
    wanted.check()
    with progress(quiet=shown.json):
        table = read_table(data, replace(reading, column=named if about else None), named=named)
        found = (_gaussian if asked.belief == "gaussian" else _listed)(wanted, table)
    worst = _show(found, wanted, table)
    if asked.limit is not None and worst > asked.limit * (1 + 1e-9):  # a figure at its limit may round above
        raise typer.Exit(1)


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line, with its lists of columns taken apart."""

    options: Asked  # the query, the adversaries and the belief, as written
    about: list[str]  # the columns that the query is about; none for all
    attacked: list[str]  # the targets; none for all
    adversary: sl.Adversary | None  # the one that is named, if one is
    min_support: int  # of a figure that is shown
    graph: Path | None  # the file for the published graph
    shown: Shown

    def check(self) -> None:
        """Refuse before the work what does not go together."""
        from sidelight.knowledge.query import KINDS

        asked, is_gaussian = self.options, self.options.belief == "gaussian"
        check_choice("belief", asked.belief, ("joint", "tree", "gaussian"))
        deciders = ("table",) if asked.belief == "joint" else ("table", "model")
        check_choice("decide_by", asked.decide_by, deciders)
        check_choice("query", asked.query, ("sum", "mean") if is_gaussian else KINDS)
        if asked.limit is not None:
            check_number("limit", asked.limit, above=0)
        check_counts(smoothing=asked.smoothing, min_support=self.min_support)
        check_writable(self.graph, (".json", ".dot"))
        for option, value, query in (("--weight", asked.weight, "sum"), ("--count", asked.count, "count")):
            if value and asked.query != query:
                raise InputError(f"{option} belongs to --query {query}, got --query {asked.query}.")
        everyone = {"limit": asked.limit, "report": self.shown.report, "graph": self.graph}
        for name, given in everyone.items():
            if asked.only and given is not None:
                raise InputError(f"--only and --{name} exclude each other; {name} is about everyone.")
        self._check_belief(is_gaussian)

    def _check_belief(self, is_gaussian: bool) -> None:
        """Refuse options that the belief gives no meaning to."""
        reach, smoothing = self.options.reach, self.options.smoothing
        if reach is not None and not is_gaussian:
            raise InputError("--reach belongs to --belief gaussian; other beliefs know how far values go.")
        if self.graph and (is_gaussian or self.min_support):
            raise InputError(
                "--graph needs a joint or tree belief and no --min-support: the graph is that of a joint "
                "distribution, and no records are counted behind its edges."
            )
        if is_gaussian and smoothing:
            raise InputError("--smoothing is for joint and tree beliefs; leave it out.")
        if is_gaussian and self.min_support and reach is None:
            raise InputError(
                "--min-support with --belief gaussian needs --reach: how far values go in the table rests on "
                "its two outermost records."
            )


def _columns(data: str, reading: Reading, options: list[str]) -> list[str]:
    """Return the columns of a table, if a comma in an option makes it matter what they are called."""
    if not any("," in option for option in options):
        return []
    return sl.sources.column_names(data, encoding=reading.encoding, sql=reading.sql)


def _split(options: list[str], columns: list[str]) -> list[str]:
    """Split lists at their commas, but not the name of a column that has some."""
    lists = [[option] if option in columns else option.split(",") for option in options]
    return [
        name.strip() if name not in columns else name for names in lists for name in names if name.strip()
    ]


def _adversary(attacked: list[str], given: list[str], *, only: bool) -> sl.Adversary | None:
    """Return the adversary that is named, if one is."""
    if (only or given) and len(attacked) != 1:
        raise InputError("--known and --only describe one adversary: name one --target.")
    return sl.Adversary(attacked[0], tuple(given)) if only or given else None


def _weights(wanted: Wanted, names: Sequence[str]) -> dict[str, float]:
    """Return the weights of a sum: 0 for columns that it is not about, which may be known or attacked."""
    weights = common.numbers_only("--weight", "name=number", wanted.options.weight or [])
    return {**{name: 0.0 for name in names if wanted.about and name not in wanted.about}, **weights}


def _query(wanted: Wanted, schema: sl.Schema) -> sl.Query:
    """Return the query; columns that it is not about add nothing."""
    kind, scale = wanted.options.query, wanted.options.scale
    if kind == "count":
        return sl.Query.count(schema, _counted(schema, wanted.options.count or []), scale)
    weights = _weights(wanted, schema.names)
    if kind == "sum":
        return sl.Query.sum(schema, scale, weights)
    whole = sl.Query.mean(schema, scale) if kind == "mean" else sl.Query.histogram(schema, scale)
    share = len(schema) / (len(schema) - len(weights)) if kind == "mean" else 1.0
    parts = zip(schema, whole.additive_parts(), strict=True)
    kept = {a.name: share * part for a, part in parts if a.name not in weights}
    return sl.Query.additive(schema, kept, scale, name=kind)


def _counted(schema: sl.Schema, options: list[str]) -> dict[str, list[str]]:
    """Return the values that a count counts, by attribute."""
    counted: dict[str, list[str]] = {}
    for option in options:
        name, _, value = option.partition("=")
        if not value:
            raise InputError(f"--count must be name=value, got {option!r}.")
        schema[name].code(value)
        counted.setdefault(name, []).append(value)
    if not counted:
        raise InputError("--query count needs at least one --count name=value.")
    return counted


def _listed(wanted: Wanted, table: sl.Table) -> Found:
    """Compute the figures for a joint or a tree belief."""
    from sidelight.knowledge.audit import adversary_audit

    asked, named, least = wanted.options, wanted.adversary, wanted.min_support
    belief = sl.Belief.from_data(table, asked.belief, smoothing=asked.smoothing)  # type: ignore[arg-type]
    query = _query(wanted, table.schema)
    if asked.only and named:
        return adversary_audit(belief, query, named, min_support=least), belief, query
    rules: dict[str, Any] = {"named": [named] if named else [], "limit": asked.limit, "min_support": least}
    return sl.knowledge_audit(belief, query, wanted.attacked or None, **rules), belief, query


def _gaussian(wanted: Wanted, table: sl.Table) -> Found:
    """Compute the figures for a Gaussian of columns of numbers."""
    from sidelight.knowledge.gaussian import gaussian_figures

    asked, named = wanted.options, wanted.adversary
    listed = [*wanted.about, *wanted.attacked, *(named.known if named else ())]
    belief = sl.belief.Gaussian.from_data(table, list(dict.fromkeys(listed)) if wanted.about else None)
    weights = _weights(wanted, belief.names)
    if asked.query == "mean":
        share = 1 / (len(belief.names) - len(weights))
        weights = {name: weights.get(name, share) for name in belief.names}
    rules: dict[str, Any] = {"scale": asked.scale, "reach": asked.reach, "weights": weights}
    if asked.only and named:
        query, figures = gaussian_figures(belief, named, **rules)
        return figures, belief, query
    rules |= {"named": [named] if named else [], "limit": asked.limit}
    audit = sl.knowledge.gaussian_audit(belief, wanted.attacked or None, **rules)
    return audit, belief, audit.query


def _show(found: Found, wanted: Wanted, table: sl.Table) -> float:
    """Print the figures, write the files that were asked for; return what must keep the limit.

    A model's figure shows nothing about the table. Unless it is asked to decide, the group bound does, which
    holds for every table.
    """
    result, belief, query = found
    if wanted.options.only:
        if wanted.shown.json:
            echo_json(result.to_dict())
        else:
            sl.report.print_adversary(result, belief, query, table)
        return float(result.exact.value)
    said = [f"The graph is in {_write_graph(result, wanted.graph)}."] if wanted.graph else []
    show(result, wanted.shown, lambda: sl.report.print_knowledge(result, table), said)
    decides = wanted.options.decide_by == "model" or not result.belief.is_model
    return float(result.worst.exact.value if decides else result.group.worst()[1])


def _write_graph(audit: sl.knowledge.KnowledgeAudit, path: Path) -> Path:
    """Write the published graph: all of it as JSON, or that of the worst adversary's target for Graphviz."""
    if audit.graph is None:
        raise InputError(
            "this query has no published graph to write: it needs one number as an answer, and at most "
            "12 attributes with a small joint table."
        )
    if path.suffix.lower() == ".dot":
        return write_text(path, audit.graph.to_dot(audit.worst.adversary.target) + "\n")
    return write_text(path, json.dumps(audit.graph.to_dict(), indent=2, ensure_ascii=False) + "\n")
