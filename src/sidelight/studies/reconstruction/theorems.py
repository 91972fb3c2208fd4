"""Reconstruction, Theorems 1 and 2: the smallest case in which each falls short."""

from __future__ import annotations

from functools import partial

import numpy as np

from sidelight.belief import Belief
from sidelight.leakage import reconstruction_advanced, reconstruction_sum, total_leakage
from sidelight.leakage.divergence import delta_at
from sidelight.mechanisms import create
from sidelight.studies.register import beside
from sidelight.studies.study import Reading, StudyResult, Work, against_exact

_SLACK = 1e-6


def _theorems(_quick: bool) -> dict[str, tuple[float, float]]:
    """Return each theorem's published figure and the exact one, for C = A + B with fair bits, all reported.

    Of Theorem 1 the figures are budgets; of Theorem 2 the probability that its budget fails.
    """
    joint = [[[0.25, 0, 0], [0, 0.25, 0]], [[0, 0.25, 0], [0, 0, 0.25]]]
    belief = Belief.from_joint(joint, ["a", "b", "c"])
    channels = {name: create("grr", belief.schema[name].size, 1.0).channel for name in "abc"}
    exact = total_leakage(belief, channels, "c", "exact").value
    stated = reconstruction_sum(1.0, [1.0, 1.0]).value
    return {"theorem 1": (stated, exact), "theorem 2": (_SLACK, _failure(belief))}


def _failure(belief: Belief) -> float:
    """Return how often the budget that Theorem 2 states fails: budget 1 on C, 0.1 on A and B."""
    budgets = {"a": 0.1, "b": 0.1, "c": 1.0}
    cells = belief.joint(["c", "a", "b"])
    law = {name: create("grr", belief.schema[name].size, budgets[name]).channel.matrix() for name in budgets}
    rows = np.einsum("cab,ax,by,cz->cxyz", cells, law["a"], law["b"], law["c"]).reshape(len(cells), -1)
    stated = reconstruction_advanced(1.0, 0.1, 2, _SLACK).value
    return float(delta_at(rows / rows.sum(axis=1, keepdims=True), stated)[0])


def _judge_theorem(number: int, case: str, found: dict[str, tuple[float, float]]) -> StudyResult:
    published, exact = figures = found[f"theorem {number}"]
    reason = f"the secret's own report and the others' are seen together: {exact:.4g}, not {published:g}"
    ours = beside(f"reconstruction-theorem{number}", exact)
    return against_exact(figures, (reason, f"C = A + B, fair bits, {case}"), ours, *ours)


_THEOREMS = Work("reconstruction-theorems", _theorems)
_CASES = {
    1: "randomised response of budget 1 on all three",
    2: "budget 1 on C and 0.1 on A and B, slack 1e-6",
}
STUDIES = {
    f"reconstruction-theorem{number}": Reading(_THEOREMS, partial(_judge_theorem, number, case))
    for number, case in _CASES.items()
}
