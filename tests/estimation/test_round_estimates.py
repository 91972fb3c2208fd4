"""Estimates over the rounds of a panel: covariances by enumeration, truth recovered, coverage, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2

import sidelight as sl
from sidelight.estimation.over_time import Overlap, Series
from sidelight.estimation.unbiased import Unbiased
from sidelight.mechanisms import create
from sidelight.mechanisms.longitudinal import Rounds, memory_steps
from sidelight.protocols import Panel, PanelMemory
from sidelight.sources import Attendance, drifting
from sidelight.transport.panel_collection import panel_reports

TINY = 1e-6


def stated(mechanism, values: np.ndarray, people: int) -> Unbiased:
    """An estimate that happens to be the truth, with its variance about those who reported."""
    shares = np.bincount(values, minlength=mechanism.size) / len(values)
    spread = mechanism.variance(people, shares) - shares * (1 - shares) / people
    zero = np.zeros_like(shares)
    return Unbiased(shares, spread, zero, zero, people)


def series(mechanism, values: np.ndarray, rounds: int, *, population: bool = False, **changes) -> Series:
    n = len(values)
    overlap = Overlap(
        np.full(rounds, float(n)), np.full((rounds, rounds), float(n)), True,
        np.ones((rounds, rounds), dtype=bool), True,
    )  # fmt: skip
    levels = tuple(stated(mechanism, values, n) for _ in range(rounds))
    return Series(levels, replace(overlap, **changes), mechanism, population)


def enumerated(mechanism, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variance of a round's estimates, and covariance of two, by listing every memo and report."""
    permanent, fresh = memory_steps(mechanism, kept=True)
    p, q = map(float, mechanism.mark_rates)
    adds = (np.eye(mechanism.size) - q) / (p - q)  # what a reported code adds to each value's estimate
    given = fresh @ adds
    variance = covariance = 0.0
    for value in values:
        likely = permanent[value]
        mean = likely @ given
        variance = variance + (likely @ (fresh @ adds**2)) - mean**2
        covariance = covariance + likely @ given**2 - mean**2
    return variance / len(values) ** 2, covariance / len(values) ** 2


