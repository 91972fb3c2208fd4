"""`sidelight audit --remedies`: what it prints and writes, its exit codes, one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sidelight as sl

ASKED = ("--secret", "survived=1")


@pytest.fixture
def titanic(run, tmp_path: Path) -> Path:
    path = tmp_path / "titanic.csv"
    assert run("example", "titanic", "-o", path).code == 0
    return path


def test_remedies_come_first_and_the_verdict_stays(run, titanic: Path) -> None:
    shown = run("audit", titanic, *ASKED, "--remedies", "--people", 5000, "--within", 0.05)
    assert shown.code == 1
    assert shown.out.index("Ways back under the limits") < shown.out.index("What the release reveals")
    assert "5,000 people" in shown.out
    assert "5 percentage points" in shown.out


def test_one_option_writes_the_plan_and_its_audit_is_within(run, titanic: Path, tmp_path: Path) -> None:
    plain = json.loads(run("audit", titanic, *ASKED, "--remedies", "--json").out)
    assert plain["within_limits"] is False
    remedies = plain["remedies"]["remedies"]
    assert [item["number"] for item in remedies] == list(range(1, len(remedies) + 1))
    for item in remedies:
        path = tmp_path / f"remedy-{item['number']}.toml"
        assert run("audit", titanic, *ASKED, "--remedy", item["number"], "--save-plan", path).code == 1
        means = "--plan" if item["protocol"] is None else "--protocol"
        reports = tmp_path / f"{item['number']}.parquet"
        assert run("collect", titanic, means, path, "-o", reports, "--seed", 1).code == 0
        assert run("estimate", reports).code == 0
        if item["protocol"] is None:
            again = run("audit", titanic, "--plan", path, "--json")
            assert again.code == 0, again.err
            told = json.loads(again.out)["secrets"]["survived"]
            predicted = item["leakage"]["survived"]["value"]
            assert told["total"]["upper"]["value"] == pytest.approx(predicted, rel=1e-9)


def test_a_remedy_can_be_named_by_its_kind(run, titanic: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run("audit", titanic, *ASKED, "--remedy", "withhold", "--save-plan", path).code == 1
    plan = sl.Plan.read(path)
    assert plan.names != ("class", "sex", "age", "survived")
    assert "without" in plan.origin
    assert plan.limits == {"survived": 1.0}


def test_a_report_has_the_remedies_first(run, titanic: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("audit", titanic, *ASKED, "--remedies", "--report", page).code == 1
    text = page.read_text("utf-8")
    assert text.index('id="remedies"') < text.index('id="words"')
    assert 'download="remedy-1.toml"' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--remedies",), "remedies need a limit to come back under; add --limit 1"),
        ((*ASKED, "--remedy", 1), "--remedy needs a file for its plan; add --save-plan"),
        ((*ASKED, "--remedies", "--min-support", 3), "--min-support hides figures"),
        ((*ASKED, "--people", 10), "--people is for remedies; add --remedies"),
        ((*ASKED, "--remedies", "--within", 2), "within"),
        ((*ASKED, "--remedies", "--people", 0), "people"),
        ((*ASKED, "--remedy", 99, "--save-plan", "plan.toml"), "remedy"),
        ((*ASKED, "--remedy", "magic", "--save-plan", "plan.toml"), "magic"),
        (("--secret", "survived=50", "--remedy", 1, "--save-plan", "plan.toml"), "there is no remedy"),
    ],
)
def test_bad_input_gets_one_line(run, titanic: Path, options: tuple[object, ...], message: str) -> None:
    shown = run("audit", titanic, *options)
    assert shown.code == 2
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert not Path("plan.toml").exists()
