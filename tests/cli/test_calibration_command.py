"""The command `calibrate`, its page and its tables."""

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
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from sidelight import cli
from sidelight.report.page import page_of, render
from sidelight.report.wording import budget

__all__ = ["browser_fixture"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    income = rng.integers(0, 2, 400)
    columns = {
        "age": np.array(["young", "middle", "old"])[(rng.integers(0, 2, 400) + income)],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, 400)],
        "income": np.array(["low", "high"])[income],
    }
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_the_command_of_the_issue(run, table: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    code, out, err = run(
        "calibrate", table, "--limit", 1, "--secret", "income=0.5", "--weight", "age=2", "-o", plan
    )
    assert code == 0
    assert err == ""
    for words in ("even split", "one for all", "chosen", "safe against an adversary", "The plan is in"):
        assert words in out
    written = sl.Plan.read(plan)
    assert written.limit_of("income") == 0.5
    assert written.limit_of("age") == 1
    assert run("audit", table, "--plan", plan)[0] == 0, "an audit of the plan keeps every limit"


def test_a_plan_for_a_model_exits_as_an_audit_of_it(run, tmp_path: Path) -> None:
    rows = [(a, b, a ^ b) for a in (0, 1) for b in (0, 1)] * 50
    data, plan = tmp_path / "xor.csv", tmp_path / "plan.toml"
    data.write_text("a,b,c\n" + "\n".join(",".join("ny"[bit] for bit in row) for row in rows))
    calibrate = ("calibrate", data, "--limit", 1, "--constraint", "tree", "-o", plan)
    code, out, _ = run(*calibrate, "--json")
    assert (code, json.loads(out)["is_sound"], json.loads(out)["within_limits"]) == (1, False, False)
    assert run("audit", data, "--plan", plan)[0] == 1
    assert run(*calibrate, "--decide-by", "model")[0] == 0
    assert run("audit", data, "--plan", plan, "--belief", "tree", "--decide-by", "model")[0] == 0
    code, out, _ = run(*calibrate, "--decide-by", "model", "--collected", data)
    assert (code, "all 3 secrets exceed their limits" in out) == (0, True)
    assert run("calibrate", data, "--constraint", "published")[0] == 1
    assert run("calibrate", data, "--decide-by", "model")[0] == 2


@pytest.mark.parametrize("options", [(), ("--decide-by", "population")])
def test_limits_at_delta(run, table: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    plan = tmp_path / "plan.toml"
    command = ("calibrate", table, "--secret", "income=0.5", "--delta", "0.01", "--seed", "1", *options)
    code, out, err = run(*command, "-o", plan)
    assert (code, err) == (0, "")
    for words in ("delta 0.0001", "1 person in 100", "safe at delta 0.01", "The plan is in"):
        assert words in out
    plain = json.loads(run(*command, "--json")[1])
    assert plain["decide_by"] == (options[1] if options else "table")
    assert plain["within_limits"]
    assert plain["leakage_at_delta"]["income"]["delta"] == 0.01
    assert json.loads(sl.Plan.read(plan).to_json()) == plain["plan"]


def test_the_page_at_delta(table: Path) -> None:
    belief = sl.Belief.from_data(sl.read(str(table)))
    result = sl.calibrate(belief, 1.0, secrets=["income"], delta=0.01, frontier=[0.5, 1], compare=True)
    shown = render(page_of(result))
    assert "certified to stay within its limit at delta 0.01" in shown
    assert "delta 0.01 (limit)" in shown
    assert "composition at delta 0.01" in shown
    assert "table at delta 0.01 (in use)" in shown
    assert "1 % more breaks" not in shown


def test_named_secrets_alone_are_limited_without_a_limit(run, table: Path) -> None:
    code, out, _ = run("calibrate", table, "--secret", "income=0.5", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["limits"] == {"income": 0.5}
    assert data["plan"]["limits"] == {"income": 0.5, "age": "infinity", "sex": "infinity"}
    assert run("calibrate", table, "--not-secret", "sex", "--json")[1].count('"sex": "infinity"') == 1


def test_every_option_reaches_the_result(run, table: Path, tmp_path: Path) -> None:
    report = tmp_path / "page.html"
    code, out, _ = run(
        "calibrate", table, "--secret", "income=0.8", "--fix", "sex=0.1", "--withhold", "age", "--uniform",
        "--constraint", "tree", "--mechanism", "oue", "--collected", table, "--report", report, "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0
    assert [item["attribute"] for item in data["plan"]["release"]] == ["sex", "income"]
    assert data["plan"]["release"][0]["epsilon"] == 0.1
    assert data["collected"]["secrets"]["income"]["verdict"] in ("within", "not certified", "exceeded")
    assert data["certificate"] is None
    assert [point["factor"] for point in data["frontier"]] == [0.25, 0.5, 1.0, 2.0, 4.0]
    compared = {item["constraint"]: item["budget"] for item in data["alternatives"]}
    assert compared["tree"] == data["uniform"]["budgets"]["income"]
    assert compared["table"] <= compared["tree"] * (1 + 1e-6), "two attributes have no more than their pair"
    shown = report.read_text()
    assert "models the population as this tree" in shown
    assert "Why they differ" in shown


def test_it_exits_1_where_an_audit_finds_a_limit_broken(run, tmp_path: Path) -> None:
    bits = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 20)
    path = tmp_path / "xor.parquet"
    pq.write_table(pa.table({name: bits[:, i] for i, name in enumerate("abc")}), path)
    code, out, _ = run("calibrate", path, "--constraint", "published", "--uniform", "--json")
    assert code == 1
    assert json.loads(out)["audit"]["secrets"]["c"]["verdict"] == "exceeded"
    assert run("calibrate", path, "--uniform")[0] == 0


def test_a_plan_lends_its_mechanisms(run, table: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run("calibrate", table, "--mechanism", "auto", "--uniform", "-o", plan)
    code, out, _ = run("calibrate", table, "--plan", plan, "--uniform", "--json")
    assert code == 0
    again = {item["attribute"]: item["epsilon"] for item in json.loads(out)["plan"]["release"]}
    assert again == {item.name: item.epsilon for item in sl.Plan.read(plan).releases}


@pytest.mark.parametrize(
    ("options", "limits", "is_lent"),
    [
        ([], {"age": 0.5, "income": 0.25}, True),
        (["--not-secret", "age"], {"income": 0.25}, True),
        (["--secret", "income"], {"income": 0.25}, True),
        (["--secret", "sex=0.75", "--secret", "age"], {"sex": 0.75, "age": 0.5}, True),
        (["--secret", "sex=0.75"], {"sex": 0.75}, False),
        (["--limit", "2"], {"age": 2.0, "sex": 2.0, "income": 2.0}, False),
    ],
)
def test_a_plan_lends_the_limits_that_are_not_given(
    run, table: Path, tmp_path: Path, options: list[str], limits: dict[str, float], is_lent: bool
) -> None:
    plan = tmp_path / "plan.toml"
    own = {"sex": float("inf"), "income": 0.25}
    sl.Plan.uniform(sl.read(str(table)).schema, limit=0.5, limits=own).write(plan)
    code, out, _ = run("calibrate", table, "--plan", plan, "--uniform", "--json", *options)
    assert code == 0
    assert json.loads(out)["limits"] == limits
    shown = run("calibrate", table, "--plan", plan, "--uniform", *options)[1]
    assert (f"Limits that were not given are those of {plan}." in shown) == is_lent


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--secret", "sex"], "'sex' is named as a secret, but the plan lets it leak without limit"),
        (["--not-secret", "age", "--not-secret", "income"], "`--secret` must name at least one attribute"),
    ],
)
def test_a_plan_without_a_limit_lends_none(
    run, table: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    plan = tmp_path / "plan.toml"
    sl.Plan.uniform(sl.read(str(table)).schema, limits={"sex": float("inf")}).write(plan)
    code, _, err = run("calibrate", table, "--plan", plan, *options)
    assert (code, words in err) == (2, True), err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "0"], "a limit of 0 for"),
        (["--as-is", "age", "--secret", "income=0.1"], "through age"),
        (["--weight", "age"], "`--weight` must be of the form attribute=number"),
        (["--weight", "age=0"], "`weight of age` must be a finite number above 0"),
        (["--weight", "agee=1"], "there is no column 'agee'"),
        (["--weight", "age=nan"], "`weight of age` must be a finite number above 0 and below 1e+09, got nan"),
        (["--weight", "age=1e300"], "`weight of age` must be a finite number above 0 and below 1e+09"),
        (["--fix", "age=-1"], "`epsilon of age` must be a finite number above 0"),
        (["--secret", "income=much"], "the limit of 'income' must be a number, got 'much'"),
        (["--secret", "income,age"], "to name several columns, repeat the option"),
        (["--weight", "age=2", "--withhold", "age"], "'age' has a weight but is not released"),
        (["--secret", "incom=1"], "there is no column 'incom'"),
        (["--fix", "age=x"], "`--fix` must be of the form attribute=number"),
        (["-o", "plan.yaml"], "plan.yaml must end in .toml or .json"),
        (["--constraint", "magic"], "`constraint` must be one of"),
        (["--utility", "magic"], "`utility` must be one of"),
        (["--mechanism", "magic"], "`mechanism` must be one of"),
        (["--plan", "none.toml"], "none.toml cannot be read"),
        (["--collected", "none.parquet"], "none.parquet"),
        (["--confidence", "0.9"], "`confidence` is for the constraint 'robust', got 0.9 for 'table'"),
        (["--delta", "1"], "`delta` must be a finite number above 0 and below 1, got 1"),
        (["--delta", "0.01", "--decide-by", "report"], "`--decide-by` must be one of 'population', 'table'"),
        (["--delta", "0.01", "--constraint", "tree"], "`decide_by` says who the limits are kept for"),
        (["--delta", "0.01", "--limit", "0"], "`limit of age at delta` must be a number above 0"),
        (["--constraint", "robust", "--confidence", "1"], "`confidence` must be a finite number above 0 and"),
    ],
)
def test_bad_options_get_one_line(run, table: Path, options: list[str], words: str) -> None:
    code, out, err = run("calibrate", table, *options)
    assert code == 2, out + err
    assert words in err
    assert err.count("\n") == 1
    assert out == ""


