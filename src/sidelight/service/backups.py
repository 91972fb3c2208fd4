"""Backups: everything that a store keeps as of one moment, in one file, for either kind of store.

    file  = head || LF || frame ...
    head  = one JSON object: what it is, its version, and a salt where it is encrypted
    frame = length of the rest, 4 bytes || compressed rows of a table, encrypted where there is a passphrase

The last frame is empty of rows, so that a file that was cut off is told from a whole one. Encrypted frames
are numbered (ChaCha20-Poly1305 with the number as nonce), so that none can be moved, left out or changed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import Strict, parsed_table, versioned
from sidelight.service.canonical import canonical
from sidelight.service.store import Store

BACKUP_VERSION = 1
_LARGE_FRAME = 1 << 26
"""Rows of more bytes than this are written as several frames."""
_LARGEST_FRAME = 1 << 28
"""A frame of more bytes than this, packed or not, is none of ours."""
_LARGEST_HEAD = 1 << 12
_END: tuple[str, list[list[Any]]] = ("", [])
_decoder = msgspec.msgpack.Decoder(tuple[str, list[list[Any]]])


class _Head(Strict):
    backup: str
    version: int
    salt: str | None


class _Seal:
    """Encrypts or decrypts frames in their order; leaves them as they are without a passphrase."""

    def __init__(self, passphrase: str | None, salt: bytes) -> None:
        self._cipher: ChaCha20Poly1305 | None = None
        self._number = 0
        if passphrase is not None:
            # n = 2^15 takes 32 MiB and about a tenth of a second, once a file.
            key = Scrypt(salt, 32, n=1 << 15, r=8, p=1).derive(passphrase.encode())
            self._cipher = ChaCha20Poly1305(key)

    def _nonce(self) -> bytes:
        self._number += 1
        return self._number.to_bytes(12, "little")

    def close(self, frame: bytes) -> bytes:
        return frame if self._cipher is None else self._cipher.encrypt(self._nonce(), frame, None)

    def open(self, frame: bytes) -> bytes:
        return frame if self._cipher is None else self._cipher.decrypt(self._nonce(), frame, None)


async def write_backup(store: Store, path: Path, passphrase: str | None = None) -> int:
    """Write everything that a store keeps to a file, and return how many rows that are."""
    salt, rows = os.urandom(16), 0
    seal = _Seal(passphrase, salt)
    with path.open("wb") as file:
        stated = None if passphrase is None else salt.hex()
        file.write(canonical({"backup": "sidelight", "version": BACKUP_VERSION, "salt": stated}) + b"\n")
        async for chunk in store.dump():
            rows += len(chunk[1])
            _write(file, seal, chunk)
        _write(file, seal, _END)
        file.flush()
        os.fsync(file.fileno())
    return rows


def _write(file: BinaryIO, seal: _Seal, chunk: tuple[str, list[list[Any]]]) -> None:
    name, rows = chunk
    plain = msgspec.msgpack.encode(chunk)
    if len(plain) > _LARGE_FRAME and len(rows) > 1:
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]):
            _write(file, seal, (name, half))
        return
    frame = seal.close(zlib.compress(plain))
    file.write(len(frame).to_bytes(4, "little") + frame)


async def read_backup(store: Store, path: Path, passphrase: str | None, time: int) -> None:
    """Take a backup over into an empty store: all of it or nothing."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        text = file.readline(_LARGEST_HEAD).decode("utf-8", "replace")
        data = parsed_table(text, f"{path} is no backup: it")
        head = versioned(_Head, data, str(path), BACKUP_VERSION, "backup")
        if (head.salt is None) != (passphrase is None):
            fix = "it is not encrypted; leave the passphrase out" if head.salt is None else "it is encrypted"
            raise InputError(f"{path}: {fix}{'' if head.salt is None else '; give the passphrase'}.")
        seal = _Seal(passphrase, _salt(head, path))
        await store.load(_frames(file, seal, str(path)), time)


def _salt(head: _Head, path: Path) -> bytes:
    try:
        return bytes.fromhex(head.salt or "")
    except ValueError:
        raise InputError(f"{path} is damaged: its salt is no hexadecimal number; take another.") from None


def _inflated(frame: bytes) -> bytes:
    """Return what was compressed, unless it is too large to be ours: few bytes may claim to be very many."""
    work = zlib.decompressobj()
    plain = work.decompress(frame, _LARGEST_FRAME)
    if not work.eof or work.unused_data:
        raise ValueError("a part of it is too large, or not whole")
    return plain


async def _frames(file: BinaryIO, seal: _Seal, label: str) -> AsyncIterator[tuple[str, list[list[Any]]]]:
    while True:
        size = int.from_bytes(file.read(4), "little")
        frame = file.read(size) if 0 < size <= _LARGEST_FRAME else b""
        try:
            if len(frame) != size or not frame:
                raise ValueError("it was cut off")
            chunk = _decoder.decode(_inflated(seal.open(frame)))
        except InvalidTag:
            raise InputError(f"{label}: the passphrase is wrong, or the backup was changed.") from None
        except (ValueError, zlib.error, msgspec.DecodeError) as error:
            raise InputError(f"{label} is damaged: {error}; take another backup.") from None
        if chunk == _END:
            return
        yield chunk
