"""An audit in brief: four questions with their answers, and what fits on one sheet of paper.

The page, its printed sheet, the assessment in Markdown and the one in JSON say the same sentences. A name or
value of the data in a sentence stands between two marks (`wording.marked`), so that each of them can set it
off and guard it in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sidelight.auditing import Audit, SecretAudit
from sidelight.leakage import Witness
from sidelight.plan import Plan
from sidelight.remedying import Remedies
from sidelight.remedying.result import Exposed
from sidelight.report import stories
from sidelight.report.audit_figures import worst_first
from sidelight.report.glossary import spelled
from sidelight.report.ways import Answer, what_it_costs, what_to_do
from sidelight.report.wording import (
    budget,
    certainty,
    counted,
    factor,
    marked,
    names_in_text,
    share,
    whole,
)  # fmt: skip

MOST_SECRETS = 8
"""So many secrets are on the printed sheet; the report and the assessment have all."""
_MOST_NAMES = 40
_NAME = 22  # characters of a name on paper
_EVEN = 0.05
"""A share is called fifty-fifty where it is as near as this."""


@dataclass(frozen=True)
class SecretLine:
    """One secret in a line: how much, for whom."""

    secret: str
    verdict: str  # empty where nothing is judged
    limit: str  # empty where nothing is judged
    odds: str
    after: str  # the same after the cheapest remedy; empty where none was looked for
    certain: str  # what a fifty-fifty guess becomes
    about: str  # whose value stands out, in a marked sentence


@dataclass(frozen=True)
class Summary:
    """What one sheet of paper says of an audit."""

    purpose: str
    collected: tuple[str, ...]  # a line for each way in which attributes are released
    answers: tuple[Answer, ...]
    secrets: tuple[SecretLine, ...]
    left_out: int  # secrets that are not on the sheet
    made: tuple[str, ...]  # how sure the figures are


def summary_of(audit: Audit, remedies: Remedies | None = None) -> Summary:
    """Answer the four questions of someone who has to decide, with the ways out that were looked for."""
    items = worst_first(audit)
    answers = (
        worst_risk(audit, items), for_whom(audit, items, remedies), what_to_do(audit, remedies),
        what_it_costs(audit, remedies),
    )  # fmt: skip
    lines = tuple(_secret_line(audit, item, remedies) for item in items[:MOST_SECRETS])
    left_out = max(len(items) - MOST_SECRETS, 0)
    return Summary(audit.plan.purpose, _collected(audit.plan), answers, lines, left_out, _made(audit))


def worst_risk(audit: Audit, items: Sequence[SecretAudit]) -> Answer:
    """Say who can learn how much about which secret, beside its limit."""
    item = items[0]
    count = counted(sum(release.times for release in audit.plan.releases), "noisy report")
    if item.deciding is None:
        who = f"In the worst case, whoever knows this table and sees a person’s {count}"
        low, high = item.worst_case.lower.value, item.worst_case.value
    else:
        who = f"{stories.TITLES[item.deciding.adversary]} and sees a person’s {count}"
        low = high = item.deciding.leakage.value
    if factor(high) == factor(1e-12):
        return Answer(
            "What is the worst risk?", f"None: the reports do not move the odds about {_name(item)}."
        )
    first = f"The worst of {len(items)} secrets is {_name(item)}. " if len(items) > 1 else ""
    odds = f"could multiply the odds that the person’s {_name(item)} is {_told_apart(item)}"
    said = f"{first}{who} {odds} by {_reach(low, high)}. {_chances(audit, item, low, high)}"
    details = (*_sources(item), *_limits(audit, items))
    return Answer("What is the worst risk?", said, details)


def _chances(audit: Audit, item: SecretAudit, low: float, high: float) -> str:
    """Say what the share of people who have the value becomes for one of them, and what an even chance does.

    Against every other value the odds grow by the largest factor at most, so against all of them too.
    """
    sure = certainty(low) if certainty(low) == certainty(high) else f"{certainty(low)} to {certainty(high)}"
    even = f"fifty-fifty guess becomes {sure} certain."
    before = base_share(audit, item)
    if before is None or abs(before - 0.5) < _EVEN:
        return f"A {even}"
    rise = f"A guess of {share(before)}, the share who have it, becomes {certainty(high, before)} at most"
    return f"{rise}; a {even}"


def base_share(audit: Audit, item: SecretAudit) -> float | None:
    """Return how common the value is that stands out; None where few have it, or everybody or nobody."""
    witness = stories.deciding_witness(item)
    values = audit.belief.schema[item.secret].values
    if witness is None or witness.likelier not in values:
        return None
    part = float(audit.belief.prior(item.secret)[values.index(witness.likelier)])
    size = audit.belief.sample_size
    if not 0 < part < 1 or (size is not None and _is_few(audit, round(part * size))):
        return None
    return part


def _reach(low: float, high: float) -> str:
    if factor(low) == factor(high):
        return f"up to {factor(high)}"
    return f"{factor(low)}, perhaps by more, but by no more than {factor(high)}"


def _limits(audit: Audit, items: Sequence[SecretAudit]) -> list[str]:
    """Say the limit of the worst secret, and which other secrets break theirs."""
    item, said = items[0], []
    if item.limit == math.inf:
        said.append("Its limit is infinite: it may leak.")
    elif item.limit is not None:
        said.append(_limit(audit, item, item.limit))
    broken = [other for other in items[1:] if other.decision == "exceeded"]
    if broken:
        figures = [f"{_name(other)} (× {_odds(other)})" for other in broken[:3]]
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        said.append(f"Limits are also exceeded for {', '.join(figures)}{more}.")
    if not audit.judged:
        said.append("No limit was set, so nothing is judged.")
    elif undecided := [item.secret for item in items if not item.is_judged]:
        said.append(f"No limit is set for {names_in_text(undecided, _MOST_NAMES)}.")
    return said


def _limit(audit: Audit, item: SecretAudit, limit: float) -> str:
    word = {"within": "is kept", "exceeded": "is exceeded"}.get(item.decision, "is not certified to be kept")
    before, reason = base_share(audit, item), audit.plan.reasons.get(item.secret, "")
    chance = "" if before is None else f" ({share(before)} would become {certainty(limit, before)})"
    why = f" The reason given: {marked(reason, 90)}" if reason else ""
    return f"The limit that was set is a factor of {factor(limit)}{chance}; it {word}.{why}"


def _sources(item: SecretAudit) -> list[str]:
    """Say which single reports speak most about a secret."""
    others = [
        f"{marked(x.through[0], _NAME)} (× {factor(x.value)})" for x in item.neighbours[:3] if x.value > 0
    ]
    own = f"its own report (× {factor(item.direct.value)})" if item.direct.through else ""
    given = f"other answers that go with it: {', '.join(others)}" if others else ""
    said = ", and ".join(part for part in (own, given) if part)
    return [f"It comes from {said}."] if said else []


def for_whom(audit: Audit, items: Sequence[SecretAudit], remedies: Remedies | None = None) -> Answer:
    """Say whose value stands out, how many they are, and how many people's reports say how much."""
    item, details = items[0], []
    witness = stories.deciding_witness(item)
    short = "Anyone whose reports happen to be those that say most."
    if witness is not None:
        short = f"People whose {_name(item)} is {marked(witness.likelier)}{_how_many(audit, item, witness)}."
    exposed = {each.secret: each for each in remedies.exposed} if remedies is not None else {}
    if item.secret in exposed:
        short = f"Most of all {short[0].lower()}{short[1:]} {_beyond(exposed[item.secret])}".rstrip()
    support = item.worst_case.lower.support
    if item.deciding is None and support is not None and not _is_few(audit, support):
        many = {0: "No record of the table fits", 1: "1 record of the table fits"}
        said = many.get(support, f"{whole(support)} records of the table fit")
        details.append(f"{said} the reports that say most.")
    if item.stories:
        moves = [f"for {words} by at most {times}" for words, times in stories.people_moved(item)]
        all_people = f"Of all people, whatever their {_name(item)}, the odds move up or down:"
        details.append(f"{all_people} {', '.join(moves)}.")
        details += _allowance(item)
    else:
        details.append("An audit at a delta (--delta) tells how many people are concerned, and by how much.")
    if witness is not None:
        details += _about_value(audit, item, witness)
    return Answer("For whom?", short, tuple(details))


