"""Leakage against budget, and where it saturates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.auditing import Audit, SecretAudit
from sidelight.report.page import Figure
from sidelight.report.style import SERIES, Trace, axis, finite, from_zero, layout, scatter
from sidelight.report.wording import budget, label, nats

LARGEST_BUDGET = 8.0


@dataclass(frozen=True)
class Curve:
    """The leakage of a secret through one neighbour as the neighbour's budget grows."""

    secret: str
    neighbour: str  # its worst neighbour
    times: int  # how many reports of the neighbour the plan collects; the curve is that of all of them
    planned: float  # the plan's nominal budget of one report
    epsilons: tuple[float, ...]  # nominal budgets; the plan's is among them
    values: tuple[float, ...]  # the leakage at each; none if the figure is suppressed
    saturation: float  # where it ends however large the budget
    colour: str  # the palette name of its line

    @property
    def at_plan(self) -> float:
        """The leakage at the plan's budget."""
        return self.values[self.epsilons.index(self.planned)]

    @property
    def is_bounded(self) -> bool:
        """Whether it saturates."""
        return math.isfinite(self.saturation)


def worst_curves(audit: Audit, items: Sequence[SecretAudit]) -> list[Curve]:
    """Return the curves of the first secrets through their worst neighbours, as many as there are colours."""
    chosen = [item for item in items if item.neighbours and _planned(audit, item) > 0]
    chosen = chosen[: len(SERIES)]
    largest = max((_planned(audit, item) for item in chosen), default=1.0)
    end = max(LARGEST_BUDGET, 2 * largest)
    return [_curve(audit, item, end, colour) for item, colour in zip(chosen, SERIES, strict=False)]


def curves_figure(curves: Sequence[Curve]) -> Figure:
    """Draw the leakage against the budget, a dotted line where it saturates, a dot at the plan's budget."""
    drawn = [curve for curve in curves if curve.values]
    data = [_curve_line(curve) for curve in drawn]
    data += [_saturation_line(curve) for curve in drawn if curve.is_bounded]
    data.append(_plan_dots(drawn))
    shown = [value for curve in drawn for value in (*curve.values, curve.saturation)]
    epsilon = {"text": "ε = %{x:.3~g}"}
    return Figure(
        data,
        layout(
            height=420,
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            hovermode="x unified",
            xaxis=axis(
                "budget ε of one report of the neighbour", rangemode="tozero", unifiedhovertitle=epsilon
            ),
            yaxis=axis("leakage in nats", range=from_zero(shown)),
        ),
        "Leakage against the budget for the worst secrets, with the value at which it saturates; the list "
        "below gives the figures.",
    )


def planned_budgets(curves: Sequence[Curve]) -> str:
    """Write the plan's budgets of the curves' neighbours: one, or from the least to the greatest."""
    planned = sorted({curve.planned for curve in curves})
    return budget(planned[0]) if len(planned) == 1 else f"{budget(planned[0])} to {budget(planned[-1])}"


def _worst(item: SecretAudit) -> str:
    """Return the worst neighbour whose figure is shown, the worst of all if none is."""
    shown = [leakage for leakage in item.neighbours if leakage.upper.witness is not None]
    return (shown or item.neighbours)[0].through[0]


def _planned(audit: Audit, item: SecretAudit) -> float:
    """Return the nominal budget of the worst neighbour, 0 where its release has none."""
    return audit.plan[_worst(item)].epsilon or 0.0


def _curve(audit: Audit, item: SecretAudit, end: float, colour: str) -> Curve:
    """Return one curve, of fewer points where each costs more."""
    release = audit.plan[_worst(item)]
    cells = audit.belief.schema[item.secret].size * release.attribute.size
    points = max(9, min(33, 1_000_000 // cells))
    steps = {end * step / (points - 1) for step in range(1, points)}
    planned = _planned(audit, item)
    epsilons = tuple(sorted(steps | {planned}))
    values, saturation = audit.curve(item.secret, release.name, epsilons)
    named = (item.secret, release.name, release.times, planned)
    shown = () if any(map(math.isnan, (*values, saturation))) else tuple(values)
    return Curve(*named, epsilons, shown, saturation, colour)


def _curve_line(curve: Curve) -> Trace:
    name = f"{label(curve.secret, 18)} through {label(curve.neighbour, 18)}"
    heights = [finite(value) for value in curve.values]
    line = {"color": f"@{curve.colour}", "width": 2.5}
    text = {"hoverinfo": "x+text", "hovertext": [f"{nats(value)}  {name}" for value in curve.values]}
    return scatter("lines", curve.epsilons, heights, name=name, line=line, **text)


def _saturation_line(curve: Curve) -> Trace:
    line = {"color": f"@{curve.colour}", "width": 1.5, "dash": "dot"}
    return scatter("lines", [0, curve.epsilons[-1]], [curve.saturation] * 2, line=line, hoverinfo="skip")


def _plan_dots(curves: Sequence[Curve]) -> Trace:
    colours = [f"@{curve.colour}" for curve in curves]
    marker = {"size": 11, "color": colours, "line": {"width": 2, "color": "@card"}}
    x, y = [curve.planned for curve in curves], [finite(curve.at_plan) for curve in curves]
    return scatter("markers", x, y, marker=marker, hoverinfo="skip")
