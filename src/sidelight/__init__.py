"""Sidelight: what the attributes of a private data collection reveal about each other.

Names are loaded when they are first used, so that `import sidelight` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidelight.advice import Advice, advise
    from sidelight.attacks import (
        AttackComparison,
        AttackResult,
        BayesAttacker,
        LearntAttacker,
        attack,
        attack_plans,
        effective_budget,
    )
    from sidelight.auditing import Audit, SecretAudit, audit
    from sidelight.belief import Belief, Credal, Gaussian, Tree
    from sidelight.calibration import Calibration, OptimalChannel, calibrate, optimal_channel
    from sidelight.estimation import Estimates, estimate, estimate_joint
    from sidelight.foundation.errors import InputError, MissingExtraError, SidelightError, TooLargeError
    from sidelight.knowledge import (
        Adversary,
        Edges,
        KnowledgeAudit,
        NoiseChoice,
        Query,
        WeightedGraph,
        all_adversaries,
        gaussian_audit,
        gaussian_leakage,
        gaussian_weakest,
        group_bound,
        knowledge_audit,
        least_noise,
        posterior,
        prior_leakage,
        worst_adversary,
    )
    from sidelight.leakage import (
        ANALYSERS,
        AverageLeakage,
        Bound,
        Leakage,
        ProfilePoint,
        RandomiserAudit,
        StatisticalLeakage,
        Synergy,
        Witness,
        approximate_pair,
        audit_randomiser,
        average_leakage,
        correlation_matrix,
        direct_leakage,
        hashing_leakage,
        mutual_information_matrix,
        normalised_overshoot,
        normalised_undershoot,
        pair_leakage,
        pairwise_sum,
        privacy_profile,
        profile_epsilon,
        published_approximate_pair,
        robust_pair,
        robust_total,
        saturation,
        set_leakage,
        statistical_leakage,
        synergy_scan,
        total_leakage,
        tree_total,
        tree_totals,
    )
    from sidelight.learning.learnt import Learnt, learn
    from sidelight.mechanisms import Channel, Mechanism, create
    from sidelight.plan import Plan, Release
    from sidelight.protocols import RecordReports, SecondPhase, TwoPhase, record_budget
    from sidelight.report import write_report
    from sidelight.schema import Attribute, Schema, binned, categorical, numeric
    from sidelight.sources import Counts, Dictionary, Table, read, read_sql
    from sidelight.sources.examples import admissions, example, survey, survey_joint, titanic
    from sidelight.studies.benchmarks import (
        AnalyserBenchmark,
        MechanismBenchmark,
        benchmark_analysers,
        benchmark_mechanisms,
    )
    from sidelight.transport import Aggregator, collect, read_reports, write_reports

_HOMES = {
    "sidelight.attacks": (
        "AttackComparison",
        "AttackResult",
        "BayesAttacker",
        "LearntAttacker",
        "attack",
        "attack_plans",
        "effective_budget",
    ),
    "sidelight.auditing": ("Audit", "SecretAudit", "audit"),
    "sidelight.belief": ("Belief", "Credal", "Gaussian", "Tree"),
    "sidelight.calibration": ("Calibration", "OptimalChannel", "calibrate", "optimal_channel"),
    "sidelight.advice": ("Advice", "advise"),
    "sidelight.estimation": ("Estimates", "estimate", "estimate_joint"),
    "sidelight.protocols": ("RecordReports", "SecondPhase", "TwoPhase", "record_budget"),
    "sidelight.transport": ("Aggregator", "collect", "read_reports", "write_reports"),
    "sidelight.foundation.errors": ("InputError", "MissingExtraError", "SidelightError", "TooLargeError"),
    "sidelight.leakage": (
        "ANALYSERS",
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
        "correlation_matrix",
        "direct_leakage",
        "hashing_leakage",
        "mutual_information_matrix",
        "normalised_overshoot",
        "normalised_undershoot",
        "pair_leakage",
        "pairwise_sum",
        "privacy_profile",
        "profile_epsilon",
        "published_approximate_pair",
        "robust_pair",
        "robust_total",
        "saturation",
        "set_leakage",
        "statistical_leakage",
        "synergy_scan",
        "total_leakage",
        "tree_total",
        "tree_totals",
    ),
    "sidelight.knowledge": (
        "Adversary",
        "Edges",
        "KnowledgeAudit",
        "NoiseChoice",
        "Query",
        "WeightedGraph",
        "all_adversaries",
        "gaussian_audit",
        "gaussian_leakage",
        "gaussian_weakest",
        "group_bound",
        "knowledge_audit",
        "least_noise",
        "posterior",
        "prior_leakage",
        "worst_adversary",
    ),
    "sidelight.learning.learnt": ("Learnt", "learn"),
    "sidelight.mechanisms": ("Channel", "Mechanism", "create"),
    "sidelight.plan": ("Plan", "Release"),
    "sidelight.report": ("write_report",),
    "sidelight.schema": ("Attribute", "Schema", "binned", "categorical", "numeric"),
    "sidelight.sources": ("Counts", "Dictionary", "Table", "read", "read_sql"),
    "sidelight.sources.examples": ("admissions", "example", "survey", "survey_joint", "titanic"),
    "sidelight.studies.benchmarks": (
        "AnalyserBenchmark",
        "MechanismBenchmark",
        "benchmark_analysers",
        "benchmark_mechanisms",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ANALYSERS",
    "Adversary",
    "Advice",
    "Aggregator",
    "AnalyserBenchmark",
    "AttackComparison",
    "AttackResult",
    "Attribute",
    "Audit",
    "AverageLeakage",
    "BayesAttacker",
    "Belief",
    "Bound",
    "Calibration",
    "Channel",
    "Counts",
    "Credal",
    "Dictionary",
    "Edges",
    "Estimates",
    "Gaussian",
    "InputError",
    "KnowledgeAudit",
    "Leakage",
    "Learnt",
    "LearntAttacker",
    "Mechanism",
    "MechanismBenchmark",
    "MissingExtraError",
    "NoiseChoice",
    "OptimalChannel",
    "Plan",
    "ProfilePoint",
    "Query",
    "RandomiserAudit",
    "RecordReports",
    "Release",
    "Schema",
    "SecondPhase",
    "SecretAudit",
    "SidelightError",
    "StatisticalLeakage",
    "Synergy",
    "Table",
    "TooLargeError",
    "Tree",
    "TwoPhase",
    "WeightedGraph",
    "Witness",
    "admissions",
    "advise",
    "all_adversaries",
    "approximate_pair",
    "attack",
    "attack_plans",
    "audit",
    "audit_randomiser",
    "average_leakage",
    "benchmark_analysers",
    "benchmark_mechanisms",
    "binned",
    "calibrate",
    "categorical",
    "collect",
    "correlation_matrix",
    "create",
    "direct_leakage",
    "effective_budget",
    "estimate",
    "estimate_joint",
    "example",
    "gaussian_audit",
    "gaussian_leakage",
    "gaussian_weakest",
    "group_bound",
    "hashing_leakage",
    "knowledge_audit",
    "learn",
    "least_noise",
    "mutual_information_matrix",
    "normalised_overshoot",
    "normalised_undershoot",
    "numeric",
    "optimal_channel",
    "pair_leakage",
    "pairwise_sum",
    "posterior",
    "prior_leakage",
    "privacy_profile",
    "profile_epsilon",
    "published_approximate_pair",
    "read",
    "read_reports",
    "read_sql",
    "record_budget",
    "robust_pair",
    "robust_total",
    "saturation",
    "set_leakage",
    "statistical_leakage",
    "survey",
    "survey_joint",
    "synergy_scan",
    "titanic",
    "total_leakage",
    "tree_total",
    "tree_totals",
    "worst_adversary",
    "write_report",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sidelight")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sidelight' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
