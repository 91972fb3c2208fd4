"""What a release says at delta, in words and figures: three stories side by side, each beside its null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidelight.auditing import (
    AT_DELTA,
    NAMES,
    AdversaryName,
    Audit,
    Outcome,
    SecretAudit,
    Story,
    shown_figure,
)
from sidelight.leakage import DeltaPoint, Leakage, Witness
from sidelight.report.audit_figures import interval
from sidelight.report.page import Figure, plotted
from sidelight.report.style import LEAST_SPAN, LEGEND, Trace, axis, scatter
from sidelight.report.wording import decimals, factor, nats, paragraph, share, short, whole

NOISE = "no more than a table without any connection shows"
BRACKETS = (
    "In brackets what a table without any connection shows; ~ marks figures that rise no higher: noise."
)
TITLES: dict[AdversaryName, str] = {
    "population": "Someone who knows the population",
    "table": "Someone who knows this very table",
    "tree": "Someone who takes a tree for the population",
    "report": "The worst case",
}
_KNOWLEDGE: dict[AdversaryName, str] = {
    "population": "How attributes go together among people like these, as well as this table teaches it.",
    "table": "Every record of the table, though not whose it is: staff, say, or whoever got hold of a copy.",
    "tree": "How attributes go together in a tree that was learnt from the table.",
    "report": "Knows the table too, and happens to see the reports that say most, however unlikely they are.",
}
_COLOURS: dict[AdversaryName, str] = {"population": "series-3", "table": "series-1", "tree": "series-3"}
_SHARES = {0.5: "half of the people", 0.9: "9 in 10", 0.99: "99 in 100", 0.999: "999 in 1,000"}
_NOTABLE = 1.1
"""Where a certified figure is this many times what the draws show, both are shown."""
_CURVE_POINTS = 60
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Line:
    """One figure of a story."""

    exposed: str  # how many people may be exposed beyond it, as "1 in 100"; empty in the worst case
    odds: str  # by how many times odds move
    drawn: str  # what the draws show, where the odds are far above; else empty
    detail: str  # in nats, and what kind of figure it is
    null: str  # the same of a table without any connection; empty where that is not known
    is_noise: bool
    is_asked: bool  # whether the verdict is about this one
    witness: Witness | None  # the value whose people it is about, and the one it is told from


@dataclass(frozen=True)
class Column:
    """One story as a page tells it."""

    title: str
    knowledge: str  # what this adversary knows
    outcome: Outcome
    decides: bool
    lines: tuple[Line, ...]


def columns_of(item: SecretAudit) -> list[Column]:
    """Return the stories of a secret; the worst case is the last."""
    told = [_column(item, story.adversary, _lines(story)) for story in item.stories]
    return [*told, _column(item, "report", (_worst_line(item),))]


def one_in(delta: float) -> str:
    """Write a share as one in so many, where that is a whole number.

    >>> one_in(0.01), one_in(1e-4), one_in(0.03)
    ('1 in 100', '1 in 10,000', '3.0 %')
    """
    many = round(1 / delta)
    return f"1 in {whole(many)}" if math.isclose(many * delta, 1, rel_tol=1e-9) else share(delta)


def allowance(delta: float) -> str:
    """Say which exceptions figures at delta allow for.

    >>> allowance(0.01)[:60]
    'Figures at delta 0.01 allow for exceptions worth 1 in 100 pe'
    """
    return (
        f"Figures at delta {delta:g} allow for exceptions worth {one_in(delta)} people. Whoever is beyond a "
        "figure counts by how far: a few may be far beyond it, or more people a little."
    )


def times(value: float) -> str:
    """Write by how many times odds move.

    >>> times(1.0), times(math.inf)
    ('2.72 times', 'any number of times')
    """
    return f"{factor(value)} times" if math.isfinite(value) else "any number of times"


def headline(item: SecretAudit) -> str:
    """Say by how much the odds about a secret can move, for the one who decides, and its limit, if any."""
    limit = "" if item.limit is None else f" The limit is a factor of {factor(item.limit)}."
    name = short(item.secret, _LONGEST_NAME)
    if item.deciding is None:
        reach = odds_range(item.worst_case)
        return f"In the worst case the reports multiply the odds about {name} by {reach}.{limit}"
    leakage = item.deciding.leakage
    who = TITLES[item.deciding.adversary]
    moved = f"{who} can multiply the odds about {name} by up to {factor(leakage.value)}"
    return f"{moved}, if {one_in(leakage.delta)} people may be exposed beyond that.{limit}"


def deciding_witness(item: SecretAudit) -> Witness | None:
    """Return the value whose people the deciding figure is about, and the value it is told from."""
    bound = item.worst_case.lower if item.deciding is None else item.deciding.leakage.upper
    return bound.witness


def main_story(item: SecretAudit) -> Story:
    """Return the story that decides; where the worst case does, the one of who knows most."""
    return item.deciding or item.stories[-1]


def people_moved(item: SecretAudit) -> list[tuple[str, str]]:
    """Return, for growing shares of people, by how much at most the reports move the odds about them."""
    leakage = main_story(item).leakage
    return [(words, times(leakage.moved(part))) for part, words in _SHARES.items()]


def _column(item: SecretAudit, adversary: AdversaryName, lines: tuple[Line, ...]) -> Column:
    decides = item.decide_by == adversary
    return Column(TITLES[adversary], _KNOWLEDGE[adversary], item.outcomes[adversary], decides, lines)


def _lines(story: Story) -> tuple[Line, ...]:
    leakage, nulls = story.leakage, story.nulls
    return tuple(
        Line(
            one_in(point.delta),
            factor(point.upper.value),
            _drawn(point),
            _detail(point),
            factor(nulls[point.delta]) if point.delta in nulls else "",
            story.is_noise(point),
            point.delta == leakage.delta,
            point.upper.witness,
        )
        for point in leakage.points
    )


def _drawn(point: DeltaPoint) -> str:
    if point.estimate is None or point.upper.value <= _NOTABLE * point.estimate:
        return ""
    return factor(point.estimate)


def _detail(point: DeltaPoint) -> str:
    told = f"{nats(point.upper.value)}, {point.upper.kind}: {point.upper.method}"
    return (
        f"{told}; the draws show about {nats(point.estimate)}" if point.estimate and _drawn(point) else told
    )


def _worst_line(item: SecretAudit) -> Line:
    null = "" if item.null is None else odds_range(item.null)
    told = f"{interval(item.worst_case)}, {item.worst_case.upper.kind}: {item.worst_case.upper.method}"
    witness = item.worst_case.lower.witness
    return Line("", odds_range(item.worst_case), "", told, null, item.is_noise, True, witness)


def odds_range(leakage: Leakage) -> str:
    """Write by how many times odds are multiplied: the figure, or both its ends."""
    low, high = factor(leakage.lower.value), factor(leakage.upper.value)
    return low if low == high else f"{low} to {high}"


def story_table(items: Sequence[SecretAudit]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of all stories for a terminal, in nats, the nulls in brackets."""
    deltas = [point.delta for point in items[0].stories[0].leakage.points]
    heads = ["secret", "told to", *(f"at {delta:g}" for delta in deltas), "worst case", "verdict"]
    rows = []
    for item in items:
        told = [_row(item, story) for story in item.stories]
        null = "" if item.null is None else f" ({interval(item.null)})"
        worst = f"{'~' if item.is_noise else ''}{interval(item.worst_case)}{null}"
        last = ["", "the worst case", *[""] * len(deltas), worst, _verdict(item, "report")]
        rows += [[short(item.secret, _LONGEST_NAME), *told[0][1:]], *told[1:], last]
    return heads, rows


