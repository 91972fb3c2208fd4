"""The figures of an audit that are about pairs: arrows between attributes, and leakage against budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.auditing import Audit, SecretAudit
from sidelight.leakage import Leakage
from sidelight.report.audit_figures import interval, limit_words, witness_lines
from sidelight.report.page import Figure, plotted
from sidelight.report.style import SERIES, VERDICTS, Trace, axis, finite, from_zero, layout, scatter
from sidelight.report.wording import budget, factor, label, labels, nats, paragraph

PER_SECRET = 3
MOST_ARROWS = 60
LEAST_SHARE = 0.2
"""The most pairs drawn for a secret and in all, and the least share of the largest pair that is drawn."""
_WIDTHS = (1.0, 2.0, 3.0, 4.5)
_HORIZONTAL = 12  # more names beside each other would overlap, so they are turned
_STEPS = 16
_GAP = 13
_HEAD = 0.09
_SHAFT = 0.11  # it ends behind the head, so that no line shows beside the tip
LARGEST_BUDGET = 8.0
"""Curves are drawn at least this far."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Arrow:
    """A pair worth drawing."""

    origin: str  # the released attribute
    leakage: Leakage  # what it leaks about the secret
    share: float  # of the largest leakage that is drawn


def arrows_of(audit: Audit) -> list[Arrow]:
    """Return the strongest pairs of every secret, leaving out those far below the strongest of all."""
    pairs = [item for secret in audit.secrets.values() for item in secret.neighbours[:PER_SECRET]]
    pairs = sorted((pair for pair in pairs if pair.value > 0), key=lambda pair: -pair.value)[:MOST_ARROWS]
    finite = [pair.value for pair in pairs if math.isfinite(pair.value)]
    largest = max(finite, default=1.0)  # an infinite pair would leave no share to the others
    arrows = [Arrow(pair.through[0], pair, min(pair.value / largest, 1.0)) for pair in pairs]
    return [arrow for arrow in arrows if arrow.share >= LEAST_SHARE]


def network_figure(audit: Audit, arrows: Sequence[Arrow]) -> Figure:
    """Draw the attributes on a circle and the arrows between them, the wider the stronger."""
    names = [name for name in audit.belief.schema.names if name in audit.secrets or name in audit.plan.names]
    places = {name: _place(number, len(names)) for number, name in enumerate(names)}
    ends = [(places[arrow.origin], places[arrow.leakage.secret]) for arrow in arrows]
    data = [_lines(arrows, ends, width) for width in range(len(_WIDTHS))]
    data = [trace for trace in data if trace["x"]]
    data += [_heads(arrows, ends), _middles(arrows, ends), _nodes(audit, places)]
    room = 7 * min(max(len(name) for name in names), 18) + 10
    is_radial = len(names) > _HORIZONTAL
    ends_room = room if is_radial else 36
    hidden = {"visible": False, "fixedrange": True, "range": [-1.09, 1.09]}
    named = zip(labels(names, 18), places.values(), strict=True)
    wide = layout(
        height=860 if is_radial else 480,
        margin={"l": room, "r": room, "t": ends_room, "b": ends_room},
        xaxis=hidden | {"constrain": "domain"},
        yaxis=hidden | {"scaleanchor": "x", "constrain": "domain"},
        annotations=[_caption(text, place, is_radial) for text, place in named],
    )
    narrow = wide | {"height": 620 if is_radial else 360}
    said = f"The {len(arrows)} strongest pairs among {len(names)} attributes as arrows"
    said += "; the heat map and the table give their figures."
    return Figure(data, wide, said, 600 if is_radial else 2 * room + 180, narrow)


def _place(number: int, count: int) -> Point:
    angle = math.pi / 2 - 2 * math.pi * number / count
    return math.cos(angle), math.sin(angle)


def _path(ends: tuple[Point, Point], at: float) -> Point:
    """Return a point of the arc from one place to another; an arc and its opposite bow to different sides."""
    (ax, ay), (bx, by) = ends
    cx = 0.3 * (ax + bx) / 2 + 0.14 * (by - ay)
    cy = 0.3 * (ay + by) / 2 - 0.14 * (bx - ax)
    u = 1 - at
    return u * u * ax + 2 * u * at * cx + at * at * bx, u * u * ay + 2 * u * at * cy + at * at * by


def _before_end(ends: tuple[Point, Point], distance: float) -> float:
    """Return where on the arc its end is `distance` away, by bisection; the radius is 1."""
    low, high = 0.5, 1.0
    for _ in range(20):  # halves the second half of the arc to 5e-7 of it, far below a pixel
        middle = (low + high) / 2
        low, high = (middle, high) if math.dist(_path(ends, middle), ends[1]) > distance else (low, middle)
    return low


