"""Prior knowledge: leakage against what is known, and the graph of adversaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import singledispatch
from typing import Any

from rich.table import Table as Grid

from sidelight.belief import Belief, Gaussian
from sidelight.knowledge import Adversary, AdversaryAudit, KnowledgeAudit, NoiseChoice, NumberSum, Query
from sidelight.knowledge.adversary import adversary_of
from sidelight.leakage import Bound
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, drawn, plotted
from sidelight.report.style import HEAT, LEAST_SPAN, Trace, axis, finite, from_zero, scatter
from sidelight.report.wording import UNPROTECTED, counted, decimals, label, nats, paragraph
from sidelight.sources import Table

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
        key: (name.replace("exact", truth), *style)
        for key, (name, *style) in LINES.items()
        if any(map(math.isfinite, _values(audit, key)))
    }


def _values(audit: KnowledgeAudit, key: str) -> list[float]:
    """Return the values of a line, layer by layer; none where a method has none."""
    figures = ((it.exact, it.least, it.certified, it.published, it.group) for it in audit.layers)
    values = dict(zip(LINES, zip(*figures, strict=True), strict=True))[key]
    return [value for value in values if value is not None]


def knowledge_figure(audit: KnowledgeAudit) -> Figure:
    """Draw leakage against the number of attributes that are known."""
    data = []
    shown: list[float] = []
    for key, (name, colour, dash) in drawn_lines(audit).items():
        values = _values(audit, key)
        shown += values
        line, marker = {"color": f"@{colour}", "width": 2.5, "dash": dash}, {"color": f"@{colour}", "size": 8}
        look = {"name": name, "line": line, "marker": marker}
        known, heights = [layer.known for layer in audit.layers], [finite(value) for value in values]
        hovers = [paragraph(f"{name}: {nats(value)}") for value in values]
        data.append(scatter("lines+markers", known, heights, **look, hovers=hovers))
    said = "Leakage against the number of attributes an adversary knows; the table below has the figures."
    across = axis("attributes known beforehand", dtick=1, range=[-0.3, len(audit.layers) - 0.7])
    up = axis("leakage in nats", range=from_zero(shown))
    return plotted(data, said, 420, across, up, headroom=30)


def graph_figure(audit: KnowledgeAudit, target: str) -> Figure | None:
    """Draw the adversaries of a target, with an edge where one attribute is forgotten; None if too many."""
    names = audit.exact.names
    if 2 ** (len(names) - 1) > MOST_DRAWN or audit.graph is None:
        return None
    places = _places(names, target)
    data = [_edges(audit, target, places, positive=sign) for sign in (True, False)]
    data.append(_nodes(audit, places))
    rows, hidden = range(len(names)), {"showgrid": False, "zeroline": False}
    named = {"tickvals": [*rows], "ticktext": [f"knows {known}" for known in rows]}
    return plotted(
        [trace for trace in data if trace["x"]],
        f"The {len(places)} adversaries who attack {target}, by what they know; the table has their figures.",
        110 + 80 * len(names), axis("", **hidden, showticklabels=False),
        axis("", **hidden, **named, range=[len(names) - 0.5, -0.5]), headroom=36, min_width=520,
    )  # fmt: skip


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
    return scatter("lines", x, y, line=line, opacity=0.55, hoverinfo="skip")


def _nodes(audit: KnowledgeAudit, places: dict[Adversary, tuple[float, int]]) -> Trace:
    values = [audit.exact.of(adversary) for adversary in places]
    top = max([LEAST_SPAN, *filter(math.isfinite, values)])
    marker = {
        "size": 18, "color": [min(value, top) for value in values], "colorscale": HEAT, "cmin": 0,
        "cmax": top, "line": {"width": 1.5, "color": "@ink"},
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "nats", "side": "right"}},
    }  # fmt: skip
    x, y = [round(x, 4) for x, _ in places.values()], [y for _, y in places.values()]
    hovers = [_hover(audit, adversary) for adversary in places]
    return scatter("markers", x, y, marker=marker, cliponaxis=False, hovers=hovers)


def _hover(audit: KnowledgeAudit, adversary: Adversary) -> str:
    truth = "model" if audit.belief.is_model else "exact"
    found = _figures(audit, adversary).items()
    lines = [f"{truth if name == 'exact' else name} {nats(value)}" for name, value in found]
    return paragraph(f"knows {label(', '.join(adversary.known) or 'nothing', 60)}", *lines)


def knowledge_page(audit: KnowledgeAudit) -> Page:
    """Return the page of a query's leakage to adversaries with every amount of prior knowledge."""
    target = audit.worst.adversary.target
    figures = drawn(curve=knowledge_figure(audit), graph=graph_figure(audit, target))
    context = {
        "audit": audit, "belief": audit.belief, "target": target, "standing": STANDINGS[audit.standing],
        "targets": [_target_rows(audit, name) for name in audit.targets],
        "rows": [_row(audit, each) for each in adversaries_of(audit.exact.names, target)],
        "lines": drawn_lines(audit),
        "edges": list(audit.graph.all_edges(target)) if audit.graph and "graph" in figures else [],
        "is_gaussian": _asked(audit.query)[1] is not None, "enough": enough, "compared": compared,
    }  # fmt: skip
    title = f"Sidelight: prior knowledge about {audit.belief.source}"
    return Page(title, "knowledge.html.j2", context, figures)


