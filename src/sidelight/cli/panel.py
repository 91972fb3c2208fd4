"""`collect --round` and `estimate` of several rounds: the same people asked again and again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sidelight as sl
from sidelight.cli.common import first_given, read_table
from sidelight.cli.options import Reading, flag
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_not_read

if TYPE_CHECKING:
    from sidelight.protocols.records import Division


@dataclass(frozen=True)
class Asking:
    """Which round of a panel is collected, and what its rounds have in common."""

    round: int | None = flag(None, "Of a plan whose `times` are above 1: the round, from 1 on.")
    memory: Path | None = flag(
        None, "With --round: the panel's memory, kept between rounds and secret; the first round makes it."
    )
    identifier: str | None = flag(
        None,
        "With --round: the column that names people [the number of the row]; it is in no report.",
        "--id",
    )
    division: str | None = flag(
        None, "With --round: what rounds divide, 'people', 'budget' (each person's) or 'none' [none]."
    )
    epoch: int | None = flag(None, "With --round: how many rounds a kept response lasts [all].")
    follow_changes: bool = flag(
        False, "With --round: report new values within an epoch too; else they wait.", "--follow-changes"
    )

    def check(self, plan: Path | None, batches: int | None) -> None:
        """Refuse before the work what says something about no round."""
        options = {
            "--memory": self.memory, "--id": self.identifier, "--division": self.division,
            "--epoch": self.epoch, "--follow-changes": self.follow_changes or None,
        }  # fmt: skip
        if self.round is None:
            if option := first_given(options):
                raise InputError(f"{option} goes with --round; say which round it is, or leave it out.")
            return
        if plan is None:
            raise InputError("--round needs --plan, a plan whose `times` say how many rounds there are.")
        if batches is not None:
            raise InputError("--round writes one file, and --batches a folder; leave one out.")

    def panel(self, plan: sl.Plan) -> sl.protocols.Panel:
        """Return the panel that the plan and the options describe."""
        division: Division = self.division or "none"  # type: ignore[assignment]
        return sl.protocols.Panel(plan, division, self.epoch, self.follow_changes)

    def remembered(self, panel: sl.protocols.Panel, seed: int | None) -> sl.protocols.PanelMemory | None:
        """Return the memory to go on with, a new one for a panel that begins; None where none is named."""
        if self.memory is None:
            if panel.needs_memory:
                from sidelight.transport.panel_collection import NO_MEMORY

                raise InputError(NO_MEMORY)
            return None
        if self.memory.exists() or (self.round or 0) > 1:
            return sl.protocols.PanelMemory.read(self.memory)
        if not self.memory.absolute().parent.is_dir():
            raise InputError(f"{self.memory} cannot be written: its folder does not exist.")
        return sl.protocols.PanelMemory.new(panel, seed)


def collect_panel_round(
    data: str, plan: Path, asking: Asking, reading: Reading, output: Path, seed: int | None
) -> tuple[sl.RecordReports, list[str]]:
    """Return the reports of a round, its memory written before them, and notes about it.

    The memory is on disk first: if what follows fails, the round is lost, and nobody reports twice.
    """
    for path in (output, asking.memory):
        if path is not None:
            check_not_read(path, data, plan, *([asking.memory] if path is output else []))
    panel = asking.panel(sl.Plan.read(plan))
    number = panel.check_round(asking.round)
    memory = asking.remembered(panel, seed)
    if memory is not None:
        memory.check(panel, number, is_simulation=seed is not None)
    asked = replace(panel.plan, releases=tuple(r for r in panel.plan.releases if r.times >= number))
    named = [] if asking.identifier is None else [asking.identifier]
    if named and named[0] in asked.names:
        raise InputError(f"--id {named[0]} is released by the plan; people need a name that nobody reports.")
    # As a category it is read like any other column; whether it tells everybody apart is checked below.
    kinds = [*(reading.kinds or []), *(f"{name}=categorical" for name in named)]
    columns = [*(reading.column or asked.names), *named]
    table = read_table(data, replace(reading, column=columns, kinds=kinds), asked)
    people = [sl.sources.identifiers(table, name) for name in named]
    reports = sl.collect(
        table, panel, seed=seed, round=number, memory=memory, people=people[0] if people else None
    )
    if memory is not None and asking.memory is not None:
        memory.write(asking.memory)
    return reports, round_notes(panel, reports, asking)


def round_notes(panel: sl.protocols.Panel, reports: sl.RecordReports, asking: Asking) -> list[str]:
    """Say which round it is, who stayed, and what all rounds spend."""
    stamp = reports.round
    if stamp is None:
        return []
    stayed = ""
    if stamp.stayed:
        stayed = f"; {stamp.stayed[-1]} of its {stamp.people} people had reported in round {stamp.number - 1}"
    said = [f"This is round {stamp.number} of {stamp.rounds}{stayed}."]
    if stamp.stayed and not any(stamp.stayed) and panel.division != "people":
        said.append("None of them reported before; if some should have, --id or --memory is another panel's.")
    spent = panel.spent
    words = f"spend at most {spent:.4g} nats of a person" if math.isfinite(spent) else "may say everything"
    said.append(f"All rounds together {words}, whatever the values do.")
    if asking.memory is not None:
        said.append(
            f"Keep {asking.memory} for the next round, and keep it secret: whoever has it can undo noise."
        )
    if asking.identifier is None and panel.needs_memory:
        said.append("Row i was taken for the same person in every round; name a column with --id if not.")
    return said


def estimate_panel(
    reports: list[sl.RecordReports], settings: dict[str, Any], truth: list[str], encoding: str
) -> sl.estimation.RoundEstimates:
    """Return the estimates over time, beside the truth of every round where it is at hand."""
    if settings["estimator"] not in ("best", "inversion"):
        raise InputError(
            f"--estimator {settings['estimator']} is for a single collection; over time estimates are "
            "unbiased, so that changes are."
        )
    found = sl.estimate_rounds(reports, confidence=settings["confidence"], about=settings["about"])
    if not truth:
        return found
    if len(truth) != len(found.numbers):
        raise InputError(
            f"--truth is given {len(truth)} times, and there are {len(found.numbers)} rounds; name the true "
            "records of each, in the order of the rounds."
        )
    pairs = zip(found.numbers, truth, strict=True)
    return found.against({number: _true(found, number, path, encoding) for number, path in pairs})


def _true(found: sl.estimation.RoundEstimates, number: int, path: str, encoding: str) -> Mapping[str, Any]:
    """Return the true frequencies of what a round asked for."""
    schema = sl.Schema(tuple(item for item in found.schema if number in found.series[item.name][0]))
    return sl.transport.true_frequencies(sl.read(path, schema=schema, encoding=encoding), schema)


def are_rounds(reports: list[sl.RecordReports]) -> bool:
    """Whether these are reports of several rounds."""
    return len({item.round.number for item in reports if item.round is not None}) > 1
