"""What to do about an audit and what it costs: the two answers about the ways back under the limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sidelight.auditing import Audit
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.foundation.errors import InputError
from sidelight.protocols import planned
from sidelight.remedying import Remedies, Remedy
from sidelight.report.wording import (
    budget,
    counted,
    factor,
    hundredths,
    marked,
    names_in_text,
    points,
    unturned,
    whole,
)  # fmt: skip

_FEW = 4
_LONGEST_REMEDY, _LONGEST_OTHER = 130, 65  # characters that the sheet has for the first way, and the others
_NAME = 22  # characters of a name on paper


@dataclass(frozen=True)
class Answer:
    """A question that a reader comes with, and what an audit says to it."""

    question: str
    short: str  # the answer itself
    details: tuple[str, ...] = ()  # what else to know, sentence by sentence


def what_to_do(audit: Audit, remedies: Remedies | None) -> Answer:
    """Say the cheapest way out, what it leaves of the risk, and the next ways."""
    question = "What should we do?"
    if audit.is_within:
        return Answer(question, _go_ahead(audit))
    if not audit.judged:
        short = "Decide how much each secret may leak, and audit again with that limit (--limit)."
        return Answer(question, short)
    short = "Do not collect as planned."
    if remedies is None:
        more = "Withhold or coarsen what says most, lower its budget, or ask fewer questions"
        return Answer(question, short, (f"{more}; --remedies finds the cheapest way.",))
    if not remedies.remedies:
        return Answer(question, f"{short} No way back under every limit was found.")
    first, *others = remedies.remedies[:_FEW]
    best = f"The cheapest way back under every limit: {in_brief(first, audit, _LONGEST_REMEDY)}"
    kept = len(audit.plan.releases)
    ways = [
        f"{number}. {in_brief(other, audit, _LONGEST_OTHER)} {_price(other, kept)}"
        for number, other in enumerate(others, 2)
    ]
    where = "The report has its plan, under What to do"
    rest = f"{where}, and those of other ways:" if ways else f"{where}."
    return Answer(question, f"{short} {best}", (what_is_left(first, audit), rest, *ways))


def _go_ahead(audit: Audit) -> str:
    """Say that limits are kept, which is no answer for secrets without one, nor makes estimates useful."""
    use = expected_use(audit)
    if use is not None and not use.beats_guessing:
        worse = "the estimates would be worse than guessing"
        return f"Every limit that is set is kept, but {worse}: ask more people, or fewer questions."
    undecided = sum(not item.is_judged for item in audit.secrets.values())
    if not undecided:
        return "Collect as planned: every limit is kept."
    many = f"{counted(undecided, 'secret')} {'has' if undecided == 1 else 'have'} none"
    return f"Every limit that is set is kept, but {many}: decide how much may leak there, then collect."


def what_is_left(remedy: Remedy, audit: Audit) -> str:
    """Say by how much the odds about each secret could still be multiplied, at most."""
    order = sorted(remedy.leakages, key=lambda name: -remedy.leakages[name].value)
    limits = {factor(remedy.limits[name]) for name in order}
    is_common = len(limits) == 1
    said = []
    for name in order[:_FEW]:
        limit = "" if is_common else f" (limit {factor(remedy.limits[name])})"
        said.append(f"{marked(name, _NAME)} {factor(remedy.leakages[name].value)}{limit}")
    more = f" and {len(order) - _FEW} more within theirs" if len(order) > _FEW else ""
    limit = f" (limit {limits.pop()})" if is_common else ""
    figures = f"Odds are then multiplied by at most{limit}: {', '.join(said)}{more}."
    if audit.decide_by == "report":
        return figures
    return f"{figures} The worst case may stay above."


def in_brief(remedy: Remedy, audit: Audit, most: int = _LONGEST_REMEDY) -> str:
    """Say what is done, without the long list where many budgets are lowered."""
    before = {release.name: release.epsilon for release in audit.plan.releases}
    lower = {
        release.name: release.epsilon
        for release in (remedy.plan.releases if remedy.plan else ())
        if release.epsilon is not None and release.epsilon < (before.get(release.name) or 0.0)
    }
    if remedy.kind != "budgets" or len(lower) < _FEW or len(set(lower.values())) == 1:
        return _cut(remedy.says, most)
    least = sorted(lower, key=lambda name: lower[name])[:3]
    lowest = ", ".join(f"{marked(name, _NAME)} {lower[name]:.2g}" for name in least)
    now = {before[name] for name in least}
    instead = f" instead of {budget(now.pop() or 0.0)}" if len(now) == 1 else ""
    return f"Lower budgets (more noise) of {counted(len(lower), 'attribute')}, lowest {lowest}{instead}."


def _price(remedy: Remedy, planned_attributes: int) -> str:
    """Say in brackets what a way costs; where attributes are lost, what that counts."""
    gone = planned_attributes - remedy.attributes
    all_in = f", but {counted(gone, 'attribute')} lost: a loss of {hundredths(remedy.loss)} in all"
    return f"(Off by {points(remedy.error)}{all_in if gone else ''}.)"


def _cut(text: str, most: int) -> str:
    """Return as much of a text as a sheet of paper has room for; the report has it in full."""
    plain = unturned(text)
    return plain if len(plain) <= most else f"{plain[:most].rstrip()} …"


def what_it_costs(audit: Audit, remedies: Remedies | None) -> Answer:
    """Say how far off the estimates would be: of the cheapest way out, and of the plan as it is."""
    question = "What does it cost?"
    # with remedies the plan is priced for as many people as they are
    use = remedies.now.use if remedies is not None and remedies.now is not None else expected_use(audit)
    if use is None:
        return Answer(question, "The error of the estimates is not predicted for this plan.")
    if remedies is None or not remedies.remedies:
        short = f"Collected as planned, {_off(use)}"
        return Answer(question, short, (*_beside_guessing(use), *_least_sure(use)))
    best = remedies.remedies[0]
    instead = f"As planned it would be {points(use.error)}." if math.isfinite(use.error) else ""
    cheapest = "Cheapest means the smallest loss; what is not collected counts as lost."
    details = (
        *_by_secret(best, audit), *_beside_guessing(best.use), _needed(best, remedies.within), cheapest
    )  # fmt: skip
    return Answer(question, f"Collected the cheapest way, {_off(best.use)} {instead}".rstrip(), details)


def _by_secret(remedy: Remedy, audit: Audit) -> list[str]:
    """Say the error of each secret's own estimates, which are often the purpose of a collection."""
    if not math.isfinite(remedy.error):
        return []
    errors = {item.attribute: item.error for item in remedy.use.attributes}
    asked = [name for name in audit.secrets if name in audit.plan.names]
    said = [
        f"{marked(name, _NAME)} {hundredths(errors[name]) if name in errors else 'not collected'}"
        for name in asked[:_FEW]
    ]
    more = f" and {len(asked) - _FEW} more below" if len(asked) > _FEW else ""
    return [f"Of the secrets, in percentage points: {', '.join(said)}{more}."] if said else []


