"""The studio's page: its types hold, its components do what they say, its bundle is made of its sources."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from conftest import AT_MOST
from typescript import installed, node_fixture

__all__ = ["node_fixture"]

STUDIO = Path(__file__).resolve().parents[2] / "studio"
ASSETS = STUDIO.parent / "src" / "sidelight" / "studio" / "assets"
MOST_BYTES = 150_000


@pytest.fixture(scope="module", name="tools")
def tools_fixture(node: str) -> Path:
    """The folder of the page's development tools."""
    del node
    return installed(STUDIO, "tsc", "esbuild", "vitest")


def run(*command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=STUDIO, capture_output=True, text=True, timeout=AT_MOST
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]


def test_types_hold(tools: Path) -> None:
    run(tools / "tsc", "--noEmit")


def test_components_do_what_they_say(tools: Path) -> None:
    run(tools / "vitest", "run")


def test_the_bundle_is_built_from_its_sources(node: str, tools: Path, tmp_path: Path) -> None:
    del tools
    run(node, "build.mjs", tmp_path)
    for built in sorted(tmp_path.iterdir()):
        assert built.read_bytes() == (ASSETS / built.name).read_bytes(), f"{built.name}: run `make studio`"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in ASSETS.iterdir()}


def test_the_bundle_is_small() -> None:
    assert (
        sum(len(gzip.compress((ASSETS / name).read_bytes())) for name in ("studio.js", "studio.css"))
        < MOST_BYTES
    )


def test_the_bundle_names_no_other_machine() -> None:
    """Only the names of XML vocabularies look like addresses; nobody fetches those."""
    text = (ASSETS / "studio.js").read_text("utf-8") + (ASSETS / "studio.css").read_text("utf-8")
    addresses = set(re.findall(r"(?:https?|wss?):\/\/([\w.-]*)", text))
    assert addresses <= {"www.w3.org"}