@pytest.mark.parametrize(("name", "size"), [("grr", 2), ("grr", 4), ("l-grr", 2), ("l-grr", 3), ("l-grr", 5)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_change_varies_as_enumeration_says(name: str, size: int, epsilon: float) -> None:
    mechanism = create(name, size, epsilon)
    values = np.random.default_rng(size).integers(0, size, 7)
    own, shared = enumerated(mechanism, values)
    found = series(mechanism, values, 2)
    np.testing.assert_allclose(found.variances[0], own, rtol=1e-9)
    np.testing.assert_allclose(found.covariances(0)[0][1], shared, rtol=1e-9)
    np.testing.assert_allclose(found.change(0, 1)[1], np.sqrt(np.maximum(2 * own - 2 * shared, 0)), atol=1e-7)
    assert (found.change(0, 1)[1] ** 2 <= 2 * own + 1e-12).all()


@pytest.mark.parametrize("name", ["l-grr", "l-sue", "l-osue", "l-oue", "loloha"])
@pytest.mark.parametrize("rounds", [1, 3, 30])
def test_the_mean_over_rounds_is_that_of_the_mechanism_of_all_reports(name: str, rounds: int) -> None:
    oracle = create(name, 4, 2.0, first=0.8)
    values = np.repeat([0, 1, 2, 3], [60, 25, 10, 5])
    shares = np.bincount(values) / 100
    whole = Rounds(oracle, rounds).variance(100, shares)
    collected, population = (series(oracle, values, rounds, population=about) for about in (False, True))
    np.testing.assert_allclose(collected.mean()[1] ** 2, whole - shares * (1 - shares) / 100, rtol=1e-6)
    # of the population every round has its own sampling error in `stated`'s figures left out
    floor = collected.mean()[2] ** 2
    kept = oracle.stored.variance(100, shares) - shares * (1 - shares) / 100
    np.testing.assert_allclose(floor, kept, rtol=1e-6)
    assert (population.mean()[1] >= collected.mean()[1] - 1e-12).all()


@pytest.mark.parametrize("name", ["grr", "l-grr"])
@pytest.mark.parametrize("seed", range(6))
def test_errors_are_no_smaller_than_they_are_whoever_stays_away(name: str, seed: int) -> None:
    """Who leaves may all have one value, of which a report says more or less than of another."""
    mechanism, rng = create(name, 5, 4.0), np.random.default_rng(seed)
    values = np.sort(rng.integers(0, 5, 40))
    rounds = [values[:30], values[10:]] if seed % 2 else [values, values[rng.integers(5, 30) :]]
    stayed = rounds[0][10:] if seed % 2 else rounds[1]
    sizes = np.array([len(given) for given in rounds], dtype=float)
    both = np.full((2, 2), float(len(stayed)))
    overlap = Overlap(sizes, both, True, np.ones((2, 2), dtype=bool), True)
    levels = tuple(stated(mechanism, given, len(given)) for given in rounds)
    own = [enumerated(mechanism, given)[0] for given in rounds]
    shared = enumerated(mechanism, stayed)[1] * len(stayed) ** 2 / sizes.prod()
    found = Series(levels, overlap, mechanism, False)
    assert (found.change(0, 1)[1] ** 2 >= own[0] + own[1] - 2 * shared - 1e-12).all()
    weights = sizes / sizes.sum()
    true = weights[0] ** 2 * own[0] + weights[1] ** 2 * own[1] + 2 * weights.prod() * shared
    assert (found.mean()[1] ** 2 >= true - 1e-12).all()


def test_what_is_not_known_makes_no_interval_shorter() -> None:
    oracle, values = create("l-grr", 3, 2.0), np.array([0, 0, 1, 2])
    sure = series(oracle, values, 3)
    for changes in ({"is_known": False}, {"are_frozen": False}):
        unsure = series(oracle, values, 3, **changes)
        assert (unsure.change(0, 1)[1] > sure.change(0, 1)[1]).all()
        np.testing.assert_allclose(unsure.mean()[1], sure.mean()[1])
    fresh = series(oracle, values, 3, share_memos=np.zeros((3, 3), dtype=bool))
    np.testing.assert_allclose(fresh.change(0, 1)[1] ** 2, 2 * fresh.variances[0])
    np.testing.assert_allclose(fresh.mean()[1] ** 2, fresh.variances[0] / 3)
    assert (fresh.mean()[2] == 0).all()


ATTENDANCE = Attendance(0.2, 0.1, 0.1)
SURE = sl.simulate_panel(150, 3, [[0.3, 0.1], [0.2, 0.2], [0.1, 0.1]], seed=5, attendance=ATTENDANCE)
ONE = sl.simulate_panel(120, 3, [0.5, 0.3, 0.2], seed=6, attendance=ATTENDANCE)


def collected(panel: Panel, truth: sl.sources.SimulatedPanel, seed: int) -> sl.estimation.RoundEstimates:
    """The estimates of a simulated collection of all rounds."""
    memory = PanelMemory.new(panel, seed=seed)
    rounds = []
    for number in range(1, truth.rounds + 1):
        records = truth.codes[number - 1][truth.present[number - 1]]
        rounds.append(panel_reports(panel, number, records, truth.identifiers(number), memory, seed=seed))
    return sl.estimate_rounds(rounds)


@pytest.mark.parametrize(
    ("name", "epoch"),
    [
        ("l-grr", None),
        ("grr", 2),
        ("l-osue", 2),
        ("loloha", None),
        ("olh", None),
        ("dbitflip", 2),
        ("rappor", None),
    ],
)
def test_errors_are_as_stated_and_levels_are_unbiased(name: str, epoch: int | None) -> None:
    """40 collections of the same people: sums of squares within what chance has at 10^-6, both ways."""
    release = sl.Release(ONE.schema["x1"], name, 2.0, times=3, memory="kept")
    panel, trials = Panel(sl.Plan((release,)), epoch=epoch), 40
    errors: dict[object, list[float]] = {}
    for seed in range(trials):
        found = collected(panel, ONE, seed)
        for first, last in ((1, 2), (2, 3)):
            row = found.change("x1", first, last)[0]
            truth = ONE.reported(last)["x1"][0] - ONE.reported(first)["x1"][0]
            errors.setdefault((first, last), []).append((row.change - truth) / row.standard_error)
        sizes = [item.people for item in found.turnout]
        truth = np.average([ONE.reported(t)["x1"][0] for t in (1, 2, 3)], weights=sizes)
        row = next(found.means("x1"))
        errors.setdefault("mean", []).append((row.frequency - truth) / row.standard_error)
        level = next(found.levels("x1"))
        errors.setdefault("level", []).append(
            (level.frequency - ONE.reported(1)["x1"][0]) / level.standard_error
        )
    low, high = chi2.ppf([TINY, 1 - TINY], trials)
    for what, scaled in errors.items():
        assert low <= float(np.square(scaled).sum()) <= high, what
        assert abs(np.mean(scaled)) < 5 / np.sqrt(trials), what


def test_intervals_of_changes_cover_and_raise_false_alarms_at_their_rate() -> None:
    """200 collections with values that stay: how many intervals miss is binomial, judged at 10^-6."""
    truth = sl.simulate_panel(200, 2, [0.6, 0.4], seed=2, attendance=Attendance(skipping=0.1))
    panel = Panel(sl.Plan((sl.Release(truth.schema["x1"], "l-grr", 2.0, times=2),)))
    missed = alarms = 0
    for seed in range(200):
        row = collected(panel, truth, seed).change("x1", 1, 2)[0]
        moved = truth.reported(2)["x1"][0] - truth.reported(1)["x1"][0]
        missed += not row.lower <= moved <= row.upper
        alarms += row.is_seen
    low, high = binom.ppf([TINY, 1 - TINY], 200, 0.05)
    assert low <= missed <= high
    assert alarms <= high


def test_intervals_about_the_population_cover_where_people_change() -> None:
    """100 panels of other people, fresh noise: at most the misses that 10^-6 allows."""
    step = drifting([0.3, 0.7], 0.2)
    missed = 0
    for seed in range(100):
        truth = sl.simulate_panel(300, 2, [0.7, 0.3], seed=seed, changes=step)
        panel = Panel(sl.Plan((sl.Release(truth.schema["x1"], "grr", 2.0, times=2),)))
        memory = PanelMemory.new(panel, seed=seed)
        rounds = [
            panel_reports(panel, t, truth.codes[t - 1], truth.identifiers(t), memory, seed=seed)
            for t in (1, 2)
        ]
        row = sl.estimate_rounds(rounds, about="population").change("x1", 1, 2)[0]
        moved = truth.expected(2)["x1"][0] - truth.expected(1)["x1"][0]
        missed += not row.lower <= moved <= row.upper
    assert missed <= binom.ppf(1 - TINY, 100, 0.05)


@pytest.mark.parametrize("division", ["people", "budget", "none"])
def test_the_truth_is_recovered_whatever_is_divided(division: str) -> None:
    """A drift that is far larger than the errors; intervals at 1 - 10^-6."""
    truth = sl.simulate_panel(4000, 3, [0.9, 0.1], seed=1, changes=drifting([0.1, 0.9], 0.4))
    plan = sl.Plan((sl.Release(truth.schema["x1"], "grr", 6.0, times=3),))
    panel = Panel(plan, division=division)  # type: ignore[arg-type]
    memory = PanelMemory.new(panel, seed=1)
    rounds = [
        panel_reports(panel, t, truth.codes[t - 1], truth.identifiers(t), memory, seed=1) for t in (1, 2, 3)
    ]
    about = "population" if division == "people" else "collected"
    found = sl.estimate_rounds(rounds[::-1], confidence=1 - TINY, about=about)
    assert found.numbers == (1, 2, 3)
    for row in found.levels():
        expected = truth.expected(row.round) if division == "people" else truth.reported(row.round)
        assert row.lower <= expected["x1"][int(row.value)] <= row.upper
    assert all(row.is_seen for row in found.changes())
    stayed = [item.stayed for item in found.turnout]
    assert stayed == ([None, 0, 0] if division == "people" else [None, 4000, 4000])


def test_attributes_may_be_asked_in_fewer_rounds() -> None:
    a, b = sl.categorical("a", ["0", "1"]), sl.categorical("b", ["0", "1", "2"])
    plan = sl.Plan((sl.Release(a, "grr", 1.0, times=3), sl.Release(b, "oue", 1.0)))
    rng = np.random.default_rng(1)
    rounds = [
        panel_reports(Panel(plan), t, rng.integers(0, 2, (200, 2 if t == 1 else 1)).astype(np.uint16), seed=t)
        for t in (1, 2, 3)
    ]
    found = sl.estimate_rounds(rounds)
    assert found.schema.names == ("a", "b")
    assert [row.round for row in found.levels("b")] == [1, 1, 1]
    assert list(found.changes("b")) == []
    assert {(row.first, row.last) for row in found.changes("a")} == {(1, 2), (2, 3), (1, 3)}
    with pytest.raises(sl.InputError, match="round that asked for 'b'"):
        found.change("b", 1, 2)


def test_results_are_written_and_read(tmp_path: Path) -> None:
    releases = tuple(sl.Release(item, "l-grr", 2.0, times=3) for item in SURE.schema)
    found = collected(Panel(sl.Plan(releases)), SURE, 1)
    data = json.loads(found.write(tmp_path / "over.json").read_text())
    assert [item["round"] for item in data["rounds"]] == [1, 2, 3]
    assert len(data["levels"]) == 15
    assert len(data["changes"]) == 15
    assert len(data["means"]) == 5
    assert list(found.best(SURE.schema.names[0])) == [1, 2, 3]
    assert found.to_arrow().column_names == [
        "attribute", "value", "round", "frequency", "standard_error", "lower", "upper",
    ]  # fmt: skip
    assert found.changes_to_arrow().num_rows == 15
    assert found.write(tmp_path / "over.csv").read_text().startswith('"attribute"')
    with pytest.raises(sl.InputError, match="is there already"):
        found.write(tmp_path / "over.csv")
    assert "3 rounds" in repr(found)
    assert "<table>" in found._repr_html_()


def rounds_of(seed: int = 1, epsilon: float = 1.0, **changes: object) -> list[sl.RecordReports]:
    schema = SURE.schema
    plan = sl.Plan(tuple(sl.Release(item, "l-grr", epsilon, times=3) for item in schema))
    panel = Panel(plan, **changes)  # type: ignore[arg-type]
    memory = PanelMemory.new(panel, seed=seed)
    return [
        panel_reports(
            panel, t, SURE.codes[t - 1][SURE.present[t - 1]], SURE.identifiers(t), memory, seed=seed
        )
        for t in (1, 2, 3)
    ]


def test_rounds_come_in_any_order_and_in_parts() -> None:
    one, two, three = rounds_of()
    whole = sl.estimate_rounds([one, two, three])
    parts = sl.estimate_rounds([three[:40], two, three[40:], one])
    assert [vars(row) for row in whole.levels()] == [vars(row) for row in parts.levels()]
    missing = sl.estimate_rounds([one, three])
    assert missing.numbers == (1, 3)
    assert "Rounds that are not among the reports: 2." in missing.notes


def test_bad_rounds_are_refused_in_one_sentence() -> None:
    (one, two, three), (other, _, _) = rounds_of(), rounds_of(seed=2)
    plain = replace(one, round=None)
    assert one.round is not None
    assert two.round is not None
    dearer = replace(rounds_of(epsilon=2.0)[1], round=two.round)
    frozen = replace(two, round=two.round.model_copy(update={"epoch": 2}))
    again = replace(one, batch="b", is_shuffled=True)
    for given, words in (
        ([], "there are no reports"),
        ([plain, two], "of no round of a panel"),
        ([two, other], "of two panels"),
        ([one, one], "the very same"),
        ([one, again], "round 1 is there twice"),
        ([one[:50], two], f"round 1 has 50 of its {one.people} reports"),
        ([one, dearer], "rounds 1 and 2 report 'x1' in different ways, 'l-grr' at 1.0 and 'l-grr' at 2.0"),
        ([one, frozen], "rounds 1 and 2 differ in epoch, None and 2"),
        ([one.aggregate(), two], "give the reports themselves"),
    ):
        with pytest.raises(sl.InputError, match=words) as caught:
            sl.estimate_rounds(given)
        assert "\n" not in str(caught.value)
    with pytest.raises(sl.InputError, match="`confidence`"):
        sl.estimate_rounds([one, three], confidence=1.0)
    with pytest.raises(sl.InputError, match="`about`"):
        sl.estimate_rounds([one, three], about="everyone")  # type: ignore[arg-type]


def test_notes_say_what_is_frozen_and_what_cannot_be_known() -> None:
    frozen, followed = (
        sl.estimate_rounds(rounds_of(**kw)) for kw in ({"epoch": 2}, {"follow_changes": True})
    )
    assert any("frozen at the first report of 2 rounds" in note for note in frozen.notes)
    assert any("at most those given" in note for note in followed.notes)
    pairs = zip(frozen.change("x1", 1, 2), followed.change("x1", 1, 2), strict=True)
    assert all(mine.standard_error < theirs.standard_error for mine, theirs in pairs)


def test_posterior_means_of_rounds_err_less_and_do_not_share_kept_noise() -> None:
    rng = np.random.default_rng(2)
    mechanism, people = create("grr", 5, 1.0), 600
    errors = {"posterior": 0.0, "unbiased": 0.0, "kept": 0.0}
    for seed in range(6):
        share = rng.dirichlet(np.ones(5))
        values = rng.choice(5, size=people, p=share).astype(np.uint16)
        truth = np.bincount(values, minlength=5) / people
        rows = [mechanism.aggregate(mechanism.randomise(values, seed=10 * seed + t)) for t in range(4)]
        plain = stated(mechanism, values, people)
        levels = tuple(replace(plain, estimate=mechanism.estimate(row)) for row in rows)
        fresh = series(mechanism, values, 4, share_memos=np.zeros((4, 4), bool))
        made = {
            "posterior": replace(fresh, levels=levels),
            "kept": replace(series(mechanism, values, 4), levels=levels),
        }
        for name, item in made.items():
            assert item.posterior_means.sum(axis=1) == pytest.approx(np.ones(4))
            errors[name] += float(((item.posterior_means - truth) ** 2).sum())
        errors["unbiased"] += float(((made["kept"].estimates - truth) ** 2).sum())
    assert errors["posterior"] < 0.5 * errors["unbiased"]
    assert errors["posterior"] < errors["kept"] < errors["unbiased"]
