"""The second phase of Corr-RR, Cond-RR and pairs, learnt from the reports of the first.

The first two make values up: Corr-RR copies what was reported, Cond-RR draws from conditionals. Pairs are
reported as far as the evidence of dependence makes them worth it. Later rounds learn from
all reports of first phases so far (iterative refinement, Corr-RR section 3.3.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import ArrayLike

from sidelight.estimation.allotment import Allotment, Dependence
from sidelight.estimation.shrinkage import by_domain, shrunken
from sidelight.estimation.table_evidence import table_evidence
from sidelight.estimation.unbiased import unbiased
from sidelight.foundation.arrays import Array, Whole, to_simplex
from sidelight.foundation.errors import InputError, check_choice, check_whole, invalid
from sidelight.protocols.fake_data import FakeDataProtocol, whole_law
from sidelight.protocols.protocol import even_part
from sidelight.protocols.records import (
    RecordReports,
    RecordSums,
    check_same,
    joined,
    listed,
    reports_among,
)
from sidelight.protocols.sets import SetSample, all_pairs, sampled_sets
from sidelight.protocols.two_phase import COPYING, Copying, SecondPhase, TwoPhase, origin_of

Laws = dict[tuple[str, str], Whole]
Joints = dict[tuple[str, str], Array]


def learn_second_phase(
    design: TwoPhase, reports: RecordReports | Sequence[RecordReports], people: int | None = None,
    round_number: int | None = None,
) -> SecondPhase:  # fmt: skip
    """Return the parameters of the second phase, learnt from reports of the first.

    These are of one round or several; the number of this one is by default how many there are. The people
    expected in the second phase are by default as many as `share` implies.
    """
    parts = reports_among(listed(reports))
    first = _check_first(design, parts)
    number = len(parts) if round_number is None else round_number
    return second_phase_from(design, FirstSums.of(design, first), people, number)


@dataclass(frozen=True, eq=False)
class FirstSums:
    """All that a second phase is learnt from, added up, so that no report need be kept for it.

    Attributes:
        sums: of the first phase's reports.
        pairs: how often each two codes of a pair of attributes were reported together, where the design
            asks for it (`needs_pairs`); else empty.
    """

    sums: RecordSums
    pairs: Mapping[tuple[str, str], Whole]

    @classmethod
    def of(cls, design: TwoPhase, first: RecordReports) -> FirstSums:
        """Add reports of a first phase up."""
        return cls(first.aggregate(), count_pairs(first) if needs_pairs(design) else {})


def needs_pairs(design: TwoPhase) -> bool:
    """Whether the second phase depends on how attributes go together, not on their frequencies alone."""
    alike = len(set(design.schema.sizes)) == 1
    return design.method != "pairs" and not (alike and design.method == "corr-rr" and design.groups == 1)


def second_phase_from(
    design: TwoPhase, first: FirstSums, people: int | None = None, round_number: int = 1
) -> SecondPhase:
    """Return the parameters of the second phase, learnt from the sums of the first."""
    check_same(design.first, first.sums.protocol)
    if first.sums.people < 1:
        raise InputError("the first phase has no reports to learn from; raise `share`.")
    share = design.share
    expected = people if people is not None else round(first.sums.people * (1 - share) / share)
    check_whole("people", expected, at_least=1)
    if design.method == "pairs":
        return SecondPhase(
            design, _worth_reporting(design, first.sums, expected), first.sums.people, round_number
        )
    estimates = unbiased([first.sums])
    smooth = by_domain(design.schema, estimates, shrunken) if design.copying == "corrected" else {}
    used = [smooth.get(name, estimates[name].estimate) for name in design.schema.names]
    joints = _pair_joints(first)
    groups = _group(design.schema.names, joints, design.groups)
    fakes: Laws = {}
    for group in groups:
        fakes |= _laws(design, group, used, joints, max(expected, 2))
    origin = f"{origin_of(design.first)} {first.sums.people} reports"
    second = FakeDataProtocol(design.schema, groups, design.epsilon, fakes, design.method, origin)
    return SecondPhase(design, second, first.sums.people, round_number)


def _worth_reporting(design: TwoPhase, first: RecordSums, people: int) -> SetSample:
    """Return the sets of the second phase: shares of people by the error to expect, see `Allotment`."""
    schema = design.schema
    evidence = table_evidence([first], all_pairs(schema))
    believed = {names: Dependence.of(item) for names, item in evidence.shrunken.items()}
    squares = {name: float((share**2).sum()) for name, share in evidence.shares.items()}
    before = {names: float(table.reports) for names, table in evidence.tables.items()}
    best = Allotment(schema, design.epsilon, believed, squares).best(people, before)
    origin = f"{origin_of(design.first)} {first.people} reports"
    return sampled_sets(schema, design.epsilon, best, origin=origin)


def _check_first(design: TwoPhase, parts: Sequence[RecordReports]) -> RecordReports:
    """Return the reports of all first phases as one, if they are this design's."""
    if sum(part.people for part in parts) < 1:
        raise InputError("the first phase has no reports to learn from; raise `share`.")
    for part in parts:
        check_same(design.first, part.protocol)
        if part.phase is not None and part.phase.share != design.share:
            raise InputError(
                f"`share` must be {part.phase.share:g}, as the first phase says, got {design.share:g}; "
                "else people would report in both phases or in none."
            )
    return joined(parts)


