"""Audits of plans that ask more than once are of what is really sent."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from sidelight.calibration.problem import Problem
from sidelight.foundation.arrays import Array
from sidelight.leakage import leakage_at
from sidelight.leakage.divergence import epsilon_at
from sidelight.mechanisms.longitudinal import sequence_law
from sidelight.report import print_audit, write_report

CASES = [
    ("l-grr", 2.0, 3, None), ("l-sue", 1.5, 3, None), ("l-osue", 1.5, 2, None), ("l-grr", 1.0, 4, "fresh"),
    ("grr", 1.0, 4, "kept"), ("grr", 0.7, 3, None), ("oue", 1.0, 2, None), ("sue", 1.0, 4, "kept"),
]  # fmt: skip


def batch_law(release: sl.Release) -> Array:
    """Return Pr(all reports in their order | value) by listing them."""
    mechanism, size = release.randomiser(), release.attribute.size
    if release.keeps and release.mechanism.startswith("l-"):
        return np.array([sequence_law(mechanism, [v] * release.times).reshape(-1) for v in range(size)])
    law = mechanism.report_law(64)
    assert law is not None
    if release.keeps:  # one draw, sent again and again
        return law
    batches = list(product(range(law.shape[1]), repeat=release.times))
    return np.array([[math.prod(row[y] for y in batch) for batch in batches] for row in law])


@pytest.mark.parametrize("seed", range(12))
def test_totals_of_repeated_reports_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    joint = rng.dirichlet(np.ones(4)).reshape(2, 2)
    belief = sl.Belief.from_joint(joint, ["a", "b"])
    releases = []
    for name in "ab":
        mechanism, epsilon, times, memory = CASES[rng.integers(len(CASES))]
        releases.append(sl.Release(belief.schema[name], mechanism, epsilon, times, memory=memory))
    plan = sl.Plan(tuple(releases), 3.0)
    rows = np.einsum("ab,ax,by->axy", joint, *(batch_law(item) for item in releases)).reshape(2, -1)
    rows /= rows.sum(axis=1, keepdims=True)
    truth = float(np.abs(np.log(rows[0] / rows[1])).max())
    total = sl.audit(belief, plan)["a"].total
    assert total.lower.value <= truth + 1e-9
    assert total.value >= truth - 1e-9
    assert total.upper.kind != "exact" or total.value == pytest.approx(truth, abs=1e-9)
    at_delta = leakage_at(belief, plan, "a", 0.01, draws=2000, seed=1).upper
    exact = epsilon_at(rows, 0.01)[0]
    assert at_delta.value >= exact - 1e-9
    assert at_delta.kind != "exact" or at_delta.value == pytest.approx(exact, abs=1e-9)


@pytest.fixture(scope="module")
def table() -> sl.Table:
    rng = np.random.default_rng(2)
    a = rng.integers(3, size=600)
    b = np.where(rng.random(600) < 0.7, a % 2, rng.integers(2, size=600))
    return sl.read({"a": [f"v{x}" for x in a], "b": [f"w{x}" for x in b]})


def repeating(table: sl.Table) -> sl.Plan:
    return sl.Plan((
        sl.Release(table.schema["a"], "l-grr", 2.0, 30, parameters={"first": 0.5}),
        sl.Release(table.schema["b"], "grr", 0.1, 10),
    ), 3.0)  # fmt: skip


def test_an_audit_tells_how_often_with_which_memory_and_who_is_linked(table: sl.Table) -> None:
    audit = sl.audit(sl.Belief.from_data(table), repeating(table))
    told = json.loads(audit.to_json())["repeated"]
    assert [(item["attribute"], item["times"], item["memory"]) for item in told] == [
        ("a", 30, "kept"), ("b", 10, "fresh"),
    ]  # fmt: skip
    assert told[0]["unlimited"] == pytest.approx(2.0)
    assert told[1]["unlimited"] == "infinity"
    assert 0.5 < told[1]["linking"]["same_or_not"] < told[0]["linking"]["same_or_not"] < 1
    assert json.loads(sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema)).to_json())[
        "repeated"
    ] == []  # fmt: skip


def test_terminal_and_page_show_it(
    table: sl.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = sl.audit(sl.Belief.from_data(table), repeating(table))
    print_audit(audit, table)
    printed = capsys.readouterr().out
    assert "Asked again" in printed
    assert "on a kept response" in printed
    page = write_report(audit, tmp_path / "audit.html").read_text("utf-8")
    assert "Asked again and again" in page
    assert "fresh each time" in page
    once = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema))
    print_audit(once, table)
    assert "Asked again" not in capsys.readouterr().out


def test_a_calibrated_plan_of_repeated_reports_keeps_its_limit(table: sl.Table) -> None:
    belief = sl.Belief.from_data(table)
    found = sl.calibrate(belief, plan=repeating(table))
    assert [item.times for item in found.plan.releases] == [30, 10]
    assert sl.audit(belief, found.plan).is_within


@pytest.mark.parametrize(
    ("size", "times", "at_hundredth", "at_millionth"),
    [
        (2, 10, 0.499, 0.999), (2, 100, 2.311, 4.775), (2, 365, 5.612, 10.31),
        (4, 10, 0.307, 0.878), (4, 100, 1.480, 3.317), (4, 365, 3.539, 6.982),
    ],
)  # fmt: skip
def test_refereed_numbers_of_fresh_noise_at_delta(
    size: int, times: int, at_hundredth: float, at_millionth: float
) -> None:
    belief = sl.Belief.from_joint(np.full(size, 1 / size), ["a"])
    plan = sl.Plan((sl.Release(belief.schema["a"], "grr", 0.1, times),))
    for delta, figure in ((1e-2, at_hundredth), (1e-6, at_millionth)):
        found = leakage_at(belief, plan, "a", delta, draws=100, seed=1)
        assert found.value == pytest.approx(figure, rel=1e-3)


@pytest.mark.parametrize(
    ("mechanism", "memory"), [("grr", "fresh"), ("grr", "kept"), ("l-grr", "kept"), ("l-osue", "kept")]
)
def test_the_variance_of_repeated_reports_is_that_of_their_mean(mechanism: str, memory: str) -> None:
    """Simulated: 400 trials have a standard error of 7 %; 5 of them are passed once in two million runs."""
    size, people, times, trials = 3, 200, 4, 400
    shares = np.array([0.5, 0.3, 0.2])
    release = sl.Release(sl.categorical("a", "xyz"), mechanism, 2.0, times, memory=memory)
    sent, count = release.sent()
    rng = np.random.default_rng(1)
    found = np.empty((trials, size))
    for trial in range(trials):
        values = rng.choice(size, size=people, p=shares)
        parts = []
        for number in range(count):
            reports = sent.randomise(values, seed=trial * count + number)
            parts.append(sent.estimate(sent.aggregate(reports)))
        found[trial] = np.mean(parts, axis=0)
    stated = release.variance(people, shares).sum()
    assert ((found - shares) ** 2).sum(axis=1).mean() == pytest.approx(stated, rel=0.35)
    once = replace(release, times=1).variance(people, shares).sum()
    assert (stated < 0.95 * once) == ((mechanism, memory) != ("grr", "kept"))


def test_searches_weigh_the_mean_of_all_rounds() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    for mechanism in ("grr", "l-grr"):
        releases = tuple(sl.Release(item, mechanism, 2.0, 10) for item in belief.schema)
        names = tuple(item.name for item in releases)
        problem = Problem(belief, releases, names, {}, dict.fromkeys(names, 1.0), "variance", 500)
        budgets = np.full(len(names), 1.5)
        wanted = [item.at(1.5).variance(500, belief.prior(item.name)).sum() for item in releases]
        once = [
            replace(item, times=1).at(1.5).variance(500, belief.prior(item.name)).sum() for item in releases
        ]
        assert problem.errors(budgets) == pytest.approx(wanted)
        assert (problem.errors(budgets) < once).all()


def test_what_one_all_and_unlimited_reports_spend_is_shown(tmp_path: Path) -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    releases = [sl.Release(item, "grr", 0.5) for item in belief.schema]
    releases[0] = sl.Release(belief.schema.attributes[0], "l-grr", 2.0, 5, {"first": 1.0})
    releases[1] = sl.Release(belief.schema.attributes[1], "grr", 0.5, 3)
    plan = sl.Plan(tuple(releases))
    assert plan.releases[0].realised == pytest.approx((1.0, 1.9970, 2.0), abs=1e-3)
    assert plan.releases[1].realised == pytest.approx((0.5, 1.5, math.inf))
    audited = sl.audit(belief, plan, secrets=["survived"])
    told = audited.to_dict()["plan"][1]
    assert told["realised_epsilon"] == pytest.approx(0.5)
    assert (told["realised_in_all"], told["realised_unlimited"]) == (pytest.approx(1.5), "infinity")
    columns = ("realised: one report", "all reports", "unlimited reports")
    section = sl.report.plan_sections(plan)["releases"]
    assert set(columns) < set(section.columns)
    assert list(section.rows[1])[4:7] == ["0.5", "1.5", "∞"]
    sl.report.write_assessment(audited, tmp_path / "it.md")
    assert all(column in (tmp_path / "it.md").read_text("utf-8") for column in columns)
    sl.write_report(audited, tmp_path / "it.html")
    page = (tmp_path / "it.html").read_text("utf-8")
    assert "Realised ε: one report</th>" in page
    assert ">Unlimited</th>" in page
    single = sl.report.plan_sections(sl.Plan.uniform(belief.schema))["releases"]
    assert "realised" in single.columns
    assert not set(columns) & set(single.columns)