def _needed(remedy: Remedy, within: float) -> str:
    """Say how many people the wanted precision takes, which the least certain attribute decides."""
    many = (
        "no number of people is enough"
        if remedy.people_needed is None
        else f"it takes {whole(remedy.people_needed)} people"
    )
    needed = f"for {points(within)} or less in every attribute that is still collected, {many}."
    worst = max(remedy.use.attributes, key=lambda item: item.error)
    if not math.isfinite(worst.error):
        return f"{needed[0].upper()}{needed[1:]}"
    return f"Least certain is {marked(worst.attribute, _NAME)}, off by {hundredths(worst.error)}; {needed}"


def _off(use: Usefulness) -> str:
    """Say how far off the estimates are to be expected."""
    if math.isinf(use.error):
        return "the reports do not determine every frequency, however many people send them."
    worse = "" if use.beats_guessing else ": worse than guessing"
    off = f"the estimated shares are off by about {points(use.error)} on average over all attributes"
    return f"{off}, with {whole(use.people)} people{worse}."


def _beside_guessing(use: Usefulness) -> list[str]:
    """Say what a guess is worth that needs no collection, and where it is right by luck."""
    if not math.isfinite(use.error):
        return []
    said = f"Guessing that all values are equally common would be off by {points(use.guess_error)}."
    if not use.beats_guessing:
        return [said]
    noisy = [name for name in use.worse if name not in use.even]
    if use.even:
        said += (
            f" It happens to be nearly right for {names_in_text(use.even, 3)}, which only a collection shows."
        )
    if noisy:
        said += f" It is closer than the estimates for {names_in_text(noisy, 3)}."
    return [said]


def _least_sure(use: Usefulness) -> list[str]:
    """Name the attribute whose estimates may be furthest off."""
    worst = max(use.attributes, key=lambda item: item.largest_error)
    if not math.isfinite(worst.largest_error):
        return []
    off = f"none of its values off by more than {points(worst.largest_error)}"
    return [f"Least certain is {marked(worst.attribute, _NAME)}: with 95 % probability, {off}."]


def expected_use(audit: Audit) -> Usefulness | None:
    """Predict the plan's estimates from as many people as the table has; None where that cannot be said."""
    people = audit.belief.sample_size
    if people is None:
        return None
    frequencies = {name: audit.belief.prior(name) for name in audit.plan.names}
    try:
        return usefulness(planned(audit.plan), people, frequencies)
    except InputError:  # several reports of one attribute, or none at all: no estimator is known
        return None
