"""What a device works out by itself: a record's codes, what an answer is charged, where it takes part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.errors import InputError, invalid
from sidelight.ledger import Charge, Question
from sidelight.protocols.protocol import Protocol
from sidelight.schema import Schema

_WORD = 1 << 64


def drawn_word(person: str, task: str, purpose: str = "") -> int:
    """Return 64 bits that a device draws for a task: the same for ever, and its own secret.

    The person's name in the ledger never leaves the device; whom they are drawn for nobody else can tell.
    """
    said = f"{len(person)}:{person}{task}{purpose}"
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little")


def takes_first(person: str, task: str, share: float) -> bool:
    """Return whether a device takes part in the first of two phases, see `drawn_word`."""
    return drawn_word(person, task) < share * float(_WORD)


def drawn_place(person: str, task: str, purpose: str, places: int) -> int:
    """Return which of so many places a device draws, all alike, see `drawn_word`."""
    return drawn_word(person, task, purpose) * places >> 64


def charge_of(protocol: Protocol, epsilon: float) -> Charge:
    """Return what the report of a whole record is charged."""
    if protocol.delta:
        raise InputError(
            f"the protocol {protocol.name!r} keeps its budget but for a probability of {protocol.delta:g}; a "
            "ledger counts pure budgets only."
        )
    return Charge.of(", ".join(protocol.schema.names), protocol.name, epsilon)


def record_question(task: str, number: int, protocol: Protocol) -> Question:
    """Return what a round's report is charged with: the budget of a whole record."""
    return Question(task, number, (charge_of(protocol, protocol.epsilon),))


def record_codes(schema: Schema, record: Mapping[str, str | int]) -> AnyCodes:
    """Return a record as one row of codes, or raise if it is none of the schema's."""
    if not isinstance(record, Mapping) or set(record) != set(schema.names):
        given = ", ".join(map(str, record)) if isinstance(record, Mapping) else type(record).__name__
        raise InputError(f"`record` must have a value for {', '.join(schema.names)}, got {given}.")
    codes = []
    for attribute in schema:
        value = record[attribute.name]
        if isinstance(value, str):
            codes.append(attribute.code(value))
        elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < attribute.size:
            codes.append(value)
        else:
            raise invalid(attribute.name, f"a label, or a code from 0 to {attribute.size - 1}", value)
    return np.array([codes], dtype=np.uint16)
