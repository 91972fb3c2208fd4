"""Unbiased estimates of every attribute, with the law of their error.

Given a frequency f, the variance of an estimate is a + b f + c f^2: a report's mean square is linear in f,
and the square of its mean is f^2. Error is about the people who reported ("collected": the sampling of
attributes counts, that of people does not) or about those they were drawn from ("population").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sidelight.estimation.linear import solve_hidden
from sidelight.estimation.numbers import to_simplex
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Aggregate
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.fake_data import FakeDataProtocol
from sidelight.protocols.groups import ReportedGroup, inverted_covariance, marginal
from sidelight.protocols.protocol import Array, RecordSums, mixed

About = Literal["collected", "population"]
ABOUT = ("collected", "population")


@dataclass(frozen=True, eq=False)
class Unbiased:
    """One attribute's unbiased estimate and its variance a + b f + c f^2 as a function of the frequency.

    Attributes:
        estimate: (values,).
        constant: a, a number or one for each value.
        slope: b.
        curve: c.
        reports: how many reports it rests on.
    """

    estimate: Array
    constant: Array
    slope: Array
    curve: Array
    reports: int

    def variance(self, frequencies: Array) -> Array:
        """Return the variance of each value's estimate, were these the frequencies."""
        spread = self.constant + self.slope * frequencies + self.curve * frequencies**2
        return np.asarray(np.maximum(spread, 0.0))

    def interval(self, deviations: float) -> tuple[Array, Array]:
        """Return the frequencies that the estimate is within so many standard deviations of (Wilson 1927).

        The variance is taken at the frequency in question, so an estimate at the edge still has an interval
        of the right width. An estimate outside 0 to 1 is first moved to the nearer of the two. That brings it
        closer to every possible frequency, so the interval holds the truth at least as often, and it is as
        wide as one at the edge instead of shrinking to a point.
        """
        z2 = deviations**2
        near = np.clip(self.estimate, 0.0, 1.0)
        lead = 1 - z2 * self.curve
        middle = (near + z2 * self.slope / 2) / lead
        rest = (near**2 - z2 * self.constant) / lead
        reach = np.sqrt(np.maximum(middle**2 - rest, 0.0))
        return np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)


def unbiased(parts: Sequence[RecordSums], about: About = "collected") -> dict[str, Unbiased]:
    """Return the unbiased estimates from the aggregates of one collection, which may have had two phases.

    Reports of a first phase that split its budget and of a second that hid its choice are solved together.
    """
    if not parts:
        raise InputError("there are no reports to estimate from.")
    schema = parts[0].protocol.schema
    for part in parts[1:]:
        if part.protocol.schema != schema:
            raise mixed(parts[0].protocol, part.protocol)
    direct = [part for part in parts if isinstance(part.protocol, (Split, Sample))]
    hidden = [part for part in parts if isinstance(part.protocol, FakeDataProtocol)]
    people = sum(part.people for part in parts)
    found = _direct(direct) if direct else {}
    if hidden:
        found = _solved(hidden, direct, found)
    return {name: _about(found[name], people, about) for name in schema.names}


def _about(found: Unbiased, people: int, about: About) -> Unbiased:
    """Take out the sampling of people, f(1-f)/n, where the error is about those who reported.

    What is random is then which reports were drawn and their noise; given the data the estimate is still
    unbiased, so the variances subtract. A variance that was taken at the estimate stays so.
    """
    if about == "population":
        return found
    if not np.any(found.curve):
        near = to_simplex(found.estimate)
        constant = np.maximum(found.constant - near * (1 - near) / people, 0.0)
        return replace(found, constant=constant)
    return Unbiased(
        found.estimate, found.constant, found.slope - 1 / people, found.curve + 1 / people, found.reports
    )


def _direct(parts: Sequence[RecordSums]) -> dict[str, Unbiased]:
    """Return each attribute's estimate from all units that report it, weighted by their precision."""
    found: dict[str, list[Unbiased]] = {}
    for part in parts:
        assert isinstance(part.protocol, (Split, Sample))  # noqa: S101 - narrows the type
        for unit, sums in zip(part.protocol.units, part.parts, strict=True):
            if sums.reports:
                for name in unit.names:
                    found.setdefault(name, []).append(_one(unit, name, sums))
    for name in parts[0].protocol.schema.names:
        if name not in found:
            raise InputError(f"nobody reported the attribute {name!r}; collect from more people.")
    return {name: _combined(items) for name, items in found.items()}


def _one(unit: ReportedGroup, name: str, sums: Aggregate) -> Unbiased:
    axis = unit.names.index(name)
    estimate = marginal(unit.estimate(sums), axis)
    moments = unit.moments(name)
    reports = sums.reports
    if isinstance(unit.randomiser, BinnedNumbers):
        return _number(unit.randomiser, sums, estimate)
    if moments is None:
        spread = unit.randomiser.variance(reports, to_simplex(estimate))
        zero = np.zeros_like(estimate)
        return Unbiased(estimate, spread, zero, zero, reports)
    none, full = (np.full_like(estimate, value) for value in moments)
    return Unbiased(
        estimate, none / reports, (full - none) / reports, np.full_like(none, -1 / reports), reports
    )


def _number(mechanism: BinnedNumbers, sums: Aggregate, estimate: Array) -> Unbiased:
    """Return the estimate from noisy numbers; its variance is f(1-f)/n and what the noise adds.

    That of people is taken at the frequency in question, as rare values would seem not to vary. The noise's
    depends on all frequencies: it is taken at the raw estimates, and is no less than what the projected ones
    of the other values add, since a few reports by chance leave nothing of it.
    """
    near, share = np.clip(estimate, 0, 1), to_simplex(estimate)
    own = (mechanism.inverse**2 * mechanism.law).sum(axis=1)
    others = mechanism.variance(sums.reports, share) - share * (own - share) / sums.reports
    noise = np.maximum(mechanism.spread(sums) - near * (1 - near) / sums.reports, others)
    people = np.full_like(estimate, 1 / sums.reports)
    return Unbiased(estimate, np.maximum(noise, 0.0), people, -people, sums.reports)


def _combined(items: Sequence[Unbiased]) -> Unbiased:
    if len(items) == 1:
        return items[0]
    middle = to_simplex(np.mean([item.estimate for item in items], axis=0))
    precision = np.array([1 / max(float(item.variance(middle).sum()), 1e-300) for item in items])
    weights = precision / precision.sum()

    def total(part: str, power: int) -> Array:
        return np.asarray(sum(w**power * getattr(item, part) for w, item in zip(weights, items, strict=True)))

    return Unbiased(
        total("estimate", 1), total("constant", 2), total("slope", 2), total("curve", 2),
        sum(item.reports for item in items),
    )  # fmt: skip


def _solved(
    hidden: Sequence[RecordSums], direct: Sequence[RecordSums], first: Mapping[str, Unbiased]
) -> dict[str, Unbiased]:
    """Solve the linear system of hidden choices, leaning on a first phase where there is one."""
    known = {}
    for part in direct:
        if isinstance(part.protocol, Split):
            for unit, sums in zip(part.protocol.units, part.parts, strict=True):
                item = first[unit.names[0]].estimate
                known[unit.names[0]] = (item, inverted_covariance(unit, to_simplex(item)) / sums.reports)
    found = solve_hidden(hidden, known)
    people = sum(part.people for part in hidden)
    solved = {}
    for name, (estimate, spread) in found.items():
        zero = np.zeros_like(estimate)
        reports = people + (first[name].reports if name in first else 0)
        solved[name] = Unbiased(estimate, spread, zero, zero, reports)
    return solved