def _row(item: SecretAudit, story: Story) -> list[str]:
    cells = []
    for point in story.leakage.points:
        null = f" ({decimals(story.nulls[point.delta])})" if point.delta in story.nulls else ""
        cells.append(f"{'~' if story.is_noise(point) else ''}{decimals(point.upper.value)}{null}")
    known = TITLES[story.adversary].partition(" who ")[2]
    return ["", f"who {known}", *cells, "", _verdict(item, story.adversary)]


def _verdict(item: SecretAudit, adversary: AdversaryName) -> str:
    decides = item.is_judged and item.decide_by == adversary
    return f"{item.outcomes[adversary]}{', decides' if decides else ''}"


def notes(audit: Audit) -> list[str]:
    """Return what a reader of figures at delta must know."""
    leakages = [story.leakage for item in audit.secrets.values() for story in item.stories]
    drawn = [leakage.draws for leakage in leakages if leakage.draws]
    delta = leakages[0].delta
    counts = "The limits are to be kept" if audit.judged else "The first figure named is that"
    said = [
        f"{counts} for {NAMES[audit.decide_by]}"
        f"{f', at delta {delta:g}' if audit.decide_by in AT_DELTA else ' in the worst case'}.",
        allowance(delta),
    ]
    if drawn:
        said.append(
            f"Sampled figures come from simulated reports (draws), {whole(min(drawn))} or more for each "
            f"value; each is too low with a probability of {leakages[0].beta:g} at most, over our own coin "
            "flips."
        )
    if audit.population is not None and audit.population.population is not None:
        gain = audit.population.population.gain
        said.append(
            f"The population predicts a person's record {gain:.2f} nats better than independence does."
        )
    return said