def _allowance(item: SecretAudit) -> list[str]:
    """Say how the deciding figure at delta goes with these shares of people."""
    if item.deciding is None:
        return []
    leakage = item.deciding.leakage
    worth = f"allows for exceptions worth {stories.one_in(leakage.delta)} people (delta)"
    little = "whoever is a little beyond it counts only a little, so more people than that may be beyond it"
    return [f"The factor of {factor(leakage.value)} {worth}; {little}."]


def _beyond(exposed: Exposed) -> str:
    """Say how many people's reports say more than the limit."""
    if exposed.share <= 0:
        return ""
    asked = f"{exposed.many} of {whole(exposed.people)} people asked ({share(exposed.share)})"
    return f"The reports of {asked} say more than the limit, for or against a value."


def _about_value(audit: Audit, item: SecretAudit, witness: Witness) -> list[str]:
    """Say what a value means for its people: one that most have, or one that is but a code."""
    said = []
    before = base_share(audit, item)
    if before is not None and before > 0.5:
        told = f"what can be learnt about them is that they do not have {marked(witness.unlikelier)}"
        said.append(f"Most people have that value; {told}.")
    if witness.likelier.isdecimal() and witness.unlikelier.isdecimal():
        codes = f"{marked(witness.likelier)} and {marked(witness.unlikelier)}"
        said.append(f"The data’s own description says what {codes} stand for.")
    return said


