"""A learnt model: its accuracy beside others', what its collection leaks, the model itself."""

from __future__ import annotations

import math
from typing import Any

from rich.text import Text

from sidelight.foundation.forecasts import FindingKind
from sidelight.foundation.intervals import Interval
from sidelight.learning.decision_tree import tree_text
from sidelight.learning.diagram import tree_svg
from sidelight.learning.learnt import Learnt
from sidelight.learning.tested import OWN
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, drawn, plotted
from sidelight.report.style import Trace, axis, places, scatter, whiskers
from sidelight.report.wording import AS_PUBLIC, decimals, labels

_KINDS: tuple[FindingKind, ...] = ("accuracy", "balanced accuracy", "AUC")
_COLUMNS = ("model", *_KINDS, "log loss")
_NAMES = {
    "tree": "decision tree", "trees": "averaged trees", "bayes": "Naive Bayes", "blend": "blend",
    "logistic": "logistic regression", "boosting": "boosted trees",
}  # fmt: skip
_MANY_ALONE = 0.1
_COLOURS = {
    "line": "var(--neutral)", "word": "var(--muted)", "ink": "var(--ink)",
    "question": "var(--within-soft)", "leaf": "var(--card)",
}  # fmt: skip


def learnt_page(learnt: Learnt) -> Page:
    """Return the page of a learnt model."""
    shown, name = _shown(learnt), model_name(learnt)
    budgets = budgets_figure(learnt) if learnt.spent and shown["is_tree"] else None
    models = {"models": model_rows(learnt), "columns": _COLUMNS, "is_better": _is_better(learnt)}
    said = {"name": name, "notes": notes(learnt)[2:], "ends": _ends, "leaking": leaking(learnt)}
    context = {"learnt": learnt, **said, **models, **shown}
    title = f"Sidelight: {name} for {learnt.label.name}"
    return Page(title, "learning.html.j2", context, drawn(accuracy=accuracy_figure(learnt), budgets=budgets))


def _shown(learnt: Learnt) -> dict[str, Any]:
    """Return what the page shows of the model itself: a tree drawn and as text, or tables.

    Their rows are an attribute, a value, Pr(value | label) by label, and whether it is the first value.
    """
    from markupsafe import Markup

    model: Any = learnt.model
    attributes, label = learnt.attributes, learnt.label
    if learnt.kind in ("trees", "logistic", "blend", "boosting"):
        return {"is_tree": False, "drawing": "", "text": "", "tables": [], "weights": _weights(learnt)}
    if learnt.kind != "tree":
        tables = [
            (attribute.name, value, [float(share) for share in table[:, place]], place == 0)
            for attribute, table in zip(attributes, model.conditionals, strict=True)
            for place, value in enumerate(attribute.values)
        ]
        return {"is_tree": False, "drawing": "", "text": "", "tables": tables}
    drawing = Markup(tree_svg(model, attributes, label, _COLOURS))  # noqa: S704 - it escapes names and values
    return {"is_tree": True, "drawing": drawing, "text": tree_text(model, attributes, label), "tables": []}


def _weights(learnt: Learnt) -> list[tuple[str, float]]:
    """Return how much each model of a blend counts; nothing for other models."""
    shares = learnt.model.to_dict().get("weights") if learnt.kind == "blend" else None
    return list(shares.items()) if shares else []


def _ends(ends: tuple[float, float], form: str) -> str:
    """Write the least and the most of something, once where they are alike.

    >>> _ends((0.5, 0.5), "%.3f"), _ends((1, 4), "%d")
    ('0.500', '1 to 4')
    """
    low, high = form % ends[0], form % ends[1]
    return low if low == high else f"{low} to {high}"


def accuracy_figure(learnt: Learnt) -> Figure:
    """Draw the model's accuracy with its interval, and that of the reference models on the same records."""
    bars = {
        model_name(learnt): learnt.accuracy, **learnt.references, "commonest label": learnt.control,
        "limit of any model": learnt.limit.accuracy,
    }  # fmt: skip
    model, *others = bars.values()
    ends = whiskers([model], [(learnt.lower, learnt.upper)], color="@ink", thickness=1.5, width=5)
    rest = _bars([*range(1, len(bars))], others, "@neutral")
    return plotted(
        [_bars([0], [model], "@series-1") | {"error_x": ends}, rest],
        "The share of right predictions of the model and of its references; the table has them.",
        80 + 44 * len(bars), axis("share of right predictions", range=[0, 1], tickformat=".0%"),
        axis("", autorange="reversed", **places(labels(bars, 28)), showgrid=False),
        bargap=0.35, barmode="overlay", min_width=420,
    )  # fmt: skip


def _bars(rows: list[int], values: list[float], colour: str) -> Trace:
    return {
        "type": "bar", "orientation": "h", "y": rows, "x": values, "hoverinfo": "x",
        "marker": {"color": colour}, "text": [f"{100 * value:.1f} %" for value in values],
        "textposition": "inside", "insidetextanchor": "start", "textfont": {"color": "@card"},
    }  # fmt: skip


