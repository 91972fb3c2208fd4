"""The commands `collect`, `estimate` and `advise`, and their pages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import sidelight as sl
from conftest import Shown
from sidelight.protocols import smp, write_protocol
from sidelight.report.page import page_of, render

COLLECT = ("collect", "people.parquet", "-o", "r.parquet", "--force")
COLUMNS = ["attribute", "value", "frequency", "standard_error", "lower", "upper"]
HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    sex = rng.integers(0, 2, 1500)
    columns = {
        "sex": np.array(["f", "m"])[sex],
        "smokes": np.array(["no", "yes"])[(rng.random(1500) < 0.2 + 0.1 * sex).astype(int)],
        "job": np.array(["a", "b", "c", "d"])[rng.integers(0, 2 + 2 * sex)],
    }
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


def refused(result: Shown) -> str:
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1
    return result.err


def test_collect_and_estimate_with_the_truth(run, people: Path) -> None:
    shown = run("collect", people, "-o", "r.parquet", "--seed", 1)
    assert shown.code == 0
    assert "1500 reports" in shown.out
    assert "protects nobody" in shown.out
    shown = run("estimate", "r.parquet", "--truth", people, "--report", "r.html")
    assert shown.code == 0
    assert "Measured against the truth" in shown.out
    page = Path("r.html").read_text()
    assert "Unprotected" in page
    assert "Error measured" in page
    found = json.loads(run("estimate", "r.parquet", "--truth", people, "--json").out)
    assert found["people"] == 1500
    assert found["covered"] > 0.6
    assert {"attribute", "value", "frequency", "standard_error", "lower", "upper", "truth"} == set(
        found["estimates"][0]
    )
    assert sum(row["frequency"] for row in found["estimates"] if row["attribute"] == "job") == pytest.approx(
        1
    )


def test_without_a_seed_no_simulation_is_claimed(run, people: Path) -> None:
    shown = json.loads(
        run("collect", people, "-o", "r.parquet", "--protocol", "smp", "--epsilon", 2, "--json").out
    )
    assert shown["is_simulation"] is False
    assert shown["epsilon"] == pytest.approx(2, abs=1e-9)
    assert "simulation" not in run("estimate", "r.parquet").out


def test_a_plan_and_a_protocol_file_are_collected_as_they_say(run, people: Path) -> None:
    plan = sl.Plan.uniform(sl.read(str(people)).schema, "oue", 0.5)
    plan.write("plan.toml")
    assert json.loads(run("collect", people, "-o", "r.parquet", "--plan", "plan.toml", "--json").out)[
        "epsilon"
    ] == pytest.approx(1.5)
    run("advise", people, "--epsilon", 2, "--save-protocol", "best.toml")
    shown = json.loads(run("collect", people, "-o", "s.parquet", "--protocol", "best.toml", "--json").out)
    assert shown["epsilon"] == pytest.approx(2, abs=1e-9)
    groups = run(
        "collect",
        people,
        "-o",
        "t.parquet",
        "--protocol",
        "product",
        "--group",
        "sex,smokes",
        "--group",
        "job",
        "--mechanism",
        "best",
        "--save-protocol",
        "g.json",
    )
    assert "smp on groups" in groups.out
    assert json.loads(Path("g.json").read_text())["unit"][0]["attributes"] == ["sex", "smokes"]


def test_two_phases_from_files(run, people: Path) -> None:
    """A budget that no decimal meets and a share of its own survive the way through the files."""
    first = ["collect", people, "-o", "first.parquet", "--protocol", "corr-rr", "--share", 0.3, "--seed", 2]
    assert run(*first, "--epsilon", 10 / 3).code == 0
    shown = run("estimate", "first.parquet", "--learn", "parameters.toml", "--copying", "corrected")
    assert "parameters of the second phase are in parameters.toml" in shown.out
    second = ["collect", people, "-o", "second.parquet", "--parameters", "parameters.toml", "--seed", 3]
    assert run(*second).code == 0
    assert "add those of the first" in refused(run("estimate", "second.parquet"))
    found = json.loads(run("estimate", "first.parquet", "second.parquet", "--json").out)
    assert found["people"] == 1500
    assert found["protocol"] == "corr-rr"


def test_a_first_phase_says_its_method_and_groups_are_learnt(run, people: Path) -> None:
    run("collect", people, "-o", "first.parquet", "--protocol", "cond-rr", "--epsilon", 3, "--seed", 2)
    assert run("estimate", "first.parquet", "--learn", "p.json", "--groups", 2).code == 0
    data = json.loads(Path("p.json").read_text())
    assert data["design"]["method"] == "cond-rr"
    assert len(data["second"]["groups"]) == 2


def test_nothing_is_learnt_where_nothing_can_be_estimated(run, people: Path) -> None:
    run("collect", people, "-o", "first.parquet", "--protocol", "corr-rr", "--seed", 2)
    assert "`confidence` must be" in refused(
        run("estimate", "first.parquet", "--learn", "p.json", "--confidence", 2)
    )
    assert not Path("p.json").exists()


def test_fakes_follow_a_public_table(run, people: Path) -> None:
    shown = json.loads(
        run("collect", people, "-o", "r.parquet", "--protocol", "rs+rfd", "--prior", people, "--json").out
    )
    assert shown["protocol"] == "rs+rfd"
    assert sl.read_reports("r.parquet").protocol.origin == "public data: people.parquet"


def test_advice_from_numbers_data_and_a_first_phase(run, people: Path) -> None:
    shown = run("advise", "--attributes", 4, "--values", 10, "--people", 10000)
    assert shown.code == 0
    assert "corr-rr as published" in shown.out
    assert "cond-rr" in shown.out
    assert "equally likely" in shown.out
    assert "public data" in run("advise", people, "--public").out
    run("collect", people, "-o", "r.parquet", "--protocol", "smp", "--seed", 1)
    assert "1500 reports" in run("advise", "--first", "r.parquet", "--people", 9000).out
    shown = json.loads(run("advise", people, "--json", "--report", "a.html").out)
    assert shown["people"] == 1500
    page = Path("a.html").read_text()
    assert "Mean squared error" in page
    assert shown["usefulness"]["headline"] in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["collect", "people.parquet", "-o", "r.csv"], "r.csv must end in .parquet"),
        (
            ["collect", "people.parquet", "-o", "r.parquet", "--plan", "p.toml", "--protocol", "spl"],
            "exclude each other",
        ),
        (
            ["collect", "people.parquet", "-o", "r.parquet", "--protocol", "magic"],
            "`protocol` must be one of",
        ),
        (["collect", "people.parquet", "-o", "r.parquet", "--protocol", "rs+rfd"], "rs+rfd needs --prior"),
        (["collect", "people.parquet", "-o", "r.parquet", "--epsilon", "-1"], "`epsilon` must be"),
        (["collect", "none.parquet", "-o", "r.parquet"], "there is no file"),
        (["estimate", "none.parquet"], "there is no file none.parquet"),
        (["estimate", "people.parquet"], "its metadata name no protocol"),
        (["advise"], "name a table, or give --attributes and --values"),
        (["advise", "--attributes", "2", "--values", "2"], "say how many people"),
        (["advise", "--attributes", "0", "--values", "2", "--people", "9"], "`attributes` must be"),
        (["advise", "--attributes", "2", "--values", "1", "--people", "9"], "`values` must be"),
        (["advise", "people.parquet", "--attributes", "2"], "exclude each other"),
        (["advise", "people.parquet", "--first", "r.parquet"], "exclude each other"),
        ([*COLLECT, "--protocol", "spl", "--group", "sex,job"], "--group belongs to --protocol product"),
        ([*COLLECT, "--protocol", "rs+fd", "--mechanism", "oue"], "--mechanism belongs to"),
        ([*COLLECT, "--mechanism", "oue"], "--mechanism belongs to --protocol spl or smp or product"),
        ([*COLLECT, "--protocol", "smp", "--share", "0.5"], "--share belongs to"),
        ([*COLLECT, "--protocol", "smp", "--prior", "people.parquet"], "--prior belongs to"),
        ([*COLLECT, "--protocol", "product", "--group", "sex,sex"], "names an attribute twice"),
        ([*COLLECT, "--epsilon", "1000"], "below 700"),
        (["advise", "people.parquet", "--epsilon", "710"], "below 700"),
        (
            ["advise", "--attributes", "3", "--values", "4", "--people", "9", "--public"],
            "--public is said of",
        ),
        (["advise", "--first", "r.parquet", "--people", "9", "--public"], "--public is said of a table"),
        (["advise", "--first", "r.parquet", "--people", "9", "--drop", "sex"], "--drop sex is a column of"),
        (["estimate", "r.parquet", "--copying", "corrected"], "--copying goes with --learn"),
        (["estimate", "r.parquet", "--groups", "2"], "--groups goes with --learn"),
        (["example", "survey", "-o", "x.csv", "--seed", "-5"], "`seed` must be a whole number of at least 0"),
    ],
)
def test_bad_requests_get_one_line(run, people: Path, arguments: list[str], words: str) -> None:
    assert people.exists()
    assert words in refused(run(*arguments))


def test_a_file_of_another_kind_is_named(run, people: Path) -> None:
    sl.Plan.uniform(sl.read(str(people)).schema).write("plan.toml")
    run("collect", people, "-o", "first.parquet", "--protocol", "corr-rr", "--save-protocol", "spl.json")
    run("estimate", "first.parquet", "--learn", "learnt.toml")
    kinds = {"plan.toml": "--plan", "spl.json": "--protocol", "learnt.toml": "--parameters"}
    for name, right in kinds.items():
        for option in ("--protocol", "--parameters"):
            shown = run(*COLLECT, option, name)
            assert shown.code == (0 if option == right else 2), (option, name, shown.err)
            assert option == right or f"use {right}." in refused(shown)
    other = sl.Schema((sl.categorical("height", "uv"),))
    write_protocol(smp(other, 1.0), "other.toml")
    assert "the protocol releases 'height'" in refused(run(*COLLECT, "--protocol", "other.toml"))


@pytest.mark.usefixtures("people")
def test_attributes_that_no_group_names_are_alone(run) -> None:
    assert run(*COLLECT, "--protocol", "product", "--group", "sex,smokes").code == 0
    assert sl.read_reports("r.parquet").protocol.labels == ("sex x smokes", "job")


@pytest.mark.usefixtures("people")
def test_the_published_estimator_is_that_of_corr_rr(run) -> None:
    for protocol in ("spl", "corr-rr", "rs+fd"):  # of Corr-RR the first phase alone
        run(*COLLECT, "--protocol", protocol, "--epsilon", 3)
        assert "'published' is Corr-RR's" in refused(run("estimate", "r.parquet", "--estimator", "published"))


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """People with a number each, an identifier and a constant."""
    rng = np.random.default_rng(6)
    path = tmp_path / "measured.csv"
    rows = [f"p{i},{value:.12f},{'ab'[i % 2]},same" for i, value in enumerate(rng.normal(70, 9, 400))]
    path.write_text("\n".join(["who,weight,kind,fixed", *rows]))
    return path


def test_what_is_taken_from_raw_data_is_said(run, measured: Path) -> None:
    """The edges in a report file are exact values of people; a protocol file says nothing new."""
    reports = ("-o", "r.parquet", "--force", "--save-protocol", "p.toml")
    shown = run("collect", measured, *reports)
    edges = sl.read_reports("r.parquet").protocol.schema["weight"].edges
    assert all(f"{edge:.12f}" in measured.read_text() for edge in edges)
    said = json.loads(run("collect", measured, *reports, "--json").out)["notes"]
    for words in (
        "as if they were public",
        "the edges of the bins of weight are exact values of some people",
    ):
        assert words in shown.out
        assert any(words in note for note in said)
    for column in ("who", "fixed"):
        assert f"Column {column!r} " in shown.out
        assert any(note.startswith(f"Column {column!r} ") and "set aside" in note for note in said)
    assert (
        json.loads(run("collect", measured, "-o", "s.parquet", "--protocol", "p.toml", "--json").out)["notes"]
        == []
    )
    advice = json.loads(run("advise", measured, "--json").out)["notes"]
    assert [note.split()[1] for note in advice] == ["'who'", "'fixed'"]
    assert "exact values of some people" in run("advise", measured, "--save-protocol", "p.toml").out


@pytest.mark.usefixtures("people")
def test_raw_values_are_warned_of(run) -> None:
    shown = run(*COLLECT, "--protocol", "spl", "--mechanism", "identity")
    assert "Warning: the raw values of sex, smokes, job are written as they are" in shown.out
    assert "budget is infinite." in shown.out
    assert "Warning" not in run(*COLLECT, "--protocol", "spl").out


def test_files_that_do_not_fit_get_one_line(run, people: Path) -> None:
    run("collect", people, "-o", "r.parquet", "--seed", 1)
    run("collect", people, "-o", "s.parquet", "--seed", 1, "--epsilon", 2)
    assert "reports of two protocols are mixed" in refused(run("estimate", "r.parquet", "s.parquet"))
    Path("t.parquet").write_bytes(Path("r.parquet").read_bytes()[:-60])
    assert "or it is truncated" in refused(run("estimate", "t.parquet"))
    assert "needs reports of a first phase" in refused(run("estimate", "r.parquet", "--learn", "p.toml"))
    sl.Plan.uniform(sl.sources.admissions().schema).write("other.toml")
    assert "is not a column of" in refused(run("collect", people, "-o", "u.parquet", "--plan", "other.toml"))


def test_pages_escape_what_data_bring_and_draw_strict_json() -> None:
    schema = sl.Schema(
        (sl.categorical(HOSTILE, ["<b>", "&amp;", "{{ 7 * 7 }}"]), sl.categorical("@ink", ["u", "v"]))
    )
    records = np.zeros((400, 2), dtype=np.uint8)
    found = sl.estimate(smp(schema, 1.0).randomise(records, seed=1))
    truth = {HOSTILE: np.array([1.0, 0, 0]), "@ink": np.array([1.0, 0])}
    for result in (found, found.against(truth), sl.advise(schema, 1.0, 400)):
        page = render(page_of(result))
        assert HOSTILE not in page
        assert "49" not in page.split("<main")[1].split("</main")[0].split("7 * 7")[0][-5:]
        drawn = page.split('id="drawings">')[1].split("</script>")[0]
        assert json.loads(drawn, parse_constant=lambda constant: pytest.fail(constant))


def test_the_truth_must_fit_the_estimates() -> None:
    schema = sl.Schema((sl.categorical("a", "uv"),))
    found = sl.estimate(smp(schema, 1.0).randomise(np.zeros((50, 1), dtype=np.uint8), seed=1))
    with pytest.raises(sl.InputError, match="the truth of 'a' must be 2 frequencies"):
        found.against({"a": np.ones(3) / 3})
    compared = found.against({"a": np.array([1.0, 0.0])})
    assert compared.error == pytest.approx(np.mean((found["a"] - [1, 0]) ** 2))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_estimates_are_written_as_a_table(run, people: Path, suffix: str) -> None:
    run("collect", people, "-o", "r.parquet", "--seed", 1)
    shown = run("estimate", "r.parquet", "-o", f"e.{suffix}")
    assert (shown.code, f"The estimates are in e.{suffix}." in shown.out) == (0, True)
    known = json.loads(run("estimate", "r.parquet", "--json").out)["estimates"]
    assert _rows(Path(f"e.{suffix}")) == known
    assert list(known[0]) == COLUMNS
    run("estimate", "r.parquet", "--truth", people, "--output", f"t.{suffix}", "--json")
    assert list(_rows(Path(f"t.{suffix}"))[0]) == [*COLUMNS, "truth"]


def _rows(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".json":
        return list(json.loads(path.read_text())["estimates"])
    table = pq.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    return list(table.to_pylist())


def test_estimates_never_replace_the_reports_they_come_from(run, people: Path) -> None:
    run("collect", people, "-o", "r.parquet", "--seed", 1)
    before = Path("r.parquet").read_bytes()
    assert "is read as r.parquet, or lies in it" in refused(run("estimate", "r.parquet", "-o", "./r.parquet"))
    assert Path("r.parquet").read_bytes() == before
    assert "e.txt must end in .csv or .parquet or .json" in refused(
        run("estimate", "r.parquet", "-o", "e.txt")
    )


def test_estimates_of_a_followed_folder_are_written_as_a_table(run, people: Path) -> None:
    run("collect", people, "-o", "batches", "--batches", 500, "--seed", 1)
    shown = run("estimate", "--follow", "batches", "--once", "-o", "e.csv")
    assert (shown.code, "The estimates are in e.csv." in shown.err) == (0, True)
    assert len(_rows(Path("e.csv"))) == 8


def test_a_plan_is_collected_whatever_the_other_columns_hold(run, tmp_path: Path) -> None:
    rows = ["word,amount", *(f"{'ab'[i % 2]},{'see note' if i == 90 else i % 60}" for i in range(100))]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    sl.Plan.uniform(sl.Schema((sl.categorical("word", ["a", "b"]),))).write(tmp_path / "plan.toml")
    command = ["collect", tmp_path / "a.csv", "--plan", tmp_path / "plan.toml", "-o", tmp_path / "b.parquet"]
    assert run(*command).code == 0
