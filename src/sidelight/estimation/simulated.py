"""Errors of estimators, simulated: normal noise of the predicted variances, and what becomes of it.

Errors are arrays by attribute, (draws, values), so that whoever asks can take means or quantiles of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sidelight.estimation.averaging import averaged_each
from sidelight.estimation.bayes import Noisy
from sidelight.estimation.joint import likeliest_each
from sidelight.estimation.shrinkage import Method, shared_domains
from sidelight.estimation.stand_ins import StandIns
from sidelight.foundation.arrays import Array, Whole
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.protocols.protocol import Protocol
from sidelight.schema import Schema

Frequencies = Mapping[str, Array]
_DRAWS = 200
_LEAST_DRAWS = 2
_MOST_DRAWN = 2_000_000
_POSTERIOR_DRAWS = 24
_POSTERIOR_WORK = 1_200
_SEED = 20_250_101
_LIKELIEST_DRAWS = 24
_LIKELIEST_WORK = 100_000
_FEW_REPORTS = 30.0


class Part(NamedTuple):
    """One of so many simulations that are averaged: it has noise of its own, and needs fewer draws."""

    place: int
    parts: int


WHOLE = Part(0, 1)


def best_errors(
    schema: Schema, frequencies: Frequencies, variances: Frequencies, numbers: Frequencies,
    loose: Collection[str] = (), part: Part = WHOLE,
) -> dict[str, Array]:  # fmt: skip
    """Return simulated errors of "best" by attribute, (draws, values), those of noisy numbers being known.

    Of many attributes some stand in for the others, see `stand_ins`. The rest is as in `simulated_errors`.
    """
    errors, rest = dict(numbers), [name for name in schema.names if name not in numbers]
    if rest:
        stand_ins = StandIns.of(schema.select(rest), frequencies, variances)
        errors |= stand_ins.everyone(_posterior_errors(stand_ins, variances, loose, part))
    return {name: errors[name] for name in schema.names}


def _posterior_errors(
    stand_ins: StandIns, variances: Frequencies, loose: Collection[str], part: Part
) -> dict[str, Array]:
    """Return simulated errors of posterior means by simulated attribute, (draws, values)."""
    schema = stand_ins.schema.select(stand_ins.simulated)
    most = max(_POSTERIOR_DRAWS // part.parts, _LEAST_DRAWS)
    draws = min(max(_POSTERIOR_WORK // sum(schema.sizes), _LEAST_DRAWS), most)
    domains = tuple(
        _Domain(tuple(schema.index(name) for name in names), stand_ins.sharing[schema[names[0]].values])
        for names in shared_domains(schema)
    )
    cases = tuple(
        _Case(_bytes(_drawn(stand_ins.frequencies[name], draws)), _bytes(variances[name]), name not in loose)
        for name in schema.names
    )
    return dict(zip(schema.names, _cases_errors(cases, domains, draws, part.place), strict=True))


def _bytes(numbers: Array) -> bytes:
    return np.asarray(numbers, dtype=np.float64).tobytes()


class _Case(NamedTuple):
    """One attribute's simulations, as something that a cache can look up."""

    truths: bytes
    variances: bytes
    adds_up: bool


class _Domain(NamedTuple):
    """The places of simulated attributes that share their values, and how many do in all."""

    places: tuple[int, ...]
    sharing: int


@lru_cache(maxsize=128)
def _cases_errors(
    cases: Sequence[_Case], domains: Sequence[_Domain], draws: int, place: int
) -> tuple[Array, ...]:
    """Return each attribute's errors, (draws, values); kept, as searches and pages ask for the same again.

    Noise that adds up to 0 is independent noise less what it adds up to, in proportion to its variances. Its
    mean square is made what it is on average: few draws then say nearly what many would.
    """
    rng = np.random.default_rng(_SEED + place)
    truths, noises, apart = [], [], []
    for case in cases:
        spread = np.frombuffer(case.variances)
        truths.append(np.frombuffer(case.truths).reshape(draws, -1))
        apart.append(Noisy.of(np.full(len(spread), 1 / len(spread)), spread, case.adds_up).variances)
        noise = rng.normal(size=truths[-1].shape) * np.sqrt(apart[-1])
        if case.adds_up:
            noise -= noise.sum(axis=1, keepdims=True) * apart[-1] / apart[-1].sum()
        noises.append(noise * math.sqrt(float(spread.mean()) / max(_mean_square(noise), 1e-300)))
    for domain in domains:
        if 1 < len(domain.places) < domain.sharing:
            moved = _averaging_out(np.stack([noises[place] for place in domain.places]), domain.sharing)
            for place, noise in zip(domain.places, moved, strict=True):
                noises[place] = noise
    noisy = [
        [Noisy.of(row, spread, adds_up=False) for row in truth + noise]
        for truth, noise, spread in zip(truths, noises, apart, strict=True)
    ]
    places = [domain.places for domain in domains]
    found = averaged_each([*zip(*noisy, strict=True)], places)
    errors = (np.stack(means) - truth for means, truth in zip(zip(*found, strict=True), truths, strict=True))
    return tuple(errors)


