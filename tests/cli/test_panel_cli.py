"""`collect --round`, `estimate` of several rounds and `advise --rounds`: files, refusals, pages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from conftest import Shown
from sidelight.report.over_time import lines_figure
from sidelight.report.page import page_of, render
from sidelight.sources import Attendance, drifting

HOSTILE = "</script><script>alert(1)</script>"
SCHEMA = sl.Schema(
    (sl.categorical("mood", ["good", "fair", HOSTILE]), sl.categorical("smokes", ["no", "yes"]))
)


@pytest.fixture
def panel(tmp_path: Path) -> sl.sources.SimulatedPanel:
    """Three rounds of 600 people as tables, and a plan."""
    joint = np.array([[0.4, 0.1], [0.2, 0.1], [0.1, 0.1]])
    made = sl.simulate_panel(
        600, 3, joint, SCHEMA, seed=1, changes={"mood": drifting([0.1, 0.2, 0.7], 0.6)},
        attendance=Attendance(0.2, 0.1, 0.1),
    )  # fmt: skip
    for number in (1, 2, 3):
        rows = pa.table(made.table(number)).append_column("id", pa.array(made.identifiers(number)))
        pq.write_table(rows, tmp_path / f"t{number}.parquet")
    releases = (
        sl.Release(SCHEMA["mood"], "l-grr", 4.0, times=3),
        sl.Release(SCHEMA["smokes"], "grr", 2.0, times=3),
    )
    sl.Plan(releases).write(tmp_path / "plan.toml")
    return made


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return run


def collect(run, number: int, *options: object, output: str = "") -> Shown:
    given = ("--plan", "plan.toml", "--round", number, "--memory", "panel.memory", "--seed", 3, *options)
    return run("collect", f"t{number}.parquet", *given, "-o", output or f"r{number}.parquet")


def refused(shown: Shown) -> str:
    assert shown.code == 2
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


def test_rounds_are_collected_and_estimated(run, panel) -> None:
    for number in (1, 2, 3):
        shown = collect(run, number, "--id", "id", "--epoch", 1)
        assert shown.code == 0
        assert f"This is round {number} of 3" in shown.out
    both = int((panel.present[1] & panel.present[2]).sum())
    assert f"{both} of its {panel.present[2].sum()} people had reported in round 2" in shown.out
    assert "keep it secret" in shown.out
    shown = run(
        "estimate", "r3.parquet", "r1.parquet", "r2.parquet", "--report", "over.html", "-o", "over.json"
    )
    assert shown.code == 0
    assert "changes are seen in 3 rounds" in shown.out
    data = json.loads(Path("over.json").read_text())
    for row in data["levels"]:
        truth = panel.reported(row["round"])[row["attribute"]]
        place = SCHEMA[row["attribute"]].code(row["value"])
        assert abs(row["frequency"] - truth[place]) < 5.5 * row["standard_error"]
    page = Path("over.html").read_text()
    assert "mood over the rounds" in page
    assert HOSTILE not in page
    printed = run("estimate", "r1.parquet", "r2.parquet", "--json")
    assert len(json.loads(printed.out)["rounds"]) == 2
    assert run("estimate", "r1.parquet").code == 0  # a single round is a collection like any other


def test_rounds_are_compared_with_the_truth_of_each(run, panel) -> None:
    for number in (1, 2, 3):
        assert collect(run, number, "--id", "id", "--epoch", 1).code == 0
    truth = [part for number in (1, 2, 3) for part in ("--truth", f"t{number}.parquet")]
    files = ("r2.parquet", "r3.parquet", "r1.parquet")
    data = json.loads(run("estimate", *files, *truth, "--json").out)
    for row in data["levels"]:
        place = SCHEMA[row["attribute"]].code(row["value"])
        assert row["truth"] == pytest.approx(panel.reported(row["round"])[row["attribute"]][place])
    gaps = [row["frequency"] - row["truth"] for row in data["levels"]]
    assert data["error"] == pytest.approx(np.mean(np.square(gaps)))
    changes = [row for row in data["changes"] if row["attribute"] == "smokes" and row["value"] == "yes"]
    moved = panel.reported(3)["smokes"][1] - panel.reported(1)["smokes"][1]
    assert changes[-1]["truth"] == pytest.approx(moved)
    inside = [row["lower"] <= row["truth"] <= row["upper"] for row in data["changes"]]
    assert data["changes_covered"] == pytest.approx(np.mean(inside))
    shown = run("estimate", *files, *truth, "--report", "over.html", "-o", "over.csv")
    assert "Beside the truth: mean squared error" in shown.out
    assert "truth" in Path("over.csv").read_text().splitlines()[0]
    assert "Beside the truth" in Path("over.html").read_text()


def test_rows_that_are_left_out_need_names(run, tmp_path: Path) -> None:
    """Row i would be another person in a round in which another record is incomplete."""
    mood = replace(SCHEMA["smokes"], missing="drop")
    sl.Plan((sl.Release(mood, "l-grr", 2.0, times=2),)).write(tmp_path / "plan.toml")
    rows = pa.table({"smokes": ["no", None, "yes", "no"], "id": ["a", "b", "c", "d"]})
    pq.write_table(rows, tmp_path / "t1.parquet")
    assert "name everybody with `people` (--id)" in refused(collect(run, 1))
    assert collect(run, 1, "--id", "id").code == 0


@pytest.mark.usefixtures("panel")
def test_json_says_the_round_and_nothing_of_who(run) -> None:
    shown = collect(run, 1, "--id", "id", "--json")
    said = json.loads(shown.out)
    assert said["round"]["number"] == 1
    assert said["round"]["stayed"] == []
    assert "p1" not in pq.read_table("r1.parquet").schema.metadata[b"sidelight.batch"].decode()


@pytest.mark.usefixtures("panel")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--plan", "plan.toml", "--round", 1), "needs its `memory`"),
        (("--plan", "plan.toml"), "asks for 3 reports of 'mood'"),
        (("--round", 1), "--round needs --plan"),
        (("--plan", "plan.toml", "--memory", "m"), "--memory goes with --round"),
        (("--plan", "plan.toml", "--id", "id"), "--id goes with --round"),
        (("--plan", "plan.toml", "--round", 1, "--batches", 2), "--round writes one file"),
        (("--plan", "plan.toml", "--round", 4, "--memory", "m"), "at most 3, got 4"),
        (("--plan", "plan.toml", "--round", 2, "--memory", "m"), "there is no file m"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "m", "--division", "days"), "`division` must be"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "m", "--division", "people"), "is kept, and the"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "m", "--id", "mood"), "is released by the plan"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "m", "--id", "name"), "name"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "m", "--epsilon", 1), "is in the file already"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "plan.toml"), "plan.toml"),
        (("--plan", "plan.toml", "--round", 1, "--memory", "no/m"), "its folder does not exist"),
    ],
)
def test_what_makes_no_round_is_refused(run, options: tuple, words: str) -> None:
    batches = "--batches" in options
    assert words in refused(run("collect", "t1.parquet", *options, "-o", "r" if batches else "r.parquet"))
    assert not Path("r.parquet").exists()
    assert not Path("m").exists()


@pytest.mark.usefixtures("panel")
def test_rounds_that_do_not_follow_are_refused(run) -> None:
    assert collect(run, 2, "--id", "id", output="x.parquet").code == 2  # no memory yet
    assert collect(run, 1, "--id", "id").code == 0
    assert collect(run, 2, "--id", "id").code == 0
    assert "round 2 was collected already" in refused(collect(run, 2, "--id", "id", output="x.parquet"))
    assert "round 1 was collected already" in refused(collect(run, 1, "--id", "id", output="x.parquet"))
    text = Path("plan.toml").read_text()
    Path("plan.toml").write_text(text.replace("epsilon = 4.0", "epsilon = 3.0"))
    assert "another budget of 'mood', 4.0, and it is 3.0" in refused(collect(run, 3, output="x.parquet"))
    Path("plan.toml").write_text(text)
    assert "began with epoch None" in refused(collect(run, 3, "--epoch", 2, output="x.parquet"))
    assert not Path("x.parquet").exists()
    for given, words in (
        (("r1.parquet", "r1.parquet"), "are the same batch"),
        (("r1.parquet", "r2.parquet", "--truth", "t1.parquet"), "given 1 times, and there are 2 rounds"),
        (("r1.parquet", "--truth", "t1.parquet", "--truth", "t1.parquet"), "this is one collection"),
        (("r1.parquet", "r2.parquet", "--estimator", "em"), "--estimator em is for a single collection"),
        (("panel.memory",), "holds no reports"),
    ):
        assert words in refused(run("estimate", *given))


def test_advice_for_several_rounds(run) -> None:
    numbers = ("advise", "--attributes", 2, "--values", 4, "--people", 2000, "--epsilon", 2)
    shown = run(*numbers, "--rounds", 6, "--report", "advice.html")
    assert shown.code == 0
    assert "people divided" in shown.out
    assert "Which way errs least" in Path("advice.html").read_text()
    said = json.loads(run(*numbers, "--rounds", 6, "--json").out)
    assert said["attributes"][0]["if_changing"] == "people divided"
    more = run(*numbers, "--rounds", 6, "--epoch", 3, "--delta", 1e-6)
    assert "response kept in epochs" in more.out
    assert "budget divided at delta" in more.out
    assert "--epoch goes with --rounds" in refused(run(*numbers, "--epoch", 3))
    assert "`rounds` must be" in refused(run(*numbers, "--rounds", 1))
    assert "--within is for a single collection" in refused(run(*numbers, "--rounds", 6, "--within", 0.1))


def test_figures_draw_the_most_frequent_values_with_their_bands() -> None:
    joint = np.arange(1, 13) / np.arange(1, 13).sum()
    truth = sl.simulate_panel(300, 2, joint, seed=1)
    plan = sl.Plan((sl.Release(truth.schema["x1"], "grr", 5.0, times=2),))
    found = sl.estimate_rounds([sl.collect(truth.table(t), plan, seed=t, round=t) for t in (1, 2)])
    figure = lines_figure(list(found.levels("x1")))
    assert len(figure.data) == 16  # a band and a line each
    bands = [trace for trace in figure.data if trace.get("fill") == "toself"]
    assert all(len(band["x"]) == 4 for band in bands)
    page = render(page_of(found))
    assert "The 8 most frequent of 12 values are drawn" in page
    assert "Nothing is known about people who did not report" in page
