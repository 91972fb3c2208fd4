"""What the page shows of the table, and of what is decided about it."""

from __future__ import annotations

from sidelight.plan import AdversaryName, View
from sidelight.schema import Missing
from sidelight.studio.messages.base import ColumnKind, Limit, Message, Name, Real


class ValueCount(Message):
    """One value of a column, and how many rows have it."""

    label: str
    count: int
    share: float


class Column(Message):
    """A column as it is read: an attribute, or set aside."""

    name: str
    kind: ColumnKind
    size: int
    """How many values it has; 0 where it is set aside."""
    values: list[ValueCount]
    """In the order of codes; the first 200 at most."""
    unlisted: int
    """How many values are not in the list."""
    missing: Missing
    missing_share: float
    bins: int | None
    """How many bins numbers, dates or times have; None for others."""
    kinds: list[ColumnKind]
    """What it could be instead."""
    notes: list[str]
    """What was guessed or why it is set aside, in words."""
    is_stated: bool
    """Whether somebody has corrected it."""
    coarser: list[int]
    """To how many values it may be coarsened; empty where it cannot be."""


class Secret(Message):
    """What must not be learnt, how much of it may leak in nats, and why."""

    name: Name
    limit: Limit | None = None
    """None takes the limit for all."""
    reason: str = ""


class Adversary(Message):
    """Who tries to learn the secrets."""

    view: View = "report"
    """Keeps whole reports, or one guessed value of each."""
    decide_by: AdversaryName | None = None
    """For whom limits must be kept; None takes the usual one."""


class Release(Message):
    """How one attribute is released in a plan."""

    attribute: str
    mechanism: str
    epsilon: float | None
    """The budget; None where the mechanism has none, such as identity."""
    withheld: bool
    values: int
    """How many values are told apart in this plan."""
    coarsened: int | None
    """To how many values it was coarsened; None where it was not."""
    realised: Real
    """What the report really spends."""


class Group(Message):
    """Attributes whose sliders move together."""

    name: Name
    attributes: list[Name]


class Plan(Message):
    """One of up to four plans side by side."""

    id: str
    name: str
    releases: list[Release]
    groups: list[Group]


class Mechanism(Message):
    """A mechanism that may be chosen."""

    name: str
    title: str
    has_budget: bool
    words: str
    """When to choose it."""


class TableInfo(Message):
    """What was opened."""

    name: str
    rows: int
    columns: int
    set_aside: int
    notes: list[str]


class Banner(Message):
    """What must be said wherever a figure is shown: it comes from raw data."""

    text: str
    is_raw: bool
