"""The page of an audit, in the order a data-governance lead reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sidelight.auditing import NAMES, AdversaryName, Audit, Outcome, SecretAudit, worded
from sidelight.report.curves import Curve, curves_figure, planned_budgets, worst_curves
from sidelight.report.figures import (
    MARKS,
    heat_figure,
    interval,
    is_point,
    totals_figure,
    worst_first,
)
from sidelight.report.network import LEAST_SHARE, MOST_ARROWS, PER_SECRET, Arrow, arrows_of, network_figure
from sidelight.report.page import Figure, Page
from sidelight.report.palette import VERDICTS

CARDS = 3
_SCALE = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
_KINDS = {
    "exact": "the true figure for this belief.",
    "certified": "never below the true figure for this belief; it may be far above.",
    "lower": "a figure that is reached: there is a report that shows it. The true figure is at least this.",
    "model": "exact or certified for a simplified model of the table, so not a limit for the table itself.",
    "published": "a formula from a paper, shown for comparison; neither an upper nor a lower limit.",
    "estimate": "computed from samples, with their error.",
}
_PHRASES: dict[Outcome, tuple[str, str]] = {
    "exceeded": ("exceeds its limit", "exceed their limits"),
    "not certified": ("is not certified to keep its limit", "are not certified to keep their limits"),
    "within": ("stays within its limit", "stay within their limits"),
}
_SECTIONS = {
    "summary": "Verdict",
    "words": "In plain words",
    "totals": "Every secret at a glance",
    "table": "All figures",
    "synergies": "More together",
    "heat": "Who leaks about whom",
    "curves": "Leakage against budget",
    "network": "Strongest pairs",
    "sources": "Data and plan",
}
_DRAWN = ("totals", "heat", "curves", "network")


def audit_page(audit: Audit) -> Page:
    """Return the page of an audit."""
    items = worst_first(audit)
    curves = worst_curves(audit, items)
    arrows = arrows_of(audit)
    figures = _figures(audit, items, curves, arrows)
    counts = Counter(item.decision for item in items)
    context = {
        "audit": audit,
        "items": items,
        "cards": items[:CARDS],
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "verdict": verdict_sentence(counts, audit.decide_by),
        "named": {verdict: worded(verdict, audit.decide_by) for verdict in VERDICTS},
        "decider": NAMES[audit.decide_by],
        "names": NAMES,
        "weaker": sorted({NAMES[item.adversary] for item in items if item.whole}),
        "understated": {item.secret for item in items if is_understated(item)},
        "has_intervals": not all(is_point(item.total) for item in items),
        "curves": curves,
        "planned": planned_budgets(curves) if curves else "",
        "arrows": {"shown": len(arrows), "most": MOST_ARROWS, "each": PER_SECRET, "least": LEAST_SHARE},
        "plan_text": audit.plan.to_toml(),
        "scale": _SCALE,
        "kinds": _KINDS,
        "colours": VERDICTS,
        "marks": MARKS,
        "interval": interval,
        "is_point": is_point,
        "sections": _sections(audit, figures),
    }
    return Page(f"Sidelight audit of {audit.belief.source}", "audit.html.j2", context, figures)


def _sections(audit: Audit, figures: Mapping[str, Figure]) -> dict[str, str]:
    """Return the sections that have something to show."""
    hidden = {key for key in _DRAWN if key not in figures} | ({"synergies"} if not audit.synergies else set())
    return {key: text for key, text in _SECTIONS.items() if key not in hidden}


def _figures(
    audit: Audit, items: Sequence[SecretAudit], curves: Sequence[Curve], arrows: Sequence[Arrow]
) -> dict[str, Figure]:
    """Return the figures that have something to show."""
    figures = {"totals": totals_figure(items)}
    if any(item.neighbours for item in items):
        figures["heat"] = heat_figure(audit)
    if any(curve.values for curve in curves):
        figures["curves"] = curves_figure(curves)
    if arrows:
        figures["network"] = network_figure(audit, arrows)
    return figures


def verdict_sentence(counts: Mapping[Outcome, int], adversary: AdversaryName = "report") -> str:
    """Say how many secrets have which verdict, and for whom if not for the whole report.

    >>> verdict_sentence({"exceeded": 3, "within": 1})
    'Of 4 secrets, 3 exceed their limits and 1 stays within its limit.'
    >>> verdict_sentence({"within": 2}, "guess")
    'All 2 secrets stay within their limits, for a guess.'
    """
    end = "." if adversary == "report" else f", for {NAMES[adversary]}."
    found = [(counts[verdict], _PHRASES[verdict]) for verdict in VERDICTS if counts.get(verdict)]
    total = sum(number for number, _ in found)
    if len(found) == 1:
        one, many = found[0][1]
        return f"The secret {one}{end}" if total == 1 else f"All {total} secrets {many}{end}"
    parts = [f"{number} {one if number == 1 else many}" for number, (one, many) in found]
    return f"Of {total} secrets, {_listed(parts)}{end}"


def is_understated(item: SecretAudit) -> bool:
    """Whether the published sum of pairwise figures is below a figure that is reached (but for rounding)."""
    return item.published.value < item.total.lower.value - 1e-9


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
