"""What the lines of a ledger say: who opened it, what was reserved, and what became of it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.strict import Strict, parsed_table, versioned
from sidelight.ledger.limits import Limit
from sidelight.ledger.lines import Chain, damaged
from sidelight.ledger.question import MOST_ROUND, Charge, Question
from sidelight.ledger.units import MOST_UNITS
from sidelight.ledger.windows import LATEST, Kind, Window
from sidelight.mechanisms.longitudinal.memory import SECRET_BYTES

LEDGER_VERSION = 2
"""Version 1 has no compacted files; a file is of it until it is compacted."""
HEAD_DIGITS = 8
Mark = Literal["send", "acknowledge", "withdraw"]
_Time = Annotated[int, Field(ge=0, le=LATEST)]
_Units = Annotated[int, Field(ge=0, le=MOST_UNITS)]
_Round = Annotated[int, Field(ge=0, le=MOST_ROUND)]


@dataclass(frozen=True)
class Opening:
    """The first line: whose ledger it is, and what it allows; fixed for ever.

    Attributes:
        person: whose it is, or which device's.
        opened: when.
        secret: of the device, from which its memos are made.
        limits: what may be spent.
        level: of privacy that the person chose, before there was a value to choose it by; else None.
    """

    person: str
    opened: int
    secret: bytes = field(repr=False)
    limits: tuple[Limit, ...]
    level: str | None = None


@dataclass(frozen=True)
class Reservation:
    """A question that is paid for, with the bytes of its one report."""

    question: Question
    time: int
    report: bytes
    frozen: Mapping[tuple[str, str], str]  # values that hold from now on, by attribute and epoch


@dataclass(frozen=True)
class Step:
    """What became of a reserved report."""

    mark: Mark
    task: str
    round: int


@dataclass(frozen=True)
class Compacted:
    """The second line of a file that was compacted: what the lines before left behind.

    Attributes:
        heads: the first digits of the digest of every line that there was, so that an older copy shows.
        frozen: the values that hold, by attribute and epoch.
    """

    heads: tuple[str, ...]
    frozen: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Settled:
    """A question to which nothing more will happen, in a file that was compacted."""

    question: Question
    time: int
    state: Literal["acknowledged", "withdrawn"]


Entry = Reservation | Step | Compacted | Settled


class _LimitFile(Strict):
    units: Annotated[int, Field(ge=1, le=MOST_UNITS)]
    window: Kind
    unit: Annotated[int, Field(ge=0)]
    window_units: Annotated[int, Field(ge=0)]
    delta: str
    most_squares: str | None
    budgets: list[_Units]


class _OpeningFile(Strict):
    kind: Literal["open"]
    version: int
    person: str
    opened: _Time
    secret: str
    level: str | None
    limits: Annotated[list[_LimitFile], Field(min_length=1)]


class _ChargeFile(Strict):
    attribute: str
    channel: str
    units: _Units
    epoch: str | None


class _FrozenFile(Strict):
    attribute: str
    epoch: str
    value: str


class _ReservationFile(Strict):
    kind: Literal["reserve"]
    time: _Time
    task: str
    round: _Round
    charges: list[_ChargeFile]
    frozen: list[_FrozenFile]
    report: str


class _StepFile(Strict):
    kind: Mark
    task: str
    round: _Round


class _CompactedFile(Strict):
    kind: Literal["compacted"]
    heads: Annotated[str, Field(pattern=rf"^([0-9a-f]{{{HEAD_DIGITS}}})+$")]
    frozen: list[_FrozenFile]


class _SettledFile(Strict):
    kind: Literal["settled"]
    time: _Time
    task: str
    round: _Round
    charges: list[_ChargeFile]
    state: Literal["acknowledged", "withdrawn"]


_AnyFile = _ReservationFile | _StepFile | _CompactedFile | _SettledFile
_ENTRY: TypeAdapter[_AnyFile] = TypeAdapter(Annotated[_AnyFile, Field(discriminator="kind")])


def opening_data(opening: Opening, *, compacted: bool = False) -> dict[str, Any]:
    """Return the content of the first line."""
    return _OpeningFile(
        kind="open",
        version=LEDGER_VERSION if compacted else 1,
        person=opening.person,
        opened=opening.opened,
        secret=b64encode(opening.secret).decode(),
        level=opening.level,
        limits=[_limit_data(limit) for limit in opening.limits],
    ).model_dump()


def _limit_data(limit: Limit) -> _LimitFile:
    is_filter = limit.delta > 0 and not limit.budgets
    return _LimitFile(
        units=limit.units,
        window=limit.window.kind,
        unit=limit.window.unit,
        window_units=limit.window.units,
        delta=repr(limit.delta),
        # Stated, so that no client needs logarithms; as text, since it is larger than a double holds.
        most_squares=str(limit.most_squares) if is_filter else None,
        budgets=list(limit.budgets),
    )


def entry_data(entry: Entry) -> dict[str, Any]:
    """Return the content of a later line."""
    match entry:
        case Step():
            return {"kind": entry.mark, "task": entry.task, "round": entry.round}
        case Compacted():
            heads = "".join(entry.heads)
            return {"kind": "compacted", "heads": heads, "frozen": _frozen_data(entry.frozen)}
        case Settled():
            asked = _question_data(entry.question)
            return {"kind": "settled", "time": entry.time, **asked, "state": entry.state}
        case _:
            told = {"frozen": _frozen_data(entry.frozen), "report": b64encode(entry.report).decode()}
            return {"kind": "reserve", "time": entry.time, **_question_data(entry.question), **told}


def _question_data(question: Question) -> dict[str, Any]:
    charges = [vars(charge) for charge in question.charges]
    return {"task": question.task, "round": question.round, "charges": charges}


def _frozen_data(frozen: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
    return [
        {"attribute": attribute, "epoch": epoch, "value": value}
        for (attribute, epoch), value in frozen.items()
    ]


def read_opening(chain: Chain, label: str) -> Opening:
    """Return what the first line says."""
    if not chain.bodies:
        raise InputError(f"{label} is no ledger: it has no whole line; Ledger.create makes one.")
    data = parsed_table(_text(chain.bodies[0], label, 1), label)
    parsed = versioned(_OpeningFile, data, label, LEDGER_VERSION, "ledger")
    secret = _decoded(parsed.secret, label, 1)
    if len(secret) != SECRET_BYTES:
        raise damaged(label, 1, f"has a secret of {len(secret)} bytes")
    with naming(label):
        limits = tuple(_limit(item) for item in parsed.limits)
    return Opening(parsed.person, parsed.opened, secret, limits, parsed.level)


def _limit(item: _LimitFile) -> Limit:
    try:
        delta = float(item.delta)
    except ValueError:
        raise InputError(f"`delta` must be a number, got {item.delta!r}.") from None
    window = Window(item.window, item.unit, item.window_units)
    limit = Limit(item.units, window, delta, tuple(item.budgets))
    if item.most_squares is not None and item.most_squares != str(limit.most_squares):
        raise InputError(f"the filter of the limit {limit} is not the one that its delta gives.")
    return limit


def read_entries(chain: Chain, label: str) -> Sequence[Entry]:
    """Return what the lines after the first say."""
    return [_entry(body, label, number) for number, body in enumerate(chain.bodies[1:], start=2)]


def _entry(body: bytes, label: str, number: int) -> Entry:
    data = parsed_table(_text(body, label, number), f"{label}, line {number},")
    try:
        parsed = _ENTRY.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        raise damaged(label, number, f"is no entry: {fault['msg']}") from None
    match parsed:
        case _StepFile():
            return Step(parsed.kind, parsed.task, parsed.round)
        case _CompactedFile():
            digits = parsed.heads
            heads = tuple(digits[at : at + HEAD_DIGITS] for at in range(0, len(digits), HEAD_DIGITS))
            return Compacted(heads, _frozen(parsed.frozen, label, number))
    with naming(f"{label}, line {number}"):
        charges = tuple(
            Charge(item.attribute, item.channel, item.units, item.epoch) for item in parsed.charges
        )
        question = Question(parsed.task, parsed.round, charges)
    if isinstance(parsed, _SettledFile):
        return Settled(question, parsed.time, parsed.state)
    frozen = _frozen(parsed.frozen, label, number)
    return Reservation(question, parsed.time, _decoded(parsed.report, label, number), frozen)


def _frozen(items: Sequence[_FrozenFile], label: str, number: int) -> dict[tuple[str, str], str]:
    frozen = {(item.attribute, item.epoch): item.value for item in items}
    if len(frozen) < len(items):
        raise damaged(label, number, "freezes a value twice")
    return frozen


def _text(body: bytes, label: str, number: int) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise damaged(label, number, "is not UTF-8 text") from None


def _decoded(text: str, label: str, number: int) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise damaged(label, number, "has bytes that are not base 64") from None
