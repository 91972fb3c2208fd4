"""The error to expect before collecting, from how many people, values and how much budget there are.

Errors are mean squared errors: the mean over attributes of the mean over values of (f - estimate)^2, about
the people who report, so that not asking all of them counts and who they are does not.
"""

from __future__ import annotations

import numpy as np

from sidelight.estimation import linear
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.simulated import (
    WHOLE,
    Part,
    best_errors,
    likeliest_errors,
    loose_sums,
    mean_square,
)
from sidelight.estimation.simulated import (
    Frequencies as Frequencies,
)
from sidelight.estimation.unbiased import Inversion, sole_numbers, unbiased
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.protocols.groups import ReportedGroup, inverted_covariance
from sidelight.protocols.protocol import Design, Protocol
from sidelight.protocols.records import RecordReports
from sidelight.protocols.two_phase import TwoPhase
from sidelight.schema import Schema

_SEED = 20_250_101
_FIRST_PHASES = 3
PUBLISHED_TRIALS = 48
"""First phases that are simulated for Corr-RR's own estimator: its error depends on them most."""
_MOST_WORK = 20_000
_MOST_SIMULATED = 50_000


def predicted_variances(design: Design, people: int, frequencies: Frequencies) -> dict[str, Array]:
    """Return the variance of each value's unbiased estimate, about the people who report."""
    check_whole("people", people, at_least=1)
    check_frequencies(design.schema, frequencies)
    phased = design.two_phase
    if phased is not None and phased.method != "pairs":
        return _two_phase(phased, people, frequencies)
    protocol = design.first  # the second phase of pairs does no worse: it allots people by their worth
    if protocol.groups:
        return _grouped(protocol, people, frequencies)
    predicted = _linear if protocol.is_linear else _enumerated
    spread = predicted(protocol, people, _stacked(protocol.schema, frequencies))
    return _without_people(linear.split(spread, protocol.schema), frequencies, people)


def predicted_error(design: Design, people: int, frequencies: Frequencies, *, shrinks: bool = False) -> float:
    """Return the mean squared error to expect, over attributes and values, were these the frequencies.

    It is that of the unbiased estimator, or, where it `shrinks`, of "best", found by simulating its noise.
    """
    return predicted_errors(design, people, frequencies, shrinks=shrinks)[int(shrinks)]


def predicted_errors(
    design: Design, people: int, frequencies: Frequencies, *, shrinks: bool = True, part: Part = WHOLE
) -> tuple[float, float]:
    """Return the mean squared errors to expect of the unbiased estimator, and of "best" where asked for.

    It may be a part of several predictions that are averaged, each of which needs fewer draws.
    """
    variances = predicted_variances(design, people, frequencies)
    plain = float(np.mean([spread.mean() for spread in variances.values()]))
    if not shrinks or not np.isfinite(plain):
        return plain, plain
    numbers, loose = number_errors(design, people, frequencies), loose_sums([design.first])
    return plain, mean_square(best_errors(design.schema, frequencies, variances, numbers, loose, part))


def number_errors(design: Design, people: int, frequencies: Frequencies) -> dict[str, Array]:
    """Return simulated errors of the attributes that are reported as a noisy number only."""
    if design.two_phase is not None:
        return {}
    protocol, whole = design.first, _whole(design.first)
    shares = dict(zip(protocol.labels, protocol.part_shares, strict=True))
    numbers = {
        name: (mechanism, max(round(people * shares[name] / whole), 1))
        for name, mechanism in sole_numbers(protocol).items()
    }
    return likeliest_errors(numbers, people, frequencies)


def _whole(protocol: Protocol) -> int:
    """Return what the shares of people who send each part are out of."""
    return sum(protocol.part_shares) if protocol.sends_one_part else 1


def check_frequencies(schema: Schema, frequencies: Frequencies) -> None:
    """Raise unless every attribute has frequencies that add up to 1."""
    for attribute in schema:
        if attribute.name not in frequencies:
            raise InputError(f"`frequencies` lack the attribute {attribute.name!r}.")
        given, wanted = np.asarray(frequencies[attribute.name]), f"{attribute.size} shares that add up to 1"
        if given.shape != (attribute.size,) or not np.all(given >= 0) or abs(float(given.sum()) - 1) > 1e-6:
            raise invalid(f"frequencies of {attribute.name}", wanted, given)


def group_error(group: ReportedGroup, frequencies: Frequencies) -> float:
    """Return the summed mean variance of one report's estimates of all the group's attributes."""
    return sum(float(_single(group, name, frequencies[name]).mean()) for name in group.names)


def _single(group: ReportedGroup, name: str, share: Array) -> Array:
    """Return the variance of one report's estimate of each value, sampling of people included."""
    moments = group.moments[name]
    if moments is None:
        return group.randomiser.variance(1, share)
    none, full = moments
    return none + (full - none) * share - share**2


