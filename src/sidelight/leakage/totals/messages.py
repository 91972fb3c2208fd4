"""The largest ratio of two weighted sums of messages whose log-ratios are bounded pair by pair.

A message of a subtree is a likelihood v over the values of the attribute above it. If D[a, b] bounds
ln v_a - ln v_b over all reports of the subtree, then v lies in the cone {v : v_a <= e^D[a, b] v_b}. What the
reports of an attribute and everything below it say is at most the largest ratio g.v / h.v over that cone,
with g, h = Pr(value | x) Pr(report | value) for two values x of the attribute above.

Such a ratio is largest on an extreme ray. D is first made to obey the triangle inequality by shortest paths,
which leaves the cone as it is. Then each extreme ray has a spanning tree of tight constraints in which every
value is only ever the larger or only ever the smaller end: at most two rays for each labelled tree (Cayley:
t^(t-2) trees). Up to `LARGEST_LISTED` values all of them are listed once and serve every g and h. Beyond
there are boxes, which keep the constraints of one value at a time and cost little, and linear programs
(Charnes and Cooper 1962), of which only the dual multipliers are used: they prove the bound whatever the
solver's tolerance.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations, product

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.mechanisms.channel.logs import log_pairs, logs_of

LARGEST_LISTED = 6
_TIGHT = 1e-10  # sums of up to six bounds are rounded; a ray that fails by less is kept, which is safe
_LARGEST_EXPONENT = 700.0  # e^709 overflows
_FAR = 1e4  # stands for an unbounded log-ratio: the exponential of its negative is 0


def closed(spreads: Array) -> Array:
    """Return the least bounds that the given ones imply, which obey the triangle inequality.

    v_a <= e^D[a, k] v_k <= e^(D[a, k] + D[k, b]) v_b for every k, so the cone stays as it is.
    """
    bounds = spreads.copy()
    for k in range(len(bounds)):  # shortest paths (Floyd 1962, Warshall 1962)
        bounds = np.minimum(bounds, bounds[:, k, None] + bounds[None, k, :])
    return bounds


def column_pairs(columns: Array) -> tuple[Array, Positions]:
    """Return the largest log-ratio within a column for every ordered pair of rows, and that column."""
    return log_pairs(logs_of(columns))


def range_pairs(rows: Array, reports: Array, spread: float) -> Array:
    """Return the bound for messages of which only the largest log-ratio `spread` is known, shape (m, m).

    With the largest v_a = 1 each lies between e^-spread and 1, and the best message takes one of the two.
    `rows` (m, t) is Pr(value | x), `reports` (t, reports) Pr(report | value) up to a factor for each report.
    """
    lows = np.full((1, len(reports)), math.exp(-spread))
    return _boxed(rows, reports, lows, np.ones_like(lows))


def box_pairs(rows: Array, reports: Array, spreads: Array) -> Array:
    """Return the bound that keeps the constraints with one value b at a time, the least over b, shape (m, m).

    With v_b = 1 each v_a lies between e^-D[b, a] and e^D[a, b]. The box of `range_pairs` is one more, and
    every report may be bounded by another of these boxes.
    """
    references = np.flatnonzero((spreads < _LARGEST_EXPONENT).all(axis=0))
    whole = np.full((1, len(spreads)), math.exp(-float(spreads.max())))
    lows = np.concatenate([whole, np.exp(-spreads[references])])
    highs = np.concatenate([np.ones_like(whole), np.exp(spreads[:, references].T)])
    return _boxed(rows, reports, lows, highs)


def _boxed(rows: Array, reports: Array, lows: Array, highs: Array) -> Array:
    """Return ln of what `kernels.box_ratios` finds; loaded late, since loading the compiler takes a while."""
    from sidelight.leakage.totals.kernels import box_ratios

    weighted = np.multiply(reports.T[:, None, :], rows, order="C")
    masses = np.ascontiguousarray(weighted.sum(axis=2).T)
    return np.asarray(np.log(box_ratios(weighted, masses, lows, np.ascontiguousarray(highs))))


def ray_columns(rows: Array, reports: Array, spreads: Array) -> Array:
    """Return Pr(report, extreme message | x) up to a factor for each column, report by report.

    The largest log-ratio within a column is the bound.
    """
    logs = extreme_rays(spreads)
    rays = np.where(logs < -_LARGEST_EXPONENT, 0.0, np.exp(logs))  # below, digits are lost: nothing is more
    return np.asarray(rows @ (reports[:, :, None] * rays[:, None, :]).reshape(len(rays), -1))


def extreme_rays(spreads: Array) -> Array:
    """Return the logarithms of the extreme rays of the cone, each with largest entry 0, shape (t, rays)."""
    bounded = np.minimum(spreads, _FAR)
    logs = _ray_paths(len(bounded)) @ bounded.ravel()
    gaps = logs[:, :, None] - logs[:, None, :] - bounded
    feasible = logs[(gaps <= _TIGHT).all(axis=(1, 2))]
    return np.asarray((feasible - feasible.max(axis=1, keepdims=True)).T)


@cache
def _ray_paths(size: int) -> Array:
    """Return which entries of D add up to ln of each value of each candidate, (candidates, size, size^2)."""
    if size == 1:
        return np.zeros((1, 1, 1))
    candidates = []
    for sequence in product(range(size), repeat=size - 2):
        edges = _decoded(sequence, size)
        candidates += [_paths(edges, size, start) for start in (True, False)]
    return np.array(candidates)


def _decoded(sequence: tuple[int, ...], size: int) -> list[tuple[int, int]]:
    """Return the labelled tree of a sequence (Pruefer 1918)."""
    degree = [1 + sequence.count(node) for node in range(size)]
    edges = []
    for node in sequence:
        leaf = degree.index(1)
        edges.append((leaf, node))
        degree[leaf] = 0
        degree[node] -= 1
    first = degree.index(1)
    return [*edges, (first, degree.index(1, first + 1))]


def _paths(edges: list[tuple[int, int]], size: int, is_larger: bool) -> Array:
    """Follow the tree from value 0, which is the larger end of its constraints if `is_larger`."""
    paths = np.zeros((size, size, size))
    larger = {0: is_larger}
    waiting = [0]
    for node in waiting:
        for a, b in edges:
            if node in (a, b) and (other := a + b - node) not in larger:
                larger[other] = not larger[node]
                paths[other] = paths[node]
                step = (node, other) if larger[node] else (other, node)
                paths[(other, *step)] += -1.0 if larger[node] else 1.0
                waiting.append(other)
    return paths.reshape(size, -1)


def programme_pairs(rows: Array, reports: Array, spreads: Array) -> Array:
    """Return the bound for every ordered pair of rows by linear programs, shape (m, m).

    A report is left out as soon as its bound by boxes is below what another report of the pair reaches.
    """
    plain = np.array([box_pairs(rows, report[:, None], spreads) for report in reports.T])
    values = np.zeros(plain.shape[1:])
    for i, j in permutations(range(len(rows)), 2):
        for y in np.argsort(-plain[:, i, j]):
            if plain[y, i, j] <= values[i, j]:
                break
            bound = _programme(rows[i] * reports[:, y], rows[j] * reports[:, y], spreads)
            values[i, j] = max(values[i, j], min(bound, plain[y, i, j]))
    return values


def _programme(g: Array, h: Array, spreads: Array) -> float:
    """Return a proven bound on ln of the largest g.v / h.v over the cone.

    With multipliers f >= 0 of the constraints v_a <= c_ab v_b, every v of the cone has
    g.v <= sum_a (g_a - sum_b f_ab + sum_b c_ba f_ba) v_a, so the largest share of these coefficients in
    those of h bounds the ratio.
    """
    from scipy.optimize import linprog

    larger, smaller = np.nonzero(~np.eye(len(g), dtype=np.bool_) & (spreads < _FAR))
    factors = np.exp(spreads[larger, smaller])
    constraints = np.zeros((len(larger), len(g)))
    number = np.arange(len(larger))
    constraints[number, larger] = 1 / factors
    constraints[number, smaller] = -1.0
    scale = h.sum()
    if scale == 0:
        return math.inf if g.sum() > 0 else 0.0
    solution = linprog(
        -g / scale,
        A_ub=constraints,
        b_ub=np.zeros(len(larger)),
        A_eq=h[None, :] / scale,
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if solution.status != 0:  # nothing is proved; the caller's boxes bound it still
        return math.inf
    multipliers = np.maximum(-solution.ineqlin.marginals, 0.0)
    left = g / scale - multipliers @ constraints
    return _largest_share(left, h / scale, spreads, -float(solution.fun))


def _largest_share(left: Array, h: Array, spreads: Array, reached: float) -> float:
    """Return ln of the largest left_a / h_a, after moving what exceeds `reached` to where it weighs least.

    Moving an amount from a to b multiplies it by e^D[a, b].
    """
    left = left.copy()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for a in np.flatnonzero(left > reached * h):
            excess = left[a] - reached * h[a]
            moved = (left + np.exp(spreads[a]) * excess) / h
            moved[a] = left[a] / h[a]
            b = int(np.nanargmin(np.where(h > 0, moved, np.inf)))
            if b != a:
                left[a] -= excess
                left[b] += math.exp(spreads[a, b]) * excess
        shares = np.where(h > 0, left / h, np.where(left > 0, math.inf, 0.0))
    return math.log(max(float(shares.max()), 1.0))
