"""Attacks on a release, each beside its control, its baseline and the limit of what is possible."""

from sidelight.attacks.attack import Attacker, Guess, attack
from sidelight.attacks.bayes import BayesAttacker
from sidelight.attacks.effective import EffectiveBudget, effective_budget
from sidelight.attacks.floating import (
    FloatingPointAttacker,
    FloatingPointResult,
    attack_naive,
    attack_release,
)
from sidelight.attacks.intervals import Interval
from sidelight.attacks.labels import attack_labels as attack_labels
from sidelight.attacks.learnt import LearntAttacker
from sidelight.attacks.numbers import Numbers
from sidelight.attacks.owner import Noise, NoisyNumbers, protect
from sidelight.attacks.plans import attack_plans
from sidelight.attacks.posterior import Posterior, posterior
from sidelight.attacks.reconstruction import Reconstructor, fit_aware, fit_published
from sidelight.attacks.released import Released, release
from sidelight.attacks.result import AttackComparison, AttackResult

__all__ = [
    "AttackComparison",
    "AttackResult",
    "Attacker",
    "BayesAttacker",
    "EffectiveBudget",
    "FloatingPointAttacker",
    "FloatingPointResult",
    "Guess",
    "Interval",
    "LearntAttacker",
    "Noise",
    "NoisyNumbers",
    "Numbers",
    "Posterior",
    "Reconstructor",
    "Released",
    "attack",
    "attack_naive",
    "attack_plans",
    "attack_release",
    "effective_budget",
    "fit_aware",
    "fit_published",
    "posterior",
    "protect",
    "release",
]
