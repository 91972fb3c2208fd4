"""Memory: the random words of a device's permanent responses, the same for ever.

A memo must depend on nothing but its *topic*: the channel, the attribute, the epoch and the value. If the
channel were left out, two askers with different budgets would get answers from the same words, which differ
only for some values, and so reveal it; so they would if codes meant one thing to one and another to the
other. If the attribute were left out, different answers to two questions would prove different values; if
the epoch were, a new epoch would link to the old one. Who knows the secret knows the noise.

A *stored* memory draws words from the operating system and keeps them. A *keyed* one keeps a secret of 32
bytes and makes the words anew each time, with HMAC-SHA256 in counter mode (NIST SP 800-108, section 4.1):

    block i = HMAC-SHA256(secret, be32(i) || topic),   i = 1, 2, ..
    topic   = the fields in order, each as be32(its length in bytes) || its UTF-8 bytes,

and word j is bytes 8j to 8j + 7 of all blocks, lowest first. Length prefixes keep two topics from having
one encoding. Against an observer who cannot tell HMAC from random, memos from a secret are as good as stored
ones; a pure budget needs stored ones.
"""

from __future__ import annotations

import hmac
import os
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sidelight.foundation.arrays import Words
from sidelight.foundation.errors import InputError, check_is, check_whole, invalid
from sidelight.foundation.files import read_text, strict_json, write_text
from sidelight.foundation.strict import Strict, json_text, parsed_text, versioned

MEMORY_VERSION = 1
SECRET_BYTES = 32
_DOMAIN = "sidelight memory 1"
BLOCK_WORDS = 4
_MOST_WORDS = 1 << 20


@dataclass(frozen=True)
class Topic:
    """What a memo is of: nothing else may decide on it, and none of these may be left out.

    Attributes:
        purpose: "response" for the words of a response, "shared" for those that do not depend on the value.
        channel: the permanent channel, see `Kept.identity`, and the meaning of its codes.
        attribute: the attribute's name.
        epoch: in which the memo holds.
        subject: the value's label, or its bucket; empty where the words are shared.
    """

    purpose: Literal["response", "shared"]
    channel: str
    attribute: str
    epoch: str
    subject: str

    @property
    def fields(self) -> tuple[str, ...]:
        """All of it, in the order of the encoding."""
        return _DOMAIN, self.purpose, self.channel, self.attribute, self.epoch, self.subject

    def encoded(self) -> bytes:
        """Return the topic as bytes that no other topic has."""
        return prefixed(self.fields)


class Memory(ABC):
    """What a device remembers: the words of its memos, and the value that holds in each epoch.

    A memory belongs to one device and one person. It is the only part that may not be lost: with another one
    the same value gets other memos, and both together say more than each.
    """

    def __init__(self, frozen: Mapping[tuple[str, str], str] | None = None) -> None:
        """Begin with the values that hold already, by attribute and epoch."""
        self._frozen = dict(frozen or {})

    @abstractmethod
    def words(self, topic: Topic, count: int) -> Words:
        """Return the words of a topic: the same whenever they are asked for, shape (count,)."""

    def held(self, attribute: str, epoch: str, label: str) -> str:
        """Return the value that holds in an epoch: the first that was given for it."""
        return self._frozen.setdefault((attribute, epoch), label)

    @property
    def frozen(self) -> Mapping[tuple[str, str], str]:
        """The values that hold, by attribute and epoch."""
        return dict(self._frozen)

    @abstractmethod
    def to_file(self) -> MemoryFile:
        """Return all that must be kept."""

    def write(self, path: str | Path) -> Path:
        """Write the memory for its owner alone to read; a file that remembers something else stays."""
        target, mine = Path(path), self.to_file()
        if target.exists():
            there = _read(target)
            if there.secret != mine.secret or not _holds(mine, there):
                raise InputError(
                    f"{target} is the memory of another device, or remembers what this one does not; name "
                    "another file. Two memories of one value together say more than each."
                )
        return write_text(target, json_text(mine.model_dump()), private=True)

    @staticmethod
    def read(path: str | Path) -> Memory:
        """Read a memory from its file."""
        parsed = _read(Path(path))
        frozen = {(item.attribute, item.epoch): item.value for item in parsed.frozen}
        if parsed.secret is not None:
            return KeyedMemory(_decoded(parsed.secret, path), frozen)
        return StoredMemory({topic: _decoded(words, path) for topic, words in parsed.words.items()}, frozen)

    def _frozen_file(self) -> list[_FrozenFile]:
        return [
            _FrozenFile(attribute=attribute, epoch=epoch, value=value)
            for (attribute, epoch), value in self._frozen.items()
        ]


