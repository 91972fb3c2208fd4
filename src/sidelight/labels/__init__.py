"""Labelled data: LabelDP, the basic solution, kHR with its k and omega, hashed domains, budgets of rounds."""

from sidelight.labels.budgets import BudgetRule, Ledger
from sidelight.labels.devices import LabelledRows, LabelSettings
from sidelight.labels.hashed_heads import HashedHeads, hashed_heads
from sidelight.labels.leakage import adversarial_belief, degraded_guarantee, labeldp_leakage
from sidelight.labels.omega import (
    LabelSample,
    Omega,
    OmegaSample,
    joint_confidence,
    learn_omegas,
    omegas_from_public,
    sample_response,
)
from sidelight.labels.responses import (
    BasicResponse,
    HeadsResponse,
    LabelOnlyResponse,
    LabelResponse,
)
from sidelight.labels.widths import (
    WidthRule,
    best_width,
    chosen_width,
    heads_variance,
    published_width,
)

__all__ = [
    "BasicResponse",
    "BudgetRule",
    "HashedHeads",
    "HeadsResponse",
    "LabelOnlyResponse",
    "LabelResponse",
    "LabelSample",
    "LabelSettings",
    "LabelledRows",
    "Ledger",
    "Omega",
    "OmegaSample",
    "WidthRule",
    "adversarial_belief",
    "best_width",
    "chosen_width",
    "degraded_guarantee",
    "hashed_heads",
    "heads_variance",
    "joint_confidence",
    "labeldp_leakage",
    "learn_omegas",
    "omegas_from_public",
    "published_width",
    "sample_response",
]
