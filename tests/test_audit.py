"""Audits: every figure in its place, verdicts, suppression, plain data out."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.leakage.total import LARGEST_AUTOMATIC


@pytest.fixture(scope="module")
def audit() -> sl.Audit:
    table = sl.example("titanic")
    return sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema, limits={"survived": 1.9}))


def test_every_figure_is_the_library_s_own(audit: sl.Audit) -> None:
    channels = audit.plan.channels()
    for secret, item in audit.secrets.items():
        assert item.total == sl.total_leakage(audit.belief, channels, secret)
        assert item.direct.value == pytest.approx(1.0)
        assert item.published.value == pytest.approx(sl.pairwise_sum(audit.belief, channels, secret).value)
        assert [leakage.value for leakage in item.neighbours] == sorted(
            (leakage.value for leakage in item.neighbours), reverse=True
        )
        for leakage in item.neighbours:
            name = leakage.through[0]
            assert leakage == sl.pair_leakage(audit.belief, channels[name], secret, name)
            row, column = audit.plan.names.index(name), list(audit.secrets).index(secret)
            assert audit.pairs[row, column] == leakage.value
    assert np.diagonal(audit.pairs) == pytest.approx(1.0)


def test_verdicts(audit: sl.Audit) -> None:
    assert audit["survived"].verdict == "within"
    assert audit["sex"].verdict == "exceeded"
    assert not audit.is_within
    assert audit["survived"].commonest == ("no", pytest.approx(1490 / 2201))
    loose = sl.audit(audit.belief, sl.Plan.uniform(audit.belief.schema, limit=3.0), method="composition")
    assert {item.verdict for item in loose.secrets.values()} == {"not certified"}
    assert sl.audit(audit.belief, sl.Plan.uniform(audit.belief.schema, limit=4.0), "sex").is_within
    with pytest.raises(sl.InputError, match="'cabin' was not audited"):
        audit["cabin"]


def test_a_secret_that_is_not_released(audit: sl.Audit) -> None:
    plan = sl.Plan.uniform(audit.belief.schema).withholding(["survived"])
    item = sl.audit(audit.belief, plan, ["survived"])["survived"]
    assert item.direct.value == 0
    assert item.total.value == pytest.approx(audit["survived"].total.value - 1.0)
    assert len(item.neighbours) == 3


def test_curves_rise_to_their_saturation(audit: sl.Audit) -> None:
    values, limit = audit.curve("survived", "sex", [0.5, 1, 2, 4, 8, 16])
    assert values == sorted(values)
    assert values[1] == pytest.approx(audit["survived"].neighbours[0].value)
    assert values[-1] == pytest.approx(limit, abs=1e-5)


def test_rare_figures_are_replaced_by_the_budgets() -> None:
    cells = np.array([[500, 2], [0, 3], [300, 200]])
    schema = sl.Schema((sl.categorical("x", ["a", "rare", "c"]), sl.categorical("u", ["0", "1"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    plan = sl.Plan.uniform(schema)
    open_audit, closed = sl.audit(belief, plan), sl.audit(belief, plan, min_support=5)
    assert open_audit["x"].neighbours[0].upper.witness.unlikelier == "rare"
    assert open_audit["x"].neighbours[0].upper.support == 3
    shown = closed["x"]
    assert shown.neighbours[0].upper.value == pytest.approx(1.0)
    assert shown.total.upper.value == pytest.approx(2.0)
    assert shown.total.lower.value == pytest.approx(1.0)
    assert "rare" not in json.dumps(closed.to_dict()["secrets"]["x"])
    assert closed.curve("x", "u", [1.0]) == ([], pytest.approx(math.nan, nan_ok=True))
    for secret in schema.names:
        assert closed[secret].total.value >= open_audit[secret].total.value - 1e-12


def test_json_holds_every_figure_and_infinity() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["x", "u"])
    plan = sl.Plan.uniform(belief.schema, limit=math.inf)
    data = json.loads(sl.audit(belief, plan).to_json())
    assert data["secrets"]["x"]["limit"] == "infinity"
    assert data["secrets"]["x"]["verdict"] == "within"
    assert data["secrets"]["x"]["total"]["upper"]["kind"] == "exact"


def test_a_plan_that_does_not_fit_is_refused(audit: sl.Audit) -> None:
    other = sl.Plan.uniform(sl.admissions().schema)
    with pytest.raises(
        sl.InputError, match="releases 'department', which is not among the table's attributes"
    ):
        sl.audit(audit.belief, other)
    coded = sl.Plan((sl.Release(sl.categorical("sex", ["f", "m", "x"]), "grr", 1.0),))
    with pytest.raises(sl.InputError, match="disagree about the values of 'sex'"):
        sl.audit(audit.belief, coded)
    with pytest.raises(sl.InputError, match="there is no attribute 'cabin'"):
        sl.audit(audit.belief, audit.plan, ["cabin"])


def test_large_joints_get_an_interval(rng) -> None:
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", list("abcd")) for i in range(14)))
    assert LARGEST_AUTOMATIC < 4**14
    codes = rng.integers(0, 4, size=(300, 14))
    codes[:, 1] = codes[:, 0]
    table = sl.read(pa.table({f"x{i}": np.array(list("abcd"))[codes[:, i]] for i in range(14)}))
    result = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(schema), ["x0"])["x0"]
    assert 2.0 < result.total.lower.value < result.total.upper.value <= 14.0 + 1e-9
    assert result.total.lower.method == "search over reports"
    assert "x0 = " in result.total.lower.witness.report