class KeyedMemory(Memory):
    """Memos made from a secret, without a table.

    >>> memory = KeyedMemory(bytes(range(32)))
    >>> topic = Topic("response", "grr 4 1", "colour", "0", "red")
    >>> memory.words(topic, 5)[:2] == memory.words(topic, 2)
    array([ True,  True])
    """

    def __init__(self, secret: bytes, frozen: Mapping[tuple[str, str], str] | None = None) -> None:
        """Take the device's secret, 32 bytes; `KeyedMemory.new` draws one."""
        check_is("secret", secret, bytes, "KeyedMemory.new() draws one.")
        if len(secret) != SECRET_BYTES:
            raise invalid(
                "secret", f"{SECRET_BYTES} bytes", f"{len(secret)} bytes", "KeyedMemory.new() draws one."
            )
        super().__init__(frozen)
        self._secret = secret

    @classmethod
    def new(cls) -> KeyedMemory:
        """Return a memory with a new secret."""
        return cls(os.urandom(SECRET_BYTES))

    def words(self, topic: Topic, count: int) -> Words:
        """Return the words of a topic, see the module."""
        return keyed_words(self._secret, topic, count)

    def to_file(self) -> MemoryFile:
        """Return the secret, and what holds."""
        secret = b64encode(self._secret).decode()
        return MemoryFile(version=MEMORY_VERSION, secret=secret, frozen=self._frozen_file())


class StoredMemory(Memory):
    """Memos from words that were drawn once and are kept in a table."""

    def __init__(
        self,
        table: Mapping[str, bytes] | None = None,
        frozen: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        """Begin with a table by encoded topics, in hexadecimal; empty by default."""
        super().__init__(frozen)
        self._table = dict(table or {})

    def words(self, topic: Topic, count: int) -> Words:
        """Return the words of a topic, drawn when they are asked for the first time."""
        wanted, key = 8 * _check_count(count), topic.encoded().hex()
        kept = self._table.setdefault(key, os.urandom(wanted))
        if len(kept) != wanted:
            raise InputError(
                f"the memory has {len(kept) // 8} words for {topic.attribute!r}, and {count} are needed; it "
                "is damaged."
            )
        return np.frombuffer(kept, dtype="<u8").astype(np.uint64)

    def to_file(self) -> MemoryFile:
        """Return the table, and what holds."""
        words = {topic: b64encode(kept).decode() for topic, kept in self._table.items()}
        return MemoryFile(version=MEMORY_VERSION, words=words, frozen=self._frozen_file())


def prefixed(texts: Iterable[str]) -> bytes:
    """Return texts as bytes that no others have: each as its length in four bytes, and its UTF-8 bytes."""
    parts = [text.encode() for text in texts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def keyed_words(secret: bytes, topic: Topic, count: int) -> Words:
    """Return the first words of a topic under a secret, see the module."""
    blocks, encoded = -(-_check_count(count) // BLOCK_WORDS), topic.encoded()
    made = (hmac.digest(secret, i.to_bytes(4, "big") + encoded, "sha256") for i in range(1, blocks + 1))
    return np.frombuffer(b"".join(made), dtype="<u8")[:count].astype(np.uint64)


def _check_count(count: int) -> int:
    return check_whole("count", count, at_least=0, at_most=_MOST_WORDS)


class _FrozenFile(Strict):
    attribute: str
    epoch: str
    value: str


class MemoryFile(Strict):
    """A memory on file: a secret or a table of words, and the values that hold."""

    version: int
    secret: str | None = None
    words: dict[str, str] = Field(default_factory=dict)
    frozen: list[_FrozenFile] = Field(default_factory=list)


def _read(path: Path) -> MemoryFile:
    text = read_text(path, f"{path} is not UTF-8 text; it must be the file of a memory.")
    data = parsed_text(text, str(path), strict_json)
    parsed = versioned(MemoryFile, data, str(path), MEMORY_VERSION, "memory")
    if parsed.secret is not None and parsed.words:
        raise InputError(f"{path} has both a secret and stored words; a memory has one of them.")
    holding = Counter((item.attribute, item.epoch) for item in parsed.frozen)
    if twice := [key for key, count in holding.items() if count > 1]:
        name, epoch = twice[0]
        raise InputError(f"{path} is damaged: two values of {name!r} hold in the epoch {epoch!r}.")
    return parsed


def _holds(mine: MemoryFile, there: MemoryFile) -> bool:
    """Whether nothing that is on file is missing or different."""
    known, old = ({(x.attribute, x.epoch, x.value) for x in item.frozen} for item in (mine, there))
    return mine.words.items() >= there.words.items() and known >= old


def _decoded(text: str, path: str | Path) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InputError(f"{path} is damaged: its words are not base 64.") from None
