"""Tables on the command line: collecting pairs in one phase and two, estimating, drawing people, advice."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest


@pytest.fixture(name="folder")
def folder_fixture(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    a = rng.integers(3, size=1_500)
    b = np.where(rng.random(1_500) < 0.8, a, rng.integers(3, size=1_500))
    columns = {
        "a": [f"v{x}" for x in a],
        "b": [f"v{x}" for x in b],
        "c": [f"w{x}" for x in rng.integers(2, size=1_500)],
    }
    pc.write_csv(pa.table(columns), tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_phases_of_pairs_from_a_table_to_people(folder, run) -> None:
    assert (
        run(
            "collect",
            "t.csv",
            "--protocol",
            "adaptive-pairs",
            "--epsilon",
            3,
            "--seed",
            1,
            "-o",
            "one.parquet",
        ).code
        == 0
    )
    assert run("estimate", "one.parquet", "--pairs", "--learn", "second.toml").code == 0
    assert run("collect", "t.csv", "--parameters", "second.toml", "--seed", 1, "-o", "two.parquet").code == 0
    files = ("one.parquet", "two.parquet")
    shown = run(
        "estimate", *files, "--pairs", "--synthetic", "people.csv", "--report", "r.html", "-o", "t.json"
    )
    assert shown.code == 0
    assert "most of all a and b" in shown.out
    assert "1500 synthetic people are in people.csv" in shown.out
    assert len((folder / "people.csv").read_text().splitlines()) == 1_501
    assert "heatmap" in (folder / "r.html").read_text()
    data = json.loads(run("estimate", *files, "--pairs", "--json").out)
    assert data["dependence"][0]["attributes"] == ["a", "b"]
    assert data["people"] == 1_500


@pytest.mark.usefixtures("folder")
def test_one_phase_of_chosen_sets(run) -> None:
    shown = run("collect", "t.csv", "--protocol", "pairs", "--group", "a,b,c", "--seed", 1, "-o", "r.parquet")
    assert shown.code == 0
    assert run("estimate", "r.parquet", "--set", "a,b,c").code == 0
    assert run("estimate", "r.parquet").code == 0


def test_advice_on_tables(folder, run) -> None:
    shown = run("advise", "t.csv", "--pairs", "--epsilon", 2)
    assert shown.code == 0
    assert "Advised: pairs in two phases" in shown.out
    assert json.loads(run("advise", "t.csv", "--pairs", "--json").out)["people"] == 1_500
    saved = run(
        "advise",
        "--attributes",
        3,
        "--values",
        4,
        "--people",
        50,
        "--epsilon",
        0.1,
        "--pairs",
        "--save-protocol",
        "p.toml",
    )
    assert saved.code == 0
    assert (folder / "p.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("estimate", "r.parquet", "--pairs", "--estimator", "em"), "--estimator says nothing about tables"),
        (("estimate", "r.parquet", "--pairs", "--truth", "t.csv"), "--truth says nothing about tables"),
        (("estimate", "r.parquet", "--synthetic-people", 9), "goes with --synthetic"),
        (("estimate", "r.parquet", "--synthetic", "p.csv", "--synthetic-people", 0), "synthetic-people"),
        (("estimate", "r.parquet", "--synthetic", "p.txt"), "p.txt"),
        (("estimate", "r.parquet", "--synthetic", "p.csv", "--set", "a,b"), "leave --set out"),
        (("estimate", "r.parquet", "--set", "a,z"), "'z'"),
        (("estimate", "--pairs"), "name the report files"),
        (("estimate", "c.json", "--pairs"), "is a checkpoint"),
        (("advise", "t.csv", "--pairs", "--within", 0.1), "--within is said of frequencies"),
        (
            ("advise", "t.csv", "--pairs", "--epsilon", 2, "--save-protocol", "p.toml"),
            "two phases are advised",
        ),
        (
            ("collect", "t.csv", "--protocol", "pairs", "--share", 0.2, "-o", "x.parquet"),
            "--share belongs to",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_requests_end_with_one_line(run, arguments, words: str) -> None:
    run("collect", "t.csv", "--protocol", "pairs", "--seed", 1, "-o", "r.parquet")
    shown = run(*arguments)
    assert shown.code == 2
    assert words in shown.err
    assert "Traceback" not in shown.err
