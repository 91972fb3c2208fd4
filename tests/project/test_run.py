"""`sidelight run`: from nothing to a linked report, each step computed once, and nothing lost on the way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.project import Project, run_project, steps
from sidelight.project.publishing import NAMES
from sidelight.project.run import STEPS
from sidelight.project.summary import answers_of
from sidelight.sources.table import write_table

TEXT = """
version = 1
purpose = "to plan <clinics>"
seed = 1
[data]
path = "people.csv"
drop = ["region", "education", "age"]
[secret.diabetes]
reason = "health"
[protect]
limit = 1
[wanted]
people = 5000
precision = 0.05
"""


@pytest.fixture(scope="module", name="made")
def made_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project that was run once."""
    folder = tmp_path_factory.mktemp("project")
    write_table(sl.sources.survey(600, seed=1), folder / "people.csv")
    (folder / "sidelight.toml").write_text(TEXT)
    run_project(Project.read(folder / "sidelight.toml"))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch) -> Path:
    """The same folder, to be changed."""
    place = tmp_path / "work"
    subprocess.run(["cp", "-a", str(made), str(place)], check=True)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """The steps that are computed from now on, each of which fails the test that does not expect it."""
    names: list[str] = []

    def watch(name: str, compute: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object) -> object:
            names.append(name)
            return compute(*arguments)

        return watched

    for name, compute in steps.COMPUTE.items():
        monkeypatch.setitem(steps.COMPUTE, name, watch(name, compute))
    return names


ALL = [step.name for step in STEPS]


def test_a_run_makes_one_linked_report(run, folder: Path) -> None:
    shown = run("run")
    assert shown.code == 0
    page = (folder / "sidelight-report" / "index.html").read_text("utf-8")
    links = set(re.findall(r'href="([\w.-]+\.\w+)"', page))
    assert {"audit.html", "calibration.html", "collection.html", "attack.html", "plan.toml"} <= links
    assert all((folder / "sidelight-report" / link).is_file() for link in links)
    assert "to plan &lt;clinics&gt;" in page
    for question in ("What is the worst risk?", "For whom?", "What should we do?", "What will it cost?"):
        assert question in page
        assert question in shown.out
    plan = sl.Plan.read(folder / "sidelight-report" / "plan.toml")
    assert plan.limit_of("diabetes") == 1
    assert (plan.purpose, plan.reasons["diabetes"]) == ("to plan <clinics>", "health")
    audited = run("audit", "--plan", "sidelight-report/plan.toml")
    assert audited.code == 0, "the plan of the report keeps the limits of the project"


def test_the_results_are_plain_data(run, folder: Path) -> None:
    shown = json.loads(run("run", "--json").out)
    kept = json.loads((folder / "sidelight-report" / "results.json").read_text("utf-8"))
    assert shown["answers"] == kept["answers"] == answers_of(kept["steps"])
    assert list(kept["steps"]) == ALL
    assert shown["is_unchanged"]
    assert kept["steps"]["estimates"]["expected_people"] == 5000
    assert kept["steps"]["collection"]["people"] == 600


def test_nothing_is_computed_if_nothing_changed(run, folder: Path, computed: list[str]) -> None:
    shown = run("run")
    assert "Nothing changed" in shown.out
    os.utime(folder / "people.csv")
    assert "Nothing changed" in run("run").out, "the contents are what they were"
    assert computed == []


def test_an_unchanged_run_loads_nothing_that_computes(folder: Path) -> None:
    script = (
        "import sys; sys.argv = ['sidelight', 'run']; from sidelight.cli import main\n"
        "try: main()\nexcept SystemExit as end: print(end.code)\n"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'numba', 'scipy', 'jinja2', 'rich.table')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    assert shown.stdout.splitlines()[-2:] == ["0", "[]"]


