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
from sidelight.estimation.usefulness import Usefulness, usefulness
from sidelight.foundation.errors import InputError
from sidelight.leakage import Witness
from sidelight.plan import Plan
from sidelight.protocols import planned
from sidelight.remedying import Remedies, Remedy
from sidelight.report import stories
from sidelight.report.audit_figures import worst_first
from sidelight.report.wording import (
    budget,
    certainty,
    counted,
    factor,
    marked,
    points,
    share,
    unturned,
    whole,
)

MOST_SECRETS = 8
"""So many secrets are on the printed sheet; the report and the assessment have all."""
_MOST_NAMES = 40
_FEW_NAMES = 4
_NAME_ON_PAPER = 22
_LONGEST_REMEDY, _LONGEST_OTHER = 150, 120  # characters that the sheet has for the first way, and the others
_ROOM = 650  # characters of names in one list


@dataclass(frozen=True)
class Answer:
    """A question that a reader comes with, and what an audit says to it."""

    question: str
    short: str  # the answer itself
    details: tuple[str, ...] = ()  # what else to know, sentence by sentence


@dataclass(frozen=True)
class SecretLine:
    """One secret in a line: how much, for whom."""

    secret: str
    verdict: str  # empty where nothing is judged
    odds: str
    certain: str  # what a fifty-fifty guess becomes
    about: str  # whose value stands out


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
    use = expected_use(audit)
    answers = (
        worst_risk(audit, items), for_whom(audit, items), what_to_do(audit, items, use, remedies),
        what_it_costs(use, remedies),
    )  # fmt: skip
    lines = tuple(map(_secret_line, items[:MOST_SECRETS]))
    left_out = max(len(items) - MOST_SECRETS, 0)
    return Summary(audit.plan.purpose, _collected(audit.plan), answers, lines, left_out, _made(audit))


def worst_risk(audit: Audit, items: Sequence[SecretAudit]) -> Answer:
    """Say who can learn how much about which secret, beside its limit."""
    item = items[0]
    count = counted(len(audit.plan.releases), "noisy report")
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
    odds = f"can multiply the odds that the person’s {_name(item)} is {_told_apart(item)}"
    sure = certainty(low) if certainty(low) == certainty(high) else f"{certainty(low)} to {certainty(high)}"
    said = f"{first}{who} {odds} by {_reach(low, high)}. A fifty-fifty guess becomes {sure} certain."
    return Answer("What is the worst risk?", said, tuple(_limits(audit, items)))


def _reach(low: float, high: float) -> str:
    if factor(low) == factor(high):
        return f"up to {factor(high)}"
    return f"{factor(low)}, perhaps by more, but by no more than {factor(high)}"


def _limits(audit: Audit, items: Sequence[SecretAudit]) -> list[str]:
    """Say the limit of the worst secret, and which secrets break theirs."""
    item, said = items[0], []
    if item.limit == math.inf:
        said.append("Its limit is infinite: it may leak.")
    elif item.limit is not None:
        word = {"within": "is kept", "exceeded": "is exceeded"}.get(
            item.decision, "is not certified to be kept"
        )
        said.append(f"The limit is a factor of {factor(item.limit)}; it {word}.")
    if item.deciding is not None:
        leakage = item.deciding.leakage
        few = f"{stories.one_in(leakage.delta)} people may be exposed"
        said.append(f"Beyond a factor of {factor(leakage.value)}, {few} (delta).")
    broken = [other.secret for other in items if other.decision == "exceeded"]
    if len(broken) > 1:
        said.append(
            f"Limits are exceeded for {len(broken)} of {counted(len(items), 'secret')}: {_list(broken)}."
        )
    if not audit.judged:
        said.append("No limit was set, so nothing is judged.")
    elif undecided := _undecided(items):
        said.append(f"No limit is set for {_list(undecided)}.")
    return said


def _undecided(items: Sequence[SecretAudit]) -> list[str]:
    return [item.secret for item in items if not item.is_judged]


