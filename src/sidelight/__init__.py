"""Sidelight: what the attributes of a private data collection reveal about each other.

Names are loaded when they are first used, so that `import sidelight` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidelight.auditing import Audit, SecretAudit, audit
    from sidelight.belief import Belief, Credal, Tree
    from sidelight.foundation.errors import InputError, MissingExtraError, SidelightError, TooLargeError
    from sidelight.leakage import (
        ANALYSERS,
        AverageLeakage,
        Bound,
        Leakage,
        ProfilePoint,
        Synergy,
        Witness,
        approximate_pair,
        average_leakage,
        correlation_matrix,
        direct_leakage,
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
        synergy_scan,
        total_leakage,
        tree_total,
        tree_totals,
    )
    from sidelight.learning.learnt import Learnt, learn
    from sidelight.mechanisms import Channel, Mechanism, create
    from sidelight.plan import Plan, Release
    from sidelight.report import write_report
    from sidelight.schema import Attribute, Schema, categorical, numeric
    from sidelight.sources import Counts, Table, read, read_sql
    from sidelight.sources.examples import admissions, example, survey, survey_joint, titanic

_HOMES = {
    "sidelight.auditing": ("Audit", "SecretAudit", "audit"),
    "sidelight.belief": ("Belief", "Credal", "Tree"),
    "sidelight.foundation.errors": ("InputError", "MissingExtraError", "SidelightError", "TooLargeError"),
    "sidelight.leakage": (
        "ANALYSERS",
        "AverageLeakage",
        "Bound",
        "Leakage",
        "ProfilePoint",
        "Synergy",
        "Witness",
        "approximate_pair",
        "average_leakage",
        "correlation_matrix",
        "direct_leakage",
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
        "synergy_scan",
        "total_leakage",
        "tree_total",
        "tree_totals",
    ),
    "sidelight.learning.learnt": ("Learnt", "learn"),
    "sidelight.mechanisms": ("Channel", "Mechanism", "create"),
    "sidelight.plan": ("Plan", "Release"),
    "sidelight.report": ("write_report",),
    "sidelight.schema": ("Attribute", "Schema", "categorical", "numeric"),
    "sidelight.sources": ("Counts", "Table", "read", "read_sql"),
    "sidelight.sources.examples": ("admissions", "example", "survey", "survey_joint", "titanic"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ANALYSERS",
    "Attribute",
    "Audit",
    "AverageLeakage",
    "Belief",
    "Bound",
    "Channel",
    "Counts",
    "Credal",
    "InputError",
    "Leakage",
    "Learnt",
    "Mechanism",
    "MissingExtraError",
    "Plan",
    "ProfilePoint",
    "Release",
    "Schema",
    "SecretAudit",
    "SidelightError",
    "Synergy",
    "Table",
    "TooLargeError",
    "Tree",
    "Witness",
    "admissions",
    "approximate_pair",
    "audit",
    "average_leakage",
    "categorical",
    "correlation_matrix",
    "create",
    "direct_leakage",
    "example",
    "learn",
    "mutual_information_matrix",
    "normalised_overshoot",
    "normalised_undershoot",
    "numeric",
    "pair_leakage",
    "pairwise_sum",
    "privacy_profile",
    "profile_epsilon",
    "published_approximate_pair",
    "read",
    "read_sql",
    "robust_pair",
    "robust_total",
    "saturation",
    "survey",
    "survey_joint",
    "synergy_scan",
    "titanic",
    "total_leakage",
    "tree_total",
    "tree_totals",
    "write_report",
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
