"""The page of a calibration: budgets, leakage and errors before and after."""

from __future__ import annotations

import math

from sidelight.calibration import Calibration
from sidelight.calibration.result import table_words
from sidelight.calibration.unequal import FEW
from sidelight.report.calibration_figures import (
    COLOURS,
    budgets_figure,
    errors_figure,
    frontier_figure,
    leakage_figure,
    settings_of,
)
from sidelight.report.figures import MARKS
from sidelight.report.page import Figure, Page
from sidelight.report.palette import VERDICTS
from sidelight.report.wording import error

_SECTIONS = {
    "summary": "Result",
    "budgets": "Budgets",
    "leakage": "Leakage against limits",
    "errors": "Expected error",
    "frontier": "Utility against limit",
    "adversary": "Whose knowledge",
    "plan": "The plan",
}
_UTILITIES = {
    "variance": "the expected squared distance between the estimated and the true frequencies of its values",
    "accuracy": "the probability that a guess from one report is wrong",
}


def calibration_page(result: Calibration) -> Page:
    """Return the page of a calibration."""
    figures = {"budgets": budgets_figure(result), "leakage": leakage_figure(result)}
    optional = {"errors": errors_figure(result), "frontier": frontier_figure(result)}
    figures |= {name: figure for name, figure in optional.items() if isinstance(figure, Figure)}
    present = {*figures, "summary", "plan", *(["adversary"] if result.alternatives else [])}
    context = {
        "result": result,
        "settings": settings_of(result),
        "series": COLOURS,
        "headline": headline(result),
        "utility": _UTILITIES[result.utility],
        "plan_text": result.plan.to_toml(),
        "colours": VERDICTS,
        "marks": MARKS,
        "is_nan": math.isnan,
        "error": error,
        "few": FEW,
        "has_unequal": not all(math.isnan(point.unequal) for point in result.frontier),
        "sections": {key: text for key, text in _SECTIONS.items() if key in present},
    }
    source = result.audit.belief.source
    return Page(f"Sidelight calibration of {source}", "calibration.html.j2", context, figures)


def headline(result: Calibration) -> str:
    """Say in one sentence what was found."""
    count = len(result.limits)
    kept = "Every secret" if count > 1 else "The secret"
    if result.constraint == "published":
        return "These budgets keep a published formula under the limits, which is no promise."
    if not result.is_sound:
        known = f"For an adversary who knows the table itself, {table_words(result.strictest)}"
        return f"{kept} stays within its limit, for a model. {known}"
    if result.even is None or math.isnan(result.chosen.weighted_error):
        return f"{kept} is certified to stay within its limit."
    ratio = result.even.weighted_error / result.chosen.weighted_error
    gain = f", and the even split would have {ratio:.3g} times the error" if ratio > 1.005 else ""
    return f"{kept} is certified to stay within its limit{gain}."
