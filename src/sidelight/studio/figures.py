"""What an audit found, as the page shows it: figures with everything that is a hover away."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sidelight.auditing import SecretAudit
from sidelight.auditing.stories import Story
from sidelight.auditing.verdict import Outcome
from sidelight.estimation.usefulness import AttributeUse
from sidelight.foundation.arrays import Array
from sidelight.foundation.files import json_number
from sidelight.foundation.numbers import points
from sidelight.leakage import Bound, Witness
from sidelight.leakage.bounds import Claim
from sidelight.plan import AT_DELTA, AdversaryName
from sidelight.studio import messages as said

_WORST: tuple[Outcome, ...] = ("exceeded", "not certified", "within", "described")
_LARGEST_EXPONENT = 700.0
"""e to more does not fit a double."""


def real(value: float) -> said.Real:
    """Return a figure as JSON has it; minus zero is zero."""
    return json_number(value + 0.0)  # type: ignore[return-value]


def figure(
    bound: Bound, adversary: AdversaryName, delta: float | None = None, *, stale: bool = False
) -> said.Figure:
    """Return a bound as the page shows it."""
    return said.Figure(
        value=real(bound.value), kind=bound.kind, method=bound.method, witness=_words(bound.witness),
        support=bound.support, adversary=adversary, delta=delta, stale=stale,
    )  # fmt: skip


def _words(witness: Witness | None) -> str:
    """Say what reaches a figure."""
    if witness is None:
        return ""
    return f"{witness.report}: likeliest under {witness.likelier}, least likely under {witness.unlikelier}"


def told_figure(story: Story, *, stale: bool) -> said.Figure:
    """Return a story's figure at the delta that was asked for, with what its draws show."""
    point = story.leakage.at(story.leakage.delta)
    shown = figure(point.upper, story.adversary, point.delta, stale=stale)
    if point.estimate is None:
        return shown
    return shown.model_copy(update={"low": real(point.estimate), "high": real(point.upper.value)})


def secret_figures(
    item: SecretAudit, *, lower_is_stale: bool = False, fresh: Collection[AdversaryName] = AT_DELTA
) -> said.SecretFigures:
    """Return what was found about a secret; figures at delta of whom is not `fresh` are being made anew."""
    who = item.adversary
    at_delta = [told_figure(story, stale=story.adversary not in fresh) for story in item.stories]
    deciding = item.deciding
    # figures of other budgets judge nothing; the worst case does, within whose limit no delta breaks it
    judged = replace(item, stories=tuple(story for story in item.stories if story.adversary in fresh))
    is_awaited = judged.deciding is None and item.decide_by in AT_DELTA
    outcome = "not certified" if is_awaited and judged.decision == "exceeded" else judged.decision
    worst = item.neighbours[0] if item.neighbours else None
    if deciding is not None:
        decisive = at_delta[item.stories.index(deciding)]
    else:
        decider: AdversaryName = item.decide_by if item.decide_by in ("report", who) else "report"
        decisive = figure(item.decisive, decider, stale=is_awaited)
    return said.SecretFigures(
        secret=item.secret, limit=None if item.limit is None else real(item.limit), outcome=outcome,
        statement=judged.statement, own=figure(item.direct.upper, who),
        through=None if worst is None else worst.through[0],
        neighbour=None if worst is None else figure(worst.upper, who),
        lower=figure(item.total.lower, who, stale=lower_is_stale), total=figure(item.total.upper, who),
        at_delta=at_delta, decisive=decisive, odds=_odds(item, decisive),
    )  # fmt: skip


def _odds(item: SecretAudit, decisive: said.Figure) -> said.Odds:
    """Return how surely the commonest value can be guessed, before and after.

    Reports multiply the odds of one value against another by at most e^L, so those of a value against all
    others too: a prior share p becomes at most p e^L / (p e^L + 1 - p), which grows with p.
    """
    value, before = item.commonest
    leakage = float(decisive.value)
    factor = math.exp(leakage) if leakage < _LARGEST_EXPONENT else math.inf
    after = 1.0 if math.isinf(factor) else before * factor / (before * factor + 1 - before)
    exposed = "" if decisive.delta is None else f", but for {100 * decisive.delta:g} % of people"
    words = (
        f"Without reports the guess that a person's {item.secret} is {value} is right in "
        f"{100 * before:.3g} % of cases; with them anyone's can be known with at most {100 * after:.4g} % "
        f"certainty{exposed}."
    )
    return said.Odds(value=value, before=before, after=after, factor=real(factor), words=words)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that a plan as a whole has: its worst secret's."""
    return min(outcomes, key=_WORST.index, default="described")


def pair_figures(names: Sequence[str], secrets: Sequence[str], rows: Array, kind: Claim) -> said.Pairs:
    """Return the heat map from figures (releases, secrets); a secret's own report, NaN, has none."""
    values: list[list[said.Real | None]] = [
        [None if value != value else "infinity" if value == math.inf else value for value in row]
        for row in (rows + 0.0).tolist()
    ]
    return said.Pairs(releases=list(names), secrets=list(secrets), values=values, kind=kind)


def error_figure(use: AttributeUse, people: int, needed: int | None, *, is_rough: bool) -> said.ErrorFigure:
    """Return what an attribute's estimates would be worth; a rough number of people is refined later."""
    method = f"simulated noise, with {people} people; people needed {'at most' if is_rough else 'within 1 %'}"
    shown = said.Figure(
        value=real(use.error), kind="estimate", method=method, adversary="report", stale=False
    )
    right = "not determined" if math.isinf(use.error) else f"right to {points(use.error)}"
    guess = f"a guess is right to {points(use.guess_error)}"
    words = f"Frequencies of {use.attribute} {right}, {use.verdict}: {guess}."
    return said.ErrorFigure(
        attribute=use.attribute, error=shown, guess_error=real(use.guess_error), verdict=use.verdict,
        people_needed=needed, words=words,
    )  # fmt: skip
