"""The output folder: files of a run appear in it whole, and what people changed there is never lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, strict_json, write_atomically, write_text
from sidelight.foundation.fingerprint import digest_of_bytes, digest_of_file, sealed, unsealed
from sidelight.project.cache import Entry

INDEX = "index.html"
NAMES = (
    INDEX, "audit.html", "audit.json", "remedies.html", "remedies.json", "remedy-1.toml", "remedy-2.toml",
    "remedy-3.toml", "calibration.html",
    "calibration.json", "plan.toml", "assessment.md", "collection.html",
    "estimates.csv", "estimates.json", "attack.html", "attack.json",
    "results.json",
)  # fmt: skip
"""All that a run may write into the output folder; anything else stays in the cache."""
_MANIFEST = "published.json"


@dataclass
class Publisher:
    """Puts files into a folder, and knows by a manifest which of them it put there itself.

    Attributes:
        folder: where the report is.
        cache: where the manifest is kept.
        published: the digests of the files of this run, by name.
    """

    folder: Path
    cache: Path
    published: dict[str, str] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        """The first page."""
        return self.folder / INDEX

    def check(self, *, force: bool) -> None:
        """Raise, before any work, if a file that this would replace may have been written by people."""
        ours = self._former()
        for name in () if force else NAMES:
            path = self.folder / name
            if not path.exists() or digest_of_file(path) in ours.get(name, ()):
                continue
            fix = "move it, name another `output`, or say --force"
            if path.suffix == ".html":
                check_overwrite(path, fix=fix)  # a page of ours can be made again
            else:
                raise InputError(f"{path} is not as a run left it: somebody wrote or changed it; {fix}.")

    def has(self, published: Any) -> bool:
        """Whether the folder holds these files as they were published; no others of a former run."""
        try:
            there = {
                name: digest_of_file(self.folder / name) for name in NAMES if (self.folder / name).exists()
            }
        except OSError:
            return False
        return bool(there == published)

    def put(self, entry: Entry) -> None:
        """Publish the files of a finished step."""
        for name, path in entry.files.items():
            if name not in NAMES:
                continue
            self._state(name, entry.digests[name])
            target = self.folder / name
            if not target.exists() or digest_of_file(target) != entry.digests[name]:
                write_atomically(target, partial(shutil.copyfile, path))

    def write(self, name: str, text: str) -> None:
        """Publish a text."""
        self._state(name, digest_of_bytes(text.encode("utf-8")))
        write_text(self.folder / name, text)

    def write_index(self, text: str) -> None:
        """Publish the first page."""
        self.write(INDEX, text)

    def tidy(self) -> None:
        """Remove what a former run left here and this one did not make."""
        for name in self._former().keys() - self.published.keys():
            (self.folder / name).unlink(missing_ok=True)
        self._keep({name: [digest] for name, digest in self.published.items()})

    def _state(self, name: str, digest: str) -> None:
        """Write a digest down before its file is there: an interruption makes neither version foreign."""
        self.published[name] = digest
        former = self._former()
        self._keep(former | {name: [*former.get(name, [])[-1:], digest]})

    def _former(self) -> dict[str, list[str]]:
        """Return the digests that the files of former runs may have, by name."""
        try:
            held = unsealed(strict_json((self.cache / _MANIFEST).read_text("utf-8")), ("files",))
        except (OSError, ValueError, RecursionError):
            return {}
        files = held["files"] if held is not None and isinstance(held["files"], dict) else {}
        return {name: files[name] for name in NAMES if isinstance(files.get(name), list)}

    def _keep(self, files: dict[str, list[str]]) -> None:
        write_text(self.cache / _MANIFEST, json.dumps(sealed({"files": files})))
