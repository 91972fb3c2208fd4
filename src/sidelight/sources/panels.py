"""Panels with known truth: the same people round after round, who change, join, leave and miss rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Codes, Mask, Positions
from sidelight.foundation.errors import InputError, TooLargeError, check_number, check_whole, invalid, unknown
from sidelight.foundation.randomness import derive_seed
from sidelight.schema import Schema, as_schema, plain_schema
from sidelight.sources.examples import labelled, survey_joint
from sidelight.sources.table import Table

Frequencies = Mapping[str, Array]
"""How frequent each attribute's values are."""
Changes = ArrayLike | Mapping[str, ArrayLike] | None
"""How values change from round to round: (states, states) for all attributes together, the last changing
fastest; or an attribute's own (values, values), by its name; or None where nothing does."""
_TOLERANCE = 1e-9
_MOST_STATES = 1 << 12


@dataclass(frozen=True, eq=False)
class Attendance:
    """How the people of a panel come and go.

    Attributes:
        joining: the share of people who are not asked from the first round on, but from a later one.
        leaving: how likely somebody leaves for good, from one round to the next.
        skipping: how likely somebody misses a round; (states,) where that depends on the values.
    """

    joining: float = 0.0
    leaving: float = 0.0
    skipping: ArrayLike = 0.0

    def __post_init__(self) -> None:
        for name, share in (("joining", self.joining), ("leaving", self.leaving)):
            _shares(name, check_number(name, share))
        _shares("skipping", self.skipping)

    def drawn(self, missed: Array, rng: np.random.Generator) -> Mask:
        """Return who reports when, (rounds, people), given how likely everybody misses each round."""
        rounds, people = missed.shape
        first = np.zeros(people, dtype=np.intp)
        if rounds > 1:
            first = np.where(rng.random(people) < self.joining, rng.integers(1, rounds, people), 0)
        numbers = np.arange(rounds)[:, None]
        leaves = (rng.random((rounds, people)) < self.leaving) & (numbers > first)
        there = (numbers >= first) & ~np.logical_or.accumulate(leaves, axis=0)
        return np.asarray(there & (rng.random((rounds, people)) >= missed))


@dataclass(frozen=True, eq=False)
class SimulatedPanel:
    """People whose values in every round are known, and who reported when. Rounds count from 1.

    Attributes:
        schema: the attributes.
        codes: (rounds, people, attributes) everybody's values, whether they reported or not.
        present: (rounds, people) who reported.
        law: (rounds, states) the distribution that the values of each round were drawn from.
        seed: where all of it comes from.
    """

    schema: Schema
    codes: Codes
    present: Mask
    law: Array
    seed: int

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.codes)

    @property
    def people(self) -> int:
        """How many people there are, those included who never report."""
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        about = f"{self.people} people, {self.rounds} rounds, {len(self.schema)} attributes"
        return f"SimulatedPanel({about}; {self.present.mean():.0%} of the reports are sent)"

    def table(self, number: int) -> Table:
        """Return the records of those who reported in a round, in the order of `identifiers`."""
        at = self._place(number)
        return labelled(self.schema, self.codes[at][self.present[at]], f"round {number} of a simulated panel")

    def identifiers(self, number: int) -> list[str]:
        """Return who reported in a round: a name for each row of its table, the same in every round."""
        return [f"p{place + 1}" for place in np.flatnonzero(self.present[self._place(number)])]

    def reported(self, number: int) -> Frequencies:
        """Return the true frequencies among those who reported in a round."""
        at = self._place(number)
        return self._counted(self.codes[at][self.present[at]])

    def population(self, number: int) -> Frequencies:
        """Return the true frequencies among all people in a round, whether they reported or not."""
        return self._counted(self.codes[self._place(number)])

    def expected(self, number: int) -> Frequencies:
        """Return the frequencies of the distribution that the people of a round were drawn from."""
        joint = self.law[self._place(number)].reshape(self.schema.sizes)
        others = [tuple(i for i in range(joint.ndim) if i != axis) for axis in range(joint.ndim)]
        return {name: joint.sum(axis=rest) for name, rest in zip(self.schema.names, others, strict=True)}

    def _place(self, number: int) -> int:
        return check_whole("number", number, at_least=1, at_most=self.rounds) - 1

    def _counted(self, codes: Codes) -> Frequencies:
        columns = zip(self.schema, codes.T, strict=True)
        return {
            item.name: np.bincount(column, minlength=item.size) / max(len(codes), 1)
            for item, column in columns
        }


