"""The posterior means on the simplex against integration and draws, and what `bayes` makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaincinv, gammaln

from sidelight.estimation.bayes import posterior
from sidelight.estimation.bayes_kernels import cumulants, make_tables, spread_apart

TABLES = make_tables()


@pytest.mark.parametrize("shape", [1e-4, 0.01, 0.23, 1.0, 4.6, 10.0, 40.0])
@pytest.mark.parametrize("t", [-60.0, -30.3, -8.1, -2.2, 0.0, 3.3, 6.9, 7.1, 30.0])
def test_cumulants_are_those_of_the_integral(shape: float, t: float) -> None:
    # In ln x the weight is not singular; below e^-20 it is e^(a ln x) alone.
    place = np.linspace(-20.0, 4.5, 100_000)
    x = np.exp(place)
    logs = shape * place - x * x / 2 + t * x
    density = np.exp(logs - logs.max()) * (place[1] - place[0])
    head = math.exp(shape * place[0] - logs.max()) / shape
    whole = density.sum() + head
    mean = density @ x / whole
    spread = density @ x**2 / whole - mean**2
    out = np.empty(5)
    cumulants(shape, t, *TABLES, out)
    assert out[0] == pytest.approx(math.log(whole) + logs.max() - gammaln(shape), abs=5e-4)
    assert out[1] == pytest.approx(mean, abs=5e-3 * math.sqrt(spread) + 1e-9)
    assert out[2] == pytest.approx(spread, rel=5e-3)


def test_noise_given_its_sum_is_taken_apart(rng: np.random.Generator) -> None:
    for shape in (0.05, 0.5, 5.0):
        for size in (3, 10, 300):
            share = rng.dirichlet(np.full(size, shape))
            np.testing.assert_allclose(
                spread_apart(2 * share * (1 - share)), 2 * share, rtol=1e-5, atol=1e-12
            )
    assert spread_apart(np.array([1.0, 1.0])).tolist() == [2.0, 2.0]
    assert spread_apart(np.array([1.0, 0.2, 0.2])).tolist() == pytest.approx([1.5, 0.3, 0.3])
    assert not spread_apart(np.zeros(4)).any()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("alpha", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("deviation", [0.03, 0.15, 0.8])
def test_few_values_agree_with_integration(size: int, alpha: float, deviation: float) -> None:
    rng = np.random.default_rng([size, round(10 * alpha), round(100 * deviation)])
    prior = rng.dirichlet(np.full(size, 4.0))
    noise = deviation * rng.uniform(0.7, 1.3, size)
    estimate = rng.dirichlet(np.full(size, max(alpha / size, 0.3))) + rng.normal(size=size) * noise
    found = posterior(estimate, noise**2, prior, alpha, adds_up=False)
    moved = estimate + (1 - estimate.sum()) * noise**2 / (noise**2).sum()
    shapes = alpha * prior
    # Cells in the quantiles of the Beta priors that make up the Dirichlet: no weight is singular there.
    levels = (np.arange(1200) + 0.5) / 1200
    first = betaincinv(shapes[0], shapes[1:].sum(), levels)
    if size == 2:
        points = np.stack([first, 1 - first], axis=-1)
    else:
        second = betaincinv(shapes[1], shapes[2], levels)
        head, rest = np.meshgrid(first, second, indexing="ij")
        points = np.stack([head, (1 - head) * rest, (1 - head) * (1 - rest)], axis=-1).reshape(-1, 3)
    logs = -0.5 * (((points - moved) / noise) ** 2).sum(axis=-1)
    weights = np.exp(logs - logs.max())
    evidence = math.log(weights.mean()) + logs.max()
    mean = weights @ points / weights.sum()
    spread = np.sqrt(weights @ (points - mean) ** 2 / weights.sum())
    assert np.abs((found.mean - mean) / spread).max() < 0.06
    assert found.evidence == pytest.approx(evidence, abs=0.06)


@pytest.mark.parametrize(("size", "alpha"), [(10, 0.05), (10, 3.0), (10, 10.0), (40, 12.0), (40, 400.0)])
def test_many_values_agree_with_draws_from_the_prior(size: int, alpha: float) -> None:
    rng = np.random.default_rng(size)
    prior = rng.dirichlet(np.full(size, 4.0))
    noise = rng.uniform(0.15, 0.25, size)
    estimate = rng.dirichlet(np.full(size, 0.5)) + rng.normal(size=size) * noise
    estimate += (1 - estimate.sum()) * noise**2 / (noise**2).sum()
    found = posterior(estimate, noise**2, prior, alpha, adds_up=False)
    points = rng.dirichlet(alpha * prior, 100_000)
    logs = -0.5 * (((points - estimate) / noise) ** 2).sum(axis=-1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ points
    spread = np.sqrt(weights @ (points - mean) ** 2)
    error = np.sqrt(weights**2 @ (points - mean) ** 2)  # the draws' own, five of which 40 values may reach
    assert np.all(np.abs(found.mean - mean) < 5 * error + 0.05 * spread)
    assert found.mean.sum() == pytest.approx(1.0)


def test_a_prior_trusted_wholly_is_the_posterior_and_a_flat_one_is_the_default() -> None:
    estimate, variances, prior = np.array([0.7, 0.4, -0.1]), np.full(3, 0.01), np.array([0.2, 0.3, 0.5])
    assert posterior(estimate, variances, prior, math.inf).mean.tolist() == prior.tolist()
    flat, asked = posterior(estimate, variances), posterior(estimate, variances, np.full(3, 1 / 3), 3.0)
    assert flat.mean.tolist() == asked.mean.tolist()
    nearly = posterior(estimate, variances, prior, 1e6)
    np.testing.assert_allclose(nearly.mean, prior, atol=1e-4)
    assert nearly.evidence == pytest.approx(
        posterior(estimate, variances, prior, math.inf).evidence, abs=0.01
    )
