"""Paper CPL, section III and its tables: what one attribute's report says about another, on real tables.

The paper bins numbers in an unpublished way; here numbers have ten bins of equal weight, point masses apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.leakage import (
    correlation_matrix,
    leakage_error,
    mutual_information_matrix,
    pair_leakage,
    saturation,
    set_leakage,
    statistical_leakage,
    total_leakage,
)
from sidelight.leakage.analysers import generic_analysis, randomised_response_analysis
from sidelight.leakage.published import pairwise_sum
from sidelight.mechanisms import create
from sidelight.mechanisms.guess import guess_channel
from sidelight.schema import Schema, categorical
from sidelight.sources import Counts, read
from sidelight.studies.benchmarks import MAKERS, exact_analysis, statistical_matrix
from sidelight.studies.study import missing_tables, table_file

Array = NDArray[np.float64]
FILES = {"CelebA": "celeba_attr", "Adult": "adult", "Cardio": "cardio"}
_LEFT_OUT = {"CelebA": [], "Adult": ["split"], "Cardio": ["id"]}
SEVEN = ("gender", "cholesterol", "gluc", "smoke", "alco", "active", "cardio")
"""The attributes of Fig. 4(c): the paper shows seven of cardio's and does not name them all."""
FACES = ("No_Beard", "Wearing_Necklace", "Smiling")
FACE_BUDGETS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
COMPARED = ("GRR", "RAPPOR", "EXP", "OLH", "OUE")
EXAMPLE = ((0.2, 0, 0, 0), (0, 0.2, 0, 0), (0.1, 0.15, 0.03, 0.02), (0.1, 0.15, 0.03, 0.02))
"""CPL, eq. (28)."""


@cache
def belief_of(name: str) -> Belief:
    """Return the belief from one of the paper's tables."""
    return Belief.from_data(read(str(table_file(FILES[name])), drop=_LEFT_OUT[name]))


def available() -> list[str]:
    """Return the paper's tables that are there."""
    return [name for name, file in FILES.items() if not missing_tables((file,))]


@dataclass(frozen=True)
class ErrorRow:
    """How far estimated leakages are from a theory's, over all ordered pairs of a table (CPL, eq. (29)).

    Attributes:
        data: the table.
        epsilon: the budget of every attribute.
        mechanism: what perturbs.
        error: NMSE-CPL of the finite estimates.
        infinite: how many estimates are infinite, since a cell was never seen.
    """

    data: str
    epsilon: float
    mechanism: str
    error: float
    infinite: int = 0


def statistical_errors(names: Sequence[str]) -> list[ErrorRow]:
    """Return Table I: 50 replicates against the exact figure, for GRR and EXP."""
    found = []
    for name in names:
        for epsilon in (1.0, 3.0):
            for mechanism in ("GRR", "EXP"):
                belief = belief_of(name)
                estimate, infinite = statistical_matrix(belief, MAKERS[mechanism], epsilon)
                truth = exact_analysis(MAKERS[mechanism])(belief, epsilon)
                found.append(ErrorRow(name, epsilon, mechanism, leakage_error(truth, estimate), infinite))
    return found


