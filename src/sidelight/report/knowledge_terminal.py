"""Prior knowledge as tables for a terminal."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, Decimal

from rich.console import Console
from rich.table import Table as Grid

from sidelight.belief import Belief
from sidelight.leakage import Bound
from sidelight.leakage.knowledge import AdversaryAudit, KnowledgeAudit, Query
from sidelight.leakage.knowledge.audit import audit_to_dict
from sidelight.report.terminal import nats
from sidelight.sources import Table

STANDINGS = {
    "weakest": "The weakest adversary, who knows nothing beforehand, learns most.",
    "strongest": "The strongest adversary, who knows everything but the target, learns most.",
    "both": "The weakest and the strongest adversary learn most, and equally much.",
    "between": "Neither the weakest nor the strongest adversary learns most: one in between does.",
}


def print_knowledge(audit: KnowledgeAudit, table: Table) -> None:
    """Print leakage against the amount of prior knowledge, the worst adversary and the named ones."""
    console = _console()
    title = f"What a {audit.query.name} with Laplace noise of scale {audit.query.scale:g} tells (nats)"
    grid = Grid(title=title, title_justify="left")
    for name in ("attributes known", "who learns most", "exact", "certified", "published", "group", "least"):
        grid.add_column(name, justify="left" if name == "who learns most" else "right", overflow="fold")
    for layer in audit.layers:
        grid.add_row(
            str(layer.known),
            _plain(str(layer.worst)),
            nats(layer.exact),
            _optional(layer.certified),
            _optional(layer.published),
            nats(layer.group),
            nats(layer.least),
        )
    console.print(grid)
    for item in (audit.worst, *audit.named):
        console.print(_adversary_grid(item))
    for note in _notes(audit, table):
        console.print(f"- {note}", markup=False, soft_wrap=True)


def print_adversary(item: AdversaryAudit, belief: Belief, query: Query, table: Table) -> None:
    """Print the figures of one adversary."""
    console = _console()
    console.print(_adversary_grid(item))
    console.print(
        f"- A {query.name} of {len(query.schema)} attributes with noise of scale {query.scale:g}; for an "
        f"adversary who knows {'a tree learnt from' if belief.is_model else 'the joint distribution of'} "
        f"{table.source.label} ({table.rows} records).",
        markup=False,
        soft_wrap=True,
    )
    console.print("- Computed from raw data: this is itself an unprotected statement about them.")


def adversary_json(item: AdversaryAudit) -> str:
    """Return one adversary's figures as JSON."""
    return json.dumps(audit_to_dict(item), indent=2, ensure_ascii=False, allow_nan=False)


def enough(scale: float) -> str:
    """Write a scale with four digits, rounded up: what is printed keeps the limit too.

    >>> enough(1.23441), enough(2.0), enough(123456.0)
    ('1.235', '2', '123500')
    """
    exact = Decimal(scale)
    step = Decimal(1).scaleb(exact.adjusted() - 3)
    return f"{float(exact.quantize(step, rounding=ROUND_CEILING)):.12g}"


def _console() -> Console:
    return Console(highlight=False, width=None if Console().is_terminal else 160)


def _adversary_grid(item: AdversaryAudit) -> Grid:
    grid = Grid(title=f"Attacks {_plain(str(item.adversary))}", title_justify="left")
    for name in ("figure", "nats", "claim", "reached by"):
        grid.add_column(name, justify="right" if name == "nats" else "left", overflow="fold")
    for name, bound in (
        ("leakage", item.exact),
        ("sound graph", item.certified),
        ("published graph", item.published),
        ("group privacy", item.group),
    ):
        if bound is not None:
            below = " (below the truth)" if name == "published graph" and item.is_understated else ""
            grid.add_row(name, nats(bound.value), f"{bound.kind}{below}", _plain(_reached(bound)))
    return grid


def _reached(bound: Bound) -> str:
    if bound.witness is None:
        return ""
    told = f"{bound.witness.report}; for {bound.witness.likelier}, against {bound.witness.unlikelier}"
    return told if bound.support is None else f"{told}; the least supported side has {bound.support} records"


def _notes(audit: KnowledgeAudit, table: Table) -> list[str]:
    known = "a tree learnt from" if audit.belief.is_model else "the joint distribution of"
    size = f"{table.rows} records, {len(audit.query.schema)} attributes"
    found = [STANDINGS[audit.standing], f"For adversaries who know {known} {table.source.label} ({size})."]
    if audit.understated:
        found.append(
            f"The published graph is below the truth for {audit.understated:.1%} of the adversaries."
        )
    if audit.noise is not None:
        noise = audit.noise
        found.append(
            f"To keep everyone under {noise.limit:g}: scale {enough(noise.scale)}; group privacy would take "
            f"{enough(noise.group_scale)}, {noise.saving:.2f} times as much."
        )
    found += [f"Column {item.column!r} {item.reason}; set aside." for item in table.set_aside]
    found.append("Computed from raw data: this is itself an unprotected statement about them.")
    return found


def _optional(value: float | None) -> str:
    return "-" if value is None else nats(value)


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
