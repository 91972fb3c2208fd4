"""The error to expect before collecting, from how many people, values and how much budget there are.

Errors are mean squared errors: the mean over attributes of the mean over values of (f - estimate)^2, about
the people who report, so that not asking all of them counts and who they are does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sidelight.collection.copying import copy_law, copy_probabilities
from sidelight.collection.direct import Sample, Split
from sidelight.collection.hidden import HiddenChoice, whole_law
from sidelight.collection.linear import (
    WORST_CONDITION,
    condition,
    directions,
    expected_counts,
    report_covariance,
)
from sidelight.collection.phases import TwoPhase
from sidelight.collection.protocol import Array, Protocol
from sidelight.collection.shrinkage import least_risk, shared_domains
from sidelight.collection.units import Unit
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.schema import Schema

Frequencies = Mapping[str, Array]
_DRAWS = 200
_SEED = 20_250_101


def uniform(schema: Schema) -> dict[str, Array]:
    """Return uniform frequencies: what is assumed where nothing is known."""
    return {attribute.name: np.full(attribute.size, 1 / attribute.size) for attribute in schema}


def predicted_variances(
    protocol: Protocol | TwoPhase, people: int, frequencies: Frequencies
) -> dict[str, Array]:
    """Return the mean squared error of each value's unbiased estimate (for Corr-RR: of the published one)."""
    check_whole("people", people, at_least=1)
    check_frequencies(protocol.schema, frequencies)
    if isinstance(protocol, (Split, Sample)):
        return _direct(protocol, people, frequencies)
    if isinstance(protocol, HiddenChoice):
        return _hidden(protocol, people, frequencies)
    if isinstance(protocol, TwoPhase):
        return _two_phase(protocol, people, frequencies)
    raise invalid("protocol", "one of this package", protocol)


def predicted_error(
    protocol: Protocol | TwoPhase, people: int, frequencies: Frequencies, *, shrinks: bool = False
) -> float:
    """Return the mean squared error to expect, over attributes and values.

    Args:
        protocol: what would be used.
        people: how many would report.
        frequencies: what is known or assumed of every attribute.
        shrinks: whether for the estimator "best", found by simulating its noise, instead of the unbiased one.
    """
    variances = predicted_variances(protocol, people, frequencies)
    if not shrinks:
        return float(np.mean([spread.mean() for spread in variances.values()]))
    rng = np.random.default_rng(_SEED)
    errors = []
    for names in shared_domains(protocol.schema):
        truth = np.stack([frequencies[name] for name in names])
        spread = np.stack([variances[name] for name in names])
        noise = rng.normal(size=(_DRAWS, *truth.shape)) * np.sqrt(spread)
        noise -= noise.mean(axis=-1, keepdims=True)
        size = truth.shape[-1]
        noise *= np.sqrt(size / max(size - 1, 1))
        found = least_risk(truth + noise, np.broadcast_to(spread.sum(axis=-1), (_DRAWS, len(names))))
        errors += list(((found - truth) ** 2).mean(axis=(0, 2)))
    return float(np.mean(errors))


def check_frequencies(schema: Schema, frequencies: Frequencies) -> None:
    """Raise unless every attribute has frequencies that add up to 1."""
    for attribute in schema:
        if attribute.name not in frequencies:
            raise InputError(f"`frequencies` lack the attribute {attribute.name!r}.")
        given = np.asarray(frequencies[attribute.name])
        if given.shape != (attribute.size,) or np.any(given < 0) or abs(float(given.sum()) - 1) > 1e-6:
            raise invalid(
                f"frequencies of {attribute.name}", f"{attribute.size} shares that add up to 1", given
            )


def unit_error(unit: Unit, frequencies: Frequencies) -> float:
    """Return the summed mean variance of one report's estimates of all the unit's attributes."""
    return sum(float(_single(unit, name, frequencies[name]).mean()) for name in unit.names)


def _single(unit: Unit, name: str, share: Array) -> Array:
    """Return the variance of one report's estimate of each value, sampling of people included."""
    moments = unit.moments(name)
    if moments is None:
        return unit.randomiser.variance(1, share)
    none, full = moments
    return none + (full - none) * share - share**2


def _direct(protocol: Split | Sample, people: int, frequencies: Frequencies) -> dict[str, Array]:
    whole = sum(protocol.shares) if isinstance(protocol, Sample) else 1
    shares = protocol.shares if isinstance(protocol, Sample) else (1,) * len(protocol.units)
    precision: dict[str, Array] = {}
    for unit, share in zip(protocol.units, shares, strict=True):
        for name in unit.names:
            spread = _single(unit, name, frequencies[name]) * whole / (people * share)
            precision[name] = precision.get(name, np.zeros_like(spread)) + 1 / np.maximum(spread, 1e-300)
    return {
        name: np.maximum(1 / total - frequencies[name] * (1 - frequencies[name]) / people, 0.0)
        for name, total in precision.items()
    }


def _hidden(protocol: HiddenChoice, people: int, frequencies: Frequencies) -> dict[str, Array]:
    schema = protocol.schema
    if condition(protocol) > WORST_CONDITION:
        return {attribute.name: np.full(attribute.size, np.inf) for attribute in schema}
    stacked = np.concatenate([frequencies[name] for name in schema.names])
    basis = directions(schema.sizes)
    inside = expected_counts(protocol) @ basis
    weight = np.linalg.pinv(report_covariance(protocol, stacked), rcond=1e-10, hermitian=True)
    covariance = basis @ np.linalg.inv(inside.T @ weight @ inside) @ basis.T
    spread = np.split(np.diag(covariance) / people, np.cumsum(schema.sizes)[:-1])
    return {
        name: np.maximum(part - frequencies[name] * (1 - frequencies[name]) / people, 0.0)
        for name, part in zip(schema.names, spread, strict=True)
    }


def _two_phase(design: TwoPhase, people: int, frequencies: Frequencies) -> dict[str, Array]:
    """Predict Corr-RR's published estimator, as if the first phase had found the frequencies exactly."""
    schema = design.schema
    early = max(round(design.share * people), 1)
    late = max(people - early, 1)
    first = _direct(design.first, early, frequencies)
    if len(set(schema.sizes)) > 1 or design.groups > 1 or design.method != "corr-rr":
        return first
    given = [np.asarray(frequencies[name]) for name in schema.names]
    copies = copy_probabilities(given, design.epsilon, late, design.copying)
    fakes = {
        (schema.names[j], schema.names[i]): whole_law(copy_law(float(copies[j, i]), schema.sizes[0]))
        for j in range(len(schema)) for i in range(len(schema)) if i != j
    }  # fmt: skip
    second = HiddenChoice(schema, (schema.names,), design.epsilon, fakes, "corr-rr", "prediction")
    seen = np.split(expected_counts(second) @ np.concatenate(given), len(schema))
    result = {}
    for name, share, truth in zip(schema.names, seen, given, strict=True):
        response = second.responses[name]
        low, gap = (
            float(response.support_if_other),
            float(response.support_if_true - response.support_if_other),
        )
        bias = (share - low) / gap - truth
        spread = share * (1 - share) / (late * gap**2)
        weight = late / (early + late)
        result[name] = weight**2 * (bias**2 + spread) + (1 - weight) ** 2 * first[name]
    return result
