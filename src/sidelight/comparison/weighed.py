"""Plans side by side: what each leaks to one and the same adversary, and what its estimates are worth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from sidelight.auditing import NAMES, AdversaryName, Audit, SecretAudit, audit
from sidelight.auditing.stories import Sampling
from sidelight.belief import Belief
from sidelight.comparison.changes import Change, changes
from sidelight.estimation import Usefulness, usefulness
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import json_plain
from sidelight.foundation.progress import track
from sidelight.plan import Plan, Release
from sidelight.protocols import planned

_USUAL_PEOPLE = 10_000
"""How many report where a belief was given by hand and nobody says."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the plans that are compared.

    Attributes:
        name: what it is called, usually its file.
        plan: the plan.
        audit: what it leaks.
        use: what to expect of its estimates; None where a collection of it cannot be made.
        unpredicted: why there is no such prediction; empty where there is one.
    """

    name: str
    plan: Plan
    audit: Audit
    use: Usefulness | None
    unpredicted: str = ""

    def secret(self, name: str) -> SecretAudit | None:
        """Return the audit of a secret, if this side knows it."""
        return self.audit.secrets.get(name)

    def release(self, name: str) -> Release | None:
        """Return how an attribute is released, if it is."""
        return self.plan[name] if name in self.plan.names else None

    def error(self, name: str) -> float | None:
        """Return the error to expect of an attribute's frequencies, if it is collected and can be told."""
        known = [] if self.use is None else self.use.attributes
        return next((item.error for item in known if item.attribute == name), None)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Plans side by side, all asked the same question.

    Attributes:
        sides: the plans with their figures, in the order given.
        people: how many report, for the errors to expect.
    """

    sides: tuple[Side, ...]
    people: int

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret that one of the audits is about, those that leak most under the last plan first."""
        names = dict.fromkeys(name for side in self.sides for name in side.audit)
        last = self.sides[-1]

        def badness(name: str) -> float:
            item = last.secret(name)
            return 0.0 if item is None else -item.decisive.value

        return tuple(sorted(names, key=badness))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that one of the plans releases."""
        return tuple(dict.fromkeys(name for side in self.sides for name in side.plan.names))

    @property
    def is_within(self) -> bool | None:
        """Whether every plan is certified to keep its limits; None where none has a limit."""
        judged = [side.audit.is_within for side in self.sides if side.audit.is_within is not None]
        return all(judged) if judged else None

    @property
    def decide_by(self) -> AdversaryName:
        """The adversary whose figures are compared."""
        return self.sides[0].audit.decide_by

    @property
    def delta(self) -> float | None:
        """At which they are, if not worst cases."""
        return self.sides[0].audit.delta

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What differs between the plans, where there are two."""
        first, *others = (side.plan for side in self.sides)
        return changes(first, others[0]) if len(others) == 1 else ()

    def move(self, secret: str) -> float | None:
        """Return by how much more a secret leaks under the last plan than under the first, in nats.

        None where one of them does not know it; two infinite figures are the same.
        """
        first, last = self.sides[0].secret(secret), self.sides[-1].secret(secret)
        if first is None or last is None:
            return None
        before, after = first.decisive.value, last.decisive.value
        return 0.0 if before == after else after - before

    def whose(self) -> str:
        """Say whose figures are compared."""
        at = "in the worst case" if self.delta is None else f"at delta {self.delta:g}"
        return f"{NAMES[self.decide_by]}, {at}"

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know."""
        named = {side.name: (side.plan.delta, side.plan.decide_by) for side in self.sides}
        said = [f"Leakage is that for {self.whose()}."]
        if len(set(named.values())) > 1:
            said.append("The plans name different adversaries or deltas; all are judged alike here.")
        said += [f"{side.name}: {side.unpredicted}" for side in self.sides if side.unpredicted]
        said += [f"{side.name}: {side.use.headline()}" for side in self.sides if side.use is not None]
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes the string "infinity"."""
        plain = {
            "decide_by": self.decide_by, "delta": self.delta, "people": self.people,
            "within_limits": self.is_within, "notes": self.notes(),
            "changes": [asdict(change) for change in self.changes],
            "plans": [_side_to_dict(side) for side in self.sides],
        }  # fmt: skip
        return dict(json_plain(plain))

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(side.name for side in self.sides)}: {len(self.secrets)} secrets)"


def compare(
    beliefs: Belief | Mapping[str, Belief], plans: Mapping[str, Plan], secrets: Iterable[str] | None = None,
    *, delta: float | None = None, decide_by: AdversaryName | None = None, people: int | None = None,
    sampling: Sampling | None = None, min_support: int = 0,
) -> Comparison:  # fmt: skip
    """Put plans side by side: leakage to the adversary who decides, and the error to expect.

    Figures are comparable only if they are of the same adversary: where nothing is given, the last plan that
    names a delta or an adversary decides for all.

    Args:
        beliefs: what the adversary knows; by plan, where plans code the attributes differently.
        plans: by what each is called.
        secrets: the attributes to protect; by default all.
        delta: of the figures, see `audit`.
        decide_by: whose figures are compared.
        people: how many report; by default as many as the belief has records.
        sampling: how releases are drawn for figures at delta.
        min_support: replace figures that rest on fewer records by what the budgets alone say.
    """
    if not plans:
        raise InputError("there is nothing to compare; name at least one plan.")
    known = dict(beliefs) if isinstance(beliefs, Mapping) else dict.fromkeys(plans, beliefs)
    asking = [plan for plan in plans.values() if plan.delta is not None or plan.decide_by is not None]
    if asking:
        delta = asking[-1].delta if delta is None else delta
        decide_by = decide_by or asking[-1].decide_by
    size = next(iter(known.values())).sample_size
    count = check_whole("people", people or size or _USUAL_PEOPLE, at_least=1)
    names = None if secrets is None else list(secrets)
    sides = []
    for name, plan in track(list(plans.items()), "plans"):
        asked = replace(plan, delta=delta, decide_by=decide_by)
        drawn = sampling or Sampling()
        audited = audit(known[name], asked, names, sampling=drawn, min_support=min_support)
        sides.append(Side(name, plan, audited, *_prediction(known[name], plan, count)))
    return Comparison(tuple(sides), count)


def _prediction(belief: Belief, plan: Plan, people: int) -> tuple[Usefulness | None, str]:
    """Return what to expect of a plan's estimates, or why that cannot be told."""
    try:
        design = planned(plan)
    except InputError as error:  # a plan for several reports, or for none, is no collection
        return None, str(error)
    frequencies = {name: belief.prior(name) for name in design.schema.names}
    return usefulness(design, people, frequencies), ""


def _side_to_dict(side: Side) -> dict[str, Any]:
    secrets = {
        name: {
            "limit": item.limit, "verdict": item.decision, "leakage": item.decisive.to_dict(),
            "reason": side.plan.reasons.get(name, ""),
        }
        for name, item in side.audit.secrets.items()
    }  # fmt: skip
    return {
        "name": side.name, "plan": json.loads(side.plan.to_json()), "within_limits": side.audit.is_within,
        "realised": {item.name: item.channel().epsilon for item in side.plan.releases}, "secrets": secrets,
        "use": None if side.use is None else side.use.to_dict(), "unpredicted": side.unpredicted,
    }  # fmt: skip
