"""What is shown of a round: estimates with intervals, and how far forged reports could move them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sidelight.estimation.estimates import Estimator, estimate
from sidelight.estimation.influence import influence
from sidelight.foundation.errors import check_choice
from sidelight.foundation.files import json_number
from sidelight.protocols.records import RecordSums
from sidelight.service.errors import NotShownError
from sidelight.service.task import Task

FIGURES = ("best", "inversion", "simplex", "shrinkage", "least-risk", "published")
"""The estimators that sums are enough for."""


def check_crowd(task: Task, parts: Sequence[RecordSums]) -> None:
    """Raise unless enough people answered in every round that figures are made from."""
    least = min((part.people for part in parts), default=0)
    if least < task.terms.smallest_crowd:
        raise NotShownError(
            f"fewer than {task.terms.smallest_crowd} people have answered; the task says that figures of so "
            "few are shown to nobody."
        )


def figures(
    task: Task, parts: Sequence[RecordSums], estimator: str = "best", confidence: float = 0.95
) -> Mapping[str, Any]:
    """Return the estimates of a round as plain data; refused below the smallest crowd.

    Each value's `forged` says how far the unbiased estimate moves, at most, for each report in a hundred that
    is forged.
    """
    check_choice("estimator", estimator, FIGURES)
    check_crowd(task, parts)
    chosen: Estimator = estimator  # type: ignore[assignment]
    said: dict[str, Any] = json.loads(estimate(parts, estimator=chosen, confidence=confidence).to_json())
    said.pop("is_simulation")
    reach = influence(parts)
    codes = {attribute.name: attribute.values for attribute in parts[0].protocol.schema}
    for row in said["estimates"]:
        name = row["attribute"]
        row["forged"] = json_number(float(reach[name][codes[name].index(row["value"])]) / 100)
    return said