def budgets_figure(learnt: Learnt) -> Figure:
    """Draw the largest budget of each round, and what the answers up to it leak at most."""
    rounds = list(range(len(learnt.spent)))
    line = {"color": "@series-2", "width": 2.5}
    promised = [part.leakage for part in learnt.spent]
    data = [
        {
            "type": "bar", "x": rounds, "y": [part.budgets[1] for part in learnt.spent], "hoverinfo": "y",
            "name": "largest budget of an answer", "marker": {"color": "@series-1"},
        },
        scatter(
            "lines+markers", rounds, promised, hoverinfo="y", name="promised so far", line=line,
            marker={"size": 8},
        ),
    ]  # fmt: skip
    names = labels((part.asked for part in learnt.spent), 22)
    return plotted(
        data,
        "The largest budget of an answer and the leakage promised so far; the table below has them.",
        380, axis("", **places(names), showgrid=False), axis("nats", rangemode="tozero"),
        showlegend=True, legend={"orientation": "h", "y": 1.15}, headroom=30,
        min_width=max(420, 46 * len(rounds)),
    )  # fmt: skip


def print_learnt(learnt: Learnt) -> None:
    """Print the verdict, the accuracy with its control, the leakage statement, and the tree if it is one."""
    statement, name = learnt.statement, model_name(learnt)
    heading = f"{name[0].upper()}{name[1:]} for {learnt.label.name} from {learnt.trained} people"
    columns = ("protocol", f"{leaking(learnt)} leakage (nats)", "budget", "attributes and report")
    columns = columns if statement.secret == "label" else (*columns[:3], "LabelDP")
    shown = 3 if statement.secret == "attributes" else 4  # the label is public, so that none leaks
    style = "green" if statement.is_kept else "bold red"
    leakage = Text.assemble((decimals(statement.leakage), style), f" ({statement.kind})")
    row = (statement.protocol, leakage, decimals(statement.epsilon), decimals(statement.labeldp))
    grids = [
        table_of(heading, columns[:shown], [row[:shown]], left=columns[:1]),
        table_of("On records that nobody reported", _COLUMNS, model_rows(learnt), left=_COLUMNS[:1]),
    ]
    verdict, *said = notes(learnt)
    print_parts([verdict, *grids], said)
    print_parts(filter(None, _shown(learnt)["text"].split("\n")))


def model_rows(learnt: Learnt) -> list[list[str]]:
    """Return what each model reaches on the tested records, and what any model can, see `_COLUMNS`."""
    rows = []
    for name, measures in learnt.measures.items():
        told = [measures.find(kind) for kind in _KINDS]
        figures = [_with_ends(None if item is None else item.figure) for item in told]
        rows.append([model_name(learnt) if name == OWN else name, *figures, _with_ends(measures.log_loss)])
    own, limit = learnt.measures[OWN], learnt.limit
    controls = [f"{item.control:.4f}" if (item := own.find(kind)) else "" for kind in _KINDS]
    rows.append(["commonest label", *controls, f"{own.entropy:.4f}"])
    best = (limit.accuracy, limit.balanced_accuracy, limit.auc, limit.log_loss)
    rows.append(["limit of any model", *["" if value is None else f"{value:.4f}" for value in best]])
    return rows


def _with_ends(figure: Interval | None) -> str:
    """Write a figure with its interval.

    >>> _with_ends(Interval(0.5, 0.4, 0.6)), _with_ends(Interval.exactly(math.inf)), _with_ends(None)
    ('0.5000 (0.4000 to 0.6000)', '∞', '')
    """
    if figure is None:
        return ""
    if not math.isfinite(figure.value):
        return "∞"
    return f"{figure.value:.4f} ({figure.lower:.4f} to {figure.upper:.4f})"


def _is_better(learnt: Learnt) -> bool:
    """Whether accuracy is above that of the commonest label, by its interval: a lucky test must not pass."""
    accuracy = learnt.measures[OWN].find("accuracy")
    return accuracy is not None and accuracy.is_above


def model_name(learnt: Learnt) -> str:
    """Return what kind of model it is, in words."""
    return _NAMES[learnt.kind]


def leaking(learnt: Learnt) -> str:
    """Return what the leakage is about: the label, or an attribute where only these are secret."""
    return "attribute" if learnt.statement.secret == "attributes" else "label"


def notes(learnt: Learnt) -> list[str]:
    """Return what a reader of the figures must know."""
    notes = [learnt.verdict, learnt.statement.sentence()]
    if learnt.limit.alone > _MANY_ALONE:
        notes.append(
            f"The limit is generous: {100 * learnt.limit.alone:.0f} % of the tested records are alone with "
            "their attributes, and it has their labels right."
        )
    measures = learnt.measures[OWN]
    notes.append(
        f"The intervals of a model hold together with {100 * measures.confidence:.3g} % confidence: "
        f"{measures.looks} figures were looked at."
    )
    notes.append(
        f"Tested on {learnt.tested} records of {learnt.source} that were not collected. The collection was "
        "simulated from raw data: accuracy and leakage are themselves unprotected statements about them."
    )
    return [*notes, AS_PUBLIC, *learnt.notes]
