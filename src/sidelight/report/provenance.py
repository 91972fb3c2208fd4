"""Of which plan and data a report is: digests that tell whether two reports are about the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version

from sidelight.auditing import Audit
from sidelight.belief import Belief
from sidelight.plan import Plan


@dataclass(frozen=True)
class Digests:
    """What an audit was made from, and by what."""

    version: str  # of Sidelight
    plan: str
    data: str


def digests_of(audit: Audit) -> Digests:
    """Return the digests of an audit's plan and data, SHA-256 in hexadecimal digits."""
    return Digests(version("sidelight"), plan_digest(audit.plan), data_digest(audit.belief))


def plan_digest(plan: Plan) -> str:
    """Return the digest of a plan, as it is written in JSON."""
    return hashlib.sha256(plan.to_json().encode()).hexdigest()


def data_digest(belief: Belief) -> str:
    """Return a digest of what a belief counted: the same for the same records in any order."""
    values = json.dumps([[item.name, *item.values] for item in belief.schema], ensure_ascii=False)
    return hashlib.sha256(values.encode() + belief.blocks.astype("<f8").tobytes()).hexdigest()
