"""The verb: let an attacker guess, and measure the guesses against the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.attacks.released import Released
from sidelight.attacks.result import AttackResult, Measure
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.intervals import Interval, check_confidence
from sidelight.protocols import RecordReports


@dataclass(frozen=True, eq=False)
class Guess:
    """What an attacker says about every record, and what he would have said without the release.

    Attributes:
        measure: how guesses are compared with the truth: "error rate" of equal values, or "mean distance".
        guesses: (n,) or (n, targets).
        control: the guess without a release: one for all records, or one for each.
        baseline: (n,) or (n, targets) the release at face value; None where it does not show the target.
        limit: the least mean loss of any attacker, where it is known.
        probabilities: (n, values) how likely each value is for each record, where the attacker says so; the
            guesses are codes then, and `values` the values' names.
    """

    attack: str
    release: str
    measure: Measure
    guesses: NDArray[Any]
    control: NDArray[Any]
    baseline: NDArray[Any] | None = None
    limit: Interval | None = None
    probabilities: Array | None = None
    values: tuple[str, ...] = ()

    def of_people(self, people: Positions) -> Guess:
        """Return the guesses about some of the records alone."""
        control = self.control[people] if self.control.shape == self.guesses.shape else self.control
        baseline = None if self.baseline is None else self.baseline[people]
        likely = None if self.probabilities is None else self.probabilities[people]
        return replace(
            self, guesses=self.guesses[people], control=control, baseline=baseline, probabilities=likely,
            limit=None,
        )  # fmt: skip

    def measured(
        self, true: NDArray[Any], secret: str, limit: Interval | None, confidence: float = 0.95
    ) -> AttackResult:
        """Return how far guesses, control and baseline are from the truth, beside a limit."""
        far = partial(losses, true=true, measure=self.measure)
        control = far(np.broadcast_to(self.control, true.shape))
        baseline = None if self.baseline is None else far(self.baseline)
        told = (secret, self.attack, self.release, self.measure, self.guesses)
        likely = self.probabilities
        held = (likely, None if likely is None else true.astype(np.intp), self.values)
        return AttackResult(*told, far(self.guesses), control, baseline, limit, confidence, *held)


class Attacker(Protocol):
    """The contract: everything that `attack` asks of an attacker.

    Each attacker defines which releases and which tables of true records it takes, and refuses all others.
    """

    def guess(self, reports: Any, secret: str, confidence: float) -> Guess:
        """Return a guess for every record of the release, in its order.

        The confidence is that of the limit's interval, where a limit is known.
        """

    def truth(self, table: Any, secret: str) -> NDArray[Any]:
        """Return the true values of the secret in the form of the guesses, in the order of the table."""


def attack(
    reports: Any,
    attacker: Attacker,
    *,
    secret: str,
    truth: Any,
    people: ArrayLike | None = None,
    limit: Interval | None = None,
    confidence: float = 0.95,
) -> AttackResult:
    """Attack a release and measure what came out; all intervals have the same confidence.

    `reports` are what `collect` returns (or `Released`) for a `BayesAttacker`, the same by a plan or SPL for
    a `LearntAttacker`, `NoisyNumbers` for a reconstruction. `truth` holds the true records in the order of
    the reports: a table, an array of codes or `Numbers`. `people` are the positions of the records to measure
    by, where the attacker has learnt his belief from the others (`rehearse` divides them so). A `limit`, the
    least mean loss of any attacker, may be known from another attack.
    """
    check_confidence(confidence)
    if isinstance(reports, (RecordReports, Released)) and reports.is_shuffled:
        raise InputError(
            "the reports are shuffled, so nobody's can be compared with the truth; collect with --no-shuffle "
            "to rehearse an attack."
        )
    guess = attacker.guess(reports, secret, confidence)
    true = attacker.truth(truth, secret)
    if len(true) != len(guess.guesses):
        raise InputError(
            f"there are {len(guess.guesses)} released records but {len(true)} true ones; give the truth of "
            "the same records in the same order."
        )
    if people is not None:
        chosen = _positions(people, len(true))
        guess, true = guess.of_people(chosen), true[chosen]
    return guess.measured(true, secret, limit or guess.limit, confidence)


def _positions(people: ArrayLike, records: int) -> Positions:
    """Return the positions of some records after checking them."""
    chosen = np.asarray(people)
    is_whole = chosen.ndim == 1 and chosen.dtype.kind in "ui" and len(chosen) > 0
    if not is_whole or chosen.min() < 0 or chosen.max() >= records or len(np.unique(chosen)) < len(chosen):
        raise invalid("people", f"different positions from 0 to {records - 1}", people)
    return chosen.astype(np.intp)


def losses(guesses: NDArray[Any], true: NDArray[Any], measure: Measure) -> Array:
    """Return 1 for each wrong guess, or the (Euclidean) distance of each guess from the truth.

    >>> losses(np.array([1, 2]), np.array([1, 0]), "error rate")
    array([0., 1.])
    >>> losses(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]]), "mean distance")
    array([5.])
    """
    if measure == "error rate":
        return np.asarray(guesses != true, dtype=np.float64)
    difference = np.asarray(guesses, dtype=np.float64) - true
    return np.asarray(np.abs(difference) if difference.ndim == 1 else np.linalg.norm(difference, axis=1))
