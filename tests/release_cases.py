"""Random small releases whose every report can be listed, by means that share nothing with the package."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

import enumeration
import sidelight as sl

LISTED = ("grr", "exp", "hadamard", "interval", "identity", "withheld")
MARKING = ("sue", "oue", "rappor", "the", "ss", "olh", "blh")
"""Their reports matter only by the values that they mark."""
_BUDGETS = (0.2, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A belief, a plan and a secret, and Pr(release | value) of its possible values."""

    belief: sl.Belief
    plan: sl.Plan
    secret: str
    rows: np.ndarray


def random_case(
    rng: np.random.Generator, names: tuple[str, ...] = LISTED, attributes: int = 4, times: int = 2
) -> Case:
    """A random joint with zeros, released with or without the secret's own report."""
    shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(2, attributes + 1))))
    joint = enumeration.random_joint(rng, shape)
    belief = sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(len(shape))])
    secret = int(rng.integers(len(shape)))
    seen = [axis for axis in range(len(shape)) if axis != secret or rng.random() < 0.5]
    plan = sl.Plan(tuple(random_release(rng, belief.schema[f"x{axis}"], names, times) for axis in seen))
    tables = {axis: report_table(plan[f"x{axis}"]) for axis in seen}
    return Case(belief, plan, f"x{secret}", release_rows(joint, tables, secret))


def random_release(
    rng: np.random.Generator,
    attribute: sl.Attribute,
    names: tuple[str, ...],
    times: int,
    budgets: tuple[float, ...] = _BUDGETS,
) -> sl.Release:
    name = str(rng.choice(names))
    parameters = {"width": int(rng.integers(1, attribute.size))} if name == "ss" else {}
    if name in ("identity", "withheld"):
        return sl.Release(attribute, name)
    if name == "olh":
        parameters = {"g": int(rng.integers(2, 5))}
    often = int(rng.integers(1, times + 1))
    return sl.Release(attribute, name, float(rng.choice(budgets)), often, parameters)


def report_table(release: sl.Release) -> np.ndarray:
    """Pr(reports | value) of one attribute, shape (values, reports)."""
    mechanism = release.randomiser()
    size = release.attribute.size
    once = (
        mark_table(mechanism) if release.mechanism in MARKING else mechanism.channel.report_rows(np.eye(size))
    )
    table = np.ones((size, 1))
    for _ in range(release.times):
        table = np.stack([np.kron(left, right) for left, right in zip(table, once, strict=True)])
    return table


def mark_table(mechanism: sl.Mechanism) -> np.ndarray:
    """Pr(set of marked values | value), shape (values, sets)."""
    true, other = map(float, mechanism.mark_rates)
    alike = [s for s in product((0, 1), repeat=mechanism.size) if sum(s) == mechanism.set_size]
    having = [
        {mark: sum(s[value] == mark for s in alike) for mark in (0, 1)} for value in range(mechanism.size)
    ]
    table = []
    for value in range(mechanism.size):
        row = []
        for marks in product((0, 1), repeat=mechanism.size):
            chance = true if marks[value] else 1 - true
            if mechanism.set_size is None:  # every other value is marked by itself
                chance *= np.prod(
                    [other if mark else 1 - other for v, mark in enumerate(marks) if v != value]
                )
            else:  # all sets of this size with the true value are alike, and all without it
                is_sent = sum(marks) == mechanism.set_size
                chance = chance / having[value][marks[value]] if is_sent else 0.0
            row.append(chance)
        table.append(row)
    return np.array(table)


def release_rows(joint: np.ndarray, tables: dict[int, np.ndarray], secret: int) -> np.ndarray:
    """Pr(release | value) of the values that can occur, shape (values, releases)."""
    rows = []
    for records in enumeration.conditional(joint, secret).values():
        row = np.zeros(int(np.prod([table.shape[1] for table in tables.values()])))
        for record, mass in records.items():
            chance = np.array([mass])
            for axis, table in tables.items():
                chance = np.kron(chance, table[record[axis]])
            row += chance
        rows.append(row)
    return np.array(rows)
