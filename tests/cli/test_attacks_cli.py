"""The command `attack` and its report page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from selenium.webdriver import Chrome

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, show
from sidelight.attacks import Noise, Numbers, fit_published, protect
from sidelight.report.attack import attack_page, comparison_page, verdict_sentence
from sidelight.transport import write_reports

__all__ = ["browser_fixture"]


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    parts = rng.lognormal(3, 1, size=(400, 2))
    path = tmp_path / "sheet.parquet"
    columns = {"Part <A>": parts[:, 0], "Part B": parts[:, 1], "The Total": parts.sum(axis=1)}
    pq.write_table(pa.table({**columns, "who": [f"w{i // 4}" for i in range(400)]}), path)
    return path


def test_attack_on_a_table_prints_json_and_writes_a_report(run, sheet: Path, tmp_path: Path) -> None:
    page = tmp_path / "attack.html"
    code, out, _ = run(
        "attack",
        sheet,
        "--secret",
        "the_total",
        "--epsilon",
        8,
        "--model",
        "boosted",
        "--json",
        "--report",
        page,
    )
    assert code == 0
    found = json.loads(out)["results"]
    assert list(found) == ["boosted, as published", "boosted, noise-aware"]
    aware = found["boosted, noise-aware"]
    assert aware["records"] == 200
    assert aware["score"]["value"] < aware["baseline"]["value"]
    text = page.read_text()
    assert "plot-density" in text
    assert "plot-cumulative" in text
    assert "Part <A>" not in text


def test_attack_warns_when_nothing_is_learnt_about_the_person(run, sheet: Path) -> None:
    code, out, _ = run("attack", sheet, "--secret", "the_total", "--epsilon", 0.1, "--model", "imputation")
    assert code == 0
    assert "Warning: the attack on The Total does not beat its control" in out
    code, out, _ = run(
        "attack", sheet, "--secret", "the_total", "--noise", "swap", "--share", 0.5, "--entity", "who",
        "--model", "imputation",
    )  # fmt: skip
    assert code == 0
    assert "no budget is claimed" in out


def test_attack_on_a_file_of_reports(run, tmp_path: Path) -> None:
    table = sl.example("titanic")
    labels = {a.name: np.asarray(a.values)[table.codes()[:, i]] for i, a in enumerate(table.schema)}
    pq.write_table(pa.table(labels), tmp_path / "truth.parquet")
    plan = sl.Plan.uniform(table.schema, "grr", 3.0)
    path = write_reports(sl.collect(table, plan, seed=1), tmp_path / "reports.parquet")
    code, out, _ = run(
        "attack", path, "--secret", "survived", "--truth", tmp_path / "truth.parquet", "--json",
        "--report", tmp_path / "r.html", "--belief-from", "everyone",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)["results"]["Bayes"]
    assert found["beats_control"]
    assert found["limit"]["lower"] <= found["score"]["upper"]
    assert "plot-errors" in (tmp_path / "r.html").read_text()
    code, _, err = run("attack", path, "--secret", "survived")
    assert code == 2
    assert "give --truth" in err
    pq.write_table(pa.table(labels).drop_columns("sex"), tmp_path / "less.parquet")
    code, _, err = run("attack", path, "--secret", "survived", "--truth", tmp_path / "less.parquet")
    assert code == 2
    assert "there is no column 'sex'" in err


@pytest.mark.parametrize("protocol", ["product", "rs+fd", "corr-rr"])
def test_attack_on_what_collect_writes(run, tmp_path: Path, protocol: str) -> None:
    """Grouped and hidden reports, and the second of two phases, whose people are known by their row."""
    table = sl.example("titanic")
    labels = {a.name: np.asarray(a.values)[table.codes()[:, i]] for i, a in enumerate(table.schema)}
    people, reports = tmp_path / "people.parquet", tmp_path / "reports.parquet"
    pq.write_table(pa.table(labels), people)
    share = ["--share", 0.5] if protocol == "corr-rr" else []
    made = ["--protocol", protocol, "--epsilon", 5, "--seed", 1, "--no-shuffle", "-o", reports]
    code, _, err = run("collect", people, *made, *share)
    assert (code, err) == (0, "")
    if protocol == "corr-rr":
        rows = sl.protocols.TwoPhase(table.schema, 5.0, share=0.5).in_first(table.rows)
        pq.write_table(pa.table({name: column[rows] for name, column in labels.items()}), people)
    known = ["--truth", people, "--belief-from", "everyone"]
    code, out, _ = run("attack", reports, "--secret", "survived", *known, "--json")
    assert code == 0
    found = json.loads(out)["results"]["Bayes"]
    assert found["beats_control"]
    assert found["limit"]["lower"] <= found["score"]["upper"]


@pytest.fixture
def phases(run, tmp_path: Path, monkeypatch) -> Path:
    """Reports of both phases of everyone on the Titanic, and the truth of everyone."""
    monkeypatch.chdir(tmp_path)
    table = sl.example("titanic")
    labels = {a.name: np.asarray(a.values)[table.codes()[:, i]] for i, a in enumerate(table.schema)}
    pq.write_table(pa.table(labels), "people.parquet")
    first = ["--protocol", "corr-rr", "--epsilon", 5, "--share", 0.4, "--seed", 1, "--no-shuffle"]
    assert run("collect", "people.parquet", "-o", "first.parquet", *first)[0] == 0
    assert run("estimate", "first.parquet", "--learn", "p.toml")[0] == 0
    second = ["--parameters", "p.toml", "--seed", 1, "--no-shuffle"]
    assert run("collect", "people.parquet", "-o", "second.parquet", *second)[0] == 0
    return tmp_path


@pytest.mark.usefixtures("phases")
@pytest.mark.parametrize("phase", ["first", "second"])
def test_the_rows_of_a_phase_are_found_in_the_whole_table(run, phase: str) -> None:
    """As if the truth of these people alone had been given: what they hold, and in their order."""
    attacked = ["attack", f"{phase}.parquet", "--secret", "survived", "--json"]
    named = ["--parameters", "p.toml"] if phase == "second" else []
    known = ["--truth", "people.parquet", "--belief-from", "everyone"]
    found = json.loads(run(*attacked, *known, *named)[1])["results"]["Bayes"]
    table = sl.read("people.parquet")
    rows = sl.protocols.TwoPhase(table.schema, 5.0, share=0.4).in_first(table.rows) == (phase == "first")
    released = sl.read_reports(f"{phase}.parquet")
    alone = sl.attack(
        released, sl.BayesAttacker(sl.Belief.from_data(table)), secret="survived", truth=table.codes()[rows]
    )
    assert found["records"] == len(released) == rows.sum()
    assert found["score"]["value"] == alone.score.value
    assert found["beats_control"]


@pytest.mark.usefixtures("phases")
def test_a_second_phase_asks_for_its_parameters(run) -> None:
    asked = ["--secret", "survived", "--truth", "people.parquet"]
    assert "give --parameters, which say whose they are" in run("attack", "second.parquet", *asked)[2]
    assert "two protocols are mixed" in run("attack", "first.parquet", *asked, "--parameters", "p.toml")[2]


@pytest.mark.usefixtures("phases")
@pytest.mark.parametrize(
    "option",
    [("--epsilon", 1), ("--model", "mlp"), ("--noise", "laplace"), ("--share", 0.5), ("--seed", 0),
     ("--leniency", 2), ("--through", "sex"), ("--entity", "sex")],
)  # fmt: skip
def test_what_a_file_of_reports_says_itself_is_refused(run, option: tuple) -> None:
    code, _, err = run(
        "attack", "first.parquet", "--secret", "survived", "--truth", "people.parquet", *option
    )
    assert code == 2
    assert f"leave {option[0]} out" in err


@pytest.mark.usefixtures("phases")
def test_categories_are_sent_to_reports(run) -> None:
    code, _, err = run("attack", "people.parquet", "--secret", "survived", "--model", "imputation")
    assert code == 2
    assert "then `attack REPORTS --truth people.parquet`" in err


def test_noise_that_is_next_to_nothing_gets_no_figure(run, sheet: Path, tmp_path: Path) -> None:
    page = tmp_path / "attack.html"
    asked = ["--secret", "the_total", "--epsilon", 1e300, "--model", "imputation", "--report", page]
    assert "below -1000%" in run("attack", sheet, *asked)[1]
    assert "below -1000 %" in page.read_text()


def test_an_empty_table_is_one_line(run, tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())}), path)
    code, _, err = run("attack", path, "--secret", "a", "--model", "imputation")
    assert code == 2
    assert "0 records have all numbers" in err
    assert err.count("\n") == 1


def test_without_torch_the_command_names_the_extra(run, sheet: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run("attack", sheet, "--secret", "the_total")
    assert code == 2
    assert 'pip install "sidelight[neural]"' in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "oracle"), "`model` must be one of"),
        (("--noise", "pink"), "`noise` must be one of"),
        (("--epsilon", "-1"), "`epsilon` must be a finite number above 0"),
        (("--noise", "swap"), "name its column with --entity"),
        (("--seed", "-1"), "`seed` must be a whole number of at least 0"),
        (("--truth", "people.csv"), "holds no reports, so its records are the truth"),
        (("--entity", "whom"), "did you mean 'who'"),
        (("--through", "who"), "is not numeric"),
        (("--through", "the_total"), "no number to reconstruct 'The Total' from but itself"),
        (("--share", "0.2"), "laplace noise has a budget and no share; leave --share out"),
        (("--noise", "swap", "--entity", "who", "--epsilon", "2"), "leave --epsilon out"),
        (("--noise", "swap", "--entity", "who", "--leniency", "2"), "leave --leniency out"),
        (("--parameters", "p.toml"), "leave --parameters out"),
        (("--report", "attack.txt"), "must end in .html"),
    ],
)
def test_bad_options_are_one_line(run, sheet: Path, options, message: str) -> None:
    given = options if "--model" in options else (*options, "--model", "imputation")
    code, _, err = run("attack", sheet, "--secret", "the_total", *given)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_the_page_of_one_result_and_its_verdict() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plans = {"a": sl.Plan.uniform(table.schema, "grr", 3.0), "b": sl.Plan.uniform(table.schema, "grr", 0.05)}
    found = sl.attacks.attack_plans(belief, plans, "survived", table.codes(), seed=1)
    assert verdict_sentence(found) == "1 of 2 attacks beats the control"
    assert set(comparison_page(found).figures) == {"errors", "roc", "lift", "reliability"}
    bars = {trace["name"]: trace for trace in comparison_page(found).figures["errors"].data}
    assert bars["limit"]["y"] == [found["a"].limit.value, found["b"].limit.value]
    assert bars["release itself"]["y"] == [found["a"].baseline.value, found["b"].baseline.value]
    assert bars["attack"]["x"] == bars["without a release"]["x"] == ["a", "b"]
    assert attack_page(found["b"]).context["verdict"] == "Not shown either way"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """A comparison of plans by errors, and one of attackers by distances, with names that hurt."""
    folder = tmp_path_factory.mktemp("pages")
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plans = {
        "before <script>alert(1)</script>": sl.Plan.uniform(table.schema, "grr", 3.0),
        "after a calibration with a very long name": sl.Plan.uniform(table.schema, "grr", 0.05),
    }
    errors = sl.attacks.attack_plans(belief, plans, "survived", table.codes(), seed=1)
    rng = np.random.default_rng(3)
    parts = rng.lognormal(3, 1, size=(400, 2))
    own, target = Numbers.of({"a": parts[:, 0], "b": parts[:, 1], "all": parts.sum(axis=1)}).halves(1)
    released = protect(target, Noise(), 5.0, ["all"], seed=1)
    guessed = sl.attack(released, fit_published(own, ["all"], "imputation"), secret="all", truth=target)
    many = sl.attacks.AttackComparison("Nine of one kind", {f"attack {i}": guessed for i in range(9)})
    found = {"errors": errors, "distances": many}
    return {name: sl.write_report(result, folder / f"{name}.html") for name, result in found.items()}


def test_attacks_of_any_number_are_all_drawn(pages: dict[str, Path]) -> None:
    text = pages["distances"].read_text()
    assert all(f'"name":"attack {i}"' in text for i in range(9))


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("name", ["errors", "distances"])
def test_the_page_of_an_attack_in_a_browser(browser: Chrome, pages, name: str, size, theme: str) -> None:
    show(browser, pages[name], size, theme)
    ranked = ["plot-errors", "plot-roc", "plot-lift", "plot-reliability"]
    plots = ranked if name == "errors" else ["plot-density", "plot-cumulative"]
    for plot in plots:
        drawn, wanted, legend, top = browser.execute_script(
            "const plot = document.getElementById(arguments[0]);"
            "const legend = plot.querySelector('.legend').getBoundingClientRect();"
            "return [plot.querySelectorAll('.scatterlayer .trace, .barlayer .trace').length,"
            " plot.data.length, legend.bottom,"
            " plot.getBoundingClientRect().top + plot._fullLayout._size.t]",
            plot,
        )
        assert drawn == wanted
        assert legend <= top + 2, "the legend lies over the drawing"
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    boxes = ".stamp" if name == "distances" else ".tiles li, .stamp"
    overlap = browser.execute_script(
        "const found = [...document.querySelectorAll(arguments[0])];"
        "const boxes = found.map((box) => box.getBoundingClientRect());"
        "return [boxes.length, boxes.slice(1).some((box, i) => box.top < boxes[i].bottom + 6"
        " && box.left < boxes[i].right + 6)]",
        boxes,
    )
    assert overlap[0] > 1
    assert not overlap[1]
    assert complaints(browser) == []
