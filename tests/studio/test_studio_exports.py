"""What leaves the studio: the command line takes it, and finds the same."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import sidelight as sl
from sidelight.project.file import Project
from sidelight.studio import messages as said
from sidelight.studio.exports import EXPORTS, exported
from sidelight.studio.history import read_state
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
    assert project.release.budgets == {"class": 2.25, "age": 1.0, "sex": 0.7, "survived": 1.0}
    assert project.release.mechanisms["age"] == "oue"
    assert (project.wanted.people, project.wanted.precision) == (5_000, 0.05)
    assert "class: 2 values instead of 4" in text
    table = sl.read(project.source, **project.reading)
    assert table.schema["class"].kind == "ordinal"


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


def test_figures_at_a_small_delta_are_those_of_the_exported_command(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [",".join(f"v{(row // 3 + row * at) % (3 + at % 3)}" for at in range(12)) for row in range(60)]
    (tmp_path / "people.csv").write_text(
        "\n".join([",".join("abcdefghijkl"), *rows]) + "\n", encoding="utf-8"
    )
    session = session_of(tmp_path / "people.csv", drop=["l"])
    change(session, said.SetSecrets(secrets=[said.Secret(name="a", limit=2.0)], limit=None))
    change(session, said.SetAdversary(adversary=said.Adversary(), delta=1e-3))
    export_all(session, tmp_path, "plan", "schema", "commands")
    line = (tmp_path / "people.sh").read_text("utf-8").splitlines()[4]
    found = json.loads(run(*shlex.split(line)[1:], "--json").out)["secrets"]["a"]
    shown = settled(session).secrets[0].at_delta
    told = {item["adversary"]: _at(item, 1e-3) for item in found["stories"][:2]}
    assert {figure.adversary: figure.value for figure in shown} == told
    assert {item["draws"] for item in found["stories"][:2]} == {session.snapshot(None).sampling.draws}
