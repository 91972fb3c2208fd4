"""Posterior probabilities of an attribute given all reports of a record, exactly, for many records.

A joint belief is weighed record by record. In a tree belief messages move from the leaves to the secret: a
node multiplies what its report and its children say about its value and tells its parent what that means
there (Pearl 1988), so the work grows with the number of attributes and not with that of combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.likelihood import Reader, likelihood_reader
from sidelight.attacks.released import Released
from sidelight.belief import Belief, Tree
from sidelight.collection import Collected
from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import track
from sidelight.sources import Records

Array = NDArray[np.float64]
Spoken = Mapping[str, Array]
"""What the reports of each attribute say: Pr(report | value) up to a factor, shape (values, rows)."""

Rule = Callable[[Spoken, int], Array]
"""From what the reports say about so many records to the unnormalised posterior of the secret."""

_ROWS = 1 << 12
_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the reports say about the secret.

    Attributes:
        secret: the attribute.
        probabilities: (n, values) of each value, for each record.
        impossible: how many records have reports that the belief holds impossible; they keep the prior.
    """

    secret: str
    probabilities: Array
    impossible: int = 0

    def __len__(self) -> int:
        return len(self.probabilities)

    def mode(self) -> NDArray[np.intp]:
        """Return the likeliest value's code: the guess with the fewest errors."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def mean(self, points: Array) -> Array:
        """Return the mean of the numbers that stand for the values: the least squared distance."""
        return np.asarray(self.probabilities @ points)

    def median(self, points: Array) -> Array:
        """Return the median of the numbers that stand for the values: the least distance."""
        order = np.argsort(points, kind="stable")
        below = np.cumsum(self.probabilities[:, order], axis=1)
        place = (below < 0.5 * below[:, -1:]).sum(axis=1)
        return np.asarray(points[order][np.minimum(place, len(points) - 1)])


def posterior(belief: Belief, reports: Released | Collected, secret: str) -> Posterior:
    """Return the posterior of the secret for every record of a release.

    Args:
        belief: what the attacker knows; a joint or a tree.
        reports: what people sent; attributes that are not released say nothing.
        secret: any attribute of the belief, released or not.
    """
    released = Released.of(reports)
    for release in released.plan.releases:
        if belief.schema[release.name] != release.attribute:
            raise InputError(f"the plan codes {release.name!r} in another way than the belief.")
    readers = {
        release.name: likelihood_reader(release.randomiser())
        for release in released.plan.releases
        if release.mechanism != "withheld"
    }
    infer: Rule
    if belief.tree is not None:
        infer, width = _TreeRule(belief.tree.rooted_at(secret)), 1
    elif belief.records is not None:
        records = _merged(belief.records, [*readers], secret)
        infer, width = _JointRule(records, secret, belief.smoothing), len(records.weights)
    else:
        raise InputError("the Bayes attack needs a joint or a tree belief; a pairwise one knows no joint.")
    prior = belief.prior(secret)
    out = np.empty((len(released), len(prior)))
    impossible = 0
    step = max(1, min(_ROWS, _CELLS // width))
    starts = range(0, len(released), step)
    for start in track(starts, "inferring"):
        span = slice(start, min(start + step, len(released)))
        weights = infer(spoken(readers, released, span), span.stop - span.start)
        mass = weights.sum(axis=0)
        lost = mass <= 0
        if lost.any():
            impossible += int(lost.sum())
            weights[:, lost], mass[lost] = prior[:, None], 1.0
        out[span] = (weights / mass).T
    return Posterior(secret, out, impossible)


def spoken(readers: Mapping[str, Reader], released: Released, span: slice) -> dict[str, Array]:
    """Return what the reports of a run of people say; who did not report an attribute says nothing of it."""
    found = {}
    for name, reader in readers.items():
        reports, rows = released.part(name, span.start, span.stop)
        likely = reader(reports)
        if rows is not None:
            everyone = np.ones((len(likely), span.stop - span.start))
            everyone[:, rows] = likely
            likely = everyone
        found[name] = likely
    return found


@dataclass(frozen=True, eq=False)
class _TreeRule:
    """Message passing towards the root, which is the secret."""

    tree: Tree

    def __call__(self, spoken: Spoken, rows: int) -> Array:
        tree, names = self.tree, self.tree.schema.names
        messages: dict[int, Array] = {}
        for position in reversed(tree.order):
            said = spoken.get(names[position])
            for child in tree.children[position]:
                if child in messages:
                    message = messages.pop(child)
                    said = message if said is None else _scaled(said * message)
            if tree.parents[position] < 0:
                prior = tree.conditionals[position][0]
                return np.asarray((np.ones((1, rows)) if said is None else said) * prior[:, None])
            if said is not None:
                messages[position] = tree.conditionals[position] @ said
        raise InputError("a tree has a root; this one has none.")


def _scaled(message: Array) -> Array:
    """Divide each record's entries by the largest, so that long products stay away from 0."""
    most = message.max(axis=0)
    return np.asarray(np.divide(message, most, out=message, where=most > 0))


@dataclass(frozen=True, eq=False)
class _JointRule:
    """Weigh every distinct record by the likelihood of the reports."""

    records: Records
    secret: str
    spread: float

    def __call__(self, spoken: Spoken, rows: int) -> Array:
        schema, codes = self.records.schema, self.records.codes
        owner = np.eye(schema[self.secret].size)[:, codes[:, schema.index(self.secret)]]
        logs = np.zeros((len(codes), rows))
        with np.errstate(divide="ignore"):
            for name, likely in spoken.items():
                logs += np.log(likely)[codes[:, schema.index(name)]]
        most = logs.max(axis=0)
        shift = np.where(np.isfinite(most), most, 0.0)
        found = (owner * self.records.weights) @ np.exp(logs - shift)
        return np.asarray(found + self._evenly(spoken, shift) if self.spread else found)

    def _evenly(self, spoken: Spoken, shift: Array) -> Array:
        """Return the part of the evenly spread records, in which all attributes are independent."""
        size = self.records.schema[self.secret].size
        logs = np.log(self.spread / size) - shift
        for name, likely in spoken.items():
            if name != self.secret:
                logs = logs + np.log(likely.mean(axis=0))
        return np.asarray(np.exp(logs) * spoken.get(self.secret, np.ones((size, 1))))


def _merged(records: Records, released: list[str], secret: str) -> Records:
    """Return the distinct records of the attributes that matter."""
    names = list(dict.fromkeys([*released, secret]))
    columns = [records.schema.index(name) for name in names]
    codes, position = np.unique(records.codes[:, columns], axis=0, return_inverse=True)
    weights = np.zeros(len(codes))
    np.add.at(weights, position.reshape(-1), records.weights)
    return Records(records.schema.select(names), codes, weights)