@pytest.mark.parametrize(
    ("change", "steps_done"),
    [
        (("seed = 1", "seed = 2"), ALL),
        (("limit = 1", "limit = 1.5"), ALL),
        (('reason = "health"', 'reason = "law"'), ALL),
        (("<clinics>", "wards"), ALL),
        (('drop = ["region", "education", "age"]', 'drop = ["region", "age"]'), ALL),
        (("[wanted]", '[release]\nmechanism = "oue"\n[wanted]'), ALL),
        (("[protect]", '[protect]\ndecide_by = "report"'), ALL),
        (("people = 5000", "people = 6000"), ALL),
        (("precision = 0.05", "precision = 0.04"), ["remedies", "plan", "estimates"]),
    ],
)  # fmt: skip
def test_each_setting_has_its_steps_computed_again(
    folder: Path, computed: list[str], monkeypatch, change: tuple[str, str], steps_done: list[str]
) -> None:
    pretend(computed, monkeypatch, folder)
    text = TEXT.replace(*change, 1)
    assert text != TEXT
    (folder / "sidelight.toml").write_text(text)
    run_project(Project.read("sidelight.toml"))
    assert computed == steps_done
    (folder / "sidelight.toml").write_text(TEXT)
    run_project(Project.read("sidelight.toml"))
    assert computed == steps_done, "what was known before is known still"


SECRET = {
    "secret": "a", "leakage": 1.0, "limit": 1.0, "verdict": "", "decision": "within",
}  # fmt: skip
PLAIN: dict[str, dict[str, object]] = {
    "audit": {"judged": True, "within": True, "over": [], "risk": "", "whom": "", "secrets": [SECRET],
              "notes": [], "records": 1, "attributes": 1, "source": ""},
    "remedies": {"said": "", "remedies": []},
    "plan": {"calibrated": False, "reason": "", "within": True},
    "collection": {"people": 1},
    "estimates": {"headline": "", "verdict": "useful", "expected_people": 1, "people_needed": 1,
                  "precision": 0.1, "people_for_use": 1, "simulated_error": 0.1},
    "attack": {"outcome": "open", "sentence": "", "attacked": ["a"], "left": []},
}  # fmt: skip


def pretend(computed: list[str], monkeypatch, folder: Path) -> None:
    """Let the steps compute nothing: what is looked at is which of them are asked to."""
    plan = (folder / "sidelight-report" / "plan.toml").read_bytes()

    def compute(_bench: object, _done: object, place: Path, name: str) -> dict[str, object]:
        computed.append(name)
        if name == "plan":
            changed = "precision = 0.04" not in Path("sidelight.toml").read_text()
            (place / "plan.toml").write_bytes(plan + b"# other" * changed)
        if name == "collection":
            (place / "simulated.parquet").write_text(Path("sidelight.toml").read_text())
        return dict(PLAIN[name])

    for name in ALL:
        monkeypatch.setitem(steps.COMPUTE, name, partial(compute, name=name))


def test_other_contents_and_another_dictionary_are_computed(
    folder: Path, computed: list[str], monkeypatch
) -> None:
    pretend(computed, monkeypatch, folder)
    people = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(people + people.splitlines()[-1] + "\n")
    run_project(Project.read("sidelight.toml"))
    assert computed == ALL
    (folder / "s.toml").write_text("version = 1\n")
    (folder / "sidelight.toml").write_text(TEXT.replace("drop", 'schema = "s.toml"\ndrop', 1))
    run_project(Project.read("sidelight.toml"))
    (folder / "s.toml").write_text('version = 1\nna = ["?"]\n')
    run_project(Project.read("sidelight.toml"))
    monkeypatch.setattr("sidelight.project.cache.code_version", lambda: "another")
    run_project(Project.read("sidelight.toml"))
    assert computed == 4 * ALL


def test_a_damaged_cache_is_computed_again_and_a_lost_page_comes_back(
    run, folder: Path, computed: list[str]
) -> None:
    report = folder / "sidelight-report"
    before = (report / "audit.html").read_bytes()
    (report / "audit.html").unlink()
    assert run("run").code == 0
    assert (report / "audit.html").read_bytes() == before
    assert computed == [], "the cache has its pages"
    for path in report.glob(".sidelight-cache/attack-*/attack.json"):
        path.write_text("{}")
    for path in report.glob(".sidelight-cache/run-*/entry.json"):
        path.write_text("{}")
    assert run("run").code == 0
    assert computed == ["attack"]


