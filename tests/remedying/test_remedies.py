"""Remedies against brute force: what they predict is what an audit of their plan finds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.auditing import Story
from sidelight.leakage import leakage_at, total_leakage
from sidelight.leakage.divergence import delta_at
from sidelight.remedying.gauge import Candidate, gauge_of
from sidelight.remedying.kinds import Search, deciding
from sidelight.remedying.result import Remedies, Remedy
from sidelight.remedying.sampling import sample_of, sampled_figure
from sidelight.remedying.search import withheld

RNG = np.random.default_rng(5)


def correlated(sizes: tuple[int, ...], seed: int, people: int = 4000) -> sl.Belief:
    """A secret, first, and attributes that depend on it to different degrees."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(sizes[0], size=people)
    columns = [secret]
    for place, size in enumerate(sizes[1:]):
        tells = rng.random(people) < (0.9, 0.6, 0.3, 0.05)[place % 4]
        columns.append(np.where(tells, secret % size, rng.integers(size, size=people)))
    cells = np.zeros(sizes, dtype=np.int64)
    np.add.at(cells, tuple(columns), 1)
    return sl.Belief.from_counts(cells, [f"a{place}" for place in range(len(sizes))])


def told(belief: sl.Belief, plan: sl.Plan, secret: str, delta: float) -> sl.Audit:
    """An audit at delta without its nulls, which cost more than everything else."""
    audit = sl.audit(belief, plan, [secret])
    story = Story("table", leakage_at(belief, plan, secret, delta, seed=1), {})
    item = replace(audit[secret], stories=(story,), decide_by="table")
    return replace(audit, secrets={secret: item}, delta=delta)


def asked(limit: float = 1.0, sizes: tuple[int, ...] = (2, 3, 2, 4), seed: int = 1) -> sl.Audit:
    belief = correlated(sizes, seed)
    return sl.audit(belief, sl.Plan.uniform(belief.schema, limits={"a0": limit}), ["a0"])


@pytest.fixture(scope="module", name="found")
def found_fixture() -> Remedies:
    return sl.remedies(asked(), seed=1)


def test_every_remedy_is_within_the_limit_and_cheapest_comes_first(found: Remedies) -> None:
    assert {"withhold", "budgets", "sample"} <= {item.kind for item in found}
    assert all(item.is_within for item in found)
    losses = [item.loss for item in found]
    assert losses == sorted(losses)
    assert found.now is not None
    assert not found.now.is_within
    assert all(item.loss >= found.now.loss * 0.999 for item in found)


def test_an_audit_of_a_remedys_plan_finds_what_was_predicted(found: Remedies) -> None:
    for item in found:
        if item.plan is None:
            continue
        audit = sl.audit(found.audit.belief, item.plan, ["a0"]) if not _is_coarse(item, found) else None
        if audit is not None:
            assert deciding(audit["a0"]).value == pytest.approx(item.worst[1].value, rel=1e-9)
            assert audit.is_within


def _is_coarse(item: Remedy, found: Remedies) -> bool:
    assert item.plan is not None
    return any(release.attribute != found.audit.belief.schema[release.name] for release in item.plan.releases)


def smallest(belief: sl.Belief, plan: sl.Plan, limit: float) -> int:
    """How few attributes can be withheld so that the limit is kept, by trying all sets."""
    channels = plan.channels()
    for count in range(len(plan.names) + 1):
        for hidden in itertools.combinations(plan.names, count):
            seen = {name: channel for name, channel in channels.items() if name not in hidden}
            if not seen or total_leakage(belief, seen, "a0").value <= limit:
                return count
    raise AssertionError


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.8, 1.2, 1.6]))
def test_withheld_sets_are_at_most_one_larger_than_the_smallest(seed: int, limit: float) -> None:
    belief = correlated((2, 2, 3, 2, 2), seed, 800)
    plan = sl.Plan.uniform(belief.schema, limits={"a0": limit})
    audit = sl.audit(belief, plan, ["a0"])
    if deciding(audit["a0"]).value <= limit:
        return
    hidden = withheld(gauge_of(audit, {"a0": limit}), Candidate(plan.releases))
    least = smallest(belief, plan, limit)
    if hidden is None:
        assert least == len(plan.names)
        return
    assert least <= len(hidden) <= least + 1
    # no withheld attribute could come back
    for name in hidden:
        kept = plan.withholding([other for other in hidden if other != name])
        assert total_leakage(belief, kept.channels(), "a0").value > limit


