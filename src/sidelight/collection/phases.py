"""Two phases as three files: reports of the first phase, published parameters, reports of the second.

Each step stands on its own and can be taken up later by someone else. Later rounds learn from all reports of
first phases so far (iterative refinement, Corr-RR section 3.3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sidelight.collection.copying import COPYING, Copying, conditional_law, copy_laws, copy_probabilities
from sidelight.collection.describing import (
    ProtocolFile,
    check_kind,
    check_version,
    protocol_data,
    protocol_from,
    read_data,
    write_data,
)
from sidelight.collection.direct import Split, spl
from sidelight.collection.hidden import HiddenChoice, Whole, whole_law
from sidelight.collection.numbers import to_simplex
from sidelight.collection.protocol import (
    Collected,
    FirstPhase,
    check_budget,
    check_same,
    even_part,
    fingerprint,
    joined,
)
from sidelight.collection.shrinkage import shrink
from sidelight.collection.unbiased import unbiased
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.foundation.randomness import randomness
from sidelight.foundation.strict import Strict, validated
from sidelight.schema import Schema

Array = NDArray[np.float64]
Method = Literal["corr-rr", "cond-rr"]
METHODS = ("corr-rr", "cond-rr")
PARAMETERS_VERSION = 1
_WORDS = 2.0**64


@dataclass(frozen=True)
class TwoPhase:
    """Corr-RR or Cond-RR: what the first phase does and how the second is derived from it.

    Attributes:
        schema: the attributes of a record.
        epsilon: the budget of a record, in either phase.
        method: "corr-rr" (copy what was reported) or "cond-rr" (draw from conditionals).
        copying: how Corr-RR sets p_y, "published" or "corrected".
        share: how many of all people take part in the first phase.
        groups: into how many groups the second phase divides the attributes (Corr-RR section 3.3.3).
    """

    schema: Schema
    epsilon: float
    method: Method = "corr-rr"
    copying: Copying = "published"
    share: float = 0.1
    groups: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget(self.epsilon))
        check_choice("method", self.method, METHODS)
        check_choice("copying", self.copying, COPYING)
        check_number("share", self.share, above=0, below=1)
        check_whole("groups", self.groups, at_least=1, at_most=len(self.schema))

    @cached_property
    def first(self) -> Split:
        """The first phase: every attribute through randomised response with an even share of the budget."""
        return spl(self.schema, self.epsilon)

    @property
    def phase(self) -> FirstPhase:
        """What the first phase's reports say about this collection."""
        return FirstPhase(self.method, self.epsilon, self.share)

    def in_first(self, people: int, offset: int = 0) -> NDArray[np.bool_]:
        """Return who takes part in the first phase, by position; the choice is public and always the same."""
        return _in_first(self.share, people, offset)

    def learn(
        self,
        reports: Collected | Sequence[Collected],
        people: int | None = None,
        round_number: int | None = None,
    ) -> Parameters:
        """Return the parameters of the second phase, learnt from reports of the first.

        Args:
            reports: of the first phase, of one round or several.
            people: how many are expected in the second phase; by default what `share` implies.
            round_number: which round this is; by default as many as there are first phases.
        """
        parts = [reports] if isinstance(reports, Collected) else list(reports)
        first = self._check_first(parts)
        expected = people if people is not None else round(first.people * (1 - self.share) / self.share)
        check_whole("people", expected, at_least=1)
        found = unbiased([first.aggregate()])
        smooth = shrink(self.schema, found) if self.copying == "corrected" else {}
        used = [smooth.get(name, found[name].estimate) for name in self.schema.names]
        joints = (
            _pair_joints(first)
            if self.method == "cond-rr" or self.groups > 1 or not _equal(self.schema)
            else {}
        )
        groups = _group(self.schema.names, joints, self.groups)
        fakes: dict[tuple[str, str], Whole] = {}
        for group in groups:
            fakes |= self._laws(group, used, joints, max(expected, 2))
        origin = f"{origin_of(self.first)} {first.people} reports"
        second = HiddenChoice(self.schema, groups, self.epsilon, fakes, self.method, origin)
        return Parameters(self, second, first.people, len(parts) if round_number is None else round_number)

    def _check_first(self, parts: Sequence[Collected]) -> Collected:
        """Return the reports of all first phases as one, if they are this design's."""
        if sum(part.people for part in parts) < 1:
            raise InputError("the first phase has no reports to learn from; raise `share`.")
        for part in parts:
            check_same(self.first, part.protocol)
            if part.phase is not None and part.phase.share != self.share:
                raise InputError(
                    f"`share` must be {part.phase.share:g}, as the first phase says, got {self.share:g}; "
                    "else people would report in both phases or in none."
                )
        return joined(parts)

    def _laws(
        self, group: tuple[str, ...], used: Sequence[Array],
        joints: dict[tuple[str, str], Array], people: int,
    ) -> dict[tuple[str, str], Whole]:  # fmt: skip
        """Return the laws of the fakes of one group."""
        index = [self.schema.index(name) for name in group]
        laws: dict[tuple[str, str], Whole] = {}
        if self.method == "corr-rr":
            part = even_part(self.epsilon, self.groups)
            laws = _copies(group, [used[i] for i in index], part, people, self.copying)
        for chosen, other in permutations(group, 2):
            if (chosen, other) not in laws:
                joint = joints[chosen, other] if (chosen, other) in joints else joints[other, chosen].T
                laws[chosen, other] = whole_law(conditional_law(joint))
        return laws


