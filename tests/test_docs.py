"""The documentation is true: its console transcripts are run, its site is built, its notebooks execute.

Python examples in it are doctests and run with the others.
"""

from __future__ import annotations

import doctest
import fcntl
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nbformat
import numpy as np
import pyarrow as pa
import pytest
from markdown.extensions.toc import slugify
from nbclient import NotebookClient
from pyarrow import csv, parquet
from selenium.webdriver import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from conftest import AT_MOST
from sidelight import cli
from sidelight.foundation.modules import homes_of
from sidelight.sources.table import write_table
from sidelight.studies.register import CATALOGUE
from sidelight.studies.rendering import section

__all__ = ["browser_fixture"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = ("make", "pip", "git", "python", "sidelight study run all")
"""How lines begin that are run elsewhere, or install what is under test."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def transcript(text: str) -> list[tuple[str, str]]:
    """Return every command of a page with what it is said to print."""
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            steps.append((re.split(r"\s#", command)[0].strip(), shown))
    return steps


def files_of(text: str) -> dict[str, str]:
    """Return the files that a page tells its reader to save: blocks whose first line is their name."""
    blocks = re.findall(r"```(?:toml|python)\n(# (\S+\.(?:toml|py))\n.*?)```", text, flags=re.DOTALL)
    return {name: body for body, name in blocks}


def told(page: Path) -> bool:
    return any(command.startswith("sidelight") for command, _ in transcript(page.read_text("utf-8")))


@pytest.fixture(scope="module", name="tables")
def tables_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's own files, by the names that the pages give them."""
    folder = tmp_path_factory.mktemp("tables")
    people = sl.sources.survey(2_000, seed=1)
    for name in ("people.csv", "people.parquet"):
        write_table(people, folder / name)
    sl.write_reports(sl.collect(people, sl.Plan.uniform(people.schema), seed=1), folder / "reports.parquet")
    rng = np.random.default_rng(1)
    cash, stock = rng.lognormal(3, 1, (2, 2_000))
    sheet = {"cash": cash, "inventory": stock, "total_current_assets": cash + stock}
    parquet.write_table(pa.table(sheet), folder / "sheet.parquet")
    age, hours = rng.normal(45, 12, 2_000), rng.normal(38, 6, 2_000)
    wages = {"age": age, "hours": hours, "income": 20 * age + 50 * hours + rng.normal(0, 300, 2_000)}
    parquet.write_table(pa.table(wages), folder / "wages.parquet")
    number = np.arange(2_000)
    members = {
        "member_nbr": 700_000 + number,
        "zip": 10_115 + 17 * (number % 60),
        "joined": np.datetime64("2019-01-01") + number * 7 % 1_000,
        "age": 18 + number % 61,
        "level": np.array(["basic", "plus", "gold"])[number * number % 3],
    }
    csv.write_csv(pa.table(members), folder / "members.csv")
    for month in (0, 1):
        mood = np.array(["good", "fair", "bad"])[rng.integers(0, 3 - month, 2_000)]
        asked = {"member": number + 50 * month, "mood": mood, "smokes": np.array(["no", "yes"])[number % 2]}
        parquet.write_table(pa.table(asked), folder / ("may.parquet", "june.parquet")[month])
    answers = sl.categorical("mood", ["good", "fair", "bad"]), sl.categorical("smokes", ["no", "yes"])
    releases = sl.Release(answers[0], "l-grr", 2.0, times=12), sl.Release(answers[1], "grr", 0.5, times=12)
    sl.Plan(releases).write(folder / "panel.toml")
    (folder / "my_module.py").write_text(MODULE)
    return folder


MODULE = """
import sidelight as sl
from sidelight.mechanisms.grr import RandomisedResponse

class MyMechanism(RandomisedResponse):
    name = "mine"

def half_of_it(belief, epsilon):
    return sl.leakage.ANALYSERS["SPL-ANL"](belief, epsilon) / 2
"""


LONG = ("how-much.md",)
"""Pages whose commands take half a minute, on a real table; others show the same commands."""


def as_told(page: Path) -> object:
    return pytest.param(page, marks=pytest.mark.deep if page.name in LONG else (), id=page.name)


@pytest.mark.parametrize("page", [as_told(page) for page in PAGES if told(page)])
def test_transcripts_come_out_as_shown(
    page: Path, tables: Path, tmp_path: Path, monkeypatch, capsys, request: pytest.FixtureRequest
) -> None:
    commands = [command for command, _ in transcript(page.read_text("utf-8"))]
    made = [words[words.index("-o") + 1] for words in map(shlex.split, commands) if "-o" in words]
    shutil.copytree(tables, tmp_path, ignore=shutil.ignore_patterns(*made), dirs_exist_ok=True)
    if any("adult.parquet" in command for command in commands):
        shutil.copy(request.getfixturevalue("data") / "adult.parquet", tmp_path)
    for name, body in files_of(page.read_text("utf-8")).items():
        (tmp_path / name).write_text(body, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command, shown in transcript(page.read_text("utf-8")):
        program, *arguments = shlex.split(command)
        if program == "python" and (tmp_path / arguments[0]).is_file():
            runpy.run_path(arguments[0])
        if command.startswith(ELSEWHERE):
            continue
        assert program == "sidelight", f"{page.name} has a command that no test runs: {command}"
        monkeypatch.setattr(sys, "argv", ["sidelight", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        printed = capsys.readouterr()
        assert caught.value.code in (0, 1), f"{command}: {printed.err}"
        if shown.strip():
            assert doctest.OutputChecker().check_output(shown, printed.out, FLAGS), (
                f"{command}\n{printed.out}"
            )


def test_a_transcript_is_split_into_commands() -> None:
    text = "```console\n$ sidelight a --b 1   # why\nout\nmore\n$ make test\n```\n"
    assert transcript(text) == [("sidelight a --b 1", "out\nmore\n"), ("make test", "")]


def test_a_page_says_which_files_to_save() -> None:
    text = "```toml\n# plan.toml\nversion = 3\n```\n```toml\nversion = 1\n```\n"
    assert files_of(text) == {"plan.toml": "# plan.toml\nversion = 3\n"}


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run_and_print_what_they_show(path: Path, tmp_path: Path) -> None:
    kept = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=AT_MOST, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [printed(cell) for cell in fresh.cells] == [printed(cell) for cell in kept.cells]


def printed(cell: nbformat.NotebookNode) -> str:
    """Return the text of a cell's outputs; how it was cut into messages is chance."""
    return "".join(output.get("text") or output.data["text/plain"] for output in cell.get("outputs", []))


sys.path.insert(0, str(ROOT / "docs"))

site_pages = import_module("site_pages")


def public_names() -> list[tuple[str, str]]:
    """Return every name of the reference with its room, but for submodules."""
    homes = [f"sidelight.{room}" for room in site_pages.ROOMS]
    listed = [(home, name) for home in homes for name in site_pages._names(home)]
    return [
        (home, name)
        for home, name in listed
        if not isinstance(getattr(import_module(home), name), ModuleType)
    ]


def test_every_public_name_has_an_executed_example() -> None:
    without = [
        f"{home}.{name}"
        for home, name in public_names()
        if not site_pages.has_own_example(home, name) and site_pages.example_of(name) is None
    ]
    assert without == [], "give each an example in its docstring or in docs/examples"


def test_every_room_with_public_names_is_in_the_reference() -> None:
    rooms = {name for name, home in site_pages.TOP.items() if home == "sidelight"}
    assert rooms - {"foundation"} <= set(site_pages.ROOMS)


INDEX = (ROOT / "docs" / "papers.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(sidelight\.[\w.]+)`", INDEX))))
def test_names_in_the_index_of_the_papers_are_public(name: str) -> None:
    room, _, own = name.rpartition(".")
    assert own in homes_of(str(import_module(room).__file__), room)


def test_links_in_the_index_of_the_papers_lead_to_every_study() -> None:
    links = dict(re.findall(r"\[([\w-]+)\]\(reproduction/([^)]+)\)", INDEX))
    assert links == {name: section(name) for name in CATALOGUE}
    for name, place in links.items():
        page, _, anchor = place.partition("#")
        titles = re.findall(r"^## (.+)$", (ROOT / "docs" / "reproduction" / page).read_text("utf-8"), re.M)
        assert anchor in {slugify(title, "-") for title in titles}, name


@pytest.fixture(scope="module", name="site")
def site_fixture(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The built site, in a folder apart from the project's own; of several test processes, one builds it."""
    temporary = tmp_path_factory.getbasetemp()
    folder = (temporary if worker_id == "master" else temporary.parent) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(folder)
    return folder / "site" / sl.__version__


def build(folder: Path) -> None:
    folder.mkdir()
    (folder / "src").symlink_to(ROOT / "src")
    for command in (
        [str(ROOT / "docs" / "site_pages.py"), "build/docs"],
        ["-m", "zensical", "build", "--strict", "--config-file", "build/zensical.toml"],
        [str(ROOT / "docs" / "site_pages.py"), "--keep", "build/site", "site"],
    ):
        built = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout + built.stderr


def test_the_site_names_its_version_and_keeps_others(site: Path, tmp_path: Path) -> None:
    assert f"Sidelight {sl.__version__}" in (site / "concepts.html").read_text("utf-8")
    assert f"url={sl.__version__}/index.html" in (site.parent / "index.html").read_text("utf-8")
    for name in ("0.9.0", "0.10.0", "notes"):
        (tmp_path / name).mkdir()
    for name in ("0.9.0", "0.10.0"):
        (tmp_path / name / "index.html").touch()
    assert site_pages.write_versions(tmp_path) == ["0.10.0", "0.9.0"]
    listed = json.loads((tmp_path / "versions.json").read_text("utf-8"))
    assert [each["aliases"] for each in listed] == [["latest"], []]
    assert "0.9.0/index.html" in (tmp_path / "versions.html").read_text("utf-8")


def test_the_site_has_every_page_and_both_references(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    python = (site / "reference" / "python.html").read_text("utf-8")
    assert all(f'id="sidelight.{name}"' in python for name in ("auditing.audit", "calibration.calibrate"))
    commands = (site / "reference" / "command-line.html").read_text("utf-8")
    assert all(words in commands for words in ("sidelight calibrate", "--not-secret", "sidelight doctor"))


@pytest.fixture(scope="module", name="address")
def address_fixture(site: Path) -> str:
    """The site as a folder that someone has unpacked: nothing serves it."""
    return site.as_uri()


LOADED = "return document.readyState === 'complete'"


def opened(browser, address: str, page: str, size: tuple[int, int] = WIDE, theme: str = "light") -> None:
    """Open a page as someone who has never been here: the site remembers a reader's colours."""
    browser.get(f"{address}/site.css")
    browser.execute_script("localStorage.clear()")
    show(browser, f"{address}/{page}.html", size, theme, LOADED)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("page", "size", "theme"),
    [
        ("index", WIDE, "light"),
        ("index", PHONE, "dark"),
        ("tutorial", PHONE, "light"),
        ("concepts", WIDE, "dark"),
        ("reference/command-line", PHONE, "dark"),
        ("notebooks/mechanisms", PHONE, "dark"),
        pytest.param("reference/python", WIDE, "light", marks=pytest.mark.deep),
        pytest.param("reference/python", PHONE, "dark", marks=pytest.mark.deep),
    ],
)
def test_the_site_is_shown_without_any_request_elsewhere(browser, address, page, size, theme) -> None:
    opened(browser, address, page, size, theme)
    assert complaints(browser) == []
    own = (address, "data:", "blob:", "about:")
    assert [url for url in requests(browser) if not url.startswith(own)] == []
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= size[0]
    scheme = {"light": "default", "dark": "slate"}[theme]
    WebDriverWait(browser, AT_MOST).until(
        lambda driver: driver.execute_script("return document.body.dataset.mdColorScheme") == scheme
    )


FOUND = """
const inside = node => [...node.querySelectorAll("*")].flatMap(
  child => [child, ...(child.shadowRoot ? inside(child.shadowRoot) : [])]);
return inside(document).filter(node => node.matches("ol a")).map(node => node.href);
"""


@pytest.mark.browser
def test_the_site_can_be_searched_without_a_server(browser, address) -> None:
    opened(browser, address, "index")
    browser.find_element("css selector", ".md-search__button").click()
    ActionChains(browser).pause(1).send_keys("saturates").perform()
    # While letters arrive one by one, pages are found that the whole word does not lead to.
    WebDriverWait(browser, AT_MOST).until(
        lambda driver: any("concepts.html" in link for link in driver.execute_script(FOUND))
    )
