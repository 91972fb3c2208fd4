"""Belief and channels in, leakage out."""

from sidelight.leakage.analysers import (
    ANALYSERS,
    Analyser,
    leakage_error,
    normalised_overshoot,
    normalised_undershoot,
    region,
)
from sidelight.leakage.average import (
    AverageLeakage,
    average_leakage,
    correlation_matrix,
    mutual_information,
    mutual_information_matrix,
    normalised_mutual_information,
    pearson_correlation,
)
from sidelight.leakage.black_box import RandomiserAudit, audit_randomiser
from sidelight.leakage.bounds import Bound, Leakage, Witness
from sidelight.leakage.credal import robust_pair, robust_total
from sidelight.leakage.hashing import hashing_leakage
from sidelight.leakage.pair import direct_leakage, pair_leakage, pair_matrix, saturation
from sidelight.leakage.profile import (
    ProfilePoint,
    approximate_pair,
    privacy_profile,
    profile_epsilon,
    published_approximate_pair,
)
from sidelight.leakage.published import (
    budget_sum,
    graph_budget_sum,
    pairwise_sum,
    reconstruction_advanced,
    reconstruction_sum,
    sampling_amplification,
)
from sidelight.leakage.statistical import StatisticalLeakage, statistical_leakage
from sidelight.leakage.synergy import Synergy, synergy_scan
from sidelight.leakage.totals import set_leakage, total_leakage, tree_total, tree_totals

__all__ = [
    "ANALYSERS",
    "Analyser",
    "AverageLeakage",
    "Bound",
    "Leakage",
    "ProfilePoint",
    "RandomiserAudit",
    "StatisticalLeakage",
    "Synergy",
    "Witness",
    "approximate_pair",
    "audit_randomiser",
    "average_leakage",
    "budget_sum",
    "correlation_matrix",
    "direct_leakage",
    "graph_budget_sum",
    "hashing_leakage",
    "leakage_error",
    "mutual_information",
    "mutual_information_matrix",
    "normalised_mutual_information",
    "normalised_overshoot",
    "normalised_undershoot",
    "pair_leakage",
    "pair_matrix",
    "pairwise_sum",
    "pearson_correlation",
    "privacy_profile",
    "profile_epsilon",
    "published_approximate_pair",
    "reconstruction_advanced",
    "reconstruction_sum",
    "region",
    "robust_pair",
    "robust_total",
    "sampling_amplification",
    "saturation",
    "set_leakage",
    "statistical_leakage",
    "synergy_scan",
    "total_leakage",
    "tree_total",
    "tree_totals",
]
