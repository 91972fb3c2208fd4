"""The estimators by their names, and what each is expected to err."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from sidelight.estimation.best import best_posteriors
from sidelight.estimation.joint import likeliest_joint, likeliest_numbers
from sidelight.estimation.shrinkage import Method, by_domain, joint_marginals, least_risk, shrunken
from sidelight.estimation.simulated import (
    Frequencies,
    likeliest_errors,
    loose_sums,
    simulated_errors,
)
from sidelight.estimation.unbiased import About, Every, number_parts
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.protocols import records
from sidelight.protocols.groups import marginal
from sidelight.protocols.records import RecordReports, RecordSums, Reported
from sidelight.schema import Schema

Estimator = Literal["best", "inversion", "simplex", "shrinkage", "least-risk", "em", "published"]
ESTIMATORS = ("best", "inversion", "simplex", "shrinkage", "least-risk", "em", "published")
_IMPROVED: dict[str, Method] = {
    "least-risk": least_risk,
    "shrinkage": shrunken,
    "simplex": lambda estimates, _: to_simplex(estimates),
}
_WITH_NUMBERS = ("best", "least-risk")  # which take the likeliest of noisy numbers


class Chosen(NamedTuple):
    """The frequencies of an estimator by attribute, and their posterior variances where it has any."""

    frequencies: Frequencies
    spreads: Frequencies


def chosen_by(
    estimator: str, estimates: Every, parts: Sequence[RecordSums], given: Sequence[Reported],
    prior: Frequencies | None,
) -> Chosen:  # fmt: skip
    """Return the frequencies by the estimator of this name, of unbiased estimates or of what was given."""
    if estimator != "best":
        return Chosen(_frequencies(estimator, estimates, parts, given), {})
    found = best_posteriors(parts[0].protocol.schema, parts, estimates, prior)
    means = {name: item.mean for name, item in found.items()} | likeliest_numbers(parts)
    return Chosen(means, {name: item.variance for name, item in found.items()})


def _frequencies(
    estimator: str, estimates: Every, parts: Sequence[RecordSums], given: Sequence[Reported]
) -> dict[str, Array]:
    schema = parts[0].protocol.schema
    if estimator == "inversion":
        return {name: item.estimate for name, item in estimates.items()}
    if estimator == "em":
        return _likeliest(schema, records.reports_among(given))
    if estimator == "published":
        return published(parts)
    improved = by_domain(schema, estimates, _IMPROVED[estimator])
    if estimator == "least-risk":
        return improved | joint_marginals(schema, parts, estimates) | likeliest_numbers(parts)
    return improved


def _likeliest(schema: Schema, reports: Sequence[RecordReports]) -> dict[str, Array]:
    """Return the likeliest marginals: of each attribute's group, or of the joint of all."""
    if not all(item.protocol.groups for item in reports):
        joint = likeliest_joint(reports, schema.names)
        return {name: marginal(joint, axis) for axis, name in enumerate(schema.names)}
    groups = [group.names for item in reports for group in item.protocol.groups]
    marginals = {}
    for name in schema.names:
        members = list(dict.fromkeys(other for names in groups if name in names for other in names))
        marginals[name] = marginal(likeliest_joint(reports, members), members.index(name))
    return marginals


def published(parts: Sequence[RecordSums]) -> dict[str, Array]:
    """Return Corr-RR's own estimator: all reports as if randomised directly, phases weighted by size.

    It is biased, and the bias does not vanish with more people (see `linear` for its expectation).
    """
    people = sum(part.people for part in parts)
    result: dict[str, Array] = {}
    for part in parts:
        for name, sums in zip(part.protocol.labels, part.parts, strict=True):
            raw = part.protocol.responses[name].estimate(sums)
            result[name] = result.get(name, np.zeros_like(raw)) + raw * (part.people / people)
    return result


def expected_errors(
    estimator: str, parts: Sequence[RecordSums], about: About, chosen: Chosen, variances: Frequencies
) -> dict[str, float]:
    """Return the mean squared error to expect of each attribute's chosen estimates.

    That of a posterior mean is its posterior's variance. That of others is simulated as if their estimates
    were the truth, and is the unbiased estimates' where it is not predicted ("em", "published").
    """
    schema, frequencies = parts[0].protocol.schema, chosen.frequencies
    loose = loose_sums(part.protocol for part in parts)
    found = {  # posteriors have a little variance where there is no noise at all
        name: float(np.where(variances[name] > 0, spread, 0.0).mean())
        for name, spread in (chosen.spreads or variances).items()
    }
    errors: dict[str, Array] = {}
    if estimator in _IMPROVED:
        errors |= simulated_errors(schema, frequencies, variances, _IMPROVED[estimator], loose)
    if estimator in _WITH_NUMBERS:
        people = sum(part.people for part in parts) if about == "collected" else math.inf
        alone = number_parts(parts, alone=True)
        numbers = {name: (mechanism, sums.reports) for name, mechanism, sums in alone}
        errors |= likeliest_errors(numbers, people, frequencies)
    return found | {name: float((error**2).mean()) for name, error in errors.items()}


def check_published(parts: Sequence[RecordSums]) -> None:
    """Raise unless a second phase is among them, and every part is a mechanism's report or a fake of one.

    Elsewhere the estimator is inversion.
    """
    is_known = all(part.protocol.responses for part in parts)
    if not is_known or all(part.protocol.first_phase is None for part in parts):
        raise InputError(
            "the estimator 'published' is Corr-RR's, for the reports of both its phases; these are of "
            f"{parts[-1].protocol.name!r}. Take 'best'."
        )
