"""Panel: the same people asked in rounds, as a plan with `times` says, and what the rounds divide."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

from sidelight.foundation.errors import InputError, check_choice, check_is, check_whole, naming
from sidelight.mechanisms import MECHANISMS
from sidelight.mechanisms.longitudinal import instant_budget, memo_mechanism, memo_parameters
from sidelight.plan import PLAN_FIX, Plan, Release
from sidelight.protocols.direct import Split, planned
from sidelight.protocols.files import attribute_data
from sidelight.protocols.protocol import even_part
from sidelight.protocols.records import Division


@dataclass(frozen=True)
class Panel:
    """How people are asked in rounds, numbered from 1: an attribute in as many as its `times` in the plan.

    Attributes:
        plan: what is released through which mechanism, how often, and what devices keep.
        division: "none": everyone reports in every round as the plan says. "people": everyone is drawn into
            one of the rounds and reports in it alone, with the whole budget. "budget": everyone reports in
            every round with an even part of the budget.
        epoch: for how many rounds a kept response lasts; None for all of them. Each epoch spends the budget.
        follow_changes: whether a new value within an epoch is reported, through a response of its own; else
            the value is frozen at the first one that was reported in the epoch.
    """

    plan: Plan
    division: Division = "none"
    epoch: int | None = None
    follow_changes: bool = False

    def __post_init__(self) -> None:
        check_is("plan", self.plan, Plan, PLAN_FIX)
        check_choice("division", self.division, get_args(Division))
        kept = [release for release in self.plan.releases if release.keeps]
        for release in kept:
            with naming(f"the release of {release.name!r}"):
                memo_mechanism(release.randomiser())
        if self.division != "none" and kept:
            raise InputError(
                f"a response of {kept[0].name!r} is kept, and the {self.division} of the panel are divided: "
                "take fresh noise, memory = 'fresh' and no longitudinal mechanism, or divide nothing."
            )
        without = [r for r in self.plan.releases if r.epsilon is None and r.mechanism != "withheld"]
        if self.division == "budget" and without:
            raise InputError(
                f"{without[0].name!r} is released through {without[0].mechanism!r} without an `epsilon`, so "
                "there is no budget of it to divide; give it one, or divide the people."
            )
        if self.epoch is not None:
            check_whole("epoch", self.epoch, at_least=1)
        if not kept and (self.epoch is not None or self.follow_changes):
            option = "follow_changes" if self.epoch is None else "epoch"
            raise InputError(f"`{option}` is about kept responses, and the plan keeps none; leave it out.")

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return max(release.times for release in self.plan.releases)

    @property
    def kept(self) -> tuple[str, ...]:
        """The attributes whose responses are kept."""
        return tuple(release.name for release in self.plan.releases if release.keeps)

    @property
    def needs_memory(self) -> bool:
        """Whether a round depends on who took part before: responses are kept, or people divided."""
        return bool(self.kept) or self.division == "people"

    def sent_plan(self) -> Plan:
        """Return the plan of what one person really sends while values stay the same, to be audited.

        In epochs that are the responses of all of them, each drawn anew; what a longitudinal mechanism sends
        of one is no more than the response itself.
        """
        sent = (self._of_epochs(self._divided(release)) for release in self.plan.releases)
        return replace(self.plan, releases=tuple(sent))

    def _of_epochs(self, release: Release) -> Release:
        if not release.keeps or self.epoch is None or self.epoch >= release.times:
            return release
        epochs, mechanism = -(-release.times // self.epoch), release.randomiser()
        stored = memo_mechanism(mechanism)
        if stored is mechanism:
            return replace(release, times=epochs, memory="fresh")
        if release.epsilon is None or stored.name not in MECHANISMS:
            raise InputError(
                f"the kept response of {release.name!r} is none that plans name, so its epochs have no plan "
                "to be audited; take l-grr, l-sue, l-osue or loloha, or keep it for all rounds."
            )
        memo = replace(release, mechanism=stored.name, parameters=memo_parameters(mechanism))
        return replace(memo, times=epochs, memory="fresh")

    def _divided(self, release: Release) -> Release:
        if self.division == "people":
            return replace(release, times=1)
        if self.division == "budget" and release.epsilon is not None:
            return release.at(even_part(release.epsilon, release.times))
        return release

    @property
    def spent(self) -> float:
        """What all reports of a person spend at most, whatever the values do.

        A kept response spends once in each epoch, whose value is frozen; where changes are followed every
        report may say all that one says about its memo.
        """
        return math.fsum(self._spent(self._divided(release)) for release in self.plan.releases)

    def _spent(self, release: Release) -> float:
        if not release.keeps:
            return release.spent
        if self.follow_changes:
            return release.times * instant_budget(release.randomiser(), kept=True)
        length = release.times if self.epoch is None else min(self.epoch, release.times)
        whole, rest = divmod(release.times, length)
        parts = [replace(release, times=times).spent for times in (length, rest) if times]
        return whole * parts[0] + sum(parts[1:])

    def epoch_of(self, number: int) -> str:
        """Return the epoch of a round, as a device's memory names it."""
        return "0" if self.epoch is None else str((number - 1) // self.epoch)

    def check_round(self, number: object) -> int:
        """Return the number of a round that there is."""
        if self.rounds == 1 and number != 1:
            raise InputError(
                f"the plan asks once, so there is no round {number!r}; set `times` in the plan to the number "
                "of rounds."
            )
        return check_whole("round", number, at_least=1, at_most=self.rounds)

    def protocol(self, number: int) -> Split:
        """Return how those attributes are reported that a round asks for."""
        self.check_round(number)
        asked = tuple(replace(self._divided(r), times=1) for r in self.plan.releases if r.times >= number)
        return planned(replace(self.plan, releases=asked))

    def described(self) -> dict[str, Any]:
        """Return what must be the same in every round, as plain data."""
        return {
            "division": self.division, "epoch": self.epoch, "follow_changes": self.follow_changes,
            "release": [_described(release) for release in self.plan.releases],
        }  # fmt: skip


def _described(release: Release) -> dict[str, Any]:
    return {
        "attribute": attribute_data(release.attribute), "mechanism": release.mechanism,
        "epsilon": release.epsilon, "times": release.times, "keeps": release.keeps,
        "parameters": dict(release.parameters),
    }  # fmt: skip


_SAID = {"attribute": "alphabet", "epsilon": "budget", "keeps": "memory"}


def check_same_panel(panel: Panel, begun: Panel, label: str) -> None:
    """Raise, naming the first difference, unless a panel is the one that the rounds before were of."""
    known, mine = begun.described(), panel.described()
    before, now = ({item["attribute"]["name"]: item for item in told["release"]} for told in (known, mine))
    if before.keys() != now.keys():
        name = min(before.keys() ^ now.keys())
        began, is_now = ("with", "without") if name in before else ("without", "with")
        raise InputError(
            f"{label} began {began} {name!r}, and the plan is {is_now} it; all rounds need the same plan."
        )
    for name, item in before.items():
        for what in (what for what, value in item.items() if value != now[name][what]):
            shown = "" if what == "attribute" else f", {item[what]!r}, and it is {now[name][what]!r}"
            raise InputError(
                f"{label} began with another {_SAID.get(what, what)} of {name!r}{shown}; all rounds need "
                "the same plan."
            )
    for what in ("division", "epoch", "follow_changes"):
        if known[what] != mine[what]:
            raise InputError(
                f"{label} began with {what} {known[what]!r}, and it is {mine[what]!r}; all rounds need the "
                "same."
            )
