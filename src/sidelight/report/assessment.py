"""An audit as the parts of a data protection assessment: one structure, written as Markdown and as JSON.

The parts follow what assessments ask for: what is collected, why, who could attack, the risks by secret, the
measures, what remains, how the figures were made, and of which plan and data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidelight.auditing import NAMES, Audit, SecretAudit
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, json_plain, write_text
from sidelight.plan import Release
from sidelight.remedying import Remedies
from sidelight.report import stories
from sidelight.report.audit_figures import worst_first
from sidelight.report.glossary import GLOSSARY
from sidelight.report.provenance import digests_of
from sidelight.report.summary import Answer, expected_use, summary_of
from sidelight.report.wording import (
    MARK_CLOSE,
    MARK_OPEN,
    UNPROTECTED,
    counted,
    factor,
    marked,
    share,
    unmarked,
    whole,
)

Cell = str | float | int | None
FORMAT = 1
_SUFFIXES = (".md", ".json")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|&~$@])")


@dataclass(frozen=True)
class Grid:
    """A table of an assessment."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Part:
    """One part of an assessment: sentences, then a table if there is one."""

    key: str
    title: str
    paragraphs: tuple[str, ...] = ()
    grid: Grid | None = None


@dataclass(frozen=True)
class Assessment:
    """An audit as the parts of a data protection assessment."""

    title: str
    answers: tuple[Answer, ...]
    parts: tuple[Part, ...]
    figures: Mapping[str, Any]  # everything that the audit says, as plain data

    def to_json(self) -> str:
        """Return it as JSON; names and sentences are plain text."""
        plain = {
            "assessment": FORMAT,
            "title": self.title,
            "summary": [
                {"question": item.question, "answer": unmarked(item.short), "details": _texts(item.details)}
                for item in self.answers
            ],
            "sections": [_part_to_dict(part) for part in self.parts],
            "figures": dict(self.figures),
        }
        return json.dumps(json_plain(plain), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return it as Markdown, in which names of the data cannot be taken for anything but text."""
        lines = [f"# {escaped(self.title)}", "", f"*{escaped(UNPROTECTED)}*", "", "## In brief", ""]
        for item in self.answers:
            lines += [f"**{item.question}** {' '.join(map(_sentence, (item.short, *item.details)))}", ""]
        for number, part in enumerate(self.parts, 1):
            lines += [f"## {number}. {part.title}", ""]
            for text in part.paragraphs:
                lines += [_sentence(text), ""]
            lines += [*_table(part.grid), ""] if part.grid else []
        return "\n".join(lines)


def write_assessment(audit: Audit, path: str | Path, remedies: Remedies | None = None) -> Path:
    """Write an audit for a data protection assessment, as Markdown (.md) or JSON (.json)."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path} must end in .md or .json.")
    check_overwrite(path)
    found = assessment_of(audit, remedies)
    return write_text(path, found.to_markdown() if suffix == ".md" else found.to_json())


def assessment_of(audit: Audit, remedies: Remedies | None = None) -> Assessment:
    """Return the parts of an assessment, in the order in which it asks for them."""
    items = worst_first(audit)
    parts = (
        Part("collected", "What is collected", _collected(audit), _releases(audit)),
        Part("purpose", "Why it is collected", _purpose(audit), _reasons(audit)),
        Part("adversaries", "Who could attack, and what they know", _adversaries(audit)),
        Part("risks", "Risks, by secret", _risk_words(audit), _risks(items)),
        Part("measures", "Measures taken and offered", _measures(audit), _offers(remedies)),
        Part("remains", "What remains", _remains(audit, items, remedies)),
        Part(
            "figures", "How the figures were made, and how certain they are", _certainty(audit), _kinds(items)
        ),
        Part("versions", "Versions", _versions(audit)),
    )
    title = f"Sidelight assessment of {audit.belief.source}"
    return Assessment(title, summary_of(audit, remedies).answers, parts, audit.to_dict())


def _collected(audit: Audit) -> tuple[str, ...]:
    said = f"{counted(len(audit.plan.releases), 'attribute')} of each person, each through a randomiser"
    return (
        f"{said} that runs before anything leaves the person. The true values stay there, except where a "
        "budget is infinite.",
    )


def _releases(audit: Audit) -> Grid:
    columns = ("attribute", "kind", "values", "mechanism", "budget", "realised budget", "times", "reason")
    return Grid(columns, tuple(_release_row(release) for release in audit.plan.releases))