def test_an_interrupted_run_leaves_its_finished_steps_whole(run, folder: Path, monkeypatch) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace("seed = 1", "seed = 7"))
    done: list[str] = []

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    kept = dict(steps.COMPUTE)
    for name in ("audit", "remedies", "plan"):
        monkeypatch.setitem(
            steps.COMPUTE, name, lambda *given, name=name: done.append(name) or kept[name](*given)
        )
    monkeypatch.setitem(steps.COMPUTE, "collection", stop)
    shown = run("run")
    assert shown.code == 130
    assert "nothing was left half written" in shown.err
    page = (folder / "sidelight-report" / "index.html").read_text("utf-8")
    assert "This run is not finished" in page
    assert not list((folder / "sidelight-report" / ".sidelight-cache").glob(".part-*"))
    monkeypatch.setitem(steps.COMPUTE, "collection", kept["collection"])
    assert run("run").code == 0
    assert done == ["audit", "remedies", "plan"], "finished steps are not done twice"


def test_what_people_changed_in_the_folder_is_not_lost(run, folder: Path) -> None:
    plan = folder / "sidelight-report" / "plan.toml"
    plan.write_text(plan.read_text() + "# mine\n")
    shown = run("run")
    assert (shown.code, "somebody wrote or changed it" in shown.err) == (2, True)
    assert plan.read_text().endswith("# mine\n")
    assert run("run", "--force").code == 0
    assert not plan.read_text().endswith("# mine\n")
    (folder / "sidelight-report" / "notes.txt").write_text("mine")
    assert run("run").code == 0
    assert (folder / "sidelight-report" / "notes.txt").read_text() == "mine"


def test_reports_that_were_simulated_stay_out_of_the_report(folder: Path) -> None:
    report = folder / "sidelight-report"
    assert {path.name for path in report.iterdir()} <= {*NAMES, ".sidelight-cache"}
    assert (report / ".sidelight-cache").stat().st_mode & 0o077 == 0
    assert (report / ".sidelight-cache" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('path = "people.csv"', 'path = "none.csv"'), "sidelight.toml: data.path: there is no file none"),
        (("drop =", 'schema = "none.toml"\ndrop ='), "data.schema: there is no file none.toml"),
        (("secret.diabetes", "secret.diabets"), "secret: there is no attribute 'diabets'; did you mean"),
        (("limit = 1", "limit = -1"), "sidelight.toml: `protect.limit` must be"),
        (("limit = 1", 'decide_by = "me"\nlimit = 1'), "`decide_by` must be one of"),
        (("limit = 1", 'decide_by = "table"\nlimit = 1'), "needs a delta"),
        (("seed = 1", 'seed = 1\noutput = "people.csv"'), "output: people.csv cannot be the folder"),
        (("[wanted]", '[release]\nmechanism = "grrr"\n[wanted]'), "Did you mean 'grr'?"),
        (("[wanted]", '[release.mechanisms]\nsexe = "grr"\n[wanted]'), "release.mechanisms: there is no"),
        (("seed = 1", "sead = 1"), "there is no key 'sead'; did you mean 'seed'?"),
        (("drop =", "drop = 1 #"), "sidelight.toml: data.drop"),
    ],
)  # fmt: skip
def test_bad_projects_get_one_line(run, folder: Path, change: tuple[str, str], words: str) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace(*change, 1))
    shown = run("run")
    assert (shown.code, shown.err.count("\n")) == (2, 1), shown.err
    assert words in shown.err


def test_a_missing_project_says_how_to_draft_one(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("run")
    assert (shown.code, "`sidelight init DATA` drafts one" in shown.err) == (2, True)


def test_stated_budgets_that_break_a_limit_exit_1_and_get_a_calibration(run, folder: Path) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace("[wanted]", "[release]\nbudgets = 1.5\n[wanted]"))
    shown = run("run", "--json")
    facts = json.loads(shown.out)["steps"]
    assert shown.code == 1
    assert (facts["plan"]["calibrated"], facts["plan"]["keeps"], facts["plan"]["within"]) == (
        True,
        True,
        False,
    )
    (folder / "sidelight.toml").write_text(TEXT.replace("[wanted]", "[release]\nbudgets = 0.2\n[wanted]"))
    shown = run("run", "--json")
    facts = json.loads(shown.out)["steps"]
    assert (shown.code, facts["plan"]["calibrated"], facts["audit"]["over"]) == (0, False, [])
    assert not (folder / "sidelight-report" / "calibration.html").exists(), (
        "pages of a former run are removed"
    )


def test_without_a_limit_a_run_describes(run, folder: Path) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace("limit = 1", ""))
    shown = run("run")
    assert shown.code == 0
    assert "No limit was set, so nothing is judged." in shown.out
