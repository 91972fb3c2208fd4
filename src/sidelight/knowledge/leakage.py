"""What one adversary learns, by any method: exact, certified, published, or by group privacy alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, TooLargeError, check_choice, check_is, check_number
from sidelight.knowledge.adversary import ADVERSARY_FIX, Adversary
from sidelight.knowledge.cells import LARGEST_LISTED, cells_of, check_one_belief, check_query
from sidelight.knowledge.exact import exact_leakage, normalised
from sidelight.knowledge.graph import GROUP_UPWARDS, WeightedGraph, certified_bound, certified_values
from sidelight.knowledge.query import QUERY_FIX, Query
from sidelight.knowledge.tree import tree_leakage
from sidelight.leakage.bounds import Bound

Method = Literal["exact", "certified", "published", "group"]


def prior_leakage(
    belief: Belief | Iterable[Belief], query: Query, adversary: Adversary, method: Method = "exact"
) -> Bound:
    """Return what a noisy answer tells an adversary who already knows some attributes (PDP, Definition 2).

    Of several beliefs (the set Theta) the worst counts. The method is "exact"; "certified" (the sound graph);
    "published" (the paper's graph, no bound); or "group" (the sum of all unknown attributes' sensitivities,
    sound for every belief).

    >>> coins = Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    >>> print(f"{prior_leakage(coins, Query.sum(coins.schema), Adversary('a')).value:.4f}")
    1.1854
    """
    check_is("query", query, Query, QUERY_FIX)
    check_is("adversary", adversary, Adversary, ADVERSARY_FIX)
    check_choice("method", method, get_args(Method))
    if isinstance(belief, Iterable):
        beliefs = list(belief)
        if not beliefs:
            raise InputError("a set of distributions needs at least one belief, got none.")
        bounds = (prior_leakage(each, query, adversary, method) for each in beliefs)
        return max(bounds, key=lambda bound: bound.value)
    check_one_belief(belief)
    check_query(belief, query)
    adversary.check(query.schema.names)
    if method == "exact":
        return _exact(belief, query, adversary)
    if method == "certified":
        return certified_bound(certified_values(belief, query), belief, adversary)
    if method == "published":
        return WeightedGraph.from_belief(belief, query).bound(adversary)
    return group_bound(belief, query, adversary)


def group_bound(belief: Belief, query: Query, adversary: Adversary) -> Bound:
    """Return the sum of the sensitivities of the target and all unknown attributes over the scale (eq. (16)).

    Sound for every joint distribution of the values that can occur; rounded up.
    """
    check_one_belief(belief)
    check_is("adversary", adversary, Adversary, ADVERSARY_FIX)
    check_query(belief, query)
    names = query.schema.names
    adversary.check(names)
    reach = query.reaches([belief.prior(name) > 0 for name in names])
    free = sum(float(part) for name, part in zip(names, reach, strict=True) if name not in adversary.known)
    return Bound(free * GROUP_UPWARDS, "certified", "group privacy (PDP, eq. (16))")


def posterior(
    belief: Belief,
    query: Query,
    target: str,
    answer: float | Sequence[float],
    known: Mapping[str, str] | None = None,
) -> Array:
    """Return what the adversary, who knows some values, believes about the target after a noisy answer."""
    check_is("query", query, Query, QUERY_FIX)
    given = dict(known or {})
    Adversary(target, tuple(given)).check(query.schema.names)
    cells = cells_of(belief, query)
    seen = np.atleast_1d(np.asarray(answer, dtype=np.float64))
    if seen.shape != (query.width,):
        raise InputError(f"`answer` must have {query.width} numbers, got {len(seen)}.")
    for value in seen:
        check_number("answer", float(value))
    schema = cells.schema
    fits = np.ones(len(cells.codes), dtype=np.bool_)
    for name, label in given.items():
        fits &= cells.codes[:, schema.index(name)] == schema[name].code(label)
    if not fits.any():
        raise InputError(f"the known values {dict(given)} never occur together; nothing follows from them.")
    codes = cells.codes[fits]
    if query.answers is not None:
        answers = query.answers[tuple(codes.T)]
    else:
        answers = sum((part[codes[:, j]] for j, part in enumerate(query.additive_parts())), np.zeros(1))
    # Likelihoods of far answers would all be 0.
    logs = np.log(cells.weights[fits]) - np.abs(answers - seen).sum(axis=1) / query.scale
    masses = np.exp(normalised(logs[None])[0])
    column = codes[:, schema.index(target)]
    return np.asarray(np.bincount(column, weights=masses, minlength=schema[target].size))


def _exact(belief: Belief, query: Query, adversary: Adversary) -> Bound:
    """Convolve along a tree that spans exactly the query's attributes; list the records otherwise.

    Parts that have no simple step in common make the laws of a sum too long to convolve, however few
    attributes there are: then the records are listed as well, if they can be.
    """
    is_sum = query.is_additive and query.width == 1
    if belief.tree is not None and is_sum and set(query.schema.names) == set(belief.schema.names):
        try:
            return tree_leakage(belief, query, adversary)
        except TooLargeError:
            if math.prod(query.schema.sizes) > LARGEST_LISTED:
                raise
    return exact_leakage(cells_of(belief, query), query, adversary)
