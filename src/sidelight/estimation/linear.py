"""The linear system behind protocols that hide their choice: which counts to expect, and its solution.

In a group of g attributes the column of attribute l counts, in expectation, (1/g) sum_j (Q_j T_jl)' f_j:
Q_j the randomised response of the chosen attribute j, T_jl the law of l's fake (T_ll = 1). For Corr-RR this
is q + (D/g)(f_l + sum over j != l of p_jl f_j + (1 - p_jl)(1 - f_j)/(k-1)), D = p - q, for every value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordSums
from sidelight.schema import Schema

Known = Mapping[str, tuple[Array, Array]]

WORST_CONDITION = 1e4
"""Above this condition number the counts of reports alone do not determine the frequencies."""
_ROUNDS = 2  # weights depend on the frequencies, but so little that a second round settles them
_SAME = 1e-12
_SINGULAR = 1e-5  # of roots: a condition number of 1e10, where solving loses most digits


def solve_linear(parts: Sequence[RecordSums], known: Known) -> dict[str, tuple[Array, Array]]:
    """Return every attribute's estimate and variances, by weighted least squares.

    The protocols are over one schema; their groups may differ. Where there was a first phase, its unbiased
    estimates and their covariances are known.
    """
    schema = parts[0].protocol.schema
    if len(parts) == 1 and not known and (gains := separate(parts[0].protocol)) is not None:
        return _each_alone(parts[0], gains)
    basis = directions(schema.sizes)
    even = np.concatenate([np.full(size, 1 / size) for size in schema.sizes])
    guess = even
    protocol = parts[0].protocol
    if not known and (number := condition(protocol)) > WORST_CONDITION:
        raise InputError(
            f"the reports of {protocol.name!r} alone do not determine the frequencies (condition number "
            f"{number:.3g}); add the reports of the first phase."
        )
    lead, start = first_precision(schema.sizes, [known[name] for name in schema.names if name in known])
    for _ in range(_ROUNDS):
        precision, target = lead, start
        for part in parts:
            counts = np.concatenate([sums.sums for sums in part.parts]) / part.people
            inside, weighted = weighted_design(part.protocol, guess, basis)
            left = basis.T @ (counts - part.protocol.expected_counts() @ even)
            precision = precision + part.people * (weighted.T @ inside)
            target = target + part.people * (weighted.T @ left)
        covariance = np.linalg.inv(precision)
        solved = even + basis @ (covariance @ target)
        guess = np.concatenate([to_simplex(piece) for piece in split(solved, schema).values()])
    spread = split(np.diag(basis @ covariance @ basis.T), schema)
    return {name: (estimate, spread[name]) for name, estimate in split(solved, schema).items()}


def separate(protocol: Protocol) -> Array | None:
    """Return what a change of each attribute's frequencies adds to its own column, a factor for each.

    None where a column also tells of other attributes. It does not where fakes are drawn from one law, as
    those of RS+FD and RS+RFD: then no system has to be solved, which takes seconds for 1,000 values.
    """
    design, sizes = protocol.expected_counts(), protocol.schema.sizes
    starts = np.cumsum([0, *sizes])
    gains = np.zeros(len(sizes))
    for place, (start, size) in enumerate(zip(starts, sizes, strict=False)):
        rows = design[start : start + size].copy()
        own = rows[:, start : start + size]
        gains[place] = own[0, 0] - own[0, -1]
        np.fill_diagonal(own, own.diagonal() - gains[place])
        for begin, width in zip(starts, sizes, strict=False):
            if np.ptp(rows[:, begin : begin + width], axis=1).max() > _SAME:
                return None
    return gains if np.abs(gains).min() > 0 else None


def _each_alone(part: RecordSums, gains: Array) -> dict[str, tuple[Array, Array]]:
    """Return estimates and variances where every column tells of its own attribute alone, see `separate`."""
    schema, design = part.protocol.schema, part.protocol.expected_counts()
    even = np.concatenate([np.full(size, 1 / size) for size in schema.sizes])
    each = np.repeat(gains, schema.sizes)
    counts = np.concatenate([sums.sums for sums in part.parts]) / part.people
    solved = split(even + (counts - design @ even) / each, schema)
    near = np.concatenate([to_simplex(piece) for piece in solved.values()])
    spread = split(alone_variances(part.protocol, gains, near, part.people), schema)
    return {name: (estimate, spread[name]) for name, estimate in solved.items()}


def alone_variances(protocol: Protocol, gains: Array, frequencies: Array, people: int) -> Array:
    """Return the variances of such estimates, stacked, were these the stacked frequencies."""
    mean = protocol.expected_counts() @ frequencies
    return np.asarray(mean * (1 - mean) / (people * np.repeat(gains, protocol.schema.sizes) ** 2))


def weighted_design(protocol: Protocol, frequencies: Array, basis: Array) -> tuple[Array, Array]:
    """Return the system in free directions, A, and its weights times it, S^-1 A, for one report.

    A column's shares add up to 1 like frequencies, so that both live in the same directions. Where columns
    copy each other surely, S is singular; what it does not see then weighs nothing.
    """
    inside = basis.T @ protocol.expected_counts() @ basis
    spread = basis.T @ protocol.report_covariance(frequencies) @ basis
    try:
        root = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        root = np.zeros((1, 1))
    if root.diagonal().min() > _SINGULAR * root.diagonal().max():
        return inside, np.asarray(np.linalg.solve(spread, inside), dtype=np.float64)
    return inside, np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ inside


def first_precision(sizes: Sequence[int], known: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return a first phase's precision in free directions, and that times its estimates less even ones."""
    width = sum(size - 1 for size in sizes)
    precision, target = np.zeros((width, width)), np.zeros(width)
    start = 0
    for estimate, covariance in known:
        size = len(estimate)
        basis = directions([size])
        weight = np.linalg.pinv(basis.T @ covariance @ basis, rcond=1e-12, hermitian=True)
        block = slice(start, start + size - 1)
        precision[block, block] = weight
        target[block] = weight @ (basis.T @ (estimate - 1 / size))
        start += size - 1
    return precision, target


def condition(protocol: Protocol) -> float:
    """Return how ill-conditioned the system is, in the directions that frequencies can take."""
    if (gains := separate(protocol)) is not None:
        return float(np.abs(gains).max() / np.abs(gains).min())
    values = np.linalg.svd(protocol.expected_counts() @ directions(protocol.schema.sizes), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 1e-12 * values[0] else float("inf")


def directions(sizes: Sequence[int]) -> Array:
    """Return orthonormal directions in which frequencies can move (Helmert), (sum of sizes, directions)."""
    from scipy.linalg import block_diag, helmert

    return np.asarray(block_diag(*(helmert(size).T for size in sizes)))


def split(stacked: Array, schema: Schema) -> dict[str, Array]:
    """Return each attribute's part of what is stacked for all values."""
    return dict(zip(schema.names, np.split(stacked, np.cumsum(schema.sizes)[:-1]), strict=True))