def _laws(
    design: TwoPhase, group: tuple[str, ...], used: Sequence[Array], joints: Joints, people: int
) -> Laws:
    """Return the laws of the fakes of one group."""
    index = [design.schema.index(name) for name in group]
    laws: Laws = {}
    if design.method == "corr-rr":
        part = even_part(design.epsilon, design.groups)
        laws = _copies(group, [used[i] for i in index], part, people, design.copying)
    for chosen, other in permutations(group, 2):
        if (chosen, other) not in laws:
            joint = joints[chosen, other] if (chosen, other) in joints else joints[other, chosen].T
            laws[chosen, other] = whole_law(conditional_law(joint))
    return laws


def _copies(
    group: Sequence[str], frequencies: Sequence[Array], epsilon: float, people: int, copying: Copying
) -> Laws:
    """Return the laws of every ordered pair over equally many values; other pairs draw from conditionals."""
    laws: Laws = {}
    for size in {len(one) for one in frequencies}:
        members = [i for i, one in enumerate(frequencies) if len(one) == size]
        if len(members) > 1:
            alike = [frequencies[i] for i in members]
            copies = copy_probabilities(alike, epsilon, people, copying, len(group) - len(members))
            pairs = list(permutations(range(len(members)), 2))
            rows = copy_laws([copies[pair] for pair in pairs], size).reshape(-1, size)
            for (a, b), law in zip(pairs, whole_law(rows).reshape(-1, size, size), strict=True):
                laws[group[members[a]], group[members[b]]] = law
    return laws


def count_pairs(first: RecordReports) -> dict[tuple[str, str], Whole]:
    """Return how often each two codes of each pair of attributes were reported together."""
    schema, pairs = first.protocol.schema, {}
    for a, b in combinations(range(len(schema)), 2):
        shape = schema.sizes[a], schema.sizes[b]
        codes = first.parts[a].values.astype(np.intp) * shape[1] + first.parts[b].values
        counts = np.bincount(codes, minlength=shape[0] * shape[1]).reshape(shape)
        pairs[schema.names[a], schema.names[b]] = counts.astype(np.int64)
    return pairs


def _pair_joints(first: FirstSums) -> Joints:
    """Return each pair's joint: the counts of both reports, both channels inverted, projected."""
    if not first.pairs:
        return {}
    groups = {group.label: group for group in first.sums.protocol.groups}
    inverse = {name: np.linalg.inv(group.randomiser.channel.matrix()) for name, group in groups.items()}
    joints = {}
    for (a, b), counts in first.pairs.items():
        joint = inverse[a].T @ (counts / first.sums.people) @ inverse[b]
        joints[a, b] = to_simplex(joint.reshape(-1)).reshape(counts.shape)
    return joints


def _group(names: Sequence[str], joints: Joints, count: int) -> tuple[tuple[str, ...], ...]:
    """Merge the attributes, strongest average dependence first, until `count` groups are left."""
    if count == 1:
        return (tuple(names),)
    if count > len(names):
        raise invalid("groups", f"at most {len(names)}", count)
    strength = {frozenset(pair): dependence(joint) for pair, joint in joints.items()}

    def link(pair: tuple[int, int]) -> float:
        """Return the average dependence between the members of two groups."""
        return float(np.mean([strength[frozenset(each)] for each in product(*(groups[i] for i in pair))]))

    groups = [[name] for name in names]
    while len(groups) > count:
        i, j = max(combinations(range(len(groups)), 2), key=link)
        groups[i] += groups.pop(j)
    return tuple(tuple(sorted(group, key=names.index)) for group in groups)


def dependence(joint: Array) -> float:
    """Return how far a joint is from independence, as a total-variation distance.

    >>> dependence(np.array([[0.5, 0.0], [0.0, 0.5]]))
    0.5
    """
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float(np.abs(joint - apart).sum() / 2)


