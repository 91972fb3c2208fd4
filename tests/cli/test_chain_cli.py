"""`audit --chain`: values that change, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.leakage.over_time import Chain, leakage_over_time, leakage_over_time_at, read_chain

STATED = """version = 1
transition = [[0.9, 0.1], [0.2, 0.8]]
[values]
smoker = ["no", "yes"]
"""
PANEL = """version = 1
attributes = ["smoker"]
panel = ["people.csv", "later.csv"]
"""


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, a later one of the same people, a plan of four reports, and a chain."""
    monkeypatch.chdir(tmp_path)
    rows = [("no", "a"), ("yes", "b"), ("no", "b"), ("yes", "a")] * 10
    later = [("yes" if number % 9 == 0 else smoker, x) for number, (smoker, x) in enumerate(rows)]
    for name, part in (("people.csv", rows), ("later.csv", later)):
        Path(name).write_text("smoker,x\n" + "\n".join(map(",".join, part)) + "\n")
    table = sl.read("people.csv")
    asked = sl.Release(table.schema["smoker"], "l-grr", 1.0, 4)
    sl.Plan((asked, sl.Release(table.schema["x"], "grr", 0.25)), limit=3.0).write("plan.toml")
    Path("chain.toml").write_text(STATED)
    return tmp_path


def told(run, *options: str) -> dict:
    shown = run("audit", "people.csv", "plan.toml", "--secret", "smoker", "--json", *options)
    assert shown.code in (0, 1), shown.err
    return json.loads(shown.out)


def test_the_figures_are_those_of_the_library_with_budgets_beyond(folder: Path, run):
    plan = sl.Plan.read(folder / "plan.toml")
    chain = Chain.stated([[0.9, 0.1], [0.2, 0.8]], schema=plan.schema.select(["smoker"]))
    inside = sl.Plan(plan.releases[:1])
    for epoch, options in ((None, ()), (2, ("--epoch", "2"))):
        (item,) = told(run, "--chain", "chain.toml", *options)["changing"]
        found = leakage_over_time(chain, inside, "smoker", epoch=epoch)
        assert [one["value"] for one in item["rounds"]] == pytest.approx([one.value for one in found.rounds])
        assert item["worst"]["value"] == pytest.approx(found.worst.value + plan["x"].spent)
        assert item["worst"]["kind"] == "certified"
        assert (item["epoch"], item["unlimited"]) == (epoch, None)
    (item,) = told(run, "--chain", "chain.toml", "--delta", "0.05", "--seed", "1")["changing"]
    figures = [leakage_over_time_at(chain, inside, "smoker", t, 0.05, seed=1).value for t in range(1, 5)]
    assert item["at_delta"]["value"] == pytest.approx(max(figures) + plan["x"].spent)


def test_limits_are_judged_where_values_change_too(folder: Path, run):
    command = ("audit", "people.csv", "plan.toml", "--secret", "smoker")
    assert run(*command).code == 0
    assert run(*command, "--chain", "chain.toml").code == 0
    assert run(*command, "--limit", "1.1").code == 0  # of values that stay the same
    shown = run(*command, "--limit", "1.1", "--chain", "chain.toml", "--report", "audit.html")
    assert shown.code == 1
    assert "Values that change" in shown.out
    assert "(limit 1.1)" in shown.out
    assert "the limit of smoker is not certified to be kept, whatever is said of" in shown.out
    page = (folder / "audit.html").read_text("utf-8")
    assert "<h2>Values that change</h2>" in page


@pytest.mark.usefixtures("folder")
def test_figures_with_budgets_beyond_the_chain_are_not_called_exact(run):
    (item,) = told(run, "--chain", "chain.toml", "--delta", "0.05", "--seed", "1")["changing"]
    assert [one["kind"] for one in item["rounds"]] == ["exact"] * 4
    for figure in (item["at_delta"], item["worst"]):
        assert figure["kind"] == "certified"
        assert "all budgets beyond the chain" in figure["method"]


@pytest.mark.usefixtures("folder")
def test_a_figure_at_delta_decides_only_where_it_is_asked_to(run):
    options = ("--chain", "chain.toml", "--delta", "0.05", "--seed", "1", "--limit", "1.1")
    outcomes = {}
    for decider in ("table", "report"):
        result = told(run, *options, "--decide-by", decider)
        assert result["changing"][0]["at_delta"]["value"] < 1.1 < result["changing"][0]["worst"]["value"]
        outcomes[decider] = result["changing"][0]["outcome"]
    assert outcomes == {"table": "within", "report": "not certified"}


@pytest.mark.usefixtures("folder")
def test_what_the_chain_does_not_say_is_named(run):
    plan = sl.Plan.read("plan.toml")
    many = (replace(plan.releases[0], times=25), plan.releases[1])
    replace(plan, releases=many).write("long.toml")
    shown = run("audit", "people.csv", "long.toml", "--chain", "chain.toml", "--delta", "0.05", "--seed", "1")
    assert "The chain says nothing about x: what is said of them holds for values that" in shown.out
    assert "Values that change have figures at delta for 24 rounds at most" in shown.out


def test_a_panel_is_counted_and_its_figures_are_of_a_model(folder: Path, run):
    Path("panel.toml").write_text(PANEL)
    chain = read_chain(folder / "panel.toml", sl.read("people.csv").schema)
    assert chain.transition[1].tolist() == [0.0, 1.0]
    assert chain.transition[0, 1] == pytest.approx(3 / 20)
    (item,) = told(run, "--chain", "panel.toml")["changing"]
    assert item["worst"]["kind"] == "model"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 1", "must have either a `transition` or a `panel`"),
        ("version = 9", "is a chain of version 9"),
        (STATED + "[colour]", "there is no key 'colour'"),
        (STATED.replace("0.1]", "0.2]"), "probabilities that sum to 1 in each row, got 1.1"),
        (STATED.replace("0.9, 0.1", "0.9"), "`transition` must have 2 numbers in each of its 2 rows"),
        (STATED.replace("smoker", "height"), "there is no attribute 'height'"),
        (STATED.replace('"no", "yes"', '"yes", "no"'), "must be ['no', 'yes'], in this order"),
        (
            STATED.replace("[values]", "start = [1.0]\n[values]"),
            "must be probabilities of shape (2,)",
        ),
        ("version = 1\ntransition = [[1.0]]", "goes with the `values` of its attributes"),
        (PANEL.replace("later.csv", "none.csv"), "there is no file"),
        (PANEL.replace(', "later.csv"', ""), "two tables or more"),
        (PANEL.replace("attributes", "names"), "there is no key 'names'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_chains_get_one_line(run, text: str, said: str):
    Path("chain.toml").write_text(text)
    shown = run("audit", "people.csv", "plan.toml", "--chain", "chain.toml")
    assert shown.code == 2
    assert said in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_options_that_say_nothing_are_refused(run):
    command = ("audit", "people.csv", "plan.toml")
    for options, said in (
        (("--epoch", "2"), "add --chain FILE"),
        (("--chain", "chain.toml", "--epoch", "0"), "`epoch` must be"),
        (("--chain", "none.toml"), "none.toml cannot be read"),
        (("--chain", "chain.toml", "--secret", "x"), "no secret is among the chain's attributes: smoker"),
        (("plan.toml", "--chain", "chain.toml"), "--chain"),
        (("--chain", "chain.toml", "--withhold", "smoker"), "releases no attribute of the chain: smoker"),
    ):
        shown = run(*command, *options)
        assert shown.code == 2, options
        assert said in shown.err
