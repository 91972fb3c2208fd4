"""Posterior probabilities of an attribute given all reports of a record, exactly, for many records.

A joint belief is weighed record by record (see `joint`). In a tree belief messages move from the leaves to
the secret: a node multiplies what its report and its children say about its value and tells its parent what
that means there (Pearl 1988), so the work grows with the number of attributes and not with that of
combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sidelight.attacks.joint import JointRule
from sidelight.attacks.released import Released, evidence_of
from sidelight.belief import Belief, Tree
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.protocols.factors import Factor, Spoken
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema
from sidelight.sources.counts import distinct_records

Rule = Callable[[Sequence[Factor], int], Array]
"""From what the reports of so many people say to the unnormalised posterior of the secret."""

_ROWS = 1 << 12
_CELLS = 1 << 20
_MOST_TERMS = 1 << 12


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the reports say about the secret: the probability of each value, (n, values), for each record.

    `impossible` counts the records whose reports the belief holds impossible; they keep the prior.
    """

    secret: str
    probabilities: Array
    impossible: int = 0

    def __len__(self) -> int:
        return len(self.probabilities)

    def mode(self) -> Positions:
        """Return the likeliest value's code: the guess with the fewest errors."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def mean(self, points: Array) -> Array:
        """Return the mean of the numbers that stand for the values: the least squared distance."""
        return np.asarray(self.probabilities @ points)

    def median(self, points: Array) -> Array:
        """Return the median of the numbers that stand for the values: the least distance."""
        order = np.argsort(points, kind="stable")
        below = np.cumsum(self.probabilities[:, order], axis=1)
        place = (below < 0.5 * below[:, -1:]).sum(axis=1)  # half of the sum, which rounding may leave off 1
        return np.asarray(points[order][np.minimum(place, len(points) - 1)])


def posterior(belief: Belief, reports: Released | RecordReports, secret: str) -> Posterior:
    """Return the posterior of the secret for every record of a release, under a joint or a tree.

    The secret is any attribute of the belief, released or not; attributes that are not released say nothing.
    """
    schema, cells, batches = evidence_of(reports)
    for attribute in schema:
        if belief.schema[attribute.name] != attribute:
            raise InputError(f"the plan codes {attribute.name!r} in another way than the belief.")
    infer, width = _rule(belief, schema, cells, secret)
    prior = belief.prior(secret)
    out = np.empty((len(reports), len(prior)))
    impossible = 0
    step = max(1, min(_ROWS, _CELLS // width))  # so that what they need together stays small
    for rows, factors in track(batches(step), "inferring", -(-len(reports) // step)):
        weights = infer(factors, rows.stop - rows.start if isinstance(rows, slice) else len(rows))
        mass = weights.sum(axis=0)
        lost = mass <= 0
        if lost.any():
            impossible += int(lost.sum())
            weights[:, lost], mass[lost] = prior[:, None], 1.0
        out[rows] = (weights / mass).T
    return Posterior(secret, out, impossible)


def _rule(belief: Belief, schema: Schema, cells: int, secret: str) -> tuple[Rule, int]:
    """Return how this belief infers, and how many numbers it holds for each person meanwhile."""
    if belief.tree is not None:
        return _TreeRule(belief.tree.rooted_at(secret)), 1
    if belief.records is not None:
        names = list(dict.fromkeys([*schema.names, secret]))
        codes = belief.records.codes[:, [belief.schema.index(name) for name in names]]
        records = distinct_records(belief.schema.select(names), codes, belief.records.weights)
        return JointRule(records, secret, belief.smoothing), max(len(records.weights), cells)
    raise InputError("the Bayes attack needs a joint or a tree belief; a pairwise one knows no joint.")


@dataclass(frozen=True, eq=False)
class _TreeRule:
    """Message passing towards the root, which is the secret."""

    tree: Tree

    def __call__(self, factors: Sequence[Factor], rows: int) -> Array:
        """Multiply the factors of single attributes; expand the others into sums of such products."""
        single: dict[str, Array] = {}
        others = []
        for factor in factors:
            if len(factor.choices()) == 1:
                single = _both(single, factor.choices())
            else:
                others.append(factor.terms())
        if not others:
            return self._messages(single, rows, _scaled)
        if math.prod(len(terms) for terms in others) > _MOST_TERMS:
            raise InputError(
                f"a report of these groups is a sum of more than {_MOST_TERMS} terms in a tree belief; take "
                "a joint belief, or fewer groups."
            )
        total = np.zeros((self.tree.schema.sizes[self.tree.order[0]], rows))
        for chosen in product(*others):
            spoken = single
            for _, said in chosen:
                spoken = _both(spoken, said)
            weight = math.prod(weight for weight, _ in chosen)
            total += weight * self._messages(spoken, rows, lambda message: message)
        return total

    def _messages(self, spoken: Spoken, rows: int, scaled: Callable[[Array], Array]) -> Array:
        """Return what all nodes tell the root; terms of a sum must keep their scale."""
        tree, names = self.tree, self.tree.schema.names
        messages: dict[int, Array] = {}
        for position in reversed(tree.order):
            said = spoken.get(names[position])
            for child in tree.children[position]:
                if child in messages:
                    message = messages.pop(child)
                    said = message if said is None else scaled(said * message)
            if tree.parents[position] < 0:
                prior = tree.conditionals[position][0]
                return np.asarray((np.ones((1, rows)) if said is None else said) * prior[:, None])
            if said is not None:
                messages[position] = tree.conditionals[position] @ said
        raise InputError("a tree has a root; this one has none.")


def _both(first: Spoken, second: Spoken) -> dict[str, Array]:
    """Return what two products say together."""
    shared = {name: first[name] * second[name] for name in first if name in second}
    return {**first, **second, **shared}


def _scaled(message: Array) -> Array:
    """Divide each record's entries by the largest, so that long products stay away from 0."""
    most = message.max(axis=0)
    return np.asarray(np.divide(message, most, out=message, where=most > 0))
