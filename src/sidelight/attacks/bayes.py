"""The Bayes-optimal attacker, on one release or several: nobody who holds the same belief guesses better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.attacks.attack import Guess, attack
from sidelight.attacks.posterior import Posterior, posterior
from sidelight.attacks.released import Released, describe_release, face_value, release
from sidelight.attacks.result import AttackComparison, Measure
from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_choice, invalid
from sidelight.foundation.intervals import Interval, mean_interval
from sidelight.leakage.totals import total_leakage
from sidelight.mechanisms.mechanism import check_codes
from sidelight.plan import Plan
from sidelight.protocols.protocol import check_records
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema
from sidelight.sources import Table

Rule = Literal["mode", "median", "mean"]


@dataclass(frozen=True, eq=False)
class BayesAttacker:
    """Infers any attribute from any release whose mechanisms are known.

    Attributes:
        belief: what the attacker knows before the release: a joint or a tree.
        rule: "mode" guesses the likeliest value, the fewest errors; "median" guesses a number with the least
            distance to the truth, "mean" one with the least squared distance.
        points: the number that stands for each value of the secret; its codes by default.
    """

    belief: Belief
    rule: Rule = "mode"
    points: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, ("mode", "median", "mean"))

    def posterior(self, reports: Released | RecordReports, secret: str) -> Posterior:
        """Return the probability of every value of the secret for every record."""
        return posterior(self.belief, reports, secret)

    def guess(self, reports: Released | RecordReports, secret: str, confidence: float) -> Guess:
        """Return the best guess for every record, and the limit: what the posterior expects to lose."""
        after, points = self.posterior(reports, secret), self.numbers(secret)
        measure: Measure = "error rate" if self.rule == "mode" else "mean distance"
        before = Posterior(secret, self.belief.prior(secret)[None, :])
        guesses, control = self._apply(after, points), self._apply(before, points)
        limit = None if self.rule == "mean" else expected_loss(after, points, measure, confidence)
        shown = face_value(reports, secret, None if self.rule == "mode" else points)
        words = f"Bayes, {self.rule} of the posterior ({self.belief.kind} belief)", describe_release(reports)
        if self.rule != "mode":
            return Guess(*words, measure, guesses, control, shown, limit)
        values = tuple(self.belief.schema[secret].values)
        return Guess(*words, measure, guesses, control, shown, limit, after.probabilities, values)

    def truth(self, table: Any, secret: str) -> NDArray[Any]:
        """Return the true codes of the secret, or the numbers that stand for them."""
        codes = true_codes(table, self.belief.schema, secret)
        return codes if self.rule == "mode" else self.numbers(secret)[codes]

    def numbers(self, secret: str) -> Array:
        """Return the number that stands for each value of the secret."""
        size = self.belief.schema[secret].size
        if self.points and len(self.points) != size:
            raise invalid("points", f"{size} numbers, one for each value of {secret}", len(self.points))
        return np.asarray(self.points, dtype=np.float64) if self.points else np.arange(size, dtype=np.float64)

    def _apply(self, held: Posterior, points: Array) -> NDArray[Any]:
        if self.rule == "mode":
            return held.mode()
        return held.median(points) if self.rule == "median" else held.mean(points)


def expected_loss(held: Posterior, points: Array, measure: Measure, confidence: float = 0.95) -> Interval:
    """Return the least mean loss of any attacker: what the posterior itself expects to lose.

    It is the mean over the reports at hand, so it has an interval too, narrower than that of the losses,
    since the truth need not be drawn.
    """
    probabilities = held.probabilities
    if measure == "error rate":
        return mean_interval(np.maximum(1 - probabilities.max(axis=1), 0.0), confidence)
    best = held.median(points)
    losses = np.zeros(len(held))
    for code, point in enumerate(points):
        losses += probabilities[:, code] * np.abs(best - point)
    return mean_interval(losses, confidence)


def true_codes(table: Any, schema: Schema, secret: str) -> Positions:
    """Return the secret's codes of a table, of coded records, or of an array of codes alone."""
    if isinstance(table, Table):
        if table.schema[secret] != schema[secret]:
            raise invalid("truth", f"a table that codes {secret!r} as the belief does", repr(table))
        return table.codes()[:, table.schema.index(secret)].astype(np.intp)
    array = np.asarray(table)
    if array.ndim != 1 or array.dtype.kind not in "ui":
        array = check_records(array, schema)[:, schema.index(secret)]
    return check_codes(array, schema[secret].size, f"truth of {secret}").astype(np.intp)


def attack_plans(
    belief: Belief,
    plans: Mapping[str, Plan],
    secret: str,
    truth: ArrayLike,
    *,
    seed: int = 0,
    confidence: float = 0.95,
) -> AttackComparison:
    """Simulate a release of the same records under each plan and let the best attacker loose on it.

    Plans have names, for example "before" and "after" a calibration, which shows what it takes from him.
    `truth` are the records, (n, attributes), coded as in the belief.
    """
    if not plans:
        raise InputError("name at least one plan to attack.")
    attacker = BayesAttacker(belief)
    results, notes = {}, []
    for name, plan in plans.items():
        reports = release(truth, belief.schema, plan, seed=seed)
        results[name] = attack(reports, attacker, secret=secret, truth=truth, confidence=confidence)
        leakage = total_leakage(belief, plan.channels(), secret)
        notes.append(
            f"{name}: all reports together leak {leakage.value:.3f} nats about {secret} "
            f"({leakage.upper.kind}, {leakage.upper.method})."
        )
    return AttackComparison(f"The same attack on {len(results)} plans", results, tuple(notes))
