"""One round of a panel: from a table of those who take part to their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidelight.foundation.arrays import AnyCodes, Positions
from sidelight.foundation.errors import InputError, check_is, invalid
from sidelight.foundation.progress import track
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms import Reports
from sidelight.mechanisms.longitudinal import crowd_memos, sent_again
from sidelight.protocols.groups import ReportedGroup
from sidelight.protocols.panel import Panel
from sidelight.protocols.panel_memory import PanelMemory
from sidelight.protocols.protocol import check_records
from sidelight.protocols.records import PanelRound, RecordReports

NO_MEMORY = (
    "a round of a panel whose responses are kept, or whose people are divided, needs its `memory` "
    "(--memory): PanelMemory.new(panel) begins one, and every round goes on with it."
)


def panel_reports(
    panel: Panel, number: int, records: AnyCodes, people: Sequence[str] | None = None,
    memory: PanelMemory | None = None, *, seed: int | None = None,
) -> RecordReports:  # fmt: skip
    """Return the reports of one round, of the records of those who take part.

    Args:
        panel: how people are asked.
        number: the round, from 1 on.
        records: codes in the order of the round's protocol, shape (people, attributes).
        people: a name for each record, the same in every round; the number of its row by default. Names
            decide which memory a record is reported from, and are never written.
        memory: the panel's, which goes on from round to round.
        seed: for simulation; without one the noise is secure.
    """
    protocol = panel.protocol(number)
    if memory is None and panel.needs_memory:
        raise InputError(NO_MEMORY)
    if memory is not None:
        check_is("memory", memory, PanelMemory, "PanelMemory.new(panel) begins one.")
        memory.check(panel, number, is_simulation=seed is not None)
    checked = check_records(records, protocol.schema)
    names = [str(row) for row in range(len(checked))] if people is None else list(map(str, people))
    if len(names) != len(checked):
        raise invalid("people", f"a name for each of {len(checked)} records", f"{len(names)} names")
    if memory is not None and panel.division == "people":
        drawn = memory.in_round(names, number)
        checked, names = checked[drawn], [name for name, is_in in zip(names, drawn, strict=True) if is_in]
    if not names:
        raise InputError(f"nobody reports in round {number}; ask more people.")
    rows = None if memory is None else memory.take_part(names, number)
    maker = _Maker(panel, number, memory, names, rows, derive_seed(seed, f"round {number}"))
    groups = track(protocol.groups, "attributes")
    parts = tuple(maker.part(group, group.codes(checked, protocol.schema)) for group in groups)
    stamp = PanelRound(
        panel="" if memory is None else memory.name, number=number, rounds=panel.rounds, people=len(names),
        stayed=None if memory is None else memory.stayed(number), kept=maker.kept(protocol.labels),
        epoch=panel.epoch, follow_changes=panel.follow_changes, division=panel.division,
    )  # fmt: skip
    return RecordReports(protocol, parts, (None,) * len(parts), len(names), seed is not None, round=stamp)


class _Maker:
    """Makes the parts of a round's reports."""

    def __init__(
        self, panel: Panel, number: int, memory: PanelMemory | None, people: Sequence[str],
        rows: Positions | None, seed: int | None,
    ) -> None:  # fmt: skip
        self.panel, self.number, self.memory = panel, number, memory
        self.rows, self.seed = rows, seed
        self.secrets = memory.secrets(people) if memory is not None and panel.kept else []

    def kept(self, labels: Sequence[str]) -> list[str]:
        """Return which of the parts rest on kept responses."""
        return [label for label in labels if label in self.panel.kept]

    def part(self, group: ReportedGroup, codes: AnyCodes) -> Reports:
        """Return everybody's report of one attribute."""
        seed, mechanism = derive_seed(self.seed, group.label), group.randomiser
        if group.label not in self.panel.kept or self.memory is None or self.rows is None:
            return mechanism.randomise(codes, seed=seed)
        held = codes
        if not self.panel.follow_changes:
            held = self.memory.hold(group.label, self.rows, codes, self.number)
        attribute = self.panel.plan[group.label].attribute
        memos = crowd_memos(
            mechanism, attribute, self.secrets, self.panel.epoch_of(self.number), np.asarray(held)
        )
        return replace(sent_again(mechanism, memos, seed), is_simulation=seed is not None)
