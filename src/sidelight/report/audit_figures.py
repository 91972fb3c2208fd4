"""The figures of an audit: every secret's total, and who leaks about whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sidelight.auditing import Audit, SecretAudit
from sidelight.leakage import Bound, Leakage
from sidelight.report.page import Figure, plotted
from sidelight.report.style import HEAT, LEAST_SPAN, MARKS, VERDICTS, Trace, axis, layout, places, scatter
from sidelight.report.wording import factor, labels, nats, paragraph, whole

MOST_NUMBERED = 20
"""A heat map of up to so many rows and columns has its figures in its cells."""
FAR = 3.0
"""An end this many times beyond all that is reached is cut off, with its number beside it."""

Grid = list[list[Leakage | None]]


def worst_first(audit: Audit) -> list[SecretAudit]:
    """Return the secrets by verdict, then by the figure that decides, then by the worst case."""
    ranks = list(VERDICTS)

    def badness(item: SecretAudit) -> tuple[float, ...]:
        told = 0.0 if item.deciding is None else item.deciding.leakage.value
        return ranks.index(item.decision), -told, -item.total.lower.value, -item.total.upper.value

    return sorted(audit.secrets.values(), key=badness)


def is_point(leakage: Leakage) -> bool:
    """Whether both ends are one figure."""
    return leakage.is_exact or leakage.lower == leakage.upper


def interval(leakage: Leakage, digits: int = 3) -> str:
    """Write a leakage as one figure, or as both its ends."""
    lower, upper = nats(leakage.lower.value, digits), nats(leakage.upper.value, digits)
    return lower if lower == upper else f"{lower} to {upper}"


def totals_figure(items: Sequence[SecretAudit]) -> Figure:
    """Draw a bar for each secret: full up to what is reached, hatched up to what is not excluded."""
    edge = _edge(items)
    data: list[Trace] = []
    for verdict, colour in VERDICTS.items():
        if chosen := [(row, item) for row, item in enumerate(items) if item.decision == verdict]:
            data += _interval_bars(chosen, edge, f"@{colour}")
    released = {row: item.direct.value for row, item in enumerate(items) if item.direct.through}
    data.append(_marks(items, released, edge, "diamond", "own report"))
    limits = {row: item.limit for row, item in enumerate(items) if item.limit is not None}
    data.append(_marks(items, limits, edge, "line-ns", "limit"))
    if beyond := [(row, item) for row, item in enumerate(items) if item.total.upper.value > edge]:
        data.append(_beyond(beyond, edge))
    wide, narrow = (_totals_layout(items, edge, *sizes) for sizes in ((24, 3, 12), (14, 1, 10)))
    limited = " and its limit" if limits else ""
    said = f"the interval in which its total leakage lies, its own report's leakage{limited}"
    said = f"For each secret {said}. The same figures are in the table below."
    return Figure(data, wide, said, narrow=narrow)


def heat_figure(audit: Audit) -> Figure:
    """Draw the leakage of every secret (column) through every released attribute (row)."""
    rows, columns = list(audit.plan.names), list(audit.secrets)
    others, own = _grids(audit)
    is_numbered = max(len(rows), len(columns)) <= MOST_NUMBERED
    values = [cell.value for line in others for cell in line if cell]
    top = max(filter(math.isfinite, values), default=0)  # an infinite top would leave no scale
    scale = {"thickness": 10, "outlinewidth": 0, "title": {"text": "nats"}}
    grey = [[0, "@own"], [1, "@own"]]
    data = [
        _cells(others, max(top, LEAST_SPAN), is_numbered) | {"colorscale": HEAT, "colorbar": scale},
        _cells(own, 1.0, is_numbered) | {"colorscale": grey, "showscale": False},
    ]
    height, width = (30, 42) if is_numbered else (17, 17)
    longest = min(max(map(len, [*rows, *columns])), 24)
    tick = {"showgrid": False, "tickfont": {"size": 12 if is_numbered else 10}}
    return plotted(
        data,
        f"Leakage of {len(columns)} secrets (columns) through {len(rows)} released attributes (rows).",
        110 + 6 * longest + height * len(rows),
        axis("leaks about this secret", **tick, tickangle=-60, **places(labels(columns))),
        axis("the report of this attribute", **tick, autorange="reversed", **places(labels(rows))),
        headroom=30, min_width=120 + 7 * longest + width * len(columns),
    )  # fmt: skip


def _edge(items: Sequence[SecretAudit]) -> float:
    """Return where the axis of the totals ends.

    Upper ends and limits far beyond what is reached are left outside, so that the rest stays readable.
    """
    reached = [value for item in items for value in (item.total.lower.value, item.direct.value)]
    base = max([value for value in reached if math.isfinite(value)], default=0.0)
    base = max(base, LEAST_SPAN) if base else 0.25  # any length will do where nothing leaks
    others = [item.total.upper.value for item in items]
    others += [item.limit for item in items if item.limit is not None]
    near = [value for value in others if value <= FAR * base]
    # a quarter of room where something is left out, so that the arrows do not touch what is reached
    return 1.03 * max([base if len(near) == len(others) else 1.25 * base, *near])


def _totals_layout(items: Sequence[SecretAudit], edge: float, width: int, digits: int, size: int) -> Trace:
    """Return the layout of the totals: names on the left, figures on the right."""
    names = labels((item.secret for item in items), width)
    marked = [f"{MARKS[item.decision]} {name}" for item, name in zip(items, names, strict=True)]
    figures = [interval(item.total, digits) for item in items]
    rows: Trace = {"range": [len(items) - 0.5, -0.5], "showgrid": False, "tickfont": {"size": size}}
    return layout(
        height=90 + 24 * len(items), barmode="overlay", bargap=0.35,
        xaxis=axis("leakage in nats", range=[0, edge * 1.03], side="top"),
        yaxis=axis("", **places(marked), **rows),
        yaxis2=axis("", **places(figures), overlaying="y", side="right", **rows),
    )  # fmt: skip


def _interval_bars(chosen: Sequence[tuple[int, SecretAudit]], edge: float, colour: str) -> list[Trace]:
    lower = [min(item.total.lower.value, edge) for _, item in chosen]
    upper = [min(item.total.upper.value, edge) for _, item in chosen]
    shared: Trace = {
        "type": "bar", "orientation": "h", "y": [row for row, _ in chosen], "hoverinfo": "text",
        "hovertext": [_total_hover(item) for _, item in chosen], "textposition": "none",
    }  # fmt: skip
    pattern = {"shape": "/", "size": 7, "solidity": 0.25, "fgcolor": colour, "bgcolor": "@card"}
    hatched = {"color": colour, "pattern": pattern, "line": {"width": 1, "color": colour}}
    return [
        shared | {"x": lower, "marker": {"color": colour}},
        shared | {"x": [b - a for a, b in zip(lower, upper, strict=True)], "base": lower, "marker": hatched},
    ]


def _marks(
    items: Sequence[SecretAudit], values: Mapping[int, float], edge: float, symbol: str, noun: str
) -> Trace:
    """Mark a value in each row that has one; a value beyond the edge is left to the table."""
    shown = {row: value for row, value in values.items() if value <= edge}
    size, width = (16, 3) if symbol == "line-ns" else (9, 2)
    marker = {"symbol": symbol, "size": size, "color": "@card", "line": {"width": width, "color": "@ink"}}
    hovers = [paragraph(f"{items[row].secret}: {noun} {nats(value)} nats") for row, value in shown.items()]
    return _row_marks(list(shown.values()), list(shown), marker, hovers)


def _beyond(chosen: Sequence[tuple[int, SecretAudit]], edge: float) -> Trace:
    colours = [f"@{VERDICTS[item.decision]}" for _, item in chosen]
    line = {"width": 1, "color": "@card"}
    marker = {"symbol": "triangle-right", "size": 13, "color": colours, "line": line}
    rows, hovers = [row for row, _ in chosen], [_total_hover(item) for _, item in chosen]
    return _row_marks([edge] * len(chosen), rows, marker, hovers)


def _row_marks(x: list[float], rows: list[int], marker: Trace, hovers: list[str]) -> Trace:
    """Return marks on the second axis, which lies above the bars; they are not cut at the edge."""
    return scatter("markers", x, rows, yaxis="y2", marker=marker, cliponaxis=False, hovers=hovers)


def _total_hover(item: SecretAudit) -> str:
    total = item.total
    ends = {"total": total.upper} if is_point(total) else {"at least": total.lower, "at most": total.upper}
    said = [f"{words} {nats(end.value)} ({end.kind}: {end.method})" for words, end in ends.items()]
    own = f"own report {nats(item.direct.value)}{limit_words(item)}"
    return paragraph(f"{item.secret}: {item.statement}", *said, own)


def limit_words(item: SecretAudit) -> str:
    """Say a secret's limit after another figure, where it has one."""
    return "" if item.limit is None else f", limit {nats(item.limit)}"