def _target_rows(audit: KnowledgeAudit, target: str) -> dict[str, dict[str, Any]]:
    """Return the weakest, the strongest and the worst adversary of a target."""
    everyone = adversaries_of(audit.exact.names, target)
    worst = max(everyone, key=audit.exact.of)
    chosen = {"weakest": everyone[0], "strongest": everyone[-1], "worst": worst}
    return {name: _row(audit, adversary) for name, adversary in chosen.items()}


def _row(audit: KnowledgeAudit, adversary: Adversary) -> dict[str, Any]:
    """Return the figures of one adversary in a table, by the methods that have one."""
    figures = _figures(audit, adversary)
    # both are rounded doubles, and equal ones must not look understated
    below = "published" in figures and figures["published"] < figures["exact"] - 1e-9
    shown = {"is_hidden": audit.is_hidden(adversary), "is_understated": below}
    return {"adversary": adversary, "group": audit.group.of(adversary), **figures, **shown}


def _figures(audit: KnowledgeAudit, adversary: Adversary) -> dict[str, float]:
    """Return one adversary's figures by the methods that have one."""
    graphs = {"exact": audit.exact, "published": audit.published, "certified": audit.certified}
    return {name: graph.of(adversary) for name, graph in graphs.items() if graph is not None}


STANDINGS = {
    "weakest": "The weakest adversary, who knows nothing beforehand, learns most.",
    "strongest": "The strongest adversary, who knows everything but the target, learns most.",
    "both": "The weakest and the strongest adversary learn most, and equally much.",
    "between": "Neither the weakest nor the strongest adversary learns most: one in between does.",
    "hidden": "Who learns most rests on too few records to show.",
}


def print_knowledge(audit: KnowledgeAudit, table: Table) -> None:
    """Print leakage against the amount of prior knowledge, the worst adversary and the named ones."""
    title = f"What a {audit.query.name} with Laplace noise of scale {audit.query.scale:g} tells (nats)"
    truth = "model" if audit.belief.is_model else "exact"
    columns = ("attributes known", "who learns most", truth, "certified", "published", "group", "least")
    grid = table_of(title, columns, left=("who learns most",))
    for layer in audit.layers:
        exact = ("≤ " if audit.is_hidden(layer.worst) else "") + decimals(layer.exact)
        others = (layer.certified, layer.published, layer.group, layer.least)
        cells = ("-" if value is None else decimals(value) for value in others)
        grid.add_row(str(layer.known), str(layer.worst), exact, *cells)
    named = (audit.worst, *audit.named) if audit.standing != "hidden" else audit.named
    print_parts([grid, *map(_adversary_grid, named)], _notes(audit, table), wrap=False)


def print_adversary(
    item: AdversaryAudit, belief: Belief | Gaussian, query: Query | NumberSum, table: Table
) -> None:
    """Print the figures of one adversary."""
    said = [
        f"A {query.name} of {_asked(query)[0]} attributes with noise of scale {query.scale:g}; for an "
        f"adversary who knows {_belief(belief)} {table.source.label} ({belief.sample_size} records)."
    ]
    if item.exact.is_suppressed:
        said.append("The leakage rests on too few records to show: group privacy alone stands there.")
    print_parts([_adversary_grid(item)], [*said, UNPROTECTED], wrap=False)


@singledispatch
def _asked(query: Any) -> tuple[int, Mapping[str, float] | None]:
    """Return how many attributes a query is about and, if its numbers are not binned, how far they reach."""
    return len(query.schema), None


