"""What a table says about its population, and what it says only about itself.

Tables of several sizes are drawn from a known joint distribution. The figure for someone who knows the true
distribution is the aim. Beside it stand the figure for someone who knows the drawn table, record by record,
and the figure for someone who knows the population as well as the table teaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sidelight.belief import Belief
from sidelight.foundation.intervals import student_interval
from sidelight.leakage.totals import leakage_at
from sidelight.plan import Plan
from sidelight.sources import Records
from sidelight.sources.examples import survey_joint
from sidelight.studies.figures import canvas, draw_lines, finish
from sidelight.studies.study import Reading, StudyResult, Work, measured, plain_table

EPSILON, DELTA, SECRET = 1.0, 0.01, "diabetes"
_SIZES = {200: 20, 500: 20, 2_000: 5, 10_000: 5}
"""How many tables are drawn of each size; small ones differ more."""
_SEED = 1


@dataclass(frozen=True)
class PopulationRow:
    """Figures at delta for tables of one size, means over several drawn tables."""

    people: int  # in each table
    tables: int  # how many were drawn
    truth: float  # for someone who knows the true distribution
    table: float  # for someone who knows the drawn table
    population: float  # for someone who knows the population as the table teaches it
    table_error: float  # the mean distance of the table's figure from the true one
    population_error: float  # the same of the population's
    nearer_low: float  # by how much the population's is nearer, in pairs: 95 % interval of the mean
    nearer_high: float


def run(quick: bool = False) -> tuple[PopulationRow, ...]:
    """Draw tables of every size; quickly, of the smallest, which decides."""
    sizes = {200: _SIZES[200]} if quick else _SIZES
    return tuple(_row(people, tables) for people, tables in sizes.items())


def _row(people: int, tables: int) -> PopulationRow:
    schema, joint = survey_joint()
    plan = Plan.uniform(schema, "grr", EPSILON)
    truth = leakage_at(Belief.from_joint(joint, schema), plan, SECRET, DELTA).value
    rng = np.random.default_rng((_SEED, people))
    figures: list[tuple[float, float]] = []
    for _ in range(tables):
        cells = rng.choice(joint.size, people, p=joint.reshape(-1))
        codes = np.stack(np.unravel_index(cells, joint.shape), axis=1).astype(np.uint16)
        own = Belief.from_records(Records(schema, codes, np.ones(people)))
        beliefs = (own, Belief.population_of(own, seed=_SEED))
        table, population = (leakage_at(each, plan, SECRET, DELTA, seed=_SEED).value for each in beliefs)
        figures.append((table, population))
    told = np.array(figures)
    errors = np.abs(told - truth)
    nearer = student_interval(errors[:, 0] - errors[:, 1])
    means = [float(value) for value in (*told.mean(axis=0), *errors.mean(axis=0))]
    return PopulationRow(
        people, tables, truth, means[0], means[1], means[2], means[3], nearer.lower, nearer.upper
    )


def population_figure(rows: Sequence[PopulationRow]) -> Figure:
    """Draw the three figures against the size of the table."""
    figure, (axes,) = canvas(7.5, 4.2)
    lines = {
        "table": ("who knows this very table", "-"),
        "population": ("who knows the population", "--"),
        "truth": ("who knows the true distribution", ":"),
    }
    draw_lines(axes, rows, "people", lines)
    axes.set_xscale("log")
    finish(axes, "people in the table", f"leakage about {SECRET} at delta {DELTA:g} (nats)", legend=9)
    return figure


def judge_population(rows: Sequence[PopulationRow]) -> StudyResult:
    """Compare how far both figures are from the true one, in the smallest tables and in the others."""
    small, large = rows[0], rows[-1]
    nearer = sum(row.nearer_low > 0 for row in rows)
    further = sum(row.nearer_high < 0 for row in rows)
    reason = (
        f"of {small.people:,} people, the table itself says {small.table:.2f} where the truth is "
        f"{small.truth:.2f}, and the population learnt from it {small.population:.2f}, nearer by "
        f"{small.nearer_low:.2f} to {small.nearer_high:.2f} (95 %); of {large.people:,} they say "
        f"{large.table:.2f} and {large.population:.2f}; beyond chance the population's figure is nearer "
        f"to the true one at {nearer} of {len(rows)} sizes and further at {further}, and it is below it at "
        f"{sum(row.population < row.truth for row in rows)}, the table's at "
        f"{sum(row.table < row.truth for row in rows)}"
    )
    return StudyResult(measured(small.nearer_low > 0, reason), {}, *plain_table(rows))


STUDIES = {
    "population-belief": Reading(
        Work("population-belief", run, minutes=0.5), judge_population, population_figure
    )
}
