"""Plans as people discuss them: one in full, two or more side by side, and what a check of one found.

What is shown is made once, as plain sections, for the terminal, for a page and for Markdown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rich.console import RenderableType

from sidelight.auditing import NAMES, AdversaryName, SecretAudit
from sidelight.comparison import Change, Comparison, PlanCheck, Side
from sidelight.comparison.changes import number
from sidelight.foundation.html import listed
from sidelight.foundation.numbers import hundredths, points
from sidelight.plan import Plan, Release
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, Section, plotted, sections_page
from sidelight.report.repeated import realised_columns
from sidelight.report.style import LEGEND, SERIES, axis, from_zero, places, scatter
from sidelight.report.wording import (
    UNPROTECTED,
    budget,
    counted,
    escaped,
    factor,
    labels,
    nats,
    paragraph,
    short,
    whole,
)

Sections = Mapping[str, Section]
MARKS = {"fault": "✕", "warning": "!", "note": "·"}
_SAME = 1e-6
"""Leakage that differs by less is called the same."""
_VERDICTS = {"within": "keeps", "exceeded": "exceeds", "not certified": "is not certified to keep"}
_MOST_DRAWN = 40
_VALUES = 4


def plan_sections(plan: Plan) -> Sections:
    """Return a plan in full: what is collected and how, what may leak, and the reasons."""
    facts = {
        "What it is for": plan.purpose or "not said",
        "Budget of a person's reports": budget(math.fsum(item.channel().epsilon for item in plan.releases)),
        "Limit of every secret": "none set" if plan.limit is None else _limit(plan.limit),
        "Limits are kept for": _decider(plan),
        "Delta": "none: limits are for the worst case" if plan.delta is None else f"{plan.delta:g}",
        "Budgets were set with": plan.origin or "not said",
    }
    names = list(dict.fromkeys((*plan.limits, *plan.reasons)))
    limits = [
        [name, "none" if (own := plan.limit_of(name)) is None else _limit(own), plan.reasons.get(name, "")]
        for name in names
    ]
    parts = {
        "facts": Section("The plan", columns=("what", "as the plan says"), rows=[*facts.items()]),
        "releases": _collected(plan),
    }
    if limits:
        columns = ("secret", "limit", "reason")
        parts["limits"] = Section("Limits of single secrets", columns=columns, rows=limits)
    return parts


def _collected(plan: Plan) -> Section:
    realised = realised_columns(plan)
    columns = ("attribute", "values", "mechanism", "budget", *realised, "times", "parameters", "reason")
    rows = [_release(item, len(realised)) for item in plan.releases]
    return Section("What is collected", columns=columns, rows=rows)


def _release(item: Release, realised: int) -> list[str]:
    own = [f"{key} = {value}" for key, value in item.parameters.items()]
    values = f"{item.attribute.size}: {listed(item.attribute.values, _VALUES)}"
    return [
        item.name, values, item.mechanism, number(item.epsilon), *map(budget, item.realised[:realised]),
        str(item.times), listed(own, _VALUES), item.reason,
    ]  # fmt: skip


def _decider(plan: Plan) -> str:
    if plan.decide_by is not None:
        return NAMES[plan.decide_by]
    usual: AdversaryName = "report" if plan.delta is None else "table"
    return f"{NAMES[usual]}, unless an audit says otherwise"


def _limit(value: float) -> str:
    return "none: it may leak" if math.isinf(value) else f"{number(value)} (odds × {factor(value)})"


def changes_section(found: Sequence[Change]) -> Section:
    """Return what differs between two plans."""
    rows = [[item.subject, item.aspect, item.before or "–", item.after or "–"] for item in found]
    if not rows:
        return Section("What changes", "The plans say the same.")
    return Section("What changes", columns=("of", "what", "before", "after"), rows=rows)


def comparison_sections(result: Comparison) -> Sections:
    """Return what plans leak and are worth, side by side."""
    names = [side.name for side in result.sides]
    leaks = Section(
        "What leaks (nats, and odds)",
        f"In nats, at most, for {result.whose()}, and by how many times the odds are multiplied.",
        _leakage_figure(result),
        ("secret", *names, *_change_title(result)),
        [[secret, *_leak_cells(result, secret)] for secret in result.secrets],
        (*names, *_change_title(result)),
    )
    worth = Section(
        "What the estimates are worth",
        f"Root-mean-square errors of the frequencies to expect, in percentage points, if "
        f"{whole(result.people)} people report; a guess takes all values as equally common.",
        columns=("attribute", *names, "a guess"),
        rows=[[name, *_error_cells(result, name)] for name in result.attributes] + _overall(result),
        numbers=(*names, "a guess"),
    )
    ways = Section(
        "What is collected",
        columns=("attribute", *names),
        rows=[[name, *(_way(side.release(name)) for side in result.sides)] for name in result.attributes],
    )
    parts = {"leakage": leaks, "errors": worth, "collected": ways}
    return parts | ({"changes": changes_section(result.changes)} if len(names) == 2 else {})


def comparison_headline(result: Comparison) -> str:
    """Say in a sentence or two how the plans differ in what they leak and what they are worth."""
    if len(result.sides) != 2:
        each = "; ".join(f"{side.name} {_worst(side)}" for side in result.sides)
        return f"{counted(len(result.sides), 'plan')}: {each}."
    first, last = result.sides
    moves = [move for name in result.secrets if (move := result.move(name)) is not None]
    counts = {"less": sum(move < -_SAME for move in moves), "more": sum(move > _SAME for move in moves)}
    parts = [f"{words} about {_of(count, len(moves))}" for words, count in counts.items() if count]
    said = f"{last.name} leaks as much as {first.name} about every secret"
    if parts:
        said = f"{last.name} leaks {' and '.join(parts)} than {first.name}"
    if first.use is None or last.use is None:
        return f"{said}."
    after, before = hundredths(last.use.error), hundredths(first.use.error)
    rest = "as well" if after == before else f"instead of {before}"
    return f"{said}; its estimates would be off by {after} percentage points {rest}."


def _of(count: int, whole_number: int) -> str:
    return "every secret" if count == whole_number else f"{count} of {counted(whole_number, 'secret')}"


def _worst(side: Side) -> str:
    item = max(side.audit.secrets.values(), key=lambda item: item.decisive.value)
    worth = "" if side.use is None else f", estimates off by {points(side.use.error)}"
    return f"multiplies the odds about {short(item.secret)} by up to {factor(item.decisive.value)}{worth}"


def _change_title(result: Comparison) -> tuple[str, ...]:
    return ("change",) if len(result.sides) == 2 else ()


def _leak_cells(result: Comparison, secret: str) -> list[str]:
    items = [side.secret(secret) for side in result.sides]
    cells = ["not known" if item is None else _leak(item) for item in items]
    return [*cells, _moved(result.move(secret))] if len(items) == 2 else cells


def _leak(item: SecretAudit) -> str:
    value = item.decisive.value
    is_bounded = item.limit is not None and math.isfinite(item.limit)
    judged = f"; {_VERDICTS[item.decision]} {number(item.limit)}" if is_bounded else ""
    return f"{nats(value)} (× {factor(value)}){judged}"


def _moved(move: float | None) -> str:
    if move is None:
        return "–"
    return "the same" if abs(move) <= _SAME else f"{'+' if move > 0 else '−'}{nats(abs(move))}"


def _error_cells(result: Comparison, name: str) -> list[str]:
    errors = [side.error(name) for side in result.sides]
    guesses = [
        item.guess_error
        for side in result.sides
        if side.use is not None
        for item in side.use.attributes
        if item.attribute == name
    ]
    cells = ["not collected" if error is None else hundredths(error) for error in errors]
    return [*cells, hundredths(guesses[-1]) if guesses else "–"]


def _overall(result: Comparison) -> list[list[str]]:
    used = [side.use for side in result.sides]
    guesses = [use.guess_error for use in used if use is not None]
    if not guesses:
        return []
    cells = ["not known" if use is None else hundredths(use.error) for use in used]
    return [["all together", *cells, hundredths(guesses[-1])]]


def _way(release: Release | None) -> str:
    if release is None:
        return "not released"
    asked = "" if release.epsilon is None else f" at {number(release.epsilon)}"
    realised = f"realised {budget(release.channel().epsilon)}"
    return (
        f"{release.mechanism}{asked}{release.often}, {realised}, {counted(release.attribute.size, 'value')}"
    )


def _leakage_figure(result: Comparison) -> Figure | None:
    """Draw every secret's leakage under each plan; infinite figures are left to the table."""
    secrets = result.secrets[:_MOST_DRAWN]
    data, reached = [], []
    called = labels(side.name for side in result.sides)
    for number_of, (name, side) in enumerate(zip(called, result.sides, strict=True)):
        shown = [(side.secret(secret), row) for row, secret in enumerate(secrets)]
        points_of = [
            (item.decisive.value, row, item)
            for item, row in shown
            if item is not None and math.isfinite(item.decisive.value)
        ]
        reached += [value for value, _, _ in points_of]
        hovers = [paragraph(f"{item.secret}, {side.name}", _leak(item)) for _, _, item in points_of]
        marker = {"size": 11, "color": f"@{SERIES[number_of % len(SERIES)]}"}
        x, y = [value for value, _, _ in points_of], [row for _, row, _ in points_of]
        data.append(scatter("markers", x, y, name=name, marker=marker, hovers=hovers))
    if not reached:
        return None
    said = "The leakage of every secret under each plan. The same figures are in the table below."
    down = axis("", **places(labels(secrets)), range=[len(secrets) - 0.5, -0.5], showgrid=True)
    across = axis("leakage in nats", range=from_zero(reached))
    return plotted(
        data, said, 110 + 26 * len(secrets), across, down, headroom=36, showlegend=True, legend=LEGEND
    )


