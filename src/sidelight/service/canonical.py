"""Documents that are named by their digest: one way to write them, SHA-256 of the bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.strict import parsed_table

_DIGEST = re.compile(r"[0-9a-f]{64}")


def canonical(data: Mapping[str, Any]) -> bytes:
    r"""Return plain data as JSON in UTF-8: keys sorted, no spaces.

    Whoever checks a digest takes it of the bytes as they came, and need not write them again.

    >>> canonical({"b": 1.5, "a": "ä"})
    b'{"a":"\xc3\xa4","b":1.5}'
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a lone surrogate); write it whole.") from None


def digest_of(document: bytes) -> str:
    """Return what names a document: the SHA-256 of its bytes, in hexadecimal."""
    return hashlib.sha256(document).hexdigest()


def is_digest(value: str) -> bool:
    """Return whether a text is 64 hexadecimal digits."""
    return _DIGEST.fullmatch(value) is not None


def check_digest(name: str, value: object) -> str:
    """Return a digest, or raise an error that names it."""
    if not isinstance(value, str) or not is_digest(value):
        raise invalid(name, "64 hexadecimal digits", value)
    return value


def parsed_document(document: bytes, label: str, digest: str | None = None) -> Mapping[str, Any]:
    """Return what a document says, after checking that it is the one with this digest."""
    if digest is not None and digest_of(document) != digest:
        raise InputError(f"{label} is not the document that its digest {digest} names; fetch it again.")
    try:
        text = document.decode()
    except UnicodeDecodeError:
        raise InputError(f"{label} is not UTF-8 text.") from None
    return parsed_table(text, label)
