"""Tables of attributes shrunk towards independence, as far as the evidence allows.

A table is Dirichlet(alpha c) around a centre c, with alpha on a grid up to infinity. The centre is the
product of the marginals; for two attributes over the same values it may also lean to agreement, (1 - r) times
the product and r times the diagonal, as copies of one another have it; for more attributes, to what their
pairs imply. All are averaged by their evidence, and tables tell each other which are likely: the weights of
one are drawn towards what the reports of the others favour, without its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sidelight.estimation.averaging import averaged
from sidelight.estimation.bayes import Noisy, dirichlet_posteriors
from sidelight.estimation.bayes import tables as lookups
from sidelight.estimation.set_tables import Margins, Names, SetTable, fitted, outer, raked
from sidelight.estimation.unbiased import Every
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.protocols.groups import marginal
from sidelight.schema import Schema

ALPHAS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0, math.inf)
AGREEMENTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
_USUAL_ALPHA = 64.0
"""Prior weights fall off from this alpha, times the values of the longer side less 1 (Cauchy in ln alpha).

The expected square of Cramer's V is (values of the longer side - 1) / (alpha + 1): it is a V of an eighth."""
_SURE = 0.5
"""The prior weight of the centre itself, alpha infinite."""
_LEANING = 0.5
"""The prior weight of centres that lean to agreement, or to the pairs, where there are any."""
_OWN = 2.0
"""How many tables' worth the prior weights count beside the evidence of the other tables."""
_STRONG = 256.0
"""Up to this alpha a table says something about its marginals that they do not say themselves."""

_SETTLING = 30
"""How often larger tables and their pairs tell each other what they are."""
_AGREED = 1e-7
"""Tables agree that are no further apart in any cell."""


@dataclass(frozen=True, eq=False)
class Shrunken:
    """One table by the evidence.

    Attributes:
        cells: the posterior mean, in the shape of its sizes, with the marginals that all tables share.
        weights: of the hypotheses, (centres, alphas): how likely the evidence makes each.
        apart: of the hypotheses, the expected squared distance from independence.
    """

    cells: Array
    weights: Array
    apart: Array

    @property
    def dependent(self) -> float:
        """The posterior probability that the attributes depend on each other."""
        return float(1 - self.weights[0, -1])

    @property
    def distance(self) -> float:
        """The expected squared distance from independence."""
        return float((self.weights * self.apart).sum())


def prior_weights(centres: int, sizes: Sequence[int]) -> Array:
    """Return the weights of hypotheses before any report, (centres, alphas), of a table of such sizes."""
    finite = np.log(np.array(ALPHAS[:-1]) / (_USUAL_ALPHA * (max(sizes) - 1)))
    falling = 1 / (1 + finite**2)
    alphas = np.append((1 - _SURE) * falling / falling.sum(), _SURE)
    if centres == 1:
        return alphas[None, :]
    leaning = np.full(centres - 1, _LEANING / (centres - 1))
    return np.outer(np.append(1 - _LEANING, leaning), alphas)


def prior_distances(centres: Sequence[Array]) -> Array:
    """Return the expected squared distance from independence of each hypothesis, (centres, alphas)."""
    inverse = 1 / (np.array(ALPHAS) + 1)
    lean = np.array([((centre - centres[0]) ** 2).sum() for centre in centres])
    return np.asarray(lean[:, None] + np.outer([1 - (centre**2).sum() for centre in centres], inverse))


def centres_of(marginals: Sequence[Array], is_shared: bool) -> list[Array]:
    """Return the centres of a pair's table, flat: independence, and agreement where values are shared."""
    apart = outer(marginals)
    if not is_shared or len(marginals) != 2:
        return [apart]
    first, second = marginals
    same = np.diag((first + second) / 2).reshape(-1)
    leaning = np.array([(1 - r) * apart + r * same for r in AGREEMENTS])
    leaning = raked(leaning.reshape(-1, len(first), len(second)), first, second, 30)
    return [apart, *leaning.reshape(len(AGREEMENTS), -1)]


def shares_values(schema: Schema, names: Names) -> bool:
    """Whether the attributes are over the same values."""
    return len({schema[name].values for name in names}) == 1


