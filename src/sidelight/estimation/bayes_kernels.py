"""Compiled loops of the posterior mean on the simplex: see `bayes` for what they compute.

A posterior is a product of factors given their sum. Either the sum's density is expanded at one point, from
the factors' cumulants, or, where noise is wide, factors are added up on a lattice.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sidelight.estimation.bayes_cumulants import cumulants
from sidelight.foundation.arrays import Array

_FEW = 3.0  # shapes that add up to less have modes in corners
_LATTICE, _MIXTURE_LATTICE = 1024, 256  # values whose factors are added up there at most
_CELLS_PER_DEVIATION, _LEAST_CELLS = 3.0, 32
_CLIP = 0.7
_NOTHING = 1e-15  # beside the largest mass, which is 1
_ROUNDS = 80
_CLOSE = 1e-9


@njit(cache=True)
def _tilted(
    f: float, s: float, tilt: float, shape: float, rates: Array, weights: Array, tables: tuple[Array, Array],
    cell: Array, out: Array,
) -> None:  # fmt: skip
    """Write the log-integral and cumulants of one factor: prior x e^(-(x - f)^2 / 2s^2) x e^(tilt x).

    The prior is the mixture of x^(shape-1) e^(-rate x) / Gamma(shape) with these log-weights: with x = sy the
    factor is M at t = f/s + (tilt - rate) s.
    """
    base = shape * math.log(s) - 0.5 * (f / s) ** 2
    if len(rates) == 1:
        cumulants(shape, f / s + (tilt - rates[0]) * s, tables[0], tables[1], cell)
        out[0] = cell[0] + weights[0] + base
        out[1], out[2], out[3], out[4] = s * cell[1], s * s * cell[2], s**3 * cell[3], s**4 * cell[4]
        return
    top, total, m1, m2, m3, m4 = -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0
    middle = 0.0  # moments are about the first part's mean: beside little noise, those about 0 cancel
    for j in range(len(rates)):
        cumulants(shape, f / s + (tilt - rates[j]) * s, tables[0], tables[1], cell)
        height = cell[0] + weights[j]
        if j == 0:
            middle = cell[1]
        if height > top:
            shrink = math.exp(top - height)
            total, m1, m2, m3, m4 = total * shrink, m1 * shrink, m2 * shrink, m3 * shrink, m4 * shrink
            top = height
        p = math.exp(height - top)
        if p > 1e-14:
            c1, c2, c3, c4 = cell[1] - middle, cell[2], cell[3], cell[4]
            total += p
            m1 += p * c1
            m2 += p * (c2 + c1 * c1)
            m3 += p * (c3 + 3 * c2 * c1 + c1**3)
            m4 += p * (c4 + 4 * c3 * c1 + 3 * c2 * c2 + 6 * c2 * c1 * c1 + c1**4)
    m1, m2, m3, m4 = m1 / total, m2 / total, m3 / total, m4 / total
    out[0] = top + math.log(total) + base
    out[1], out[2] = s * (middle + m1), s * s * max(m2 - m1 * m1, 1e-300)
    out[3] = s**3 * (m3 - 3 * m1 * m2 + 2 * m1**3)
    out[4] = s**4 * (m4 - 4 * m1 * m3 - 3 * m2 * m2 + 12 * m1 * m1 * m2 - 6 * m1**4)


@njit(cache=True)
def saddlepoint(
    f: Array, s: Array, shapes: Array, rates: Array, weights: Array, tilt: float,
    tables: tuple[Array, Array], mean: Array, variance: Array,
) -> tuple[float, float]:  # fmt: skip
    """Write means and variances of factors that add up to 1; return the log-density of that, and the tilt.

    Each factor is tilted by e^(tilt x) until the means add up to 1, and the density of the sum expanded there
    (Daniels 1954), as is its derivative by every factor. `tilt` is where the search begins.
    """
    k = len(f)
    cell, out, each = np.empty(5), np.empty(5), np.empty((k, 3))
    low, high = -np.inf, np.inf
    total, spread, third, fourth, height = 0.0, 1.0, 0.0, 0.0, 0.0
    for _ in range(_ROUNDS):
        total, spread, third, fourth, height = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(k):
            _tilted(f[i], s[i], tilt, shapes[i], rates, weights, tables, cell, out)
            height += out[0]
            total += out[1]
            spread += out[2]
            third += out[3]
            fourth += out[4]
            each[i, 0], each[i, 1], each[i, 2] = out[1], out[2], out[3]
        if abs(total - 1.0) < _CLOSE:
            break
        if total > 1.0:
            high = tilt
        else:
            low = tilt
        # Far off, the logarithm of the sum is nearer to linear than the sum.
        move = math.log(total) * total / spread if total > 2.0 else (total - 1.0) / spread
        after = tilt - move
        if not low < after < high:
            if math.isinf(low):
                after = tilt - max(1.0, abs(tilt))
            elif math.isinf(high):
                after = tilt + max(1.0, abs(tilt))
            else:
                after = (low + high) / 2
        tilt = after
    _write_moments(each, spread, third, mean, variance)
    correction = min(max(fourth / (8 * spread**2) - 5 * third**2 / (24 * spread**3), -_CLIP), _CLIP)
    return height - tilt - 0.5 * math.log(2 * math.pi * spread) + correction, tilt


@njit(cache=True)
def _write_moments(each: Array, spread: float, third: float, mean: Array, variance: Array) -> None:
    """Write means and variances given the sum, of each factor's cumulants and those of the sum."""
    whole = 0.0
    for i in range(len(each)):
        moved = each[i, 0] - (each[i, 2] / spread - each[i, 1] * third / spread**2) / 2
        mean[i] = max(moved, 0.0)
        variance[i] = max(each[i, 1] - each[i, 1] ** 2 / spread, 0.0)
        whole += mean[i]
    for i in range(len(each)):
        mean[i] /= whole


