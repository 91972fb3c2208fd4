"""Simulated panels: the truth that they state, who comes and goes, and how values change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import sidelight as sl
from sidelight.sources import Attendance, drifting

JOINT = np.array([[0.3, 0.1], [0.2, 0.4]])


def test_the_survey_is_simulated_by_default_and_the_same_seed_gives_the_same_panel() -> None:
    first, second, other = (sl.simulate_panel(200, 3, seed=seed) for seed in (1, 1, 2))
    assert first.schema == sl.example("survey").schema
    assert np.array_equal(first.codes, second.codes)
    assert np.array_equal(first.present, second.present)
    assert not np.array_equal(first.codes, other.codes)
    assert (first.people, first.rounds) == (200, 3)
    assert "200 people, 3 rounds" in repr(first)


def test_frozen_values_stay_and_everybody_reports() -> None:
    panel = sl.simulate_panel(500, 4, JOINT, seed=1)
    assert panel.present.all()
    assert (panel.codes == panel.codes[0]).all()
    assert panel.identifiers(1) == panel.identifiers(4)


def test_the_truth_is_that_of_the_tables() -> None:
    panel = sl.simulate_panel(400, 3, JOINT, seed=3, attendance=Attendance(0.3, 0.2, 0.2))
    for number in (1, 2, 3):
        table = panel.table(number)
        assert table.rows == len(panel.identifiers(number)) == panel.present[number - 1].sum()
        counted = sl.transport.true_frequencies(table, panel.schema)
        for name in panel.schema.names:
            np.testing.assert_allclose(panel.reported(number)[name], counted[name])
        everyone = np.bincount(panel.codes[number - 1][:, 0], minlength=2) / 400
        np.testing.assert_allclose(panel.population(number)["x1"], everyone)
        np.testing.assert_allclose(panel.expected(number)["x1"], JOINT.sum(axis=1))


def test_values_change_by_the_stated_chain() -> None:
    """Counted moves, each a binomial; no count beyond what is likely 10^-6 of the time."""
    step = np.array([[0.9, 0.1], [0.3, 0.7]])
    panel = sl.simulate_panel(3000, 5, JOINT, seed=5, changes={"x2": step})
    assert (panel.codes[..., 0] == panel.codes[0, :, 0]).all()
    before, after = panel.codes[:-1, :, 1].ravel(), panel.codes[1:, :, 1].ravel()
    for state in (0, 1):
        left, moved = int((before == state).sum()), int(((before == state) & (after != state)).sum())
        low, high = binom.ppf([1e-6, 1 - 1e-6], left, step[state, 1 - state])
        assert low <= moved <= high
    law = np.array([0.5, 0.5])
    for number in range(1, 6):
        np.testing.assert_allclose(panel.expected(number)["x2"], law)
        law = law @ step


def test_a_population_drifts_to_its_target() -> None:
    panel = sl.simulate_panel(2000, 60, [0.9, 0.1], seed=7, changes=drifting([0.2, 0.8], 0.1))
    np.testing.assert_allclose(panel.expected(60)["x1"], [0.2, 0.8], atol=0.01)
    low, high = binom.ppf([1e-6, 1 - 1e-6], 2000, panel.expected(60)["x1"][0]) / 2000
    assert low <= panel.population(60)["x1"][0] <= high


def test_people_join_leave_and_miss_rounds() -> None:
    """Shares of each kind; false alarms below 10^-6."""
    people = 4000
    joining = sl.simulate_panel(people, 4, JOINT, seed=1, attendance=Attendance(joining=0.5)).present
    assert (np.diff(joining.astype(int), axis=0) >= 0).all()
    assert abs(joining[0].sum() - people / 2) < 5 * np.sqrt(people / 4)
    leaving = sl.simulate_panel(people, 4, JOINT, seed=1, attendance=Attendance(leaving=0.2)).present
    assert (np.diff(leaving.astype(int), axis=0) <= 0).all()
    assert leaving[0].all()
    assert abs(leaving[1].sum() - 0.8 * people) < 5 * np.sqrt(people * 0.16)
    by_state = Attendance(skipping=[0.0, 1.0, 0.0, 0.0])
    panel = sl.simulate_panel(people, 2, JOINT, seed=1, attendance=by_state)
    states = panel.codes[..., 0] * 2 + panel.codes[..., 1]
    assert np.array_equal(panel.present, states != 1)
    assert panel.reported(1)["x2"][1] < panel.population(1)["x2"][1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"people": 0}, "`people` must be"),
        ({"rounds": 0}, "`rounds` must be"),
        ({"joint": [0.5, 0.6]}, "`joint` must be probabilities that sum to 1"),
        ({"joint": [1.5, -0.5]}, "`joint` must be probabilities, got 1.5"),
        ({"schema": "survey"}, "a `schema` needs a `joint`"),
        (
            {"joint": [0.5, 0.5], "schema": sl.Schema((sl.categorical("a", list("xyz")),))},
            "`joint` must be of",
        ),
        ({"joint": [0.5, 0.5], "changes": [[1.0]]}, "`changes` must be probabilities of shape"),
        ({"joint": [0.5, 0.5], "changes": {"x9": [[1.0]]}}, "x9"),
        ({"attendance": Attendance(skipping=[0.5, 0.5])}, "one for each of 648 states"),
        ({"seed": -1}, "`seed` must be"),
        ({"joint": np.full((100, 100), 1e-4)}, "10000 states are too many"),
    ],
)
def test_bad_panels_are_refused(arguments: dict, words: str) -> None:
    given = {"people": 10, "rounds": 2, "seed": 1} | arguments
    with pytest.raises(sl.InputError, match=words.replace("[", r"\[")):
        sl.simulate_panel(**given)


@pytest.mark.parametrize("name", ["joining", "leaving", "skipping"])
def test_shares_are_checked_at_the_door(name: str) -> None:
    with pytest.raises(sl.InputError, match=f"`{name}` must be probabilities, got 1.5"):
        Attendance(**{name: 1.5})


def test_identifiers_are_everybodys_own() -> None:
    rows = {"x": ["a", "b", "a"], "id": ["p1", "p2", "p3"]}
    table = sl.read(rows, kinds={"id": "categorical"})
    assert sl.sources.identifiers(table, "id") == ["p1", "p2", "p3"]
    with pytest.raises(sl.InputError, match="'x' is 'a' in 2 rows"):
        sl.sources.identifiers(table, "x")
    with pytest.raises(sl.InputError, match="there is no column 'ip'|column.*'ip'"):
        sl.sources.identifiers(table, "ip")
    missing = sl.read({"x": ["a", "b", "a"], "id": ["p1", None, "p3"]}, kinds={"id": "categorical"})
    with pytest.raises(sl.InputError, match="row 2 has no 'id'"):
        sl.sources.identifiers(missing, "id")
