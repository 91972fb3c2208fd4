"""Bound and Leakage: a figure, what kind of figure it is, and what shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sidelight.foundation.files import json_number

TOO_FEW = "the figure rests on too few records to show"
"""How the method of a figure ends that was replaced because it rests on too few records."""
Claim = Literal["exact", "certified", "sampled", "lower", "model", "published", "estimate"]
"""exact: the true value for this belief. certified: never below it. sampled: not below it but for a stated
probability over our own coin flips. lower: a witness reaches it.
model: exact or certified for a model of the table, not for the table. published: a formula from a paper,
neither. estimate: from samples."""


@dataclass(frozen=True)
class Witness:
    """The report and the two secret values that reach a figure.

    Attributes:
        report: what is reported, in words.
        likelier: the secret value under which that report is likeliest.
        unlikelier: the one under which it is least likely.
        reports: the same report for programs: for each attribute whose report matters, the codes of the
            values it favours, or its number where the channel is a matrix or noise on a number (first the
            values' points, then the two ends of the line). Of the other attributes any report will do. Empty
            where the report is an answer to a query or about a label.
    """

    report: str
    likelier: str
    unlikelier: str
    reports: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Bound:
    """One figure in nats.

    It is a double, right to 1e-9 nats, or to a billionth of a figure above 1. That holds for certified
    figures too, which are not rounded up; comparisons with a limit allow for it.

    Attributes:
        value: the figure; infinity is an answer.
        kind: what it claims.
        method: how it was computed.
        witness: what reaches it, where that is known.
        support: the fewest records behind the witness: those of either secret value, and those of the
            likelier one that match the report; where any record can lead to the report, how many of
            either value decide how likely it is. Where several pairs of values reach the same total, the
            witness is the pair whose rarer value is commonest, unless there are too many to compare.
            None for a belief given by hand.
    """

    value: float
    kind: Claim
    method: str
    witness: Witness | None = None
    support: int | None = None

    @property
    def is_suppressed(self) -> bool:
        """Whether this stands in for a figure that rests on too few records to show."""
        return self.method.endswith(TOO_FEW)

    def rests_on(self, records: int) -> bool:
        """Whether the figure is known to rest on at least so many records."""
        return self.support is not None and self.support >= records

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain data."""
        value = json_number(self.value + 0.0)  # the addition turns minus zero into zero
        return vars(self) | {"value": value, "witness": self.witness and vars(self.witness)}


@dataclass(frozen=True)
class Leakage:
    """How much a release says about a secret: the largest log-likelihood ratio of any two of its values.

    Attributes:
        secret: the attribute it is about.
        through: the released attributes.
        lower: a figure the leakage reaches.
        upper: a figure it does not exceed.
        delta: the probability with which the upper figure may fail.
    """

    secret: str
    through: tuple[str, ...]
    lower: Bound
    upper: Bound
    delta: float = 0.0

    @property
    def value(self) -> float:
        """The figure to act on: the upper one."""
        return self.upper.value

    @property
    def is_exact(self) -> bool:
        """Whether both ends are the exact figure."""
        return self.upper.kind == "exact"

    @classmethod
    def exactly(cls, secret: str, through: tuple[str, ...], bound: Bound) -> Leakage:
        """Return a leakage whose two ends are one figure."""
        return cls(secret, through, bound, bound)


def log_ratio(high: float, low: float) -> float:
    """Return ln(high / low): infinite where only `low` is 0, 0 where both are.

    >>> log_ratio(0.5, 0.0), log_ratio(0.0, 0.0)
    (inf, 0.0)
    """
    if high <= 0:
        return 0.0
    return math.inf if low <= 0 else math.log(high / low)