def _release_row(release: Release) -> tuple[Cell, ...]:
    attribute, mechanism = release.attribute, release.randomiser()
    return (
        release.name, attribute.kind, attribute.size, release.mechanism, release.epsilon, mechanism.epsilon,
        release.times, release.reason or None,
    )  # fmt: skip


def _purpose(audit: Audit) -> tuple[str, ...]:
    stated = (
        marked(audit.plan.purpose, 2000)
        if audit.plan.purpose
        else "The plan states no purpose; it must be added here."
    )
    missing = [release.name for release in audit.plan.releases if not release.reason]
    if not missing:
        return (stated,)
    return (
        stated,
        f"{len(missing)} of {counted(len(audit.plan.releases), 'attribute')} have no stated reason.",
    )


def _reasons(audit: Audit) -> Grid | None:
    rows = tuple((name, audit.plan.limit_of(name), reason) for name, reason in audit.plan.reasons.items())
    return Grid(("secret", "limit", "why this limit"), rows) if rows else None


def _adversaries(audit: Audit) -> tuple[str, ...]:
    belief = audit.belief
    known = (
        "how every two attributes go together"
        if belief.kind == "pairwise"
        else "how all attributes go together"
    )
    source = marked(belief.source)
    said = [
        f"Whoever gets a person’s reports and knows {known} in {source}, and nothing else about the person."
    ]
    item = next(iter(audit.secrets.values()))
    said += [f"{column.title}: {column.knowledge}" for column in stories.columns_of(item)]
    if audit.adversary == "guess":
        said.append(
            "This adversary keeps one guessed value of each report; one who keeps whole reports learns more."
        )
    if audit.judged:
        said.append(f"Limits are to be kept for {NAMES[audit.decide_by]}.")
    return tuple(said)


def _risk_words(audit: Audit) -> tuple[str, ...]:
    allowed = "" if audit.delta is None else f", at delta {audit.delta:g} where a column says so"
    return (
        "By how many times at most the reports multiply the odds of one value of a secret against "
        f"another{allowed}. What everyone could guess before is not counted.",
    )  # fmt: skip


def _risks(items: Sequence[SecretAudit]) -> Grid:
    columns = (
        "secret", "verdict", "limit in nats", "for", "odds times", "nats", "kind", "worst case at least",
        "worst case at most", "people it is about", "told from", "own report",
        "strongest neighbour", "through it",
    )  # fmt: skip
    return Grid(columns, tuple(map(_risk_row, items)))


def _risk_row(item: SecretAudit) -> tuple[Cell, ...]:
    witness = stories.deciding_witness(item)
    deciding = item.worst_case.upper if item.deciding is None else item.deciding.leakage.upper
    who = stories.TITLES["report" if item.deciding is None else item.deciding.adversary]
    first = item.neighbours[0] if item.neighbours else None
    return (
        item.secret, item.decision if item.is_judged else "not judged", item.limit, who,
        factor(deciding.value), deciding.value, deciding.kind, item.worst_case.lower.value,
        item.worst_case.upper.value,
        witness.likelier if witness else None, witness.unlikelier if witness else None,
        item.direct.value if item.direct.through else None,
        first.through[0] if first else None, first.value if first else None,
    )  # fmt: skip


def _measures(audit: Audit) -> tuple[str, ...]:
    budgets = [release.randomiser().epsilon for release in audit.plan.releases]
    ends = f"budgets from {min(budgets):.4g} to {max(budgets):.4g}".replace("inf", "∞")
    said = [f"Taken: every attribute is randomised on the person’s side, with {ends}."]
    use = expected_use(audit)
    if use is not None:
        said.append(f"Their price: {use.headline()}")
    if audit.min_support:
        said.append(
            f"Figures that rest on fewer than {whole(audit.min_support)} records are suppressed in this text."
        )
    return tuple(said)


def _offers(remedies: Remedies | None) -> Grid | None:
    """Return the ways back under the limits that were found."""
    if remedies is None or not remedies.remedies:
        return None
    columns = ("offered", "what is done", "largest share of a limit", "attributes", "error", "people needed")
    rows = tuple(
        (number, item.says, item.share, item.attributes, item.error, item.people_needed)
        for number, item in enumerate(remedies.remedies, 1)
    )
    return Grid(columns, rows)


