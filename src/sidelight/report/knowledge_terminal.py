"""Prior knowledge as tables for a terminal."""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, Decimal

from rich.table import Table as Grid

from sidelight.belief import Belief, Gaussian
from sidelight.knowledge import AdversaryAudit, KnowledgeAudit, NoiseChoice, NumberSum, Query
from sidelight.leakage import Bound
from sidelight.report.console import open_console
from sidelight.report.terminal import nats
from sidelight.sources import Table

STANDINGS = {
    "weakest": "The weakest adversary, who knows nothing beforehand, learns most.",
    "strongest": "The strongest adversary, who knows everything but the target, learns most.",
    "both": "The weakest and the strongest adversary learn most, and equally much.",
    "between": "Neither the weakest nor the strongest adversary learns most: one in between does.",
    "hidden": "Who learns most rests on too few records to show.",
}


def print_knowledge(audit: KnowledgeAudit, table: Table) -> None:
    """Print leakage against the amount of prior knowledge, the worst adversary and the named ones."""
    console = open_console()
    title = f"What a {audit.query.name} with Laplace noise of scale {audit.query.scale:g} tells (nats)"
    grid = Grid(title=title, title_justify="left")
    truth = "model" if audit.belief.is_model else "exact"
    for name in ("attributes known", "who learns most", truth, "certified", "published", "group", "least"):
        grid.add_column(name, justify="left" if name == "who learns most" else "right", overflow="fold")
    for layer in audit.layers:
        grid.add_row(
            str(layer.known),
            str(layer.worst),
            f"≤ {nats(layer.exact)}" if audit.is_hidden(layer.worst) else nats(layer.exact),
            _optional(layer.certified),
            _optional(layer.published),
            nats(layer.group),
            nats(layer.least),
        )
    console.print(grid)
    for item in (audit.worst, *audit.named) if audit.standing != "hidden" else audit.named:
        console.print(_adversary_grid(item))
    for note in _notes(audit, table):
        console.print(f"- {note}", soft_wrap=True)


def print_adversary(
    item: AdversaryAudit, belief: Belief | Gaussian, query: Query | NumberSum, table: Table
) -> None:
    """Print the figures of one adversary."""
    console = open_console()
    console.print(_adversary_grid(item))
    count = len(query.schema if isinstance(query, Query) else query.weights)
    console.print(
        f"- A {query.name} of {count} attributes with noise of scale {query.scale:g}; for an "
        f"adversary who knows {_belief(belief)} {table.source.label} ({belief.sample_size} records).",
        soft_wrap=True,
    )
    if item.exact.is_suppressed:
        console.print("- The leakage rests on too few records to show: group privacy alone stands there.")
    console.print("- Computed from raw data: this is itself an unprotected statement about them.")


def adversary_json(item: AdversaryAudit) -> str:
    """Return one adversary's figures as JSON."""
    return json.dumps(item.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def enough(scale: float) -> str:
    """Write a scale with four digits, rounded up: what is printed keeps the limit too.

    >>> enough(1.23441), enough(2.0), enough(123456.0)
    ('1.235', '2', '123500')
    """
    exact = Decimal(scale)
    step = Decimal(1).scaleb(exact.adjusted() - 3)
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
    if isinstance(belief, Gaussian):
        return "a Gaussian with the covariances of"
    return "a tree learnt from" if belief.is_model else "the joint distribution of"


def _adversary_grid(item: AdversaryAudit) -> Grid:
    grid = Grid(title=f"Attacks {item.adversary}", title_justify="left")
    for name in ("figure", "nats", "claim", "how"):
        grid.add_column(name, justify="right" if name == "nats" else "left", overflow="fold")
    for name, bound in (
        ("leakage", item.exact),
        ("sound graph", item.certified),
        ("published graph", item.published),
        ("group privacy", item.group),
    ):
        if bound is not None:
            below = " (below the truth)" if name == "published graph" and item.is_understated else ""
            grid.add_row(name, nats(bound.value), f"{bound.kind}{below}", _reached(bound))
    return grid


def _reached(bound: Bound) -> str:
    if bound.witness is None:
        return bound.method
    told = (
        f"reached by {bound.witness.report}; for {bound.witness.likelier}, against {bound.witness.unlikelier}"
    )
    if bound.support is None:
        return told
    return f"{told}; it rests on {bound.support} {'record' if bound.support == 1 else 'records'}"


def _notes(audit: KnowledgeAudit, table: Table) -> list[str]:
    size = f"{audit.belief.sample_size} records, {len(audit.exact.names)} attributes"
    known = _belief(audit.belief)
    found = [STANDINGS[audit.standing], f"For adversaries who know {known} {table.source.label} ({size})."]
    if audit.understated:
        found.append(
            f"The published graph is below the truth for {audit.understated:.1%} of the adversaries."
        )
    if isinstance(audit.query, NumberSum):
        found += _gaussian_notes(audit, audit.query, table)
    if audit.noise is not None:
        scale = enough(audit.noise.scale)
        whom = ", for a model" if audit.belief.is_model else ""
        kept = f"To keep everyone under {audit.noise.limit:g}{whom}: scale {scale}"
        found.append(f"{kept}; {compared(audit.noise)}.")
    if audit.min_support and audit.hidden is not None:
        found.append(
            f"Figures that rest on fewer than {audit.min_support} records show group privacy alone: those "
            f"of {int(audit.hidden.sum())} adversaries. The graphs are left out."
        )
    found += table.notes()
    found.append("Computed from raw data: this is itself an unprotected statement about them.")
    return found


def _gaussian_notes(audit: KnowledgeAudit, query: NumberSum, table: Table) -> list[str]:
    """Say what a Gaussian stands on: how far values go, a second formula, what was left out."""
    reaches = ", ".join(f"{name} {query.reaches[name]:.6g}" for name in audit.targets)
    found = [f"Two values of a target are at most so far apart: {reaches}."]
    if audit.corollary_gap is not None:
        found.append(
            "Corollary 2 of the paper gives the same for the weakest adversary of every target, to within "
            f"{max(audit.corollary_gap, 1e-15):.0e}."
        )
    text = [name for name in table.schema.names if name not in audit.exact.names]
    if text:
        found.append(f"Not numbers, so left out: {', '.join(text)}.")
    incomplete = table.rows + table.dropped - (audit.belief.sample_size or 0)
    if incomplete:
        found.append(f"{incomplete} records with a missing number were left out.")
    return found


def _optional(value: float | None) -> str:
    return "-" if value is None else nats(value)
