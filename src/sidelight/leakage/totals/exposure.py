"""Who is exposed beyond a limit: delta averages over people, and some stand out more than others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.foundation.errors import InputError, check_number, check_whole
from sidelight.leakage.divergence import hockey_stick
from sidelight.leakage.totals.at_delta import Question
from sidelight.leakage.totals.draws import ReleaseSampler
from sidelight.plan import Plan

_SCREENED = 64
"""So many releases of each person show who may stand out."""
_MEASURED = 2048
_CLOSEST = 24
"""So many of those who may stand out are measured anew: the luck that brought them up does not count."""
_BATCH = 1 << 13


@dataclass(frozen=True)
class Exposure:
    """How far people's releases say more than a limit: the average of z = max(0, 1 - e^(limit - loss)).

    Attributes:
        secret: the attribute it is about.
        limit: in nats.
        people: how many were drawn.
        mean: the average over them, all with one value being compared with the other value that they stand
            out against most. It estimates the delta at the limit, averaged over the values of the secret; the
            delta itself is that of the worst value, which is not less.
        largest: the largest average of one of them, an estimate.
    """

    secret: str
    limit: float
    people: int
    mean: float
    largest: float

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return asdict(self)


def exposure(
    belief: Belief,
    plan: Plan,
    secret: str,
    limit: float,
    *,
    through: Iterable[str] | None = None,
    people: int = 800,
    seed: int | None = None,
) -> Exposure:
    """Return how unevenly what a release says beyond a limit falls on people.

    Args:
        belief: what the adversary knows; people are drawn from it.
        plan: what is released.
        secret: the attribute to protect.
        limit: what a release may say, in nats.
        through: the releases that the adversary sees; all by default.
        people: how many to draw.
        seed: for figures that can be repeated; else the operating system's coins.
    """
    question = Question.of(belief, plan, secret, through)
    beyond = check_number("limit", limit, at_least=0) - question.beyond
    check_whole("people", people, at_least=1)
    if not belief.knows_joints:
        raise InputError(
            f"people cannot be drawn from a {belief.kind} belief, which knows pairs of attributes alone; "
            'take kind="joint", "tree" or "population".'
        )
    sampler = ReleaseSampler.of(belief.view(secret), question.runnable, seed)
    values = sampler.seeds.choice(len(sampler.view.prior), size=people, p=sampler.view.prior)
    drawn = np.concatenate([
        sampler.view.draw(value, int(count), sampler.seeds)
        for value, count in zip(*np.unique(values, return_counts=True), strict=True)
    ])  # fmt: skip
    screened = _averages(sampler, drawn, _SCREENED, beyond)
    foremost = np.argsort(-screened.max(axis=1))[:_CLOSEST]
    largest = _averages(sampler, drawn[foremost], _MEASURED, beyond).max()
    return Exposure(secret, limit, people, _mean(screened, np.sort(values)), float(largest))


def _mean(averages: Array, values: Positions) -> float:
    """Return the mean over people, sorted by their values, who are alike compared with one other value each.

    Each person against the value that is worst for them alone would be more than any delta allows for.
    """
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    return float(np.add.reduceat(averages, starts).max(axis=1).sum() / len(values))


def _averages(sampler: ReleaseSampler, codes: Codes, draws: int, limit: float) -> Array:
    """Return each person's average z against every possible value of the secret, shape (people, values)."""
    secret = codes[:, sampler.view.schema.index(sampler.view.secret)]
    step = max(1, _BATCH // draws)
    averages = []
    for start in range(0, len(codes), step):
        some = slice(start, start + step)
        logs, _ = sampler.log_probabilities(np.repeat(codes[some], draws, axis=0))
        own = np.take_along_axis(logs, np.repeat(secret[some], draws)[:, None].astype(np.intp), axis=1)
        shares = hockey_stick((own - logs)[:, sampler.possible], limit)
        averages.append(shares.reshape(-1, draws, shares.shape[1]).mean(axis=1))
    return np.concatenate(averages)
