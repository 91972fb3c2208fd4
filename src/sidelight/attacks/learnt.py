"""An attacker who learns from reports of his own making, without knowing the belief."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.attacks.attack import Guess
from sidelight.attacks.bayes import true_codes
from sidelight.attacks.learners import fit_classification
from sidelight.attacks.released import Released, describe_plan, face_value, release
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, invalid
from sidelight.plan import Plan
from sidelight.protocols import RecordReports
from sidelight.protocols.protocol import check_records
from sidelight.schema import Schema


@dataclass(frozen=True, eq=False)
class LearntAttacker:
    """Gradient-boosted trees trained on the attacker's own records, perturbed as the plan says.

    Make one with `fit`. `predict` goes from features to the probability of each code; the commonest code of
    the secret among the attacker's records is the control.
    """

    schema: Schema
    plan: Plan
    secret: str
    commonest: int
    predict: Callable[[Array], Array]

    @classmethod
    def fit(
        cls, codes: ArrayLike, schema: Schema, plan: Plan, secret: str, *, copies: int = 1, seed: int = 0
    ) -> LearntAttacker:
        """Perturb the attacker's own records, (n, attributes), and learn the secret from their reports.

        The mechanisms of the plan are public. Each record is perturbed anew for every copy; the seed is that
        of noise and training.
        """
        # Fresh noise for each copy teaches the mechanism, not the noise.
        rows = np.tile(check_records(codes, schema), (copies, 1))
        features = report_features(release(rows, schema, plan, seed=seed))
        wanted = rows[:, schema.index(secret)].astype(np.intp)
        predict = fit_classification(features, wanted, schema[secret].size, seed)
        return cls(schema, plan, secret, int(np.bincount(wanted).argmax()), predict)

    def guess(self, reports: Released | RecordReports, secret: str, confidence: float) -> Guess:  # noqa: ARG002
        """Return the likeliest code of every record."""
        released = Released.of(reports)
        if secret != self.secret:
            raise invalid("secret", f"{self.secret!r}, what the attacker was trained for", secret)
        if released.plan.releases != self.plan.releases:
            raise InputError("this attacker was trained for another plan; train him for this one.")
        likely = self.predict(report_features(released))
        shown, control = face_value(released, secret, None), np.asarray(self.commonest)
        words, values = describe_plan(released.plan), tuple(self.schema[secret].values)
        guesses = likely.argmax(axis=1)
        told = "boosted trees, noise-aware", words
        return Guess(*told, "error rate", guesses, control, shown, None, likely, values)

    def truth(self, table: Any, secret: str) -> NDArray[Any]:
        """Return the true codes of the secret."""
        return true_codes(table, self.schema, secret)


def report_features(released: Released) -> Array:
    """Return the log-likelihood of every report under every value, shape (n, values of all attributes)."""
    parts = []
    for part in released.plan.releases:
        likely = part.randomiser().likelihoods(released[part.name])
        # The trees take finite features only; no report that is possible is less likely than this.
        parts.append(np.log(np.maximum(likely, 1e-300)))
    return np.concatenate(parts, axis=1)
