"""Prepared totals: what a search asks again and again is what an audit says once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration
import sidelight as sl
from sidelight.leakage.totals import (
    ExactTotal,
    JointTotal,
    ListedTotals,
    TotalMethod,
    Totals,
    exact_totals,
    prepare_totals,
)
from sidelight.mechanisms import Channel, create

SEEDS = st.integers(0, 2**32 - 1)
MECHANISMS = ("grr", "oue", "ss", "exp")


def random_belief(rng: np.random.Generator, shape: tuple[int, ...]) -> sl.Belief:
    joint = enumeration.random_joint(rng, shape)
    return sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(len(shape))])


def random_channels(rng: np.random.Generator, belief: sl.Belief, factor: float = 1.0) -> dict[str, Channel]:
    channels: dict[str, Channel] = {}
    for attribute in belief.schema:
        name, budget = str(rng.choice(MECHANISMS)), float(rng.choice([0.2, 1.0, 3.0]))
        parameters = {"width": (attribute.size + 1) // 2} if name == "ss" else {}
        channels[attribute.name] = create(name, attribute.size, budget * factor, **parameters).channel
    return channels


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(1, 5))))


def in_one(parts: tuple[Totals, ...], channels: dict[str, Channel]) -> dict[str, sl.Bound]:
    return {name: bound for part in parts for name, bound in part.bounds(channels).items()}


@pytest.mark.parametrize("kind", ["joint", "pairwise", "tree"])
@pytest.mark.parametrize("method", ["auto", "exact", "tree", "joint generic", "composition"])
def test_prepared_totals_are_those_of_an_audit(kind: str, method: TotalMethod) -> None:
    belief = sl.Belief.from_data(sl.example("titanic"), kind)
    names = belief.schema.names
    channels = {item.name: create("grr", item.size, 0.5).channel for item in belief.schema}
    try:
        parts = prepare_totals(belief, channels, names, method)
        bounds = in_one(parts, channels)
    except sl.InputError:
        with pytest.raises(sl.InputError, match="needs a (joint|tree) belief"):
            sl.total_leakage(belief, channels, names[0], method)
        return
    values = {name: value for part in parts for name, value in part.values(channels).items()}
    assert set(bounds) == set(values) == set(names)
    for name in names:
        audited = sl.total_leakage(belief, channels, name, method)
        assert values[name] == bounds[name].value
        if kind != "tree" or method != "auto":  # an audit takes a cheap exact total before messages
            assert values[name] == pytest.approx(audited.upper.value, abs=1e-12)
        else:
            assert values[name] >= audited.upper.value - 1e-12


@given(SEEDS)
@settings(max_examples=40)
def test_exact_totals_together_are_those_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief = random_belief(rng, random_shape(rng))
    channels, names = random_channels(rng, belief), belief.schema.names
    totals = ListedTotals.of(belief, names, names).values(channels)
    for name in names:
        exact = sl.total_leakage(belief, channels, name, "exact")
        assert totals[name] == pytest.approx(exact.value, abs=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 2, 2, 5, 2, 2, 3, 2), (40, 3), (3, 40, 2), (30, 2, 20)])
def test_axes_are_contracted_together_as_one_by_one(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    belief = random_belief(rng, shape)
    channels = {item.name: create("grr", item.size, 1.0).channel for item in belief.schema}
    totals = ListedTotals.of(belief, belief.schema.names, belief.schema.names).values(channels)
    assert sorted(totals) == list(belief.schema.names)
    for name, value in totals.items():
        assert value == pytest.approx(sl.total_leakage(belief, channels, name, "exact").value, abs=1e-12)


def test_a_search_sees_the_totals_of_the_audit_where_reports_are_too_many_to_list(rng) -> None:
    belief = random_belief(rng, (3, 12, 2))
    channels = {
        item.name: create(name, item.size, 1.0).channel
        for item, name in zip(belief.schema, ("grr", "oue", "grr"), strict=True)
    }
    parts = exact_totals(belief, channels, belief.schema.names)
    found = {name: bound for part in parts for name, bound in part.bounds(channels).items()}
    for name in belief.schema.names:
        audited = sl.total_leakage(belief, channels, name)
        assert (found[name].value, found[name].kind) == (pytest.approx(audited.value, abs=1e-12), "exact")


@given(SEEDS, st.sampled_from([1 + 1e-6, 1.01, 1.5]))
@settings(max_examples=40)
def test_changes_are_never_above_the_true_ones_and_agree_for_small_moves(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    belief = random_belief(rng, random_shape(rng))
    names, state = belief.schema.names, rng.integers(2**32)
    now, moved = (random_channels(np.random.default_rng(state), belief, by) for by in (1.0, factor))
    parts: list[Totals] = [ListedTotals.of(belief, names, names)]
    parts += [JointTotal.of(belief, names, name, "auto") for name in names]
    parts += [ExactTotal(belief, name) for name in names]
    for part in parts:
        base = part.values(now)
        for secret, grown in part.changes(now, moved).items():
            for name, least in zip(names, grown, strict=True):
                true = part.values({**now, name: moved[name]})[secret] - base[secret]
                assert least <= true + 1e-12
                assert factor > 1 + 1e-5 or least == pytest.approx(true, abs=1e-9)


def test_what_is_released_as_it_is_stays_infinite() -> None:
    belief = random_belief(np.random.default_rng(3), (3, 2))
    totals = ListedTotals.of(belief, belief.schema.names, belief.schema.names)
    open_door = sl.Release(belief.schema["x0"], "identity").channel()
    now, then = (create("grr", 2, budget).channel for budget in (1.0, 1.1))
    grown = totals.changes({"x0": open_door, "x1": now}, {"x1": then})
    assert totals.values({"x0": open_door, "x1": now})["x0"] == np.inf
    assert not grown["x0"] > 0
