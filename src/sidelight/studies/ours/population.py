"""What a table says about its population, and what it says only about itself.

Tables of several sizes are drawn from a known joint distribution. The figure for someone who knows the true
distribution is the aim. Beside it stand the figure for someone who knows the drawn table, record by record,
and the figure for someone who knows the population as well as the table teaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from matplotlib.figure import Figure

from sidelight.belief import Belief
from sidelight.leakage.totals import leakage_at
from sidelight.plan import Plan
from sidelight.sources import Records
from sidelight.sources.examples import survey_joint
from sidelight.studies.figures import canvas, draw_lines, finish
from sidelight.studies.study import Reading, StudyResult, Work, measured, plain_table

EPSILON, DELTA, SECRET = 1.0, 0.01, "diabetes"
_SIZES = (200, 500, 2_000, 10_000)
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


def run(quick: bool = False) -> tuple[PopulationRow, ...]:
    """Draw tables of every size; quickly, fewer and smaller ones."""
    sizes, tables = (_SIZES[:2], 2) if quick else (_SIZES, 5)
    return tuple(_row(people, tables) for people in sizes)


def _row(people: int, tables: int) -> PopulationRow:
    schema, joint = survey_joint()
    plan = Plan.uniform(schema, "grr", EPSILON)
    truth = leakage_at(Belief.from_joint(joint, schema), plan, SECRET, DELTA).value
    rng = np.random.default_rng((_SEED, people))
    told: list[tuple[float, float]] = []
    for _ in range(tables):
        cells = rng.choice(joint.size, people, p=joint.reshape(-1))
        codes = np.stack(np.unravel_index(cells, joint.shape), axis=1).astype(np.uint16)
        own = Belief.from_records(Records(schema, codes, np.ones(people)))
        beliefs = (own, Belief.population_of(own, seed=_SEED))
        table, population = (leakage_at(each, plan, SECRET, DELTA, seed=_SEED).value for each in beliefs)
        told.append((table, population))
    errors = [fmean(abs(pair[who] - truth) for pair in told) for who in (0, 1)]
    means = [fmean(pair[who] for pair in told) for who in (0, 1)]
    return PopulationRow(people, tables, truth, means[0], means[1], errors[0], errors[1])


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
    """Compare how far both figures are from the true one in the smallest tables."""
    small, large = rows[0], rows[-1]
    is_so = small.population_error < small.table_error
    reason = (
        f"of {small.people:,} people, the table itself says {small.table:.2f} where the truth is "
        f"{small.truth:.2f}, and the population learnt from it {small.population:.2f}; of {large.people:,} "
        f"they say {large.table:.2f} and {large.population:.2f}; the population's figure is below the true "
        f"one at {sum(row.population < row.truth for row in rows)} of {len(rows)} sizes, the table's at "
        f"{sum(row.table < row.truth for row in rows)}"
    )
    return StudyResult(measured(is_so, reason), {}, *plain_table(rows))


STUDIES = {
    "population-belief": Reading(
        Work("population-belief", run, minutes=0.5), judge_population, population_figure
    )
}
