"""Prior knowledge from the command line: tables, JSON, the report, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.report.knowledge import MOST_DRAWN
from sidelight.report.page import page_of, render
from sidelight.studies.pdp.joints import alternating


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    sick = rng.integers(0, 2, size=400)
    columns = {"sick": sick, "cough": sick ^ (rng.random(400) < 0.2), "fever": sick ^ (rng.random(400) < 0.3)}
    columns["smokes"] = rng.integers(0, 3, size=400)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({name: [str(int(v)) for v in values] for name, values in columns.items()}), path)
    return path


def test_the_table_names_the_worst_adversary_and_the_asked_one(run, table: Path) -> None:
    code, out, _ = run("knowledge", table, "--target", "sick", "--known", "cough,smokes", "--scale", 1)
    assert code == 0
    assert "Attacks sick knowing cough, smokes" in out
    assert "learns most" in out
    assert "raw data" in out


def test_json_says_the_same_as_the_library(run, table: Path) -> None:
    code, out, _ = run("knowledge", table, "--target", "sick", "--known", "cough", "--limit", 9, "--json")
    data = json.loads(out)
    belief = sl.Belief.from_data(sl.read(table))
    query = sl.Query.sum(belief.schema)
    truth = sl.knowledge.prior_leakage(belief, query, sl.Adversary("sick", ("cough",)))
    assert code == 0
    assert data["named"][0]["exact"]["value"] == pytest.approx(truth.value)
    assert data["named"][0]["exact"]["support"] == truth.support
    assert [layer["known"] for layer in data["layers"]] == [0, 1, 2, 3]
    assert data["noise"]["scale"] == pytest.approx(sl.knowledge.least_noise(belief, query, 9, ["sick"]).scale)
    assert len(data["graph"]["nodes"]) == 4 * 8


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--attributes", "b,c", "--attributes", "a"], {"a", "b,c"}),
        (["--attributes", "a,d"], {"a", "d"}),
        (["--attributes", "a", "--attributes", "d"], {"a", "d"}),
        (["--attributes", " a , d ", "--attributes", "b,c"], {"a", "b,c", "d"}),
        (["--drop", "b,c"], {"a", "d"}),
    ],
)
def test_a_column_may_have_a_comma_in_its_name(
    run, tmp_path: Path, options: list[str], names: set[str]
) -> None:
    path = tmp_path / "commas.csv"
    path.write_text('a,"b,c",d\n' + "x,p,u\ny,q,v\nx,q,u\ny,p,u\n" * 8)
    code, out, err = run("knowledge", path, "--json", *options)
    assert code == 0, err
    assert {node["target"] for node in json.loads(out)["graph"]["nodes"]} == names
    code, _, err = run("knowledge", path, "--drop", "a,d")
    assert (code, "to name several columns, repeat the option" in err) == (2, True)


def test_a_limit_that_is_exceeded_exits_1(run, table: Path) -> None:
    assert run("knowledge", table, "--limit", 0.1)[0] == 1
    assert run("knowledge", table, "--limit", 20)[0] == 0


def test_a_model_is_no_all_clear_for_the_table(run, table: Path) -> None:
    tree = ("knowledge", table, "--belief", "tree", "--scale", 2, "--limit")
    model, group = (
        json.loads(run(*tree, 99, "--json")[1])["worst"][key]["value"] for key in ("exact", "group")
    )
    between = (model + group) / 2
    assert model < between < group
    assert run(*tree, between)[0] == 1
    assert run(*tree, between, "--decide-by", "model")[0] == 0
    assert run(*tree, 2 * group)[0] == 0, "the group bound holds for every table"
    assert "for a model" in run(*tree, between)[1]
    assert run("knowledge", table, "--limit", between, "--decide-by", "model")[0] == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--query", "mean", "--scale", 0.25],
        ["--query", "count", "--count", "sick=1", "--count", "cough=1"],
        ["--query", "histogram", "--attributes", "sick,cough"],
        ["--query", "sum", "--weight", "sick=-2"],
        ["--attributes", "sick,cough", "--target", "sick", "--known", "smokes"],
        ["--belief", "tree", "--target", "sick", "--known", "cough", "--only"],
        ["--smoothing", 1],
    ],
)
def test_every_query_runs(run, table: Path, options: list[object]) -> None:
    code, out, err = run("knowledge", table, *options, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)


def test_an_attribute_outside_the_query_may_be_known_and_adds_nothing(run, table: Path) -> None:
    _, out, _ = run(
        "knowledge", table, "--attributes", "sick,cough", "--target", "sick", "--known", "smokes", "--json"
    )
    data = json.loads(out)
    belief = sl.Belief.from_data(sl.read(table, columns=["sick", "cough", "smokes"]))
    query = sl.Query.sum(belief.schema, 1.0, {"smokes": 0.0})
    truth = sl.knowledge.prior_leakage(belief, query, sl.Adversary("sick", ("smokes",))).value
    assert data["named"][0]["exact"]["value"] == pytest.approx(truth)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "sic"], "there is no column 'sic'; did you mean 'sick'?"),
        (["--target", "sick", "--known", "sick"], "'sick' is among the known attributes"),
        (["--target", "sick", "--known", "nobody"], "there is no column 'nobody'"),
        (["--scale", 0], "`scale` must be a finite number above 0, got 0.0"),
        (["--scale", -1], "`scale` must be a finite number above 0, got -1.0"),
        (["--known", "sick"], "name one --target"),
        (["--only"], "name one --target"),
        (["--query", "median"], "`query` must be one of 'sum'"),
        (["--query", "count"], "needs at least one --count"),
        (["--query", "count", "--count", "sick=7"], "there is no value '7' of sick"),
        (["--weight", "sick"], "--weight must be name=number"),
        (["--query", "mean", "--weight", "sick=2"], "--weight belongs to --query sum"),
        (["--limit", 0], "`limit` must be a finite number above 0"),
        (["--belief", "magic"], "`belief` must be one of"),
        (["--report", "page.pdf"], "must end in .html"),
        (["--graph", "graph.png"], "must end in .json or .dot"),
        (["--reach", 2], "--reach belongs to --belief gaussian"),
        (["--target", "sick", "--only", "--report", "page.html"], "exclude each other"),
        (["--target", "sick", "--only", "--limit", 1], "--only and --limit exclude each other"),
    ],
)
def test_bad_input_gets_one_line(run, table: Path, options: list[object], words: str) -> None:
    code, out, err = run("knowledge", table, *options)
    assert code == 2, err
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


def test_a_joint_that_is_too_large_gets_one_line(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "wide.parquet"
    rows = {f"c{j}": [str(v) for v in rng.integers(0, 2, size=50)] for j in range(22)}
    pq.write_table(pa.table(rows), path)
    code, _, err = run("knowledge", path)
    assert code == 2
    assert "take at most 20, or one adversary at a time" in err
    assert run("knowledge", path, "--target", "c0", "--known", "c1", "--only")[0] == 0


def test_the_graph_is_written_for_other_programs(run, table: Path, tmp_path: Path) -> None:
    dot, data = tmp_path / "graph.dot", tmp_path / "graph.json"
    assert run("knowledge", table, "--target", "sick", "--graph", dot)[0] == 0
    assert dot.read_text(encoding="utf-8").count("->") == 12
    code, out, _ = run("knowledge", table, "--graph", data)
    edges = json.loads(data.read_text(encoding="utf-8"))["edges"]
    assert (code, "The graph is in" in out) == (0, True)
    assert len(edges) == 4 * 12
    assert {"ic", "ir", "ls_over_scale"} <= set(edges[0])
    code, _, err = run("knowledge", table, "--query", "histogram", "--graph", data)
    assert (code, "no published graph to write" in err) == (2, True)


def test_the_report_shows_the_curve_the_graph_and_every_adversary(run, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "knowledge.html"
    code, out, _ = run(
        "knowledge", table, "--target", "sick", "--known", "cough", "--limit", 9, "--report", page
    )
    text = page.read_text(encoding="utf-8")
    assert code == 0
    assert "The report is in" in out
    for words in ("Leakage against what is known", "Graph of adversaries", "How much noise", "Unprotected"):
        assert words in text
    assert 'id="plot-curve"' in text
    assert 'id="plot-graph"' in text
    assert "Asked for" in text


def test_a_report_of_many_or_vectors_leaves_the_graph_out(rng: np.random.Generator) -> None:
    cells = rng.dirichlet(np.ones(2**8)).reshape((2,) * 8)
    belief = sl.Belief.from_joint(cells, [f"<b>x{j}</b>" for j in range(8)])
    audit = sl.knowledge_audit(belief, sl.Query.sum(belief.schema), ["<b>x0</b>"])
    assert MOST_DRAWN < 2**7
    page = page_of(audit)
    assert set(page.figures) == {"curve"}
    assert "<b>x0</b>" not in render(page), "names are escaped"
    small = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    assert set(page_of(sl.knowledge_audit(small, sl.Query.histogram(small.schema))).figures) == {"curve"}
    largest = sl.Query.any(small.schema, lambda a, b: max(a, b))
    assert "∞" in render(page_of(sl.knowledge_audit(small, largest)))


def test_the_worst_can_be_the_weakest_the_strongest_or_between() -> None:
    def standing(cells: object) -> str:
        belief = sl.Belief.from_joint(cells, [f"x{j}" for j in range(np.ndim(cells))])
        return sl.knowledge_audit(belief, sl.Query.sum(belief.schema)).standing

    assert standing([[0.3, 0.2], [0.2, 0.3]]) == "weakest"
    assert standing([[0.2, 0.3], [0.3, 0.2]]) == "strongest"
    assert standing([[0.25, 0.25], [0.25, 0.25]]) == "both"
    assert standing(alternating(5, 0.6)) == "between"


def test_a_real_table_runs_from_the_command_line_with_a_figure(run, data: Path, tmp_path: Path) -> None:
    names = "gender,cholesterol,gluc,smoke,alco,active,cardio"
    page = tmp_path / "cardio.html"
    code, out, _ = run(
        "knowledge", data / "cardio.parquet", "--attributes", names, "--target", "cardio",
        "--known", "gender,smoke", "--report", page, "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert len(found["layers"]) == 7
    assert found["named"][0]["exact"]["kind"] == "exact"
    assert found["worst"]["certified"]["value"] >= found["worst"]["exact"]["value"] - 1e-9
    assert "plot-curve" in page.read_text(encoding="utf-8")
