"""Releases drawn through torch: the same figures as by enumeration."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pytest

from sidelight import Belief, InputError, Plan, leakage_at
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals.certificate import Draws
from sidelight.leakage.totals.device import DeviceSampler
from sidelight.mechanisms import create

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="devices need the extra neural")
SIZES = (3, 2, 4)
NAMES = ("secret", "a", "b")


def joint(seed: int) -> np.ndarray:
    """Return a joint of three attributes in which one value of the secret never occurs with another."""
    cells = np.random.default_rng(seed).dirichlet(np.full(math.prod(SIZES), 0.5)).reshape(SIZES)
    cells[0, 1] = 0
    return np.round(1000 * cells)


def tables(mechanism: str, budget: float) -> dict[str, np.ndarray]:
    """Return Pr(report | value) of every attribute."""
    channels = {name: create(mechanism, k, budget).channel for name, k in zip(NAMES, SIZES, strict=True)}
    return {name: channel.report_rows(np.eye(channel.size)) for name, channel in channels.items()}


def truth(cells: np.ndarray, law: dict[str, np.ndarray], delta: float) -> float:
    """Return the leakage at delta by listing every release."""
    rows = np.einsum("sab,ax,by,sz->szxy", cells, law["a"], law["b"], law["secret"]).reshape(len(cells), -1)
    return epsilon_at(rows / rows.sum(axis=1, keepdims=True), delta)[0]


MECHANISMS = ("grr", "exp", "hadamard")


@pytest.mark.parametrize(
    ("mechanism", "seed"),
    [
        pytest.param(mechanism, seed, marks=() if seed == place else pytest.mark.deep)
        for place, mechanism in enumerate(MECHANISMS)
        for seed in range(3)
    ],
)
def test_figures_are_those_of_all_releases(mechanism: str, seed: int) -> None:
    """The estimate is near the truth, the certificate above it; fails once in a million runs of each."""
    cells, law = joint(seed), tables(mechanism, 1.5)
    belief = Belief.from_counts(cells.astype(int), NAMES)
    sampler = DeviceSampler.of(belief, law, "secret", "cpu", seed)
    blocks = [sampler.block(count, 0.0) for count in (2_000, 6_000, 24_000)]
    draws = Draws(tuple(block.ratios for block in blocks), 32_000, 0.0)
    exact = truth(cells, law, 0.02)
    assert exact <= draws.certified(0.02, 1e-6) <= 1.3 * exact + 0.05
    assert draws.estimated(0.02)[0] == pytest.approx(exact, abs=0.1)
    assert sampler.error < 1e-4


def test_every_draw_is_counted_and_moves_the_odds() -> None:
    belief = Belief.from_counts(joint(1).astype(int), NAMES)
    block = DeviceSampler.of(belief, tables("grr", 1.0), "secret", "cpu", 3).block(700, 0.5)
    assert block.count == 700
    assert block.moves.shape == (3, 700)
    assert set(block.ratios) == {(i, j) for i in range(3) for j in range(3) if i != j}
    assert all(part.count == 700 and (part.tail > 0.5).all() for part in block.ratios.values())
    assert block.moves.max() <= 3 + 1e-3


def test_a_device_is_named_where_leakage_is_asked_for() -> None:
    """Without a GPU the name is refused; so are reports that cannot be listed."""
    belief = Belief.from_counts(
        np.tile(joint(1).astype(int)[..., None, None], (1, 1, 1, 110, 110)), [*NAMES, "c", "d"]
    )
    with pytest.raises(InputError, match="device"):
        leakage_at(belief, Plan.uniform(belief.schema, "olh", 1.0), "secret", 1e-2, device="cuda")
    with pytest.raises(InputError, match="that this machine has"):
        leakage_at(belief, Plan.uniform(belief.schema, "grr", 1.0), "secret", 1e-2, device="cuda")


def test_fewer_digits_than_the_stated_error_needs_are_refused() -> None:
    import torch

    belief = Belief.from_counts(joint(1).astype(int), NAMES)
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(InputError, match="fewer digits"):
            DeviceSampler.of(belief, tables("grr", 1.0), "secret", "cpu", 3).block(10, 0.0)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_what_single_precision_cannot_hold_is_refused() -> None:
    belief = Belief.from_counts(joint(1).astype(int), NAMES)
    with pytest.raises(InputError, match="use the device 'cpu'"):
        DeviceSampler.of(belief, tables("grr", 60.0), "secret", "cuda", 3)
    with pytest.raises(InputError, match="smoothing=0"):
        DeviceSampler.of(
            Belief.from_counts(joint(1).astype(int), NAMES, smoothing=1), {}, "secret", "cuda", 3
        )
