"""Expectation maximisation (iterative Bayesian update): the likeliest frequencies, of attributes and joints.

The reports of every protocol are terms: a table of likelihoods over the cells of some attributes, with
counts. A joint is updated by all its terms at once, so that reports of single attributes, of groups and of
whole records help each other where they overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.unbiased import number_parts
from sidelight.foundation.arrays import Array, Positions, Whole, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.mechanisms.oracle import LARGEST_TABLE
from sidelight.protocols.protocol import domain_size
from sidelight.protocols.records import RecordReports, RecordSums, listed, reports_among
from sidelight.schema import Schema

LARGEST_JOINT = 4096
Steps = tuple[Array, Array, Array]
"""For each row the ratios, how many nats it is from the best at most, and its log-likelihood."""
_ROUNDS = 2000
_NUMBER_ROUNDS = 500
_NEAR = 1e-3
_GROWTH = 1.3
_MOST_POWER = 1e6
_LARGEST_EXPONENT = 700.0  # e^709 is the largest double
PRIOR = 0.1
"""Of every value of a noisy number so much of a person is taken for granted, see `likeliest`."""
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Term:
    """Reports about some attributes: the likelihood of each distinct one, and how many people sent it.

    Likelihoods have shape (distinct reports, cells), in C order of the attributes' values.
    """

    names: tuple[str, ...]
    likelihood: Array
    counts: Array


def estimate_joint(collected: RecordReports | Sequence[RecordReports], names: Sequence[str]) -> Array:
    """Return the likeliest joint of a few attributes, shape (values of each), up to 4,096 combinations.

    The reports are of one protocol or of several over the same schema.
    """
    parts = reports_among(listed(collected))
    if not parts:
        raise InputError("there are no reports to estimate from.")
    telling = [part for part in parts if part.protocol.groups or part.protocol.determines_joint]
    _check_identified([term for part in telling for term in terms_of(part, names)], names)
    return likeliest_joint(parts, names)


def likeliest_joint(parts: Sequence[RecordReports], names: Sequence[str]) -> Array:
    """Return a likeliest joint; its marginals are determined even where it is not itself."""
    schema = parts[0].protocol.schema.select(names)
    if domain_size(schema.sizes) > LARGEST_JOINT:
        raise InputError(
            f"the joint of {', '.join(names)} has {domain_size(schema.sizes)} cells, more than "
            f"{LARGEST_JOINT}; take fewer attributes."
        )
    return maximise(schema, [term for part in parts for term in terms_of(part, names)])


def likeliest_numbers(parts: Sequence[RecordSums]) -> dict[str, Array]:
    """Return the likeliest frequencies of attributes that are reported as numbers and in no other way.

    How many reports lie in each cell is all that is needed, so aggregates do.
    """
    given = number_parts(parts, alone=True)
    likeliest = likeliest_each([(mechanism, sums.sums[:-1]) for _, mechanism, sums in given])
    return {name: frequencies for (name, _, _), frequencies in zip(given, likeliest, strict=True)}


def likeliest_each(given: Sequence[tuple[BinnedNumbers, Array | Whole]]) -> list[Array]:
    """Return `likeliest` of mechanisms and counts; those of one mechanism, alike in shape, at once."""
    alike: dict[BinnedNumbers, list[int]] = {}
    for place, (mechanism, _) in enumerate(given):
        alike.setdefault(mechanism, []).append(place)
    frequencies: dict[int, Array] = {}
    for mechanism, places in alike.items():
        together = likeliest(mechanism, np.stack([given[place][1].astype(np.float64) for place in places]))
        frequencies |= dict(zip(places, together, strict=True))
    return [frequencies[place] for place in range(len(given))]


def likeliest(mechanism: BinnedNumbers, counts: Array | Whole) -> Array:
    """Return the likeliest frequencies given counts of noisy numbers and a prior, many collections at once.

    The prior is Dirichlet's with 1.1 for each value. Without it wide noise puts everything on a few values.
    The climb starts at the projected estimate, which as many people as one likes make right, moved towards
    uniformity by less than chance moves the people; where 500 rounds do not end it, it is on its way. The
    counts are of reports in each cell, shape (..., cells).
    """
    law = mechanism.law
    rows = counts.reshape(-1, law.shape[1]).astype(np.float64)
    people = rows.sum(axis=1, keepdims=True)
    even = 1 / np.sqrt(people)
    start = (1 - even) * to_simplex(rows / people @ mechanism.inverse.T) + even / len(law)

    def step(frequencies: Array, kept: Positions) -> Steps:
        given, whole = rows[kept], people[kept] + PRIOR * len(law)
        seen, held = np.maximum(frequencies @ law, 1e-300), np.maximum(frequencies, _LEAST)
        slope = (given / seen) @ law.T + PRIOR / held
        gain = (given * np.log(seen)).sum(axis=1) + PRIOR * np.log(held).sum(axis=1)
        return slope / whole, slope.max(axis=1) - whole[:, 0], gain

    return _climb(start, step, _NUMBER_ROUNDS).reshape(*counts.shape[:-1], len(law))


def maximise(schema: Schema, terms: Sequence[Term]) -> Array:
    """Return the joint that maximises the likelihood of all terms.

    It is within a thousandth of a nat of the largest, or as near as 2,000 rounds come: where noise is wide
    and people are many, that may be further off than projected estimates, as the climb starts at uniformity.
    Where the terms leave the joint open, it stays as near to uniformity as the updates leave it.
    """
    axes = [tuple(schema.index(name) for name in term.names) for term in terms]
    people = sum(float(term.counts.sum()) for term in terms)

    def step(cells: Array, _: Positions) -> Steps:
        joint, weight, likelihood = cells.reshape(schema.sizes), np.zeros(schema.sizes), 0.0
        for term, kept in zip(terms, axes, strict=True):
            # A report that no cell explains must not divide by 0.
            seen = np.maximum(term.likelihood @ _marginal(joint, kept), 1e-300)
            weight += _spread((term.counts / seen) @ term.likelihood, kept, joint.shape)
            likelihood += float(term.counts @ np.log(seen))
        # The log-likelihood is concave, so its largest slope towards a cell bounds what is left to gain.
        gap = float(weight.max()) - people
        return weight.reshape(1, -1) / people, np.array([gap]), np.array([likelihood])

    cells = domain_size(schema.sizes)
    return _climb(np.full((1, cells), 1 / cells), step, _ROUNDS).reshape(schema.sizes)


def _climb(start: Array, step: Callable[[Array, Positions], Steps], rounds: int) -> Array:
    """Return the likeliest cells of each row, shape (rows, cells), or how far so many rounds led.

    An update multiplies each cell by a ratio; at small budgets ratios are close to 1 and updates creep, so
    they are raised to a power that grows while the likelihood does (Salakhutdinov and Roweis 2003). Where it
    fell, the plain update is taken, which never lowers it. A step leads from cells and the numbers of their
    rows to ratios, gaps and likelihoods.
    """
    best = start.copy()
    kept = np.arange(len(start))
    cells = plain = start
    reached, power = np.full(len(start), -np.inf), np.ones(len(start))
    for _ in range(rounds):
        ratios, gap, likelihood = step(cells, kept)
        done = gap < _NEAR
        if done.any():
            best[kept[done]] = cells[done]
            kept, cells, plain = kept[~done], cells[~done], plain[~done]
            reached, power = reached[~done], power[~done]
            ratios, likelihood = ratios[~done], likelihood[~done]
        if not len(kept):
            return best
        fell = likelihood < reached
        plain = np.where(fell[:, None], plain, cells * ratios)
        cells = np.where(fell[:, None], plain, far_step(cells, ratios, power))
        reached = np.where(fell, -np.inf, likelihood)
        power = np.where(fell, 1.0, np.minimum(power * _GROWTH, _MOST_POWER))
    best[kept] = plain
    return best


def far_step(cells: Array, ratios: Array, power: Array) -> Array:
    """Return cells times powers of ratios, adding up to 1; no power leaves the range of doubles."""
    exponent = power[:, None] * np.log(np.maximum(ratios, 1e-300))
    far = cells * np.exp(np.clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
    return np.asarray(far / far.sum(axis=1, keepdims=True))


def _marginal(joint: Array, kept: tuple[int, ...]) -> Array:
    summed = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in kept))
    return np.asarray(summed.transpose(np.argsort(np.argsort(kept))).reshape(-1))


def _spread(weights: Array, kept: tuple[int, ...], sizes: Sequence[int]) -> Array:
    """Return weights over some attributes as an array that broadcasts over all."""
    shaped = weights.reshape([sizes[axis] for axis in kept]).transpose(np.argsort(kept))
    shape = [sizes[axis] if axis in kept else 1 for axis in range(len(sizes))]
    return shaped.reshape(shape)


def terms_of(collected: RecordReports, names: Sequence[str]) -> list[Term]:
    """Return what reports say about the named attributes."""
    protocol = collected.protocol
    if not protocol.groups:
        return _whole_terms(collected, names)
    return _sample_terms(collected, names) if protocol.sends_one_part else _split_terms(collected, names)


def _split_terms(collected: RecordReports, names: Sequence[str]) -> list[Term]:
    """One term: a person's reports of several groups multiply."""
    groups = collected.protocol.groups
    used = [i for i, group in enumerate(groups) if set(group.names) & set(names)]
    for group in (groups[i] for i in used):
        if outside := set(group.names) - set(names):
            raise InputError(f"the group {group.label!r} is reported as a whole; name {min(outside)!r} too.")
    pairs = [groups[i].randomiser.tabulated(collected.parts[i]) for i in used]
    tables = [table for table, _ in pairs]
    distinct, counts = _joined_rows([rows for _, rows in pairs], [len(table) for table in tables])
    covered = tuple(name for i in used for name in groups[i].names)
    cells = domain_size([table.shape[1] for table in tables])
    if len(distinct) * cells > LARGEST_TABLE:
        raise InputError(
            f"{len(distinct)} distinct reports by {cells} cells are too many; take fewer attributes."
        )
    likelihood = np.ones((len(distinct), 1))
    for table, column in zip(tables, distinct.T, strict=True):
        likelihood = (likelihood[:, :, None] * table[column][:, None, :]).reshape(len(distinct), -1)
    return [Term(covered, likelihood, counts.astype(np.float64))]


