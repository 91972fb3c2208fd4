"""Belief and plan in, every figure for every secret out."""

from sidelight.auditing.compute import audit, check_plan
from sidelight.auditing.result import SUPPRESSED, Audit, SecretAudit, Verdict

__all__ = ["SUPPRESSED", "Audit", "SecretAudit", "Verdict", "audit", "check_plan"]