def _lines(arrows: Sequence[Arrow], ends: Sequence[tuple[Point, Point]], width: int) -> Trace:
    """Return all arcs of one width as one trace; a gap parts them."""
    points: list[tuple[float | None, float | None]] = []
    for arrow, pair in zip(arrows, ends, strict=True):
        if _width(arrow) == width:
            end = _before_end(pair, _SHAFT)
            arc = (_path(pair, end * step / _STEPS) for step in range(_STEPS + 1))
            points += [*((round(x, 3), round(y, 3)) for x, y in arc), (None, None)]
    across, up = [x for x, _ in points], [y for _, y in points]
    line = {"color": "@edge", "width": _WIDTHS[width]}
    return scatter("lines", across, up, line=line, opacity=0.6, hoverinfo="skip")


def _width(arrow: Arrow) -> int:
    above = (arrow.share - LEAST_SHARE) / (1 - LEAST_SHARE)
    return min(int(above * len(_WIDTHS)), len(_WIDTHS) - 1)


def _heads(arrows: Sequence[Arrow], ends: Sequence[tuple[Point, Point]]) -> Trace:
    tips = [_path(pair, _before_end(pair, _HEAD)) for pair in ends]
    tails = [_path(pair, _before_end(pair, _HEAD) - 0.02) for pair in ends]
    turns = [math.degrees(math.atan2(b[0] - a[0], b[1] - a[1])) for a, b in zip(tails, tips, strict=True)]
    sizes = [9 + 2 * _width(arrow) for arrow in arrows]
    marker = {"symbol": "triangle-up", "size": sizes, "angle": turns, "color": "@edge", "line": {"width": 0}}
    return _points(tips, marker) | {"hoverinfo": "skip"}


def _middles(arrows: Sequence[Arrow], ends: Sequence[tuple[Point, Point]]) -> Trace:
    marker = {"size": 8, "color": "@card", "line": {"width": 2, "color": "@edge"}}
    hovers = [_hover(arrow) for arrow in arrows]
    return _points([_path(pair, 0.6) for pair in ends], marker) | {"hovertext": hovers}


def _nodes(audit: Audit, places: dict[str, Point]) -> Trace:
    verdicts = {name: item.decision for name, item in audit.secrets.items()}
    colours = [f"@{VERDICTS[verdicts[name]]}" if name in verdicts else "@neutral" for name in places]
    symbols = ["circle" if name in audit.plan.names else "circle-open" for name in places]
    marker = {"size": 15, "color": colours, "symbol": symbols, "line": {"width": 2, "color": colours}}
    hovers = [_node_hover(audit, name) for name in places]
    return _points(list(places.values()), marker) | {"hovertext": hovers}


def _points(points: Sequence[Point], marker: Trace) -> Trace:
    x, y = ([round(point[axis], 4) for point in points] for axis in (0, 1))
    return scatter("markers", x, y, marker=marker, cliponaxis=False, hoverinfo="text")


def _hover(arrow: Arrow) -> str:
    value, about = arrow.leakage.value, f"report of {arrow.origin} about {arrow.leakage.secret}"
    odds = f"{nats(value)} nats: odds × {factor(value)}"
    return paragraph(about, odds, *witness_lines(arrow.leakage.upper))


def _node_hover(audit: Audit, name: str) -> str:
    released = "not released"
    if name in audit.plan.names:
        released = f"released with ε = {budget(audit.plan[name].randomiser().epsilon)}"
    if name not in audit.secrets:
        return paragraph(name, f"{released}; not a secret of this audit")
    item = audit.secrets[name]
    total = f"total {interval(item.total)} nats{limit_words(item)}"
    own = f"own report {nats(item.direct.value)}"
    return paragraph(f"{name}: {item.statement}", released, total, own)


def _caption(text: str, place: Point, is_radial: bool) -> Trace:
    """Return a node's name beside it, turned outwards where there are many."""
    x, y = place
    turn = -math.degrees(math.atan2(y, x)) if is_radial else 0.0
    if x < 0 and is_radial:
        turn += 180
    is_beside = abs(y) < 0.25 if is_radial else abs(x) > 0.25
    vertical = "bottom" if y > 0 else "top"
    return {
        "text": text, "x": x, "y": y, "xshift": _GAP * x, "yshift": _GAP * y, "showarrow": False,
        "textangle": turn,
        "xanchor": "center" if abs(x) < 0.02 else ("left" if x > 0 else "right"),
        "yanchor": "middle" if is_beside else vertical,
        "font": {"size": 11 if is_radial else 13},
    }  # fmt: skip


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
    hover = {"unifiedhovertitle": {"text": "ε = %{x:.3~g}"}}
    across = axis("budget ε of one report of the neighbour", rangemode="tozero", **hover)
    return plotted(
        data,
        "Leakage against the budget for the worst secrets, with the value at which it saturates; the list "
        "below gives the figures.",
        420, across, axis("leakage in nats", range=from_zero(shown)), headroom=30, hovermode="x unified",
    )  # fmt: skip


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
    named = (item.secret, release.name, release.sent()[1], planned)
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
