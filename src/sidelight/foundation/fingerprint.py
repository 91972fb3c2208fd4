"""Fingerprints: what a result was computed from, so that it is known again and computed only once.

A fingerprint is a SHA-256 over named ingredients. Files go in by their contents. Since a large file takes
long to read, its digest is kept with its size, times and inode; it is read again if any of them changed, or
if it was written so shortly before that a later change might bear the same time.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sidelight.foundation.files import globbed

LIBRARIES = (
    "duckdb", "matplotlib", "numba", "numpy", "opendp", "pyarrow", "scikit-learn", "scipy", "torch",
)  # fmt: skip
"""The distributions whose versions a result can depend on."""
_CODE = (".py", ".toml", ".j2", ".css", ".js")
SMALL = 1 << 26
"""Files up to this many bytes are read every time: that takes less than a tenth of a second."""
_RACY = 2_000_000_000
"""Within so many nanoseconds a file can change twice and bear one time, on coarse file systems."""
_BESIDE = ("-wal", ".wal", "-journal")
"""The endings of files that hold what a database has not yet written into its own."""
_CHUNK = 1 << 20

Known = dict[str, list[Any]]
"""The states and digests of large files, by their paths."""


@cache
def code_version() -> str:
    """Return a digest of every module of the package, and of what is published, which verdicts rest on."""
    package = Path(__file__).parents[1]
    files = [path for path in package.rglob("*") if path.suffix in _CODE]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def library_versions() -> tuple[str, ...]:
    """Return the versions of Python and of every library that computes."""
    return (sys.version, *(f"{name} {_version(name)}" for name in LIBRARIES))


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "absent"


def fingerprint(ingredients: Mapping[str, Any]) -> str:
    """Return the fingerprint of named plain data; neither their order nor their spacing matters.

    >>> fingerprint({"limit": 1.0, "delta": None}) == fingerprint({"delta": None, "limit": 1.0})
    True
    """
    text = json.dumps(ingredients, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of what a file holds, or will hold."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the digest of a file, read as a stream."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass
class Digests:
    """Digests of files, with the states in which large ones were `known`; `is_new` once one is added."""

    known: Known = field(default_factory=dict)
    is_new: bool = False

    def of(self, source: str) -> str | None:
        """Return the digest of a file, a folder or a glob; None for what cannot be read twice."""
        files = _files(source)
        if not files:
            return None
        return fingerprint({"files": [[name, self._of_file(path)] for name, path in files]})

    def _of_file(self, path: Path) -> str:
        state = path.stat()
        if state.st_size <= SMALL:
            return digest_of_file(path)
        name = str(path.resolve())
        mark = _mark(path)
        former = self.known.get(name)
        if former is not None and former[:-1] == mark:
            return str(former[-1])
        started = time.time_ns()
        digest = digest_of_file(path)
        if max(state.st_mtime_ns, state.st_ctime_ns) < started - _RACY and _mark(path) == mark:
            self.known[name], self.is_new = [*mark, digest], True
        return digest


def _files(source: str) -> list[tuple[str, Path]]:
    """Return the files of a source, each with what it is called there: folders can tell what is in them."""
    path = Path(source)
    if path.is_dir():
        found = sorted(item for item in path.rglob("*") if item.is_file())
        return [(item.relative_to(path).as_posix(), item) for item in found]
    named = [(path.name, path)] if path.exists() else [(name, Path(name)) for name in globbed(source)]
    plain = sorted((name, item) for name, item in named if item.is_file())
    beside = ((f"{name}{end}", Path(f"{item}{end}")) for name, item in plain for end in _BESIDE)
    return [*plain, *(pair for pair in beside if pair[1].is_file())]


def _mark(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]


def checked_known(data: Any) -> Known:
    """Return digests that were kept in a file; nothing of them where anything is not as it was written."""
    if not isinstance(data, dict):
        return {}
    return {name: entry for name, entry in data.items() if _is_entry(entry)}


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 5:
        return False
    *mark, digest = entry
    return all(type(part) is int for part in mark) and isinstance(digest, str) and len(digest) == 64


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with a seal over them, by which `unsealed` sees that nothing was changed."""
    return {**data, "seal": fingerprint(data)}


def unsealed(data: Any, keys: Iterable[str]) -> dict[str, Any] | None:
    """Return sealed data that have these keys; None where the seal is broken or a key lacks."""
    if not isinstance(data, dict):
        return None
    rest = {name: part for name, part in data.items() if name != "seal"}
    is_whole = data.get("seal") == fingerprint(rest) and rest.keys() == set(keys)
    return rest if is_whole else None