def _grids(audit: Audit) -> tuple[Grid, Grid]:
    """Return the leakages through other attributes, and those through a secret's own report."""
    others: Grid = [[None] * len(audit.secrets) for _ in audit.plan.names]
    own: Grid = [[None] * len(audit.secrets) for _ in audit.plan.names]
    for column, item in enumerate(audit.secrets.values()):
        for leakage in item.neighbours:
            others[audit.plan.names.index(leakage.through[0])][column] = leakage
        if item.direct.through:
            own[audit.plan.names.index(item.secret)][column] = item.direct
    return others, own


def _cells(grid: Grid, top: float, is_numbered: bool) -> Trace:
    """Return the cells of a heat map; infinity, which JSON does not know, gets the top of the scale.

    The numbers behind the colours are rounded: texts say the figures, and a large page stays small.
    """
    trace: Trace = {
        "type": "heatmap", "z": [[cell and round(min(cell.value, top), 4) for cell in line] for line in grid],
        "zmin": 0, "zmax": top, "xgap": 1, "ygap": 1, "hoverinfo": "text",
        "hovertext": [[_pair_hover(cell) if cell else "" for cell in line] for line in grid],
        "hoverongaps": False,
    }  # fmt: skip
    if is_numbered:
        trace["text"] = [
            [nats(cell.value).replace("below ", "<") if cell else "" for cell in line] for line in grid
        ]
        trace["texttemplate"] = "%{text}"
    return trace


def _pair_hover(leakage: Leakage) -> str:
    name = leakage.through[0]
    of = "own report" if name == leakage.secret else f"report of {name}"
    odds = f"{nats(leakage.value)} nats: odds × {factor(leakage.value)} ({leakage.upper.kind})"
    return paragraph(f"{of} about {leakage.secret}", odds, *witness_lines(leakage.upper))


def witness_lines(bound: Bound) -> list[str]:
    """Say what reaches a figure and how many records are behind it."""
    if bound.witness is None:
        return [bound.method]
    lines = [
        f"reached by {bound.witness.report}",
        f"likeliest under {bound.witness.likelier}, least likely under {bound.witness.unlikelier}",
    ]
    return lines if bound.support is None else [*lines, f"rests on {whole(bound.support)} records"]
