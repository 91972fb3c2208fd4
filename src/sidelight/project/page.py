"""The first page of a run: what came out, in words, and links to all that was written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sidelight.foundation.files import file_name
from sidelight.project.file import Project
from sidelight.project.summary import Facts, answers_of
from sidelight.report.page import Page, render

_FILES: dict[str, tuple[tuple[str, str], ...]] = {
    "audit": (("audit.html", "audit"), ("audit.json", "figures")),
    "remedies": (
        ("remedies.html", "remedies"),
        ("remedy-1.toml", "first"),
        ("remedy-2.toml", "second"),
        ("remedy-3.toml", "third"),
        ("remedies.json", "figures"),
    ),
    "plan": (
        ("calibration.html", "calibration"),
        ("plan.toml", "plan file"),
        ("assessment.md", "assessment"),
        ("calibration.json", "figures"),
    ),
    "collection": (),
    "estimates": (
        ("collection.html", "estimates"),
        ("estimates.csv", "table"),
        ("estimates.json", "figures"),
    ),
    "attack": (("attack.html", "attack"), ("attack.json", "figures")),
}
"""The files that each step may have written, with what they are called."""


def index_html(project: Project, titles: Mapping[str, str], facts: Facts, files: Collection[str]) -> str:
    """Return the first page as HTML; steps that are not done yet say so."""
    context: dict[str, Any] = {
        "answers": answers_of(facts), "headline": _headline(facts, titles), "purpose": project.purpose,
        "steps": [_row(name, title, facts, files) for name, title in titles.items()],
        "secrets": _secrets(project, facts), "source": file_name(project.source),
        "is_done": facts.keys() >= titles.keys(), "facts": facts, "file": project.file.name,
    }  # fmt: skip
    return render(Page(f"Sidelight report on {file_name(project.source)}", "project.html.j2", context))


def _headline(facts: Facts, titles: Mapping[str, str]) -> str:
    """Say in one sentence whether this may be collected."""
    if not facts.keys() >= titles.keys():
        return "This run is not finished"
    plan, audit, use = facts["plan"], facts["audit"], facts["estimates"]["verdict"]
    worth = {
        "useful": "its estimates are useful",
        "worse than guessing": "but its estimates are worse than guessing",
        "hardly better than guessing": "but its estimates hardly beat guessing",
    }[use]  # fmt: skip
    if not audit["judged"]:
        return f"No limit is set, so nothing is judged; {worth.removeprefix('but ')}"
    if plan["calibrated"] and plan["keeps"]:
        return f"The calibrated plan keeps every limit, {'and ' * (use == 'useful')}{worth}"
    if not audit["over"]:
        return f"The plan keeps every limit as stated, {'and ' * (use == 'useful')}{worth}"
    return "No plan was found that is certified to keep every limit"


def _row(name: str, title: str, facts: Facts, files: Collection[str]) -> dict[str, Any]:
    """Return a step as the page lists it."""
    links = [(path, words) for path, words in _FILES[name] if path in files] if name in facts else []
    return {
        "title": title[0].upper() + title[1:], "links": links,
        "seconds": facts[name]["seconds"] if name in facts else None,
        "said": _said(name, facts[name]) if name in facts else "not done yet",
    }  # fmt: skip


def _said(name: str, facts: Mapping[str, Any]) -> str:
    """Say in a few words what a step did."""
    if name == "audit":
        return (
            f"{facts['records']:,} records, {facts['attributes']} attributes, {len(facts['secrets'])} secrets"
        )
    if name == "remedies":
        return str(facts["said"])
    if name == "plan":
        return "budgets calibrated" if facts["calibrated"] else facts["reason"]
    if name == "collection":
        return f"{facts['people']:,} reports, made and kept on this machine; nothing was sent"
    if name == "estimates":
        return f"{facts['verdict']}; in the simulation a mean squared error of {facts['simulated_error']:.3g}"
    return f"{len(facts['attacked'])} secrets attacked"


def _secrets(project: Project, facts: Facts) -> list[dict[str, Any]]:
    """Return the secrets as the page lists them, worst first, with the reasons that the project gives."""
    told = facts["audit"]["secrets"] if "audit" in facts else []
    reasons = {name: item.reason for name, item in project.secrets.items()}
    return [{**item, "reason": reasons.get(item["secret"], "")} for item in told]
