"""Division of people against division of budgets: the refereed numbers, and the advice that rests on them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import sidelight as sl
from sidelight.advice import advise_rounds
from sidelight.advice.rounds import AT_DELTA as DELTA
from sidelight.advice.rounds import BUDGET, EPOCHS, KEPT, NOISY, PEOPLE
from sidelight.estimation.division import crossing_budget, least_noise, noise, people_error
from sidelight.mechanisms import create
from sidelight.protocols import Panel

SCHEMA = sl.Schema((sl.categorical("m", list("abcd")), sl.categorical("s", ["n", "y"])))


@pytest.mark.parametrize(("rounds", "budget"), [(2, 3.06), (10, 6.53)])
def test_the_refereed_crossings(rounds: int, budget: float) -> None:
    even = np.full(2, 0.5)
    found = crossing_budget("grr", rounds, even)
    assert found == pytest.approx(budget, abs=0.005)
    for epsilon, people_win in ((found * 0.98, True), (found * 1.02, False)):
        divided = people_error(create("grr", 2, epsilon), rounds, even)
        assert (divided < noise(create("grr", 2, epsilon / rounds), even)) is people_win


def test_the_refereed_ratio_of_budget_over_people() -> None:
    whole, part = (float(create("grr", 4, epsilon).variance(1, 0.0)) for epsilon in (1.0, 0.1))
    assert part / (10 * whole) == pytest.approx(17.6, abs=0.05)


@pytest.mark.parametrize("rounds", [2, 5, 20])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_oue_always_gains_the_number_of_rounds_by_dividing_people(rounds: int, epsilon: float) -> None:
    whole, part = (float(create("oue", 8, e).variance(1, 0.0)) for e in (epsilon, epsilon / rounds))
    assert part / (rounds * whole) >= rounds * (1 - 1e-9)


@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_predicted_errors_are_those_of_simulated_rounds(mechanism: str) -> None:
    """400 rounds of fixed people: a mean of squares within 30 %, five of its standard errors."""
    shares, people, rounds = np.array([0.5, 0.3, 0.2]), 600, 4
    values = np.repeat([0, 1, 2], [300, 180, 120]).astype(np.uint16)
    whole, part = create(mechanism, 3, 1.5), create(mechanism, 3, 1.5 / rounds)
    rng = np.random.default_rng(1)
    squares: dict[str, list[float]] = {"people": [], "budget": []}
    for seed in range(400):
        chosen = values[rng.random(people) < 1 / rounds]
        for name, tool, asked in (("people", whole, chosen), ("budget", part, values)):
            found = tool.estimate(tool.aggregate(tool.randomise(asked, seed=seed)))
            squares[name].append(float(np.mean((found - shares) ** 2)))
    assert np.mean(squares["people"]) == pytest.approx(people_error(whole, rounds, shares) / people, rel=0.3)
    assert np.mean(squares["budget"]) == pytest.approx(noise(part, shares) / people, rel=0.3)


def test_memory_wins_for_constant_values_and_people_for_changing_ones() -> None:
    advice = advise_rounds(SCHEMA, 2.0, 5000, 12)
    for item in advice.attributes:
        assert item.epsilon == 1.0
        assert item.if_constant.name == KEPT
        assert item.if_changing.name == PEOPLE
        assert item[PEOPLE].level_error < item[BUDGET].level_error
        assert all(option.spent <= 1.0 for option in item.options)
        assert item[KEPT].changing == np.inf
        assert item[NOISY].changing > 1.0 >= item[BUDGET].changing
        assert item[PEOPLE].same_or_not == 0.5 < item[NOISY].same_or_not <= item[KEPT].same_or_not
        assert item[NOISY].mean_error < item[NOISY].level_error
    assert advice["s"].crossing == pytest.approx(crossing_budget("grr", 12, np.full(2, 0.5)))


def test_epochs_bound_what_changes_cost_and_are_fresh_reports_to_each_other() -> None:
    advice = advise_rounds(SCHEMA, 2.0, 5000, 12, epoch=5, delta=1e-6)
    for item in advice.attributes:
        found = item[EPOCHS]
        assert found.release.times == 5
        assert found.release.epsilon == pytest.approx(1 / 3)
        assert found.spent == found.changing <= item.epsilon
        tool = found.release.randomiser()
        shares = np.full(tool.size, 1 / tool.size)
        assert found.level_error == pytest.approx(noise(tool, shares) / 5000)
        assert found.mean_error == pytest.approx(found.level_error * (25 + 25 + 4) / 144)
        assert found.at_delta is not None
        assert found.at_delta <= found.spent
        assert found.linking is not None
        assert found.linking.times == 5
    panel = Panel(sl.Plan((replace(advice["s"][EPOCHS].release, times=12),)), epoch=5)
    assert panel.spent == pytest.approx(advice["s"][EPOCHS].spent)


@pytest.mark.parametrize(("delta", "total"), [(1e-2, 0.499), (1e-6, 0.999)])
def test_figures_at_delta_are_the_refereed_ones(delta: float, total: float) -> None:
    """Section 11: GRR, two values, 0.1 in each of ten rounds."""
    advice = advise_rounds(SCHEMA.select(["s"]), 1.0, 5000, 10, mechanisms=("grr",), delta=delta)
    assert advice["s"][BUDGET].at_delta == pytest.approx(total, abs=0.0006)
    found = advice["s"][DELTA]
    assert found.at_delta is not None
    assert 0.998 <= found.at_delta <= 1.0
    assert found.spent > 1.0 or delta == 1e-6
    assert found.level_error <= advice["s"][BUDGET].level_error
    assert advice["s"].if_constant.name == KEPT
    assert advice["s"].if_changing.name == PEOPLE


def test_with_a_large_budget_it_is_the_budget_that_is_divided() -> None:
    advice = advise_rounds(SCHEMA, 20.0, 5000, 2, mechanisms=("grr",))
    assert advice["s"].if_changing.name == BUDGET
    assert advice["s"].crossing is not None
    assert advice["s"].epsilon > advice["s"].crossing


def test_advice_follows_given_frequencies_and_is_plain_data() -> None:
    rare = {"m": np.array([0.97, 0.01, 0.01, 0.01]), "s": np.array([0.5, 0.5])}
    advice = advise_rounds(SCHEMA, 2.0, 1000, 5, rare)
    assert advice.origin == "frequencies that were given"
    data = json.loads(advice.to_json())
    assert [item["attribute"] for item in data["attributes"]] == ["m", "s"]
    assert data["attributes"][0]["options"][0]["spent_if_values_change"] == "infinity"
    assert "<table>" in advice._repr_html_()
    assert "5 rounds" in repr(advice)
    assert least_noise(("grr", "ss", "oue"), 1.0, np.full(64, 1 / 64)).name != "grr"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 1}, "`rounds` must be a whole number of at least 2"),
        ({"people": 0}, "`people` must be"),
        ({"epoch": 3}, "`epoch` must be a whole number of at least 1 and at most 2"),
        ({"delta": 1.0}, "`delta` must be"),
        ({"epsilon": 0.0}, "`epsilon` must be"),
        ({"mechanisms": ("ss",)}, "`mechanisms` must be one of grr, oue, olh"),
        ({"frequencies": {"m": [0.5, 0.6, 0, 0], "s": [0.5, 0.5]}}, "frequencies of m"),
    ],
)
def test_bad_questions_are_refused(arguments: dict, words: str) -> None:
    given = {"schema": SCHEMA, "epsilon": 1.0, "people": 10, "rounds": 2} | arguments
    with pytest.raises(sl.InputError, match=words):
        advise_rounds(**given)
