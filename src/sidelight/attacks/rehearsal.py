"""A rehearsal: the Bayes attack on reports whose true records are at hand, with a belief learnt apart.

An attacker who has counted the very people whom he attacks knows each rare record of theirs already. That is
no attack on the release, and it flatters him. So half of the people teach the belief and the other half are
attacked, unless the belief comes from another table or is asked to include everyone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sidelight.attacks.attack import attack
from sidelight.attacks.bayes import BayesAttacker
from sidelight.attacks.result import AttackComparison
from sidelight.belief import Belief
from sidelight.foundation.arrays import Codes, Mask, Positions
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import file_name
from sidelight.protocols import RecordReports
from sidelight.sources import Table
from sidelight.sources.counts import distinct_records

BeliefFrom = Literal["others", "everyone"]
FEWEST = 200
"""Fewer people are not divided: too few would be left to learn from, and to measure by."""
_SEED = 0
"""Of the division, so that the same people are attacked again; it protects nobody."""


@dataclass(frozen=True, eq=False)
class _Learnt:
    """A belief, the positions of those who are attacked (None: everyone), and what to know about it."""

    belief: Belief
    people: Positions | None
    is_apart: bool
    note: str


def rehearse(
    reports: RecordReports,
    table: Table,
    secret: str,
    *,
    rows: Mask | None = None,
    belief_from: BeliefFrom | Table = "others",
    confidence: float = 0.95,
) -> AttackComparison:
    """Infer a secret from reports by a belief learnt apart from the people attacked, and measure it.

    Args:
        reports: of people in the order of the table.
        table: the true records.
        secret: the attribute that is attacked.
        rows: which of the table's people reported, where not everyone did.
        belief_from: "others", half of the people, who are not attacked; "everyone", so that the belief
            includes those attacked; or a table of other people.
        confidence: of the intervals.
    """
    codes = table.codes()
    senders = np.arange(table.rows) if rows is None else np.flatnonzero(rows)
    if len(senders) != len(reports):
        raise InputError(
            f"there are {len(reports)} released records but {len(senders)} true ones; give the truth of "
            "the same records in the same order."
        )
    learnt = _learn(table, codes, senders, belief_from)
    belief = learnt.belief if learnt.belief.kind == "joint" else Belief.tree_of(learnt.belief)
    result = attack(
        reports, BayesAttacker(belief), secret=secret, truth=codes[senders][:, table.schema.index(secret)],
        people=learnt.people, confidence=confidence,
    )  # fmt: skip
    if learnt.is_apart:
        # What a posterior expects to lose is a limit only where its belief is the truth, not an estimate.
        result = replace(result, limit=None)
    note = f"For an attacker who knows the distribution of {learnt.note} ({belief.kind})."
    return AttackComparison(f"Inference of {secret} from reports", {"Bayes": result}, (note,))


def _learn(table: Table, codes: Codes, senders: Positions, belief_from: BeliefFrom | Table) -> _Learnt:
    """Return the belief and whom it is to be used on."""
    if isinstance(belief_from, Table):
        belief = Belief.from_data(belief_from)
        return _Learnt(belief, None, True, f"{belief.source}, other people than those attacked")
    if belief_from == "everyone" or len(senders) < FEWEST:
        belief = Belief.from_data(table)
        few = f" (with fewer than {FEWEST} people they are not divided)" if belief_from == "others" else ""
        return _Learnt(belief, None, False, f"{belief.source}, which includes the people attacked{few}")
    order = np.random.default_rng(_SEED).permutation(len(senders))
    people = np.sort(order[: len(senders) // 2])
    teachers = np.ones(table.rows, dtype=np.bool_)
    teachers[senders[people]] = False
    records = distinct_records(table.schema, codes[teachers], np.ones(int(teachers.sum())))
    source = file_name(table.source.label)
    said = f"{len(codes) - len(people)} people of {source}, and attacks the other {len(people)}"
    return _Learnt(Belief.from_records(records, source=source), people, True, said)
