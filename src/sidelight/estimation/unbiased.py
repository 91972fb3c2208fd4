"""Unbiased estimates of every attribute, with the law of their error.

Given a frequency f, the variance of an estimate is a + b f + c f^2: a report's mean square is linear in f,
and the square of its mean is f^2. Error is about the people who reported ("collected": the sampling of
attributes counts, that of people does not) or about those they were drawn from ("population").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sidelight.estimation.linear import solve_linear, split
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Aggregate
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.protocols.groups import ReportedGroup, inverted_covariance, marginal
from sidelight.protocols.protocol import Protocol, every_record
from sidelight.protocols.records import RecordSums, mixed

About = Literal["collected", "population"]
ABOUT = ("collected", "population")


@dataclass(frozen=True, eq=False)
class Unbiased:
    """One attribute's unbiased estimate and its variance a + b f + c f^2 as a function of the frequency.

    The constant a, the slope b and the curve c have shape (values,) like the estimate, which rests on so many
    reports. It adds up to 1 by itself unless the mechanism counts each value apart.
    """

    estimate: Array
    constant: Array
    slope: Array
    curve: Array
    reports: int
    adds_up: bool = True

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


Every = Mapping[str, Unbiased]
"""The unbiased estimates, by attribute."""


def unbiased(parts: Sequence[RecordSums], about: About = "collected") -> dict[str, Unbiased]:
    """Return the unbiased estimates from the aggregates of one collection, which may have had two phases.

    Reports of a first phase and of the second that was learnt from it are solved together.
    """
    if not parts:
        raise InputError("there are no reports to estimate from.")
    schema = parts[0].protocol.schema
    for part in parts[1:]:
        if part.protocol.schema != schema:
            raise mixed(parts[0].protocol, part.protocol)
    linear = [part for part in parts if part.protocol.is_linear]
    direct = [part for part in parts if not part.protocol.is_linear]
    people = sum(part.people for part in parts)
    estimates = _direct(direct) if direct else {}
    if linear:
        estimates = _solved(linear, direct, estimates)
    return {name: _about(estimates[name], people, about) for name in schema.names}


def _about(item: Unbiased, people: int, about: About) -> Unbiased:
    """Take out the sampling of people, f(1-f)/n, where the error is about those who reported.

    What is random is then which reports were drawn and their noise; given the data the estimate is still
    unbiased, so the variances subtract. A variance that was taken at the estimate stays so.
    """
    if about == "population":
        return item
    if not np.any(item.curve):
        near = to_simplex(item.estimate)
        return replace(item, constant=np.maximum(item.constant - near * (1 - near) / people, 0.0))
    return replace(item, slope=item.slope - 1 / people, curve=item.curve + 1 / people)


def _direct(parts: Sequence[RecordSums]) -> dict[str, Unbiased]:
    """Return each attribute's estimate from all that report it, weighted by their precision."""
    items: dict[str, list[Unbiased]] = {}
    for part in parts:
        for name, item in _grouped(part) if part.protocol.groups else enumerated(part):
            items.setdefault(name, []).append(item)
    for name in parts[0].protocol.schema.names:
        if name not in items:
            raise InputError(f"nobody reported the attribute {name!r}; collect from more people.")
    return {name: _combined(several) for name, several in items.items()}


def _grouped(part: RecordSums) -> Iterator[tuple[str, Unbiased]]:
    """Return what each group that somebody reported says about each of its attributes."""
    for group, sums in zip(part.protocol.groups, part.parts, strict=True):
        if sums.reports:
            yield from ((name, _one(group, name, sums)) for name in group.names)


def enumerated(part: RecordSums) -> Iterator[tuple[str, Unbiased]]:
    """Return each attribute's estimate from counts of whole reports, see `Inversion`."""
    schema, reports = part.protocol.schema, part.people
    if not reports:
        return
    inversion = Inversion.of(part.protocol)
    estimate = part.parts[0].sums / reports @ inversion.weights
    square = np.full_like(estimate, -1 / reports)
    columns = estimate, inversion.none / reports, (inversion.full - inversion.none) / reports, square
    middle, constant, slope, curve = (split(column, schema) for column in columns)
    for name in schema.names:
        yield name, Unbiased(middle[name], constant[name], slope[name], curve[name], reports)


@dataclass(frozen=True, eq=False)
class Inversion:
    """How whole reports are turned into frequencies, by enumerating every record and report.

    `weights` are what a report adds to the estimate of each value, stacked, (reports, values). `none` is the
    mean square of one report's estimate of a value for records that have another one, at most, `full` for
    records that have it.
    """

    weights: Array
    none: Array
    full: Array

    @classmethod
    def of(cls, protocol: Protocol) -> Inversion:
        """Return the inversion with the least variance were all records equally common."""
        law = protocol.written_law
        records = zip(every_record(protocol.schema), protocol.schema.sizes, strict=True)
        holds = np.hstack([codes[:, None] == np.arange(size) for codes, size in records])
        # Weighted least squares: of all weights w with law @ w = holds, those with the least mean square.
        root = np.sqrt(law.mean(axis=0))
        scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        weights = np.linalg.lstsq(law * scale, holds.astype(np.float64), rcond=None)[0] * scale[:, None]
        if not np.allclose(law @ weights, holds, atol=1e-7):
            raise InputError(
                f"the reports of {protocol.name!r} do not determine the frequencies of every attribute."
            )
        squares = law @ weights**2
        none, full = (np.where(of, squares, 0.0).max(axis=0) for of in (~holds, holds))
        return cls(weights, none, full)


