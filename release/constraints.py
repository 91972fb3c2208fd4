"""Write the versions and hashes that Sidelight was tested with, on every Python, and their licences.

    python release/constraints.py

It writes `constraints.txt` and `docs/licences.md`. pip itself resolves the project with its extras for the
Python that runs this, the oldest one supported: versions that exist for it are the ones most likely to exist
for all. For each later Python, pip is then asked for the same versions. Nothing is installed. Where the
packages come from is pip's own configuration; the files do not say it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from licences import page
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)] + [
    f"manylinux{year}_x86_64" for year in ("2014", "2010", "1")
]
EXTRAS = ("excel", "neural", "numeric", "service", "spark")

HEAD = """\
# The versions that Sidelight {version} was tested with, for Python {first} to {last} on Linux (x86-64), with
# the extras {extras}. Written by `make constraints`.
# To install exactly these, each checked against its hash:
#
#     pip install --require-hashes -r constraints.txt
#     pip install --no-deps sidelight-{version}-py3-none-any.whl
"""


@dataclass(frozen=True)
class Package:
    """One version of a package: the hashes of its files, and what it says about itself."""

    version: str
    hashes: frozenset[str]
    metadata: dict[str, Any]

    @classmethod
    def reported(cls, item: dict[str, Any]) -> Package:
        """Return the package of one entry of pip's report."""
        metadata, archive = item["metadata"], item["download_info"]["archive_info"]
        if "+" in metadata["version"]:
            raise SystemExit(
                f"{metadata['name']} {metadata['version']} is a build that only this machine has; "
                "run again with PIP_CONFIG_FILE=/dev/null and without PIP_FIND_LINKS."
            )
        return cls(metadata["version"], frozenset({archive["hashes"]["sha256"]}), metadata)

    def line(self, name: str) -> str:
        """Return the package as a requirement with its hashes."""
        hashes = (f"--hash=sha256:{digest}" for digest in sorted(self.hashes))
        return " \\\n    ".join([f"{name}=={self.version}", *hashes]) + "\n"


def resolve(requirements: Iterable[str], *options: str) -> dict[str, Package]:
    """Return what pip would install, by canonical name."""
    with tempfile.TemporaryDirectory() as folder:
        listed, report = Path(folder, "requirements.txt"), Path(folder, "report.json")
        listed.write_text("\n".join(requirements), "utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), *options, "-r", str(listed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pip found no set of versions: {done.stderr[-2000:]}")
        entries = json.loads(report.read_text("utf-8"))["install"]
    return {canonicalize_name(item["metadata"]["name"]): Package.reported(item) for item in entries}


def wanted() -> dict[str, list[str]]:
    """Return what the core and each extra ask for, as `pyproject.toml` says it."""
    return {
        "": PROJECT["dependencies"],
        **{extra: PROJECT["optional-dependencies"][extra] for extra in EXTRAS},
    }


def tested_set() -> dict[str, Package]:
    """Return one version of every package, with the hashes of its files for all Pythons."""
    found = resolve(line for lines in wanted().values() for line in lines)
    pins = [f"{name}=={package.version}" for name, package in found.items()]
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    for python in PYTHONS[1:]:
        with tempfile.TemporaryDirectory() as folder:
            # Without --no-deps pip would refuse packages that come as sources only.
            others = resolve(pins, "--no-deps", "--python-version", python, "--target", folder, *platforms)
        for name, other in others.items():
            mine = found[name]
            found[name] = Package(mine.version, mine.hashes | other.hashes, mine.metadata)
    return found


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, "utf-8")
    os.replace(part, path)  # noqa: PTH105 - it replaces in one step


def main() -> None:
    """Write both files."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != PYTHONS[0]:
        raise SystemExit(f"run it by Python {PYTHONS[0]}, the oldest supported; this is {here}.")
    found = tested_set()
    first, last, extras = PYTHONS[0], PYTHONS[-1], ", ".join(EXTRAS)
    head = HEAD.format(version=PROJECT["version"], first=first, last=last, extras=extras)
    write(ROOT / "constraints.txt", head + "".join(item.line(name) for name, item in sorted(found.items())))
    packages = {name: package.metadata for name, package in found.items()}
    write(ROOT / "docs" / "licences.md", page(wanted(), packages))


if __name__ == "__main__":
    main()
