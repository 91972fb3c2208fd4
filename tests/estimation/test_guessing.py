"""Estimates that were made say whether they beat guessing, and are seldom wrong about it."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.estimation.guessing import Guessed, beside_guess
from sidelight.protocols import smp, spl

SCHEMA = sl.Schema(
    tuple(
        sl.categorical(f"x{number}", [f"{number}-{value}" for value in range(size)])
        for number, size in enumerate((2, 3, 5, 12))
    )
)


def drawn_people(people: int, seed: int, shape: float = 1.0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Records with frequencies drawn from all there are, and these frequencies."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(a.size, people, p=rng.dirichlet(np.full(a.size, shape))) for a in SCHEMA]
    truth = {
        item.name: np.bincount(column, minlength=item.size) / people
        for item, column in zip(SCHEMA, columns, strict=True)
    }
    return np.stack(columns, axis=1).astype(np.uint16), truth


def off(one: np.ndarray, truth: np.ndarray) -> float:
    return math.sqrt(float(((one - truth) ** 2).mean()))


@pytest.mark.parametrize(("epsilon", "people"), [(0.2, 1_000), (1.0, 1_000), (1.0, 10_000), (4.0, 1_000)])
def test_verdicts_are_seldom_wrong(epsilon: float, people: int) -> None:
    """40 collections of 4 attributes: at most 1 of 8 verdicts is wrong, and the guess's interval holds.

    A verdict may be wrong in 5 % where error and guess are alike, and the estimates' own error scatters; the
    interval holds 90 %, above 83 % but for a chance of 1 in 1,000 (160 intervals).
    """
    verdicts: Counter[tuple[str, bool]] = Counter()
    held = []
    for seed in range(40):
        records, truth = drawn_people(people, seed)
        found = sl.estimate(spl(SCHEMA, epsilon).randomise(records, seed=seed))
        for name, item in found.guessing.attributes.items():
            guess = off(np.full(len(truth[name]), 1 / len(truth[name])), truth[name])
            verdicts[item.verdict, off(found[name], truth[name]) < guess] += 1
            held.append(item.guess_lowest <= guess <= item.guess_highest)
    wrong = verdicts["better than guessing", False] + verdicts["worse than guessing", True]
    sure = wrong + verdicts["better than guessing", True] + verdicts["worse than guessing", False]
    assert wrong <= sure / 8
    assert np.mean(held) > 0.83


def test_noise_beyond_use_and_little_noise_are_told_apart() -> None:
    records, _ = drawn_people(1_000, 1)
    noisy = sl.estimate(spl(SCHEMA, 0.05).randomise(records, seed=1), estimator="least-risk")
    assert noisy.guessing.headline().startswith(
        "These estimates are worse than guessing: they are off by about"
    )
    assert repr(noisy).endswith("; worse than guessing)")
    assert "; worse than guessing)" in noisy._repr_html_()
    fine = sl.estimate(spl(SCHEMA, 8.0).randomise(records, seed=1))
    assert fine.guessing.verdict == "better than guessing"
    assert fine.guessing.headline().startswith("Frequencies right to about")


def test_where_values_are_equally_common_no_estimate_claims_to_beat_the_guess() -> None:
    """20 collections; the guess is right, so that each claim would be wrong."""
    records = np.stack([np.arange(3_000) % item.size for item in SCHEMA], axis=1).astype(np.uint16)
    for seed in range(20):
        found = sl.estimate(smp(SCHEMA, 1.0).randomise(records, seed=seed))
        assert found.guessing.verdict != "better than guessing"


def test_a_closer_public_prior_is_the_guess_to_beat() -> None:
    records, truth = drawn_people(2_000, 2)
    found = sl.estimate(spl(SCHEMA, 4.0).randomise(records, seed=1))
    judged = replace(found, prior=truth)
    assert found.guessing.guess == "calling all values equally common"
    assert judged.guessing.guess == "the public prior"
    assert judged.guessing.verdict != "better than guessing"
    far = {name: np.eye(len(share))[int(share.argmin())] for name, share in truth.items()}
    assert replace(found, prior=far).guessing.guess == "calling all values equally common"


def test_people_for_a_precision_bring_it() -> None:
    """The error of 10 collections by so many people, each attribute's, is at most a quarter above it."""
    records, truth = drawn_people(2_000, 3)
    found = replace(sl.estimate(spl(SCHEMA, 2.0).randomise(records, seed=1)), within=0.03)
    people = found.guessing.people_within
    more = records[np.random.default_rng(1).integers(len(records), size=people)]
    own = {
        item.name: np.bincount(more[:, at], minlength=item.size) / people for at, item in enumerate(SCHEMA)
    }
    squares = {name: [] for name in truth}
    for seed in range(10):
        again = sl.estimate(spl(SCHEMA, 2.0).randomise(more, seed=seed))
        for name in truth:
            squares[name].append(off(again[name], own[name]) ** 2)
    worst = max(math.sqrt(np.mean(each)) for each in squares.values())
    assert 0.5 * 0.03 < worst < 1.25 * 0.03


def test_the_guess_of_exact_estimates_is_exact() -> None:
    share = np.array([0.7, 0.2, 0.1])
    each, together = beside_guess({"x": share}, {"x": np.zeros(3)}, {"x": 0.0}, {})
    assert each["x"].guess_error == pytest.approx(off(np.full(3, 1 / 3), share))
    assert each["x"].guess_lowest == pytest.approx(each["x"].guess_highest)
    assert together == each["x"]
    assert together.verdict == "better than guessing"


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(0.05, "better than guessing"), (0.15, "not told from guessing"), (0.3, "worse than guessing")],
)
def test_a_verdict_needs_the_error_outside_the_interval(error: float, verdict: str) -> None:
    assert Guessed(error, 0.15, 0.1, 0.2).verdict == verdict


def test_json_says_it_too() -> None:
    records, _ = drawn_people(500, 1)
    data = json.loads(sl.estimate(spl(SCHEMA, 1.0).randomise(records, seed=1)).to_json())["usefulness"]
    assert set(data["attributes"]) == set(SCHEMA.names)
    assert data["verdict"] in ("better than guessing", "worse than guessing", "not told from guessing")
    assert data["people_within"] > 500


def test_exact_estimates_are_better_than_a_guess_that_happens_to_be_right() -> None:
    table = sl.read(pa.table({"x": ["a", "b"] * 50}))
    found = sl.estimate(sl.collect(table, sl.Plan.uniform(table.schema, "identity"), seed=1)).guessing
    assert found.verdict == "better than guessing"
    assert "about 1 person must report" in " ".join(found.notes())


def test_a_prior_of_other_values_is_refused() -> None:
    table = sl.read(pa.table({"x": ["a", "b"] * 50}))
    found = sl.estimate(sl.collect(table, sl.Plan.uniform(table.schema, "grr", 1.0), seed=1))
    with pytest.raises(ValueError, match="frequencies"):
        _ = replace(found, prior={"x": np.full(3, 1 / 3)}).guessing