def test_at_delta_figures_are_certified_anew_and_hold() -> None:
    belief = correlated((2, 3, 3, 2, 2), 3, 3000)
    audit = told(belief, sl.Plan.uniform(belief.schema, limits={"a0": 1.0}), "a0", 0.01)
    found = sl.remedies(audit, seed=4)
    assert found.exposed[0].share > 0.01
    assert found.exposed[0].people_for_one is not None
    for item in found:
        assert item.is_within
        if item.plan is not None and not _is_coarse(item, found):
            assert item.plan.delta == 0.01
            assert item.plan.decide_by == "table"
            assert leakage_at(belief, item.plan, "a0", 0.01, seed=9).value <= 1.0


def test_drawn_estimates_are_near_exact_figures() -> None:
    """So many draws have an error of a few hundredths; a false alarm is rarer than one in ten thousand."""
    belief = correlated((2, 3, 3, 2, 2), 3, 3000)
    audit = told(belief, sl.Plan.uniform(belief.schema), "a0", 0.01)
    gauge, candidate = gauge_of(audit, {"a0": 1.0}), Candidate(audit.plan.releases)
    exact = gauge.figure(candidate, "a0")
    drawn = gauge._common("a0", quick=False).figure(candidate.by_name, {})  # type: ignore[attr-defined]
    assert drawn == pytest.approx(exact, rel=0.12)


def sampled_by_enumeration(belief: sl.Belief, plan: sl.Plan, limit: float) -> float:
    """The divergence at a limit of the whole protocol, from its law on records."""
    protocol = sample_of(plan.releases)
    assert protocol is not None
    law = protocol.matrix()
    joint = belief.joint(list(protocol.schema.names))
    place = protocol.schema.index("a0")
    rows = []
    for value in range(joint.shape[place]):
        slab = np.zeros_like(joint)
        at = tuple(value if axis == place else slice(None) for axis in range(joint.ndim))
        slab[at] = joint[at]
        rows.append((slab.ravel() / slab.sum()) @ law)
    return delta_at(np.array(rows), limit)[0]


@pytest.mark.parametrize("delta", [1e-3, 0.01, 0.1])
def test_one_attribute_a_person_leaks_what_enumeration_says(delta: float) -> None:
    belief = correlated((3, 2, 3), 8)
    plan = sl.Plan.uniform(belief.schema, epsilon=1.3)
    gauge = gauge_of(told(belief, plan, "a0", delta), {"a0": 1.0})
    bound = gauge.sampled(Candidate(plan.releases), "a0")
    assert bound.kind == "exact"
    assert sampled_by_enumeration(belief, plan, bound.value) <= delta * (1 + 1e-9)
    if bound.value > 0:
        assert sampled_by_enumeration(belief, plan, bound.value - 1e-6) > delta


def test_one_attribute_a_person_has_no_amplification_in_the_worst_case() -> None:
    belief = correlated((2, 2, 2), 2)
    plan = sl.Plan.uniform(belief.schema, epsilon=1.5)
    gauge = gauge_of(sl.audit(belief, plan, ["a0"]), {"a0": 1.0})
    alone = max(total_leakage(belief, {n: c}, "a0").value for n, c in plan.channels().items())
    assert gauge.sampled(Candidate(plan.releases), "a0").value == pytest.approx(alone, rel=1e-12)
    assert alone == pytest.approx(1.5, rel=1e-6)


def test_reports_that_cannot_be_listed_are_bounded() -> None:
    assert sampled_figure([], 3, 0.7, 0.01) == 0.7
    listed = [np.array([[0.9, 0.1], [0.1, 0.9]])]
    assert sampled_figure(listed, 2, 5.0, 0.01) == 5.0
    assert sampled_figure(listed, 1, 0.0, 0.01) == pytest.approx(math.log((0.9 - 0.01) / 0.1))


def test_the_front_holds_what_none_beats(found: Remedies) -> None:
    costs = {id(item): (item.share, item.loss, -item.attributes) for item in found}
    for item in found:
        beaten = any(
            all(a <= b for a, b in zip(costs[id(other)], costs[id(item)], strict=True))
            and costs[id(other)] != costs[id(item)]
            for other in found
        )
        assert beaten == (item not in found.front)


def test_budgets_are_only_lowered(found: Remedies) -> None:
    for item in found:
        if item.plan is not None:
            for release in item.plan.releases:
                assert release.epsilon is not None
                assert release.epsilon <= found.audit.plan[release.name].epsilon + 1e-12  # type: ignore[operator]