def _one(group: ReportedGroup, name: str, sums: Aggregate) -> Unbiased:
    axis = group.names.index(name)
    estimate = marginal(group.estimate(sums), axis)
    moments = group.moments[name]
    reports = sums.reports
    if group.randomiser.numbers is not None:
        return _number(group.randomiser.numbers, sums, estimate)
    if moments is None:
        spread = group.randomiser.variance(reports, to_simplex(estimate))
        zero = np.zeros_like(estimate)
        return Unbiased(estimate, spread, zero, zero, reports, group.randomiser.adds_up)
    none, full = (np.full_like(estimate, value) for value in moments)
    square = np.full_like(none, -1 / reports)
    adds_up = group.randomiser.adds_up
    return Unbiased(estimate, none / reports, (full - none) / reports, square, reports, adds_up)


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
    # Weights from each own estimate would favour those that came out low.
    middle = to_simplex(np.mean([item.estimate for item in items], axis=0))
    # An estimate without variance gets all the weight instead of an infinite one.
    precision = np.array([1 / max(float(item.variance(middle).sum()), 1e-300) for item in items])
    weights = precision / precision.sum()
    columns = zip(*((item.estimate, item.constant, item.slope, item.curve) for item in items), strict=True)
    powers = zip((weights, weights**2, weights**2, weights**2), columns, strict=True)
    estimate, constant, slope, curve = (np.asarray(sum(map(np.multiply, *pair))) for pair in powers)
    reports, adds_up = sum(item.reports for item in items), all(item.adds_up for item in items)
    return Unbiased(estimate, constant, slope, curve, reports, adds_up)


def _solved(linear: Sequence[RecordSums], direct: Sequence[RecordSums], first: Every) -> dict[str, Unbiased]:
    """Solve the linear system of the reports, leaning on a first phase where there is one."""
    known = {}
    for part in direct:
        protocol = part.protocol
        if tuple(group.label for group in protocol.groups) != protocol.schema.names:
            raise InputError(
                f"the first phase of {linear[0].protocol.name!r} must report every attribute by itself, got "
                f"{protocol.name!r}."
            )
        for group, sums in zip(protocol.groups, part.parts, strict=True):
            item = first[group.label].estimate
            known[group.label] = (item, inverted_covariance(group, to_simplex(item)) / sums.reports)
    people = sum(part.people for part in linear)
    solved = {}
    for name, (estimate, spread) in solve_linear(linear, known).items():
        zero = np.zeros_like(estimate)
        reports = people + (first[name].reports if name in first else 0)
        solved[name] = Unbiased(estimate, spread, zero, zero, reports)
    return solved


@dataclass(frozen=True)
class Mean:
    """The mean of one attribute's points, the numbers that stand for its values, with its standard error.

    It is that of the reports, without bias, and may lie outside the points; the interval from `lower` to
    `upper` leaves them only where the mean does.
    """

    attribute: str
    mean: float
    standard_error: float
    lower: float
    upper: float
    points: tuple[float, ...]

    def to_data(self) -> dict[str, str | float]:
        """Return the figures as plain data."""
        return {name: value for name, value in vars(self).items() if name != "points"}


def sole_numbers(protocol: Protocol) -> dict[str, BinnedNumbers]:
    """Return the mechanisms of attributes that are reported as a noisy number and in no other way."""
    ways = Counter(name for group in protocol.groups for name in group.names)
    return {
        group.label: group.randomiser.numbers
        for group in protocol.groups
        if group.randomiser.numbers is not None and ways[group.label] == 1
    }


def number_parts(
    parts: Sequence[RecordSums], *, alone: bool = False
) -> list[tuple[str, BinnedNumbers, Aggregate]]:
    """Return the attributes that someone reported as a number (`alone`: only so), with mechanism and sums."""
    numbers = []
    for part in parts:
        sole = sole_numbers(part.protocol)
        for group, sums in zip(part.protocol.groups, part.parts, strict=False):  # sums may be of no group
            if group.randomiser.numbers is not None and sums.reports and (not alone or group.label in sole):
                numbers.append((group.label, group.randomiser.numbers, sums))
    return numbers


def means(parts: Sequence[RecordSums], estimates: Every, deviations: float, about: About) -> dict[str, Mean]:
    """Return the mean of every attribute that is reported as a number.

    The unbiased frequencies say how much people differ; an interval reaches so many standard errors.
    """
    people = math.inf if about == "population" else sum(part.people for part in parts)
    result = {}
    for name, mechanism, sums in number_parts(parts):
        error = _standard_error(mechanism, estimates[name], sums, people)
        mean = mechanism.mean(sums)
        points = mechanism.noise.grid_points
        least, most = float(points.min()), float(points.max())
        near, reach = min(max(mean, least), most), deviations * error  # as `Unbiased.interval` has it
        low, high = max(near - reach, least), min(near + reach, most)
        result[name] = Mean(name, mean, error, min(low, mean), max(high, mean), tuple(points.tolist()))
    return result


def _standard_error(mechanism: BinnedNumbers, item: Unbiased, sums: Aggregate, people: float) -> float:
    """Return the standard error of the mean of the reports, about the mean of so many people.

    Noise counts in full; how people differ counts as far as not all of them reported the attribute. Their
    variance comes from the raw frequencies: projected ones are too even once noise is wide. It is found in
    steps, since squares of the numbers themselves may leave the range of doubles.
    """
    places = mechanism.noise.point_steps
    middle = (places.min() + places.max()) / 2
    mean = sums.sums[-1] / sums.reports - middle
    square = float(item.estimate @ (places - middle) ** 2)
    spread = float(np.clip(square - mean**2, 0.0, (places.max() - places.min()) ** 2 / 4))
    variance = (spread + mechanism.noise.noise_variance) / sums.reports - spread / people
    return math.sqrt(max(variance, 0.0)) * mechanism.noise.step
