"""What is handed out: the wheel and the sdist hold what they must; versions and licences are stated."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = PROJECT["version"]
DATA = [
    "py.typed",
    "report/assets/plotly.min.js",
    "report/templates/audit.html.j2",
    "studio/assets/studio.js",
    "studio/assets/studio.css",
    "service/assets/client.js",
    "service/assets/answer.html",
    "service/migrations/sqlite.sql",
    "studies/studies.toml",
    "sources/examples.py",
]
SOURCES = [
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "Makefile",
    "constraints.txt",
    "docs/licences.md",
    "tests/conftest.py",
    "vectors/reports.json",
    "studio/package.json",
    "clients/typescript/package.json",
]


def own_files() -> set[str]:
    """Return every file of the package that git knows; what git ignores is not handed out."""
    listed = subprocess.run(["git", "ls-files", "src/sidelight"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a clone: git does not say which files are the package's")
    return {name.removeprefix("src/") for name in listed.stdout.splitlines()}


@pytest.fixture(scope="module", name="handed_out")
def handed_out_fixture(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The names in a wheel and in an sdist, built without a registry by the backend that is installed."""
    pytest.importorskip("hatchling", reason="building needs hatchling")
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(folder / f"sidelight-{VERSION}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
    with tarfile.open(folder / f"sidelight-{VERSION}.tar.gz") as sdist:
        sources = {name.partition("/")[2] for name in sdist.getnames()}
    return names, sources


def test_the_wheel_holds_the_whole_package_and_its_licences(handed_out) -> None:
    wheel, _ = handed_out
    assert own_files() - wheel == set()
    assert {f"sidelight/{name}" for name in DATA} <= wheel
    about = f"sidelight-{VERSION}.dist-info"
    for licence in ("LICENSE", "src/sidelight/report/assets/NOTICE", "src/sidelight/studio/assets/NOTICE"):
        assert f"{about}/licenses/{licence}" in wheel
    assert not [name for name in wheel if not name.startswith(("sidelight/", about))]


def test_the_sdist_holds_what_builds_and_tests_it(handed_out) -> None:
    _, sdist = handed_out
    assert {f"src/{name}" for name in own_files()} - sdist == set()
    assert set(SOURCES) <= sdist
    assert not [name for name in sdist if "node_modules" in name or "__pycache__" in name]


def test_the_version_is_the_same_wherever_it_is_stated() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (citation["cff-version"], citation["version"]) == ("1.2.0", VERSION)
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    readme = (ROOT / "README.md").read_text("utf-8")
    install = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert set(re.findall(r"sidelight-(\d+\.\d+\.\d+)", install)) == {VERSION}
    assert re.findall(r"version\s*=\s*\{(.*?)\}", readme) == [VERSION]
    for package in ("studio", "clients/typescript"):
        assert f'"version": "{VERSION}"' in (ROOT / package / "package.json").read_text("utf-8")
    assert f"Sidelight {VERSION} " in (ROOT / "constraints.txt").read_text("utf-8")


def required(part: str) -> list[Requirement]:
    """Return what the core ("") or an extra asks for."""
    optional = PROJECT["optional-dependencies"]
    return [Requirement(line) for line in (optional[part] if part else PROJECT["dependencies"])]


RUNNING = ("", "excel", "neural", "numeric", "service", "spark")


def test_only_torch_is_pinned_and_nothing_is_without_a_lower_bound() -> None:
    parts = ["", *PROJECT["optional-dependencies"]]
    asked = [item for part in parts for item in required(part) if item.name not in ("sidelight", "xxhash")]
    pinned = [item.name for item in asked if any(bound.operator in ("==", "===") for bound in item.specifier)]
    assert pinned == ["torch"]
    assert [
        item.name for item in asked if not any(">" in bound.operator for bound in item.specifier)
    ] == pinned


def constraints() -> dict[str, tuple[str, list[str]]]:
    """Return each pinned package with its version and its hashes."""
    text = (ROOT / "constraints.txt").read_text("utf-8")
    lines = re.sub(r"\\\n\s+", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found = {}
    for line in lines:
        pin, *hashes = line.split("--hash=")
        name, _, version = pin.strip().partition("==")
        found[name] = (version, [item.strip() for item in hashes])
    return found


def test_constraints_name_a_fitting_version_with_hashes_of_every_dependency() -> None:
    pins = constraints()
    for item in (item for part in RUNNING for item in required(part)):
        assert item.specifier.contains(pins[canonicalize_name(item.name)][0]), item
    for name, (_, hashes) in pins.items():
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", item) for item in hashes), name
    # A compiled package has a file for each Python; NumPy stands for them.
    assert len(pins["numpy"][1]) == 4
    assert "://" not in (ROOT / "constraints.txt").read_text("utf-8")


def test_every_dependency_is_listed_with_its_licence() -> None:
    rows = re.findall(
        r"^\| (\S+) \| (.+?) \| (.+?) \|$", (ROOT / "docs/licences.md").read_text("utf-8"), re.M
    )
    listed = {name: (licence, part) for name, licence, part in rows if name not in ("package", "---")}
    assert set(listed) == set(constraints())
    assert all(licence.strip() and part.strip() for licence, part in listed.values())
    for part in RUNNING:
        said = f"`{part}`" if part else "the core"
        for item in required(part):
            assert {said, "the core"} & set(listed[canonicalize_name(item.name)][1].split(", "))


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "asyncpg"])
def test_a_studio_that_lacks_part_of_its_extra_names_it(run, monkeypatch, missing: str) -> None:
    """A machine may have some of the packages from elsewhere."""
    monkeypatch.setitem(sys.modules, missing, None)
    shown = run("studio", "people.csv", "--no-browser")
    assert shown.code == 2
    assert shown.err.count("\n") == 1
    assert "the studio needs the package" in shown.err
    assert 'pip install "sidelight[service]"' in shown.err
