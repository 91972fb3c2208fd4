"""One attacker, several plans: what a calibration takes away from him."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from sidelight.attacks.attack import attack
from sidelight.attacks.bayes import BayesAttacker
from sidelight.attacks.released import release
from sidelight.attacks.result import AttackComparison
from sidelight.belief import Belief
from sidelight.foundation.errors import InputError
from sidelight.leakage.totals import total_leakage
from sidelight.plan import Plan


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

    Args:
        belief: what the attacker knows.
        plans: by name, for example "before" and "after" a calibration.
        secret: the target.
        truth: (n, attributes) the records, coded as in the belief.
        seed: of the simulated noise.
        confidence: of all intervals.
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
