"""The commands about plans, and audits of several plans side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sidelight as sl


@pytest.fixture
def folder(run, tmp_path: Path) -> Path:
    """A table and two plans of it."""
    assert run("example", "titanic", "-o", tmp_path / "people.csv").code == 0
    schema = sl.read(str(tmp_path / "people.csv")).schema
    plan = sl.Plan.uniform(schema, epsilon=1.0, limits={"survived": 1.7})
    plan.write(tmp_path / "old.toml")
    releases = tuple(replace(item, epsilon=0.5) for item in plan.releases if item.name != "age")
    replace(plan, releases=releases, purpose="ships").write(tmp_path / "new.json")
    return tmp_path


def test_a_plan_is_shown(run, folder: Path) -> None:
    shown = run("plan", "show", folder / "new.json")
    assert shown.code == 0
    for words in ("ships", "survived", "1.7 (odds × 5.47)", "What is collected"):
        assert words in shown.out
    assert "| survived | 1.7 (odds × 5.47) |" in run("plan", "show", folder / "new.json", "--markdown").out
    assert json.loads(run("plan", "show", folder / "new.json", "--json").out)["purpose"] == "ships"


def test_a_diff_of_plans_alone_needs_no_data(run, folder: Path) -> None:
    shown = run("plan", "diff", folder / "old.toml", folder / "new.json")
    assert shown.code == 0
    for words in ("ships", "age", "released", "budget"):
        assert words in shown.out
    changes = json.loads(run("plan", "diff", folder / "old.toml", folder / "new.json", "--json").out)
    assert {"subject": "age", "aspect": "released", "before": "grr at 1", "after": "no"} in changes


def test_a_diff_with_data_says_leakage_and_error(run, folder: Path) -> None:
    diff = ("plan", "diff", folder / "old.toml", folder / "new.json", "--data", folder / "people.csv")
    shown = run(*diff, "--report", folder / "diff.html")
    assert shown.code == 1, "the old plan breaks its limit"
    for words in (
        "new.json leaks less about every secret than old.toml", "1.834 (× 6.26); exceeds 1.7",
        "What the estimates are worth", "not collected", "realised 0.5",
    ):  # fmt: skip
        assert words in shown.out
    assert "What leaks" in (folder / "diff.html").read_text(encoding="utf-8")
    told = json.loads(run(*diff, "--secret", "survived", "--people", 100, "--json").out)
    assert told["people"] == 100
    assert [side["within_limits"] for side in told["plans"]] == [False, True]
    assert told["plans"][0]["secrets"]["survived"]["leakage"]["value"] == pytest.approx(1.834, abs=1e-3)
    text = run(*diff, "--secret", "survived", "--markdown").out
    assert "| survived | 1.834 (× 6.26); exceeds 1.7 |" in text
    assert "\n## What changes\n" in text


def test_a_check_exits_by_what_it_finds(run, folder: Path) -> None:
    old, new, data = folder / "old.toml", folder / "new.json", folder / "people.csv"
    assert run("plan", "check", old).code == 0
    shown = run("plan", "check", old, "--data", data)
    assert shown.code == 1
    assert shown.out.startswith("✕ survived leaks 1.834, and may leak 1.7: exceeded.")
    assert run("plan", "check", new, "--data", data).code == 0
    assert json.loads(run("plan", "check", new, "--data", data, "--json").out)["fit"] is True


def test_audits_of_several_plans_stand_side_by_side(run, folder: Path) -> None:
    audit = ("audit", folder / "people.csv", folder / "old.toml", folder / "new.json")
    shown = run(*audit, "--report", folder / "both.html")
    assert shown.code == 1
    assert "new.json leaks less about every secret" in shown.out
    assert (folder / "both.html").is_file()
    told = json.loads(run(*audit, "--secret", "survived=3", "--delta", 0.05, "--seed", 1, "--json").out)
    assert (told["delta"], told["decide_by"], told["within_limits"]) == (0.05, "table", True)
    assert [side["secrets"]["survived"]["limit"] for side in told["plans"]] == [3.0, 3.0]
    mixed = ("audit", folder / "people.csv", folder / "new.json", "--plan", folder / "old.toml", "--json")
    assert [side["name"] for side in json.loads(run(*mixed).out)["plans"]] == ["old.toml", "new.json"]
    one = run("audit", folder / "people.csv", folder / "old.toml", "--json")
    assert json.loads(one.out) == json.loads(
        run("audit", folder / "people.csv", "--plan", folder / "old.toml", "--json").out
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plan show missing.toml", "No such file"),
        ("plan show people.csv", "must end in .toml or .json"),
        ("plan show old.toml --markdown --json", "exclude each other"),
        ("plan diff old.toml old.toml", "named twice"),
        ("plan diff old.toml new.json --people 5", "--people is about what leaks; name the table too"),
        ("plan diff old.toml new.json --data people.csv --people 0", "`people` must be a whole number"),
        ("plan diff old.toml new.json --data people.csv --delta 2", "`delta` must be"),
        ("plan diff old.toml new.json --data people.csv --decide-by x", "`--decide-by` must be one of"),
        ("plan diff old.toml new.json --data people.csv --secret cabin", "cabin"),
        ("plan diff old.toml new.json --data people.csv --decide-by table", "delta"),
        ("plan check other.toml --data people.csv", "releases 'department', which is not a column"),
        ("audit old.toml new.json", "old.toml is a plan; name the table before it"),
        ("audit people.csv old.toml new.json --synergy 2", "--synergy is for one plan, and 2 are named"),
        ("audit people.csv old.toml new.json --save-plan x.toml", "--save-plan is for one plan"),
        ("audit people.csv old.toml new.json --epsilon 2", "--epsilon is for one plan"),
        ("audit people.csv old.toml --epsilon 2", "--epsilon and --plan exclude each other"),
    ],
)
def test_bad_questions_get_one_line(run, folder: Path, monkeypatch, line: str, words: str) -> None:
    sl.Plan.uniform(sl.sources.admissions().schema).write(folder / "other.toml")
    monkeypatch.chdir(folder)
    shown = run(*line.split())
    assert shown.code == 2, shown.out
    assert words in shown.err
    assert shown.err.count("\n") == 1


def test_commands_keep_the_comments_of_a_plan(run, folder: Path) -> None:
    old, data = folder / "old.toml", folder / "people.csv"
    old.write_text("# agreed in May\n" + old.read_text().replace("[limits]", "[limits]  # by the board"))
    assert run("audit", data, "--plan", old, "--limit", 3, "--save-plan", old).code == 0
    assert "limit = 3.0" in old.read_text()
    assert "# agreed in May\n" in old.read_text()
    derived = folder / "derived.toml"
    assert run("calibrate", data, "--plan", old, "--limit", 2, "--uniform", "-o", derived).code == 0
    assert derived.read_text().startswith("# agreed in May\n")
    assert "# by the board" in derived.read_text()


def test_plans_alone_are_for_the_table_of_the_project(run, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    sl.Plan.read("new.json").write("new.toml")
    assert run("init", "people.csv").code == 0
    both = run("audit", "old.toml", "new.toml", "--json")
    assert [side["name"] for side in json.loads(both.out)["plans"]] == ["old.toml", "new.toml"]
    one = run("audit", "new.toml", "--json")
    assert [item["epsilon"] for item in json.loads(one.out)["plan"]] == [0.5, 0.5, 0.5]
    sl.Plan.read("old.toml").write("new.toml")
    again = run("audit", "new.toml", "--json")
    assert len(json.loads(again.out)["plan"]) == 4, "a plan that changed is audited anew"
    assert "What leaks" in run("plan", "diff", "old.toml", "new.json").out
    assert run("plan", "check", "old.toml").code == 1
