"""The page of a learnt model: its accuracy beside others', what its collection leaks, the model itself."""

from __future__ import annotations

from typing import Any

from sidelight.learning.bayes import BayesModel
from sidelight.learning.decision import DecisionTree, tree_text
from sidelight.learning.diagram import tree_svg
from sidelight.learning.learnt import Learnt
from sidelight.report.learning_terminal import model_name, notes
from sidelight.report.page import Figure, Page
from sidelight.report.style import Trace, axis, layout
from sidelight.report.wording import labels

_COLOURS = {
    "line": "var(--neutral)",
    "word": "var(--muted)",
    "ink": "var(--ink)",
    "question": "var(--within-soft)",
    "leaf": "var(--card)",
}
_SECTIONS = {
    "summary": "Verdict",
    "accuracy": "Accuracy",
    "leakage": "Leakage of the label",
    "budgets": "Budgets",
    "model": "The model",
}


def learnt_page(found: Learnt) -> Page:
    """Return the page of a learnt model."""
    figures = {"accuracy": accuracy_figure(found)}
    if found.spent and isinstance(found.model, DecisionTree):
        figures["budgets"] = budgets_figure(found)
    context = {
        "found": found,
        "statement": found.statement,
        "name": model_name(found),
        "notes": notes(found)[1:],
        "is_tree": isinstance(found.model, DecisionTree),
        "drawing": _drawing(found),
        "text": _text(found),
        "tables": _tables(found),
        "ends": _ends,
        "sections": {key: text for key, text in _SECTIONS.items() if key != "budgets" or found.spent},
    }
    return Page(
        f"Sidelight: {model_name(found)} for {found.label.name}", "learning.html.j2", context, figures
    )


def _drawing(found: Learnt) -> Any:
    from markupsafe import Markup

    if not isinstance(found.model, DecisionTree):
        return ""
    svg = tree_svg(found.model, found.attributes, found.label, _COLOURS)
    return Markup(svg)  # noqa: S704 - it escapes every name and value


def _text(found: Learnt) -> str:
    if not isinstance(found.model, DecisionTree):
        return ""
    return tree_text(found.model, found.attributes, found.label)


def _tables(found: Learnt) -> list[tuple[str, str, list[float], bool]]:
    """Return Naive Bayes' rows: attribute, value, Pr(value | label) by label, whether it comes first."""
    if not isinstance(found.model, BayesModel):
        return []
    return [
        (attribute.name, value, [float(share) for share in table[:, place]], place == 0)
        for attribute, table in zip(found.attributes, found.model.conditionals, strict=True)
        for place, value in enumerate(attribute.values)
    ]


def _ends(ends: tuple[float, float], form: str) -> str:
    """Write the least and the most of something, once where they are alike.

    >>> _ends((0.5, 0.5), "%.3f"), _ends((1, 4), "%d")
    ('0.500', '1 to 4')
    """
    low, high = form % ends[0], form % ends[1]
    return low if low == high else f"{low} to {high}"


def accuracy_figure(found: Learnt) -> Figure:
    """Draw the model's accuracy with its interval, and that of the reference models on the same records."""
    bars = {model_name(found): found.accuracy, **found.references, "commonest label": found.control}
    places = list(range(len(bars)))
    model = _bars(places[:1], [found.accuracy], "@series-1") | {
        "error_x": {
            "type": "data", "symmetric": False, "color": "@ink", "thickness": 1.5, "width": 5,
            "array": [found.upper - found.accuracy], "arrayminus": [found.accuracy - found.lower],
        },
    }  # fmt: skip
    data = [model, _bars(places[1:], list(bars.values())[1:], "@neutral")]
    names = labels(bars, 28)
    return Figure(
        data,
        layout(
            height=80 + 44 * len(bars),
            bargap=0.35,
            barmode="overlay",
            xaxis=axis("share of right predictions", range=[0, 1], tickformat=".0%"),
            yaxis=axis(
                "", autorange="reversed", tickmode="array", tickvals=places, ticktext=names, showgrid=False
            ),
        ),
        "The share of right predictions of the model and of its references; the table has them.",
        min_width=420,
    )


def _bars(places: list[int], values: list[float], colour: str) -> Trace:
    return {
        "type": "bar", "orientation": "h", "y": places, "x": values, "hoverinfo": "x",
        "marker": {"color": colour}, "text": [f"{100 * value:.1f} %" for value in values],
        "textposition": "inside", "insidetextanchor": "start", "textfont": {"color": "@card"},
    }  # fmt: skip


def budgets_figure(found: Learnt) -> Figure:
    """Draw the largest budget of each round, and what the answers up to it leak at most."""
    places = list(range(len(found.spent)))
    data: list[Trace] = [
        {
            "type": "bar", "x": places, "y": [part.budgets[1] for part in found.spent], "hoverinfo": "y",
            "name": "largest budget of an answer", "marker": {"color": "@series-1"},
        },
        {
            "type": "scatter", "mode": "lines+markers", "x": places, "hoverinfo": "y",
            "y": [part.leakage for part in found.spent], "name": "promised so far",
            "line": {"color": "@series-2", "width": 2.5}, "marker": {"size": 8},
        },
    ]  # fmt: skip
    names = labels((part.asked for part in found.spent), 22)
    return Figure(
        data,
        layout(
            height=380,
            showlegend=True,
            legend={"orientation": "h", "y": 1.15},
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            xaxis=axis("", tickmode="array", tickvals=places, ticktext=names, showgrid=False),
            yaxis=axis("nats", rangemode="tozero"),
        ),
        "The largest budget of an answer and the leakage promised so far; the table below has them.",
        min_width=max(420, 46 * len(places)),
    )
