"""The two benchmarks of paper CPL with analysers and mechanisms of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sidelight as sl
from sidelight.cli import app
from sidelight.foundation.files import strict_json
from sidelight.foundation.modules import load_object
from sidelight.studies.benchmarks import MAKERS, exact_analysis, frequency_error, statistical_analysis

FOUR = [[0.2, 0.2, 0.05, 0.05], [0.05, 0.05, 0.2, 0.2]]
PLUGIN = """
import numpy as np
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.plain import Identity

def nothing(belief, epsilon):
    return np.zeros((len(belief.schema), len(belief.schema)))

def shapeless(belief, epsilon):
    return np.zeros(3)

def response(size, epsilon):
    return RandomisedResponse(size, epsilon)

def open_door(size, epsilon):
    return Identity(size)
"""


@pytest.fixture
def people(tmp_path: Path) -> str:
    rows = ["class,sex,survived"]
    rows += ["first,f,yes"] * 30 + ["first,m,no"] * 12 + ["third,m,no"] * 40 + ["third,f,no"] * 10
    rows += ["second,f,yes"] * 15 + ["second,m,yes"] * 5
    path = tmp_path / "people.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_regions_of_one_pair() -> None:
    belief = sl.Belief.from_joint(FOUR, ["secret", "other"])
    exact = exact_analysis(MAKERS["OUE"])(belief, 1.0)
    mine = {
        "exact": lambda _, __: exact,
        "low": lambda _, __: exact * 0.9,
        "high": lambda _, __: exact * 1.1,
        "mixed": lambda _, __: exact * np.array([[1, 0.5], [2, 1]]),
        "ITS": sl.leakage.ANALYSERS["ITS"],
    }
    found = sl.studies.benchmark_analysers(belief, mine, [1.0])
    assert [point.region for point in found.points] == ["P1", "R1", "R2", "R3", "R1"]
    assert found.points[1].undershoot == pytest.approx(0.1 * exact.sum() / 2)
    assert found.points[2].overshoot == pytest.approx(0.1 * exact.sum() / 2)
    its = found.points[4]
    assert its.undershoot >= (0.56945 - 0.36457) / 2 - 1e-5


def test_what_cannot_be_placed_is_said() -> None:
    belief = sl.Belief.from_joint(FOUR, ["secret", "other"])
    found = sl.studies.benchmark_analysers(
        belief, {"CBP": sl.leakage.ANALYSERS["CBP"], "flat": lambda _, __: np.zeros(2)}, [1.0]
    )
    assert found.points == ()
    assert "binary" in found.refused["CBP"]
    assert "must be a matrix of shape (2, 2)" in found.refused["flat"]
    with pytest.raises(sl.InputError, match="`budgets` must be"):
        sl.studies.benchmark_analysers(belief, {}, [0.0])
    with pytest.raises(sl.InputError, match="how many `people`"):
        sl.studies.benchmark_mechanisms(belief)


def test_whole_reports_reach_the_worst_and_guesses_do_not() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    found = {
        point.mechanism: point for point in sl.studies.benchmark_mechanisms(belief, budgets=[1.0]).points
    }
    assert set(found) == set(MAKERS)
    for name in ("OUE", "RAPPOR", "SHE"):
        assert found[name].report == pytest.approx(1.0, abs=1e-6)
        assert found[name].guess < 0.6
    assert found["GRR"].guess == pytest.approx(found["GRR"].report)
    assert found["EXP"].report < found["GRR"].report < 1 + 1e-9
    assert found["EXP"].wrong > found["GRR"].wrong


def test_the_frequency_error_is_that_of_a_collection() -> None:
    """800 seeded collections of 500 people: the mean within 12 %, three standard errors of it (0.3 %)."""
    shares = np.array([0.5, 0.3, 0.2])
    belief = sl.Belief.from_joint(np.outer([0.5, 0.5], shares), ["a", "b"])
    values = np.repeat([0, 1, 2], (shares * 500).astype(int))
    mechanism = sl.create("grr", 3, 1.0)
    errors = [
        (
            (mechanism.estimate(mechanism.aggregate(mechanism.randomise(values, seed=seed))) - shares) ** 2
        ).sum()
        for seed in range(800)
    ]
    made = {"a": sl.create("identity", 2), "b": mechanism}
    expected = frequency_error(belief, made, 500)
    assert expected == pytest.approx(np.mean(errors) / ((shares**2).sum() + 0.5), rel=0.12)


def test_estimates_are_near_the_exact_guess(data: Path) -> None:
    belief = sl.Belief.from_data(
        sl.read(data / "celeba_attr.parquet", columns=["Male", "No_Beard", "Smiling", "Bald"])
    )
    estimate = statistical_analysis(MAKERS["OUE"])(belief, 1.0)
    exact = exact_analysis(MAKERS["OUE"], guess=True)(belief, 1.0)
    np.testing.assert_allclose(estimate, exact, atol=0.02)
    assert (exact <= exact_analysis(MAKERS["OUE"])(belief, 1.0) + 1e-12).all()


def test_commands_take_objects_of_the_users_own(people: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "of_mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    analysers = ["bench", "analysers", people, "--epsilon", "1", "--analyser", "of_mine:nothing"]
    shown = runner.invoke(app, [*analysers, "--figure", "plane.svg"])
    assert shown.exit_code == 0
    assert "of_mine:nothing" in shown.output
    assert (tmp_path / "plane.svg").read_text().count("<svg") == 1
    told = json.loads(runner.invoke(app, [*analysers, "--reference", "oue", "--json"]).output)
    assert {point["region"] for point in told["points"] if point["analyser"] == "of_mine:nothing"} == {"R1"}
    mechanisms = ["bench", "mechanisms", people, "--epsilon", "1", "--mechanism", "of_mine:response"]
    mechanisms += ["--mechanism", "of_mine:RandomisedResponse", "--mechanism", "the"]
    assert "whole report" in runner.invoke(app, mechanisms).output
    told = json.loads(runner.invoke(app, [*mechanisms, "--json"]).output)
    points = {point["mechanism"]: point for point in told["points"]}
    for name in ("of_mine:response", "of_mine:RandomisedResponse"):
        assert points[name]["report"] == pytest.approx(points["GRR"]["report"])
    assert points["the"]["report"] < 1


def test_leakage_without_bound_is_printed_as_json_knows_it(people: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "door_of_mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    mechanisms = ["bench", "mechanisms", people, "--epsilon", "1", "--mechanism", "door_of_mine:open_door"]
    told = strict_json(CliRunner().invoke(app, [*mechanisms, "--json"]).output)
    points = {point["mechanism"]: point for point in told["points"]}
    assert points["door_of_mine:open_door"]["report"] == "infinity"
    assert points["GRR"]["report"] <= 1


def test_objects_that_are_not_there_are_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in [
        ("nonsense", "must be of the form module:object"),
        ("no_such_module:thing", "no module 'no_such_module'"),
        (".relative:thing", "must be of the form module:object"),
        ("math:pi", "must be a function or a class"),
        ("math:square_root", "has no 'square_root'"),
    ]:
        with pytest.raises(sl.InputError, match=words):
            load_object(name, "analyser")


def test_what_is_no_mechanism_no_matrix_or_has_nothing_to_leak_is_refused() -> None:
    related = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["a", "b"])
    with pytest.raises(sl.InputError, match="what three makes` must be a mechanism"):
        sl.studies.benchmark_mechanisms(related, {"three": lambda _size, _epsilon: 3}, [1.0], people=10)  # type: ignore[arg-type,dict-item]
    refused = sl.studies.benchmark_analysers(
        related, {"words": lambda _belief, _epsilon: "no"}, [1.0]
    ).refused  # type: ignore[dict-item]
    assert "must be a matrix of shape (2, 2), got 'no'" in refused["words"]
    for cells, names in (([[0.25, 0.25], [0.25, 0.25]], ["a", "b"]), ([0.5, 0.5], ["a"])):
        with pytest.raises(sl.InputError, match="no attribute says anything about another"):
            sl.studies.benchmark_mechanisms(sl.Belief.from_joint(cells, names), budgets=[1.0], people=10)


@pytest.mark.parametrize("budget", [30, 45, 100, 600, 710, 1000])
def test_budgets_beyond_doubles_are_refused(budget: float, people: str) -> None:
    belief = sl.Belief.from_data(sl.read(people))
    for place in (sl.studies.benchmark_analysers, sl.studies.benchmark_mechanisms):
        with pytest.raises(sl.InputError, match="`budgets` must be a finite number above 0 and below 30"):
            place(belief, budgets=[1.0, budget])
    shown = CliRunner().invoke(app, ["bench", "mechanisms", people, "--epsilon", str(budget), "--json"])
    assert shown.exit_code
    assert "NaN" not in shown.output


def test_shares_are_right_up_to_the_largest_budget() -> None:
    belief = sl.Belief.from_joint(FOUR, ["secret", "other"])
    points = sl.studies.benchmark_mechanisms(belief, budgets=[29.9], people=1000).points
    shares = {point.mechanism: (point.report, point.guess) for point in points}
    assert shares["GRR"] == pytest.approx((1, 1), abs=1e-4)
    assert shares["SS"] == pytest.approx((1, 1), abs=1e-4)
    assert all(0 < share <= 1 + 1e-9 for pair in shares.values() for share in pair if share is not None)


@pytest.mark.parametrize(
    ("words", "contract"),
    [
        (["analysers", "--analyser", "json:loads"], "must take a Belief and a budget and return a matrix"),
        (["analysers", "--reference", "json:loads"], "must take a Belief and a budget and return a matrix"),
        (["analysers", "--reference", "builtins:len"], "must take a Belief and a budget and return a matrix"),
        (["mechanisms", "--mechanism", "json:loads"], "must take a number of values and a budget and return"),
    ],
)
def test_a_function_that_does_not_fit_is_named(run, people: str, words: list[str], contract: str) -> None:
    command, *options = words
    shown = run("bench", command, people, *options)
    said = " ".join((shown.out + shown.err).split())
    assert f"'{options[1]}' failed with TypeError" in said
    assert contract in said
    assert shown.code == (0 if "--analyser" in words else 2)


def test_leakage_that_is_no_number_is_refused(monkeypatch) -> None:
    belief = sl.Belief.from_joint(FOUR, ["secret", "other"])
    monkeypatch.setattr("sidelight.studies.benchmarks.leakage_matrix", lambda *_: np.full((2, 2), np.nan))
    with pytest.raises(sl.InputError, match="the leakage of 'GRR' is no number"):
        sl.studies.benchmark_mechanisms(belief, {"GRR": MAKERS["GRR"]}, people=10)
