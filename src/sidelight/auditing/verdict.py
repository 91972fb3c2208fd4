"""Verdicts: whether a total keeps its limit, and the adversary for whom that is said."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from sidelight.foundation.errors import check_choice, invalid
from sidelight.leakage import Leakage
from sidelight.plan import AT_DELTA as AT_DELTA
from sidelight.plan import AdversaryName as AdversaryName
from sidelight.plan import View

Outcome = Literal["exceeded", "not certified", "described", "within"]
"""What is said of a secret: described where nobody has set it a limit, else whether its limit is kept."""

NAMES: dict[AdversaryName, str] = {
    "report": "the whole report",
    "guess": "a guess",
    "model": "a model",
    "model guess": "a guess under a model",
    "population": "someone who knows the population",
    "table": "someone who knows this very table",
    "tree": "someone who takes a tree for the population",
}
ADVERSARIES: tuple[AdversaryName, ...] = get_args(AdversaryName)
_ROUNDING = 1e-9


def adversary_of(view: View, *, is_model: bool) -> AdversaryName:
    """Return who sees reports in this way, and takes a model for the table or knows it."""
    if not is_model:
        return view
    return "model" if view == "report" else "model guess"


def outcome_of(total: Leakage, limit: float | None) -> Outcome:
    """Return "within" if the upper end keeps the limit, "exceeded" if the lower end breaks it.

    Without a limit there is nothing to judge: the figure is "described".

    Figures are doubles: one that is over the limit by less than a billionth keeps it. A formula from a paper
    or an estimate is neither an upper nor a lower end, so it shows nothing.
    """
    if limit is None:
        return "described"
    if total.upper.kind in ("published", "estimate"):
        return "not certified"
    if keeps(total.upper.value, limit):
        return "within"
    return "not certified" if keeps(total.lower.value, limit) else "exceeded"


def keeps(value: float, limit: float) -> bool:
    """Whether a figure keeps a limit, but for rounding."""
    return value <= limit + _ROUNDING * max(1.0, limit)


def worded(outcome: Outcome, adversary: AdversaryName) -> str:
    """Say an outcome and for whom it holds; the whole report is meant where nobody is named.

    What a guess shows the whole report shows too, so a limit that is exceeded for a guess is exceeded. What
    is described without a limit is described for everyone.

    >>> worded("within", "report"), worded("within", "guess"), worded("exceeded", "guess")
    ('within', 'within, for a guess', 'exceeded')
    """
    is_plain = outcome == "described" or (adversary == "guess" and outcome == "exceeded")
    return outcome if is_plain or adversary == "report" else f"{outcome}, for {NAMES[adversary]}"


def check_decider(
    decide_by: str, view: View, *, is_model: bool, has_model: bool, told: Collection[AdversaryName] = ()
) -> None:
    """Raise if nothing is computed for the adversary who is to decide.

    The belief in force may be a model, or the figure of a model may stand beside the totals; `told` are
    those whose figures at delta are computed.
    """
    check_choice("decide_by", decide_by, ADVERSARIES)
    worst = {"report", adversary_of(view, is_model=is_model), adversary_of(view, is_model=has_model)}
    at_hand = worst | set(told)
    if decide_by not in at_hand:
        known = ", ".join(repr(name) for name in ADVERSARIES if name in at_hand)
        fix = "Ask for its figures too: the adversary 'guess', or a tree as belief or constraint."
        if decide_by in AT_DELTA:
            fix = "Give a delta, as 0.001, and a belief that knows it: the table itself, or a model."
        raise invalid("decide_by", f"an adversary whose figures are computed ({known})", decide_by, fix)
