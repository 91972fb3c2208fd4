"""An attack: did it beat its control, and how far from the truth are its guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import NamedTuple

import numpy as np
from rich.table import Table

from sidelight.attacks.result import AttackComparison, AttackResult
from sidelight.attacks.verdict import Outcome
from sidelight.foundation.arrays import Array
from sidelight.foundation.forecasts import Measures
from sidelight.foundation.intervals import Interval
from sidelight.foundation.ranking import Ranking
from sidelight.report.console import print_parts, table_of
from sidelight.report.measures import (
    COLUMNS,
    MOST_LINES,
    Suspicion,
    finding_row,
    further_lines,
    lift_figure,
    reliability_figure,
    roc_figure,
    shown_findings,
    strongest,
)
from sidelight.report.page import Figure, Page, plotted
from sidelight.report.style import LEGEND, SERIES, Trace, axis, scatter, whiskers
from sidelight.report.wording import label, labels

CUT = 0.02
"""The share of the largest distances that the figures may leave out, so that the rest stays readable."""
_MOST_BINS = 60
_POINTS = 200
_DASHES = ("solid", "dash", "dashdot")
_KINDS = {
    "attack": "series-1",
    "without a release": "neutral",
    "release itself": "series-2",
    "limit": "series-3",
}
"""An attack's own figure and what stands beside it, with the colours of their bars."""
_VERDICTS: dict[Outcome, str] = {
    "tells": "The attack beats its control",
    "clear": "All clear for this attack",
    "open": "Not shown either way",
}
_LOOKS: dict[Outcome, str] = {"tells": "exceeded", "clear": "within", "open": "uncertified"}
_MOST_VALUES = 40
"""Of a secret with more values the page has the figures of those that the attack tells most about."""
_PRINTED_VALUES = 6
_LINE = 22
"""The height of a line of the legend; on a phone every name has one of its own."""


class Curve(NamedTuple):
    """The losses of all records and how their line looks."""

    name: str
    colour: str
    dash: str
    losses: Array


def attack_page(result: AttackResult) -> Page:
    """Return the page of one attack."""
    return comparison_page(AttackComparison(f"{result.attack} on {result.target}", {result.attack: result}))


def comparison_page(comparison: AttackComparison) -> Page:
    """Return the page of several attacks."""
    measured = {name: result.measures for name, result in comparison.results.items() if result.measures}
    words = {
        "verdict": verdict_sentence(comparison), "removed": removed_share, "cut": CUT, "measured": measured,
        "shown": partial(shown_findings, most=_MOST_VALUES), "row": finding_row, "further": further_lines,
        "looks": _LOOKS,
    }  # fmt: skip
    context = {"comparison": comparison, "results": comparison.results, **words}
    title = f"Sidelight attack: {comparison.title}"
    return Page(title, "attack.html.j2", context, _figures(comparison.results))


def verdict_sentence(comparison: AttackComparison) -> str:
    """Say how many of the attacks tell more than could be had without the release."""
    results = [*comparison.results.values()]
    winners = sum(result.beats_control for result in results)
    if len(results) == 1:
        return _VERDICTS[results[0].verdict.outcome]
    clear = sum(result.verdict.outcome == "clear" for result in results)
    text = f"{winners or 'None'} of {len(results)} attacks beat{'s' * (winners == 1)} the control"
    return text if not clear else f"{text}, {clear} all clear"


def _figures(results: dict[str, AttackResult]) -> dict[str, Figure]:
    if any(result.measure == "error rate" for result in results.values()):
        return _suspicion_figures(results) | {"errors": _errors_figure(results)}
    curves = _curves(results)
    end = max(float(np.quantile(curve.losses, 1 - CUT)) for curve in curves)  # no line may lose more
    return {"density": _density_figure(curves, end), "cumulative": _cumulative_figure(curves, end)}


def _suspicion_figures(results: dict[str, AttackResult]) -> dict[str, Figure]:
    """Draw the orders of suspicion: of one attack its strongest values, of several the strongest of each."""
    lines = []
    most = MOST_LINES if len(results) == 1 else 1
    for name, result in [*results.items()][:MOST_LINES]:
        if result.measures is None or result.probabilities is None or result.truth is None:
            continue
        for value in strongest(result.measures, most):
            code = result.values.index(value)
            ranking = Ranking.of(result.probabilities[:, code], np.equal(result.truth, code))
            lines.append(Suspicion(value if len(results) == 1 else f"{name}: {value}", ranking))
    if not lines:
        return {}
    confidence = next(iter(results.values())).confidence
    reliability = reliability_figure(lines, confidence)
    return {"roc": roc_figure(lines), "lift": lift_figure(lines), "reliability": reliability}


def _curves(results: dict[str, AttackResult]) -> list[Curve]:
    """Return the attacks, the control and the release itself, where it shows the target.

    Attacks on one release share its line; where the releases differ each has its own.
    """
    coloured = zip(results.items(), cycle(SERIES[:-1]), strict=False)  # the last is that of releases
    curves = [Curve(name, colour, "solid", result.losses) for (name, result), colour in coloured]
    first = next(iter(results.values()))
    curves.append(Curve("without a release", "neutral", "dot", first.control_losses))
    releases = {result.release: (name, result) for name, result in results.items()}
    for (name, result), dash in zip(releases.values(), cycle(_DASHES), strict=False):
        if result.baseline_losses is not None:
            said = "release itself" if len(releases) == 1 else f"release itself, {name}"
            curves.append(Curve(said, "series-8", dash, result.baseline_losses))
    return curves


