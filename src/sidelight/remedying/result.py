"""Remedies: ways back under the limits, each with its leakage, its error and its plan."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sidelight.auditing import NAMES, Audit
from sidelight.auditing.verdict import keeps
from sidelight.estimation.usefulness import Usefulness
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import json_number, json_plain
from sidelight.foundation.html import html_table
from sidelight.foundation.numbers import points, roughly, whole
from sidelight.leakage import Bound
from sidelight.plan import Plan
from sidelight.protocols import Protocol, write_protocol
from sidelight.protocols.files import protocol_data

Kind = Literal["as it is", "withhold", "budgets", "coarsen", "sample", "several"]
TITLES: dict[Kind, str] = {
    "as it is": "The plan as it is",
    "withhold": "Withhold attributes",
    "budgets": "Lower budgets",
    "coarsen": "Coarsen values",
    "sample": "Ask each person for one attribute",
    "several": "Several at once",
}


@dataclass(frozen=True, eq=False)
class Remedy:
    """One way back under the limits.

    Attributes:
        kind: what is done.
        changes: the same in detail, in words.
        plan: what to release instead; None where a protocol says it.
        protocol: how one attribute is asked of each person; None for all other kinds.
        leakages: the deciding figure of every secret that was looked at, as it would be.
        limits: of the same secrets.
        use: the error to expect of the estimates.
        people_needed: how many must report for the wanted precision of every attribute; None if no number
            is enough.
        loss: the root-mean-square error over all attributes of the plan as it was, in their values as they
            were: of what is withheld, or lies inside a coarse value, that of knowing nothing. On this scale
            all remedies compare.
    """

    kind: Kind
    changes: tuple[str, ...]
    plan: Plan | None
    protocol: Protocol | None
    leakages: Mapping[str, Bound]
    limits: Mapping[str, float]
    use: Usefulness
    people_needed: int | None
    loss: float

    @property
    def title(self) -> str:
        """What is done, in a few words."""
        return TITLES[self.kind]

    @property
    def says(self) -> str:
        """What is done, in one sentence."""
        done = "; ".join(self.changes)
        if self.kind in ("withhold", "budgets"):  # the title says as much
            done = done.removeprefix("budgets: ").removeprefix("without ")
        return f"{self.title}: {done}." if done else f"{self.title}."

    @property
    def is_within(self) -> bool:
        """Whether every secret that was looked at would be certified to stay within its limit."""
        return all(keeps(bound.value, self.limits[name]) for name, bound in self.leakages.items())

    @property
    def worst(self) -> tuple[str, Bound]:
        """The secret that is nearest to its limit, or furthest beyond it, and its figure."""
        name = max(self.leakages, key=lambda each: _share(self.leakages[each].value, self.limits[each]))
        return name, self.leakages[name]

    @property
    def share(self) -> float:
        """The largest figure as a share of its limit."""
        name, bound = self.worst
        return _share(bound.value, self.limits[name])

    @property
    def error(self) -> float:
        """The root-mean-square error to expect of the estimates of what is still collected."""
        return self.use.error

    @property
    def attributes(self) -> int:
        """How many attributes are still collected."""
        return len(self.use.attributes)

    @property
    def values(self) -> int:
        """How many values they have together."""
        return sum(item.values for item in self.use.attributes)

    def to_toml(self) -> str:
        """Return the file that `sidelight collect` takes: of a plan, or of a protocol."""
        from sidelight.foundation.strict import toml_text

        return toml_text(protocol_data(self.protocol)) if self.protocol else self._own_plan.to_toml()

    def write(self, path: str | Path, *, like: str | Path | None = None) -> Path:
        """Write the plan or protocol to a .toml or .json file; what is not of ours is not replaced.

        The comments of a plan come from the file that it is `like`.
        """
        if self.protocol:
            return write_protocol(self.protocol, path)
        return self._own_plan.write(path, like=like)

    @property
    def _own_plan(self) -> Plan:
        if self.plan is None:
            raise InputError(f"the remedy {self.title!r} has neither a plan nor a protocol.")
        return self.plan

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string."""
        if self.protocol:
            made: dict[str, Any] = {"plan": None, "protocol": protocol_data(self.protocol)}
        else:
            made = {"plan": json.loads(self._own_plan.to_json()), "protocol": None}
        return {
            "kind": self.kind, "title": self.title, "changes": list(self.changes),
            "within_limits": self.is_within,
            "leakage": {
                name: bound.to_dict() | {"limit": json_number(self.limits[name])}
                for name, bound in self.leakages.items()
            },
            "attributes": self.attributes, "values": self.values,
            "error": json_number(self.error), "loss": json_number(self.loss),
            "people_needed": self.people_needed, "usefulness": self.use.to_dict(), **made,
        }  # fmt: skip

    def __repr__(self) -> str:
        name, bound = self.worst
        figures = f"{name} {bound.value:.4g} of {self.limits[name]:g}, error {self.error:.2g}"
        return f"Remedy({self.says} {figures}, {self.attributes} attributes)"


