"""A release at face value: what it says in words, and the secret's own report taken for the truth."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sidelight.attacks.released import Released
from sidelight.foundation.arrays import Array
from sidelight.plan import Plan
from sidelight.protocols.records import RecordReports


def face_value(reports: Released | RecordReports, secret: str, points: Array | None) -> NDArray[Any] | None:
    """Return the secret's own report as a guess; None where it is not released or is no single value.

    Args:
        reports: the release.
        secret: the target.
        points: the number that stands for each value; None where codes are guessed.
    """
    if isinstance(reports, Released):
        return _released(reports, secret, points)
    codes = reports.protocol.face_value(reports, secret)
    return codes if codes is None or points is None else points[codes]


def _released(released: Released, secret: str, points: Array | None) -> NDArray[Any] | None:
    if secret not in released.plan.names or secret in released.senders:
        return None
    mechanism = released.plan[secret].randomiser()
    codes = mechanism.face_value(released[secret])
    if codes is None or points is None:
        return codes
    return released[secret].values if mechanism.form.encoding == "numbers" else points[codes]


def describe_release(reports: Released | RecordReports) -> str:
    """Say in a few words what was released."""
    if isinstance(reports, Released):
        return describe_plan(reports.plan)
    protocol = reports.protocol
    kinds = sorted({group.mechanism for group in protocol.groups})
    through = f" through {', '.join(kinds)}" if kinds else ""
    budget = f"budget {protocol.epsilon:.4g} a record"
    return f"{len(protocol.schema)} attributes by {protocol.name}{through}, {budget}"


def describe_plan(plan: Plan) -> str:
    """Say in a few words what a plan releases."""
    kinds = sorted({release.mechanism for release in plan.releases})
    budgets = sorted({release.epsilon for release in plan.releases if release.epsilon is not None})
    spent = f", budget {budgets[0]:.3g}" if budgets else ""
    spent += f" to {budgets[-1]:.3g}" if len(budgets) > 1 else ""
    return f"{len(plan.releases)} attributes through {', '.join(kinds)}{spent}"
