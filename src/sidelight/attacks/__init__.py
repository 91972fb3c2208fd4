"""Attacks on a release, each beside its control, its baseline and the limit of what is possible."""

from sidelight.attacks.attack import Attacker as Attacker, Guess as Guess, attack as attack
from sidelight.attacks.bayes import BayesAttacker as BayesAttacker, attack_plans as attack_plans
from sidelight.attacks.effective import EffectiveBudget as EffectiveBudget
from sidelight.attacks.effective import effective_budget as effective_budget
from sidelight.attacks.floating_point import FloatingPointAttacker as FloatingPointAttacker
from sidelight.attacks.floating_point import FloatingPointResult as FloatingPointResult
from sidelight.attacks.floating_point import attack_naive as attack_naive, attack_release as attack_release
from sidelight.attacks.labels import attack_labels as attack_labels
from sidelight.attacks.learnt import LearntAttacker as LearntAttacker
from sidelight.attacks.numbers import Numbers as Numbers
from sidelight.attacks.owner import Noise as Noise, NoisyNumbers as NoisyNumbers, protect as protect
from sidelight.attacks.posterior import Posterior as Posterior, posterior as posterior
from sidelight.attacks.reconstruction import Reconstructor as Reconstructor, fit_aware as fit_aware
from sidelight.attacks.reconstruction import fit_published as fit_published
from sidelight.attacks.rehearsal import rehearse as rehearse
from sidelight.attacks.released import Released as Released, release as release
from sidelight.attacks.result import AttackComparison as AttackComparison, AttackResult as AttackResult
from sidelight.attacks.synthetic import attack_synthetic as attack_synthetic
from sidelight.attacks.verdict import Verdict as Verdict
from sidelight.foundation.intervals import Interval as Interval
