"""The command `learn`."""

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
    progress,
    read_table,
)

if TYPE_CHECKING:
    from sidelight.learning.learnt import Learnt


def learn(
    data: Data,
    label: Annotated[str, typer.Option(help="The column to predict, whose privacy is promised.")],
    epsilon: Annotated[float, typer.Option(help="What the reports may say about the label.")] = 1.0,
    model: Annotated[str, typer.Option(help="'tree' or 'bayes'.")] = "tree",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the model (.json).")] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the tree (.svg).")] = None,
    report: ReportFile = None,
    protocol: Annotated[str, typer.Option(help="'khr', 'basic' or 'labeldp'.")] = "khr",
    omega: Annotated[
        str, typer.Option(help="'learnt' from a share of the people, 'known', or a number in (0, 1].")
    ] = "learnt",
    k: Annotated[str, typer.Option(help="'search', 'published' or a whole number.")] = "search",
    confidence: Annotated[float, typer.Option(help="Of a learnt omega.")] = 0.95,
    depth: Annotated[int, typer.Option(help="Rounds, and longest path, of a tree.")] = 5,
    scheme: Annotated[str, typer.Option(help="Of a tree: 'turns', 'leaves' or 'published'.")] = "turns",
    budgets: Annotated[str, typer.Option(help="Of a tree's rounds: 'closed' or 'published'.")] = "closed",
    test_share: Annotated[float, typer.Option(help="Records kept for testing.")] = 0.3,
    seed: Annotated[int | None, typer.Option(help="For a simulation that can be repeated.")] = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Learn a model of a label from simulated private reports, and tell what they leak about it."""
    from sidelight.collection.labels.gathering import LabelSettings
    from sidelight.foundation.errors import InputError
    from sidelight.learning.learnt import learn as learn_model
    from sidelight.learning.rounds import TreeSettings

    check_writable(output, (".json",))
    check_writable(draw, (".svg",))
    check_writable(report, (".html", ".htm"))
    if draw and model != "tree":
        raise InputError("--draw is for a tree; leave it out, or use --model tree.")
    source: Any = omega if omega in ("learnt", "known") else _number("omega", omega)
    width: Any = k if k in ("search", "published") else _number("k", k, whole=True)
    settings = LabelSettings(epsilon, protocol, source, width, confidence)  # type: ignore[arg-type]
    tree = TreeSettings(epsilon, depth, scheme, budgets)  # type: ignore[arg-type]
    with progress(quiet=json):
        table = read_table(
            data, None, drop or [], [label],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
        )  # fmt: skip
        found = learn_model(
            table, label, model, settings, tree,  # type: ignore[arg-type]
            test_share=test_share, compare=report is not None, seed=seed,
        )  # fmt: skip
    _show(found, output, draw, report, json)
    if not found.statement.is_kept:
        raise typer.Exit(1)


def _number(name: str, text: str, *, whole: bool = False) -> float | int:
    from sidelight.foundation.errors import invalid

    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise invalid(name, "a number or one of its names", text) from None


def _show(found: Learnt, output: Path | None, draw: Path | None, report: Path | None, json: bool) -> None:
    import sidelight as sl
    from sidelight.learning.decision import DecisionTree
    from sidelight.learning.drawing import draw_tree

    written = [found.write(output)] if output else []
    if draw and isinstance(found.model, DecisionTree):
        written.append(draw_tree(found.model, found.attributes, found.label, draw))
    if report:
        written.append(sl.write_report(found, report))
    if json:
        typer.echo(found.to_json())
        return
    from sidelight.report.learning_terminal import print_learnt

    print_learnt(found)
    for path in written:
        typer.echo(f"Written: {path}.")
