"""The command `learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Column,
    Data,
    Drop,
    Encoding,
    Json,
    Kinds,
    MaxValues,
    Missing,
    Na,
    ReportFile,
    SchemaFile,
    Sql,
    check_writable,
    echo_json,
    first_given,
    progress,
    read_table,
    stated,
)
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.labels.collection import LabelSettings
    from sidelight.learning.learnt import Learnt
    from sidelight.learning.rounds import TreeSettings


OmegaSource = Annotated[
    str | None,
    typer.Option(
        help="For 'khr': 'learnt' from a share of the people [the default], 'known', or a number in (0, 1]."
    ),
]
Width = Annotated[
    str | None, typer.Option(help="For 'khr': 'search' [the default], 'published' or a whole number.")
]
Scheme = Annotated[
    str | None, typer.Option(help="Of a tree: 'turns' [the default], 'leaves' or 'published'.")
]
Rounds = Annotated[
    str | None, typer.Option(help="Of a tree's rounds: 'closed' [the default] or 'published'.")
]


def learn(
    data: Data,
    label: Annotated[str, typer.Option(help="The column to predict, whose privacy is promised.")],
    epsilon: Annotated[float, typer.Option(help="What the reports may say about the label.")] = 1.0,
    model: Annotated[str, typer.Option(help="'tree' or 'bayes'.")] = "tree",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the model (.json).")] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the tree (.svg).")] = None,
    report: ReportFile = None,
    protocol: Annotated[str, typer.Option(help="'khr', 'basic' or 'labeldp'.")] = "khr",
    omega: OmegaSource = None,
    k: Width = None,
    confidence: Annotated[float | None, typer.Option(help="Of a learnt omega [0.95].")] = None,
    depth: Annotated[int | None, typer.Option(help="Rounds, and longest path, of a tree [5].")] = None,
    scheme: Scheme = None,
    budgets: Rounds = None,
    test_share: Annotated[float, typer.Option(help="Records kept for testing.")] = 0.3,
    seed: Annotated[int | None, typer.Option(help="For a simulation that can be repeated.")] = None,
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
    json: Json = False,
) -> None:
    """Learn a model of a label from simulated private reports, and tell what they leak about it."""
    from sidelight.foundation.errors import check_choice, check_whole
    from sidelight.learning.learnt import MODELS
    from sidelight.learning.learnt import learn as learn_model

    check_writable(output, (".json",))
    check_writable(draw, (".svg",))
    check_writable(report, (".html", ".htm"))
    if seed is not None:
        check_whole("seed", seed, at_least=0)
    of_tree = {"--draw": draw, "--depth": depth, "--scheme": scheme, "--budgets": budgets}
    if check_choice("model", model, MODELS) != "tree":
        _refuse(of_tree, "is for a tree", "use --model tree")
    settings = _label_settings(epsilon, protocol, omega, k, confidence)
    tree = _tree_settings(epsilon, of_tree)
    with progress(quiet=json):
        table = read_table(
            data, None, drop or [], [],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            columns=column, na=na, sql=sql, **stated(schema, kinds),
        )  # fmt: skip
        found = learn_model(
            table, label, model, settings, tree,  # type: ignore[arg-type]
            test_share=test_share, compare=report is not None, seed=seed,
        )  # fmt: skip
    _show(replace(found, notes=tuple(table.notes())), output, draw, report, json)
    if not found.statement.is_kept:
        raise typer.Exit(1)


def _refuse(options: Mapping[str, object], reason: str, instead: str) -> None:
    from sidelight.foundation.errors import InputError

    if name := first_given(options):
        raise InputError(f"{name} {reason}; leave it out, or {instead}.")


def _label_settings(
    epsilon: float, protocol: str, omega: str | None, k: str | None, confidence: float | None
) -> LabelSettings:
    from sidelight.labels.collection import LabelSettings

    parts: dict[str, Any] = {}
    if omega is not None:
        parts["omega"] = _named_or_number("omega", omega, ("learnt", "known"))
    if k is not None:
        parts["k"] = _named_or_number("k", k, ("search", "published"), whole=True)
    if confidence is not None:
        parts["confidence"] = confidence
    settings = LabelSettings(epsilon, protocol, **parts)  # type: ignore[arg-type]
    if protocol != "khr":
        _refuse({"--omega": omega, "--k": k}, "is for kHR", "use --protocol khr")
    if protocol != "khr" or settings.omega != "learnt":
        _refuse({"--confidence": confidence}, "is that of a learnt omega", "let kHR learn it")
    return settings


def _tree_settings(epsilon: float, options: dict[str, Any]) -> TreeSettings:
    from sidelight.learning.rounds import TreeSettings

    parts = {name: options[f"--{name}"] for name in ("depth", "scheme", "budgets")}
    return TreeSettings(epsilon, **{name: value for name, value in parts.items() if value is not None})


def _named_or_number(name: str, text: str, names: tuple[str, ...], *, whole: bool = False) -> str | float:
    """Return one of an option's names, or the number that it is."""
    from sidelight.foundation.errors import invalid

    if text in names:
        return text
    try:
        return int(text) if whole else float(text)
    except ValueError:
        named = " or ".join(map(repr, names))
        raise invalid(name, f"a {'whole ' * whole}number, {named}", text) from None


def _show(found: Learnt, output: Path | None, draw: Path | None, report: Path | None, json: bool) -> None:
    import sidelight as sl
    from sidelight.learning.decision import DecisionTree
    from sidelight.learning.diagram import draw_tree

    written = [found.write(output)] if output else []
    if draw and isinstance(found.model, DecisionTree):
        written.append(draw_tree(found.model, found.attributes, found.label, draw))
    if report:
        written.append(sl.write_report(found, report))
    from sidelight.report.learning import notes, print_learnt

    if json:
        echo_json(found.to_data() | {"notes": notes(found)})
        return
    print_learnt(found)
    for path in written:
        say(f"Written: {path}.")