@njit(cache=True)
def cells_for(s: Array) -> int:
    """Return how many cells a lattice of 0 to 1 needs beside this noise, 0 where it is too narrow for one."""
    least = s.min()
    if least < 0.05 or len(s) > _LATTICE:
        return 0
    cells: int = 8 * math.ceil(_CELLS_PER_DEVIATION / (8 * least))
    return max(cells, _LEAST_CELLS)


@njit(cache=True)
def _power_mass(a: float, n: int, out: Array) -> None:
    """Write the log-mass of x^(a-1) / Gamma(a) at the ends of n cells, so that mass and mean are exact."""
    offset = a * math.log(n) + math.lgamma(a + 2.0)
    for j in range(n + 1):
        own = 1.0 if j == 0 else (j + 1) ** (a + 1) - 2 * j ** (a + 1) + (j - 1) ** (a + 1)
        out[j] = math.log(own) - offset


@njit(cache=True)
def _mixture_mass(rates: Array, weights: Array, n: int, out: Array) -> None:
    """Do as `_power_mass` for a mixture of e^(-rate x) with these log-weights."""
    out[:] = 0.0
    for i in range(len(rates)):
        step = rates[i] / n
        away = -math.expm1(-step)
        scale = math.exp(weights[i]) / rates[i]
        if step < 1e-4:
            first, rest = scale * step / 2, scale * step
        else:
            first, rest = scale * (1 - away / step), scale * away * away / step
        out[0] += first
        for j in range(1, n + 1):
            out[j] += rest * math.exp(-step * (j - 1))
    for j in range(n + 1):
        out[j] = math.log(max(out[j], 1e-300))


