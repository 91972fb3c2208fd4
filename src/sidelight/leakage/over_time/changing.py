"""Reports of values that change: what those of all rounds say about a secret in each round.

The unrolled chain is a tree, and with fresh noise the messages of `leakage.totals.tree` along it are sound
for any attributes that change together. Two shortcuts are not: an attribute's own chain with what other
attributes say about it in the same round, and an attribute's own transitions alone. Both forget that the
other attributes' past speaks about the present.

With a memory for every distinct value, a report counts by what it says about the memo: given all memos,
which do not depend on the data, reports are fresh. With epochs, in which the value is frozen and after which
a new memory begins, all reports of an epoch are one report of the value at its start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import (
    InputError,
    TooLargeError,
    check_is,
    check_number,
    check_whole,
    unknown,
)
from sidelight.leakage.bounds import Bound, Claim, Leakage
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.over_time.chain import Chain, at_round
from sidelight.leakage.over_time.drawn_paths import PathSampler, certified_paths
from sidelight.leakage.over_time.paths import path_rows
from sidelight.leakage.over_time.recursion import Recursion, chain_limit, chain_recursion
from sidelight.leakage.pair import direct_leakage
from sidelight.leakage.totals import leakage_at, total_leakage, tree_totals, usual_draws
from sidelight.leakage.totals.at_delta import BETA
from sidelight.leakage.totals.exact import is_exact_cheap
from sidelight.mechanisms import Channel, FavouringChannel
from sidelight.mechanisms.channel.generic import baseline_at
from sidelight.mechanisms.longitudinal import instant_budget
from sidelight.plan import PLAN_FIX, Plan, Release

_LISTED = "every path listed"
_SAME = 1e-12
"""Figures that differ by a smaller share are the same; the one that is exact is kept."""


@dataclass(frozen=True)
class OverTime:
    """What the reports of all rounds say about a secret in each round.

    Attributes:
        secret: the attribute.
        rounds: the leakage about its value in round 1, 2 and so on, also where it is frozen and not reported.
        recursion: what budgets alone say about the state of each round.
        unlimited: what budgets alone say of unlimited rounds; None where rounds or epochs are not alike.
        epoch: for how many rounds the value is frozen; None where every round reports the value of the day.
    """

    secret: str
    rounds: tuple[Leakage, ...]
    recursion: Recursion
    unlimited: float | None
    epoch: int | None = None

    @property
    def worst(self) -> Leakage:
        """The leakage about the round of which most is revealed."""
        return max(self.rounds, key=lambda leakage: leakage.value)


def leakage_over_time(chain: Chain, plan: Plan, secret: str, *, epoch: int | None = None) -> OverTime:
    """Return what all reports of values that change by a chain say about a secret in each round.

    Args:
        chain: what the adversary knows about how values change.
        plan: what is released; `times` is in how many rounds, from the first one on.
        secret: the attribute to protect, released or not.
        epoch: for how many rounds the value is frozen, after which a memory begins anew.
    """
    question = _Question.of(chain, plan, secret, epoch)
    recursion = chain_recursion(chain, question.budgets)
    spent = question.budgets[:: question.length]
    is_even = question.has_whole_epoch and len(set(spent)) == 1
    limit = chain_limit(chain, spent[0], question.length) if is_even else None
    named = tuple(
        _no_more(leakage, bound, chain.is_model)
        for leakage, bound in zip(question.rounds(), recursion.totals, strict=True)
    )
    return OverTime(secret, named, recursion, limit, epoch)


def leakage_over_time_at(
    chain: Chain, plan: Plan, secret: str, time: int, delta: float = 1e-3, *, epoch: int | None = None,
    draws: int | None = None, seed: int | None = None,
) -> Bound:  # fmt: skip
    """Return the leakage at delta about a secret in one round, see `leakage_over_time` and `leakage_at`.

    With fresh noise or epochs it is exact where all releases can be listed, else certified from drawn
    sequences. With a memory of changing values it is exact where all paths can be listed, else certified
    from drawn paths and memos where all tables of memos can be, else what the worst case says.
    """
    question = _Question.of(chain, plan, secret, epoch)
    check_whole("time", time, at_least=1, at_most=question.times)
    check_number("delta", delta, above=0, below=1)
    if not question.has_memory:
        sent, name = Plan(tuple(question.sent.values())), at_round(secret, time)
        return leakage_at(question.belief, sent, name, delta, draws=draws, seed=seed).upper
    rows = path_rows(chain, question.planned, secret, time)
    if rows is not None:
        return Bound(epsilon_at(rows, delta)[0], question.claim, _LISTED)
    worst = leakage_over_time(chain, plan, secret, epoch=epoch).rounds[time - 1].upper
    worst = replace(worst, method=f"worst case ({worst.method})")
    count = usual_draws(delta) if draws is None else check_whole("draws", draws, at_least=16)
    coins = None if seed is None else check_whole("seed", seed, at_least=0)
    sampler = PathSampler.of(chain, question.planned, secret, time, count, coins)
    if sampler is None:
        return worst
    value, drawn = certified_paths(sampler, count, delta, BETA)
    kind: Claim = "model" if chain.is_model else "sampled"
    sampled = Bound(value, kind, f"{drawn} paths and memos drawn for each value")
    return min(worst, sampled, key=lambda bound: bound.value)


@dataclass(frozen=True, eq=False)
class _Question:
    """Which secret is asked about, and what is reported in each round, or in the first round of each epoch.

    Attributes:
        chain: of the rounds.
        planned: the releases by attribute.
        secret: the attribute to protect.
        epoch: how many rounds an epoch has; None without epochs.
    """

    chain: Chain
    planned: Mapping[str, Release]
    secret: str
    epoch: int | None

    @classmethod
    def of(cls, chain: Chain, plan: Plan, secret: str, epoch: int | None) -> _Question:
        """Check what is asked."""
        check_is("chain", chain, Chain, "Chain.stated makes one, and Chain.from_panel counts one.")
        check_is("plan", plan, Plan, PLAN_FIX)
        for name in (secret, *plan.names):
            if name not in chain.schema:
                raise unknown("attribute of the chain", name, chain.schema.names)
        for release in plan.releases:
            if release.attribute.size != chain.schema[release.name].size:
                raise InputError(f"the plan has {release.attribute.size} values of {release.name!r}, the "
                                 f"chain {chain.schema[release.name].size}.")  # fmt: skip
        planned = {release.name: release for release in plan.releases}
        return cls(chain, planned, secret, None if epoch is None else check_whole("epoch", epoch, at_least=1))

    @property
    def times(self) -> int:
        """How many rounds there are."""
        return max(release.times for release in self.planned.values())

    @property
    def length(self) -> int:
        """How many rounds there are from one value that is reported to the next."""
        return self.epoch or 1

    @property
    def has_whole_epoch(self) -> bool:
        """Whether the reports of the first epoch are as many as those of every one if rounds never end."""
        return all(item.times >= self.length for item in self.planned.values())

    @property
    def has_memory(self) -> bool:
        """Whether reports of different rounds may share a memo."""
        kept = any(item.keeps and item.times > 1 for item in self.planned.values())
        return self.epoch is None and kept

    @cached_property
    def sent(self) -> dict[tuple[str, int], Release]:
        """What is sent of the value of a round, all reports of its epoch together, by attribute and round."""
        parts = {}
        for name, release in self.planned.items():
            for t in range(1, release.times + 1, self.length):
                renamed = replace(release.attribute, name=at_round(name, t))
                count = min(self.length, release.times - (t - 1))
                parts[name, t] = replace(release, attribute=renamed, times=count)
        return parts

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """What each round's report may say, given all memos, by the names of the unrolled chain."""
        return {
            part.name: self._instant(part) if self._is_memo(name) else part.channel()
            for (name, _), part in self.sent.items()
        }

    @property
    def budgets(self) -> list[float]:
        """What the reports of each round's value spend together at most, given all memos."""
        spent = [0.0] * self.times
        for (_, t), part in self.sent.items():
            # Where a delta remains, no budget bounds what is revealed.
            spent[t - 1] += math.inf if part.randomiser().delta else self.channels[part.name].epsilon
        return spent

    @staticmethod
    def _instant(release: Release) -> Channel:
        """Return a channel that stands for every one with the budget of a report about its memo."""
        budget = instant_budget(release.randomiser(), kept=True)
        return FavouringChannel(release.attribute.size, "all", baseline_at(budget), realises_all=False)

    def _is_memo(self, name: str) -> bool:
        """Whether reports of an attribute share memos between rounds."""
        return self.epoch is None and self.planned[name].keeps and self.planned[name].times > 1

    @cached_property
    def belief(self) -> Belief:
        """What the adversary knows about all rounds."""
        return self.chain.unrolled(self.times)

    @property
    def names(self) -> list[str]:
        """The secret in every round."""
        return [at_round(self.secret, t) for t in range(1, self.times + 1)]

    @property
    def claim(self) -> Claim:
        """What an exact figure claims."""
        return "model" if self.chain.is_model else "exact"

    def rounds(self) -> list[Leakage]:
        """Return the totals about the secret in each round; nothing is known where the chain is too long."""
        try:
            return self.remembered() if self.has_memory else self.fresh()
        except TooLargeError:
            low, high = Bound(0.0, "lower", "nothing known"), Bound(math.inf, "certified", "nothing known")
            through = tuple(part.name for part in self.sent.values())
            return [Leakage(name, through, low, high) for name in self.names]

    def fresh(self) -> list[Leakage]:
        """Return the totals of reports that are independent between rounds, given the values."""
        if is_exact_cheap(self.belief, self.channels, self.names[0]):
            return [total_leakage(self.belief, self.channels, name) for name in self.names]
        return self._bounded()

    def remembered(self) -> list[Leakage]:
        """Return the totals of reports through memories: exact where paths can be listed."""
        rounds = []
        for t, name in enumerate(self.names, 1):
            rows = path_rows(self.chain, self.planned, self.secret, t)
            if rows is None:
                return self._bounded()
            exact = Bound(epsilon_of(rows), self.claim, _LISTED)
            rounds.append(Leakage.exactly(name, tuple(self.channels), exact))
        return rounds

    def _bounded(self) -> list[Leakage]:
        """Return the totals by messages along the chain, beside what the own report of the round reaches."""
        first = {part.name: part.channel() for part in self.sent.values()}
        rounds = []
        for name, upper in tree_totals(self.belief, self.channels, self.names, witnesses=False).items():
            own = direct_leakage(self.belief, first.get(name), name).lower.value
            lower = Bound(own, "model" if self.chain.is_model else "lower", "own report alone")
            exact = upper.kind == "exact"
            rounds.append(Leakage(name, tuple(first), upper if exact else lower, upper))
        return rounds


def epsilon_of(rows: Array) -> float:
    """Return the largest log-ratio between two rows of Pr(reports | value)."""
    sent = rows[:, rows.any(axis=0)]
    low = sent.min(axis=0)
    return math.inf if (low == 0).any() else float(np.log(sent.max(axis=0) / low).max(initial=0.0))


def _no_more(leakage: Leakage, bound: float, is_model: bool) -> Leakage:
    """Return the leakage with the recursion's figure where it is smaller."""
    if bound >= leakage.upper.value * (1 - _SAME):
        return leakage
    value = max(bound, leakage.lower.value)
    kind: Claim = "model" if is_model else "certified"
    return replace(leakage, upper=Bound(value, kind, "recursion of the whole state"))