def drifting(target: ArrayLike, share: float) -> Array:
    """Return the changes by which, in every round, a share of all people take a value of the target's.

    So the population drifts from where it starts to the target, and everybody keeps a value for long.

    >>> drifting([0.5, 0.5], 0.2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    speed = float(_shares("share", check_number("share", share)))
    towards = _distributions("target", target, (np.size(target),))
    return np.asarray((1 - speed) * np.eye(len(towards)) + speed * towards)


def simulate_panel(
    people: int, rounds: int, joint: ArrayLike | None = None, schema: Schema | None = None, *, seed: int,
    changes: Changes = None, attendance: Attendance | None = None,
) -> SimulatedPanel:  # fmt: skip
    """Simulate a panel whose truth is known: who has which values in every round, and who reports.

    Args:
        people: how many there are.
        rounds: how many times they are asked.
        joint: the distribution in the first round, an axis for each attribute; that of the example survey,
            whose attributes are correlated, by default.
        schema: the attributes; named x1, x2 and so on where a joint comes without one.
        seed: where all draws come from.
        changes: how values change from round to round, see `Changes`; `drifting` makes those of a
            population that moves. By default values stay the same.
        attendance: how people come and go; by default everybody reports in every round.
    """
    count = check_whole("people", people, at_least=1)
    length = check_whole("rounds", rounds, at_least=1)
    check_whole("seed", seed, at_least=0)
    known, start = _start(joint, schema)
    step = None if changes is None else _step(changes, known)
    coming = Attendance() if attendance is None else attendance
    missed = _shares("skipping", coming.skipping)
    if missed.shape not in ((), start.shape):
        raise invalid("skipping", f"one probability, or one for each of {len(start)} states", missed.shape)
    law, states = _moved(start, step, count, length, derive_seed(seed, "panel/values"))
    often = np.broadcast_to(missed, start.shape)[states]
    present = coming.drawn(often, np.random.default_rng(derive_seed(seed, "panel/people")))
    columns = np.unravel_index(states, known.sizes)
    return SimulatedPanel(known, np.stack(columns, axis=-1).astype(np.uint16), present, law, seed)


def _start(joint: ArrayLike | None, schema: Schema | None) -> tuple[Schema, Array]:
    """Return the attributes and the distribution of their states in the first round."""
    if joint is None:
        if schema is not None:
            raise InputError("a `schema` needs a `joint`, how likely each combination of its values is.")
        known, cells = survey_joint()
    else:
        cells = np.asarray(joint, dtype=np.float64)
        names = [(f"x{place + 1}", size) for place, size in enumerate(cells.shape)]
        known = plain_schema(names) if schema is None else as_schema(schema)
    if math.prod(known.sizes) > _MOST_STATES:
        raise TooLargeError(f"{math.prod(known.sizes)} states are too many, at most {_MOST_STATES}.")
    if cells.shape != known.sizes:
        raise invalid("joint", f"of shape {known.sizes}, an axis for each attribute", cells.shape)
    return known, _distributions("joint", cells.reshape(-1), (cells.size,))


def _step(changes: ArrayLike | Mapping[str, ArrayLike], schema: Schema) -> Array:
    """Return the transition probabilities of all attributes together."""
    states = math.prod(schema.sizes)
    if not isinstance(changes, Mapping):
        return _distributions("changes", changes, (states, states))
    for name in set(changes) - set(schema.names):
        raise unknown("attribute", name, schema.names)
    step: Array = np.ones((1, 1))
    for item in schema:
        own = changes.get(item.name, np.eye(item.size))
        moves = _distributions(f"changes of {item.name}", own, (item.size,) * 2)
        step = np.asarray(np.kron(step, moves))
    return step


def _moved(start: Array, step: Array | None, people: int, rounds: int, seed: int) -> tuple[Array, Positions]:
    """Return the law of each round, (rounds, states), and everybody's states, (rounds, people)."""
    rng = np.random.default_rng(seed)
    law = np.repeat(start[None], rounds, axis=0)
    states = np.repeat(rng.choice(len(start), size=(1, people), p=start), rounds, axis=0)
    if step is None:
        return law, states
    ends = np.cumsum(step, axis=1)
    for number in range(1, rounds):
        law[number] = law[number - 1] @ step
        draws = rng.random(people)
        for state in np.unique(states[number - 1]):
            here = states[number - 1] == state
            # The last end may lie below 1 by rounding.
            moved = np.searchsorted(ends[state], draws[here], side="right")
            states[number, here] = np.minimum(moved, len(start) - 1)
    return law, states


def _shares(name: str, given: ArrayLike) -> Array:
    """Return probabilities of any shape, or raise."""
    array = np.array(given, dtype=np.float64)
    outside = array[~((array >= 0) & (array <= 1))]
    if outside.size:
        raise invalid(name, "probabilities", float(outside.flat[0]))
    return array


def _distributions(name: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return probabilities whose last axis adds up to 1, or raise."""
    array = _shares(name, given)
    if array.shape != shape:
        raise invalid(name, f"probabilities of shape {shape}", array.shape)
    if np.abs(array.sum(axis=-1) - 1).max() > _TOLERANCE:
        raise invalid(name, "probabilities that sum to 1", float(array.sum(axis=-1).min()))
    return np.asarray(array / array.sum(axis=-1, keepdims=True))