@dataclass(frozen=True)
class Tradeoff:
    """What lower budgets would cost: an estimate for a figure, not a promise.

    Attributes:
        share: the largest figure as a share of its limit.
        error: the root-mean-square error to expect of the estimates.
    """

    share: float
    error: float


@dataclass(frozen=True)
class Exposed:
    """What asking fewer people does: nobody's leakage falls, but fewer people bear it.

    Attributes:
        secret: the attribute it is about.
        limit: in nats.
        people: how many are asked.
        share: of the people asked, whose reports move the odds of two values by more than the limit.
        kind: whether the share is exact or an estimate.
    """

    secret: str
    limit: float
    people: int
    share: float
    kind: Literal["exact", "estimate"]

    @property
    def exposed(self) -> float:
        """How many people are to be expected whose reports say more than the limit."""
        return self.people * self.share

    @property
    def many(self) -> str:
        """The same in words; where it is an estimate, in three digits."""
        is_exact = self.kind == "exact"
        return whole(max(1, round(self.exposed))) if is_exact else f"about {roughly(self.exposed)}"

    @property
    def people_for_one(self) -> int | None:
        """How many could be asked so that one of them is to be expected; None where nobody is exposed."""
        return None if self.share <= 0 else max(1, math.floor(1 / self.share))

    @property
    def says(self) -> str:
        """The same in words."""
        if self.share <= 0:
            return f"No report moves the odds about {self.secret} by more than the limit."
        fewer = self.people_for_one or 1
        one = f"; of {whole(fewer)} people it would be one" if fewer > 1 else ""
        return (
            f"As planned, the reports of {self.many} of {whole(self.people)} people asked move the odds "
            f"about {self.secret} by more than the limit, up or down{one}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return vars(self) | {"exposed": self.exposed, "people_for_one": self.people_for_one}


@dataclass(frozen=True, eq=False)
class Remedies:
    """Ways back under the limits, cheapest first.

    Attributes:
        audit: of the plan as it is.
        limits: of the secrets that are over them.
        now: the plan as it is, told in the same way.
        remedies: each one certified to keep the limits, those with the smallest loss first.
        exposed: for figures at delta: how many people's reports say more than a limit.
        people: how many report.
        within: the wanted precision, a root-mean-square error of every attribute.
        missing: why kinds of remedies are not among them, by kind.
        curve: what other budgets would leak and cost, estimated.
        single: where several secrets are over their limits, quick ways back for the worst of them alone.
    """

    audit: Audit
    limits: Mapping[str, float]
    now: Remedy | None
    remedies: tuple[Remedy, ...]
    exposed: tuple[Exposed, ...]
    people: int
    within: float
    missing: Mapping[Kind, str] = field(default_factory=dict)
    single: Mapping[str, tuple[Remedy, ...]] = field(default_factory=dict)
    curve: tuple[Tradeoff, ...] = ()

    def __len__(self) -> int:
        return len(self.remedies)

    def __getitem__(self, number: int) -> Remedy:
        """Return a remedy by its number, as it is listed: from 1 on."""
        if not self.remedies:
            raise InputError("there is no remedy to choose: " + self.headline())
        place = check_whole("remedy", number, at_least=1, at_most=len(self.remedies))
        return self.remedies[place - 1]

    def __iter__(self) -> Iterator[Remedy]:
        return iter(self.remedies)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets over their limits."""
        return tuple(self.limits)

    @property
    def front(self) -> tuple[Remedy, ...]:
        """The remedies that none other beats in leakage, loss and attributes kept at once."""
        return tuple(item for item in self.remedies if not any(_beats(it, item) for it in self.remedies))

    def headline(self) -> str:
        """Say in one sentence what was found."""
        if not self.limits:
            return "Every secret is certified to stay within its limit; nothing needs a remedy."
        subject = self.secrets[0] if len(self.limits) == 1 else f"{len(self.limits)} secrets"
        back = "its limit" if len(self.limits) == 1 else "their limits"
        if not self.remedies:
            return f"No way to bring {subject} back under {back} was found."
        best = self.remedies[0]
        count = "There is one way" if len(self) == 1 else f"There are {len(self)} ways"
        return f"{count} to bring {subject} back under {back}. Cheapest: {best.says}"

    def notes(self) -> list[str]:
        """Return what a reader of the remedies must know."""
        if not self.limits:
            return []
        audit = self.audit
        at = f" at delta {audit.delta:g}" if audit.delta is not None and self.now else ""
        notes = [item.says for item in self.exposed]
        if notes:
            notes.append("Asking fewer people lowers how many are exposed, but nobody's leakage.")
        notes += [
            f"For {NAMES[audit.decide_by]}{at}, who decides; every figure was certified anew for its plan.",
            f"Errors are root-mean-square errors with {whole(self.people)} people; people needed are those "
            f"for {points(self.within)} in every attribute that is still collected.",
            "The loss counts all attributes of the plan as it was; of one that is withheld nothing is known.",
        ]
        return notes + [f"Not offered: {TITLES[kind]}, because {why}" for kind, why in self.missing.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; infinity becomes a string."""
        plain = {
            "headline": self.headline(), "decide_by": self.audit.decide_by, "delta": self.audit.delta,
            "limits": dict(self.limits), "people": self.people, "within": self.within,
            "now": None if self.now is None else self.now.to_dict(),
            "remedies": [
                {"number": number, "is_on_front": item in self.front, **item.to_dict()}
                for number, item in enumerate(self.remedies, 1)
            ],
            "exposed": [item.to_dict() for item in self.exposed],
            "missing": dict(self.missing), "notes": self.notes(), "curve": [vars(it) for it in self.curve],
            "single": {
                name: [item.to_dict() for item in items] for name, items in self.single.items()
            },
        }  # fmt: skip
        return dict(json_plain(plain))

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return f"Remedies({self.headline()})"

    def _repr_html_(self) -> str:
        titles = ("", "remedy", "leakage", "limit", "attributes", "error", "people needed")
        rows = [
            [number, item.says, item.worst[1].value, item.limits[item.worst[0]], item.attributes, item.error,
             "none" if item.people_needed is None else item.people_needed]
            for number, item in enumerate(self.remedies, 1)
        ]  # fmt: skip
        return html_table(self.headline(), titles, rows)


def _share(figure: float, limit: float) -> float:
    return figure / limit if limit > 0 else math.inf if figure > 0 else 0.0


def _beats(one: Remedy, other: Remedy) -> bool:
    """Whether one remedy is nowhere worse than another, and somewhere better."""
    ours, theirs = (_costs(item) for item in (one, other))
    return ours != theirs and all(mine <= other_one for mine, other_one in zip(ours, theirs, strict=True))


def _costs(item: Remedy) -> Sequence[float]:
    return item.share, item.loss, -item.attributes