def _how_many(audit: Audit, item: SecretAudit, witness: Witness) -> str:
    """Say how many people of the table have the value, unless they are too few to be counted."""
    belief = audit.belief
    values = belief.schema[item.secret].values
    if belief.sample_size is None or witness.likelier not in values:
        return ""
    part = float(belief.prior(item.secret)[values.index(witness.likelier)])
    people = round(part * belief.sample_size)
    if _is_few(audit, people):
        return f", fewer than {whole(audit.min_support)} of the {whole(belief.sample_size)} in the table"
    return f": {whole(people)} of the {whole(belief.sample_size)} in the table ({share(part)})"


def _is_few(audit: Audit, people: int) -> bool:
    return people < audit.min_support


def _secret_line(audit: Audit, item: SecretAudit, remedies: Remedies | None) -> SecretLine:
    leakage = item.worst_case if item.deciding is None else item.deciding.leakage
    low = leakage.value if item.deciding is not None else item.worst_case.lower.value
    witness, before = stories.deciding_witness(item), base_share(audit, item)
    part = "" if before is None else f" ({share(before)})"
    about = "" if witness is None else f"{marked(witness.likelier, 16)}{part}"
    best = remedies.remedies[0] if remedies is not None and remedies.remedies else None
    after = factor(best.leakages[item.secret].value) if best and item.secret in best.leakages else ""
    limit = factor(item.limit) if item.limit is not None else ""
    verdict = item.decision if item.is_judged else ""
    return SecretLine(item.secret, verdict, limit, _odds(item), after, certainty(low), about)


def _odds(item: SecretAudit) -> str:
    """Write the deciding figure as a factor, or the worst case by both its ends."""
    if item.deciding is not None:
        return factor(item.deciding.leakage.value)
    return stories.odds_range(item.worst_case)


def _collected(plan: Plan) -> tuple[str, ...]:
    """Say which attributes are released how, a line for each mechanism and budget."""

    def way(release: object) -> str:
        return ways[id(release)]

    ways = {}
    for release in plan.releases:
        spent = "" if release.epsilon is None else f" with budget {budget(release.epsilon)}"
        ways[id(release)] = f"{spelled(release.mechanism)}{spent}{release.often}"
    lines = []
    for said, group in groupby(sorted(plan.releases, key=way), key=way):
        names = [release.name for release in group]
        lines.append(f"{counted(len(names), 'attribute')} by {said}: {names_in_text(names, _MOST_NAMES)}.")
    return tuple(lines)


def _made(audit: Audit) -> tuple[str, ...]:
    """Say whose knowledge the figures assume and how sure they are."""
    belief = audit.belief
    records = "by hand" if belief.sample_size is None else f"from {whole(belief.sample_size)} records"
    kinds = sorted({item.worst_case.upper.kind for item in audit.secrets.values()})
    said = [
        "This is a forecast for a plan: no report was collected for it.",
        f"Figures are for someone who knows {marked(belief.source)} ({belief.kind}, {records}).",
    ]
    if audit.delta is not None:
        said.append(f"They allow for exceptions worth {stories.one_in(audit.delta)} people (delta).")
    return (*said, f"Worst cases are {', '.join(kinds)}.")


def _name(item: SecretAudit) -> str:
    return marked(item.secret)


def _told_apart(item: SecretAudit) -> str:
    witness = stories.deciding_witness(item)
    if witness is None:
        return "one value rather than another"
    return f"{marked(witness.likelier)} rather than {marked(witness.unlikelier)}"
