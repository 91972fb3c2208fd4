"""The output folder: files of a run appear in it whole, and what people changed there is never lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import strict_json, write_atomically, write_text
from sidelight.foundation.fingerprint import digest_of_bytes, digest_of_file, sealed, unsealed
from sidelight.project.cache import Entry

INDEX = "index.html"
NAMES = (
    INDEX, "audit.html", "audit.json", "remedies.html", "remedies.json", "calibration.html", "calibration.json",
    "plan.toml", "collection.html", "estimates.csv", "estimates.json", "attack.html", "attack.json",
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
        """Raise, before any work, if a file is there that this would replace and that people may have written."""
        ours = self._former()
        for name in () if force else NAMES:
            path = self.folder / name
            if path.exists() and digest_of_file(path) != ours.get(name):
                raise InputError(
                    f"{path} is not as a run left it: somebody wrote or changed it. Move it, name another "
                    "`output`, or say --force."
                )

    def has(self, published: Any) -> bool:
        """Whether the folder holds these files as they were published; no others of a former run."""
        try:
            there = {name: digest_of_file(self.folder / name) for name in NAMES if (self.folder / name).exists()}
        except OSError:
            return False
        return there == published

    def put(self, entry: Entry) -> None:
        """Publish the files of a finished step."""
        for name, path in entry.files.items():
            if name not in NAMES:
                continue
            self._state(name, entry.digests[name])
            target = self.folder / name
            if not target.exists() or digest_of_file(target) != entry.digests[name]:
                write_atomically(target, lambda place, path=path: shutil.copyfile(path, place))

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
        self._keep(self.published)

    def _state(self, name: str, digest: str) -> None:
        """Write down whose file it will be before it is there: an interruption must not make it foreign."""
        self.published[name] = digest
        self._keep(self._former() | self.published)

    def _former(self) -> dict[str, str]:
        try:
            held = unsealed(strict_json((self.cache / _MANIFEST).read_text("utf-8")), ("files",))
        except (OSError, ValueError, RecursionError):
            return {}
        files = {} if held is None else held["files"]
        return {name: files[name] for name in NAMES if isinstance(files.get(name), str)}

    def _keep(self, files: dict[str, str]) -> None:
        write_text(self.cache / _MANIFEST, json.dumps(sealed({"files": files})))
