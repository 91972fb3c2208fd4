"""The cache of a project: finished work, each in a folder named by the fingerprint of all it depends on.

An entry holds plain facts as JSON and the files that were made with them. It appears whole or not at all, and
it is taken only if its seal and the digests of its files are right: what is damaged is computed again.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidelight.foundation.files import strict_json, write_text
from sidelight.foundation.fingerprint import (
    Digests,
    checked_known,
    code_version,
    digest_of_file,
    fingerprint,
    library_versions,
    sealed,
    unsealed,
)

FOLDER = ".sidelight-cache"
_ENTRY = "entry.json"
_KNOWN = "files.json"
_ASIDE = ".part-"
_DIGITS = 16
_KEPT = 6
"""So many entries of a step are kept; the oldest are removed when another is added."""
_KEYS = ("key", "facts", "files")


@dataclass(frozen=True)
class Entry:
    """A finished step: its facts, and the files that belong to it, by name."""

    facts: Mapping[str, Any]
    files: Mapping[str, Path]
    digests: Mapping[str, str]


@dataclass(frozen=True)
class Cache:
    """The entries in a folder; one that cannot be written keeps nothing, and everything is computed."""

    folder: Path

    def open(self) -> None:
        """Make the folder, for its owner's eyes alone: it holds reports simulated from real records."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self.folder / ".gitignore").exists():
            write_text(self.folder / ".gitignore", "*\n")

    def digests(self) -> Digests:
        """Return the digests of large files that are known from earlier runs."""
        try:
            return Digests(checked_known(strict_json((self.folder / _KNOWN).read_text("utf-8"))))
        except (OSError, ValueError, RecursionError):
            return Digests()

    def keep_digests(self, digests: Digests) -> None:
        """Keep what is known about large files for the next run."""
        if digests.is_new:
            with suppress(Exception):  # a cache that cannot be written only costs time
                write_text(self.folder / _KNOWN, json.dumps(digests.known))

    def get(self, step: str, key: str) -> Entry | None:
        """Return a finished step; None where there is none, or where it was changed since."""
        folder = self._place(step, key)
        try:
            held = unsealed(strict_json((folder / _ENTRY).read_text("utf-8")), _KEYS)
            if held is None or held["key"] != key:
                return None
            files = {name: folder / name for name in held["files"]}
            if any(digest_of_file(path) != held["files"][name] for name, path in files.items()):
                return None
        except (OSError, ValueError, RecursionError, AttributeError, TypeError):
            return None
        with suppress(OSError):  # the newest used are kept longest
            folder.touch()
        return Entry(held["facts"], files, held["files"])

    def put(self, step: str, key: str, facts: Mapping[str, Any], made: Mapping[str, Path]) -> Entry:
        """Keep a step's facts and files, which are moved here; return the entry as `get` would."""
        target = self._place(step, key)
        with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=self.folder) as temporary:
            whole = Path(temporary) / "whole"
            whole.mkdir()
            digests = {}
            for name, path in made.items():
                shutil.move(path, whole / name)
                digests[name] = digest_of_file(whole / name)
            held = sealed({"key": key, "facts": dict(facts), "files": digests})
            write_text(whole / _ENTRY, json.dumps(held, ensure_ascii=True, allow_nan=False))
            if target.exists():
                shutil.move(target, Path(temporary) / "old")
            whole.rename(target)  # one step: whoever looks sees the old entry, none, or the whole new one
        self._forget(step)
        return Entry(dict(facts), {name: target / name for name in made}, digests)

    def workspace(self) -> tempfile.TemporaryDirectory[str]:
        """Return a folder for files in the making; an interruption leaves nothing of it."""
        return tempfile.TemporaryDirectory(prefix=_ASIDE, dir=self.folder)

    def _place(self, step: str, key: str) -> Path:
        return self.folder / f"{step}-{key[:_DIGITS]}"

    def _forget(self, step: str) -> None:
        """Remove the entries of a step that were used longest ago."""
        pattern = re.compile(rf"{re.escape(step)}-[0-9a-f]{{{_DIGITS}}}")
        entries = [path for path in self.folder.iterdir() if pattern.fullmatch(path.name) and path.is_dir()]
        for path in sorted(entries, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def key_of(step: str, ingredients: Mapping[str, Any]) -> str:
    """Return the fingerprint of a step: of its ingredients, and of the code and libraries that compute it."""
    made_by = {"code": code_version(), "libraries": library_versions()}
    return fingerprint({"step": step, **made_by, "ingredients": ingredients})