def for_whom(audit: Audit, items: Sequence[SecretAudit]) -> Answer:
    """Say whose value stands out, how many they are, and how far typical people are from the worst."""
    item, details = items[0], []
    witness = stories.deciding_witness(item)
    short = "Anyone whose reports happen to be those that say most."
    if witness is not None:
        short = f"People whose {_name(item)} is {marked(witness.likelier)}{_how_many(audit, item, witness)}."
    support = item.worst_case.lower.support
    if item.deciding is None and support is not None and not _is_few(audit, support):
        many = {0: "No record of the table fits", 1: "1 record of the table fits"}
        said = many.get(support, f"{whole(support)} records of the table fit")
        details.append(f"{said} the reports that say most.")
    if item.stories:
        moves = [f"{words} by at most {times}" for words, times in stories.people_moved(item)]
        details.append(f"The reports multiply the odds about {', '.join(moves)}.")
    else:
        details.append("How far most people are from that, an audit at a delta (--delta) tells.")
    return Answer("For whom?", short, tuple(details))


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


def what_to_do(
    audit: Audit, items: Sequence[SecretAudit], use: Usefulness | None, remedies: Remedies | None
) -> Answer:
    """Say the cheapest way out, the next ones, and where the worst figure comes from."""
    question = "What should we do?"
    item = items[0]
    if audit.is_within:
        return Answer(question, _go_ahead(len(_undecided(items)), use), _sources(item))
    if not audit.judged:
        short = "Decide how much each secret may leak, and audit again with that limit (--limit)."
        return Answer(question, short, _sources(item))
    short = "Do not collect as planned."
    if remedies is None:
        more = "Withhold or coarsen what says most, lower its budget, or ask fewer questions"
        return Answer(question, short, (*_sources(item), f"{more}; --remedies finds the cheapest way."))
    if not remedies.remedies:
        return Answer(question, f"{short} No way back under every limit was found.", _sources(item))
    first, *others = remedies.remedies[:_FEW_NAMES]
    best = f"The cheapest way back under every limit: {_cut(first.says, _LONGEST_REMEDY)}"
    kept = len(audit.plan.releases)
    ways = (
        f"{number}. {_cut(other.says, _LONGEST_OTHER)} {_price(other, kept)}"
        for number, other in enumerate(others, 2)
    )
    where = "The report has its plan, under What to do"
    told = f"{where}, and those of other ways:" if others else f"{where}."
    return Answer(question, f"{short} {best}", (told, *ways))


def _go_ahead(undecided: int, use: Usefulness | None) -> str:
    """Say that limits are kept, which is no answer for secrets without one, nor makes estimates useful."""
    if use is not None and not use.beats_guessing:
        worse = "the estimates would be worse than guessing"
        return f"Every limit that is set is kept, but {worse}: ask more people, or fewer questions."
    if not undecided:
        return "Collect as planned: every limit is kept."
    many = f"{counted(undecided, 'secret')} {'has' if undecided == 1 else 'have'} none"
    return f"Every limit that is set is kept, but {many}: decide how much may leak there, then collect."


def _price(remedy: Remedy, planned_attributes: int) -> str:
    """Say in brackets what a way costs."""
    gone = planned_attributes - remedy.attributes
    lost = f", {counted(gone, 'attribute')} not collected" if gone else ""
    return f"(Estimates off by about {points(remedy.error)}{lost}.)"


def _cut(text: str, most: int) -> str:
    """Return as much of a text as a sheet of paper has room for; the report has it in full."""
    plain = unturned(text)
    return plain if len(plain) <= most else f"{plain[:most].rstrip()} …"


def _sources(item: SecretAudit) -> tuple[str, ...]:
    """Say which single reports speak most about a secret."""
    own = [f"its own report (× {factor(item.direct.value)})"] if item.direct.through else []
    others = [f"{marked(x.through[0])} (× {factor(x.value)})" for x in item.neighbours[:3] if x.value > 0]
    parts = [*own, *others]
    return (f"What single reports say about {_name(item)}: {', '.join(parts)}.",) if parts else ()


def what_it_costs(use: Usefulness | None, remedies: Remedies | None) -> Answer:
    """Say how far off the estimates would be: of the cheapest way out, and of the plan as it is."""
    question = "What does it cost?"
    if use is None:
        return Answer(question, "The error of the estimates is not predicted for this plan.")
    if remedies is None or not remedies.remedies:
        return Answer(
            question, f"Collected as planned, {_off(use)}", (*_beside_guessing(use), *_least_sure(use))
        )
    best, wanted = remedies.remedies[0], points(remedies.within)
    instead = f"As planned it would be {points(use.error)}." if math.isfinite(use.error) else ""
    many = (
        "no number of people is enough"
        if best.people_needed is None
        else f"it takes {whole(best.people_needed)} people"
    )
    needed = f"To come within {wanted} in every attribute that is still collected, {many}."
    details = (*_beside_guessing(best.use), needed)
    return Answer(question, f"Collected the cheapest way, {_off(best.use)} {instead}".rstrip(), details)


