"""What a plan that asks again and again spends on values that stay the same, and how it exposes people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import check_is
from sidelight.leakage.over_time.links import Linking, linking
from sidelight.mechanisms.longitudinal import instant_budget, seen_changes, unlimited_budget
from sidelight.plan import PLAN_FIX, Plan, Release


@dataclass(frozen=True)
class Repetition:
    """An attribute that is reported several times.

    Attributes:
        attribute: its name.
        mechanism: the mechanism's name.
        times: how many reports each person sends.
        memory: "kept" where all reports of a value are made from one kept response, else "fresh".
        first: the budget that one report really spends.
        together: what all reports of one value spend, at most.
        unlimited: what they would spend, however many there were.
        instant: what one report of a changed value can cost.
        change_seen: how likely a change of the value shows in the memory; None where nothing is kept or it
            is not known.
        linking: how surely two batches of as many reports can be told to be of one person.
    """

    attribute: str
    mechanism: str
    times: int
    memory: str
    first: float
    together: float
    unlimited: float
    instant: float
    change_seen: float | None
    linking: Linking

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        told = {**vars(self.linking), "same_or_not": self.linking.same_or_not}
        return {**vars(self), "linking": told}


def repetitions(belief: Belief, plan: Plan) -> tuple[Repetition, ...]:
    """Return what repetition means for every attribute that the plan asks for more than once."""
    check_belief("belief", belief)
    check_is("plan", plan, Plan, PLAN_FIX)
    again = (release for release in plan.releases if release.times > 1)
    return tuple(_repetition(belief, release) for release in again if release.randomiser().epsilon > 0)


def _repetition(belief: Belief, release: Release) -> Repetition:
    mechanism, kept = release.randomiser(), release.keeps
    return Repetition(
        release.name,
        release.mechanism,
        release.times,
        "kept" if kept else "fresh",
        mechanism.epsilon,
        release.channel().epsilon,
        unlimited_budget(mechanism, kept=kept),
        instant_budget(mechanism, kept=kept),
        seen_changes(mechanism, kept=kept),
        linking(release, belief.prior(release.name)),
    )
