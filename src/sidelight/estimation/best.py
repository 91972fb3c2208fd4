"""The estimator `best`: posterior means of every attribute, from whatever estimates it without bias.

Attributes that were reported together lend each other what their joint says: its prior is
Dirichlet(alpha x product of their frequencies), with alpha averaged by evidence. Where they are independent
that is the product and changes nothing; where they depend on each other the joint is sparse, and its
posterior removes noise that no one marginal shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from sidelight.estimation.averaging import CONCENTRATIONS, improved
from sidelight.estimation.bayes import Noisy, Posterior, dirichlet_posteriors
from sidelight.estimation.joint import LARGEST_JOINT
from sidelight.estimation.shrinkage import shared_domains
from sidelight.estimation.unbiased import Every
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.mechanisms import Aggregate
from sidelight.protocols.groups import ReportedGroup, marginal
from sidelight.protocols.records import RecordSums
from sidelight.schema import Schema


def attribute_posteriors(
    schema: Schema, estimates: Every, prior: Mapping[str, Array] | None = None
) -> dict[str, Posterior]:
    """Return posteriors of unbiased estimates, by attribute; `prior` are frequencies from elsewhere.

    How far a prior is to be trusted is found from the estimates: a wrong one costs little.
    """
    domains = places_of(schema)
    given = [(prior or {}).get(name) for name in schema.names]
    found = improved([estimates[name] for name in schema.names], domains, given)
    return dict(zip(schema.names, found, strict=True))


def best_posteriors(
    schema: Schema, parts: Sequence[RecordSums], estimates: Every, prior: Mapping[str, Array] | None = None
) -> dict[str, Posterior]:
    """Return the posterior of every attribute, with what joints of groups lend."""
    found = attribute_posteriors(schema, estimates, prior)
    people = sum(part.people for part in parts)
    for part in parts:
        groups = part.protocol.groups
        for group, sums in zip(groups, part.parts, strict=False):  # sums may be of no group
            others = {name for other in groups if other is not group for name in other.names}
            is_alone = not others.intersection(group.names) and len(parts) == 1
            if is_alone and len(group.names) > 1 and group.size <= LARGEST_JOINT and sums.reports > 0:
                found |= _lent(group, sums, people, found)
    return found


def places_of(schema: Schema) -> list[list[int]]:
    """Return where the attributes stand that share their values."""
    return [[schema.index(name) for name in names] for names in shared_domains(schema)]


def _lent(
    group: ReportedGroup, sums: Aggregate, people: int, found: Mapping[str, Posterior]
) -> dict[str, Posterior]:
    """Return the marginals of a group's joint, averaged over how much its attributes depend on each other.

    Their variances stay those of the attributes alone, which lending makes smaller.
    """
    joint = group.estimate(sums).reshape(-1)
    apart = reduce(np.multiply.outer, [found[name].mean for name in group.names]).reshape(-1)
    near = (to_simplex(joint) + apart) / 2
    spread = group.randomiser.variance(sums.reports, near) - near * (1 - near) / people
    noisy = Noisy.of(joint, spread, group.randomiser.adds_up)
    means, _, evidence = dirichlet_posteriors(noisy, apart, CONCENTRATIONS)
    weights = np.exp(evidence - evidence.max())
    table = (weights / weights.sum() @ means).reshape(group.sizes)
    return {name: replace(found[name], mean=marginal(table, axis)) for axis, name in enumerate(group.names)}
