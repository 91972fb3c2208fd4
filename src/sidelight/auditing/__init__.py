"""Belief and plan in, every figure for every secret out."""

from sidelight.auditing.changing import Changing as Changing, with_chain as with_chain
from sidelight.auditing.compute import audit as audit, check_plan as check_plan
from sidelight.auditing.result import SUPPRESSED as SUPPRESSED, Audit as Audit, SecretAudit as SecretAudit
from sidelight.auditing.stories import Sampling as Sampling, Story as Story
from sidelight.auditing.stories import shown_figure as shown_figure, told_adversaries as told_adversaries
from sidelight.auditing.verdict import ADVERSARIES as ADVERSARIES, AT_DELTA as AT_DELTA
from sidelight.auditing.verdict import NAMES as NAMES, AdversaryName as AdversaryName, Outcome as Outcome
from sidelight.auditing.verdict import check_decider as check_decider, worded as worded