def copy_probabilities(
    frequencies: Sequence[Array], epsilon: float, people: int, copying: Copying = "published",
    further: int = 0,
) -> Array:  # fmt: skip
    """Return p[j, l], the probability that attribute l copies what attribute j reported.

    Args:
        frequencies: the first phase's estimate of each attribute, all over the same values.
        epsilon: the budget of the second phase.
        people: how many people will report in it.
        copying: as published (each pair by itself, eq. (4)) or corrected (all that flows into an attribute
            together, with the expectation that is right for any number of values and attributes).
        further: how many attributes over other values are in the group; their conditionals are taken as
            right, so that what flows from them has an attribute's own frequencies.
    """
    check_choice("copying", copying, COPYING)
    check_whole("people", people, at_least=1)
    given = np.asarray(frequencies, dtype=np.float64)
    if copying == "corrected":
        return _corrected(given, epsilon, people, further)
    count = len(given)
    first, second = np.triu_indices(count, 1)
    copies = np.ones((count, count))
    copies[first, second] = published_copies(given[first], given[second], epsilon, people)
    copies[second, first] = copies[first, second]
    return copies


def published_copy(first: ArrayLike, second: ArrayLike, epsilon: float, people: int) -> float:
    """Return p_y for one pair, see `published_copies`.

    >>> round(published_copy([0.9, 0.1], [0.9, 0.1], 1.0, 9000), 3)
    1.0
    >>> published_copy([0.5, 0.5], [0.5, 0.5], 1.0, 9000)
    0.5
    """
    one, other = (np.asarray(item, dtype=np.float64)[None, :] for item in (first, second))
    return float(published_copies(one, other, epsilon, people)[0])


def published_copies(a: Array, b: Array, epsilon: float, people: int) -> Array:
    """Return the p_y in [0, 1] that minimise the average error as published (Corr-RR, Theorem 4, eq. (4)).

    The critical point is that of eq. (4); the one printed in Proposition 1 contradicts its own proof. Where
    the error does not depend on p_y (both marginals even), it is one half, as in Fig. 2. The frequencies of
    the pairs' first attributes, a, and second ones, b, have shape (pairs, values).
    """
    gap = _gap(epsilon, a.shape[1])
    lead, slope = 1 - a - b, 2 * b - 1
    square = (slope**2).sum(axis=1) / 4 * (1 - 1 / people)
    linear = (lead * slope).sum(axis=1) / 2 - ((a - b) * slope).sum(axis=1) / (2 * people)
    flat = square <= 1e-12  # no slope: the error is the same for every p_y, but for rounding
    root = np.clip(-linear / (2 * np.where(flat, 1.0, square)), 0.0, 1.0)
    options = np.stack([root, np.zeros_like(root), np.ones_like(root)], axis=1)
    copy = options[:, :, None]
    bias = (lead[:, None] + copy * slope[:, None]) / 2
    spread = gap / 2 * ((a - b)[:, None] + copy * slope[:, None])
    error = np.mean(bias**2 + (0.25 - spread**2) / (people * gap**2), axis=2)
    best = options[np.arange(len(options)), error.argmin(axis=1)]
    return np.asarray(np.where(flat, 0.5, best))


def _corrected(given: Array, epsilon: float, people: int, further: int) -> Array:
    """Minimise the summed mean squared error of the published estimator under its true expectation.

    What attribute l's column says with probability q + gap m_v has m = (f_l + sum_j [p_j f_j + (1 - p_j)
    (1 - f_j)/(k-1)]) / d, linear in the p_j; its error (m - f_l)^2 + variance is one convex quadratic.
    """
    from scipy.optimize import lsq_linear

    count, size = given.shape
    whole = count + further
    gap = _gap(epsilon, size)
    low = (1 - gap) / size
    copies = np.ones((count, count))
    for target in range(count):
        others = [j for j in range(count) if j != target]
        spread = (1 - given[others]) / (size - 1)
        slopes = ((given[others] - spread) / whole).T
        bias = ((1 + further) * given[target] + spread.sum(axis=0)) / whole - given[target]
        shift = low + gap * (given[target] + bias)
        scale = 1 - 1 / people
        linear = 2 * bias + (1 - 2 * shift) / (people * gap)
        if people > 1 and np.abs(slopes).max() > 1e-12:
            copies[others, target] = lsq_linear(slopes, -linear / (2 * scale), bounds=(0, 1), method="bvls").x
        else:
            copies[others, target] = 0.5
    return np.clip(copies, 0.0, 1.0)


def copy_laws(copies: ArrayLike, size: int) -> Array:
    """Return the laws of copies, shape (pairs, values, values), given each pair's p_y.

    The copy is the reported value with probability p_y, else another one uniformly.
    """
    share = np.asarray(copies, dtype=np.float64)[:, None, None]
    return np.asarray(np.where(np.eye(size, dtype=bool), share, (1 - share) / (size - 1)))


def conditional_law(joint: Array) -> Array:
    """Return Pr(second | first) of a joint with no negative cells; uniform given a value that nobody has."""
    mass = joint.sum(axis=1, keepdims=True)
    even = np.full(joint.shape, 1 / joint.shape[1])
    return np.where(mass > 0, joint / np.where(mass > 0, mass, 1), even)


def _gap(epsilon: float, size: int) -> float:
    return math.expm1(epsilon) / (math.expm1(epsilon) + size)