def _averaging_out(noises: Array, count: int) -> Array:
    """Return noises, (attributes, draws, values), whose average is as small as that of so many attributes.

    Attributes of one domain lean on their average, which a few of them would make too noisy.
    """
    levels = np.sqrt((noises**2).mean(axis=(1, 2), keepdims=True))
    apart = noises / np.maximum(levels, 1e-300)
    average = apart.mean(axis=0)
    apart -= average
    average *= math.sqrt(1 / count / max(_mean_square(average), 1e-300))
    apart *= math.sqrt((1 - 1 / count) / max(_mean_square(apart), 1e-300))
    return np.asarray(levels * (average + apart))


def _mean_square(numbers: Array) -> float:
    return float((numbers**2).mean())


def loose_sums(protocols: Iterable[Protocol]) -> frozenset[str]:
    """Return the attributes that some group reports by a mechanism whose estimates do not add up to 1."""
    groups = [group for protocol in protocols for group in protocol.groups]
    return frozenset(name for group in groups if not group.randomiser.adds_up for name in group.names)


def mean_square(errors: Mapping[str, Array]) -> float:
    """Return the mean over attributes of the mean square of their errors, (draws, values) each."""
    return float(np.mean([_mean_square(error) for error in errors.values()]))


def likeliest_errors(
    numbers: Mapping[str, tuple[BinnedNumbers, int]], people: float, frequencies: Frequencies
) -> dict[str, Array]:
    """Return simulated errors of the likeliest frequencies of noisy numbers, by attribute, (draws, values).

    Who the people are is drawn first, infinitely many for a population, and what is found is compared with
    their own frequencies. By attribute, `numbers` say what makes the numbers, and how many there are.
    Frequencies that are not known have shape (draws, values): one draw of them for each simulation.
    """
    truths, counts = [], []
    for place, (name, (mechanism, reports)) in enumerate(numbers.items()):
        rng = np.random.default_rng([_SEED, place])
        draws = min(max(_LIKELIEST_WORK // mechanism.law.size, _LEAST_DRAWS), _LIKELIEST_DRAWS)
        share = _drawn(frequencies[name] / frequencies[name].sum(axis=-1, keepdims=True), draws)
        asked = rng.multinomial(reports, share)
        if math.isinf(people):
            truths.append(share)
        else:
            rest = rng.multinomial(max(int(people) - reports, 0), share)
            truths.append((asked + rest) / (asked + rest).sum(axis=1, keepdims=True))
        counts.append((mechanism, _cell_counts(asked, mechanism.law, rng)))
    errors = (one - truth for one, truth in zip(likeliest_each(counts), truths, strict=True))
    return dict(zip(numbers, errors, strict=True))


def _cell_counts(asked: Whole, law: Array, rng: np.random.Generator) -> Array:
    """Return about how many reports lie in each cell, (draws, cells), of so many people of each value.

    Normal noise has the covariance of multinomial counts; small counts are Poisson quantiles of it. Normal
    draws stay what they are where a budget changes a little, which drawn counts do not: so the errors of two
    budgets can be compared.
    """
    from scipy.special import ndtr, pdtrik

    exact = law / law.sum(axis=1, keepdims=True)
    each = asked[:, :, None] * exact
    noise = np.sqrt(each) * rng.normal(size=each.shape)
    noise -= noise.sum(axis=2, keepdims=True) * exact
    expected, off = each.sum(axis=1), noise.sum(axis=1)
    few = (expected > 0) & (expected < _FEW_REPORTS)
    counts = np.maximum(expected + off, 0.0)
    rare = expected[few]
    counts[few] = np.maximum(np.ceil(pdtrik(ndtr(off[few] / np.sqrt(rare)), rare)), 0.0)
    return np.asarray(counts)


def _drawn(frequencies: Array, draws: int) -> Array:
    """Return the frequencies of so many simulations, (draws, values): drawn ones, or the same in each."""
    some = frequencies[:draws] if frequencies.ndim > 1 else frequencies
    return np.broadcast_to(some, (draws, some.shape[-1]))


def simulated_errors(
    schema: Schema, frequencies: Frequencies, variances: Frequencies, method: Method,
    loose: Collection[str] = (),
) -> dict[str, Array]:  # fmt: skip
    """Return simulated errors of an estimator by attribute, (draws, values), were these the frequencies.

    The method makes better estimates of unbiased ones and their summed variances.
    Unbiased estimates add up to 1 but for those of `loose` attributes, see `loose_sums`.
    Frequencies that are not known have shape (draws, values): one draw of them for each simulation.
    """
    rng = np.random.default_rng(_SEED)
    errors: dict[str, Array] = {}
    for names in shared_domains(schema):
        spread = np.stack([variances[name] for name in names])
        draws = draws_for(spread.size)
        truth = np.stack([_drawn(frequencies[name], draws) for name in names], axis=1)
        noise = rng.normal(size=truth.shape) * np.sqrt(spread)
        adding = noise - noise.mean(axis=-1, keepdims=True)  # estimates add up to 1, so their noise to 0
        size = truth.shape[-1]
        adding *= np.sqrt(size / max(size - 1, 1))  # which took variance away: here it is given back
        noise = np.where(np.array([name in loose for name in names])[:, None], noise, adding)
        estimates = method(truth + noise, np.broadcast_to(spread.sum(axis=-1), (draws, len(names))))
        off = estimates - truth
        errors |= {name: off[:, place] for place, name in enumerate(names)}
    return {name: errors[name] for name in schema.names}


def draws_for(cells: int) -> int:
    """Return how often as many frequencies are drawn: many need fewer draws, and would take much memory."""
    return min(max(_MOST_DRAWN // cells, _LEAST_DRAWS), _DRAWS)
