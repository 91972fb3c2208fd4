"""Label collections that the tests of the service share, and what devices send for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import sidelight as sl
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import LabelledRows, LabelSettings
from sidelight.labels.collection import deal
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.tree_rounds import Round as Asked
from sidelight.mechanisms import Reports
from sidelight.plan import Plan, Release
from sidelight.protocols import Panel
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports
from sidelight.service.batches import Submission
from sidelight.service.collector import submission
from sidelight.service.label_basis import Basis
from sidelight.service.label_design import LabelDesign
from sidelight.service.panels import PanelDesign
from sidelight.service.rounds import Round
from sidelight.service.task import Pace, Task, Terms
from sidelight.transport.wire import Wire

SCHEMA = sl.Schema(
    (
        sl.categorical("work", ("farm", "office", "school")), sl.categorical("region", ("n", "e", "s", "w")),
        sl.numeric("age", [30.0, 60.0]), sl.categorical("ill", ("no", "yes")),
    )
)  # fmt: skip


def label_task(kind: str = "bayes", pace: Pace | None = None, crowd: int = 1, **settings: object) -> Task:
    """A label collection: kHR at omega 1 by default."""
    given = {"epsilon": 2.0, "omega": 1.0, **settings}
    depth = int(given.pop("depth", 3))
    design = LabelDesign(SCHEMA, kind, LabelSettings(**given), depth)
    return Task(
        design, "To find who is ill.", "clinic@example.org", design.rounds, Terms(smallest_crowd=crowd), pace
    )


def tree_round(made: Task, number: int, tree: DecisionTree) -> Round:
    """The round of a tree task that decides about this tree."""
    basis = Basis(made.design._given().omegas, tree)
    return Round(made.id, number, made.design._protocol(number, basis), None, basis)


def panel_task(rounds: int = 3) -> Task:
    """A panel of one question, whose response is kept."""
    smokes = sl.categorical("smokes", ("no", "yes"))
    design = PanelDesign(Panel(Plan((Release(smokes, "l-grr", 2.0, rounds),))))
    return Task(design, "To see who stops.", "clinic@example.org", rounds, Terms(smallest_crowd=1))


def ill_people(number: int, seed: int = 1) -> LabelledRows:
    """People whose illness goes with their work and their age."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, number) for size in SCHEMA.sizes[:-1]], axis=1).astype(np.uint16)
    chance = 0.1 + 0.55 * (codes[:, 0] == 0) + 0.25 * (codes[:, 2] == 2)
    labels = (rng.random(number) < chance).astype(np.uint16)
    return LabelledRows(codes, labels, SCHEMA.sizes[:-1], 2, (False, False, True))


def of_parts(protocol: Protocol, parts: Sequence[Reports]) -> RecordReports:
    """The reports of a round in which everyone sends one part, in the order of the parts."""
    ends = np.cumsum([0, *map(len, parts)])
    senders = tuple(np.arange(a, b) for a, b in pairwise(ends))
    return RecordReports(protocol, tuple(parts), senders, int(ends[-1]))


def packed(reports: RecordReports, seed: int) -> list[Submission]:
    """What devices upload of these reports, with ids that follow from the seed."""
    rng = np.random.default_rng(seed)
    return [submission(rng.bytes(16), payload) for payload in Wire(reports.protocol).pack(reports)]


def turn_reports(
    asked: Asked, rows: LabelledRows, groups: np.ndarray, seed: int
) -> tuple[list[Reports], np.ndarray]:
    """The reports of a tree's round as `learning.answer` makes and adds them up, and the groups after it."""
    starts = np.cumsum([0, *(len(options) for options in asked.choices)])
    after, parts, stream = np.empty(len(rows), dtype=np.int64), [], f"round/{asked.number}"
    for number, options in enumerate(asked.choices):
        members = np.flatnonzero(groups == number)
        drawn = deal(len(members), len(options), seed=seed, stream=f"{stream}/{number}")
        after[members] = starts[number] + drawn
        for place, choice in enumerate(options):
            if choice.question is not None and choice.response is not None:
                part = rows[members[drawn == place]]
                noise = derive_seed(seed, f"{stream}/{number}/{place}")
                cells = choice.question.code(part.codes, asked.tree)
                parts.append(choice.response.randomise(cells, part.labels, seed=noise))
    return parts, after