def test_the_page_shows_before_and_after(table: Path) -> None:
    belief = sl.Belief.from_data(sl.read(str(table)))
    result = sl.calibrate(belief, 1.0, frontier=[0.5, 1, 2])
    page = page_of(result)
    assert list(page.figures) == ["budgets", "leakage", "errors", "frontier"]
    assert [trace["name"] for trace in page.figures["leakage"].data] == [
        "even split", "one for all", "chosen", "limit",
    ]  # fmt: skip
    shown = render(page)
    for words in ("Leakage against limits", "Utility against limit", "certified to stay within its limit"):
        assert words in shown
    for name in belief.schema.names:
        assert budget(result.budgets[name]) in shown
    for row in page_of(result).figures["budgets"].data:
        for name, words in zip(belief.schema.names, row["hovertext"], strict=True):
            typed = float(words.rsplit(" ", 1)[1])
            assert typed <= result.budgets[name] * (1 + 1e-9) or row["name"] != "chosen"


def test_the_page_escapes_names_and_does_without_errors_or_frontier() -> None:
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["<script>x</script>", "b"])
    result = sl.calibrate(belief, 1.0, mechanism="any", budgets="uniform", constraint="published")
    page = page_of(result)
    assert list(page.figures) == ["budgets", "leakage"]
    shown = render(page)
    assert "<script>x" not in shown
    assert "which is no promise" in shown
    tree = render(page_of(sl.calibrate(belief, 1.0, constraint="tree")))
    assert "Every secret stays within its limit, for a model. For an adversary who knows the table" in tree
    assert "If the table itself is known" in tree


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--withhold", "b", "--as-is", "b"], "'b' is named by --withhold and by --as-is; choose one"),
        (["--secret", "a=0.5", "--not-secret", "a"], "'a' is named by --secret and by --not-secret"),
        (["--secret", "a=0.5", "--secret", "a=0.9"], "'a' is given two numbers, 0.5 and 0.9"),
    ],
)
def test_contradictions_are_refused(
    options: list[str], words: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x,p\nx,q\ny,p\ny,q\nx,p\n" * 8)
    monkeypatch.setattr(sys, "argv", ["sidelight", "calibrate", str(path), *options])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.browser
@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (PHONE, "dark")])
def test_the_page_in_a_browser(browser: Chrome, table: Path, tmp_path: Path, size, theme: str) -> None:
    belief = sl.Belief.from_data(sl.read(str(table)))
    result = sl.calibrate(belief, 1.0, limits={"income": 0.5}, frontier=[0.5, 1, 2], compare=True)
    page = sl.write_report(result, tmp_path / "calibration.html")
    show(browser, page, size, theme)
    for name, figure in page_of(result).figures.items():
        drawn = browser.execute_script(
            "const plot = document.getElementById(arguments[0]);"
            "return [plot.data.length, plot.querySelectorAll('.scatterlayer .trace').length,"
            " plot.querySelector('.xtitle').getBoundingClientRect().right"
            " <= plot.getBoundingClientRect().right]",
            f"plot-{name}",
        )
        assert drawn == [len(figure.data), len(figure.data), True], name
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= size[0], "no sideways scrolling"
    assert [url for url in requests(browser) if not url.startswith(("file://", "data:", "blob:"))] == []
    assert complaints(browser) == []