def shrunken_marginals(schema: Schema, marginals: Every) -> dict[str, Array]:
    """Return the posterior means of marginals, priors averaged by evidence, see `averaging`.

    Noise depends on the frequencies: it is taken at projected estimates, and then at what was found.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for place, attribute in enumerate(schema):
        places.setdefault(attribute.values, []).append(place)
    items = [marginals[name] for name in schema.names]
    near = [to_simplex(item.estimate) for item in items]
    for _ in range(2):
        noisy = [Noisy.of(item.estimate, item.variance(x)) for item, x in zip(items, near, strict=True)]
        near = [_on_simplex(mean) for mean in averaged(noisy, list(places.values()))]
    return dict(zip(schema.names, near, strict=True))


def shared_weights(logs: Array, priors: Array, own: float) -> Array:
    """Return posterior weights of hypotheses, (tables, hypotheses), each leaning on the other tables'.

    Weights of a table are Dirichlet's with `own` times its prior; the others' posteriors are added to it,
    found by expectation maximisation.
    """
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = priors
    for _ in range(30):
        found = weights * likely
        found /= found.sum(axis=1, keepdims=True)
        weights = own * priors + np.where(priors > 0, found.sum(axis=0) - found, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
    found = weights * likely
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _on_simplex(values: Array) -> Array:
    positive = np.maximum(values, 0.0)
    return np.asarray(positive / positive.sum())


@dataclass(frozen=True, eq=False)
class _Judged:
    """What each hypothesis makes of one table: posterior means, evidence, prior weights and distances."""

    means: Array
    evidence: Array
    prior: Array
    apart: Array
    is_told: bool = True


def _judged(table: SetTable, centres: Sequence[Array], near: Array) -> _Judged:
    """Return what the reports of one table say about every hypothesis; without any, nothing but independence.

    Noise is taken at cells `near` the truth.
    """
    prior, apart = prior_weights(len(centres), table.sizes), prior_distances(centres)
    if table.cells is None:
        means = np.tile(centres[0], (prior.size, 1))
        return _Judged(means, np.zeros(prior.size), prior.reshape(-1), apart.reshape(-1), is_told=False)
    noisy = Noisy.of(table.cells.estimate, table.cells.variance(near), table.adds_up)
    means, evidence = _around(noisy, centres)
    of_marginals = np.tile(_marginal_evidence(noisy, centres[0], table.sizes), len(centres))
    return _Judged(means, evidence - of_marginals, prior.reshape(-1), apart.reshape(-1))


def _around(noisy: Noisy, centres: Sequence[Array]) -> tuple[Array, Array]:
    """Return posterior means, (centres x alphas, cells), and evidence under Dirichlet(alpha centre).

    One call of the compiled loop for all: with 60 attributes there are tables by the thousand.
    """
    from sidelight.estimation.bayes_cumulants import LEAST
    from sidelight.estimation.bayes_kernels import dirichlets

    deviations, share = noisy.deviations, np.asarray(centres)
    finite = np.array(ALPHAS[:-1])
    shapes = np.maximum(finite[:, None] * share[:, None, :], LEAST).reshape(-1, share.shape[1])
    tilts = np.minimum(share.shape[1] - shapes.sum(axis=1), 0.0)
    means, spreads, logs = np.empty_like(shapes), np.empty_like(shapes), np.empty(len(shapes))
    dirichlets(noisy.centre, deviations, shapes, lookups(), tilts, means, spreads, logs)
    certain = -0.5 * (((share - noisy.centre) / deviations) ** 2).sum(axis=1)
    every = np.concatenate([means.reshape(len(share), len(finite), -1), share[:, None]], axis=1)
    evidence = np.column_stack([logs.reshape(len(share), -1), certain])
    return every.reshape(-1, share.shape[1]), evidence.reshape(-1)


def _marginal_evidence(noisy: Noisy, centre: Array, sizes: tuple[int, ...]) -> Array:
    """Return what the marginals of a table alone say about every alpha.

    They agree with the centre's, which were found from the same reports: they would call for a large alpha
    even where attributes depend strongly. What is left without them is about the dependence. The marginals of
    a Dirichlet law are Dirichlet's with the same alpha.
    """
    shaped = [cells.reshape(sizes) for cells in (noisy.centre, noisy.variances, centre)]
    evidence = np.zeros(len(ALPHAS))
    for axis in range(len(sizes)):
        given, spread, share = (marginal(cells, axis) for cells in shaped)
        evidence += dirichlet_posteriors(Noisy(given, spread), share, ALPHAS)[2]
    return evidence


def _together(judged: Sequence[_Judged]) -> list[Array]:
    """Return the posterior weights of every table's hypotheses; those with fewer lack the later ones.

    A table that nobody reported keeps its prior weights, and tells the others nothing.
    """
    told = [item for item in judged if item.is_told]
    most = max((item.prior.size for item in told), default=0)
    logs = np.full((len(told), most), -np.inf)
    priors = np.zeros((len(told), most))
    for row, item in enumerate(told):
        logs[row, : item.prior.size], priors[row, : item.prior.size] = item.evidence, item.prior
    found = iter(shared_weights(logs, priors, _OWN) if told else ())
    return [next(found)[: item.prior.size] if item.is_told else item.prior for item in judged]


def _averaged(
    tables: Sequence[SetTable], centres: Sequence[Sequence[Array]]
) -> tuple[list[_Judged], list[Array]]:
    """Return what each table's hypotheses say, and their weights.

    Noise depends on the cells: it is taken at independence, and then at the means that were found with it.
    """
    near = [item[0] for item in centres]
    for last in (False, True):
        each = zip(tables, centres, near, strict=True)
        judged = [_judged(table, some, cells) for table, some, cells in each]
        weights = _together(judged)
        if not last:
            near = [_on_simplex(w @ item.means) for w, item in zip(weights, judged, strict=True)]
    return judged, weights


def shrunken_pairs(
    schema: Schema, tables: Mapping[Names, SetTable], marginals: Every, shares: Mapping[str, Array]
) -> dict[Names, Shrunken]:
    """Return the tables of pairs by the evidence, all with the same marginals.

    `shares` are the posterior means of the unbiased marginals.
    """
    centres = [centres_of([shares[name] for name in names], shares_values(schema, names)) for names in tables]
    judged, weights = _averaged(list(tables.values()), centres)
    means = {
        names: (weight @ item.means).reshape(table.sizes)
        for (names, table), item, weight in zip(tables.items(), judged, weights, strict=True)
    }
    agreed = _agreed(tables, means, weights, shares, marginals)
    result = {}
    for (names, item), each, weight in zip(means.items(), judged, weights, strict=True):
        margins: Margins = {(axis,): agreed[name] for axis, name in enumerate(names)}
        shaped = weight.reshape(-1, len(ALPHAS))
        result[names] = Shrunken(fitted(item, margins), shaped, each.apart.reshape(shaped.shape))
    return result


def _agreed(
    tables: Mapping[Names, SetTable], means: Mapping[Names, Array], weights: Sequence[Array],
    shares: Mapping[str, Array], marginals: Every,
) -> dict[str, Array]:  # fmt: skip
    """Return the marginals that all tables are given.

    Away from independence a table is sparse, and knowing which cells are empty tells more about its marginals
    than the marginals alone do: there the mean of the tables' own takes over, as far as what is known about
    an attribute comes from tables at all.
    """
    strong = np.array(ALPHAS) <= _STRONG
    found: dict[str, list[tuple[float, float, Array]]] = {name: [] for name in shares}
    for (names, table), weight in zip(tables.items(), weights, strict=True):
        if table.cells is not None:
            share = float(weight.reshape(-1, len(ALPHAS))[:, strong].sum())
            # Noise is independent in all cells, so sums over rows have the noise of all cells together.
            noise = max(float(table.cells.variance(means[names].reshape(-1)).sum()), 1e-300)
            for axis, name in enumerate(names):
                others = tuple(i for i in range(len(names)) if i != axis)
                found[name].append((share, 1 / noise, means[names].sum(axis=others)))
    agreed = dict(shares)
    for name, items in found.items():
        if items:
            evident, precision, own = (np.array(column) for column in zip(*items, strict=True))
            whole = float(marginals[name].variance(shares[name]).sum()) * float(precision.sum())
            share = float(np.average(evident, weights=precision)) * min(whole, 1.0)
            mean = np.average(own, axis=0, weights=precision)
            agreed[name] = _on_simplex((1 - share) * shares[name] + share * mean)
    return agreed


def shrunken_sets(
    tables: Mapping[Names, SetTable], pairs: Mapping[Names, Shrunken], shares: Mapping[str, Array]
) -> dict[Names, Shrunken]:
    """Return larger tables by the evidence, around independence or what their pairs imply, and the pairs.

    `pairs` holds all pairs of the larger tables. They come back as the larger tables have them.
    """
    if not tables:
        return dict(pairs)
    cells = {names: item.cells for names, item in pairs.items()}
    centres = []
    for names, table in tables.items():
        apart = outer([shares[name] for name in names])
        implied = fitted(apart.reshape(table.sizes), _inside(names, cells)).reshape(-1)
        centres.append([apart, implied])
    judged, weights = _averaged(list(tables.values()), centres)
    each = list(zip(tables.items(), judged, weights, strict=True))
    means = {names: (weight @ item.means).reshape(table.sizes) for (names, table), item, weight in each}
    agreed = settled(means, cells)
    result = {names: replace(item, cells=agreed[names]) for names, item in pairs.items()}
    for (names, _), item, weight in each:
        shaped = weight.reshape(-1, len(ALPHAS))
        result[names] = Shrunken(agreed[names], shaped, item.apart.reshape(shaped.shape))
    return result


def _inside(names: Names, cells: Mapping[Names, Array]) -> Margins:
    """Return the tables of all pairs of a larger set, by axes."""
    return {(a, b): cells[names[a], names[b]] for a, b in combinations(range(len(names)), 2)}


def settled(larger: Mapping[Names, Array], pairs: Mapping[Names, Array]) -> dict[Names, Array]:
    """Return larger tables and their pairs so that all agree, with the marginals that the pairs have.

    Pairs that were found one by one may be those of no joint at all. Then the joint that comes nearest to
    them is scaled back to the marginals, which always is possible, and tells its pairs what they are.
    """
    cells = dict(pairs)
    joints: dict[Names, Array] = {}
    for _ in range(_SETTLING):
        moved = 0.0
        for names, mean in larger.items():
            inside = _inside(names, cells)
            of = [marginal(inside[0, 1], 0), *(marginal(inside[0, b], 1) for b in range(1, len(names)))]
            singles: Margins = {(axis,): share for axis, share in enumerate(of)}
            joints[names] = fitted(fitted(mean, inside), singles)
            for a, b in inside:
                others = tuple(axis for axis in range(len(names)) if axis not in (a, b))
                found = joints[names].sum(axis=others)
                moved = max(moved, float(np.abs(found - cells[names[a], names[b]]).max()))
                cells[names[a], names[b]] = found
        if moved < _AGREED:
            break
    return cells | joints