def _remains(audit: Audit, items: Sequence[SecretAudit], remedies: Remedies | None) -> tuple[str, ...]:
    said = []
    for outcome, words in (
        ("exceeded", "Limits are exceeded for"),
        ("not certified", "Not certified to keep their limits:"),
    ):
        names = [marked(item.secret) for item in items if item.decision == outcome]
        if names:
            said.append(f"{words} {', '.join(names)}.")
    if remedies is not None and remedies.remedies:
        part = share(min(remedies.remedies[0].share, 1.0))
        said.append(f"With the first measure offered, no figure would be above {part} of its limit.")
    if audit.is_within:
        said.append("Every limit is certified to be kept, for the adversary who decides.")
    if not audit.judged:
        said.append("No limit was set: whether the risks above are acceptable remains to be decided.")
    if audit.delta is not None:
        few = f"{stories.one_in(audit.delta)} people may be exposed beyond the figures at delta"
        said.append(f"Because of the delta of {audit.delta:g}, {few}.")
    said.append("Somebody who knows more about a person than the reports and this table learns more.")
    return tuple(said)


def _certainty(audit: Audit) -> tuple[str, ...]:
    belief = audit.belief
    size = "given by hand" if belief.sample_size is None else f"{whole(belief.sample_size)} records"
    said = [f"Belief: {belief.kind}, {size}{', a model of the table' if belief.is_model else ''}."]
    if belief.smoothing:
        said.append(f"Smoothing: {belief.smoothing:g} evenly spread records were added.")
    if audit.confidence is not None:
        said.append(f"Robust figures hold together with {share(audit.confidence)} confidence.")
    if audit.delta is not None:
        said += stories.notes(audit)
    return tuple(said)


def _kinds(items: Sequence[SecretAudit]) -> Grid:
    ends = [end for item in items for end in (item.worst_case.lower, item.worst_case.upper)]
    ends += [item.deciding.leakage.upper for item in items if item.deciding is not None]
    used = {end.kind for end in ends}
    rows = [(term.name, term.meaning) for term in GLOSSARY if used & set(term.codes)]
    return Grid(("kind of figure", "what it claims"), tuple(rows))


def _versions(audit: Audit) -> tuple[str, ...]:
    digests = digests_of(audit)
    return (
        f"Sidelight {digests.version}.",
        f"Plan, SHA-256 of its JSON: {digests.plan}.",
        f"Data, SHA-256 of the counts of all pairs of values: {digests.data}.",
    )


def escaped(text: str) -> str:
    r"""Return a text of one line as Markdown that shows it as it is.

    >>> print(escaped("a|b <img src=x> [x](y)\n# z"))
    a\|b \<img src=x\> \[x\](y) \# z
    """
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return re.sub(r"(?i)\b(www)\.|://", _unlinked, line)


def _unlinked(found: re.Match[str]) -> str:
    """Break what some readers make a link of."""
    return f"{found[1]}\\." if found[1] else ":\\/\\/"


def _sentence(text: str) -> str:
    """Return a sentence as Markdown, with the names of the data in it set off."""
    parts = re.split(f"{MARK_OPEN}([^{MARK_CLOSE}]*){MARK_CLOSE}", text)
    return "".join(f"**{escaped(part)}**" if place % 2 else _spaced(part) for place, part in enumerate(parts))


def _spaced(text: str) -> str:
    """Return the text between names as Markdown, with its spaces at both ends."""
    start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{start}{escaped(text)}{end}" if text.strip() else text


def _table(grid: Grid) -> list[str]:
    lines = [grid.columns, tuple("---" for _ in grid.columns)]
    said = [f"| {' | '.join(line)} |" for line in lines]
    return [*said, *(f"| {' | '.join(map(_cell, row))} |" for row in grid.rows)]


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return escaped(value) if isinstance(value, str) else f"{value:.6g}".replace("inf", "∞")


def _texts(sentences: Sequence[str]) -> list[str]:
    return [unmarked(text) for text in sentences]


def _part_to_dict(part: Part) -> dict[str, Any]:
    grid = part.grid
    rows = [] if grid is None else [dict(zip(grid.columns, row, strict=True)) for row in grid.rows]
    return {"key": part.key, "title": part.title, "text": _texts(part.paragraphs), "rows": rows}