def comparison_page(result: Comparison) -> Page:
    """Return the page of plans side by side."""
    title = f"Sidelight: {' and '.join(side.name for side in result.sides)}"
    told = Section(
        "What to know", columns=("note",), rows=[[note] for note in [*result.notes(), UNPROTECTED]]
    )
    return sections_page(title, comparison_headline(result), {**comparison_sections(result), "notes": told})


def print_sections(sections: Sections, notes: Iterable[str] = (), headline: str = "") -> None:
    """Print what is said, table by table."""
    parts: list[RenderableType] = [headline] if headline else []
    for part in sections.values():
        rows = [[str(cell) for cell in row] for row in part.rows]
        parts.append(table_of(part.title, part.columns, rows, left=part.columns) if rows else part.prose)
    print_parts(parts, notes)


def print_comparison(result: Comparison) -> None:
    """Print plans side by side."""
    print_sections(comparison_sections(result), [*result.notes(), UNPROTECTED], comparison_headline(result))


def comparison_markdown(result: Comparison) -> str:
    """Return plans side by side as Markdown, for a review."""
    return markdown(comparison_sections(result), [*result.notes(), UNPROTECTED], comparison_headline(result))


def check_lines(found: PlanCheck) -> list[str]:
    """Return what a check found, a line each, what matters most first."""
    return [f"{MARKS[finding.level]} {finding.text}" for finding in found.findings]


def markdown(sections: Sections, notes: Iterable[str] = (), headline: str = "") -> str:
    """Return what is said as Markdown; texts of the data are never taken for markup."""
    parts = [f"# {escaped(headline)}"] if headline else []
    for part in sections.values():
        parts += [f"## {escaped(part.title)}", *([escaped(part.prose)] if part.prose else [])]
        if part.rows:
            heads, line = [escaped(column) for column in part.columns], ["---"] * len(part.columns)
            cells = [[escaped(str(cell)) for cell in row] for row in part.rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in (heads, line, *cells)))
    said = "\n".join(f"- {escaped(note)}" for note in notes)
    return "\n\n".join([*parts, said] if said else parts)
