"""Compiled loops of the posterior mean on the simplex: see `bayes` for what they compute.

Everything rests on M_a(t), the integral of x^(a-1) e^(-x^2/2 + tx) over x > 0 (a parabolic cylinder function,
DLMF 12.5.1). Its logarithm h has the derivative u, the mean, and by parts u' = a + tu - u^2, so that one
table of h and u holds all cumulants. Shapes lie 12 to a decade from 1e-4 to 10; between them both are
interpolated in ln a. Larger shapes, and t beyond 7, take Laplace's method with second-order terms.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sidelight.foundation.arrays import Array

LEAST = 1e-4
"""The least shape; a smaller one is taken for it."""
_SMALL = 10.0
_PER_DECADE = 12
_SHAPES = 5 * _PER_DECADE + 1
_REACH = 40
_STEP = 0.125
_NODES = (_REACH + 8) * 8 + 1
_FINE = 8  # steps of the Runge-Kutta solution between two nodes
_FAR = -8.0
_NEAR = 7.0
_DEPTH = 12  # of the continued fraction left of _FAR
_FEW = 3.0  # shapes that add up to less have modes in corners
_LATTICE, _MIXTURE_LATTICE = 1024, 256  # values whose factors are added up there at most
_CLIP = 0.7
_NOTHING = 1e-20  # beside the largest mass, which is 1
_ROUNDS = 80
_CLOSE = 1e-9


@njit(cache=True)
def _fraction(a: float, t: float) -> float:
    """Return u for t < 0 by its continued fraction, u_a = a / (u_(a+1) - t)."""
    last = a + _DEPTH
    u = (t + math.sqrt(t * t + 4.0 * last)) / 2.0
    for i in range(_DEPTH - 1, -1, -1):
        u = (a + i) / (u - t)
    return u


@njit(cache=True)
def make_tables() -> tuple[Array, Array]:
    """Return (h - ln Gamma(a)) / a and u / a by shape and t, solved forward from t = -40.

    Forward the equation is stable: u' = a + tu - u^2 pulls neighbours together on both sides of 0.
    """
    heights, means = np.empty((_SHAPES, _NODES)), np.empty((_SHAPES, _NODES))
    for shape in range(_SHAPES):
        a = LEAST * 10.0 ** (shape / _PER_DECADE)
        t, q = -float(_REACH), 1.0 / _REACH**2
        u = _fraction(a, t)
        first = -a * (a + 1) / 2 * q
        second = a * (a + 1) * (a + 2) * (a + 3) / 8 * q * q
        third = -a * (a + 1) * (a + 2) * (a + 3) * (a + 4) * (a + 5) / 48 * q**3
        h = -a * math.log(-t) + math.log1p(first + second + third)
        for node in range(_NODES):
            heights[shape, node], means[shape, node] = h / a, u / a
            d = _STEP / _FINE
            for _ in range(_FINE):
                k1 = a + t * u - u * u
                m = t + d / 2
                v = u + d / 2 * k1
                k2 = a + m * v - v * v
                v = u + d / 2 * k2
                k3 = a + m * v - v * v
                v = u + d * k3
                k4 = a + (t + d) * v - v * v
                after = u + d / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                slope = a + (t + d) * after - after * after
                h += d / 2 * (u + after) + d * d / 12 * (k1 - slope)  # Hermite's rule for the integral of u
                u, t = after, t + d
            t = -_REACH + (node + 1) * _STEP
    return heights, means


@njit(cache=True)
def _looked_up(shape: int, a: float, t: float, heights: Array, means: Array) -> tuple[float, float]:
    """Return (h - ln Gamma(a)) / a and u / a at a shape of the table, by cubic Hermite interpolation in t."""
    place = (t + _REACH) / _STEP
    j = min(int(place), _NODES - 2)
    r = place - j
    t0 = j * _STEP - _REACH
    w0, w1 = means[shape, j], means[shape, j + 1]
    d0, d1 = 1 + t0 * w0 - a * w0 * w0, 1 + (t0 + _STEP) * w1 - a * w1 * w1
    r2, r3 = r * r, r * r * r
    p, q, b, c = 2 * r3 - 3 * r2 + 1, 3 * r2 - 2 * r3, (r3 - 2 * r2 + r) * _STEP, (r3 - r2) * _STEP
    h = p * heights[shape, j] + b * w0 + q * heights[shape, j + 1] + c * w1
    return h, p * w0 + b * d0 + q * w1 + c * d1


@njit(cache=True)
def cumulants(a: float, t: float, heights: Array, means: Array, out: Array) -> None:
    """Write ln(M_a(t) / Gamma(a)) and the first four cumulants of x^(a-1) e^(-x^2/2 + tx) on x > 0."""
    if a >= _SMALL or t > _NEAR:
        _laplace(a, t, out)
        return
    if t < -_REACH:
        q = 1.0 / (t * t)
        first, second = -a * (a + 1) / 2 * q, a * (a + 1) * (a + 2) * (a + 3) / 8 * q * q
        u = _fraction(a, t)
        out[0], out[1], out[2] = -a * math.log(-t) + math.log1p(first + second), u, a + t * u - u * u
        out[3], out[4] = -2 * a * q / t * (1 - 6 * (a + 1) * q), 6 * a * q * q
        return
    place = math.log10(max(a, LEAST) / LEAST) * _PER_DECADE
    shape = int(place + 0.5)
    if abs(place - shape) < 1e-9:
        h, w = _looked_up(shape, a, t, heights, means)
    else:
        start = min(max(int(place) - 1, 0), _SHAPES - 4)
        h, w = 0.0, 0.0
        for i in range(4):  # Lagrange's cubic in ln a
            weight = 1.0
            for j in range(4):
                if i != j:
                    weight *= (place - start - j) / (i - j)
            own = LEAST * 10.0 ** ((start + i) / _PER_DECADE)
            height, mean = _looked_up(start + i, own, t, heights, means)
            h += weight * height
            w += weight * mean
    h *= a
    # Left of _FAR the differences below lose digits that interpolation does not have.
    u = _fraction(a, t) if t < _FAR else a * w
    d = max(a + t * u - u * u, 1e-300)
    d2 = u + t * d - 2 * u * d
    out[0], out[1], out[2], out[3] = h, u, d, d2
    out[4] = 2 * d + t * d2 - 2 * d * d - 2 * u * d2


@njit(cache=True)
def _laplace(a: float, t: float, out: Array) -> None:
    b = a - 1.0
    root = math.sqrt(t * t + 4 * b)
    x = (t + root) / 2 if t > 0 else 2 * b / (root - t)
    k2, k3, k4 = 1 + b / (x * x), 2 * b / x**3, -6 * b / x**4
    peak = b * math.log(x) - x * x / 2 + t * x + 0.5 * math.log(2 * math.pi / k2)
    out[0] = peak + 5 * k3 * k3 / (24 * k2**3) + k4 / (8 * k2 * k2) - math.lgamma(a)
    out[1] = x + k3 / (2 * k2 * k2)
    out[2] = (1 + k4 / (2 * k2 * k2) + k3 * k3 / k2**3) / k2
    out[3] = k3 / k2**3
    out[4] = (k4 + 3 * k3 * k3 / k2) / k2**4


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
    for j in range(len(rates)):
        cumulants(shape, f / s + (tilt - rates[j]) * s, tables[0], tables[1], cell)
        height = cell[0] + weights[j]
        if height > top:
            shrink = math.exp(top - height)
            total, m1, m2, m3, m4 = total * shrink, m1 * shrink, m2 * shrink, m3 * shrink, m4 * shrink
            top = height
        p = math.exp(height - top)
        if p > 1e-14:
            c1, c2, c3, c4 = cell[1], cell[2], cell[3], cell[4]
            total += p
            m1 += p * c1
            m2 += p * (c2 + c1 * c1)
            m3 += p * (c3 + 3 * c2 * c1 + c1**3)
            m4 += p * (c4 + 4 * c3 * c1 + 3 * c2 * c2 + 6 * c2 * c1 * c1 + c1**4)
    m1, m2, m3, m4 = m1 / total, m2 / total, m3 / total, m4 / total
    out[0] = top + math.log(total) + base
    out[1], out[2] = s * m1, s * s * max(m2 - m1 * m1, 1e-300)
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
    whole = 0.0
    for i in range(k):
        moved = each[i, 0] - (each[i, 2] / spread - each[i, 1] * third / spread**2) / 2
        mean[i] = max(moved, 0.0)
        variance[i] = max(each[i, 1] - each[i, 1] ** 2 / spread, 0.0)
        whole += mean[i]
    for i in range(k):
        mean[i] /= whole
    correction = min(max(fourth / (8 * spread**2) - 5 * third**2 / (24 * spread**3), -_CLIP), _CLIP)
    return height - tilt - 0.5 * math.log(2 * math.pi * spread) + correction, tilt


@njit(cache=True)
def cells_for(s: Array) -> int:
    """Return how many cells a lattice of 0 to 1 needs beside this noise, 0 where it is too narrow for one."""
    least = s.min()
    return 0 if least < 0.05 or len(s) > _LATTICE else 96 if least < 0.08 else 64


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
    variance: Array,
) -> float:  # fmt: skip
    """Write means and variances under a mixture of e^(-rate x) for each value; return the log-evidence.

    The density at 1 of the prior's own sum is not taken off.
    """
    cells = cells_for(s)
    if cells > 0 and len(f) <= _MIXTURE_LATTICE:
        logs = np.empty((1, cells + 1))
        _mixture_mass(rates, weights, cells, logs[0])
        return on_lattice(f, s, logs, mean, variance)
    height, _ = saddlepoint(f, s, np.ones(len(f)), rates, weights, 0.0, tables, mean, variance)
    return height


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
def parts(f: Array, s: Array, rates: Array, tables: tuple[Array, Array]) -> Array:
    """Return the log-integral of every value's factor with e^(-rate x) for a prior, (values, rates)."""
    logs, cell = np.empty((len(f), len(rates))), np.empty(5)
    for i in range(len(f)):
        for j in range(len(rates)):
            cumulants(1.0, f[i] / s[i] - rates[j] * s[i], tables[0], tables[1], cell)
            logs[i, j] = cell[0] + math.log(s[i]) - 0.5 * (f[i] / s[i]) ** 2
    return logs
