"""Which path a step takes, and that what is loaded never changes a result."""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.foundation import compiled
from sidelight.foundation.bits import code_counts
from sidelight.foundation.compiled import CACHED, LARGE, PATIENCE, WARM, Loop, use_loop
from sidelight.mechanisms import create

LOOP: Loop = "mechanisms.respond"


@pytest.fixture
def cold(monkeypatch) -> None:
    """A process that has run no loop, without a compiler and without a cache."""
    monkeypatch.setattr(compiled, "_run", set())
    monkeypatch.setattr(compiled, "_waited", Counter())
    monkeypatch.setattr(compiled, "_is_cached", lambda _: False)


@pytest.mark.usefixtures("cold")
def test_the_rule_weighs_rows_times_width() -> None:
    assert not use_loop(LOOP, LARGE - 1)
    assert not use_loop(LOOP, LARGE // 100 - 1, 100)
    assert use_loop(LOOP, LARGE // 100 + 1, 100)


@pytest.mark.usefixtures("cold")
def test_a_loop_that_has_run_is_used_for_small_work_and_others_are_not() -> None:
    assert not use_loop(LOOP, WARM)
    assert use_loop(LOOP, LARGE)
    assert use_loop(LOOP, WARM)
    assert not use_loop(LOOP, WARM - 1)
    assert not use_loop("mechanisms.overlay", WARM)


@pytest.mark.usefixtures("cold")
def test_a_cached_loop_is_read_only_where_the_compiler_is_loaded(monkeypatch) -> None:
    monkeypatch.setattr(compiled, "_is_cached", lambda loop: loop == LOOP)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert not use_loop(LOOP, CACHED)
    monkeypatch.setitem(sys.modules, "numba", compiled)  # whatever it is, it is there
    assert not use_loop("mechanisms.overlay", CACHED)
    assert not use_loop(LOOP, CACHED - 1)
    assert use_loop(LOOP, CACHED)


@pytest.mark.usefixtures("cold")
def test_many_small_batches_are_a_large_table() -> None:
    batches = PATIENCE // (LARGE // 2)
    assert [use_loop(LOOP, LARGE // 2) for _ in range(batches + 1)] == [False] * batches + [True]


@pytest.mark.usefixtures("cold")
def test_counting_small_batches_of_codes_never_fetches_a_compiler(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sidelight.foundation.kernels", None)  # whoever imports it fails
    codes = np.arange(LARGE // 2) % 3
    for _ in range(2 * PATIENCE // len(codes) + 1):
        code_counts(codes.astype(np.uint8), 3)


@pytest.mark.parametrize("loop", get_args(Loop))
def test_every_loop_that_the_rule_knows_is_there(loop: Loop) -> None:
    room, _, name = loop.rpartition(".")
    assert name in vars(import_module(f"sidelight.{room}.kernels"))


def reports(name: str, size: int, rows: int, least: int | None) -> tuple[np.ndarray, np.ndarray]:
    """What a mechanism reports and adds up on one path, or on the one that the rule takes."""
    mechanism = create(name, size, 1.5)
    codes = np.random.default_rng(rows).integers(0, size, rows).astype(np.uint16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_least", least)
        made = mechanism.randomise(codes, seed=5, offset=3)
        return made.values, mechanism.aggregate(made).sums


@settings(max_examples=80)
@given(
    name=st.sampled_from(["grr", "sue", "oue", "olh", "blh", "ss", "hadamard", "she", "the"]),
    size=st.sampled_from([2, 3, 8, 9, 33, 100]),
    work=st.sampled_from([WARM, CACHED]),
    wide=st.booleans(),
    step=st.integers(-2, 2),
)
def test_both_paths_give_the_same_bits_around_the_switch(
    name: str, size: int, work: int, wide: bool, step: int
) -> None:
    rows = max(work // (size if wide else 1) + step, 1)
    plain, sums = reports(name, size, rows, 1 << 60)
    for least in (0, None):
        values, added = reports(name, size, rows, least)
        np.testing.assert_array_equal(values, plain)
        np.testing.assert_array_equal(added, sums)
