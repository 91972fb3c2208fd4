"""Plan: which attribute is released through which mechanism, with which budget, how often.

A plan is a file that people keep in version control: TOML or JSON, versioned, parsed strictly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from sidelight.foundation import errors
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_is, check_number, check_whole, naming, unknown
from sidelight.foundation.files import is_toml, json_number, read_text, strict_json
from sidelight.foundation.html import html_table, listed
from sidelight.foundation.strict import (
    FrozenMapping,
    Strict,
    json_text,
    parsed_text,
    toml_text,
    versioned,
    write_data,
)
from sidelight.mechanisms import Channel, Mechanism, make, mechanism_class
from sidelight.mechanisms.longitudinal import unlimited_budget
from sidelight.schema import (
    Attribute,
    Kind,
    Missing,
    Schema,
    alphabet_data,
    as_schema,
    file_version,
    read_edges,
    read_merged,
)

View = Literal["report", "guess"]
AdversaryName = Literal["report", "guess", "model", "model guess", "population", "table", "tree"]
"""In the worst case of all reports: report: keeps whole reports and knows the table. guess: keeps one guessed
value of each report. model: takes a model for the table. model guess: both.
At delta, with whole reports: population: knows the population as well as the table lets one know it. table:
knows the table. tree: takes a tree for the population.
A verdict for anyone but the first is no promise against the first."""
RepeatedNoise = Literal["fresh", "kept"]
AT_DELTA: tuple[AdversaryName, ...] = ("population", "table", "tree")
"""Their figures are at delta; those of the others are worst cases."""
PLAN_VERSION = 3
"""Since version 2 there are dates and times. Since version 3 a plan may go without a limit, name a delta and
the adversary who decides, give reasons, merge values and say what devices keep. A plan is written in the
oldest version that has what it uses."""
_LIMIT_BEFORE_3 = 1.0
"""What a file of version 1 or 2 that names no limit has always meant."""
LARGEST_EPSILON = 700  # e to this power still fits a double
LARGEST_TIMES = 1_000_000
PLAN_FIX = "Plan.uniform(table.schema) makes one."


@dataclass(frozen=True)
class Release:
    """One attribute's part of a plan.

    Attributes:
        attribute: the attribute and its alphabet.
        mechanism: the mechanism's name.
        epsilon: the nominal budget of one report, of longitudinal mechanisms that of unlimited reports from
            a kept response; None for "identity" and "withheld", which have none, and where a mechanism's
            parameters determine it.
        times: how many reports each person sends.
        parameters: further parameters of the mechanism.
        reason: why this attribute is collected, and in this way, in words.
        memory: "fresh": every report is drawn anew. "kept": each device keeps its response to a value, and
            all its reports of that value are made from it. None leaves it to the mechanism, of which
            longitudinal ones keep it.
    """

    attribute: Attribute
    mechanism: str
    epsilon: float | None = None
    times: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    memory: RepeatedNoise | None = None

    def __post_init__(self) -> None:
        check_is(f"reason of {self.name}", self.reason, str, "It is a sentence.")
        if self.epsilon is not None:
            budget = check_number(f"epsilon of {self.name}", self.epsilon, above=0, below=LARGEST_EPSILON)
            object.__setattr__(self, "epsilon", budget)
        times = check_whole(f"times of {self.name}", self.times, at_least=1, at_most=LARGEST_TIMES)
        object.__setattr__(self, "times", times)
        if self.memory is not None:
            errors.check_choice(f"memory of {self.name}", self.memory, get_args(RepeatedNoise))
        plain = {name: _plain(value) for name, value in self.parameters.items()}
        object.__setattr__(self, "parameters", FrozenMapping(plain))
        with naming(f"the release of {self.name!r}"):
            self.randomiser()

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    def randomiser(self) -> Mechanism:
        """Return the mechanism of one report."""
        return make(self.mechanism, self.attribute.size, self.epsilon, self.parameters)

    def at(self, epsilon: float) -> Release:
        """Return the release at another budget; parameters that are budgets follow in proportion."""
        held = mechanism_class(self.mechanism).relative(self.parameters, self.epsilon)
        return replace(self, epsilon=epsilon, parameters=held)

    def sent(self) -> tuple[Mechanism, int]:
        """Return a mechanism, and how many independent reports of it are all that is sent.

        With fresh noise that is the randomiser, `times` times; with a memory it is one report of a mechanism
        that stands for all of them. The value is taken to stay the same.
        """
        return self.randomiser().together(self.times, kept=self.keeps)

    @property
    def keeps(self) -> bool:
        """Whether devices keep their response: as the plan says, else as the mechanism does."""
        return mechanism_class(self.mechanism).keeps if self.memory is None else self.memory == "kept"

    @property
    def often(self) -> str:
        """How often a person reports, in words that follow a comma; nothing where it is once."""
        if self.times == 1:
            return ""
        return f", {self.times} times" + (" from a kept response" if self.keeps else "")

    @property
    def spent(self) -> float:
        """What all reports of one value together really spend, each of them at its own delta."""
        mechanism, count = self.sent()
        return count * mechanism.epsilon

    @property
    def realised(self) -> tuple[float, float, float]:
        """What one report of a value, all `times` of them and unlimited ones really spend."""
        first = self.randomiser()
        return first.epsilon, self.channel().epsilon, unlimited_budget(first, kept=self.keeps)

    def variance(self, people: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each value's estimate from all reports of so many people.

        It is that of the mean over the rounds: the noise of fresh reports falls with their number, that of a
        kept response stays, and so does who the people are.
        """
        mechanism, count = self.sent()
        one = mechanism.over_codes().variance(people, frequencies)
        if count == 1:
            return one
        shares = np.asarray(frequencies, dtype=np.float64)
        drawn = shares * (1 - shares) / people
        return np.asarray(drawn + (one - drawn) / count)

    def channel(self) -> Channel:
        """Return the channel of all this attribute's reports of one value together."""
        mechanism, count = self.sent()
        return mechanism.channel.repeated(count)


