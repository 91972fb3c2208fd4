"""Results as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from sidelight.auditing import NAMES, Audit, Outcome, SecretAudit
from sidelight.belief import Belief
from sidelight.leakage import Bound, Leakage, pairwise_sum, total_leakage
from sidelight.plan import Plan
from sidelight.report.console import open_console
from sidelight.report.figures import worst_first
from sidelight.report.wording import counted, short, weak_budgets
from sidelight.sources import Table

_STYLE: dict[Outcome, str] = {"within": "green", "exceeded": "bold red", "not certified": "yellow"}
_COLUMNS = ("secret", "direct", "worst neighbour", "all reports together", "records", "limit")
_EXTRA: dict[str, Callable[[SecretAudit], Leakage | Bound | None]] = {
    "whole report": lambda item: item.whole,
    "robust": lambda item: item.robust and item.robust.upper,
    "tree": lambda item: item.model,
}
_MOST_SYNERGIES = 10
_FEW_RECORDS = 5
_LONGEST_NAME = 40
"""Longer names lose their middle, so that the table of figures stays one; the report has them in full."""


def print_audit(audit: Audit, table: Table) -> None:
    """Print what the plan reveals about each secret, worst first, and what to know about the figures."""
    console = open_console()
    grid = Grid(title="What the release reveals about each secret (nats)", title_justify="left")
    extra = [title for title, of in _EXTRA.items() if any(of(item) for item in audit.secrets.values())]
    for title in (*_COLUMNS, *extra, "verdict"):
        right = title not in ("secret", "worst neighbour", "all reports together", "verdict")
        grid.add_column(title, justify="right" if right else "left", overflow="fold")
    for item in worst_first(audit):
        shown = [_shown(_EXTRA[title](item)) for title in extra]
        grid.add_row(*_cells(item), *shown, Text(item.statement, _STYLE[item.decision]))
    console.print(grid)
    for synergy in audit.synergies[:_MOST_SYNERGIES]:
        together, apart = nats(synergy.joint), nats(synergy.pair_sum)
        text = f"{synergy.first} and {synergy.second} leak {together} about {synergy.secret} together"
        console.print(f"+ {text}, {apart} apart.")
    for note in notes(audit, table):
        console.print(f"- {note}")


def print_lesson() -> None:
    """Print why pairwise figures must not be added up."""
    cells = np.zeros((2, 2, 2))
    cells[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25
    belief = Belief.from_joint(cells, ["a", "b", "secret"])
    channels = Plan.uniform(belief.schema).channels()
    exact = total_leakage(belief, channels, "secret").value
    published = pairwise_sum(belief, channels, "secret").value
    open_console().print(
        "Why totals are not sums: for secret = a xor b and budget 1 each, "
        f"adding the pairs says {published:.5f}; the truth is {exact:.5f}.",
        soft_wrap=True,
    )


def notes(audit: Audit, table: Table) -> list[str]:
    """Return what a reader of the figures must know."""
    belief = audit.belief
    known = "every pair of attributes" if belief.kind == "pairwise" else "the joint distribution"
    known = "a tree model" if belief.is_model else known
    kept = "one guess from each report" if audit.adversary == "guess" else "whole reports"
    size = f"{counted(table.rows, 'record')}, {counted(len(belief.schema), 'attribute')}"
    found = [f"For an adversary who keeps {kept} and knows {known} of {table.source.label} ({size})."]
    found += _deciding(audit)
    found += table.notes()
    found += weak_budgets({name: channel.epsilon for name, channel in audit.plan.channels().items()})
    if belief.zero_cells and not belief.smoothing and not audit.min_support:
        found.append(
            f"Pairs of values that never occur together: {belief.zero_cells}; the figures take it as certain."
        )
    if any(item.published.value < item.total.lower.value - 1e-12 for item in audit.secrets.values()):
        found.append("Adding up pairwise figures, as published, would be below the truth here.")
    supports = [item.total.lower.support for item in audit.secrets.values()]
    if sum(support is not None and support < _FEW_RECORDS for support in supports) > len(supports) / 2:
        found.append(
            f"Most totals rest on combinations of fewer than {_FEW_RECORDS} records: those of an adversary "
            "who knows the table itself. Coarser bins, fewer attributes or --belief tree show a weaker one."
        )
    if any(item.model for item in audit.secrets.values()):
        found.append("The tree figure is for an adversary who models the population so; it is no bound.")
    if audit.confidence is not None:
        found.append(
            f"Robust figures hold together with confidence {audit.confidence:g}, for the values listed."
        )
    if any(item.total.delta for item in audit.secrets.values()):
        worst = max(item.total.delta for item in audit.secrets.values())
        found.append(f"Figures through approximate releases may fail with probability up to {worst:.2g}.")
    if audit.min_support:
        found.append(f"Figures that rest on fewer than {audit.min_support} records show the budgets alone.")
    found.append("Computed from raw data: this is itself an unprotected statement about them.")
    return found


def _deciding(audit: Audit) -> list[str]:
    """Say whose verdict counts, where it may be doubted."""
    if audit.decide_by != "report":
        return [f"The limits need to be kept for {NAMES[audit.decide_by]} only, as asked."]
    if any(item.whole for item in audit.secrets.values()):
        return ["One who keeps whole reports and knows the table itself may learn more; that decides."]
    return []


def _shown(figure: Leakage | Bound | None) -> str:
    """Write a figure that stands beside the total; both ends of an interval."""
    if figure is None:
        return ""
    if isinstance(figure, Bound) or figure.is_exact:
        return nats(figure.value)
    return f"{nats(figure.lower.value)} to {nats(figure.upper.value)}"


def _cells(item: SecretAudit) -> list[str]:
    worst = item.neighbours[0] if item.neighbours else None
    neighbour = f"{nats(worst.value)}  {short(worst.through[0], _LONGEST_NAME)}" if worst else "none"
    support = item.total.lower.support
    return [
        short(item.secret, _LONGEST_NAME),
        nats(item.direct.value),
        neighbour,
        interval(item.total),
        "" if support is None else str(support),
        nats(item.limit),
    ]


def interval(leakage: Leakage) -> str:
    """Say a leakage in one line: the figure if it is exact, else both ends and their methods."""
    if leakage.is_exact:
        return f"{nats(leakage.value)}  ({leakage.upper.method})"
    methods = dict.fromkeys([leakage.lower.method, leakage.upper.method])
    return f"{_shown(leakage)}  ({'; '.join(methods)})"


def nats(value: float) -> str:
    """Write a figure for people.

    >>> nats(1.43378), nats(-0.0), nats(-1e-17), nats(math.inf)
    ('1.434', '0.000', '0.000', '∞')
    """
    return f"{value:.3f}".replace("-0.000", "0.000") if math.isfinite(value) else "∞"