def _off(use: Usefulness) -> str:
    """Say how far off the estimates are to be expected."""
    if math.isinf(use.error):
        return "the reports do not determine every frequency, however many people send them."
    worse = "" if use.beats_guessing else ": worse than guessing"
    return (
        f"the estimated shares are off by about {points(use.error)} with {whole(use.people)} people{worse}."
    )


def _beside_guessing(use: Usefulness) -> list[str]:
    """Say what a guess is worth that needs no collection."""
    said = f"Guessing that all values are equally common would be off by {points(use.guess_error)}."
    closer = f" For {_list(use.worse)} that guess is closer." if use.worse and use.beats_guessing else ""
    return [f"{said}{closer}"] if math.isfinite(use.error) else []


def _least_sure(use: Usefulness) -> list[str]:
    """Name the attribute whose estimates may be furthest off."""
    worst = max(use.attributes, key=lambda item: item.largest_error)
    if not math.isfinite(worst.largest_error):
        return []
    off = f"none of its values off by more than {points(worst.largest_error)}"
    return [f"Least certain is {marked(worst.attribute)}: with 95 % probability, {off}."]


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


def _secret_line(item: SecretAudit) -> SecretLine:
    leakage = item.worst_case if item.deciding is None else item.deciding.leakage
    low = leakage.value if item.deciding is not None else item.worst_case.lower.value
    witness = stories.deciding_witness(item)
    odds = (
        factor(low) if factor(low) == factor(leakage.value) else f"{factor(low)} to {factor(leakage.value)}"
    )
    about = "" if witness is None else witness.likelier
    return SecretLine(item.secret, item.decision if item.is_judged else "", odds, certainty(low), about)


def _collected(plan: Plan) -> tuple[str, ...]:
    """Say which attributes are released how, a line for each mechanism and budget."""

    def way(release: object) -> str:
        return ways[id(release)]

    ways = {}
    for release in plan.releases:
        spent = "" if release.epsilon is None else f" with budget {budget(release.epsilon)}"
        ways[id(release)] = f"{release.mechanism}{spent}{release.often}"
    lines = []
    for said, group in groupby(sorted(plan.releases, key=way), key=way):
        names = [release.name for release in group]
        lines.append(f"{counted(len(names), 'attribute')} by {said}: {_list(names, _MOST_NAMES)}.")
    return tuple(lines)


def _made(audit: Audit) -> tuple[str, ...]:
    """Say whose knowledge the figures assume and how sure they are."""
    belief = audit.belief
    records = "by hand" if belief.sample_size is None else f"from {whole(belief.sample_size)} records"
    kinds = sorted({item.worst_case.upper.kind for item in audit.secrets.values()})
    said = [f"Figures are for someone who knows {marked(belief.source)} ({belief.kind}, {records})."]
    if audit.delta is not None:
        allowed = f"{stories.one_in(audit.delta)} people may be exposed beyond them (delta {audit.delta:g})"
        said.append(f"They are at delta: {allowed}; the worst case stands beside them.")
    return (*said, f"Worst cases are {', '.join(kinds)}.")


def _name(item: SecretAudit) -> str:
    return marked(item.secret)


def _told_apart(item: SecretAudit) -> str:
    witness = stories.deciding_witness(item)
    if witness is None:
        return "one value rather than another"
    return f"{marked(witness.likelier)} rather than {marked(witness.unlikelier)}"


def _list(names: Sequence[str], most: int = _FEW_NAMES) -> str:
    """Name the first few of them, as far as there is room."""
    shown = [marked(name, _NAME_ON_PAPER) for name in names[:most]]
    while len(shown) > 1 and sum(map(len, shown)) > _ROOM:
        shown.pop()
    said = ", ".join(shown)
    return said if len(names) == len(shown) else f"{said} and {len(names) - len(shown)} more"
