"""Options of `audit` about the ways back under its limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import sidelight as sl
from sidelight.cli.common import Shown
from sidelight.cli.options import flag
from sidelight.foundation.errors import InputError, check_number, check_whole, unknown
from sidelight.foundation.terminal import say, say_json


@dataclass(frozen=True)
class Remedied:
    """Ways back under the limits."""

    remedies: bool = flag(False, "Also find the cheapest ways back under the limits.", "--remedies")
    remedy: str | None = flag(
        None,
        "Write the plan of this remedy to --save-plan: its number in the list, or the first of a kind: "
        "'withhold', 'budgets', 'coarsen', 'sample', 'several'.",
    )
    people: int | None = flag(None, "With --remedies: how many people will report [the table's rows].")
    within: float | None = flag(
        None, "With --remedies: the wanted precision of every attribute, as 0.02 for 2 percentage points."
    )

    @property
    def is_asked(self) -> bool:
        """Whether remedies are to be found."""
        return self.remedies or self.remedy is not None

    def check(self, save_plan: Path | None, min_support: int) -> None:
        """Refuse before the work what could not be found or written after it."""
        if self.people is not None:
            check_whole("people", self.people, at_least=1)
        if self.within is not None:
            check_number("within", self.within, above=0, below=1)
        if self.remedy is not None and save_plan is None:
            raise InputError("--remedy needs a file for its plan; add --save-plan plan.toml.")
        given = {"--people": self.people, "--within": self.within}
        if not self.is_asked and (name := next((key for key, value in given.items() if value), None)):
            raise InputError(f"{name} is for remedies; add --remedies, or leave it out.")
        if self.is_asked and min_support:
            raise InputError(
                "--min-support hides figures that remedies would show; leave it or --remedies out."
            )

    def check_limits(self, plan: sl.Plan, secrets: list[str]) -> None:
        """Refuse before the work remedies without a limit to come back under."""
        limited = secrets or list(plan.limits)
        if self.is_asked and plan.limit is None and not any(name in plan.limits for name in limited):
            raise InputError("remedies need a limit to come back under; add --limit 1 or --secret NAME=1.")

    def found(self, audit: sl.Audit, seed: int | None) -> sl.remedying.Remedies:
        """Find the remedies of an audit."""
        return sl.remedies(audit, people=self.people, within=self.within or 0.02, seed=seed)

    def chosen(self, found: sl.remedying.Remedies) -> sl.remedying.Remedy:
        """Return the remedy that was asked for, by its number or kind."""
        text = str(self.remedy)
        if text.isdecimal():
            return found[int(text)]
        kinds = list(dict.fromkeys(item.kind for item in found))
        if text not in kinds:
            raise unknown("remedy", text, [*kinds, *(str(number) for number in range(1, len(found) + 1))])
        return next(item for item in found if item.kind == text)


def show_remedies(found: sl.remedying.Remedies, table: sl.Table, shown: Shown) -> None:
    """Write the report that was asked for, and print the audit and its remedies as JSON or tables."""
    written = sl.write_report(found, shown.report) if shown.report else None
    if shown.json:
        plain = found.audit.to_dict() | {"remedies": found.to_dict()}
        say_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
        return
    sl.report.print_remedies(found)
    sl.report.print_audit(found.audit, table)
    if written:
        say(f"The report is in {written}.")
