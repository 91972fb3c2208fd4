"""Remedies: the ways back under the limits, first on the page of the audit they are for."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sidelight.auditing import NAMES
from sidelight.foundation.numbers import points
from sidelight.remedying import Remedies, Remedy
from sidelight.remedying.result import Kind
from sidelight.report.audit import audit_page
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, drawn, plotted
from sidelight.report.style import LEGEND, Trace, axis, log_ticks, scatter
from sidelight.report.wording import decimals, hundredths, nats, paragraph, whole

_SYMBOLS: dict[Kind, str] = {
    "as it is": "x", "withhold": "square", "budgets": "circle", "coarsen": "diamond",
    "sample": "triangle-up", "several": "star",
}  # fmt: skip
_COLOURS: dict[Kind, str] = {
    "as it is": "@exceeded", "withhold": "@series-1", "budgets": "@series-3", "coarsen": "@series-4",
    "sample": "@series-5", "several": "@series-7",
}  # fmt: skip
_COLUMNS = (
    "", "remedy", "leakage", "limit", "attributes", "error (pp)", "loss (pp)", "people needed",
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """A remedy as the page offers it."""

    number: int
    remedy: Remedy
    is_on_front: bool

    @property
    def file(self) -> str:
        """What its file is called."""
        return f"remedy-{self.number}.toml"

    @property
    def link(self) -> str:
        """The file itself, as an address that holds it."""
        text = base64.b64encode(self.remedy.to_toml().encode()).decode()
        return f"data:application/toml;base64,{text}"

    @property
    def command(self) -> str:
        """How to collect with it."""
        means = "--protocol" if self.remedy.protocol else "--plan"
        return f"sidelight collect DATA {means} {self.file} -o reports.parquet"

    @property
    def needed(self) -> str:
        """How many people the wanted precision takes, in words."""
        return people_words(self.remedy)


def people_words(remedy: Remedy) -> str:
    """Say how many people are needed."""
    return "no number is enough" if remedy.people_needed is None else whole(remedy.people_needed)


def remedies_page(found: Remedies) -> Page:
    """Return the page of an audit with the remedies first."""
    page = audit_page(found.audit, found)
    choices = [Choice(number, item, item in found.front) for number, item in enumerate(found, 1)]
    words = {"found": found, "choices": choices, "decider": NAMES[found.audit.decide_by]}
    figures = drawn(remedies=front_figure(found), **page.figures)
    return replace(page, context={**page.context, "remedies": words}, figures=figures)


def front_figure(found: Remedies) -> Figure | None:
    """Draw every remedy by its leakage and its loss; None where there is none."""
    if found.now is None or not found.remedies:
        return None
    shown = [(0, found.now), *enumerate(found.remedies, 1)]
    loss = [100 * value for value in (*(item.loss for _, item in shown), *(it.error for it in found.curve))]
    data: list[Trace] = [*_curve(found), _front(found)]
    for kind in dict.fromkeys(item.kind for _, item in shown):
        data.append(_points(found, [(number, item) for number, item in shown if item.kind == kind]))
    across = axis("leakage as a share of the limit", range=[0, 1.08 * _widest(found)], tickformat=".0%")
    up = axis("loss in percentage points (logarithmic)", **log_ticks(loss, 9))
    limit = {
        "type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": "@ink", "width": 2, "dash": "dot"},
    }  # fmt: skip
    said = (
        "Every remedy by its leakage and its loss; those that no other beats are joined by a line. The same "
        "figures are in the table below."
    )
    look: Trace = {"legend": LEGEND, "shapes": [limit]}
    return plotted(data, said, 400, across, up, headroom=36, showlegend=True, **look)


def _widest(found: Remedies) -> float:
    shares = [item.share for item in (*found.remedies, *([found.now] if found.now else []))]
    return max([1.0, *(share for share in shares if math.isfinite(share))])


def _front(found: Remedies) -> Trace:
    """Return the line through the remedies that no other beats in leakage and loss."""
    steps: list[Remedy] = []
    for item in sorted(found.front, key=lambda each: (each.share, each.loss)):
        if not steps or item.loss < steps[-1].loss:
            steps.append(item)
    x, y = [item.share for item in steps], [100 * item.loss for item in steps]
    line = {"color": "@muted", "width": 1, "shape": "hv"}
    return scatter("lines", x, y, name="none is better", line=line, hoverinfo="skip")


def _curve(found: Remedies) -> list[Trace]:
    """Return the line of what other budgets would leak and cost, where it is known."""
    points = sorted((item.share, 100 * item.error) for item in found.curve if math.isfinite(item.error))
    if len(points) < 2:
        return []
    x, y = zip(*points, strict=True)
    line = {"color": "@series-3", "width": 1, "dash": "dot", "shape": "spline"}
    return [scatter("lines", x, y, name="lower budgets (estimated)", line=line, hoverinfo="skip")]


def _points(found: Remedies, items: Sequence[tuple[int, Remedy]]) -> Trace:
    """Return the marks of remedies of one kind, each with its number."""
    kind = items[0][1].kind
    widest = _widest(found)
    hovers = [
        paragraph(
            item.says, f"leakage {nats(item.worst[1].value)} of {nats(item.limits[item.worst[0]])}",
            f"{item.attributes} attributes, each right to {points(item.error)} on average",
        )
        for _, item in items
    ]  # fmt: skip
    x, y = [min(item.share, widest) for _, item in items], [100 * item.loss for _, item in items]
    return scatter(
        "markers+text", x, y,
        name=items[0][1].title, text=[str(number) if number else "now" for number, _ in items],
        textposition="top center", hovers=hovers,
        marker={"symbol": _SYMBOLS[kind], "color": _COLOURS[kind], "size": 12},
    )  # fmt: skip


def print_remedies(found: Remedies) -> None:
    """Print the ways back under the limits, cheapest first, and what to know about them."""
    rows = []
    if found.now is not None:
        rows.append(_row("now", found.now))
    rows += [_row(str(number), item) for number, item in enumerate(found, 1)]
    grid = table_of("Ways back under the limits, cheapest first", _COLUMNS, rows, left=("", "remedy"))
    print_parts([found.headline(), *([grid] if rows else [])], found.notes())
    for name, items in found.single.items():
        alone = [_row("", item) for item in items]
        if alone:
            print_parts([table_of(f"For {name} alone", _COLUMNS, alone, left=("", "remedy"))])


def _row(number: str, item: Remedy) -> list[str]:
    name, bound = item.worst
    figures = [decimals(bound.value), decimals(item.limits[name]), str(item.attributes)]
    return [number, item.says, *figures, hundredths(item.error), hundredths(item.loss), people_words(item)]
