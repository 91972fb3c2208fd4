"""Belief and plan in, every figure for every secret out."""

from sidelight.auditing.compute import audit as audit
from sidelight.auditing.compute import check_plan as check_plan
from sidelight.auditing.result import SUPPRESSED as SUPPRESSED
from sidelight.auditing.result import Audit as Audit
from sidelight.auditing.result import SecretAudit as SecretAudit
from sidelight.auditing.verdict import NAMES as NAMES
from sidelight.auditing.verdict import AdversaryName as AdversaryName
from sidelight.auditing.verdict import Outcome as Outcome
from sidelight.auditing.verdict import check_decider as check_decider
from sidelight.auditing.verdict import worded as worded
