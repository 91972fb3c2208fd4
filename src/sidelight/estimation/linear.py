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
_SINGULAR = 1e-5  # of roots: a condition number of 1e10, where solving loses most digits


def solve_linear(parts: Sequence[RecordSums], known: Known) -> dict[str, tuple[Array, Array]]:
    """Return every attribute's estimate and variances, by weighted least squares.

    The protocols are over one schema; their groups may differ. Where there was a first phase, its unbiased
    estimates and their covariances are known.
    """
    schema = parts[0].protocol.schema
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
    values = np.linalg.svd(protocol.expected_counts() @ directions(protocol.schema.sizes), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 1e-12 * values[0] else float("inf")


def directions(sizes: Sequence[int]) -> Array:
    """Return orthonormal directions in which frequencies can move, shape (sum of sizes, directions)."""
    from scipy.linalg import block_diag

    free = (np.linalg.svd(np.eye(size) - 1 / size)[0][:, : size - 1] for size in sizes)
    return np.asarray(block_diag(*free))


def split(stacked: Array, schema: Schema) -> dict[str, Array]:
    """Return each attribute's part of what is stacked for all values."""
    return dict(zip(schema.names, np.split(stacked, np.cumsum(schema.sizes)[:-1]), strict=True))