@njit(cache=True)
def on_lattice(f: Array, s: Array, logs: Array, mean: Array, variance: Array) -> float:
    """Do as `saddlepoint` for wide noise, by adding up the factors on a lattice of 0 to 1.

    Small shapes have a mode at every corner, which no expansion at one point sees. `logs` are the prior's
    log-masses at the ends of cells: a row for every value, or one for all.
    """
    k, n = len(f), logs.shape[1] - 1
    mass = np.empty((k, n + 1))
    offset = 0.0
    for i in range(k):
        top, row = -np.inf, min(i, len(logs) - 1)
        for j in range(n + 1):
            mass[i, j] = logs[row, j] - 0.5 * ((j / n - f[i]) / s[i]) ** 2
            top = max(top, mass[i, j])
        for j in range(n + 1):
            mass[i, j] = math.exp(mass[i, j] - top)
        offset += top
    before, after = np.zeros((k + 1, n + 1)), np.zeros((k + 1, n + 1))
    before[0, 0], after[k, 0] = 1.0, 1.0
    for i in range(k):
        offset += _add(mass[i], before[i], before[i + 1])
        _add(mass[k - 1 - i], after[k - i], after[k - 1 - i])
    rest = np.empty(n + 1)
    for i in range(k):
        _add(before[i], after[i + 1], rest)
        total, m1, m2 = 0.0, 0.0, 0.0
        for j in range(n + 1):
            p = mass[i, j] * rest[n - j]
            total += p
            m1 += p * j
            m2 += p * j * j
        total = max(total, 1e-300)
        mean[i] = m1 / (total * n)
        variance[i] = max(m2 / (total * n * n) - mean[i] ** 2, 0.0)
    return offset + math.log(max(before[k, n], 1e-300)) + math.log(n)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _add(one: Array, other: Array, out: Array) -> float:
    """Write the law of the sum of two numbers on the lattice, its largest mass 1; return the log of that."""
    n = len(one)
    out[:] = 0.0
    for i in range(n):
        if one[i] >= _NOTHING:
            for j in range(n - i):
                out[i + j] += one[i] * other[j]
    top = out.max()
    if top > 0.0:
        out /= top
    return math.log(max(top, 1e-300))


@njit(cache=True)
def dirichlets(
    f: Array, s: Array, shapes: Array, tables: tuple[Array, Array], tilts: Array,
    means: Array, variances: Array, evidence: Array,
) -> None:  # fmt: skip
    """Write posterior means, variances and log-evidence under Dirichlet(shapes[j]) for every row of shapes.

    `tilts` hold where each search begins, and then where it ended.
    """
    none, cells = np.zeros(1), cells_for(s)
    logs = np.empty((len(f), cells + 1))
    for j in range(len(shapes)):
        whole = shapes[j].sum()
        if cells > 0 and (whole < _FEW or (len(f) < 7 and shapes[j].max() < _FEW)):
            for i in range(len(f)):
                if i == 0 or shapes[j, i] != shapes[j, i - 1]:
                    _power_mass(shapes[j, i], cells, logs[i])
                else:
                    logs[i] = logs[i - 1]
            evidence[j] = on_lattice(f, s, logs, means[j], variances[j])
        else:
            evidence[j], tilts[j] = saddlepoint(
                f, s, shapes[j], none, none, tilts[j], tables, means[j], variances[j]
            )
        evidence[j] += math.lgamma(whole)


@njit(cache=True)
def mixture(
    f: Array, s: Array, rates: Array, weights: Array, tables: tuple[Array, Array], mean: Array,
    variance: Array, shape: float = 1.0,
) -> float:  # fmt: skip
    """Write means and variances under a mixture of x^(shape-1) e^(-rate x) / Gamma(shape) for each value.

    Returns the log-evidence; the density at 1 of the prior's own sum is not taken off.
    """
    cells = cells_for(s)
    if shape == 1.0 and cells > 0 and len(f) <= _MIXTURE_LATTICE:
        logs = np.empty((1, cells + 1))
        _mixture_mass(rates, weights, cells, logs[0])
        return on_lattice(f, s, logs, mean, variance)
    height, _ = saddlepoint(f, s, np.full(len(f), shape), rates, weights, 0.0, tables, mean, variance)
    return height


