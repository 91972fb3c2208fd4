"""The lines of a ledger's file: each carries its length, and a digest that chains it to the line before.

    line   = digest || " " || length || " " || body || LF
    digest = SHA-256(digest before || body), 64 hexadecimal digits; before the first are 32 zero bytes
    length = of the body in bytes, 8 decimal digits
    body   = one JSON object in UTF-8, which has no LF in it

A line is written and made durable before anything is done that relies on it. So an *unfinished* last line,
a proper beginning of a line, is what a crash leaves: nothing relied on it, and it is cut off. Anything else
that is not as above is damage, and refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight.foundation.errors import InputError

_HEAD = re.compile(rb"([0-9a-f]{64}) ([0-9]{8}) ")
_HEAD_SHAPE = b"h" * 64 + b" " + b"d" * 8 + b" "
_START = bytes(32)
_MOST_BODY = 10**8 - 1


@dataclass(frozen=True)
class Chain:
    """The lines of a file that were read.

    Attributes:
        bodies: the JSON texts.
        digests: of each line, 32 bytes.
        size: how many bytes of the file they are; what follows is an unfinished line.
    """

    bodies: tuple[bytes, ...]
    digests: tuple[bytes, ...]
    size: int


def next_digest(before: bytes, body: bytes) -> bytes:
    """Return the digest of a line."""
    return hashlib.sha256(before + body).digest()


def line_of(before: bytes | None, content: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the line of some content after a digest, None for the first, and its own digest."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > _MOST_BODY:
        raise InputError(f"an entry of {len(body)} bytes is too long for a ledger; send less in a report.")
    digest = next_digest(before or _START, body)
    return b"%s %08d %s\n" % (digest.hex().encode(), len(body), body), digest


def read_lines(content: bytes, label: str) -> Chain:
    """Return the whole lines of a file, or raise one sentence on where it is damaged."""
    bodies: list[bytes] = []
    digests: list[bytes] = []
    place, before = 0, _START
    while place < len(content):
        head = _HEAD.match(content, place)
        end = None if head is None else head.end() + int(head[2])
        if end is None or end >= len(content):
            if _is_unfinished(content[place:]):
                break
            raise damaged(label, len(bodies) + 1, "is no line of a ledger")
        assert head is not None  # noqa: S101 - for the type checker; without a head there is no end
        body = content[head.end() : end]
        before = next_digest(before, body)
        if content[end : end + 1] != b"\n" or b"\n" in body or head[1] != before.hex().encode():
            raise damaged(label, len(bodies) + 1, "does not have the digest that it must have")
        bodies.append(body)
        digests.append(before)
        place = end + 1
    return Chain(tuple(bodies), tuple(digests), place)


def _is_unfinished(rest: bytes) -> bool:
    """Whether the end of a file is a proper beginning of a line."""
    start = rest[: len(_HEAD_SHAPE)]
    shape = re.sub(rb"[0-9a-f]", b"h", start[:64]) + re.sub(rb"[0-9]", b"d", start[64:])
    return b"\n" not in rest and _HEAD_SHAPE.startswith(shape)


def damaged(label: str, number: int, what: str) -> InputError:
    """Render the one refusal of a damaged ledger."""
    return InputError(
        f"{label} is damaged: line {number} {what}; take the latest whole copy, or open a new ledger once "
        "everything that was spent counts no more."
    )
