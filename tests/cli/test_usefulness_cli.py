"""The commands say first whether estimates are worth anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.sources.table import write_table

WORSE = "These estimates would be worse than guessing"
PARTLY = "For 4 of 7 attributes these estimates would be worse than guessing"


@pytest.fixture(name="few")
def few_fixture(tmp_path: Path, monkeypatch) -> Path:
    """A table of so few people that noise drowns them."""
    monkeypatch.chdir(tmp_path)
    return write_table(sl.sources.survey(150, seed=1), tmp_path / "few.csv")


def test_a_calibration_beyond_use_says_so_first(run, few: Path) -> None:
    shown = run("calibrate", few, "--limit", 0.3, "--uniform", "--report", "page.html", "-o", "plan.toml")
    assert shown.code == 0
    assert shown.out.startswith(PARTLY)
    assert "if about" in shown.out
    page = Path("page.html").read_text()
    assert f"<h1>{PARTLY}." in page
    assert "Will it be of any use?" in page
    data = json.loads(run("calibrate", few, "--limit", 0.3, "--uniform", "--json").out)
    assert data["usefulness"]["verdict"] == "hardly better than guessing"


def test_more_people_and_a_precision_change_what_is_said(run, few: Path) -> None:
    options = ("--limit", 2, "--uniform", "--people", 5_000_000, "--within", 0.02)
    shown = run("calibrate", few, *options)
    assert shown.out.startswith("Frequencies right to")
    assert "with 5,000,000 people" in " ".join(shown.out.split())
    assert "To be right to 2 percentage points for every attribute" in shown.out


def test_a_public_table_is_a_guess_to_beat(run, few: Path) -> None:
    public = write_table(sl.sources.survey(2_000, seed=2), Path("public.csv"))
    with_prior = json.loads(run("advise", few, "--public", "--prior", public, "--json").out)["usefulness"]
    without = json.loads(run("advise", few, "--public", "--json").out)["usefulness"]
    assert with_prior["guess_error"] < without["guess_error"]
    assert all(item["prior_error"] is not None for item in with_prior["attributes"])


def test_advice_and_estimates_say_it_first(run, few: Path) -> None:
    shown = run("advise", few, "--epsilon", 0.1, "--report", "advice.html")
    assert shown.out.startswith(WORSE)
    assert f"<h1>{WORSE}" in Path("advice.html").read_text()
    run("collect", few, "--epsilon", 0.1, "--protocol", "spl", "--seed", 1, "-o", "r.parquet")
    shown = run("estimate", "r.parquet", "--report", "page.html", "--within", 0.05)
    assert shown.out.startswith("These estimates cannot be told from guessing")
    assert "To be right to 5 percentage points" in shown.out
    page = Path("page.html").read_text()
    assert "<h1>These estimates cannot be told from guessing" in page
    assert "Better than guessing?" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--within", "2"], "`within` must be a finite number above 0 and below 1, got 2.0."),
        (["--people", "0"], "`people` must be a whole number"),
        (["--prior", "other.csv"], "other.csv has none of the attributes"),
        (["--prior", "missing.csv"], "missing.csv"),
    ],
)
def test_bad_wishes_are_refused_in_one_line(run, few: Path, options: list[str], words: str) -> None:
    Path("other.csv").write_text("colour,shape\nred,round\nblue,square\nred,round\n")
    shown = run("calibrate", few, *options)
    assert shown.code == 2
    assert words in shown.err
    assert len(shown.err.strip().splitlines()) == 1
