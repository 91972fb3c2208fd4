"""Cumulants of x^(a-1) e^(-x^2/2 + tx) on x > 0, which `bayes_kernels` adds up: a table and expansions.

Their integral M_a(t) is a parabolic cylinder function (DLMF 12.5.1). Its logarithm h has the derivative u,
the mean, and by parts u' = a + tu - u^2, so that one table of h and u holds all cumulants. Shapes lie 12 to a
decade from 1e-4 to 10; between them both are interpolated in ln a. Larger shapes, and t beyond 7, take
Laplace's method with second-order terms.
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
