"""`sidelight run`: from nothing to a linked report, each step computed once, and nothing lost on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from sidelight.foundation.files import lock
from sidelight.foundation.fingerprint import Digests
from sidelight.project import Project, run_project, steps
from sidelight.project.publishing import NAMES
from sidelight.project.run import STEPS, _parts, _queried
from sidelight.project.summary import answers_of
from sidelight.sources.table import write_table

__all__ = ["browser_fixture"]

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


def test_a_page_that_people_changed_stays_and_a_report_without_its_cache_is_a_runs_all_the_same(
    run, folder: Path
) -> None:
    report = folder / "sidelight-report"
    shutil.rmtree(report / ".sidelight-cache")
    assert run("run").code == 0
    page = report / "audit.html"
    page.write_text(page.read_text("utf-8").replace("</body>", "<p>agreed</p></body>"), "utf-8")
    assert run("run").code == 2
    assert "agreed" in page.read_text("utf-8")
    page.unlink()
    page.mkdir()
    shown = run("run")
    assert (shown.code, "somebody wrote or changed it" in shown.err) == (2, True)
    assert run("run", "--force").code == 2


def test_two_runs_do_not_write_into_one_folder(run, folder: Path) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace("people = 5000", "people = 5001"))
    with (folder / "sidelight-report" / ".sidelight-cache" / "lock").open("wb") as held:
        lock(held)
        shown = run("run")
    assert (shown.code, "another run is writing into" in shown.err) == (2, True)
    assert run("run").code == 0


def test_what_changes_while_it_is_read_is_not_kept(run, folder: Path, monkeypatch) -> None:
    table = (folder / "people.csv").read_text()
    (folder / "sidelight.toml").write_text(TEXT.replace("people = 5000", "people = 5001"))

    def change(*given: object) -> object:
        (folder / "people.csv").write_text(table + table.splitlines()[-1] + "\n")
        return compute(*given)  # type: ignore[arg-type]

    compute = steps.COMPUTE["audit"]
    monkeypatch.setitem(steps.COMPUTE, "audit", change)
    shown = run("run")
    assert (shown.code, "changed meanwhile; run again" in shown.err) == (2, True)
    (folder / "people.csv").write_text(table)
    monkeypatch.setitem(steps.COMPUTE, "audit", compute)
    assert "auditing the plan as stated: unchanged" not in run("run").err


def test_a_plan_that_a_project_names_is_part_of_what_results_depend_on(folder: Path) -> None:
    project = Project.from_toml(TEXT + '\n[release]\nplan = "mine.toml"\n', folder / "sidelight.toml")
    parts = []
    for words in ("# one\n", "# another\n"):
        (folder / "mine.toml").write_text(words)
        parts.append(_parts(project, Digests()))
    assert parts[0] != parts[1]


@pytest.mark.parametrize(
    ("sql", "is_known"),
    [
        ("SELECT * FROM data WHERE smokes = 'yes'", True),
        ("SELECT * FROM data ORDER BY random()", False),
        ("SELECT * FROM data USING SAMPLE 10", False),
        ("SELECT * FROM data WHERE joined < now()", False),
        ("SELECT * FROM read_csv('peo' || 'ple.csv')", False),
        ("SELECT * FROM read_csv($$people.csv$$)", False),
    ],
)
def test_rows_that_need_not_be_the_same_are_never_known_again(
    folder: Path, monkeypatch, sql: str, is_known: bool
) -> None:
    reading = f'path = "people.csv"\nsql = {json.dumps(sql)}'
    project = Project.from_toml(TEXT.replace('path = "people.csv"', reading), folder / "sidelight.toml")
    first = _queried(project, Digests())
    monkeypatch.setattr("sidelight.project.run._THIS_TIME", "another time")
    assert (_queried(project, Digests()) == first) is is_known


def test_reports_that_were_simulated_stay_out_of_the_report(folder: Path) -> None:
    report = folder / "sidelight-report"
    ours = {*NAMES, ".sidelight-cache", ".sidelight-published.json"}
    assert {path.name for path in report.iterdir()} <= ours
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
        (("[wanted]", '[release]\nplan = "none.toml"\n[wanted]'), "release.plan: there is no file none.toml"),
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


def test_of_two_secrets_one_with_a_limit_the_other_is_described(run, folder: Path) -> None:
    text = TEXT.replace("limit = 1", "").replace(
        "[secret.diabetes]", "[secret.income]\n[secret.diabetes]\nlimit = 9"
    )
    (folder / "sidelight.toml").write_text(text)
    secrets = json.loads(run("run", "--json").out)["steps"]["audit"]["secrets"]
    assert {item["secret"]: (item["limit"], item["decision"]) for item in secrets} == {
        "diabetes": (9, "within"), "income": (None, "described")
    }  # fmt: skip


def test_a_report_among_the_tables_that_are_read_is_refused(run, folder: Path) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace('"people.csv"', '"."'))
    shown = run("run")
    assert (shown.code, "what is read is never written over" in shown.err) == (2, True)


def told(**changes: dict[str, object]) -> str:
    """Return the advice for facts that differ from the plain ones."""
    facts = {name: {**part, **changes.get(name, {})} for name, part in PLAIN.items()}
    return dict(answers_of(facts))["What should we do?"]


OVER = {"over": ["a"], "within": False}
FOUND = {"calibrated": True, "keeps": True, "risk": "little.", "budgets": {"a": 1, "b": 1}}
WAY = {
    "file": "remedy-1.toml",
    "says": "Coarsen.",
    "use": "Fine.",
    "attributes": 2,
    "error": 0.01,
    "verdict": "useful",
}
WORSE = {"verdict": "worse than guessing", "people_for_use": 12345, "error": 0.3, "affordable": ["a", "b"]}


def test_the_advice_names_the_cheaper_way_first_and_never_a_plan_that_is_of_no_use() -> None:
    assert told() == "Collect as stated: plan.toml keeps every limit."
    assert told(audit=OVER, plan=FOUND, estimates={"error": 0.001}).startswith("Collect by plan.toml")
    way = {"remedies": [WAY]}
    cheaper = told(audit=OVER, plan=FOUND, estimates={"error": 0.02}, remedies=way)
    assert cheaper.startswith("Cheapest is remedy-1.toml: Coarsen.")
    smaller = {"remedies": [WAY | {"attributes": 1}]}
    assert told(audit=OVER, plan=FOUND, estimates={"error": 0.02}, remedies=smaller).startswith(
        "Collect by plan"
    )
    useless = told(audit=OVER, plan=FOUND, estimates=WORSE)
    assert useless.startswith("Do not collect like this: within the limits the estimates would be worse")
    assert (
        "Ask about 12,345 people, collect only a, b, one of them from each person, or allow more" in useless
    )
    assert "Better is remedy-1.toml" in told(audit=OVER, plan=FOUND, estimates=WORSE, remedies=way)
    failed = {"calibrated": False, "reason": "b leaks."}
    assert told(audit=OVER, plan=failed, estimates={"error": 0.1}).startswith(
        "Do not collect by these budgets."
    )


def test_without_a_limit_a_run_describes(run, folder: Path) -> None:
    (folder / "sidelight.toml").write_text(TEXT.replace("limit = 1", ""))
    shown = run("run")
    assert shown.code == 0
    assert "No limit was set, so nothing is judged." in shown.out


@pytest.mark.browser
@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (PHONE, "dark")])
def test_the_pages_link_each_other_and_ask_nobody_else(browser, made: Path, size, theme: str) -> None:
    first = made / "sidelight-report" / "index.html"
    show(browser, first, size, theme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    for page in ("audit", "remedies", "calibration", "collection", "attack"):
        browser.find_element("css selector", f'a[href="{page}.html"]').send_keys(Keys.ENTER)
        assert browser.current_url.endswith(f"/{page}.html")
        browser.find_element("css selector", ".brand a").send_keys(Keys.ENTER)
        assert browser.current_url.endswith("/index.html")
    assert complaints(browser) == []
    assert {url.split(":")[0] for url in requests(browser)} <= {"file", "data", "blob"}
