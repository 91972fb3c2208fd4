"""The truth by brute force: every report, every subset, plain loops, nothing shared with the package."""

from __future__ import annotations

import math
from itertools import chain, combinations, product

import numpy as np


def sup_ratio(rows: list[list[float]]) -> float:
    """The largest log-ratio within a column of likelihoods, rows being secret values."""
    worst = 0.0
    for column in zip(*rows, strict=True):
        for high, low in product(column, column):
            if high > 0:
                worst = max(worst, math.inf if low == 0 else math.log(high) - math.log(low))
    return worst


def conditional(joint: np.ndarray, secret: int) -> dict[int, dict[tuple[int, ...], float]]:
    """Pr(record | secret value) for the values that can occur."""
    rows: dict[int, dict[tuple[int, ...], float]] = {}
    for record in product(*(range(size) for size in joint.shape)):
        if joint[record] > 0:
            rows.setdefault(record[secret], {})[record] = float(joint[record])
    for row in rows.values():
        mass = math.fsum(row.values())
        for record in row:
            row[record] /= mass
    return rows


def total(joint: np.ndarray, channels: dict[int, np.ndarray], secret: int) -> float:
    """The leakage of attribute number `secret` through the channels of the given attributes."""
    given = conditional(joint, secret)
    reports = product(*(range(channel.shape[1]) for channel in channels.values()))
    rows: list[list[float]] = [[] for _ in given]
    for report in reports:
        for row, records in zip(rows, given.values(), strict=True):
            row.append(
                math.fsum(
                    mass
                    * math.prod(
                        float(channel[record[axis], y])
                        for (axis, channel), y in zip(channels.items(), report, strict=True)
                    )
                    for record, mass in records.items()
                )
            )
    return sup_ratio(rows)


def divergence(rows: np.ndarray, limit: float) -> float:
    """The largest sum of max(0, Pr(report | s) - e^limit Pr(report | s')) over ordered pairs of values."""
    factor = math.exp(min(limit, 700.0))
    return max(float(np.maximum(row - factor * rows, 0.0).sum(axis=1).max()) for row in rows)


def leakage_at(rows: np.ndarray, delta: float) -> float:
    """The smallest limit whose divergence is at most delta, by bisection."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(rows[:, None]) - np.log(rows)
    low, high = 0.0, float(np.max(ratios, where=np.isfinite(ratios), initial=0.0)) + 1e-6
    if divergence(rows, high) > delta:
        return math.inf
    if divergence(rows, low) <= delta:
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if divergence(rows, middle) <= delta else (middle, high)
    return high


def is_leakage_at(rows: np.ndarray, value: float, delta: float) -> bool:
    """Whether the value is the leakage at delta but for 1e-9, of itself or of delta."""
    if math.isinf(value):
        return divergence(rows, value) >= delta * (1 - 1e-9)
    is_kept = divergence(rows, value + 1e-9) <= delta * (1 + 1e-9)
    return is_kept and (value <= 1e-9 or divergence(rows, value - 1e-9) >= delta * (1 - 1e-9))


def subsets(size: int) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(size), r) for r in range(size + 1))


def generic(rows: np.ndarray, epsilon: float) -> float:
    """The worst over all subsets and ordered pairs of rows (CPL, Algorithm 2)."""
    worst = 0.0
    for g, h in product(rows, rows):
        for chosen in subsets(rows.shape[1]):
            top, bottom = math.fsum(g[list(chosen)]), math.fsum(h[list(chosen)])
            if math.isinf(epsilon):
                value = 0.0 if top == 0 else (math.inf if bottom == 0 else math.log(top / bottom))
            else:
                value = math.log((1 + math.expm1(epsilon) * top) / (1 + math.expm1(epsilon) * bottom))
            worst = max(worst, value)
    return worst


def random_joint(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A random joint with zeros and near-zeros."""
    cells = rng.gamma(0.5, size=shape)
    cells[rng.random(shape) < rng.choice([0.0, 0.2, 0.5])] = 0
    cells[rng.random(shape) < rng.choice([0.0, 0.1])] *= 1e-12
    if not cells.any():
        cells.flat[0] = 1
    return cells / cells.sum()


def favouring(size: int, sets: list[tuple[int, ...]], epsilon: float) -> np.ndarray:
    """The likelihoods of reports that favour the given sets, up to a factor for each report."""
    columns = np.full((size, len(sets)), math.exp(-epsilon))
    for column, chosen in enumerate(sets):
        columns[list(chosen), column] = 1.0
    return columns


def randomised_response(size: int, epsilon: float) -> np.ndarray:
    odds = math.exp(epsilon)
    return np.where(np.eye(size, dtype=bool), odds, 1.0) / (odds + size - 1)
