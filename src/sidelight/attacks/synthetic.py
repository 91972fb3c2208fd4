"""The attack on synthetic people: were you among those who reported?

The records are made from estimates, so whatever they tell about one person went through that person's report
(post-processing). The attacker has the synthetic table, the records of people who reported and of others like
them who did not, and calls those members whose records are commoner in the table than he would expect. With a
report of epsilon nobody can be right more often than e^eps / (1 + e^eps) of the time (Kairouz, Oh, Viswanath
2015); without learning anything he is right half of the time.

What he gains is real, as each member's own report is in the estimates, and small: tables of 2,000 people
(four attributes, on average over 40 collections, each +- 0.0013) led to errors of 0.4985 at epsilon 1 and
0.4932 at epsilon 4; tables of other people to 0.500. One attack's interval is wider than that, so it neither
shows the gain nor shows that there is none.
"""

from __future__ import annotations

import math

import numpy as np

from sidelight.attacks.attack import Guess
from sidelight.attacks.result import AttackResult
from sidelight.foundation.arrays import AnyCodes, Array
from sidelight.foundation.errors import InputError, check_number
from sidelight.foundation.intervals import Interval

_HALF = 0.5


def attack_synthetic(
    synthetic: AnyCodes, members: AnyCodes, outsiders: AnyCodes, *, epsilon: float, confidence: float = 0.95
) -> AttackResult:
    """Guess who was among those who reported, from synthetic records made of their reports.

    Args:
        synthetic: the records that are published, codes of shape (people, attributes).
        members: records of people who reported, in the same attributes.
        outsiders: as many records of people who did not, from the same population.
        epsilon: the budget of a record's report, which limits any attacker.
        confidence: of the intervals.
    """
    budget = check_number("epsilon", epsilon, above=0, infinite=True)
    tables = [np.asarray(item) for item in (synthetic, members, outsiders)]
    if any(item.ndim != 2 or item.shape[1] != tables[0].shape[1] or not len(item) for item in tables):
        shapes = ", ".join(str(item.shape) for item in tables)
        raise InputError(
            f"all records must be codes of the same attributes, (people, attributes), got {shapes}."
        )
    if len(tables[1]) != len(tables[2]):
        raise InputError(
            f"there must be as many outsiders as members, {len(tables[1])}, got {len(tables[2])}."
        )
    known = np.concatenate(tables[1:])
    truth = np.repeat([1, 0], [len(tables[1]), len(tables[2])])
    likely = _membership(tables[0], known)
    limit = Interval.exactly(1 / (1 + math.exp(min(budget, 700.0))))
    probabilities = np.stack([1 - likely, likely], axis=1)
    guess = Guess(
        "membership by likeness", f"synthetic people at epsilon {budget:g}", "error rate",
        (likely > _HALF).astype(np.int64), np.asarray(1), None, limit, probabilities, ("outsider", "member"),
    )  # fmt: skip
    return guess.measured(truth, "membership", limit, confidence)


def _membership(synthetic: AnyCodes, known: AnyCodes) -> Array:
    """Return how likely each known record is a member's: by its ranks in how common it is in the table.

    A record's score is how many pairs of its values are how much commoner among synthetic people than among
    all known ones: a table that remembered its members would favour exactly them.
    """
    columns = known.shape[1]
    score = np.zeros(len(known))
    for a in range(columns):
        for b in range(a, columns):
            score += _lean(synthetic[:, [a, b]], known[:, [a, b]])
    # Ranks keep the probabilities within what such a small lean can mean; ties share theirs.
    _, places, counts = np.unique(score, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray((middle[places] + 0.5) / len(known))


def _lean(synthetic: AnyCodes, known: AnyCodes) -> Array:
    width = int(max(synthetic.max(), known.max())) + 1
    cells = [part[:, 0].astype(np.intp) * width + part[:, 1] for part in (synthetic, known)]
    made, seen = (np.bincount(part, minlength=width * width) + 1.0 for part in cells)
    return np.asarray(np.log(made / made.sum())[cells[1]] - np.log(seen / seen.sum())[cells[1]])
