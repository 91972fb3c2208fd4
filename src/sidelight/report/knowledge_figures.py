"""The figures of prior knowledge: leakage against what is known, and the graph of adversaries."""

from __future__ import annotations

import math

from sidelight.knowledge import Adversary, KnowledgeAudit
from sidelight.knowledge.adversary import adversary_of
from sidelight.report.page import Figure
from sidelight.report.palette import HEAT
from sidelight.report.style import LEAST_SPAN, Trace, axis, finite, from_zero, layout
from sidelight.report.wording import label, nats, paragraph

MOST_DRAWN = 64
"""A target's graph is drawn if it has at most so many adversaries."""
LINES = {
    "exact": ("exact: who learns most", "series-1", "solid"),
    "least": ("exact: who learns least", "series-4", "solid"),
    "certified": ("certified: sound graph", "series-3", "dash"),
    "published": ("published graph", "series-2", "dash"),
    "group": ("group privacy", "series-8", "dot"),
}
"""The lines of the first figure: name, colour and stroke."""


def drawn_lines(audit: KnowledgeAudit) -> dict[str, tuple[str, ...]]:
    """Return the lines that have a figure to draw; what is exact for a model is called so."""
    truth = "model" if audit.belief.is_model else "exact"
    return {
        field: (name.replace("exact", truth), *style)
        for field, (name, *style) in LINES.items()
        if any(math.isfinite(getattr(layer, field) or 0.0) for layer in audit.layers)
        and getattr(audit.layers[0], field) is not None
    }


def knowledge_figure(audit: KnowledgeAudit) -> Figure:
    """Draw leakage against the number of attributes that are known."""
    data = []
    shown: list[float] = []
    for field, (name, colour, dash) in drawn_lines(audit).items():
        values = [getattr(layer, field) for layer in audit.layers]
        shown += values
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": [layer.known for layer in audit.layers],
                "y": [finite(value) for value in values],
                "line": {"color": f"@{colour}", "width": 2.5, "dash": dash},
                "marker": {"color": f"@{colour}", "size": 8},
                "hoverinfo": "text",
                "hovertext": [paragraph(f"{name}: {nats(value)}") for value in values],
            }
        )
    return Figure(
        data,
        layout(
            height=420,
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            xaxis=axis("attributes known beforehand", dtick=1, range=[-0.3, len(audit.layers) - 0.7]),
            yaxis=axis("leakage in nats", range=from_zero(shown)),
        ),
        "Leakage against the number of attributes an adversary knows; the table below has the figures.",
    )


def graph_figure(audit: KnowledgeAudit, target: str) -> Figure | None:
    """Draw the adversaries of a target, with an edge where one attribute is forgotten; None if too many."""
    names = audit.exact.names
    if 2 ** (len(names) - 1) > MOST_DRAWN or audit.graph is None:
        return None
    places = _places(names, target)
    data = [_edges(audit, target, places, positive=sign) for sign in (True, False)]
    data.append(_nodes(audit, places))
    rows = [f"knows {known}" for known in range(len(names))]
    hidden = {"showgrid": False, "zeroline": False}
    return Figure(
        [trace for trace in data if trace["x"]],
        layout(
            height=110 + 80 * len(names),
            margin={"l": 8, "r": 8, "t": 36, "b": 8},
            xaxis=axis("", **hidden, showticklabels=False),
            yaxis=axis(
                "", **hidden, tickvals=list(range(len(names))), ticktext=rows, range=[len(names) - 0.5, -0.5]
            ),
        ),
        f"The {len(places)} adversaries who attack {target}, by what they know; the table has their figures.",
        min_width=520,
    )


def adversaries_of(names: tuple[str, ...], target: str) -> list[Adversary]:
    """Return all adversaries of a target, from the weakest to the strongest."""
    i = names.index(target)
    masks = [mask for mask in range(1 << len(names)) if not mask >> i & 1]
    return [adversary_of(names, i, mask) for mask in sorted(masks, key=int.bit_count)]


def _places(names: tuple[str, ...], target: str) -> dict[Adversary, tuple[float, int]]:
    """Return where each adversary is drawn: spread along its row."""
    rows: dict[int, list[Adversary]] = {}
    for adversary in adversaries_of(names, target):
        rows.setdefault(len(adversary.known), []).append(adversary)
    return {
        adversary: ((number + 0.5) / len(row) - 0.5, known)
        for known, row in rows.items()
        for number, adversary in enumerate(row)
    }


def _edges(
    audit: KnowledgeAudit, target: str, places: dict[Adversary, tuple[float, int]], *, positive: bool
) -> Trace:
    """Return the edges of one sign as one trace; a gap parts them."""
    x: list[float | None] = []
    y: list[float | None] = []
    for edge in audit.graph.all_edges(target) if audit.graph else ():
        if (edge.increment >= 0) == positive:
            ends = places[edge.adversary], places[edge.weaker]
            x += [round(ends[0][0], 4), round(ends[1][0], 4), None]
            y += [ends[0][1], ends[1][1], None]
    colour = "@series-1" if positive else "@series-2"
    line = {"color": colour, "width": 1.5, "dash": "solid" if positive else "dot"}
    trace: Trace = {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "opacity": 0.55}
    return trace | {"hoverinfo": "skip"}


def _nodes(audit: KnowledgeAudit, places: dict[Adversary, tuple[float, int]]) -> Trace:
    values = [audit.exact.of(adversary) for adversary in places]
    top = max([LEAST_SPAN, *filter(math.isfinite, values)])
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [round(x, 4) for x, _ in places.values()],
        "y": [y for _, y in places.values()],
        "marker": {
            "size": 18,
            "color": [min(value, top) for value in values],
            "colorscale": HEAT,
            "cmin": 0,
            "cmax": top,
            "line": {"width": 1.5, "color": "@ink"},
            "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "nats", "side": "right"}},
        },
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": [_hover(audit, adversary) for adversary in places],
    }


def _hover(audit: KnowledgeAudit, adversary: Adversary) -> str:
    lines = [f"{'model' if audit.belief.is_model else 'exact'} {nats(audit.exact.of(adversary))}"]
    if audit.published is not None:
        lines.append(f"published {nats(audit.published.of(adversary))}")
    if audit.certified is not None:
        lines.append(f"certified {nats(audit.certified.of(adversary))}")
    return paragraph(f"knows {label(', '.join(adversary.known) or 'nothing', 60)}", *lines)
