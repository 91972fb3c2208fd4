"""A plan whose estimates are worse than guessing is called that, and the advice that comes with it works."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.protocols import Design, planned, smp
from sidelight.report.calibration import headline
from sidelight.transport import true_frequencies

WITHIN = 0.25
PEOPLE = 1_000


def wide_table(people: int, seed: int) -> sl.Table:
    """21 attributes of 2 to 8 values that all depend on one another."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=people)
    columns = {}
    for number in range(21):
        size = (2, 3, 4, 5, 6, 8)[number % 6]
        shares = np.random.default_rng(number).dirichlet(np.full(size, 2.0))
        place = np.clip(np.round(common * 0.5 + rng.normal(size=people), 6), -4, 4)
        cuts = np.quantile(place, np.cumsum(shares)[:-1])
        columns[f"q{number}"] = np.array(list("abcdefgh"))[np.digitize(place, cuts)]
    return sl.read(pa.table(columns))


@pytest.fixture(scope="module", name="useless")
def useless_fixture() -> sl.Calibration:
    """21 attributes, 1,000 people, a limit of 1 on each."""
    belief = sl.Belief.from_data(wide_table(PEOPLE, 3))
    return sl.calibrate(belief, 1.0, budgets="uniform", mechanism="auto")


def error_of(design: Design, table: sl.Table, trials: int) -> tuple[float, float]:
    """The root-mean-square errors over all attributes of simulated collections, and of guessing evenly."""
    truth = true_frequencies(table, design.schema)
    squares = []
    for seed in range(trials):
        found = sl.estimate(sl.collect(table, design, seed=seed))
        squares.append(np.mean([((found[name] - truth[name]) ** 2).mean() for name in design.schema.names]))
    guess = np.mean([((1 / len(share) - share) ** 2).mean() for share in truth.values()])
    return math.sqrt(np.mean(squares)), math.sqrt(guess)


def test_it_is_called_beyond_use_before_anything_else(useless: sl.Calibration) -> None:
    first = "These estimates would be worse than guessing"
    assert not useless.beats_guessing
    assert useless.notes()[0].startswith(first)
    assert headline(useless).startswith(first)
    assert "worse than guessing" in repr(useless)
    assert not any("smaller by a factor" in note for note in useless.notes())
    data = json.loads(useless.to_json())["usefulness"]
    assert data["verdict"] == "worse than guessing"
    assert data["people_for_use"] > PEOPLE
    assert 1 <= len(data["sampled"]) < 21


def test_it_is_as_useless_as_predicted(useless: sl.Calibration) -> None:
    """Five collections of 21 attributes: their error is known to a few percent."""
    expected = useless.prospect.usefulness
    seen, guess = error_of(planned(useless.plan), wide_table(PEOPLE, 3), 5)
    assert expected.error == pytest.approx(seen, rel=WITHIN)
    assert seen > guess


def test_so_many_people_as_advised_make_it_useful(useless: sl.Calibration) -> None:
    found = useless.prospect
    assert found.people_for_use is not None
    table = wide_table(found.people_for_use, 4)
    seen, guess = error_of(planned(useless.plan), table, 2)
    assert seen == pytest.approx(guess / 2, rel=WITHIN)


def test_fewer_people_do_if_each_sends_one_attribute(useless: sl.Calibration) -> None:
    found = useless.prospect
    assert found.people_if_sampled is not None
    assert found.people_if_sampled < found.people_for_use / 5
    table = wide_table(found.people_if_sampled, 5)
    seen, guess = error_of(smp(table.schema, 1.0, "best"), table, 5)
    assert seen == pytest.approx(guess / 2, rel=WITHIN)


@pytest.mark.parametrize("way", ["sampled", "split"])
def test_so_many_attributes_as_advised_are_useful(useless: sl.Calibration, way: str) -> None:
    option = {"sampled": useless.prospect.sampled, "split": useless.prospect.split}[way]
    assert option is not None
    assert 1 <= len(option.names) < 21
    seen, guess = error_of(option.protocol, wide_table(PEOPLE, 3), 10)
    assert option.usefulness.error == pytest.approx(seen, rel=WITHIN)
    assert seen < guess
    assert option.protocol.epsilon <= 1.0  # no secret can leak more, whatever the population


def test_a_precision_and_a_prior_of_ones_own_are_answered(useless: sl.Calibration) -> None:
    exact = true_frequencies(wide_table(PEOPLE, 3), useless.plan.schema)
    asked = replace(useless, within=0.05, prior=exact)
    assert "To be right to 5 percentage points for every attribute" in " ".join(asked.notes())
    assert asked.prospect.usefulness.guess_error < 1e-9
    assert "No number of people would halve the error of guessing." in asked.notes()


def test_a_plan_that_cannot_be_collected_says_why_nothing_is_predicted() -> None:
    table = sl.example("titanic")
    releases = tuple(sl.Release(item, "grr", 1.0, times=2) for item in table.schema)
    result = sl.calibrate(sl.Belief.from_data(table), 3.0, budgets="uniform", plan=sl.Plan(releases))
    assert result.notes()[0].startswith(
        "Whether the estimates would beat guessing is not predicted: the plan"
    )
    assert json.loads(result.to_json())["usefulness"] is None
    assert result.beats_guessing
