"""An audit, in the order a data-governance lead reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from sidelight.auditing import NAMES, AdversaryName, Audit, Outcome, SecretAudit, worded
from sidelight.belief import Belief
from sidelight.foundation.terminal import say
from sidelight.leakage import Leakage, pairwise_sum, total_leakage
from sidelight.plan import Plan
from sidelight.remedying import Remedies
from sidelight.report import pair_figures, repeated, stories
from sidelight.report.audit_figures import heat_figure, interval, is_point, totals_figure, worst_first
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Page, drawn
from sidelight.report.provenance import digests_of
from sidelight.report.style import VERDICTS
from sidelight.report.summary import summary_of
from sidelight.report.wording import UNPROTECTED, counted, decimals, short, weak_budgets
from sidelight.sources import Table

_PHRASES: dict[Outcome, tuple[str, str]] = {
    "exceeded": ("exceeds its limit", "exceed their limits"),
    "not certified": ("is not certified to keep its limit", "are not certified to keep their limits"),
    "described": ("has no limit", "have no limit"),
    "within": ("stays within its limit", "stay within their limits"),
}


def audit_page(audit: Audit, remedies: Remedies | None = None) -> Page:
    """Return the page of an audit, with the ways back under its limits where they were looked for."""
    items = worst_first(audit)
    curves = pair_figures.worst_curves(audit, items)
    arrows = pair_figures.arrows_of(audit)
    figures = drawn(
        totals=totals_figure(items),
        heat=heat_figure(audit) if any(item.neighbours for item in items) else None,
        curves=pair_figures.curves_figure(curves) if any(curve.values for curve in curves) else None,
        network=pair_figures.network_figure(audit, arrows) if arrows else None,
        delta=stories.delta_figure(items[0]) if items[0].stories else None,
    )
    counts = Counter(item.decision for item in items)
    context = {
        "audit": audit, "summary": summary_of(audit, remedies), "digests": digests_of(audit),
        "items": items, "names": NAMES, "curves": curves,
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "verdict": verdict_sentence(counts, audit.decide_by) if audit.judged else stories.headline(items[0]),
        "told": stories, "again": repeated,
        "reasoned": any(release.reason for release in audit.plan.releases),
        "named": {verdict: worded(verdict, audit.decide_by) for verdict in VERDICTS},
        "weaker": sorted({NAMES[item.adversary] for item in items if item.whole}),
        "has_intervals": not all(is_point(item.total) for item in items),
        "planned": pair_figures.planned_budgets(curves) if curves else "",
        "arrows": len(arrows), "drawn": pair_figures,
        "interval": interval, "is_point": is_point, "is_understated": is_understated,
    }  # fmt: skip
    return Page(f"Sidelight audit of {audit.belief.source}", "audit.html.j2", context, figures)


def verdict_sentence(counts: Mapping[Outcome, int], adversary: AdversaryName = "report") -> str:
    """Say how many secrets have which verdict, and for whom if not for the whole report.

    >>> verdict_sentence({"exceeded": 3, "within": 1})
    'Of 4 secrets, 3 exceed their limits and 1 stays within its limit.'
    >>> verdict_sentence({"within": 2}, "guess")
    'All 2 secrets stay within their limits, for a guess.'
    """
    end = "." if adversary == "report" else f", for {NAMES[adversary]}."
    phrases = [(counts[verdict], _PHRASES[verdict]) for verdict in VERDICTS if counts.get(verdict)]
    total = sum(number for number, _ in phrases)
    if len(phrases) == 1:
        one, many = phrases[0][1]
        return f"The secret {one}{end}" if total == 1 else f"All {total} secrets {many}{end}"
    parts = [f"{number} {one if number == 1 else many}" for number, (one, many) in phrases]
    return f"Of {total} secrets, {', '.join(parts[:-1])} and {parts[-1]}{end}"


def is_understated(item: SecretAudit) -> bool:
    """Whether the published sum of pairwise figures is below a figure that is reached (but for rounding)."""
    return item.published.value < item.total.lower.value - 1e-9


_STYLE: dict[Outcome, str] = {
    "within": "green", "exceeded": "bold red", "not certified": "yellow", "described": "default",
}  # fmt: skip
_COLUMNS = ("secret", "direct", "worst neighbour", "all reports together", "records")
_EXTRA: dict[str, Callable[[SecretAudit], str]] = {
    "whole report": lambda item: _ends(item.whole) if item.whole else "",
    "robust": lambda item: decimals(item.robust.value) if item.robust else "",
    "tree": lambda item: decimals(item.model.value) if item.model else "",
}
"""Further figures, where an audit has them."""
_MOST_SYNERGIES = 10
_FEW_RECORDS = 5
_NO_LIMIT = "No limit is set, so nothing is judged; --limit 1, --secret NAME=1 or the plan sets one."
_LONGEST_NAME = 40
"""Longer names lose their middle, so that the table of figures stays one; the report has them in full."""


def print_audit(audit: Audit, table: Table) -> None:
    """Print what the plan reveals about each secret, worst first, and what to know about the figures."""
    extra = [title for title, of in _EXTRA.items() if any(of(item) for item in audit.secrets.values())]
    rows: list[list[str | Text]] = []
    for item in worst_first(audit):
        limit = "none" if item.limit is None else decimals(item.limit)
        verdict = Text(item.statement, _STYLE[item.decision])
        cells, others = _cells(item), [_EXTRA[title](item) for title in extra]
        rows.append([*cells, limit, *others, verdict] if audit.judged else [*cells, *others])
    columns = (*_COLUMNS, "limit", *extra, "verdict") if audit.judged else (*_COLUMNS, *extra)
    words = ("secret", "worst neighbour", "all reports together", "verdict")
    grid = table_of("What the release reveals about each secret (nats)", columns, rows, left=words)
    synergies = [
        f"+ {pair.first} and {pair.second} leak {decimals(pair.joint)} about {pair.secret} together, "
        f"{decimals(pair.pair_sum)} apart."
        for pair in audit.synergies[:_MOST_SYNERGIES]
    ]
    print_parts([*_told(audit), grid, *_repeated(audit), *_changing(audit), *synergies], notes(audit, table))


def _told(audit: Audit) -> list[Grid | str]:
    """Return what stands above the worst cases: what is revealed, where nothing is judged, and at delta."""
    items = worst_first(audit)
    if not items[0].stories:
        return [] if audit.judged else [stories.headline(items[0])]
    heads, rows = stories.story_table(items)
    title, words = (
        "What the release says at delta, and in the worst case (nats)",
        ("secret", "told to", "verdict"),
    )
    return [stories.headline(items[0]), table_of(title, heads, rows, left=words)]


def _repeated(audit: Audit) -> list[Grid]:
    """Return the table of what is asked for more than once; none if nothing is."""
    if not audit.repeated:
        return []
    title = "Asked again: what reports of a value that stays the same spend (nats), and who can be followed"
    words = ("attribute", "noise")
    rows = map(repeated.repeated_cells, audit.repeated)
    return [table_of(title, repeated.REPEATED, rows, left=words)]


def _changing(audit: Audit) -> list[Grid]:
    """Return the table of values that change; none without a chain."""
    if not audit.changing:
        return []
    words = ("secret", "told most of", "how", "verdict")
    rows = map(repeated.changing_cells, audit.changing)
    return [table_of("Values that change: what all reports say (nats)", repeated.CHANGING, rows, left=words)]


def print_lesson() -> None:
    """Print why pairwise figures must not be added up."""
    cells = np.zeros((2, 2, 2))
    cells[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25
    belief = Belief.from_joint(cells, ["a", "b", "secret"])
    channels = Plan.uniform(belief.schema).channels()
    exact = total_leakage(belief, channels, "secret").value
    published = pairwise_sum(belief, channels, "secret").value
    lesson = f"adding the pairs says {published:.5f}; the truth is {exact:.5f}."
    say(f"Why totals are not sums: for secret = a xor b and budget 1 each, {lesson}")


def notes(audit: Audit, table: Table) -> list[str]:
    """Return what a reader of the figures must know."""
    belief = audit.belief
    known = "every pair of attributes" if belief.kind == "pairwise" else "the joint distribution"
    known = "a tree model" if belief.is_model else known
    kept = "one guess from each report" if audit.adversary == "guess" else "whole reports"
    size = f"{counted(table.rows, 'record')}, {counted(len(belief.schema), 'attribute')}"
    said = [f"For an adversary who keeps {kept} and knows {known} of {table.source.label} ({size})."]
    said += _deciding(audit)
    said += repeated.repeated_notes(audit.repeated)
    said += repeated.changing_notes(audit)
    said += table.notes()
    said += weak_budgets({name: channel.epsilon for name, channel in audit.plan.channels().items()})
    items, sure, least = audit.secrets.values(), audit.confidence, audit.min_support
    supports = [item.total.lower.support for item in items]
    few = [support for support in supports if support is not None and support < _FEW_RECORDS]
    failing = max((item.total.delta for item in items), default=0.0)
    told = {
        f"Pairs of values that never occur together: {belief.zero_cells}; the figures take it as certain.":
            belief.zero_cells and not belief.smoothing and not least,
        "Adding up pairwise figures, as published, would be below the truth here.":
            any(item.published.value < item.total.lower.value - 1e-12 for item in items),
        f"Most totals rest on combinations of fewer than {_FEW_RECORDS} records: those of an adversary "
        "who knows the table itself. Coarser bins, fewer attributes, --delta or --belief tree say less.":
            len(few) > len(supports) / 2 and audit.delta is None,
        "The tree figure is for an adversary who models the population so; it is no bound.":
            any(item.model for item in items),
        f"Robust figures hold together with confidence {sure or 0:g}, for the values listed.":
            sure is not None,
        f"Figures through approximate releases may fail with probability up to {failing:.2g}.": failing,
        f"Figures that rest on fewer than {least} records show the budgets alone.": least,
    }  # fmt: skip
    return [*said, *(text for text, is_so in told.items() if is_so), UNPROTECTED]


def _deciding(audit: Audit) -> list[str]:
    """Say whose verdict counts, where it may be doubted, and what a delta means."""
    if audit.delta is not None:
        unlimited = [] if audit.judged else [_NO_LIMIT]
        return [*stories.notes(audit), stories.BRACKETS, *unlimited]
    if not audit.judged:
        return [_NO_LIMIT]
    if audit.decide_by != "report":
        return [f"The limits need to be kept for {NAMES[audit.decide_by]} only, as asked."]
    if any(item.whole for item in audit.secrets.values()):
        return ["One who keeps whole reports and knows the table itself may learn more; that decides."]
    return []


def _ends(leakage: Leakage) -> str:
    """Write a leakage: the figure if it is exact, else both ends."""
    if leakage.is_exact:
        return decimals(leakage.value)
    return f"{decimals(leakage.lower.value)} to {decimals(leakage.upper.value)}"


def _cells(item: SecretAudit) -> list[str]:
    worst = item.neighbours[0] if item.neighbours else None
    neighbour = f"{decimals(worst.value)}  {short(worst.through[0], _LONGEST_NAME)}" if worst else "none"
    support = item.total.lower.support
    upper = item.total.upper.method
    methods = [upper] if item.total.is_exact else dict.fromkeys([item.total.lower.method, upper])
    total = f"{_ends(item.total)}  ({'; '.join(methods)})"
    name, direct = short(item.secret, _LONGEST_NAME), decimals(item.direct.value)
    records = "" if support is None else str(support)
    return [name, direct, neighbour, total, records]
