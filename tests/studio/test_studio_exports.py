"""What leaves the studio: the command line takes it, and finds the same."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sidelight as sl
from sidelight.foundation.errors import InputError
from sidelight.project.bench import Bench
from sidelight.project.file import Project
from sidelight.studio import messages as said
from sidelight.studio.document import Draft
from sidelight.studio.exports import EXPORTS, exported
from sidelight.studio.history import read_state
from sidelight.studio.opened import Place, open_table
from sidelight.studio.projects import choices_of, settings_of
from sidelight.studio.session import Session
from studio_cases import budget, change, session_of, settled, titanic


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = session_of(titanic(tmp_path))
    change(session, budget(0.7, "sex"), budget(2.25, "class"))
    change(session, said.SetMechanism(plan="plan-1", attributes=["age"], mechanism="oue"))
    change(session, said.SetColumn(name="class", kind="ordinal"))
    change(session, said.Coarsen(plan="plan-1", attribute="class", values=2))
    secret = said.Secret(name="survived", limit=1.5, reason="It is theirs to tell.")
    change(session, said.SetSecrets(secrets=[secret, said.Secret(name="sex")], limit=9.0))
    change(session, said.SetExpectations(people=5_000, precision=0.05, purpose='To learn "why".'))
    return session


def export_all(session: Session, folder: Path, *kinds: str) -> None:
    for kind in kinds:
        made = exported(session.snapshot(None), kind)
        (folder / made.name).write_text(made.content, encoding="utf-8")


def test_the_exported_plan_audited_by_the_command_line_gives_the_same_figures(
    session: Session, tmp_path: Path, monkeypatch, run
) -> None:
    monkeypatch.chdir(tmp_path)
    export_all(session, tmp_path, "plan", "schema", "commands")
    lines = (tmp_path / "people.sh").read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("sidelight audit")]
    found = run(*shlex.split(line)[1:], "--json")
    assert found.code == 1, found.err
    told = json.loads(found.out)["secrets"]
    shown = settled(session)
    assert {item.secret for item in shown.secrets} == set(told) == {"survived", "sex"}
    for item in shown.secrets:
        audit = told[item.secret]
        assert item.own.value == audit["direct"]["upper"]["value"]
        assert item.total.value == audit["total"]["upper"]["value"]
        assert item.lower.value == audit["total"]["lower"]["value"]
        assert item.neighbour.value == audit["neighbours"][0]["upper"]["value"]
        assert (item.limit, item.outcome) == (audit["limit"], audit["verdicts"]["report"])


def test_the_exported_commands_run_and_give_the_same_files(
    session: Session, tmp_path: Path, monkeypatch, run
) -> None:
    monkeypatch.chdir(tmp_path)
    export_all(session, tmp_path, "plan", "schema", "commands")
    report = exported(session.snapshot(None), "report").content
    for line in (tmp_path / "people.sh").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            assert run(*shlex.split(line)[1:]).code in (0, 1)
    assert (tmp_path / "people.report.html").read_text("utf-8") == report
    reports = sl.transport.read_reports(tmp_path / "people.reports.parquet")
    plan = sl.Plan.read(tmp_path / "people.plan.toml")
    assert len(reports) == session.opened.table.rows
    assert plan.to_toml() == exported(session.snapshot(None), "plan").content


def test_the_exported_notebook_runs(session: Session, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    export_all(session, tmp_path, "plan", "schema", "notebook")
    cells = json.loads((tmp_path / "people.ipynb").read_text("utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    shown = {item.secret: item.total.value for item in settled(session).secrets}
    assert {name: item.total.value for name, item in names["audit"].secrets.items()} == shown
    assert names["estimates"].people == session.opened.table.rows


def test_the_exported_project_says_the_same(session: Session, tmp_path: Path) -> None:
    export_all(session, tmp_path, "project", "schema")
    text = (tmp_path / "people.project.toml").read_text("utf-8")
    project = Project.read(tmp_path / "people.project.toml")
    assert project.limits == {"survived": 1.5, "sex": 9.0}
    assert project.secrets["survived"].reason == "It is theirs to tell."
    assert (project.release.plan, project.protect.draws) == ("people.plan.toml", None)
    assert (project.wanted.people, project.wanted.precision) == (5_000, 0.05)
    assert "class: 2 values instead of 4" in text
    table = sl.read(project.source, **project.reading)
    assert table.schema["class"].kind == "ordinal"
    change(session, said.Coarsen(plan="plan-1", attribute="class", values=None))
    release = Project.from_toml(exported(session.snapshot(None), "project").content).release
    assert release.budgets == {"class": 2.25, "age": 1.0, "sex": 0.7, "survived": 1.0}
    assert (release.plan, release.mechanisms["age"]) == (None, "oue")


def test_the_exported_state_holds_no_key_and_no_folder(session: Session, tmp_path: Path) -> None:
    made = exported(session.snapshot(None), "state")
    history, file = read_state(made.content, made.name)
    assert history.present == session.document
    assert file.key is None
    for kind in EXPORTS.keys() - {"report"}:
        assert str(tmp_path) not in exported(session.snapshot(None), kind).content


def test_names_of_files_are_plain(tmp_path: Path) -> None:
    path = titanic(tmp_path).rename(tmp_path / 'we"ird\u202e name;.csv')
    session = session_of(path)
    assert {exported(session.snapshot(None), kind).name for kind in ("plan", "state")} == {
        "we-ird-name.plan.toml", "we-ird-name.studio.json"
    }  # fmt: skip


def test_secrets_whose_names_look_like_options_are_written_so_that_they_are_read(
    tmp_path: Path, monkeypatch, run
) -> None:
    names = ("--drop", "x=1", "a b")
    rows = [",".join(f"v{row // 3**at % 3}" for at in range(3)) for row in range(81)]
    (tmp_path / "people.csv").write_text("\n".join([",".join(names), *rows]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    session = session_of(tmp_path / "people.csv")
    change(session, said.SetSecrets(secrets=[said.Secret(name=name) for name in names], limit=9.0))
    export_all(session, tmp_path, "plan", "schema", "commands")
    line = (tmp_path / "people.sh").read_text("utf-8").splitlines()[4]
    found = run(*shlex.split(line)[1:], "--json")
    assert set(json.loads(found.out)["secrets"]) == set(names), found.err


def _at(story: dict[str, Any], delta: float) -> float:
    return next(point["upper"]["value"] for point in story["points"] if point["delta"] == delta)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of twelve attributes, whose releases are too many to be listed."""
    folder = tmp_path_factory.mktemp("crowd")
    rows = [",".join(f"v{(row // 3 + row * at) % (3 + at % 3)}" for at in range(12)) for row in range(60)]
    (folder / "people.csv").write_text("\n".join([",".join("abcdefghijkl"), *rows]) + "\n", encoding="utf-8")
    return folder / "people.csv"


