"""`sidelight audit --delta`: what it prints, its exit codes, one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sidelight as sl


@pytest.fixture
def titanic(run, tmp_path: Path) -> Path:
    path = tmp_path / "titanic.csv"
    assert run("example", "titanic", "-o", path).code == 0
    return path


def test_the_table_decides_by_default_and_another_on_request(run, titanic: Path) -> None:
    """The exact figures of survived at 0.01: population 1.67, table 1.704, worst case 1.834."""
    asked = ("audit", titanic, "--delta", "0.01", "--secret")
    for limit, decides, code in (
        (1.75, (), 0),
        (1.69, (), 1),
        (1.69, ("--decide-by", "population"), 0),
        (1.75, ("--decide-by", "report"), 1),
    ):
        shown = run(*asked, f"survived={limit}", *decides)
        assert shown.code == code, shown.err
    assert "decides" in shown.out
    assert "who knows the population" in shown.out


def test_json_and_a_report_come_out(run, titanic: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    options = (
        "--delta",
        "1e-3",
        "--draws",
        500,
        "--precision",
        0.5,
        "--seed",
        4,
        "--secret",
        "sex=1",
        "--json",
    )
    shown = run("audit", titanic, *options, "--report", report)
    assert shown.code == 1
    told = json.loads(shown.out)
    assert told["delta"] == 1e-3
    assert told["decide_by"] == "table"
    assert [story["adversary"] for story in told["secrets"]["sex"]["stories"]] == [
        "population",
        "table",
        "report",
    ]
    assert "Three stories side by side" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--delta", 0), "`delta` must be a finite number above 0 and below 1, got 0.0"),
        (("--delta", 1), "`delta` must be"),
        (("--draws", 100), "--draws is for figures at delta; add --delta"),
        (("--seed", 1), "--seed is for figures at delta"),
        (("--delta", 0.1, "--draws", 3), "`draws` must be a whole number of at least 16, got 3"),
        (("--delta", 0.1, "--precision", 0), "`precision` must be a finite number above 0"),
        (("--decide-by", "table"), "Give a delta, as 0.001"),
        (("--delta", 0.1, "--decide-by", "tree"), "'report', 'population', 'table'"),
        (("--delta", 0.1, "--belief", "pairwise", "--decide-by", "population"), "'report', 'table'"),
        (("--delta", 0.1, "--decide-by", "popluation"), "Did you mean 'population'?"),
    ],
)
def test_bad_questions_are_refused_before_the_file_is_read(
    run, tmp_path: Path, options, message: str
) -> None:
    shown = run("audit", tmp_path / "missing.csv", *options)
    assert shown.code == 2
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_pairwise_belief_still_has_bounds(run, titanic: Path) -> None:
    shown = run("audit", titanic, "--delta", "0.01", "--belief", "pairwise", "--secret", "sex", "--json")
    (table, worst) = json.loads(shown.out)["secrets"]["sex"]["stories"]
    assert table["adversary"] == "table"
    assert table["draws"] == 0
    assert table["points"][0]["upper"]["value"] <= worst["upper"]["value"]
    assert sl.auditing.told_adversaries(sl.Belief.from_data(titanic, "pairwise")) == ("table",)
