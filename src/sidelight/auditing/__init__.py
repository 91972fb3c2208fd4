"""Belief and plan in, every figure for every secret out."""

from sidelight.auditing.compute import audit, check_plan
from sidelight.auditing.result import SUPPRESSED, Audit, SecretAudit
from sidelight.auditing.verdict import NAMES, AdversaryName, Outcome, check_decider, worded

__all__ = [
    "NAMES",
    "SUPPRESSED",
    "AdversaryName",
    "Audit",
    "Outcome",
    "SecretAudit",
    "audit",
    "check_decider",
    "check_plan",
    "worded",
]