@_asked.register
def _(query: NumberSum) -> tuple[int, Mapping[str, float] | None]:
    return len(query.weights), query.reaches


def enough(scale: float) -> str:
    """Write a scale with four digits, rounded up: what is printed keeps the limit too.

    >>> enough(1.23441), enough(2.0), enough(123456.0)
    ('1.235', '2', '123500')
    """
    exact = Decimal(scale)
    step = Decimal(1).scaleb(exact.adjusted() - 3)  # in decimals: a rounded double may be smaller
    return f"{float(exact.quantize(step, rounding=ROUND_CEILING)):.12g}"


def compared(noise: NoiseChoice) -> str:
    """Say what group privacy would take instead of the least noise.

    >>> from sidelight.knowledge import Adversary
    >>> bound = Bound(1.0, "exact", "by hand")
    >>> compared(NoiseChoice(1.0, 3.0, Adversary("x"), bound, 9.0))
    'group privacy would take 9, 3.00 times as much'
    """
    if noise.leakage.is_suppressed:
        return "that is what group privacy takes; the least scale rests on too few records to show"
    if math.isinf(noise.group_scale):
        return "group privacy knows no scale that is enough, since a Gaussian's values have no limits"
    return f"group privacy would take {enough(noise.group_scale)}, {noise.saving:.2f} times as much"


def _belief(belief: Belief | Gaussian) -> str:
    """Say what the adversary knows of the table."""
    if belief.kind == "gaussian":
        return "a Gaussian with the covariances of"
    return "a tree learnt from" if belief.is_model else "the joint distribution of"


def _adversary_grid(item: AdversaryAudit) -> Grid:
    columns = ("figure", "nats", "claim", "how")
    grid = table_of(f"Attacks {item.adversary}", columns, left=("figure", "claim", "how"))
    names = ("leakage", "sound graph", "published graph", "group privacy")
    bounds = (item.exact, item.certified, item.published, item.group)
    for name, bound in zip(names, bounds, strict=True):
        if bound is not None:
            below = " (below the truth)" if name == "published graph" and item.is_understated else ""
            grid.add_row(name, decimals(bound.value), f"{bound.kind}{below}", _reached(bound))
    return grid


def _reached(bound: Bound) -> str:
    if (witness := bound.witness) is None:
        return bound.method
    told = f"reached by {witness.report}; for {witness.likelier}, against {witness.unlikelier}"
    return told if bound.support is None else f"{told}; it rests on {counted(bound.support, 'record')}"


def _notes(audit: KnowledgeAudit, table: Table) -> list[str]:
    size = f"{audit.belief.sample_size} records, {len(audit.exact.names)} attributes"
    known = _belief(audit.belief)
    said = [STANDINGS[audit.standing], f"For adversaries who know {known} {table.source.label} ({size})."]
    if audit.understated:
        said.append(f"The published graph is below the truth for {audit.understated:.1%} of the adversaries.")
    reaches = _asked(audit.query)[1]
    if reaches is not None:
        said += _gaussian_notes(audit, reaches, table)
    if audit.noise is not None:
        scale = enough(audit.noise.scale)
        whom = ", for a model" if audit.belief.is_model else ""
        kept = f"To keep everyone under {audit.noise.limit:g}{whom}: scale {scale}"
        said.append(f"{kept}; {compared(audit.noise)}.")
    if audit.min_support and audit.hidden is not None:
        said.append(
            f"Figures that rest on fewer than {audit.min_support} records show group privacy alone: those "
            f"of {int(audit.hidden.sum())} adversaries. The graphs are left out."
        )
    return [*said, *table.notes(), UNPROTECTED]


def _gaussian_notes(audit: KnowledgeAudit, reaches: Mapping[str, float], table: Table) -> list[str]:
    """Say what a Gaussian stands on: how far values go, a second formula, what was left out."""
    apart = ", ".join(f"{name} {reaches[name]:.6g}" for name in audit.targets)
    said = [f"Two values of a target are at most so far apart: {apart}."]
    if audit.corollary_gap is not None:
        said.append(
            "Corollary 2 of the paper gives the same for the weakest adversary of every target, to within "
            f"{max(audit.corollary_gap, 1e-15):.0e}."
        )
    text = [name for name in table.schema.names if name not in audit.exact.names]
    if text:
        said.append(f"Not numbers, so left out: {', '.join(text)}.")
    incomplete = table.rows + table.dropped - (audit.belief.sample_size or 0)
    if incomplete:
        said.append(f"{incomplete} records with a missing number were left out.")
    return said
