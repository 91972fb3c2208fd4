"""Local hashing: what its own hash functions realise, against enumeration of the sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sidelight as sl
from enumeration import favouring, generic, random_joint, total
from sidelight.leakage.hashing import bucket_sets, hashing_leakage


def test_eq_28_is_reached_by_buckets_that_exist() -> None:
    joint = [[0.2, 0, 0, 0], [0, 0.2, 0, 0], [0.1, 0.15, 0.03, 0.02], [0.1, 0.15, 0.03, 0.02]]
    belief = sl.Belief.from_joint(joint, ["k", "hat"])
    found = hashing_leakage(belief, sl.create("olh", 4, 1.0), "hat", "k")
    assert found.value == pytest.approx(0.62011, abs=5e-6)
    assert found.is_exact


def test_lower_ends_are_what_the_realised_sets_reach(rng) -> None:
    for _ in range(40):
        size = int(rng.integers(2, 6))
        joint = random_joint(rng, (3, size))
        if (joint.sum(axis=1) > 0).sum() < 2:
            continue
        belief = sl.Belief.from_joint(joint, ["x", "u"])
        mechanism = sl.create("olh", size, 1.0)
        found = hashing_leakage(belief, mechanism, "x", "u", seeds=50)
        sets = {tuple(np.flatnonzero(mask)) for batch in bucket_sets(mechanism, 50) for mask in batch}
        reached = total(joint, {1: favouring(size, sorted(sets), mechanism.epsilon)}, 0)
        rows = joint[joint.sum(axis=1) > 0]
        limit = generic(rows / rows.sum(axis=1, keepdims=True), mechanism.epsilon)
        assert found.lower.value == pytest.approx(reached, abs=1e-9)
        assert found.upper.value == pytest.approx(limit, abs=1e-9)
        assert found.is_exact == math.isclose(reached, limit, abs_tol=1e-12)


def test_only_hashing_has_buckets() -> None:
    belief = sl.Belief.from_joint([[0.25, 0.25], [0.25, 0.25]], ["x", "u"])
    with pytest.raises(sl.InputError, match="must be a `Hashing`"):
        hashing_leakage(belief, sl.create("grr", 2, 1.0), "x", "u")