@pytest.mark.parametrize("coarse", [{}, {"c": 3, "b": 2}], ids=["as it is", "coarsened"])
def test_figures_at_a_small_delta_are_those_of_the_exported_files(
    crowd: Path, tmp_path: Path, monkeypatch, run, coarse: dict[str, int]
) -> None:
    """Of the commands, and of a run of the project: to the last digit, and the same reports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_bytes(crowd.read_bytes())
    session = session_of(tmp_path / "people.csv", drop=["l"])
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=30.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=1e-3))
    change(session, said.SetColumn(name="b", kind="ordinal"))
    change(session, said.Withhold(plan="plan-1", attributes=["d"], withheld=True))
    change(session, budget(0.3, "c"))
    for name, size in coarse.items():
        change(session, said.Coarsen(plan="plan-1", attribute=name, values=size))
    export_all(session, tmp_path, "plan", "schema", "commands", "project")
    audited, collected, _ = [
        shlex.split(line)[1:]
        for line in (tmp_path / "people.sh").read_text("utf-8").splitlines()
        if line.startswith("sidelight")
    ]
    found = json.loads(run(*audited, "--json").out)["secrets"]["a"]
    assert run(*collected).code == 0
    assert run("run", "people.project.toml").code == 0
    output = tmp_path / "sidelight-report"
    ran = json.loads((output / "audit.json").read_text("utf-8"))["secrets"]["a"]
    shown = settled(session).secrets[0].at_delta
    draws = session.snapshot(None).sampling.draws
    for told in (found, ran):
        stories = {item["adversary"]: _at(item, 1e-3) for item in told["stories"][:2]}
        assert {figure.adversary: figure.value for figure in shown} == stories
        assert {item["draws"] for item in told["stories"][:2]} == {draws}
    assert sl.Plan.read(output / "plan.toml").releases == sl.Plan.read("people.plan.toml").releases
    (simulated,) = output.glob(".sidelight-cache/collection-*/simulated.parquet")
    both = [sl.transport.read_reports(path) for path in (simulated, Path("people.reports.parquet"))]
    assert sl.estimate(both[0]).to_json() == sl.estimate(both[1]).to_json()


def test_a_project_with_a_plan_opens_as_it_was(session: Session, tmp_path: Path) -> None:
    export_all(session, tmp_path, "project", "schema", "plan")
    project = Project.read(tmp_path / "people.project.toml")
    opened = open_table(Place(project.source, project.reading), {})
    choices = choices_of(project, opened)
    assert {name: choices[name] for name in ("sex", "class", "age")} == {
        name: session.document.plans[0].of(name) for name in ("sex", "class", "age")
    }
    path = tmp_path / "people.plan.toml"
    plan = sl.Plan.read(path)
    # what is sent three times says more than once
    for other, said_so in (({"times": 3}, "3 reports a person"), ({"mechanism": "blh"}, "the mechanism blh")):
        first = replace(plan.releases[0], **other)
        replace(plan, releases=(first, *plan.releases[1:])).write(path)
        with pytest.raises(InputError, match=f"in a way that the studio does not offer .{said_so}"):
            choices_of(project, opened)


def test_a_plan_that_says_what_it_withholds_opens(session: Session, tmp_path: Path) -> None:
    export_all(session, tmp_path, "project", "schema", "plan")
    project, path = Project.read(tmp_path / "people.project.toml"), tmp_path / "people.plan.toml"
    opened = open_table(Place(project.source, project.reading), {})
    plan = sl.Plan.read(path)
    silent = [replace(item, mechanism="withheld", epsilon=None) for item in plan.releases]
    replace(plan, releases=(silent[0], *plan.releases[1:])).write(path)
    choices = choices_of(project, opened)
    assert choices[silent[0].name].withheld
    draft = Draft(id="given", name="given", choices=choices)
    assert opened.plan(session.document, draft).releases == plan.releases[1:]
    replace(plan, releases=tuple(silent)).write(path)
    with pytest.raises(InputError, match="withholds every attribute"):
        choices_of(project, opened)


def test_a_project_with_what_the_studio_does_not_offer_is_refused(session: Session, tmp_path: Path) -> None:
    export_all(session, tmp_path, "project", "schema", "plan")
    project = Project.read(tmp_path / "people.project.toml")
    opened = open_table(Place(project.source, project.reading), {})
    for given, words in (
        (
            {"mechanisms": {"sex": "blh"}},
            "releases 'sex' in a way that .* not offer .the mechanism blh; it offers grr",
        ),
        ({"mechanism": "gr"}, "the mechanism gr; it offers grr"),
        ({"mechanism": "withheld"}, "withholds every attribute"),
    ):
        release = project.release.model_copy(update={"plan": None, "mechanisms": {}} | given)
        with pytest.raises(InputError, match=words):
            choices_of(replace(project, release=release), opened)


@pytest.mark.parametrize("decider", [None, "guess"])
def test_a_project_says_what_the_adversary_keeps(session: Session, tmp_path: Path, decider) -> None:
    adversary = said.Adversary(view="guess", decide_by=decider)
    change(session, said.SetAdversary(adversary=adversary, delta=None))
    export_all(session, tmp_path, "project", "schema", "plan")
    project = Project.read(tmp_path / "people.project.toml")
    assert settings_of(project).adversary == adversary
    found = Bench(project).audit.secrets
    for item in settled(session).secrets:
        audit = found[item.secret]
        assert (item.total.value, item.total.adversary) == (audit.total.upper.value, "guess")
        assert item.outcome == audit.decision
