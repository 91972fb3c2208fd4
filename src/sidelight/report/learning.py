"""A learnt model: its accuracy beside others', what its collection leaks, the model itself."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from sidelight.learning.decision_tree import tree_text
from sidelight.learning.diagram import tree_svg
from sidelight.learning.learnt import Learnt
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, drawn, plotted
from sidelight.report.style import Trace, axis, places, scatter, whiskers
from sidelight.report.wording import AS_PUBLIC, decimals, labels

_COLOURS = {
    "line": "var(--neutral)", "word": "var(--muted)", "ink": "var(--ink)",
    "question": "var(--within-soft)", "leaf": "var(--card)",
}  # fmt: skip


def learnt_page(learnt: Learnt) -> Page:
    """Return the page of a learnt model."""
    shown, name = _shown(learnt), model_name(learnt)
    budgets = budgets_figure(learnt) if learnt.spent and shown["is_tree"] else None
    context = {"learnt": learnt, "name": name, "notes": notes(learnt)[1:], "ends": _ends, **shown}
    title = f"Sidelight: {name} for {learnt.label.name}"
    return Page(title, "learning.html.j2", context, drawn(accuracy=accuracy_figure(learnt), budgets=budgets))


def _shown(learnt: Learnt) -> dict[str, Any]:
    """Return what the page shows of the model itself: a tree drawn and as text, or tables.

    Their rows are an attribute, a value, Pr(value | label) by label, and whether it is the first value.
    """
    from markupsafe import Markup

    model: Any = learnt.model
    attributes, label = learnt.attributes, learnt.label
    if learnt.kind != "tree":
        tables = [
            (attribute.name, value, [float(share) for share in table[:, place]], place == 0)
            for attribute, table in zip(attributes, model.conditionals, strict=True)
            for place, value in enumerate(attribute.values)
        ]
        return {"is_tree": False, "drawing": "", "text": "", "tables": tables}
    drawing = Markup(tree_svg(model, attributes, label, _COLOURS))  # noqa: S704 - it escapes names and values
    return {"is_tree": True, "drawing": drawing, "text": tree_text(model, attributes, label), "tables": []}


def _ends(ends: tuple[float, float], form: str) -> str:
    """Write the least and the most of something, once where they are alike.

    >>> _ends((0.5, 0.5), "%.3f"), _ends((1, 4), "%d")
    ('0.500', '1 to 4')
    """
    low, high = form % ends[0], form % ends[1]
    return low if low == high else f"{low} to {high}"


def accuracy_figure(learnt: Learnt) -> Figure:
    """Draw the model's accuracy with its interval, and that of the reference models on the same records."""
    bars = {model_name(learnt): learnt.accuracy, **learnt.references, "commonest label": learnt.control}
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
    """Print the accuracy with its control, the leakage statement, and the tree if it is one."""
    statement, name = learnt.statement, model_name(learnt)
    heading = f"{name[0].upper()}{name[1:]} for {learnt.label.name} from {learnt.trained} people"
    columns = ("protocol", "accuracy", "commonest label", "label leakage (nats)", "budget", "LabelDP")
    style = "green" if statement.is_kept else "bold red"
    leakage = Text.assemble((decimals(statement.leakage), style), f" ({statement.kind})")
    right = f"{learnt.accuracy:.3f} ({learnt.lower:.3f} to {learnt.upper:.3f})", f"{learnt.control:.3f}"
    row = (statement.protocol, *right, leakage, decimals(statement.epsilon), decimals(statement.labeldp))
    print_parts([table_of(heading, columns, [row], left=("protocol",))], notes(learnt))
    print_parts(filter(None, _shown(learnt)["text"].split("\n")))


def model_name(learnt: Learnt) -> str:
    """Return what kind of model it is, in words."""
    return "decision tree" if learnt.kind == "tree" else "Naive Bayes"


def notes(learnt: Learnt) -> list[str]:
    """Return what a reader of the figures must know."""
    notes = [learnt.statement.sentence()]
    if learnt.lower <= learnt.control:  # by its interval: a lucky test must not pass
        notes.append("The model is not clearly better than always guessing the commonest label.")
    notes.append(
        f"Tested on {learnt.tested} records of {learnt.source} that were not collected. The collection was "
        "simulated from raw data: accuracy and leakage are themselves unprotected statements about them."
    )
    return [*notes, AS_PUBLIC, *learnt.notes]
