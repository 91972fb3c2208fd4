"""Verdicts: whether a total keeps its limit, and the adversary for whom that is said."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from sidelight.foundation.errors import check_choice, invalid
from sidelight.leakage import Leakage
from sidelight.plan import View

AdversaryName = Literal["report", "guess", "model", "model guess", "population", "table", "tree"]
"""In the worst case of all reports: report: keeps whole reports and knows the table. guess: keeps one guessed
value of each report. model: takes a model for the table. model guess: both.
At delta, with whole reports: population: knows the population as well as the table lets one know it. table:
knows the table. tree: takes a tree for the population.
A verdict for anyone but the first is no promise against the first."""
Outcome = Literal["exceeded", "not certified", "within"]

NAMES: dict[AdversaryName, str] = {
    "report": "the whole report",
    "guess": "a guess",
    "model": "a model",
    "model guess": "a guess under a model",
    "population": "someone who knows the population",
    "table": "someone who knows this very table",
    "tree": "someone who takes a tree for the population",
}
AT_DELTA: tuple[AdversaryName, ...] = ("population", "table", "tree")
"""Their figures are at delta; those of the others are worst cases."""
_ROUNDING = 1e-9


def adversary_of(view: View, *, is_model: bool) -> AdversaryName:
    """Return who sees reports in this way, and takes a model for the table or knows it."""
    if not is_model:
        return view
    return "model" if view == "report" else "model guess"


def outcome_of(total: Leakage, limit: float) -> Outcome:
    """Return "within" if the upper end keeps the limit, "exceeded" if the lower end breaks it.

    Figures are doubles: one that is over the limit by less than a billionth keeps it. A formula from a paper
    or an estimate is neither an upper nor a lower end, so it shows nothing.
    """
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

    What a guess shows the whole report shows too, so a limit that is exceeded for a guess is exceeded.

    >>> worded("within", "report"), worded("within", "guess"), worded("exceeded", "guess")
    ('within', 'within, for a guess', 'exceeded')
    """
    is_plain = adversary == "report" or (adversary == "guess" and outcome == "exceeded")
    return outcome if is_plain else f"{outcome}, for {NAMES[adversary]}"


def check_decider(
    decide_by: str, view: View, *, is_model: bool, has_model: bool, told: Collection[AdversaryName] = ()
) -> None:
    """Raise if nothing is computed for the adversary who is to decide.

    The belief in force may be a model, or the figure of a model may stand beside the totals; `told` are
    those whose figures at delta are computed.
    """
    check_choice("decide_by", decide_by, get_args(AdversaryName))
    worst = {"report", adversary_of(view, is_model=is_model), adversary_of(view, is_model=has_model)}
    at_hand = worst | set(told)
    if decide_by not in at_hand:
        known = ", ".join(repr(name) for name in get_args(AdversaryName) if name in at_hand)
        fix = "Ask for its figures too: the adversary 'guess', or a tree as belief or constraint."
        if decide_by in AT_DELTA:
            fix = "Give a delta, as 0.001, and a belief that knows it: the table itself, or a model."
        raise invalid("decide_by", f"an adversary whose figures are computed ({known})", decide_by, fix)
