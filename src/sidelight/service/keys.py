"""Operators' keys: random, shown once, kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

PREFIX = "slk_"
"""What a key begins with, so that scanners of leaked secrets can tell one."""


def make_key() -> str:
    """Return a new key of 32 random bytes."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> bytes:
    """Return what is kept of a key. It is random, so that a plain hash cannot be turned round."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def operator_of(key: str, known: Mapping[str, bytes]) -> str | None:
    """Return whose key it is; None if nobody's. How long this takes tells nothing about the hashes."""
    given, found = hash_key(key), None
    for name, kept in known.items():
        if hmac.compare_digest(given, kept):
            found = name
    return found
