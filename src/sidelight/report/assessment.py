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
from sidelight.remedying import Remedies, Remedy
from sidelight.report import stories
from sidelight.report.audit_figures import worst_first
from sidelight.report.glossary import GLOSSARY
from sidelight.report.provenance import digests_of
from sidelight.report.repeated import realised_columns
from sidelight.report.summary import base_share, summary_of
from sidelight.report.ways import Answer, expected_use, what_is_left
from sidelight.report.wording import (
    MARK_CLOSE,
    MARK_OPEN,
    UNPROTECTED,
    certainty,
    counted,
    escaped,
    factor,
    hundredths,
    marked,
    share,
    unmarked,
    unturned,
    whole,
)

Cell = str | float | int | None
FORMAT = 1
_SUFFIXES = (".md", ".json")


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
        Part("risks", "Risks, by secret", _risk_words(audit), _risks(audit, items)),
        Part("measures", "Measures taken and offered", _measures(audit, remedies), _offers(remedies)),
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
    realised = realised_columns(audit.plan) if audit.plan.repeats else ("realised budget",)
    columns = ("attribute", "kind", "values", "mechanism", "budget", *realised, "times", "reason")
    return Grid(columns, tuple(_release_row(release, len(realised)) for release in audit.plan.releases))


def _release_row(release: Release, realised: int) -> tuple[Cell, ...]:
    attribute = release.attribute
    return (
        release.name, attribute.kind, attribute.size, release.mechanism, release.epsilon,
        *release.realised[:realised], release.times, release.reason or None,
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


def _risks(audit: Audit, items: Sequence[SecretAudit]) -> Grid:
    columns = (
        "secret", "verdict", "limit in nats", "limit: odds times", "for", "odds times", "nats", "kind",
        "worst case at least", "worst case at most", "people it is about", "their share",
        "their chance at most", "told from", "own report",
        "strongest neighbour", "through it",
    )  # fmt: skip
    return Grid(columns, tuple(_risk_row(audit, item) for item in items))


def _risk_row(audit: Audit, item: SecretAudit) -> tuple[Cell, ...]:
    witness = stories.deciding_witness(item)
    deciding = item.worst_case.upper if item.deciding is None else item.deciding.leakage.upper
    who = stories.TITLES["report" if item.deciding is None else item.deciding.adversary]
    first = item.neighbours[0] if item.neighbours else None
    before = base_share(audit, item)
    return (
        item.secret, item.decision if item.is_judged else "not judged", item.limit,
        None if item.limit is None else factor(item.limit), who,
        factor(deciding.value), deciding.value, deciding.kind, item.worst_case.lower.value,
        item.worst_case.upper.value,
        witness.likelier if witness else None, None if before is None else share(before),
        None if before is None else certainty(deciding.value, before),
        witness.unlikelier if witness else None,
        item.direct.value if item.direct.through else None,
        first.through[0] if first else None, first.value if first else None,
    )  # fmt: skip


def _measures(audit: Audit, remedies: Remedies | None) -> tuple[str, ...]:
    budgets = [release.spent for release in audit.plan.releases]
    least, most = (f"{end:.4g}".replace("inf", "∞") for end in (min(budgets), max(budgets)))
    ends = f"a budget of {most}" if least == most else f"budgets from {least} to {most}"
    said = [f"Taken: every attribute is randomised on the person’s side, with {ends}."]
    use = expected_use(audit)
    if use is not None:
        said.append(f"Their price: {unturned(use.headline())}")
    if audit.min_support:
        said.append(
            f"Figures that rest on fewer than {whole(audit.min_support)} records are suppressed in this text."
        )
    if remedies is not None and remedies.remedies:
        best = remedies.remedies[0]
        errors = [f"{marked(item.attribute)} {hundredths(item.error)}" for item in best.use.attributes]
        said += [item.says for item in remedies.exposed]
        said.append(f"Errors with the first measure offered, in percentage points: {', '.join(errors)}.")
    return tuple(said)


def _offers(remedies: Remedies | None) -> Grid | None:
    """Return the ways back under the limits that were found."""
    if remedies is None or not remedies.remedies:
        return None
    columns = (
        "offered", "what is done", "odds times at most", "largest share of a limit", "attributes", "error",
        "loss, with what is not collected", "people needed",
    )  # fmt: skip
    rows = tuple(
        (
            number,
            item.says,
            _odds_after(item),
            item.share,
            item.attributes,
            item.error,
            item.loss,
            item.people_needed,
        )
        for number, item in enumerate(remedies.remedies, 1)
    )
    return Grid(columns, rows)


def _odds_after(remedy: Remedy) -> str:
    return "; ".join(f"{name} {factor(bound.value)}" for name, bound in remedy.leakages.items())


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
        said.append(what_is_left(remedies.remedies[0], audit))
    if audit.is_within:
        said.append("Every limit is certified to be kept, for the adversary who decides.")
    if not audit.judged:
        said.append("No limit was set: whether the risks above are acceptable remains to be decided.")
    elif names := [marked(item.secret) for item in items if not item.is_judged]:
        said.append(f"No limit is set for {', '.join(names)}: how much they may leak remains to be decided.")
    if audit.delta is not None:
        said.append(stories.allowance(audit.delta))
    said.append("Somebody who knows more about a person than the reports and this table learns more.")
    return tuple(said)


def _certainty(audit: Audit) -> tuple[str, ...]:
    belief = audit.belief
    forecast = "This is a forecast for a plan: no report was collected for it."
    size = "given by hand" if belief.sample_size is None else f"{whole(belief.sample_size)} records"
    said = [forecast, f"Belief: {belief.kind}, {size}{', a model of the table' if belief.is_model else ''}."]
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