def _grouped(protocol: Protocol, people: int, frequencies: Frequencies) -> dict[str, Array]:
    whole = _whole(protocol)
    precision: dict[str, Array] = {}
    for group, share in zip(protocol.groups, protocol.part_shares, strict=True):
        for name in group.names:
            spread = _single(group, name, frequencies[name]) * whole / (people * share)
            # A mechanism without noise has no variance, and so all the weight.
            precision[name] = precision.get(name, np.zeros_like(spread)) + 1 / np.maximum(spread, 1e-300)
    return _without_people({name: 1 / total for name, total in precision.items()}, frequencies, people)


def _linear(protocol: Protocol, people: int, frequencies: Array) -> Array:
    """Return the variances, stacked, of estimates that solve the linear system."""
    if linear.condition(protocol) > linear.WORST_CONDITION:
        return np.full_like(frequencies, np.inf)
    if (gains := linear.separate(protocol)) is not None:
        return linear.alone_variances(protocol, gains, frequencies, people)
    basis = linear.directions(protocol.schema.sizes)
    inside, weighted = linear.weighted_design(protocol, frequencies, basis)
    covariance = np.linalg.inv(people * (weighted.T @ inside))
    return np.asarray(((basis @ covariance) * basis).sum(axis=1))


def _enumerated(protocol: Protocol, people: int, frequencies: Array) -> Array:
    """Return the variances, stacked and at most, of estimates that invert the law of whole reports."""
    inversion = Inversion.of(protocol)
    return (inversion.none + (inversion.full - inversion.none) * frequencies - frequencies**2) / people


def _two_phase(design: TwoPhase, people: int, frequencies: Frequencies) -> dict[str, Array]:
    """Predict both phases solved together, first phases simulated."""
    schema = design.schema
    basis = linear.directions(schema.sizes)
    stacked = _stacked(schema, frequencies)
    early, late = _phases(design, people)
    pairs = [(frequencies[group.label], group) for group in design.first.groups]
    known = [(share, inverted_covariance(group, share) / early) for share, group in pairs]
    lead, _ = linear.first_precision(schema.sizes, known)
    spread = np.zeros_like(stacked)
    simulated = _simulated(design, people, frequencies, _FIRST_PHASES)
    for _, second in simulated:
        inside, weighted = linear.weighted_design(second, stacked, basis)
        covariance = np.linalg.inv(lead + late * (weighted.T @ inside))
        spread += ((basis @ covariance) * basis).sum(axis=1) / len(simulated)
    return _without_people(linear.split(spread, schema), frequencies, people)


def published_error(
    design: TwoPhase, people: int, frequencies: Frequencies, trials: int = PUBLISHED_TRIALS
) -> float:
    """Return the mean squared error of Corr-RR's own estimator, its bias included, first phases simulated.

    What the second phase copies was learnt from the first, so that both err the same way: the first phase's
    own error is added before squaring.
    """
    check_frequencies(design.schema, frequencies)
    early, late = _phases(design, people)
    weight = late / (early + late)
    stacked = _stacked(design.schema, frequencies)
    errors = []
    for first, second in _simulated(design, people, frequencies, trials):
        scale = np.sqrt(min(first.people / early, 1.0))  # fewer are simulated than report, and err more
        estimates = unbiased([first.aggregate()])
        for name, share in linear.split(second.expected_counts() @ stacked, design.schema).items():
            keep, low = map(float, second.responses[name].mark_rates or (1.0, 0.0))
            gap = keep - low
            bias = (share - low) / gap - frequencies[name]
            off = weight * bias + (1 - weight) * scale * (estimates[name].estimate - frequencies[name])
            spread = share * (1 - share) / (late * gap**2)
            errors.append(float((off**2 + weight**2 * spread).mean()))
    return float(np.mean(errors))


def _phases(design: TwoPhase, people: int) -> tuple[int, int]:
    early = max(round(design.share * people), 1)
    return early, max(people - early, 1)


def _simulated(
    design: TwoPhase, people: int, frequencies: Frequencies, trials: int
) -> list[tuple[RecordReports, Protocol]]:
    """Return simulated first phases and the second ones they lead to; attributes are drawn independently.

    How they depend on each other is not known before collecting. Beyond some reports a first phase is as good
    as exact, so that more are not simulated.
    """
    early, late = _phases(design, people)
    rng = np.random.default_rng(_SEED)
    simulated = []
    most = max(_MOST_WORK // sum(design.schema.sizes) ** 2, 1)  # learning takes the square of all values
    for trial in range(min(trials, most)):
        columns = [
            rng.choice(len(frequencies[name]), size=min(early, _MOST_SIMULATED), p=frequencies[name])
            for name in design.schema.names
        ]
        records = np.stack(columns, axis=1).astype(np.uint16)
        first = design.first.randomise(records, seed=_SEED + trial)
        simulated.append((first, learn_second_phase(design, first, people=late).second))
    return simulated


def _stacked(schema: Schema, frequencies: Frequencies) -> Array:
    return np.concatenate([frequencies[name] for name in schema.names])


def _without_people(spread: Frequencies, frequencies: Frequencies, people: int) -> dict[str, Array]:
    """Return each attribute's variances, the sampling of people taken out."""
    sampling = {name: frequencies[name] * (1 - frequencies[name]) / people for name in spread}
    return {name: np.maximum(part - sampling[name], 0.0) for name, part in spread.items()}