def test_several_secrets_come_back_together_and_each_alone() -> None:
    belief = correlated((2, 2, 3), 4)
    audit = sl.audit(belief, sl.Plan.uniform(belief.schema, limit=0.9), ["a0", "a1"])
    found = sl.remedies(audit, seed=1)
    assert set(found.secrets) == {"a0", "a1"}
    assert set(found.single) == {"a0", "a1"}
    for item in found:
        assert set(item.leakages) == {"a0", "a1"}
        assert item.is_within


def test_what_keeps_its_limit_needs_no_remedy() -> None:
    found = sl.remedies(asked(limit=50.0))
    assert len(found) == 0
    assert "nothing needs a remedy" in found.headline()
    assert found.notes() == []
    with pytest.raises(sl.InputError, match="there is no remedy to choose"):
        _ = found[1]


def test_an_audit_without_limits_takes_one_from_the_caller() -> None:
    belief = correlated((2, 3, 2), 1)
    audit = sl.audit(belief, sl.Plan.uniform(belief.schema), ["a0"])
    with pytest.raises(sl.InputError, match="remedies need a limit"):
        sl.remedies(audit)
    assert sl.remedies(audit, limit=1.0, seed=1).limits == {"a0": 1.0}
    assert sl.remedies(audit, limits={"a0": 1.1}, seed=1).limits == {"a0": 1.1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"people": 0.5}, "people"),
        ({"people": 0}, "people"),
        ({"within": 0}, "within"),
        ({"within": 1.5}, "within"),
        ({"limit": -1}, "limit"),
        ({"limits": {"nobody": 1.0}}, "nobody"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        sl.remedies(asked(), **options)  # type: ignore[arg-type]


def test_what_an_audit_hides_no_remedy_shows() -> None:
    belief = correlated((2, 3, 2), 1)
    audit = sl.audit(belief, sl.Plan.uniform(belief.schema, limit=1.0), ["a0"], min_support=5)
    with pytest.raises(sl.InputError, match="min_support"):
        sl.remedies(audit)
    with pytest.raises(sl.InputError, match="audit"):
        sl.remedies(belief)  # type: ignore[arg-type]


def test_a_release_without_noise_can_only_be_withheld() -> None:
    belief = correlated((2, 2, 2), 1)
    first, *rest = sl.Plan.uniform(belief.schema, epsilon=0.2).releases
    plan = sl.Plan((first, replace(rest[0], mechanism="identity", epsilon=None), rest[1]), limits={"a0": 0.5})
    found = sl.remedies(sl.audit(belief, plan, ["a0"]), seed=1)
    assert "budgets" in found.missing
    assert all(item.plan is None or "a1" not in item.plan.names for item in found if item.kind == "withhold")


def test_a_guess_and_a_tree_decide_where_they_are_asked_to() -> None:
    belief = correlated((2, 3, 2), 1)
    plan = sl.Plan.uniform(belief.schema, limits={"a0": 0.9})
    for options in ({"adversary": "guess", "decide_by": "guess"}, {"model": True, "decide_by": "model"}):
        audit = sl.audit(belief, plan, ["a0"], **options)  # type: ignore[arg-type]
        for item in sl.remedies(audit, seed=1):
            if item.plan is not None and not _is_coarse(item, sl.remedies(audit, seed=1)):
                again = sl.audit(belief, item.plan, ["a0"], **options)  # type: ignore[arg-type]
                assert deciding(again["a0"]).value == pytest.approx(item.worst[1].value, rel=1e-9)


def test_json_says_everything_and_numbers_are_those_of_the_list(found: Remedies) -> None:
    plain = found.to_dict()
    assert [item["number"] for item in plain["remedies"]] == list(range(1, len(found) + 1))
    assert found[1] is found.remedies[0]
    with pytest.raises(sl.InputError, match="remedy"):
        _ = found[len(found) + 1]
    assert sl.Plan.from_toml(found.front[0].to_toml()) if found.front[0].plan else True


def test_the_loss_of_what_is_withheld_is_that_of_knowing_nothing() -> None:
    audit = asked()
    search = Search(audit, {"a0": 1.0}, {"a0": 1.0}, 1000, 0.02, np.random.default_rng(1))
    errors = {"a0": 0.0, "a1": 0.0, "a2": 0.0}
    drawn = np.random.default_rng(2).dirichlet(np.ones(4), 200_000)
    wanted = math.sqrt(((drawn - 0.25) ** 2).mean() / 4)
    assert search._loss(search.start.without(["a3"]), errors) == pytest.approx(wanted, rel=0.01)
