"""Leakage under prior knowledge by brute force: every pair of values, plain sums, a fine grid of answers."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product

import numpy as np


def leakage(
    joint: np.ndarray,
    answers: dict[tuple[int, ...], tuple[float, ...]],
    target: int,
    known: tuple[int, ...],
    scale: float,
) -> float:
    """The largest log-ratio over known values, target values and answers near the possible ones."""
    records = [record for record in answers if joint[record] > 0]
    axes = [sorted({answers[record][k] for record in records}) for k in range(len(answers[records[0]]))]
    grid = list(product(*(candidates(axis, scale) for axis in axes)))
    worst = 0.0
    for values in {tuple(record[k] for k in known) for record in records}:
        laws: dict[int, list[tuple[tuple[float, ...], float]]] = {}
        for record in records:
            if tuple(record[k] for k in known) == values:
                laws.setdefault(record[target], []).append((answers[record], float(joint[record])))
        for first, second in product(laws.values(), laws.values()):
            for r in grid:
                worst = max(worst, density(first, r, scale) - density(second, r, scale))
    return worst


def candidates(axis: list[float], scale: float) -> list[float]:
    """All sums, points between them and far beyond."""
    between = [a + share * (b - a) for a, b in pairwise(axis) for share in (0.25, 0.5, 0.75)]
    return [axis[0] - 9 * scale, *axis, *between, axis[-1] + 9 * scale]


def density(law: list[tuple[tuple[float, ...], float]], r: tuple[float, ...], scale: float) -> float:
    mass = math.fsum(weight for _, weight in law)
    parts = [
        weight / mass * math.exp(-math.fsum(abs(a - b) for a, b in zip(r, at, strict=True)) / scale)
        for at, weight in law
    ]
    return math.log(math.fsum(parts))


def sums(parts: list[list[float]]) -> dict[tuple[int, ...], tuple[float, ...]]:
    """The answer to every record of an additive query of one number."""
    return {
        codes: (math.fsum(part[code] for part, code in zip(parts, codes, strict=True)),)
        for codes in product(*(range(len(part)) for part in parts))
    }


def adversaries(count: int) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (target, known)
        for target in range(count)
        for size in range(count)
        for known in combinations([j for j in range(count) if j != target], size)
    ]