@dataclass(frozen=True, eq=False)
class Parameters:
    """What the server publishes between the phases.

    Attributes:
        design: the protocol as a whole.
        second: the second phase.
        reports: how many reports of first phases it was learnt from.
        round_number: which round of refinement this is.
    """

    design: TwoPhase
    second: HiddenChoice
    reports: int
    round_number: int = 1

    def write(self, path: str | Path) -> Path:
        """Write the parameters to a .toml or .json file."""
        design = self.design
        data: dict[str, Any] = {
            "version": PARAMETERS_VERSION,
            "round": self.round_number,
            "reports": self.reports,
            "design": {
                "epsilon": design.epsilon, "method": design.method, "copying": design.copying,
                "share": design.share, "groups": design.groups,
            },
            "second": protocol_data(self.second),
        }  # fmt: skip
        return write_data(data, path)

    @classmethod
    def read(cls, path: str | Path) -> Parameters:
        """Read parameters from a .toml or .json file."""
        data = read_data(path)
        check_kind(data, str(path), "parameters")
        check_version(data, str(path), PARAMETERS_VERSION, "parameter file")
        parsed = validated(_ParametersFile, data, str(path))
        second = protocol_from(dict(data["second"]), str(path))
        if not isinstance(second, HiddenChoice):
            raise InputError(f"{path}: the second phase must hide its choice, got {second.name!r}.")
        head = parsed.design
        try:
            design = TwoPhase(second.schema, head.epsilon, head.method, head.copying, head.share, head.groups)
            _check_agrees(design, second)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return cls(design, second, parsed.reports, parsed.round)


def phase_rows(
    reports: Collected, people: int, parameters: Parameters | None = None
) -> NDArray[np.bool_] | None:
    """Return which rows of the whole table reports of one phase are of; None where nothing says so.

    Args:
        reports: of a first phase, which say their share, or of a second one.
        people: the rows of the whole table.
        parameters: those that the second phase was collected with.
    """
    if parameters is not None:
        check_same(parameters.second, reports.protocol)
        return ~parameters.design.in_first(people)
    return None if reports.phase is None else _in_first(reports.phase.share, people)


def _in_first(share: float, people: int, offset: int = 0) -> NDArray[np.bool_]:
    words = randomness(0, "collection/phase").words(offset, people)
    return np.asarray(words < np.uint64(min(share * _WORDS, _WORDS - 2048)))


def origin_of(first: Split) -> str:
    """Return how the origin of a second phase begins that was learnt from this first one."""
    return f"first phase {fingerprint(first)},"