def delta_figure(item: SecretAudit) -> Figure:
    """Draw the leakage against how many people may be exposed, with the worst case at its end."""
    deltas = sorted(point.delta for point in item.stories[0].leakage.points)
    edge, last = _edge(item), deltas[0] / 10
    data = [_story_trace(story, edge) for story in item.stories]
    data += [*_side_traces(main_story(item), edge), *_worst_traces(item, last, edge)]
    ticks = {"tickvals": [last, *deltas, 0.5], "ticktext": ["worst case", *map(one_in, deltas), "1 in 2"]}
    span = {"type": "log", "range": [-0.25, math.log10(last) - 0.15]}
    return plotted(
        data,
        f"Leakage about {item.secret} against how many people may be exposed; the table has the figures.",
        440,
        axis("people who may be exposed beyond it (delta)", **span, **ticks),
        axis("leakage in nats", range=[0, 1.05 * edge]),
        headroom=30, showlegend=True, legend=LEGEND,
    )  # fmt: skip


def _edge(item: SecretAudit) -> float:
    """Return where the axis of leakages ends: a bound far above what is reached is cut off."""
    heights = [_height(point) for story in item.stories for point in story.leakage.points]
    reached = [value for value in (item.worst_case.lower.value, *heights) if math.isfinite(value)]
    base = max(reached, default=0.0)
    far = (item.limit, item.worst_case.upper.value)
    near = [value for value in far if value is not None and value <= 2 * base]
    return max([base, *near, LEAST_SPAN])


def _height(point: DeltaPoint) -> float:
    """Return what is drawn: the figure, or what the draws show where it is a bound far above them."""
    return shown_figure(point) if _drawn(point) else point.upper.value


def _story_trace(story: Story, edge: float) -> Trace:
    name, points = TITLES[story.adversary], story.leakage.points
    lines = [f"odds × {line.odds} if {line.exposed} may be exposed" for line in _lines(story)]
    hovers = [paragraph(name, *told) for told in zip(lines, map(_detail, points), strict=True)]
    trace = _capped(
        [(point.delta, _height(point)) for point in points], edge, name, _COLOURS[story.adversary]
    )
    symbols = trace["marker"]["symbol"]
    open_ends = [
        f"{symbol}-open" if _drawn(point) else symbol for symbol, point in zip(symbols, points, strict=True)
    ]
    return trace | {
        "marker": trace["marker"] | {"symbol": open_ends},
        "hoverinfo": "text",
        "hovertext": hovers,
    }


def _side_traces(story: Story, edge: float) -> list[Trace]:
    """Return the null of a story, and by how much odds are moved at most, but for a share of people."""
    leakage = story.leakage
    # of a share with fewer than two draws nothing is known
    least = max(leakage.points[-1].delta, 2 / len(leakage.moves) if leakage.draws else 0.0)
    shares = np.geomspace(0.5, least, _CURVE_POINTS).tolist()
    moved = [min(leakage.moved(1 - part), edge) for part in shares]
    name, line = "so many people are moved further", {"color": "@neutral", "width": 1.5}
    traces = [scatter("lines", shares, moved, name=name, line=line, hoverinfo="skip")]
    if story.nulls:
        nulls = sorted(story.nulls.items(), reverse=True)
        traces.append(_capped(nulls, edge, "without any connection", "muted", dash="dot", hoverinfo="skip"))
    return traces


def _worst_traces(item: SecretAudit, last: float, edge: float) -> list[Trace]:
    """Return the worst case, from what is reached to what is not excluded, and the limit."""
    worst = item.worst_case
    hover = paragraph(TITLES["report"], f"× {odds_range(worst)}", f"{interval(worst)} nats")
    ends = [(last, worst.lower.value), (last, worst.upper.value)]
    traces = [_capped(ends, edge, "worst case", "ink", hovers=[hover, hover])]
    if item.limit is not None and item.limit <= edge:
        line = {"color": "@exceeded", "width": 1.5, "dash": "dash"}
        level = [item.limit, item.limit]
        traces.append(scatter("lines", [0.5, last], level, name="limit", line=line, hoverinfo="skip"))
    return traces


def _capped(
    points: Sequence[tuple[float, float]], edge: float, name: str, colour: str, *,
    dash: str = "solid", **changes: Any,
) -> Trace:  # fmt: skip
    """Return a line through points; one beyond the edge is an arrow at it."""
    heights = [min(value, edge) for _, value in points]
    symbols = ["circle" if value <= edge else "triangle-up" for _, value in points]
    line = {"color": f"@{colour}", "width": 2.5, "dash": dash}
    marker = {"color": f"@{colour}", "size": 9, "symbol": symbols}
    look = {"line": line, "marker": marker, "cliponaxis": False, **changes}
    return scatter("lines+markers", [delta for delta, _ in points], heights, name=name, **look)