@dataclass(frozen=True)
class Plan:
    """What is released, and how much each secret may leak.

    Attributes:
        releases: the released attributes.
        limit: how much any secret may leak in total, in nats; None where nobody has set a limit, so that an
            audit describes what leaks and judges only secrets with a limit of their own.
        limits: the limit of single secrets, where it differs.
        origin: where the belief came from that the budgets were set with, in words.
        delta: the probability, averaged over people, with which a release may say more than a limit; None
            where limits are for the worst case.
        decide_by: the adversary for whom limits must be kept; None leaves it to the audit.
        reasons: why a secret has its limit, by secret, in words.
        purpose: what the collection is for, in words.
    """

    releases: tuple[Release, ...]
    limit: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""
    delta: float | None = None
    decide_by: AdversaryName | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    purpose: str = ""

    def __post_init__(self) -> None:
        if not self.releases:
            raise InputError("a plan must release at least one attribute.")
        Schema(tuple(release.attribute for release in self.releases))
        if self.limit is not None:
            limit = check_number("limit", self.limit, at_least=0, infinite=True)
            object.__setattr__(self, "limit", limit)
        limits = {
            name: check_number(f"limit of {name}", value, at_least=0, infinite=True)
            for name, value in self.limits.items()
        }
        object.__setattr__(self, "limits", FrozenMapping(limits))
        self._check_judging()
        for name, text in {
            "purpose": self.purpose,
            **{f"reason of {k}": v for k, v in self.reasons.items()},
        }.items():
            check_is(name, text, str, "It is a sentence.")
        object.__setattr__(self, "reasons", FrozenMapping(self.reasons))

    def _check_judging(self) -> None:
        """Refuse a delta that is none, and an adversary whom nobody knows or whose figures need a delta."""
        if self.delta is not None:
            object.__setattr__(self, "delta", check_number("delta", self.delta, above=0, below=1))
        if self.decide_by is not None:
            errors.check_choice("decide_by", self.decide_by, get_args(AdversaryName))
        if self.decide_by in AT_DELTA and self.delta is None:
            raise InputError(
                f"a plan whose limits are kept for {self.decide_by!r} needs a delta, as in `delta = 0.001`: "
                "what this adversary learns is told at delta."
            )

    @classmethod
    def uniform(
        cls,
        schema: Schema,
        mechanism: str = "grr",
        epsilon: float = 1.0,
        *,
        limit: float | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> Plan:
        """Release every attribute through the same mechanism with the same budget, where it has one.

        Without a limit its audit describes what leaks; with one it judges. The schema of a table or a belief
        is taken where one of them is given.
        """
        check_number("epsilon", epsilon, above=0)
        budget = epsilon if mechanism_class(mechanism).has_budget else None
        releases = tuple(Release(attribute, mechanism, budget) for attribute in as_schema(schema))
        return cls(releases, limit, dict(limits or {}))

    def _repr_html_(self) -> str:
        titles = ("attribute", "values", "mechanism", "epsilon", "times", "parameters", "limit")
        rows = [
            [item.name, item.attribute.size, item.mechanism, "" if item.epsilon is None else item.epsilon,
             item.times, listed([f"{name} = {value}" for name, value in item.parameters.items()]),
             "" if (limit := self.limit_of(item.name)) is None else limit]
            for item in self.releases
        ]  # fmt: skip
        limited = "no limit" if self.limit is None else f"limit {self.limit:g}"
        return html_table(f"Plan({len(self.releases)} releases, {limited})", titles, rows)

    @property
    def schema(self) -> Schema:
        """The released attributes."""
        return Schema(tuple(release.attribute for release in self.releases))

    @property
    def repeats(self) -> bool:
        """Whether somebody is asked for an attribute more than once."""
        return any(release.times > 1 for release in self.releases)

    @property
    def names(self) -> tuple[str, ...]:
        """The released attributes' names."""
        return tuple(release.name for release in self.releases)

    def __getitem__(self, name: str) -> Release:
        if name not in self.names:
            raise unknown("released attribute", name, self.names)
        return self.releases[self.names.index(name)]

    def limit_of(self, secret: str) -> float | None:
        """Return how much `secret` may leak; None where nobody has set a limit."""
        return self.limits.get(secret, self.limit)

    def channels(self, adversary: View = "report") -> dict[str, Channel]:
        """Return the channel of every released attribute.

        Args:
            adversary: "report" keeps all that is sent; "guess" keeps one guessed value of each first report,
                as published comparisons do, and says less than is revealed.
        """
        errors.check_choice("adversary", adversary, get_args(View))
        if adversary == "report":
            return {release.name: release.channel() for release in self.releases}
        return {release.name: release.randomiser().guess_channel() for release in self.releases}

    def withholding(self, names: Iterable[str]) -> Plan:
        """Return the plan that does not release the named attributes."""
        hidden = set(names)
        for name in hidden - set(self.names):
            raise unknown("released attribute", name, self.names)
        kept = tuple(release for release in self.releases if release.name not in hidden)
        return replace(self, releases=kept)

    def to_toml(self) -> str:
        """Return the plan as TOML."""
        return toml_text(_to_file(self))

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json_text(_to_file(self))

    @classmethod
    def from_toml(cls, text: str, label: str = "the plan") -> Plan:
        """Read a plan from TOML text."""
        return _from_text(text, label, tomllib.loads, "TOML")

    @classmethod
    def from_json(cls, text: str, label: str = "the plan") -> Plan:
        """Read a plan from JSON text."""
        return _from_text(text, label, strict_json, "JSON")

    def write(self, path: str | Path, *, like: str | Path | None = None) -> Path:
        """Write the plan to a .toml or .json file; data or a dictionary that is there is not replaced.

        Comments of a TOML plan that is written over are kept, else those of the plan `like` it was made from.
        """
        return write_data(_to_file(self), path, like=like, key="attribute")

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan from a .toml or .json file."""
        parse = cls.from_toml if is_toml(path) else cls.from_json
        return parse(read_text(path, f"{path} is not UTF-8 text; a plan is a TOML or JSON file."), str(path))


_Parameter = int | float | str | list[int | float | str] | list[list[int | float]]


class _ReleaseFile(Strict):
    attribute: str
    kind: Kind
    values: list[str]
    mechanism: str
    epsilon: float | None = None
    edges: list[float | str] = Field(default_factory=list)
    missing: Missing = "absent"
    times: int = 1
    parameters: dict[str, _Parameter] = Field(default_factory=dict)
    reason: str = ""
    memory: RepeatedNoise | None = None
    merged: dict[str, list[str]] = Field(default_factory=dict)


_Limit = float | Literal["infinity"]


class _PlanFile(Strict):
    version: int
    release: list[_ReleaseFile]
    limit: _Limit | None = None
    limits: dict[str, _Limit] = Field(default_factory=dict)
    origin: str = ""
    delta: float | None = None
    decide_by: AdversaryName | None = None
    reasons: dict[str, str] = Field(default_factory=dict)
    purpose: str = ""


_SINCE_3 = ("purpose", "delta", "decide_by", "reasons")


def _to_file(plan: Plan) -> dict[str, Any]:
    head = {
        "version": _version(plan), "purpose": plan.purpose,
        "limit": None if plan.limit is None else json_number(plan.limit),
        "delta": plan.delta, "decide_by": plan.decide_by, "origin": plan.origin,
    }  # fmt: skip
    parts = {
        "limits": {name: json_number(limit) for name, limit in plan.limits.items()},
        "reasons": dict(plan.reasons),
        "release": [_release_to_file(release) for release in plan.releases],
    }
    return {name: part for name, part in (head | parts).items() if part is not None and part not in ("", {})}


def _version(plan: Plan) -> int:
    """Return the oldest version that has all that the plan says: 1 and 2 know no plan without a limit."""
    parts = (item.reason or item.memory or item.attribute.merged for item in plan.releases)
    new = (plan.purpose, plan.delta, plan.decide_by, plan.reasons, *parts)
    return PLAN_VERSION if plan.limit is None or any(new) else file_version(plan.schema, 2)


def _release_to_file(release: Release) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "attribute": release.name, "mechanism": release.mechanism, "epsilon": release.epsilon,
        "times": release.times, **alphabet_data(release.attribute),
        "parameters": dict(release.parameters) or None, "reason": release.reason or None,
        "memory": release.memory,
    }  # fmt: skip
    return {name: value for name, value in entry.items() if value is not None}


def _plain(value: Any) -> Any:
    """Return a parameter as a file has it: tuples and arrays as lists, numpy's numbers as Python's."""
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, np.ma.MaskedArray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _check_no_protocol(data: Mapping[str, Any], label: str) -> None:
    """Raise if it is a protocol's file, with what is certified of it without an audit."""
    for key, noun, option in (
        ("protocol", "a protocol", "protocol"),
        ("second", "the second phase of a collection", "parameters"),
    ):
        if key in data:
            raise InputError(
                f"{label} is {noun}, no plan; `sidelight collect --{option}` takes it. It needs no audit: "
                "whatever is correlated, a report says at most the budget of a whole record about any secret "
                "(certified, but for its delta if it has one), which `collect` states."
            )


def _from_text(text: str, label: str, parse: Callable[[str], Any], language: str) -> Plan:
    errors.check_is("text", text, str, "It is the content of a plan's file; Plan.read reads the file itself.")
    data = parsed_text(text, label, parse, f"is not valid {language}: {{}}")
    if isinstance(data, Mapping) and "release" not in data:
        _check_no_protocol(data, label)
    rule = f"it must start with `version = {PLAN_VERSION}`."
    parsed = versioned(_PlanFile, data, label, PLAN_VERSION, "plan", rule)
    limits = {name: float(limit) for name, limit in parsed.limits.items()}
    with naming(label):
        limit = _file_limit(parsed)
        return Plan(
            tuple(map(_release, parsed.release)), limit, limits, parsed.origin, parsed.delta,
            parsed.decide_by, parsed.reasons, parsed.purpose,
        )  # fmt: skip


def _file_limit(parsed: _PlanFile) -> float | None:
    """Return the limit for all that a file means, and refuse keys that are newer than its version."""
    if parsed.version < PLAN_VERSION:
        newer = [key for key in _SINCE_3 if key in parsed.model_fields_set]
        newer += [f"the reason of {item.attribute}" for item in parsed.release if item.reason]
        newer += [f"the memory of {item.attribute}" for item in parsed.release if item.memory]
        newer += [f"what {item.attribute} merges" for item in parsed.release if item.merged]
        if newer:
            raise InputError(f"{newer[0]} needs `version = {PLAN_VERSION}`, got {parsed.version}.")
        return float(_LIMIT_BEFORE_3 if parsed.limit is None else parsed.limit)
    return None if parsed.limit is None else float(parsed.limit)


def _release(entry: _ReleaseFile) -> Release:
    edges = read_edges(entry.attribute, entry.kind, entry.edges)
    merged = read_merged(entry.merged)
    attribute = Attribute(entry.attribute, entry.kind, tuple(entry.values), edges, entry.missing, merged)
    return Release(
        attribute, entry.mechanism, entry.epsilon, entry.times, entry.parameters, entry.reason, entry.memory
    )
