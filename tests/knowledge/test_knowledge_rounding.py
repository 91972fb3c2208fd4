"""Prior knowledge at the edge of a double: odd parts, small parts beside large ones, tiny noise, zeros."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import sidelight as sl
from knowledge_enumeration import adversaries, leakage, sums
from sidelight.knowledge import query as queries
from sidelight.knowledge.exact import widest
from sidelight.report.knowledge import enough
from sidelight.report.page import page_of, render


def uneven() -> sl.Belief:
    return sl.Belief.from_joint([[0.2, 0.1], [0.1, 0.2], [0.3, 0.1]], ["a", "b"])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"a": [0.3, 0.1 + 0.2, 1.3], "b": [0, 1e3]}, 1e3),
        ({"a": [0, 1e-300, 0], "b": [0, 1]}, 1.0),
        ({"a": [0, 1, 2**0.5], "b": [0, 1e9]}, 1e9),
    ],
)
def test_rounding_noise_is_no_step(parts, expected: float) -> None:
    belief = uneven()
    query = sl.Query.additive(belief.schema, parts)
    assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("b", ("a",))).value == pytest.approx(
        expected
    )
    assert sl.knowledge.all_adversaries(belief, query).of(sl.Adversary("b", ("a",))) == pytest.approx(
        expected
    )


def test_parts_without_a_common_step_equal_enumeration() -> None:
    rng = np.random.default_rng(8)
    for _ in range(5):
        joint = rng.dirichlet(np.ones(12)).reshape(3, 2, 2)
        parts = [list(rng.normal(size=size)) for size in joint.shape]
        belief = sl.Belief.from_joint(joint, list("abc"))
        query = sl.Query.additive(belief.schema, dict(zip("abc", parts, strict=True)), 0.7)
        every = sl.knowledge.all_adversaries(belief, query)
        for target, known in adversaries(3):
            adversary = sl.Adversary("abc"[target], tuple("abc"[k] for k in known))
            truth = leakage(joint, sums(parts), target, known, 0.7)
            assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(
                truth, abs=1e-9
            )
            assert every.of(adversary) == pytest.approx(truth, abs=1e-9)


def test_small_parts_beside_a_large_known_one_are_kept() -> None:
    belief = sl.Belief.from_joint(np.full((3, 2), 1 / 6), ["a", "b"])
    parts = {"a": [0, math.sqrt(2) * 1e-11, math.sqrt(3) * 1e-11], "b": [0, 1]}
    query = sl.Query.additive(belief.schema, parts, 1e-11)
    adversary = sl.Adversary("a", ("b",))
    assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(math.sqrt(3), abs=1e-9)
    assert sl.knowledge.all_adversaries(belief, query).of(adversary) == pytest.approx(math.sqrt(3), abs=1e-9)


def test_group_and_certified_figures_are_rounded_up() -> None:
    """Against fractions and fifty digits: nearest rounding falls below the truth about every second time."""
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.375, 0.125]], ["a", "b"])
    for scale in np.random.default_rng(3).uniform(0.1, 3, size=60):
        query = sl.Query.additive(belief.schema, {"a": [0, 1], "b": [0, 1]}, float(scale))
        group = sl.knowledge.prior_leakage(belief, query, sl.Adversary("a"), "group").value
        assert Fraction(group) >= 2 / Fraction(float(scale))
        certified = sl.knowledge.prior_leakage(belief, query, sl.Adversary("a"), "certified").value
        with localcontext(prec=50):
            rate = 1 / Decimal(float(scale))
            truth = rate + (1 + (rate.exp() - 1) / 4).ln()
            assert truth <= Decimal(certified) <= truth * (1 + Decimal("1e-11"))


def test_the_printed_scale_keeps_the_limit() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        belief = sl.Belief.from_joint(rng.dirichlet(np.ones(8)).reshape(2, 2, 2), list("abc"))
        query = sl.Query.sum(belief.schema)
        limit = float(rng.uniform(0.2, 3))
        audit = sl.knowledge_audit(belief, query, limit=limit)
        shown = enough(audit.noise.scale)
        page = re.sub(r"<[^>]*>", "", render(page_of(audit)))
        assert f"needs a scale of {shown};" in page
        _, found, _ = sl.knowledge.worst_adversary(belief, query.with_scale(float(shown)))
        assert found.value <= limit
        assert float(shown) <= audit.noise.scale * 1.001


@pytest.mark.parametrize("limit", [1e-8, 0.01, 1.0, 7.3])
def test_least_noise_settles_for_parts_without_a_common_step(limit: float) -> None:
    copies = sl.Belief.from_joint(np.diag([0.5, 0.5]), ["a", "b"])
    query = sl.Query.additive(copies.schema, {"a": [0, math.sqrt(2)], "b": [0, math.pi]})
    chosen = sl.knowledge.least_noise(copies, query, limit)
    assert chosen.leakage.value <= limit * (1 + 1e-12)
    assert chosen.saving == pytest.approx(1.0, abs=1e-6)


def test_least_noise_is_the_least_where_others_leave_no_choice() -> None:
    opposite = sl.Belief.from_joint([[0.0, 0.5], [0.5, 0.0]], ["a", "b"])
    query = sl.Query.sum(opposite.schema, 1.0, {"b": 0.5})
    chosen = sl.knowledge.least_noise(opposite, query, 1.0)
    assert chosen.scale == pytest.approx(0.5, rel=1e-8)


def test_a_small_tree_with_odd_weights_is_listed() -> None:
    links = {("x0", "x1"): [[0.9, 0.1], [0.2, 0.8]], ("x1", "x2"): [[0.7, 0.3], [0.4, 0.6]]}
    belief = sl.Belief.from_tree(sl.belief.Tree.from_conditionals("x0", [0.4, 0.6], links))
    names = belief.schema.names
    query = sl.Query.sum(belief.schema, 1.0, {"x0": math.sqrt(2), "x1": math.pi, "x2": math.e})
    dense = sl.Belief.from_joint(belief.tree.joint(names), belief.schema)
    for known in ((), ("x1",), ("x1", "x2")):
        adversary = sl.Adversary("x0", known)
        truth = sl.knowledge.prior_leakage(dense, query, adversary).value
        assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(truth, abs=1e-9)


def test_json_of_a_query_without_parts_writes_infinity() -> None:
    belief = uneven()
    audit = sl.knowledge_audit(belief, sl.Query.any(belief.schema, lambda a, b: max(a, b)))
    assert {layer["group"] for layer in json.loads(audit.to_json())["layers"]} == {"infinity"}


def test_scales_that_drown_in_rounding_are_refused() -> None:
    belief = uneven()
    for scale in (5e-324, 1e-310, 1e-200, 1e-15):
        with pytest.raises(sl.InputError, match="`scale` must be at least"):
            sl.Query.sum(belief.schema, scale)
    with pytest.raises(sl.InputError, match="`scale` must be at least"):
        sl.Query.additive(belief.schema, {"b": [-1e308, 1e308]})
    with pytest.raises(ArithmeticError, match="no ratio"):
        widest(np.array([[np.nan], [0.0]]), np.zeros(1, dtype=np.intp))


def test_other_noise_keeps_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = queries.common_step
    monkeypatch.setattr(queries, "common_step", lambda *given: calls.append(1) or real(*given))
    query = sl.Query.sum(uneven().schema, 1.0, {"b": 0.3})
    assert query.with_scale(2.0).lattice is query.with_scale(3.0).lattice
    assert len(calls) == 1


def test_a_named_adversary_must_attack_a_target() -> None:
    belief = uneven()
    with pytest.raises(sl.InputError, match="not among the targets a"):
        sl.knowledge_audit(belief, sl.Query.sum(belief.schema), ["a"], named=[sl.Adversary("b")])


def test_only_one_adversary_takes_a_set_of_beliefs() -> None:
    belief = uneven()
    query = sl.Query.sum(belief.schema)
    least = partial(sl.knowledge.least_noise, limit=1.0)
    for call in (sl.knowledge_audit, sl.knowledge.worst_adversary, least):
        with pytest.raises(sl.InputError, match="`belief` must be a `Belief`"):
            call([belief, belief], query)


def test_a_covariance_may_be_off_by_rounding_around_zero() -> None:
    assert sl.belief.Gaussian(("a", "b"), [[1.0, 1e-17], [0.0, 1.0]]).names == ("a", "b")


def test_a_histogram_of_many_cells_is_refused_before_the_work() -> None:
    rng = np.random.default_rng(0)
    schema = sl.Schema(tuple(sl.categorical(f"x{j}", [f"{j}{v}" for v in "abc"]) for j in range(7)))
    joint = np.zeros(schema.sizes)
    joint[tuple(rng.integers(0, 3, size=(7, 60)))] = 1.0
    belief = sl.Belief.from_joint(joint / joint.sum(), schema)
    with pytest.raises(sl.TooLargeError, match="a query with fewer cells"):
        sl.knowledge.all_adversaries(belief, sl.Query.histogram(schema))


@pytest.mark.parametrize("part", [2**0.5, 3**0.5, math.pi, math.e])
def test_least_noise_settles_beside_a_large_value_that_cannot_occur(part: float) -> None:
    copies = sl.Belief.from_joint([[0.5, 0.0], [0.0, 0.5], [0.0, 0.0]], ["a", "b"])
    query = sl.Query.additive(copies.schema, {"a": [0, part, 1e6], "b": [0, 5**0.5]})
    assert sl.knowledge.least_noise(copies, query, 1.0).leakage.value <= 1 + 1e-12
