"""What differs between two plans, one line for each thing that somebody may want to discuss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sidelight.foundation.html import listed
from sidelight.plan import Plan, Release
from sidelight.schema import Attribute

WHOLE = "the plan"
"""The subject of a change that concerns no single attribute."""
_MOST_LISTED = 6
_NOTABLE = 1e-3
"""A realised budget is named beside a nominal one that differs by this share."""


@dataclass(frozen=True)
class Change:
    """One difference between two plans.

    Attributes:
        subject: an attribute or a secret, or the plan as a whole.
        aspect: what of it differs.
        before: what the first plan says, in words; empty where it says nothing.
        after: what the second plan says.
    """

    subject: str
    aspect: str
    before: str
    after: str


def changes(before: Plan, after: Plan) -> tuple[Change, ...]:
    """Return what differs: of the plan as a whole, of every attribute, of every secret's limit and reason.

    Of an attribute that only one plan releases, that is the change.
    """
    found = [*_differences(WHOLE, _whole(before), _whole(after))]
    for name in dict.fromkeys((*before.names, *after.names)):
        ours, theirs = (plan[name] if name in plan.names else None for plan in (before, after))
        found += _release_changes(name, ours, theirs)
    named = (*before.limits, *after.limits, *before.reasons, *after.reasons)
    for name in dict.fromkeys(named):
        found += _differences(name, _secret(before, name), _secret(after, name))
    return tuple(found)


def _differences(subject: str, before: dict[str, str], after: dict[str, str]) -> Iterator[Change]:
    for aspect, said in before.items():
        if said != after[aspect]:
            yield Change(subject, aspect, said, after[aspect])


def _whole(plan: Plan) -> dict[str, str]:
    return {
        "purpose": plan.purpose,
        "limit of every secret": number(plan.limit),
        "delta": number(plan.delta),
        "limits kept for": plan.decide_by or "",
        "origin of the budgets": plan.origin,
    }


def _secret(plan: Plan, name: str) -> dict[str, str]:
    """Return what a plan says of a secret; a limit that is the one for all is told as that."""
    own = number(plan.limits[name]) if name in plan.limits else ""
    usual = f"{number(plan.limit)} (that of every secret)" if plan.limit is not None else "none"
    return {"limit": own or usual, "reason of the limit": plan.reasons.get(name, "")}


def _release_changes(name: str, before: Release | None, after: Release | None) -> Iterator[Change]:
    if before is None or after is None:
        yield Change(name, "released", *("no" if item is None else way(item) for item in (before, after)))
        return
    yield from _differences(name, _release(before), _release(after))
    yield from _alphabet_changes(before.attribute, after.attribute)


def _release(item: Release) -> dict[str, str]:
    return {
        "mechanism": item.mechanism,
        "budget": spent(item),
        "reports of a person": str(item.times),
        "noise of further reports": "kept" if item.keeps else "fresh",
        "parameters": ", ".join(f"{key} = {value}" for key, value in item.parameters.items()),
        "reason": item.reason,
    }


def _alphabet_changes(before: Attribute, after: Attribute) -> Iterator[Change]:
    """Yield how the values differ: those that only one plan knows, or their order."""
    if before.kind != after.kind:
        yield Change(before.name, "kind", before.kind, after.kind)
    if (before.values, before.edges) != (after.values, after.edges):
        yield Change(before.name, "values", _values(before, after), _values(after, before))
    if before.missing != after.missing:
        yield Change(before.name, "missing values", before.missing, after.missing)


def _values(attribute: Attribute, other: Attribute) -> str:
    """Say how many values there are, and which of them the other has not; only its order, if that differs."""
    only = [value for value in attribute.values if value not in other.values]
    if not only and attribute.size == other.size:
        return f"in this order: {listed(attribute.values, _MOST_LISTED)}"
    return f"{attribute.size} values{f', {listed(only, _MOST_LISTED)} among them' if only else ''}"


def way(release: Release) -> str:
    """Say how an attribute is released: its mechanism, its budget, how often."""
    at = f" at {spent(release)}" if spent(release) else ""
    return f"{release.mechanism}{at}{release.often}"


def spent(release: Release) -> str:
    """Write the budget of a report, beside the realised one where they differ; nothing for withheld ones."""
    realised = release.randomiser().epsilon
    if release.epsilon is None:
        return f"realised {number(realised)}" if realised else ""
    is_other = not math.isclose(realised, release.epsilon, rel_tol=_NOTABLE)
    return f"{number(release.epsilon)}{f' (realised {number(realised)})' if is_other else ''}"


def number(value: Any) -> str:
    """Write a number as a plan's file has it, shortened; nothing where there is none.

    >>> number(0.25), number(None), number(1 / 3), number(math.inf)
    ('0.25', '', '0.333333', 'without limit')
    """
    if value is None:
        return ""
    return "without limit" if value == math.inf else f"{value:.6g}"
