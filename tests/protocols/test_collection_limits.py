"""Budgets at both ends, many attributes, and the search for groups against plain enumeration."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np
import pytest

import sidelight as sl
from sidelight.advice import choose_protocol
from sidelight.advice.advice import LARGEST_GROUP, merged_groups
from sidelight.estimation.expected_error import group_error
from sidelight.foundation.arrays import to_simplex
from sidelight.protocols import rs_fd, smp, spl
from sidelight.protocols.groups import make_group

SCHEMA = sl.Schema(
    (
        sl.categorical("a", "uvw"),
        sl.categorical("b", "xy"),
        sl.categorical("c", "pqrs"),
        sl.categorical("d", "xy"),
    )
)


def equal(attributes: int, values: int) -> sl.Schema:
    labels = [str(value) for value in range(values)]
    return sl.Schema(tuple(sl.categorical(f"x{number}", labels) for number in range(attributes)))


@pytest.mark.parametrize("epsilon", [700.0, 710.0, 1e300, math.inf])
@pytest.mark.parametrize(
    "make",
    [
        spl,
        smp,
        rs_fd,
        sl.protocols.TwoPhase,
        choose_protocol,
        lambda schema, epsilon: sl.advise(schema, epsilon, 100),
    ],
    ids=["spl", "smp", "rs+fd", "two phases", "best", "advise"],
)
def test_budgets_that_no_plan_may_spend_are_refused(make: Callable[..., object], epsilon: float) -> None:
    with pytest.raises(sl.InputError, match="`epsilon` must be a finite number above 0 and below 700"):
        make(SCHEMA, epsilon)


@pytest.mark.parametrize("epsilon", [699.0, 1e-9, 1e-12])
def test_budgets_at_both_ends_are_advised_upon(epsilon: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice = sl.advise(SCHEMA, epsilon, 1000)
    assert all(math.isfinite(option.error) for option in advice.options)
    assert {"corr-rr", "cond-rr", "rs+fd"} <= {option.name for option in advice.options}


def test_budgets_that_no_random_word_realises_are_refused() -> None:
    with pytest.raises(sl.InputError, match="large enough to be realised with 64 random bits"):
        sl.advise(SCHEMA, 1e-18, 1000)


def test_huge_estimates_are_projected_too() -> None:
    found = to_simplex([[3e20, -1e20, -2e20], [1e20, 1e20, -2e20], [0.7, 0.6, -0.3]])
    assert found == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0.55, 0.45, 0]]))


@pytest.mark.parametrize(("attributes", "values"), [(1000, 2), (300, 50), (400, 400)])
def test_advice_for_many_attributes_is_given_soon(attributes: int, values: int) -> None:
    """Seconds of this process's own work, whatever else the machine does; the largest takes three."""
    schema = equal(attributes, values)
    started = time.process_time()
    advice = sl.advise(schema, 1.0, 1000)
    assert time.process_time() - started < 20
    assert advice.choice.schema is schema


def plainly_merged(
    schema: sl.Schema, epsilon: float, known: Mapping[str, np.ndarray]
) -> list[tuple[str, ...]]:
    """Look at every pair of groups after each merging."""

    def cost(group: tuple[str, ...]) -> float:
        return math.sqrt(group_error(make_group(schema, group, "best", epsilon), known))

    groups = [(name,) for name in schema.names]
    while True:
        gains = {
            (a, b): cost(a) + cost(b) - cost(a + b)
            for a, b in combinations(groups, 2)
            if math.prod(schema[name].size for name in a + b) <= LARGEST_GROUP
        }
        best = max(gains, key=lambda pair: gains[pair], default=None)
        if best is None or gains[best] <= 0:
            return groups
        groups = [group for group in groups if group not in best] + [best[0] + best[1]]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 6.0])
@pytest.mark.parametrize(
    "sizes", [(2, 2, 2, 2, 2, 2, 2), (3, 3, 3, 3, 3), (2, 5, 3, 2, 7, 3), (30, 4, 40, 2)]
)
@pytest.mark.parametrize("is_known", [False, True])
def test_groups_are_those_that_every_pair_compared_gives(
    sizes: tuple[int, ...], epsilon: float, is_known: bool
) -> None:
    rng = np.random.default_rng(5)
    schema = sl.Schema(
        tuple(sl.categorical(f"x{i}", [str(v) for v in range(size)]) for i, size in enumerate(sizes))
    )
    known = {
        attribute.name: rng.dirichlet(np.ones(attribute.size)) if is_known
        else np.full(attribute.size, 1 / attribute.size)
        for attribute in schema
    }  # fmt: skip
    found = {frozenset(group) for group in merged_groups(schema, epsilon, known)}
    assert found == {frozenset(group) for group in plainly_merged(schema, epsilon, known)}