def guess_errors(names: Sequence[str]) -> list[ErrorRow]:
    """Return Table II: what a guess leaks, exactly, against the worst mechanism of the budget."""
    found = []
    for name in names:
        for epsilon in (1.0, 3.0):
            worst = generic_analysis(belief_of(name), epsilon)
            for mechanism, maker in MAKERS.items():
                guessed = exact_analysis(maker, guess=True)(belief_of(name), epsilon)
                found.append(ErrorRow(name, epsilon, mechanism, leakage_error(worst, guessed)))
    return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every ordered pair of a table at epsilon 1 with randomised response.

    Attributes:
        names: of the attributes.
        leakage: (n, n), what the row's report says about the column.
        information: (n, n), normalised mutual information.
        correlation: (n, n), absolute Pearson correlation of the codes.
    """

    names: tuple[str, ...]
    leakage: Array
    information: Array
    correlation: Array

    def apart(self, matrix: Array) -> Array:
        """Return the entries of a matrix for two different attributes."""
        return matrix[~np.eye(len(self.names), dtype=np.bool_)]


def pairs_of(name: str) -> Pairs:
    """Return the pairs of a table."""
    belief = belief_of(name)
    return Pairs(
        belief.schema.names,
        randomised_response_analysis(belief, 1.0),
        mutual_information_matrix(belief, normalised=True),
        np.abs(correlation_matrix(belief)),
    )


@dataclass(frozen=True, eq=False)
class PairStudy:
    """Tables I and II, Figs. 4(c), 4(d) and 5."""

    first: tuple[ErrorRow, ...]
    second: tuple[ErrorRow, ...]
    pairs: dict[str, Pairs]


def run_pairs(_quick: bool) -> PairStudy:
    """Compute every pair of the tables that are there."""
    names = available()
    return PairStudy(
        tuple(statistical_errors(names)), tuple(guess_errors(names)), {name: pairs_of(name) for name in names}
    )


@dataclass(frozen=True)
class GenderRow:
    """One bar of Fig. 4(a): what an attribute of adult says about sex at epsilon 1.

    Attributes:
        neighbour: the attribute.
        mechanism: through which it is reported.
        estimate: with 50 replicates, for an adversary who keeps a guess.
        table_p_value: the share of tables that reach it when the reports are permuted, as published.
        population_p_value: the share that do when sex is permuted among the records.
        guess: the exact figure for that adversary.
        report: the exact figure for one who keeps the whole report.
    """

    neighbour: str
    mechanism: str
    estimate: float
    table_p_value: float
    population_p_value: float
    guess: float
    report: float


def gender_rows(surrogates: int) -> list[GenderRow]:
    """Return Fig. 4(a)."""
    belief = belief_of("Adult")
    found = []
    for neighbour in ("occupation", "education", "income"):
        for mechanism in COMPARED:
            made = MAKERS[mechanism](belief.schema[neighbour].size, 1.0)
            guess = guess_channel(made)
            seen = statistical_leakage(
                belief, {neighbour: guess.matrix()}, "sex", surrogates=surrogates, seed=4
            )
            through = (pair_leakage(belief, view, "sex", neighbour).value for view in (guess, made.channel))
            chances = (seen.table_p_value or 1.0, seen.population_p_value or 1.0)
            found.append(GenderRow(neighbour, mechanism, seen.value, *chances, *through))
    return found


@dataclass(frozen=True)
class FaceRow:
    """One budget of Fig. 4(b): what three reports say about Male, one by one and together.

    Attributes:
        epsilon: the budget of each.
        single: exact, by attribute.
        added: their sum (CPL, eq. (6) without the direct part).
        together: exact, of the three reports.
        estimate: of the three reports with 50 replicates; infinite where a cell was never seen.
    """

    epsilon: float
    single: dict[str, float]
    added: float
    together: float
    estimate: float


def face_rows() -> list[FaceRow]:
    """Return Fig. 4(b)."""
    table = read(str(table_file(FILES["CelebA"])), columns=[*FACES, "Male"])
    belief = Belief.from_data(table)
    found = []
    for epsilon in FACE_BUDGETS:
        channel = create("grr", 2, epsilon).channel
        single = {name: pair_leakage(belief, channel, "Male", name).value for name in FACES}
        together = set_leakage(belief, dict.fromkeys(FACES, channel), "Male", through=list(FACES)).value
        seen = statistical_leakage(belief, dict.fromkeys(FACES, channel.matrix()), "Male", seed=5)
        found.append(FaceRow(epsilon, single, math.fsum(single.values()), together, seen.value))
    return found


def face_limits() -> dict[str, float]:
    """Return what the three attributes say about Male without noise."""
    belief = belief_of("CelebA")
    return {name: saturation(belief, "Male", name).value for name in FACES}


@dataclass(frozen=True, eq=False)
class FigureFour:
    """Figs. 4(a) and 4(b), as far as the tables are there."""

    gender: tuple[GenderRow, ...]
    faces: tuple[FaceRow, ...]
    limits: dict[str, float]


def run_figure_4(quick: bool) -> FigureFour:
    """Compute Figs. 4(a) and 4(b); in full with 10,000 surrogates, quickly with 200."""
    there = available()
    gender = gender_rows(200 if quick else 10_000) if "Adult" in there else []
    faces = face_rows() if "CelebA" in there else []
    return FigureFour(tuple(gender), tuple(faces), face_limits() if "CelebA" in there else {})


@dataclass(frozen=True)
class ExampleRow:
    """One budget of Table III: both directions, exact and estimated from 100,000 records."""

    epsilon: float
    forth: float
    back: float
    seen_forth: float
    seen_back: float


def example_rows() -> list[ExampleRow]:
    """Return Table III: eq. (28), the worst mechanism of the budget, and randomised response counted."""
    names = ["secret", "other"]
    belief = Belief.from_joint(EXAMPLE, names)
    cells = np.rint(np.array(EXAMPLE) * 100_000).astype(np.int64)
    schema = Schema(tuple(categorical(name, ["1", "2", "3", "4"]) for name in names))
    counted = Belief.from_counts(Counts(schema, cells))
    found = []
    for epsilon in (0.5, 1.0, 2.0):
        worst = generic_analysis(belief, epsilon)
        view = create("grr", 4, epsilon).channel.matrix()
        seen = [
            statistical_leakage(counted, {through: view}, about, seed=8).value
            for through, about in (("other", "secret"), ("secret", "other"))
        ]
        found.append(ExampleRow(epsilon, float(worst[1, 0]), float(worst[0, 1]), *seen))
    return found


def exclusive_or() -> tuple[float, float]:
    """Return the published sum and the exact total of X = A xor B, fair coins, budget 1 on all three."""
    cells = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            cells[a, b, a ^ b] = 0.25
    return _sum_and_total(cells)


def random_joints(count: int) -> list[tuple[float, float]]:
    """Return published sum and exact total of one attribute in random joints of three."""
    rng = np.random.default_rng(150)
    return [_sum_and_total(rng.dirichlet(np.full(8, 0.5)).reshape(2, 2, 2)) for _ in range(count)]


def _sum_and_total(cells: Array) -> tuple[float, float]:
    belief = Belief.from_joint(cells, ["a", "b", "x"])
    channels = {name: create("grr", 2, 1.0).channel for name in belief.schema.names}
    total = total_leakage(belief, channels, "x", "exact")
    return pairwise_sum(belief, channels, "x").value, total.value


@dataclass(frozen=True)
class FormulaStudy:
    """Table III, and eq. (6) on one small case and on random ones."""

    example: tuple[ExampleRow, ...]
    coins: tuple[float, float]
    joints: tuple[tuple[float, float], ...]


def run_formulas(quick: bool) -> FormulaStudy:
    """Compute what needs no table."""
    return FormulaStudy(tuple(example_rows()), exclusive_or(), tuple(random_joints(50 if quick else 500)))
