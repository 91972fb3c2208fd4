"""The owner's side: every attribute on its own through noise with a budget, the secret's the strictest.

Numerical noise is added to the numbers (Laplace, Gaussian). Non-numerical noise reports an interval that is
likelier the nearer it is. In the time domain values are swapped between the records of one entity; that has
no budget, and none is claimed: the level is the share of values that are swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from sidelight.attacks.numbers import Numbers
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.foundation.randomness import derive_seed, randomness
from sidelight.mechanisms import create

Family = Literal["laplace", "gaussian", "gaussian-classic", "interval", "swap"]
FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True)
class Noise:
    """A family of noise and how the budgets are shared out.

    Attributes:
        family: "laplace", "gaussian" (least deviation), "gaussian-classic" (budgets below 1 only),
            "interval" or "swap".
        leniency: every other attribute's budget over that of the secret, at least 1.
        delta: of the Gaussian families.
        intervals: how many intervals an attribute is cut into.
        clips: whether reports are cut to 0..1, the public range of the numbers, before anyone sees them.
    """

    family: Family = "laplace"
    leniency: float = 1.0
    delta: float = 1e-5
    intervals: int = 16
    clips: bool = False

    def __post_init__(self) -> None:
        check_choice("noise", self.family, FAMILIES)
        check_number("leniency", self.leniency, at_least=1)
        check_number("delta", self.delta, above=0, below=1)
        check_whole("intervals", self.intervals, at_least=2, at_most=1024)

    @property
    def has_budget(self) -> bool:
        """Whether a level is a budget; a swap has none."""
        return self.family != "swap"

    def check_level(self, level: float) -> float:
        """Return a level after checking it: a budget, or a share of swapped values."""
        if self.has_budget:
            return check_number("epsilon", level, above=0)
        share = check_number("share", level, above=0)
        if share > 1:
            raise invalid("share", "a share of swapped values, at most 1", level)
        return share

    def budgets(self, names: Sequence[str], secrets: Sequence[str], level: float) -> dict[str, float]:
        """Return the budget of every attribute, none for a swap."""
        if not self.has_budget:
            return {}
        return {name: level if name in secrets else level * self.leniency for name in names}

    def describe(self, level: float) -> str:
        """Say in words what is released."""
        if not self.has_budget:
            return f"{level:.0%} of the values swapped within an entity (no budget is claimed)"
        others = f", {level * self.leniency:g} on the others" if self.leniency > 1 else " on every attribute"
        return f"{self.family} noise with budget {level:g}{others}"


@dataclass(frozen=True, eq=False)
class NoisyNumbers:
    """What an attacker sees of numbers, (n, attributes); they may lie outside 0..1.

    The level is the secrets' budget, or the share of swapped values; a simulation has its noise from a seed.
    """

    names: tuple[str, ...]
    values: Array
    noise: Noise
    level: float
    secrets: tuple[str, ...]
    is_simulation: bool

    def __len__(self) -> int:
        return len(self.values)


def protect(
    numbers: Numbers, noise: Noise, level: float, secrets: Sequence[str], *, seed: int | None = None
) -> NoisyNumbers:
    """Release numbers under noise; secure without a seed, a simulation with one.

    The level is the budget of the secrets, or the share of swapped values.
    """
    noise.check_level(level)
    for name in secrets:
        numbers.index(name)
    values = perturb(numbers, noise, level, secrets, seed)
    return NoisyNumbers(numbers.names, values, noise, level, tuple(secrets), seed is not None)


def perturb(numbers: Numbers, noise: Noise, level: float, secrets: Sequence[str], seed: int | None) -> Array:
    """Return the numbers under noise, shape (n, attributes)."""
    if noise.family == "swap":
        return swap_within(numbers, level, seed)
    out = np.empty_like(numbers.values)
    budgets = noise.budgets(numbers.names, secrets, level)
    for budget in sorted(set(budgets.values())):  # attributes of one budget share a mechanism, made once
        columns = [i for i, name in enumerate(numbers.names) if budgets[name] == budget]
        flat = numbers.values[:, columns].reshape(-1)
        noisy = _randomised(flat, noise, budget, derive_seed(seed, f"budget {budget!r}"))
        out[:, columns] = noisy.reshape(len(numbers), len(columns))
    return np.clip(out, 0.0, 1.0) if noise.clips else out


def _randomised(values: Array, noise: Noise, budget: float, seed: int | None) -> Array:
    """Return numbers in 0..1 through the mechanism of the family."""
    if noise.family == "interval":
        edges = [i / noise.intervals for i in range(1, noise.intervals)]
        mechanism = create("interval", noise.intervals, budget, edges=edges)
        codes = mechanism.randomise(values, seed=seed).values
        return np.asarray((codes + 0.5) / noise.intervals)
    calibration = {"gaussian": "analytic", "gaussian-classic": "classic"}.get(noise.family)
    further: dict[str, Any] = {"delta": noise.delta, "calibration": calibration} if calibration else {}
    mechanism = create("gaussian" if calibration else "laplace", 2, budget, lower=0.0, upper=1.0, **further)
    return np.asarray(mechanism.randomise(values, seed=seed).values)


def swap_within(numbers: Numbers, share: float, seed: int | None) -> Array:
    """Return the numbers with a share of each attribute's values permuted within each entity.

    Attributes are swapped independently of each other. No budget follows: whoever knows an entity's other
    values knows what remains.
    """
    if numbers.entities is None:
        raise InputError("swaps need to know whose record each is; name the entities.")
    out = numbers.values.copy()
    for column, name in enumerate(numbers.names):
        chosen = np.flatnonzero(_evenly(f"swap {name}", len(out), seed) < share)
        whose = numbers.entities[chosen]
        source = chosen[np.lexsort((_evenly(f"order {name}", len(out), seed)[chosen], whose))]
        # Both orders list entities alike, so values stay within one.
        target = chosen[np.argsort(whose, kind="stable")]
        out[target, column] = numbers.values[source, column]
    return out


def _evenly(label: str, count: int, seed: int | None) -> Array:
    """Return numbers spread evenly over 0..1, secure without a seed."""
    words = randomness(seed, f"attacks/{label}").words(0, count)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)  # 53 bits are what a double holds exactly
