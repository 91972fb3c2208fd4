"""What doubles cost: figures are right to 1e-9, deltas are rounded up, split budgets down.

References are computed in whole numbers and decimals of many digits.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.mechanisms.numeric import gaussian_delta, least_multiple
from sidelight.protocols import FakeDataProtocol, rs_fd, spl
from sidelight.protocols.fake_data import whole_law
from sidelight.protocols.protocol import even_part

DIGITS = 60
STATED = 1e-9


def logarithm(ratio: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def exponential(exponent: float) -> Fraction:
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(Decimal(exponent).exp())


def assert_right(figure: float, truth: Decimal) -> None:
    assert abs(Decimal(figure) - truth) <= Decimal(STATED) * max(Decimal(1), truth)


def conditionals(cells: np.ndarray) -> list[list[Fraction]]:
    """Return Pr(the rest | secret), the secret first, in fractions."""
    rows = [[Fraction(float(cell)) for cell in row.reshape(-1)] for row in cells]
    return [[cell / sum(row) for cell in row] for row in rows]


def largest(columns: list[list[Fraction]]) -> Decimal:
    return max(logarithm(max(column) / min(column)) for column in columns)


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 5.0, 20.0])
def test_exact_and_certified_figures_are_right_to_a_billionth(epsilon: float) -> None:
    """A pair through randomised response and through any mechanism, and two reports together."""
    rng = np.random.default_rng(6)
    for _ in range(5):
        cells = rng.dirichlet(np.ones(12)).reshape(3, 2, 2)
        grr = sl.create("grr", 2, epsilon)
        shares = [[Fraction(grr.truth, 1 << 64), Fraction(grr.other, 1 << 64)]]
        shares.append(shares[0][::-1])
        rows = conditionals(cells)
        together = [
            [
                sum(
                    row[2 * a + b] * shares[a][seen[0]] * shares[b][seen[1]]
                    for a, b in product((0, 1), repeat=2)
                )
                for row in rows
            ]
            for seen in product((0, 1), repeat=2)
        ]
        belief = sl.Belief.from_joint(cells, ["secret", "a", "b"])
        channels = dict.fromkeys("ab", grr.channel)
        found = sl.total_leakage(belief, channels, "secret")
        assert found.is_exact
        assert_right(found.value, largest(together))

        flat = sl.Belief.from_joint(cells.reshape(3, 4), ["secret", "a"])
        gain = exponential(epsilon) - 1
        sets = [chosen for width in (1, 2, 3) for chosen in combinations(range(4), width)]
        worst = [[1 + gain * sum(row[value] for value in chosen) for row in rows] for chosen in sets]
        bound = sl.pair_leakage(flat, sl.create("any", 4, epsilon).channel, "secret", "a").upper
        assert bound.kind == "certified"
        assert_right(bound.value, largest(worst))


def circle() -> Decimal:
    """Return pi by Machin's formula, 16 atan(1/5) - 4 atan(1/239), to the digits in force."""

    def arctangent(inverse: int) -> Decimal:
        power, total, odd = Decimal(1) / inverse, Decimal(0), 1
        while total + power / odd != total:
            total += power / odd
            power /= -inverse * inverse
            odd += 2
        return total

    return 16 * arctangent(5) - 4 * arctangent(239)


def normal(x: Decimal, root: Decimal) -> Decimal:
    """Return Phi(x) by its series, 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...); `root` is that of 2 pi."""
    if x < 0:
        return 1 - normal(-x, root)
    term, total, odd = x, Decimal(0), 1
    while total + term != total:
        total += term
        odd += 2
        term *= x * x / odd
    return Decimal("0.5") + total * (-x * x / 2).exp() / root


def test_a_gaussian_delta_is_never_below_the_real_one() -> None:
    """Budgets down to 1e-9 and deltas down to 1e-300, in 400 digits; stated at most 1e-10 of it too large."""
    rng = np.random.default_rng(7)
    with localcontext() as context:
        context.prec = 400
        root = (2 * circle()).sqrt()
        for _ in range(60):
            epsilon, wanted = (
                10 ** rng.uniform(-9, 2.5),
                10 ** rng.uniform(*rng.choice([[-300, -9], [-9, -0.1]])),
            )
            multiple = least_multiple(epsilon, wanted)
            e, m = Decimal(epsilon), Decimal(multiple)
            real = normal(1 / (2 * m) - e * m, root) - e.exp() * normal(-1 / (2 * m) - e * m, root)
            stated = Decimal(gaussian_delta(epsilon, multiple))
            assert real <= stated <= Decimal(wanted)
            assert stated <= real * (1 + Decimal("1e-10"))


def test_a_gaussian_mechanism_states_a_delta_that_it_keeps() -> None:
    """The least budgets that the grid allows: the stated delta was 4e-8 of itself below the real one."""
    wanted = 1e-6
    for epsilon in (1e-6, 1.7e-6, 1e-3):
        mechanism = sl.create("gaussian", 2, epsilon, lower=0, upper=1, delta=wanted)
        with localcontext() as context:
            context.prec = 60
            root = (2 * circle()).sqrt()
            e, m = Decimal(epsilon), Decimal(mechanism.scale) / (1 << 24)
            real = normal(1 / (2 * m) - e * m, root) - e.exp() * normal(-1 / (2 * m) - e * m, root)
            assert real <= Decimal(mechanism.delta) <= Decimal(wanted)


@given(st.floats(1e-6, 500), st.integers(1, 300))
def test_the_parts_of_a_split_budget_never_add_up_to_more(epsilon: float, parts: int) -> None:
    part = even_part(epsilon, parts)
    assert Fraction(part) * parts <= Fraction(epsilon) < Fraction(math.nextafter(part, math.inf)) * parts
    assert math.fsum([part] * parts) <= epsilon


def grouped(schema: sl.Schema, epsilon: float) -> FakeDataProtocol:
    """A hidden choice in groups of two."""
    names = schema.names
    groups = tuple(names[start : start + 2] for start in range(0, len(names), 2))
    even = whole_law([[0.5, 0.5]])
    fakes = {(chosen, other): even for group in groups for chosen, other in permutations(group, 2)}
    return FakeDataProtocol(schema, groups, epsilon, fakes, "rs+fd", "even")


@pytest.mark.parametrize("make", [spl, grouped, rs_fd])
def test_a_protocol_realises_no_more_than_its_nominal_budget(make) -> None:
    """As nominal parts and as realised ones, exactly and as it states them; 0.3 / 7 went above 0.3."""
    for attributes, epsilon in product((2, 6, 7, 11, 14, 28, 49), (0.3, 1.0, 1.1, 2.3, 40.0)):
        schema = sl.Schema(tuple(sl.categorical(f"x{i}", "01") for i in range(attributes)))
        protocol = make(schema, epsilon)
        assert protocol.epsilon <= epsilon
        if make is spl:
            assert sum(Fraction(group.epsilon) for group in protocol.groups) <= Fraction(epsilon)
            assert sum(Fraction(group.randomiser.epsilon) for group in protocol.groups) <= Fraction(epsilon)
