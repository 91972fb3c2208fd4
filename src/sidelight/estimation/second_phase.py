"""The second phase of Corr-RR and Cond-RR, learnt from the reports of the first.

Later rounds learn from all reports of first phases so far (iterative refinement, Corr-RR section 3.3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product

import numpy as np

from sidelight.estimation.shrinkage import shrink
from sidelight.estimation.unbiased import unbiased
from sidelight.foundation.arrays import Array, Whole, to_simplex
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.protocols.corr_rr import Copying, conditional_law, copy_laws, copy_probabilities
from sidelight.protocols.fake_data import FakeDataProtocol, whole_law
from sidelight.protocols.protocol import even_part
from sidelight.protocols.records import RecordReports, check_same, joined, listed, reports_among
from sidelight.protocols.two_phase import SecondPhase, TwoPhase, origin_of

Laws = dict[tuple[str, str], Whole]
Joints = dict[tuple[str, str], Array]


def learn_second_phase(
    design: TwoPhase,
    reports: RecordReports | Sequence[RecordReports],
    people: int | None = None,
    round_number: int | None = None,
) -> SecondPhase:
    """Return the parameters of the second phase, learnt from reports of the first.

    Args:
        design: the collection as a whole.
        reports: of the first phase, of one round or several.
        people: how many are expected in the second phase; by default what `share` implies.
        round_number: which round this is; by default as many as there are first phases.
    """
    parts = reports_among(listed(reports))
    first = _check_first(design, parts)
    expected = people if people is not None else round(first.people * (1 - design.share) / design.share)
    check_whole("people", expected, at_least=1)
    estimates = unbiased([first.aggregate()])
    smooth = shrink(design.schema, estimates) if design.copying == "corrected" else {}
    used = [smooth.get(name, estimates[name].estimate) for name in design.schema.names]
    alike = len(set(design.schema.sizes)) == 1
    joints = {} if alike and design.method == "corr-rr" and design.groups == 1 else _pair_joints(first)
    groups = _group(design.schema.names, joints, design.groups)
    fakes: Laws = {}
    for group in groups:
        fakes |= _laws(design, group, used, joints, max(expected, 2))
    origin = f"{origin_of(design.first)} {first.people} reports"
    second = FakeDataProtocol(design.schema, groups, design.epsilon, fakes, design.method, origin)
    return SecondPhase(design, second, first.people, len(parts) if round_number is None else round_number)


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


def _pair_joints(first: RecordReports) -> Joints:
    """Return each pair's joint: the counts of both reports, both channels inverted, projected."""
    schema = first.protocol.schema
    inverse = [np.linalg.inv(group.randomiser.channel.matrix()) for group in first.protocol.groups]
    joints = {}
    for a, b in combinations(range(len(schema)), 2):
        shape = schema.sizes[a], schema.sizes[b]
        codes = first.parts[a].values.astype(np.intp) * shape[1] + first.parts[b].values
        shares = np.bincount(codes, minlength=shape[0] * shape[1]).reshape(shape) / first.people
        joint = inverse[a].T @ shares @ inverse[b]
        joints[schema.names[a], schema.names[b]] = to_simplex(joint.reshape(-1)).reshape(shape)
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
