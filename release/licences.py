"""The licences of what Sidelight stands on, from the metadata that each package carries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = """\
# Licences

Sidelight is licensed under Apache 2.0. These are the packages that it stands on, directly or through others,
with the licence that each states in its own metadata. Packages of an extra come only with it.
`make constraints` writes this page together with `constraints.txt`, which says the versions.

| package | licence | comes with |
| --- | --- | --- |
"""

TAIL = """
The package itself carries bundles of JavaScript: the drawing library of report pages and the page of the
studio. Their parts and licences are in `sidelight/report/assets/NOTICE` and
`sidelight/studio/assets/NOTICE`, which are installed beside them. The client for browsers
(`clients/typescript`) has no dependencies.
"""

_CLASSIFIER = "License :: "
_WORDING = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
}
"""Classifiers that name one licence; "BSD License" does not say which."""


def licence_of(metadata: Mapping[str, Any]) -> str:
    """Return the licence that a package states: an SPDX expression if it has one, else its own words.

    >>> licence_of({"license_expression": "BSD-3-Clause", "license": "ignored"})
    'BSD-3-Clause'
    >>> licence_of({"classifier": ["License :: OSI Approved :: MIT License"]})
    'MIT'
    """
    if stated := metadata.get("license_expression"):
        return str(stated)
    classifiers = [item for item in metadata.get("classifier", ()) if item.startswith(_CLASSIFIER)]
    words = [item.rsplit(" :: ", 1)[-1] for item in classifiers if item.count(" :: ") > 1]
    words += [item.removeprefix(_CLASSIFIER) for item in classifiers if item.count(" :: ") == 1]
    named = [_WORDING.get(word, word) for word in words if word != "OSI Approved"]
    stated = str(metadata.get("license") or "").strip()
    # Some packages put the whole text of their licence where its name belongs.
    is_name = len(stated) <= 60 and "\n" not in stated and stated.upper() not in ("UNKNOWN", "DUAL LICENSE")
    return (stated if is_name else "") or " and ".join(named) or "stated in its files only"


def companions(
    wanted: Mapping[str, Iterable[str]], packages: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return for each package which parts of Sidelight bring it, the core ("") or extras.

    Args:
        wanted: the requirements of the core and of each extra.
        packages: the metadata of every package, by its canonical name.
    """
    brought: dict[str, list[str]] = {name: [] for name in packages}
    for part, lines in wanted.items():
        for name in _reached(lines, packages):
            brought[name].append(part)
    return {name: [""] if "" in parts else parts for name, parts in brought.items()}


def _reached(lines: Iterable[str], packages: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return every package that the requirements lead to, with the extras that they ask for."""
    open_ones = [Requirement(line) for line in lines]
    seen: set[tuple[str, str]] = set()
    while open_ones:
        asked = open_ones.pop()
        name = canonicalize_name(asked.name)
        for extra in ("", *asked.extras):
            if name not in packages or (name, extra) in seen:
                continue
            seen.add((name, extra))
            for need in map(Requirement, packages[name].get("requires_dist", ())):
                if need.marker is None or need.marker.evaluate({"extra": extra}):
                    open_ones.append(need)
    return {name for name, _ in seen}


def page(wanted: Mapping[str, Iterable[str]], packages: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page that lists every package."""
    rows = [
        f"| {name} | {_cell(licence_of(packages[name]))} | {_part(parts)} |\n"
        for name, parts in sorted(companions(wanted, packages).items())
    ]
    return HEAD + "".join(rows) + TAIL


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _part(parts: list[str]) -> str:
    return "the core" if parts == [""] else ", ".join(f"`{part}`" for part in parts)