def _check_agrees(design: TwoPhase, second: HiddenChoice) -> None:
    """Raise unless a second phase is the design's, so that a changed file spends no other budget."""
    pairs = (
        ("epsilon", second.budget, design.epsilon),
        ("name", second.name, design.method),
        ("number of groups", len(second.groups), design.groups),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            raise InputError(
                f"the {what} of the second phase must be the design's, {wanted!r}, got {found!r}; learn "
                "again."
            )
    if not second.origin.startswith(origin_of(design.first)):
        raise InputError("the second phase was not learnt from this design's first phase; learn again.")


class _DesignFile(Strict):
    epsilon: float
    method: Method
    copying: Copying
    share: float
    groups: int


class _ParametersFile(Strict):
    version: int
    round: int = Field(ge=1)
    reports: int = Field(ge=1)
    design: _DesignFile
    second: ProtocolFile


def _equal(schema: Schema) -> bool:
    return len(set(schema.sizes)) == 1


def _copies(
    group: Sequence[str], frequencies: Sequence[Array], epsilon: float, people: int, copying: Copying
) -> dict[tuple[str, str], Whole]:
    """Return the laws of every ordered pair over equally many values; other pairs draw from conditionals."""
    found: dict[tuple[str, str], Whole] = {}
    for size in {len(one) for one in frequencies}:
        members = [i for i, one in enumerate(frequencies) if len(one) == size]
        if len(members) > 1:
            alike = [frequencies[i] for i in members]
            copies = copy_probabilities(alike, epsilon, people, copying, len(group) - len(members))
            pairs = list(permutations(range(len(members)), 2))
            rows = copy_laws([copies[pair] for pair in pairs], size).reshape(-1, size)
            laws = whole_law(rows).reshape(-1, size, size)
            for (a, b), law in zip(pairs, laws, strict=True):
                found[group[members[a]], group[members[b]]] = law
    return found


def _pair_joints(first: Collected) -> dict[tuple[str, str], Array]:
    """Return each pair's joint: the counts of both reports, both channels inverted, projected."""
    protocol = first.protocol
    assert isinstance(protocol, Split)  # noqa: S101 - narrows the type
    inverse = [np.linalg.inv(unit.randomiser.channel.matrix()) for unit in protocol.units]
    joints = {}
    for a, b in combinations(range(len(protocol.schema)), 2):
        shape = protocol.schema.sizes[a], protocol.schema.sizes[b]
        codes = first.parts[a].values.astype(np.intp) * shape[1] + first.parts[b].values
        shares = np.bincount(codes, minlength=shape[0] * shape[1]).reshape(shape) / first.people
        joint = inverse[a].T @ shares @ inverse[b]
        joints[protocol.schema.names[a], protocol.schema.names[b]] = to_simplex(joint.reshape(-1)).reshape(
            shape
        )
    return joints


def _group(
    names: Sequence[str], joints: dict[tuple[str, str], Array], count: int
) -> tuple[tuple[str, ...], ...]:
    """Merge the attributes, strongest average dependence first, until `count` groups are left."""
    if count == 1:
        return (tuple(names),)
    if count > len(names):
        raise invalid("groups", f"at most {len(names)}", count)
    strength = {pair: dependence(joint) for pair, joint in joints.items()}
    groups = [[name] for name in names]
    while len(groups) > count:
        links = {
            (i, j): _link(strength, groups[i], groups[j]) for i, j in combinations(range(len(groups)), 2)
        }
        i, j = max(links, key=lambda pair: links[pair])
        groups[i] += groups.pop(j)
    return tuple(tuple(sorted(group, key=names.index)) for group in groups)


def _link(strength: dict[tuple[str, str], float], first: Sequence[str], second: Sequence[str]) -> float:
    """Return the average dependence between the members of two groups."""
    pairs = [(a, b) if (a, b) in strength else (b, a) for a in first for b in second]
    return float(np.mean([strength[pair] for pair in pairs]))


def dependence(joint: Array) -> float:
    """Return how far a joint is from independence, as a total-variation distance.

    >>> dependence(np.array([[0.5, 0.0], [0.0, 0.5]]))
    0.5
    """
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float(np.abs(joint - apart).sum() / 2)
