"""Labelled data: LabelDP, the basic solution, kHR with its k and omega, hashed domains, budgets of rounds."""

from sidelight.labels.budgets import BudgetRule as BudgetRule, LabelLedger as LabelLedger
from sidelight.labels.collection import LabelledRows as LabelledRows, LabelSettings as LabelSettings
from sidelight.labels.hashed_heads import HashedHeads as HashedHeads, hashed_heads as hashed_heads
from sidelight.labels.leakage import adversarial_belief as adversarial_belief
from sidelight.labels.leakage import degraded_guarantee as degraded_guarantee
from sidelight.labels.leakage import labeldp_leakage as labeldp_leakage
from sidelight.labels.omega import LabelSample as LabelSample, Omega as Omega, WidthRule as WidthRule
from sidelight.labels.omega import best_width as best_width, chosen_width as chosen_width
from sidelight.labels.omega import heads_variance as heads_variance, joint_confidence as joint_confidence
from sidelight.labels.omega import learn_omegas as learn_omegas, omegas_from_public as omegas_from_public
from sidelight.labels.omega import published_width as published_width, sample_response as sample_response
from sidelight.labels.responses import AttributeReports as AttributeReports, AttributeSums as AttributeSums
from sidelight.labels.responses import AttributeTold as AttributeTold, BasicResponse as BasicResponse
from sidelight.labels.responses import HeadsResponse as HeadsResponse, LabelOnlyResponse as LabelOnlyResponse
from sidelight.labels.responses import LabelResponse as LabelResponse
from sidelight.labels.value_response import ValueOnlyResponse as ValueOnlyResponse
