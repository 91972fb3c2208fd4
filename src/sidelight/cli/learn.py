"""The command `learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import PAGE, check_writable, echo_json, first_given, progress, read_table
from sidelight.cli.options import WITHOUT_ENGINE, Data, Json, Reading, ReportFile, flag, grouped
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.learning.learnt import ModelKind


@dataclass(frozen=True)
class Model:
    """What is learnt, and the files it is written to."""

    label: Annotated[str, typer.Option(help="The column to predict.")]
    epsilon: float = flag(1.0, "What the reports may say about the label, or about what is secret.")
    secret: str = flag(
        "both",
        "What nobody sends as it is: 'both' attributes and label, only the 'label', or the 'attributes'.",
    )
    model: str | None = flag(
        None,
        "'bayes' [the default], 'tree' or 'trees'; with --secret label 'blend' [the default], 'logistic', "
        "'boosting', 'bayes' or 'tree'.",
    )
    output: Path | None = flag(None, "Write the model (.json).", "-o", "--output")
    draw: Path | None = flag(None, "Draw the tree (.svg).")
    report: ReportFile = None


@dataclass(frozen=True)
class Training:
    """How labels are reported, how a tree is grown, and how the model is tested."""

    protocol: str = flag("khr", "'khr', 'basic' or 'labeldp'.")
    omega: str | None = flag(
        None,
        "For 'khr': 'auto' [the default: learnt where that is predicted to pay, else 1], 'learnt' from a "
        "share of the people, 'known', or a number in (0, 1].",
    )
    k: str | None = flag(None, "For 'khr': 'search' [the default], 'published' or a whole number.")
    confidence: float | None = flag(None, "Of a learnt omega [0.95].")
    depth: int | None = flag(None, "Longest path of a tree, and its rounds [5].")
    scheme: str | None = flag(None, "Of a tree: 'once' [the default], 'turns', 'leaves' or 'published'.")
    budgets: str | None = flag(None, "Of a tree's rounds: 'closed' [the default] or 'published'.")
    test_share: float = flag(0.3, "Records kept for testing.")
    seed: int | None = flag(None, "For a simulation that can be repeated.")


@grouped(without=WITHOUT_ENGINE)
def learn(data: Data, model: Model, training: Training, reading: Reading, json: Json = False) -> None:
    """Learn a model of a label from simulated private reports, and tell what they leak about it."""
    kind, settings, tree = _checked(model, training)
    with progress(quiet=json):
        table = read_table(data, reading)
        learnt = sl.learn(
            table, model.label, kind, settings, tree,
            test_share=training.test_share, compare=model.report is not None, seed=training.seed,
        )  # fmt: skip
    _show(replace(learnt, notes=tuple(table.notes())), model, json)
    if not learnt.statement.is_kept:
        raise typer.Exit(1)


def _checked(
    model: Model, training: Training
) -> tuple[ModelKind, sl.labels.LabelSettings, sl.learning.TreeSettings]:
    """Refuse before the work what no table makes right; return the kind of model and the settings."""
    from sidelight.learning.learnt import WITHOUT_FILE, checked_kind

    for path, suffixes in ((model.output, (".json",)), (model.draw, (".svg",)), (model.report, PAGE)):
        check_writable(path, suffixes)
    if training.seed is not None:
        check_whole("seed", training.seed, at_least=0)
    labels = _label_settings(model, training)
    kind = checked_kind(model.model, labels.secret)  # type: ignore[arg-type]
    if kind in WITHOUT_FILE:
        _refuse({"--output": model.output}, f"cannot hold a {kind} model", "use --model logistic")
    parts = {"depth": training.depth, "scheme": training.scheme, "budgets": training.budgets}
    if kind != "tree":
        of_tree = {"--draw": model.draw} | {f"--{name}": value for name, value in parts.items()}
        if kind == "trees":
            del of_tree["--depth"]
        _refuse(of_tree, "is for a tree", "use --model tree")
    elif labels.protocol == "labeldp":
        of_rounds = {"--scheme": training.scheme, "--budgets": training.budgets}
        _refuse(of_rounds, "is for trees of reports of both", "use --secret both with --protocol khr")
    elif training.scheme not in ("leaves", "published"):
        _refuse({"--budgets": training.budgets}, "is for answers in every round", "use --scheme leaves")
    given: dict[str, Any] = {name: value for name, value in parts.items() if value is not None}
    return kind, labels, sl.learning.TreeSettings(model.epsilon, **{"scheme": "once", **given})


def _refuse(options: Mapping[str, object], reason: str, instead: str) -> None:
    if name := first_given(options):
        raise InputError(f"{name} {reason}; leave it out, or {instead}.")


def _label_settings(model: Model, training: Training) -> sl.labels.LabelSettings:
    parts: dict[str, Any] = {}
    if training.omega is not None:
        parts["omega"] = _named_or_number("omega", training.omega, ("auto", "learnt", "known"))
    if training.k is not None:
        parts["k"] = _named_or_number("k", training.k, ("search", "published"), whole=True)
    if training.confidence is not None:
        parts["confidence"] = training.confidence
    secret: Any = model.secret
    protocol: Any = training.protocol
    settings = sl.labels.LabelSettings(model.epsilon, protocol, secret=secret, **parts)
    if settings.protocol != "khr":
        instead = "use --protocol khr" if settings.secret == "both" else "use --secret both"
        _refuse({"--omega": training.omega, "--k": training.k}, "is for kHR", instead)
    if settings.protocol != "khr" or settings.omega not in ("auto", "learnt"):
        _refuse({"--confidence": training.confidence}, "is that of a learnt omega", "let kHR learn it")
    return settings


def _named_or_number(name: str, text: str, names: tuple[str, ...], *, whole: bool = False) -> str | float:
    """Return one of an option's names, or the number that it is."""
    if text in names:
        return text
    try:
        return int(text) if whole else float(text)
    except ValueError:
        named = " or ".join(map(repr, names))
        raise invalid(name, f"a {'whole ' * whole}number, {named}", text) from None


def _show(learnt: sl.learning.Learnt, model: Model, json: bool) -> None:
    from sidelight.report.learning import notes

    written = [learnt.write(model.output)] if model.output else []
    if model.draw:  # which is refused unless the model is a tree
        tree: Any = learnt.model
        written.append(sl.learning.draw_tree(tree, learnt.attributes, learnt.label, model.draw))
    if model.report:
        written.append(sl.write_report(learnt, model.report))
    if json:
        echo_json(learnt.to_data() | {"notes": notes(learnt)})
        return
    sl.report.print_learnt(learnt)
    for path in written:
        say(f"Written: {path}.")