def _density_figure(curves: list[Curve], end: float) -> Figure:
    # the square-root rule, between what shows a shape and what stays readable
    bins = int(np.clip(np.sqrt(len(curves[0].losses)), 10, _MOST_BINS))
    edges = np.linspace(0, end or 1.0, bins + 1)
    data = []
    for curve in curves:
        heights = np.histogram(curve.losses, edges)[0] / (len(curve.losses) * (edges[1] - edges[0]))
        data.append(_line(curve, (edges[1:] + edges[:-1]) / 2, heights))
    return _drawn(data, "density", "The density of the distance between guess and truth, for every attack.")


def _cumulative_figure(curves: list[Curve], end: float) -> Figure:
    places = np.linspace(0, end or 1.0, _POINTS)
    data = [
        _line(curve, places, np.searchsorted(np.sort(curve.losses), places, side="right") / len(curve.losses))
        for curve in curves
    ]
    return _drawn(
        data, "share of records within", "The share of records whose guess is within a distance of the truth."
    )


def _line(curve: Curve, x: Array, y: Array) -> Trace:
    line = {"color": f"@{curve.colour}", "width": 2.5, "dash": curve.dash}
    return scatter("lines", x.tolist(), y.tolist(), name=label(curve.name, 36), line=line)


def _drawn(data: list[Trace], title: str, description: str) -> Figure:
    across, up = (axis(name, rangemode="tozero") for name in ("distance to the truth", title))
    said = f"{description} The table gives the means."
    wide = plotted(data, said, 400, across, up, headroom=30, showlegend=True, legend=LEGEND)
    return replace(wide, narrow=wide.layout | {"height": 320 + _LINE * len(data)})


def _errors_figure(results: dict[str, AttackResult]) -> Figure:
    """Draw four bars for every attack: its own errors, and what stands beside them."""
    names = labels(results, 30)
    shown = zip(_KINDS, zip(*map(_beside, results.values()), strict=True), strict=True)
    data = [_bars(kind, names, values) for kind, values in shown if any(values)]
    return plotted(
        data,
        "The share of wrong guesses of every attack, of its control, its release and its limit.",
        380, axis(""), axis("share of wrong guesses", rangemode="tozero"),
        barmode="group", showlegend=True, legend=LEGEND,
    )  # fmt: skip


def _beside(result: AttackResult) -> tuple[Interval | None, ...]:
    """Return the figure of each of `_KINDS`."""
    return result.score, result.control, result.baseline, result.limit


def _bars(kind: str, names: list[str], values: Sequence[Interval | None]) -> Trace:
    known = [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
    x, y = [name for name, _ in known], [value.value for _, value in known]
    ends = whiskers(y, [(value.lower, value.upper) for _, value in known], color="@ink")
    colour = {"color": f"@{_KINDS[kind]}"}
    return {"type": "bar", "name": kind, "x": x, "y": y, "error_y": ends, "marker": colour}


_COLUMNS = ("attack", "measure", "attack's", *[*_KINDS][1:], "noise removed", "gain over control")
_LEAST_REMOVED = -10.0


def print_attack(comparison: AttackComparison) -> None:
    """Print the verdict, every result beside its control, its baseline and the limit, and what to know."""
    rows = []
    for name, result in comparison.results.items():
        beside = map(_interval, _beside(result))
        removed, gain = removed_share(result.noise_removed), _interval(result.gain)
        rows.append([name, result.measure, *beside, removed, gain])
    warnings = [
        f"Warning: {result.warning}"
        for result in comparison.results.values()
        if result.warning and result.measures is None
    ]
    said = [*_releases(comparison.results), *comparison.notes, *warnings]
    parts = [table_of(comparison.title, _COLUMNS, rows, left=_COLUMNS[:2])]
    several = len(comparison.results) > 1
    for name, result in comparison.results.items():
        if result.measures is not None:
            parts.append(_findings_table(name if several else "", result.measures))
            said += [f"{name}: {line}" if several else line for line in further_lines(result.measures)]
    verdicts = [
        f"{name}: {result.verdict.sentence}" if several else result.verdict.sentence
        for name, result in comparison.results.items()
        if result.measures is not None
    ]
    print_parts([*verdicts, *parts], said, width=180)


def _findings_table(name: str, measures: Measures) -> Table:
    """Return the figures of an attack beside their controls, of the strongest few values."""
    shown = shown_findings(measures, _PRINTED_VALUES)
    hidden = len(measures.findings) - len(shown)
    title = f"What the suspicions are worth{f', {name}' * bool(name)}"
    title += f" (and {hidden} more figures, with --json)" * bool(hidden)
    return table_of(title, COLUMNS, map(finding_row, shown), left=COLUMNS[:2])


def _releases(results: dict[str, AttackResult]) -> list[str]:
    """Say what was released: once where all attacks are on one release, else for each."""
    said = {name: f"{result.release}; {len(result.losses)} records." for name, result in results.items()}
    if len(set(said.values())) == 1:
        return [f"Release: {next(iter(said.values()))}"]
    return [f"Release of {name}: {text}" for name, text in said.items()]


def removed_share(removed: float | None) -> str:
    """Write the share of the noise that an attack removes; one that adds many times as much says no figure.

    >>> removed_share(0.7), removed_share(-0.25), removed_share(-3e6), removed_share(None)
    ('70.0%', '-25.0%', 'below -1000%', '')
    """
    if removed is None:
        return ""
    return f"{removed:.1%}" if removed >= _LEAST_REMOVED else f"below {_LEAST_REMOVED:.0%}"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{interval.value:.4f} ±{(interval.upper - interval.lower) / 2:.4f}"
