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
from sidelight.remedying import Remedies
from sidelight.report import stories
from sidelight.report.audit_figures import worst_first
from sidelight.report.wording import budget, certainty, counted, factor, marked, points, share, whole

MOST_SECRETS = 8
"""So many secrets are on the printed sheet; the report and the assessment have all."""
_MOST_NAMES = 40
_FEW_NAMES = 4
_NAME_ON_PAPER = 22
_LONGEST_REMEDY = 180
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
    answers = (
        worst_risk(audit, items), for_whom(audit, items), what_to_do(audit, items, remedies),
        what_it_costs(expected_use(audit), remedies),
    )  # fmt: skip
    lines = tuple(map(_secret_line, items[:MOST_SECRETS]))
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
    if item.limit is not None:
        word = {"within": "is kept", "exceeded": "is exceeded"}.get(
            item.decision, "is not certified to be kept"
        )
        said.append(f"The limit is a factor of {factor(item.limit)}; it {word}.")
    if item.deciding is not None:
        said.append(
            f"This allows {stories.one_in(item.deciding.leakage.delta)} people to be exposed beyond it."
        )
    broken = [other.secret for other in items if other.decision == "exceeded"]
    if len(broken) > 1:
        said.append(
            f"Limits are exceeded for {len(broken)} of {counted(len(items), 'secret')}: {_list(broken)}."
        )
    if not audit.judged:
        said.append("No limit was set, so nothing is judged.")
    return said


def for_whom(audit: Audit, items: Sequence[SecretAudit]) -> Answer:
    """Say whose value stands out, how many they are, and how far typical people are from the worst."""
    item, details = items[0], []
    witness = stories.deciding_witness(item)
    short = "Anyone whose reports happen to be those that say most."
    if witness is not None:
        short = f"People whose {_name(item)} is {marked(witness.likelier)}{_how_many(audit, item, witness)}."
    support = item.worst_case.lower.support
    if item.deciding is None and support is not None and not _is_few(audit, support):
        said = "no record fits" if support == 0 else f"{counted(support, 'record')} of the table fit"
        details.append(f"The reports that say most are rare: {said} them.")
    if item.stories:
        moves = [f"{words} by at most {times}" for words, times in stories.people_moved(item)]
        details.append(f"Typical reports say less. They multiply the odds about {', '.join(moves)}.")
    else:
        details.append(
            "Typical reports say less; an audit at a delta (--delta) tells how many people by how much."
        )
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


def what_to_do(audit: Audit, items: Sequence[SecretAudit], remedies: Remedies | None) -> Answer:
    """Say the cheapest way out, the next ones, and where the worst figure comes from."""
    question = "What should we do?"
    item = items[0]
    if audit.is_within:
        return Answer(question, "Collect as planned: every limit is kept.", _sources(item))
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
    best = f"The cheapest way back under every limit: {_cut(first.says)}"
    next_best = (f"{number}. {_cut(other.says)}" for number, other in enumerate(others, 2))
    return Answer(question, f"{short} {best}", tuple(next_best))


def _cut(text: str) -> str:
    """Return as much of a text as a sheet of paper has room for; the report has it in full."""
    return text if len(text) <= _LONGEST_REMEDY else f"{text[:_LONGEST_REMEDY].rstrip()} …"


def _sources(item: SecretAudit) -> tuple[str, ...]:
    """Say which single reports speak most about a secret."""
    own = [f"its own report (× {factor(item.direct.value)})"] if item.direct.through else []
    others = [f"{marked(x.through[0])} (× {factor(x.value)})" for x in item.neighbours[:3] if x.value > 0]
    parts = [*own, *others]
    return (f"What single reports say about {_name(item)}: {', '.join(parts)}.",) if parts else ()


def what_it_costs(use: Usefulness | None, remedies: Remedies | None) -> Answer:
    """Say how good the estimates would be: of the plan as it is, and of the cheapest way out."""
    question = "What does it cost?"
    if use is None:
        return Answer(question, "The error of the estimates is not predicted for this plan.")
    details = []
    if use.beats_guessing:
        worst = max(use.attributes, key=lambda item: item.largest_error)
        off = f"none of its values off by more than {points(worst.largest_error)}"
        details.append(f"Least certain is {marked(worst.attribute)}: with 95 % probability, {off}.")
    planned_use = f"As planned: {_use_words(use)}"
    if remedies is None or not remedies.remedies:
        return Answer(question, planned_use, tuple(details))
    best, wanted = remedies.remedies[0], points(remedies.within)
    many = (
        "no number of people is enough"
        if best.people_needed is None
        else f"{whole(best.people_needed)} people are needed"
    )
    needed = f"For {wanted} in every attribute that is still collected: {many}."
    return Answer(question, f"That way: {_use_words(best.use)}", (needed, planned_use))


def _use_words(use: Usefulness) -> str:
    """Say what to expect of the estimates, beside guessing."""
    people = f"with {whole(use.people)} people"
    if math.isinf(use.error):
        return "such reports do not determine every frequency, however many people send them."
    if not use.beats_guessing:
        off = f"off by {points(use.error)} {people}, a guess by {points(use.guess_error)}"
        return f"the estimates would be worse than guessing: {off}."
    said = f"frequencies right to {points(use.error)} {people}, a guess to {points(use.guess_error)}."
    if use.worse:
        said += f" For {_list(use.worse)} a guess would be better."
    return said


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