def _joined_rows(rows: list[Positions], sizes: list[int]) -> tuple[Positions, Positions]:
    """Return the distinct combinations of several row numbers, (distinct, columns), and their counts."""
    if math.prod(sizes) < 1 << 62:  # one number stands for a combination, which sorts much faster
        flat = np.zeros(len(rows[0]), dtype=np.int64)
        for column, size in zip(rows, sizes, strict=True):
            flat = flat * size + column
        _, first, counts = np.unique(flat, return_index=True, return_counts=True)
        return np.stack([column[first] for column in rows], axis=1), counts
    return np.unique(np.stack(rows, axis=1), axis=0, return_counts=True)


def _sample_terms(collected: RecordReports, names: Sequence[str]) -> list[Term]:
    """A term for each group whose attributes are all asked for; people reported one group each."""
    terms = []
    for group, part in zip(collected.protocol.groups, collected.parts, strict=True):
        if set(group.names) <= set(names) and len(part):
            table, rows = group.randomiser.tabulated(part)
            counts = np.bincount(rows, minlength=len(table)).astype(np.float64)
            terms.append(Term(group.names, table, counts))
    return terms


def _whole_terms(collected: RecordReports, names: Sequence[str]) -> list[Term]:
    """One term over all attributes, by the law of whole reports."""
    protocol = collected.protocol
    if set(names) != set(protocol.schema.names):
        missing = min(set(protocol.schema.names) - set(names))
        raise InputError(
            f"a report of {protocol.name!r} may be about any attribute, so its joint is that of all "
            f"attributes; name {missing!r} too."
        )
    law = protocol.written_law.T
    counts = np.bincount(protocol.columns_of(collected), minlength=len(law)).astype(np.float64)
    kept = counts > 0
    return [Term(protocol.schema.names, law[kept], counts[kept])]


def _check_identified(terms: Sequence[Term], names: Sequence[str]) -> None:
    """Raise if nobody reported the attributes together: their joint would be a guess.

    A report whose attribute is hidden is about one of them too, see `Protocol.determines_joint`.
    """
    if len(names) > 1 and not any(set(names) == set(term.names) for term in terms):
        raise InputError(
            f"nobody reported {', '.join(names)} together, so their joint is not determined; collect them as "
            "a group, or estimate them one by one."
        )
    if not terms:
        raise InputError(f"nobody reported {', '.join(names)}; there is nothing to estimate from.")
