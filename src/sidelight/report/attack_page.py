"""The page of an attack: did it beat its control, and how far from the truth are its guesses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.result import AttackComparison, AttackResult
from sidelight.report.page import Figure, Page
from sidelight.report.style import Trace, axis, layout
from sidelight.report.wording import label

Array = NDArray[np.float64]
Curve = tuple[str, str, Array]
"""A name, a colour and the losses of all records."""

_BINS = 60
_POINTS = 200
_ATTACKS = ("series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7")
_SECTIONS = {
    "summary": "Verdict",
    "table": "All figures",
    "density": "Distances: density",
    "cumulative": "Distances: cumulative",
    "errors": "Errors",
    "words": "How to read it",
}


def attack_page(result: AttackResult) -> Page:
    """Return the page of one attack."""
    return comparison_page(AttackComparison(f"{result.attack} on {result.target}", {result.attack: result}))


def comparison_page(comparison: AttackComparison) -> Page:
    """Return the page of several attacks."""
    results = comparison.results
    figures = _figures(comparison)
    context = {
        "comparison": comparison,
        "results": results,
        "first": next(iter(results.values())),
        "verdict": verdict_sentence(comparison),
        "sections": {key: text for key, text in _SECTIONS.items() if key in figures or key not in _DRAWN},
    }
    return Page(f"Sidelight attack: {comparison.title}", "attack.html.j2", context, figures)


_DRAWN = ("density", "cumulative", "errors")


def verdict_sentence(comparison: AttackComparison) -> str:
    """Say how many of the attacks tell more than could be had without the release."""
    results = comparison.results.values()
    winners = sum(result.beats_control for result in results)
    if len(comparison.results) == 1:
        return "The attack beats its control" if winners else "The attack does not beat its control"
    return f"{winners or 'None'} of {len(comparison.results)} attacks beat{'s' * (winners == 1)} the control"


def _figures(comparison: AttackComparison) -> dict[str, Figure]:
    results = comparison.results
    if any(result.measure == "error rate" for result in results.values()):
        return {"errors": _errors_figure(results)}
    curves = _curves(results)
    end = max(float(np.quantile(losses, 0.98)) for _, _, losses in curves)
    return {"density": _density_figure(curves, end), "cumulative": _cumulative_figure(curves, end)}


def _curves(results: dict[str, AttackResult]) -> list[Curve]:
    """Return the attacks, the control and the release itself, where it shows the target.

    Results of one comparison share records, so the first one's control and release stand for all.
    """
    found = [
        (name, colour, result.losses)
        for (name, result), colour in zip(results.items(), _ATTACKS, strict=False)
    ]
    first = next(iter(results.values()))
    found.append(("without a release", "neutral", first.control_losses))
    if first.baseline_losses is not None:
        found.append(("release itself", "series-8", first.baseline_losses))
    return found


def _density_figure(curves: list[Curve], end: float) -> Figure:
    edges = np.linspace(0, end or 1.0, _BINS + 1)
    data = []
    for name, colour, losses in curves:
        heights = np.histogram(losses, edges)[0] / (len(losses) * (edges[1] - edges[0]))
        data.append(_line(name, colour, (edges[1:] + edges[:-1]) / 2, heights))
    return _drawn(data, "density", "The density of the distance between guess and truth, for every attack.")


def _cumulative_figure(curves: list[Curve], end: float) -> Figure:
    places = np.linspace(0, end or 1.0, _POINTS)
    data = [
        _line(name, colour, places, np.searchsorted(np.sort(losses), places, side="right") / len(losses))
        for name, colour, losses in curves
    ]
    return _drawn(
        data, "share of records within", "The share of records whose guess is within a distance of the truth."
    )


def _line(name: str, colour: str, x: Array, y: Array) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name, 36),
        "x": [float(value) for value in x],
        "y": [float(value) for value in y],
        "line": {"color": f"@{colour}", "width": 2.5, "dash": "dot" if colour == "neutral" else "solid"},
    }


def _drawn(data: list[Trace], title: str, description: str) -> Figure:
    return Figure(
        data,
        layout(
            height=400,
            showlegend=True,
            legend={"orientation": "h", "y": 1.15},
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            xaxis=axis("distance to the truth", rangemode="tozero"),
            yaxis=axis(title, rangemode="tozero"),
        ),
        description + " The table gives the means.",
    )


def _errors_figure(results: dict[str, AttackResult]) -> Figure:
    bars = {f"{name}": result.score for name, result in results.items()}
    first = next(iter(results.values()))
    bars["without a release"] = first.control
    if first.baseline is not None:
        bars["release itself"] = first.baseline
    if first.limit is not None:
        bars["limit"] = first.limit
    colours = ["@series-1"] * len(results) + ["@neutral", "@series-8", "@series-3"]
    trace = {
        "type": "bar",
        "x": [label(name, 30) for name in bars],
        "y": [bar.value for bar in bars.values()],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [bar.upper - bar.value for bar in bars.values()],
            "arrayminus": [bar.value - bar.lower for bar in bars.values()],
            "color": "@ink",
        },
        "marker": {"color": colours[: len(bars)]},
    }
    return Figure(
        [trace],
        layout(
            height=380,
            xaxis=axis(""),
            yaxis=axis("share of wrong guesses", rangemode="tozero"),
        ),
        "The share of wrong guesses of every attack, of the control and of the release; the table has them.",
    )
