"""Prior knowledge of numbers that are not binned: every adversary of a Gaussian, and the command line."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.report.knowledge import compared
from sidelight.report.page import page_of, render

WEIGHTS = {"a": 2.0, "b": -1.0, "c": 0.5}


def random_gaussian(rng: np.random.Generator, count: int = 4) -> sl.belief.Gaussian:
    factor = rng.normal(size=(count, count + 2))
    return sl.belief.Gaussian(tuple("abcdefgh"[:count]), factor @ factor.T)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    values = rng.multivariate_normal([170, 70, 40], [[60, 40, 5], [40, 120, 30], [5, 30, 90]], size=500)
    columns = dict(zip(("height", "weight", "age"), values.round(3).T, strict=True))
    columns["city"] = rng.choice(["x", "y"], size=500)
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_every_adversary_has_the_closed_form(rng: np.random.Generator) -> None:
    belief = random_gaussian(rng)
    audit = sl.knowledge.gaussian_audit(belief, scale=2.0, reach=3.0, weights=WEIGHTS)
    for target in belief.names:
        others = [name for name in belief.names if name != target]
        for size in range(len(others) + 1):
            for known in combinations(others, size):
                adversary = sl.Adversary(target, known)
                truth = sl.knowledge.gaussian_leakage(
                    belief, adversary, scale=2.0, reach=3.0, weights=WEIGHTS
                )
                assert audit.exact.of(adversary) == pytest.approx(truth.value, rel=1e-9)
    assert audit.worst.exact.value == pytest.approx(audit.exact.worst()[1])
    assert audit.corollary_gap < 1e-12


def test_corollary_2_holds_with_weights(rng: np.random.Generator) -> None:
    belief = random_gaussian(rng)
    for name in belief.names:
        weakest = sl.knowledge.gaussian_weakest(belief, name, weights=WEIGHTS).value
        full = sl.knowledge.gaussian_leakage(belief, sl.Adversary(name), weights=WEIGHTS).value
        assert weakest == pytest.approx(full, rel=1e-12)


def test_group_privacy_has_no_figure_for_values_without_limits() -> None:
    """One attribute that follows the target a hundredfold moves the answer past any sum of reaches."""
    belief = sl.belief.Gaussian(("a", "b"), [[1.0, 100.0], [100.0, 10_001.0]])
    audit = sl.knowledge.gaussian_audit(belief, ["a"], limit=1.0)
    assert audit.worst.exact.value == pytest.approx(101.0)
    assert audit.worst.group.value == math.inf
    assert "no scale that is enough" in compared(audit.noise)
    data = json.loads(audit.to_json())
    assert (data["noise"]["group_scale"], data["noise"]["saving"]) == ("infinity", "infinity")


def test_the_least_scale_keeps_the_limit(rng: np.random.Generator) -> None:
    for limit in (0.3, 1.0, 7.0):
        belief = random_gaussian(rng)
        noise = sl.knowledge.gaussian_audit(belief, scale=5.0, limit=limit).noise
        at = sl.knowledge.gaussian_audit(belief, scale=noise.scale).worst.exact.value
        less = sl.knowledge.gaussian_audit(belief, scale=0.999 * noise.scale).worst.exact.value
        assert at <= limit < less


def test_values_go_as_far_as_in_the_table(numbers: Path) -> None:
    belief = sl.belief.Gaussian.from_data(sl.read(numbers))
    assert belief.names == ("height", "weight", "age")
    assert (belief.kind, belief.is_model, belief.sample_size) == ("gaussian", True, 500)
    raw = pq.read_table(numbers)["weight"].to_numpy()
    audit = sl.knowledge.gaussian_audit(belief)
    assert audit.query.reaches["weight"] == pytest.approx(np.ptp(raw))
    assert audit.worst.exact.kind == "model"
    alone = sl.Adversary("weight", ("age", "height"))
    assert audit.exact.of(alone) == pytest.approx(np.ptp(raw))


@pytest.mark.parametrize("missing", ["value", "drop"])
def test_a_missing_number_drops_the_record(run, tmp_path: Path, missing: str) -> None:
    rows = pa.table(
        {
            "a": [1.0, 2.0, None, 4.0, 7.5, 3.0],
            "b": [2.0, 1.0, 5.0, math.nan, 3.0, 9.0],
            "c": [1, 5, 2, 2, None, 7],
            "d": ["x", None, "y", "x", "y", "x"],
        }
    )
    table = sl.read(rows, missing=missing, require=["a", "b", "c"], columns=["a", "b", "c"])
    belief = sl.belief.Gaussian.from_data(table, ["a", "b"])
    assert belief.sample_size == (4 if missing == "value" else 3)
    path = tmp_path / "gaps.parquet"
    pq.write_table(rows, path)
    _, out, _ = run("knowledge", path, "--attributes", "a,b", "--belief", "gaussian", "--missing", missing)
    assert "2 records with a missing number were left out" in out
    assert "(4 records, 2 attributes)" in out


def test_the_command_line_agrees_with_the_library(run, numbers: Path) -> None:
    code, out, err = run(
        "knowledge", numbers, "--belief", "gaussian", "--scale", 50, "--target", "weight",
        "--known", "age", "--limit", 99, "--decide-by", "model", "--json",
    )  # fmt: skip
    data = json.loads(out)
    belief = sl.belief.Gaussian.from_data(sl.read(numbers))
    truth = sl.knowledge.gaussian_leakage(
        belief, sl.Adversary("weight", ("age",)), scale=50, reach=belief.ranges[belief.index("weight")]
    )
    assert (code, err) == (0, "")
    assert data["named"][0]["exact"]["value"] == pytest.approx(truth.value)
    assert data["named"][0]["exact"]["kind"] == "model"
    assert data["corollary_gap"] < 1e-12
    assert data["attributes"] == ["height", "weight", "age"]


def test_a_mean_and_a_column_outside_the_query(run, numbers: Path) -> None:
    options = ["--belief", "gaussian", "--attributes", "height,weight", "--query", "mean", "--reach", 1]
    _, out, _ = run(
        "knowledge", numbers, *options, "--target", "height", "--known", "age", "--only", "--json"
    )
    belief = sl.belief.Gaussian.from_data(sl.read(numbers))
    weights = {"height": 0.5, "weight": 0.5, "age": 0.0}
    truth = sl.knowledge.gaussian_leakage(belief, sl.Adversary("height", ("age",)), weights=weights)
    assert json.loads(out)["exact"]["value"] == pytest.approx(truth.value)


def test_the_table_and_the_page_say_what_they_stand_on(run, numbers: Path, tmp_path: Path) -> None:
    page = tmp_path / "numbers.html"
    code, out, _ = run("knowledge", numbers, "--belief", "gaussian", "--report", page, "--limit", 1)
    assert code == 1
    for words in ("Corollary 2", "have no limits", "Not numbers, so left out: city", "so far apart: height"):
        assert words in out
    text = page.read_text(encoding="utf-8")
    assert "takes the table for a Gaussian" in text
    assert ">Certified<" not in text, "columns without a figure are left out"
    code, out, _ = run("knowledge", numbers, "--belief", "gaussian", "--target", "age", "--only")
    assert (code, "Theorem 6" in out) == (0, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--attributes", "height,city"], "the column 'city' of"),
        (["--target", "city"], "there is no attribute 'city'"),
        (["--query", "histogram"], "`query` must be one of 'sum', 'mean'"),
        (["--smoothing", 1], "--smoothing is for joint and tree beliefs"),
        (["--reach", 0], "`reach` must be a finite number above 0"),
        (["--min-support", 10], "needs --reach"),
        (["--graph", "graph.dot"], "--graph needs a joint or tree belief"),
        (["--weight", "hight=2"], "there is no attribute 'hight'"),
    ],
)
def test_bad_input_gets_one_line(run, numbers: Path, options: list[object], words: str) -> None:
    code, out, err = run("knowledge", numbers, "--belief", "gaussian", *options)
    assert code == 2, err
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


def test_columns_that_follow_from_others_are_refused(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=100)
    path = tmp_path / "copies.parquet"
    pq.write_table(pa.table({"a": base, "b": 2 * base, "c": rng.normal(size=100)}), path)
    code, _, err = run("knowledge", path, "--belief", "gaussian")
    assert code == 2
    assert "`covariance` is singular" in err


def test_too_many_attributes_are_refused_with_a_way_out() -> None:
    belief = sl.belief.Gaussian.equicorrelated(17, 0.1)
    with pytest.raises(sl.TooLargeError, match="one adversary at a time"):
        sl.knowledge.gaussian_audit(belief)
    with pytest.raises(sl.InputError, match="no attribute moves the answer"):
        sl.knowledge.gaussian_audit(
            sl.belief.Gaussian.equicorrelated(2, 0.1), limit=1.0, weights={"x1": 0.0, "x2": 0.0}
        )


def test_a_gaussian_has_functions_of_its_own() -> None:
    belief = sl.belief.Gaussian.equicorrelated(2, 0.1)
    given = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["x1", "x2"])
    query = sl.Query.sum(given.schema)
    for call in (sl.knowledge_audit, sl.knowledge.worst_adversary, sl.knowledge.all_adversaries):
        with pytest.raises(sl.InputError, match="use gaussian_leakage"):
            call(belief, query)
    with pytest.raises(sl.InputError, match="use gaussian_leakage"):
        sl.knowledge.prior_leakage(belief, query, sl.Adversary("x1"))


def test_the_page_of_a_gaussian_given_by_hand(rng: np.random.Generator) -> None:
    text = render(page_of(sl.knowledge.gaussian_audit(random_gaussian(rng), limit=1.0)))
    assert "given by hand" in text
    assert "no scale that is enough" in text
