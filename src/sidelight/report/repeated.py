"""What repetition spends and whom it exposes, in words and cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sidelight.auditing import Audit, Changing
from sidelight.auditing.changing import MOST_TOLD
from sidelight.leakage.over_time import Linking, Repetition
from sidelight.plan import Plan
from sidelight.report.wording import decimals

REPEATED = (
    "attribute", "reports", "noise", "one report", "all of them", "unlimited", "a change costs",
    "a change shows", "same person or not: right",
)  # fmt: skip
"""The columns of the table."""


def realised_columns(plan: Plan) -> tuple[str, ...]:
    """Return the columns of what is really spent: of all reports too where there are several.

    They are the first ones of `Release.realised`.
    """
    return ("realised: one report", "all reports", "unlimited reports") if plan.repeats else ("realised",)


def repeated_cells(item: Repetition) -> list[str]:
    """Return an attribute's cells, in the order of `REPEATED`."""
    noise = "fresh each time" if item.memory == "fresh" else "on a kept response"
    noise = "the same response again" if item.memory == "kept" and math.isinf(item.instant) else noise
    seen = "–" if item.change_seen is None else percent(item.change_seen)
    budgets = [decimals(value) for value in (item.first, item.together, item.unlimited, item.instant)]
    first = [item.attribute, str(item.times), noise]
    return [*first, *budgets, seen, linked(item.linking)]


def linked(linking: Linking) -> str:
    """Write how often two batches are rightly told to be of one person or of two; half is a guess.

    >>> linked(Linking(5, 0.4957, "exact", 0.0, 0.75)), linked(Linking(9, 0.75, "certified", 0.0, 0.75))
    ('75 %', 'at most 88 %')
    """
    sign = {"exact": "", "estimate": "about "}.get(linking.kind, "at most ")
    return f"{sign}{percent(linking.same_or_not)}"


def percent(share: float) -> str:
    """Write a share of cases without decimals, and never as certain what is not.

    >>> percent(0.607), percent(0.9999), percent(1.0)
    ('61 %', 'over 99 %', '100 %')
    """
    return "over 99 %" if 0.995 <= share < 1 else f"{share:.0%}".replace("%", " %")


CHANGING = (
    "secret", "told most of", "at most", "how", "at delta", "unlimited rounds, at most", "verdict",
)  # fmt: skip
"""The columns of the table of values that change."""


def changing_cells(item: Changing) -> list[str]:
    """Return a secret's cells, in the order of `CHANGING`."""
    worst, told = item.worst, item.at_delta
    at_delta = "–" if told is None else f"{decimals(told.value)} ({told.kind})"
    unlimited = "–" if item.unlimited is None else decimals(item.unlimited)
    limit = "" if item.limit is None else f" (limit {item.limit:g})"
    found = f"{decimals(worst.upper.value)} ({worst.upper.kind})"
    return [
        item.over_time.secret, worst.secret, found, worst.upper.method, at_delta, unlimited,
        f"{item.outcome}{limit}",
    ]  # fmt: skip


def changing_notes(audit: Audit) -> list[str]:
    """Say what the figures of values that change are of, and of what there are none."""
    items = audit.changing
    if not items:
        return []
    epoch = items[0].over_time.epoch
    frozen = "every round reports the value of the day"
    if epoch is not None:
        frozen = f"a value is frozen for {epoch} rounds, and each epoch has a new memory"
    said = [f"Values that change: figures of all reports, about the round that is told most of; {frozen}."]
    broken = [item.over_time.secret for item in items if item.outcome in ("exceeded", "not certified")]
    if broken:
        said.append(
            f"Where values change, the limit of {', '.join(broken)} is not certified to be kept, whatever is "
            "said of values that stay the same."
        )
    if items[0].beyond:
        said.append(
            f"Reports of attributes that the chain does not have add their whole budgets, "
            f"{decimals(items[0].beyond)} in all."
        )
    outside = [name for name in audit if name not in {item.over_time.secret for item in items}]
    if outside:
        said.append(
            f"The chain says nothing about {', '.join(outside)}: what is said of them holds for values that "
            "stay the same."
        )
    if audit.delta is not None and items[0].at_delta is None:
        said.append(f"Values that change have figures at delta for {MOST_TOLD} rounds at most; here is none.")
    return said


def repeated_notes(items: Sequence[Repetition]) -> list[str]:
    """Say what a reader must know about values that change and people who can be followed."""
    if not items:
        return []
    names = [item.attribute for item in items if item.memory == "fresh"]
    said = ["Totals are of all reports that are sent, of values that stay the same. For values that change, "
            "freeze them in epochs; a chain (--chain) says what they leak."]  # fmt: skip
    if names:
        told = ", ".join(names)
        said.append(
            f"{told}: with fresh noise budgets grow with every report; a kept response would bound them."
        )
    if any(item.memory == "kept" for item in items):
        said.append("A kept response protects the value and lets reports of a person be linked.")
    return said
