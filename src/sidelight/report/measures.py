"""What probabilities are worth, as tables and figures: the order of suspicion, the hits, the reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.forecasts import Finding, Measures
from sidelight.foundation.intervals import Interval, wilson_interval
from sidelight.foundation.ranking import Ranking
from sidelight.foundation.reliability import Reliability
from sidelight.report.page import Figure, plotted
from sidelight.report.style import LEGEND, SERIES, Trace, axis, log_ticks, scatter, whiskers
from sidelight.report.wording import label

COLUMNS = ("measure", "of", "figure", "interval", "control", "times the control")
MOST_LINES = 6
_POINTS = 300
_FEWEST = 10
_LINE = 22
"""The height of a line of the legend; on a phone every name has one of its own."""


class Suspicion(NamedTuple):
    """An order of suspicion and its name in the figures."""

    name: str
    ranking: Ranking


def strongest(measures: Measures, most: int) -> list[str]:
    """Return the values whose AUC is furthest above chance, at its lower limit, first; of two, the rarer."""
    aucs = [item for item in measures.findings if item.kind == "AUC" and item.value is not None]
    rates = {item.value: item.control for item in measures.findings if item.kind == "average precision"}
    # Of two values one order of suspicion is the other upside down: the rarer one says it all.
    aucs.sort(key=lambda item: (-round(item.figure.lower, 9), rates.get(item.value, 1.0)))
    named = [item.value for item in aucs if item.value is not None]
    return named[: 1 if len(named) == 2 else most]


def shown_findings(measures: Measures, most: int) -> list[Finding]:
    """Return the figures to show: those of all values together, and of the strongest so many values."""
    values = strongest(measures, most)
    chosen = [item.value for item in measures.findings if item.kind == "AUC" and item.value is not None]
    kept = [value for value in chosen if len(chosen) <= most or value in values]
    return [item for item in measures.findings if item.value is None or item.value in kept]


def finding_row(item: Finding) -> list[str]:
    """Return a figure as a line of a table, see `COLUMNS`."""
    figure = item.figure
    times = f"{item.lift.value:.2f}" if item.kind in ("share of hits", "average precision") else ""
    ends = f"{figure.lower:.4f} to {figure.upper:.4f}"
    about = "" if item.value is None else item.value
    return [finding_name(item), about, f"{figure.value:.4f}", ends, f"{item.control:.4f}", times]


def finding_name(item: Finding) -> str:
    """Say what a figure is, without the value it is about."""
    if item.suspected is not None:
        return f"hits among the {item.suspected} most suspected"
    is_mean = item.kind == "AUC" and item.value is None
    return "AUC, mean over the values" if is_mean else item.kind


def further_lines(measures: Measures) -> list[str]:
    """Say what the probabilities claim and keep: log loss and calibration, and what all intervals mean."""
    calibration = measures.calibration
    if measures.impossible:
        told = f"Log loss: infinite, since {measures.impossible} true values were given the probability 0."
    else:
        same = f"{measures.entropy:.4f} for the best prediction that is the same for everyone"
        gained = f"{measures.information.value:.4f} nats a person"
        told = f"Log loss {_with_ends(measures.log_loss)}, {same}: {gained}."
    chance = f"{calibration.chance:.4f} is what chance alone gives to probabilities that are right"
    together = f"with {100 * measures.confidence:.3g} % confidence: {measures.looks} figures were looked at"
    return [
        told,
        f"Calibration error {_with_ends(calibration.error)}; {chance}.",
        f"Intervals hold together {together}.",
    ]


def _with_ends(figure: Interval) -> str:
    return f"{figure.value:.4f} ({figure.lower:.4f} to {figure.upper:.4f})"


def roc_figure(lines: Sequence[Suspicion]) -> Figure:
    """Draw who is found against who is suspected in vain."""
    data = []
    for (name, ranking), colour in zip(lines, cycle(SERIES), strict=False):
        x, y = _thinned(*ranking.roc())
        data.append(_line(f"{name} (AUC {ranking.auc:.3f})", colour, x, y))
    data.append(_dotted("nothing known", [0, 1], [0, 1]))
    return _drawn(
        data, "The share of people found against the share of others suspected; the table has the areas.",
        axis("share of others who are suspected", range=[0, 1], tickformat=".0%"),
        axis("share of those who have it found", range=[0, 1.02], tickformat=".0%"),
    )  # fmt: skip


def lift_figure(lines: Sequence[Suspicion]) -> Figure:
    """Draw how much commoner a value is among the most suspected than among all."""
    people = max(line.ranking.total for line in lines)
    data = []
    for (name, ranking), colour in zip(lines, cycle(SERIES), strict=False):
        counts = np.unique(np.geomspace(min(_FEWEST, ranking.total), ranking.total, 120).round().astype(int))
        lift = [ranking.hits_among(count) / count / ranking.base_rate for count in counts.tolist()]
        data.append(_line(f"{name} ({ranking.base_rate:.1%} of all)", colour, counts, np.array(lift)))
    data.append(_dotted("nothing known", [min(_FEWEST, people), people], [1, 1]))
    return _drawn(
        data, "How many times as many of the most suspected have the value as of all people.",
        axis("most suspected people", **log_ticks([min(_FEWEST, people), people], 6)),
        axis("times the share of all", rangemode="tozero"),
    )  # fmt: skip


def reliability_figure(lines: Sequence[Suspicion], confidence: float) -> Figure:
    """Draw the share that has the value against the probability that was given to it."""
    data = []
    largest = 0.0
    for (name, ranking), colour in zip(lines, cycle(SERIES), strict=False):
        part = Reliability.of(name, ranking)
        pairs = zip(part.found.tolist(), part.people.tolist(), strict=True)
        ends = [wilson_interval(share, people, confidence) for share, people in pairs]
        largest = max(largest, float(part.predicted.max()), *[end.upper for end in ends])
        bars = whiskers(part.found.tolist(), [(end.lower, end.upper) for end in ends], color=f"@{colour}")
        drawn = scatter("lines+markers", part.predicted.tolist(), part.found.tolist(), name=label(name, 36))
        colours = {"marker": {"color": f"@{colour}", "size": 7}, "line": {"color": f"@{colour}", "width": 1}}
        data.append(drawn | colours | {"error_y": bars})
    data.append(_dotted("right probabilities", [0, largest], [0, largest]))
    return _drawn(
        data, "The share of people who have the value against the probability the attack gave them.",
        axis("probability given", rangemode="tozero", tickformat=".0%"),
        axis("share who have it", rangemode="tozero", tickformat=".0%"),
    )  # fmt: skip


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return so few points that a page stays small."""
    kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), _POINTS)).round().astype(int))
    return x[kept], y[kept]


def _line(name: str, colour: str, x: Array, y: Array) -> Trace:
    line = {"color": f"@{colour}", "width": 2.5}
    return scatter("lines", x.tolist(), y.tolist(), name=label(name, 44), line=line)


def _dotted(name: str, x: list[float], y: list[float]) -> Trace:
    line = {"color": "@neutral", "width": 2, "dash": "dot"}
    return scatter("lines", x, y, name=name, line=line, hoverinfo="skip")


def _drawn(data: list[Trace], description: str, across: Trace, up: Trace) -> Figure:
    wide = plotted(data, description, 400, across, up, headroom=30, showlegend=True, legend=LEGEND)
    return replace(wide, narrow=wide.layout | {"height": 320 + _LINE * len(data)})