@njit(cache=True)
def each_dirichlets(
    f: Array, s: Array, shapes: Array, tables: tuple[Array, Array], tilts: Array,
    means: Array, variances: Array, evidence: Array,
) -> None:  # fmt: skip
    """Do as `dirichlets` for every row of f and s; shapes and tilts have as many parts, or one for all."""
    for i in range(len(f)):
        part = min(i, len(shapes) - 1)
        dirichlets(f[i], s[i], shapes[part], tables, tilts[part].copy(), means[i], variances[i], evidence[i])


@njit(cache=True)
def each_mixture(
    f: Array, s: Array, rates: Array, weights: Array, tables: tuple[Array, Array], place: int,
    means: Array, variances: Array, evidence: Array,
) -> None:  # fmt: skip
    """Do as `mixture` for every row of f and s; write what is found at this place of each row's priors."""
    for i in range(len(f)):
        evidence[i, place] = mixture(f[i], s[i], rates, weights, tables, means[i, place], variances[i, place])


@njit(cache=True)
def projected(f: Array) -> Array:
    """Return the nearest frequencies: `foundation.arrays.to_simplex` of one row, without its overhead."""
    given = f - f.max()
    falling = np.sort(given)
    total, least = 0.0, 0.0
    for rank in range(1, len(f) + 1):
        total += falling[-rank]
        if falling[-rank] - (total - 1.0) / rank > 0:
            least = (total - 1.0) / rank
    result: Array = np.maximum(given - least, 0.0)
    return result


@njit(cache=True)
def _rest(variances: Array, inverse: float, largest: int) -> float:
    """Return by how much the shares p add up to more than 1; `largest` takes the upper root, -1 for none."""
    total = 0.0 if largest >= 0 else -1.0
    for i in range(len(variances)):
        share = 2 * variances[i] * inverse / (1 + math.sqrt(max(1 - 4 * variances[i] * inverse, 0.0)))
        total += -share if i == largest else share
    return total


@njit(cache=True)
def spread_apart(variances: Array) -> Array:
    """Return the variances of independent noise that has these once its sum is known to be 0.

    With v = Vp, p adding up to 1, what is left is Vp(1 - p). Each p is the smaller root, but for the largest
    where the smaller ones cannot add up to 1. Where no V does, as no such noise has these variances, they are
    those of values that are alike.
    """
    k, largest = len(variances), int(variances.argmax())
    most, whole = variances[largest], variances.sum()
    if k <= 2 or most <= 0.0 or whole <= 2 * most:
        return variances * (k / max(k - 1.0, 1.0))
    upper = -1 if _rest(variances, 0.25 / most, -1) >= 0 else largest
    low, high = 0.0, 0.25 / most
    for _ in range(60):
        middle = (low + high) / 2
        # Smaller roots add up to more as 1/V grows; with the upper root for the largest it is the reverse.
        if (_rest(variances, middle, upper) > 0) == (upper < 0):
            high = middle
        else:
            low = middle
    inverse = (low + high) / 2
    result = np.empty(k)
    for i in range(k):
        root = math.sqrt(max(1 - 4 * variances[i] * inverse, 0.0))
        result[i] = (1 + root) / (2 * inverse) if i == upper else 2 * variances[i] / (1 + root)
    return result


@njit(cache=True)
def parts(f: Array, s: Array, rates: Array, shape: float, tables: tuple[Array, Array]) -> Array:
    """Return the log-integral of every value's factor, (values, rates).

    The prior is x^(shape-1) e^(-rate x) / Gamma(shape).
    """
    logs, cell = np.empty((len(f), len(rates))), np.empty(5)
    for i in range(len(f)):
        for j in range(len(rates)):
            cumulants(shape, f[i] / s[i] - rates[j] * s[i], tables[0], tables[1], cell)
            logs[i, j] = cell[0] + shape * math.log(s[i]) - 0.5 * (f[i] / s[i]) ** 2
    return logs
