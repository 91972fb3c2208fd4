"""The exact leakage to one adversary where the belief is a tree or a chain, by convolution.

Rooted at the target, each branch tells its parent, for every value of the parent, the law of the sum of its
unknown attributes together with the probability of what is known in it. Branches are independent given the
parent, so their laws are convolved. All in logarithms: the tails, which decide the ratio, keep their
precision.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from sidelight.belief import Belief, Tree
from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.foundation.progress import track
from sidelight.knowledge.adversary import Adversary
from sidelight.knowledge.cells import check_query, claim_of
from sidelight.knowledge.exact import normalised, smooth, widest
from sidelight.knowledge.query import Query
from sidelight.leakage.bounds import Bound, Witness

LARGEST_WORK = 1 << 30
METHOD = "convolution along the tree"


def tree_leakage(belief: Belief, query: Query, adversary: Adversary) -> Bound:
    """Return the exact leakage to an adversary who holds a tree belief.

    Every attribute of the belief must be in the query; one that adds nothing is allowed.
    """
    check_query(belief, query)
    tree = _tree(belief, query, adversary)
    root = tree.schema.index(adversary.target)
    known = _near(tree, {tree.schema.index(name) for name in adversary.known}, root)
    names = query.schema.names
    lattice = query.lattice_of(column for column, name in enumerate(names) if name not in adversary.known)
    ticks = [lattice.ticks[query.schema.index(name)][:, 0] for name in tree.schema.names]
    choices = [[int(v) for v in np.flatnonzero(tree.marginals[node] > 0)] for node in known]
    _check_work(choices, ticks)
    kind = claim_of(belief)
    best = Bound(0.0, kind, METHOD)
    assignments = list(product(*choices))
    for values in track(assignments, "known values"):
        fixed = dict(zip(known, values, strict=True))
        reached = _leakage(tree, query.scale, root, (lattice.step, ticks), fixed)
        if reached is not None and reached[0] > best.value:
            best = Bound(reached[0], kind, METHOD, _witness(tree, query, adversary, fixed, *reached[1:]))
    return best


def _witness(
    tree: Tree, query: Query, adversary: Adversary, told: dict[int, int], pair: tuple[int, int], answer: float
) -> Witness:
    """Say in words which answer speaks for which target value, without what the known attributes add."""
    attributes = tree.schema.attributes
    free = [query.schema.index(name) for name in (adversary.target, *adversary.unknown(query.schema.names))]
    least = float(sum(query.additive_parts()[column].min() for column in free))
    report = f"an answer of {answer + least:.6g}"
    if adversary.known:
        near = [f"{attributes[node].name} = {attributes[node].values[value]}" for node, value in told.items()]
        report += f" above what the known attributes add, knowing {', '.join(near) or 'what changes nothing'}"
    labels = attributes[tree.schema.index(adversary.target)].values
    return Witness(report, labels[pair[0]], labels[pair[1]])


def _tree(belief: Belief, query: Query, adversary: Adversary) -> Tree:
    if belief.tree is None:
        raise InputError(f"convolution needs a tree belief, got a {belief.kind} one; use Belief.tree_of.")
    if query.width != 1:
        raise InputError(
            f"convolution needs one number as an answer, got {query.width}; use a joint belief for a vector."
        )
    if set(query.schema.names) != set(belief.schema.names):
        raise InputError("convolution needs a query about every attribute of the tree; give the others 0.")
    adversary.check(belief.schema.names)
    return belief.tree.rooted_at(adversary.target)


def _near(tree: Tree, known: set[int], root: int) -> list[int]:
    """Return the known attributes beside an unknown one or the target; the others change nothing.

    Given them, what lies behind is independent of the target and of every unknown attribute.
    """
    beside = {node: {tree.parents[node], *tree.children[node]} - {-1} for node in known}
    return [node for node in sorted(known) if root in beside[node] or beside[node] - known]


def _check_work(choices: list[list[int]], ticks: list[Whole]) -> None:
    """Raise where the laws are too long or the known values too many to be tried."""
    length = 1.0 + float(sum(int(part.max()) for part in ticks))
    tried = float(np.prod([float(len(values)) for values in choices])) if choices else 1.0
    work = tried * length * len(ticks) * max(len(part) for part in ticks) ** 2
    if work > LARGEST_WORK:
        raise TooLargeError(
            f"the exact figure needs {tried:.3g} combinations of known values and laws of {length:.3g} "
            "sums; name fewer known attributes beside unknown ones, make the query's parts multiples of one "
            "simple step (such as 0.5), or take so few attributes that their joint table can be listed."
        )


def _leakage(
    tree: Tree, scale: float, root: int, sums: tuple[float, list[Whole]], fixed: dict[int, int]
) -> tuple[float, tuple[int, int], float] | None:
    """Return the leakage given the known values: the figure, the two target values and the answer."""
    step, ticks = sums
    laws = _branch_laws(tree, root, ticks, fixed)
    with np.errstate(divide="ignore"):
        laws = laws + np.log(tree.marginals[root])[:, None]
    rows = np.flatnonzero(np.isfinite(laws).any(axis=1))
    if len(rows) < 2:  # what is known leaves no two values to tell apart
        return None
    used = np.flatnonzero(np.isfinite(laws[rows]).any(axis=0))
    places = np.asarray(used * (step / scale), dtype=np.float64)
    densities = smooth(normalised(laws[np.ix_(rows, used)]), places)
    spread = widest(densities, np.zeros(1, dtype=np.intp))
    pair = int(rows[spread.likelier]), int(rows[spread.unlikelier])
    return spread.value, pair, float(used[spread.point]) * step


def _branch_laws(tree: Tree, root: int, ticks: list[Whole], fixed: dict[int, int]) -> Array:
    """Return for each value of the root the log-law of the sum of everything, with the known values."""
    messages: dict[int, Array] = {}
    for node in reversed(tree.order):
        laws = np.zeros((tree.schema.sizes[node], 1))
        for child in tree.children[node]:
            laws = convolve(laws, messages.pop(child))
        laws = _shifted(laws, ticks[node])
        if node in fixed:
            laws[np.arange(len(laws)) != fixed[node]] = -np.inf
        if node == root:
            return laws
        messages[node] = _mixed(tree.conditionals[node], laws)
    raise ArithmeticError("the tree has no root")


def _shifted(laws: Array, ticks: Whole) -> Array:
    """Move each row by what its value adds."""
    moved = np.full((len(laws), laws.shape[1] + int(ticks.max())), -np.inf)
    for row, by in enumerate(ticks):
        moved[row, by : by + laws.shape[1]] = laws[row]
    return moved


def _mixed(conditional: Array, laws: Array) -> Array:
    """Return the law given each value of the parent: rows of the conditional mix the laws."""
    with np.errstate(divide="ignore"):
        shares = np.log(conditional)
    mixed = np.full((len(conditional), laws.shape[1]), -np.inf)
    for value in range(len(laws)):
        np.logaddexp(mixed, shares[:, value, None] + laws[value], out=mixed)
    return mixed


def convolve(first: Array, second: Array) -> Array:
    """Convolve the laws of two sums row by row, in logarithms; the shorter one is walked through."""
    if first.shape[1] < second.shape[1]:  # the loop runs over the shorter law
        first, second = second, first
    length = first.shape[1]
    result = np.full((len(first), length + second.shape[1] - 1), -np.inf)
    for by in range(second.shape[1]):
        part = result[:, by : by + length]
        np.logaddexp(part, first + second[:, by, None], out=part)
    return result
