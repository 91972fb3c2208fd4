"""Who can be followed: the distance between one person's batches and two people's."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import sidelight as sl
from sidelight.foundation.arrays import Array
from sidelight.leakage.over_time import found_among, linking, repetitions
from sidelight.mechanisms import create
from sidelight.mechanisms.longitudinal import seen_changes
from sidelight.mechanisms.longitudinal.sequences import listed_steps


def release(size: int, mechanism: str, epsilon: float | None, **options: Any) -> sl.Release:
    attribute = sl.categorical("colour", [str(code) for code in range(size)])
    return sl.Release(attribute, mechanism, epsilon, **options)


def longitudinal(name: str, size: int, unlimited: float = 2.0) -> sl.Release:
    return release(size, name, unlimited, parameters={"first": 1.0})


def even(size: int) -> Array:
    return np.full(size, 1 / size)


@pytest.mark.parametrize(
    ("unlimited", "times", "distance"),
    [(2.0, 1, 0.179), (2.0, 5, 0.496), (2.0, 20, 0.740), (4.0, 20, 0.628)],
)
def test_refereed_numbers_of_l_grr(unlimited: float, times: int, distance: float) -> None:
    found = linking(longitudinal("l-grr", 4, unlimited), even(4), times=times)
    assert found.kind == "exact"
    assert found.distance == pytest.approx(distance, abs=6e-4)
    assert found.same_or_not == pytest.approx((1 + found.distance) / 2)
    assert found.distance <= found.ceiling == pytest.approx(0.75)


@pytest.mark.parametrize(("times", "distance"), [(1, 0.380), (5, 0.902), (20, 0.999)])
def test_refereed_numbers_of_l_sue(times: int, distance: float) -> None:
    """Both are simulated: five standard errors of ours, and .01 for theirs."""
    found = linking(longitudinal("l-sue", 16), even(16), times=times)
    assert found.kind == "estimate"
    assert abs(found.distance - distance) < 5 * found.error + 0.01


def test_refereed_numbers_of_rappor() -> None:
    asked = release(32, "rappor", None, parameters={"f": 0.5, "p": 0.5, "q": 0.75}, memory="kept")
    for times, distance in ((1, 0.112), (5, 0.485), (20, 0.952)):
        found = linking(asked, even(32), times=times)
        assert abs(found.distance - distance) < 5 * found.error + 0.015


@pytest.mark.parametrize(("times", "share"), [(1, 0.002), (5, 0.003), (20, 0.004)])
def test_one_among_a_thousand_by_l_grr(times: int, share: float) -> None:
    assert found_among(longitudinal("l-grr", 4), even(4), 1000, times=times) == pytest.approx(share, abs=6e-4)


def test_one_among_a_crowd_by_l_sue() -> None:
    """Of 1,000 people .34 are found; of 300, the drawn crowd's share within five standard errors."""
    found = found_among(longitudinal("l-sue", 16), even(16), 300, times=5)
    assert found is not None
    assert 0.34 - 5 * math.sqrt(0.34 * 0.66 / 300) < found < 0.8


def brute(permanent: Array, fresh: Array, shares: Array, times: int) -> float:
    """Return the distance by listing all sequences of reports in their order."""
    laws = np.array([
        [math.prod(row[y] for y in batch) for batch in product(range(len(row)), repeat=times)]
        for row in fresh
    ])  # fmt: skip
    memos = shares @ permanent
    both = sum(w * np.outer(law, law) for w, law in zip(memos, laws, strict=True))
    alone = memos @ laws
    return float(np.abs(both - np.outer(alone, alone)).sum() / 2)


@pytest.mark.parametrize(("name", "size", "times"), [
    ("l-grr", 2, 4), ("l-grr", 3, 3), ("l-sue", 2, 3), ("l-osue", 3, 2), ("l-oue", 2, 2),
])  # fmt: skip
def test_the_distance_is_that_of_enumeration(name: str, size: int, times: int) -> None:
    shares = np.arange(1, size + 1) / np.arange(1, size + 1).sum()
    oracle = create(name, size, 2.0, first=1.0)
    found = linking(longitudinal(name, size), shares, times=times)
    assert found.distance == pytest.approx(brute(*listed_steps(oracle), shares, times), abs=1e-9)


@pytest.mark.parametrize("name", ["l-grr", "l-sue", "l-osue"])
def test_drawn_batches_agree_with_listed_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fails in fewer than one of a million seeds; the seed is fixed."""
    asked, shares = longitudinal(name, 3), np.array([0.5, 0.3, 0.2])
    exact = linking(asked, shares, times=4)
    monkeypatch.setattr("sidelight.leakage.over_time.links._MOST_BATCHES", 0)
    drawn = linking(asked, shares, times=4, draws=4000, seed=3)
    assert drawn.kind == "estimate"
    assert abs(drawn.distance - exact.distance) < 5 * drawn.error
    assert drawn.ceiling == pytest.approx(exact.ceiling)


@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_drawn_batches_of_fresh_noise_agree_with_listed_ones(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fails in fewer than one of a million seeds; the seed is fixed."""
    asked, shares = release(3, mechanism, 1.5, times=3), np.array([0.5, 0.3, 0.2])
    exact = linking(asked, shares)
    monkeypatch.setattr("sidelight.leakage.over_time.links._MOST_BATCHES", 0)
    drawn = linking(asked, shares, draws=4000, seed=3)
    assert (exact.kind, drawn.kind) == ("exact", "estimate")
    assert abs(drawn.distance - exact.distance) < 5 * drawn.error


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "size", "found"),
    [("l-grr", 100, (0.01, 0.05, 0.10)), ("l-sue", 16, (0.01, 0.34, 0.92))],
)
def test_refereed_numbers_of_one_among_a_thousand(name: str, size: int, found: tuple[float, ...]) -> None:
    """Both are one simulated crowd: five standard errors of each, and how theirs are rounded."""
    for times, share in zip((1, 5, 20), found, strict=True):
        ours = found_among(longitudinal(name, size), even(size), 1000, times=times)
        assert ours is not None
        assert abs(ours - share) < 7 * math.sqrt(share * (1 - share) / 1000) + 0.005


def test_cohorts_that_share_a_seed_hide_a_device() -> None:
    """LOLOHA with 64 seeds for 1,000 people: those of one seed are 16, and four buckets part them."""
    assert found_among(longitudinal("l-grr", 4), even(4), 16, times=20) == pytest.approx(0.25, abs=0.01)
    assert found_among(longitudinal("l-grr", 4), even(4), 1000, times=5) == pytest.approx(0.003, abs=5e-4)


@pytest.mark.parametrize("people", [2, 5])
def test_who_is_found_exactly_agrees_with_a_crowd(people: int) -> None:
    """A simulation of 4,000 crowds from the listed laws, within five standard errors."""
    asked, shares = longitudinal("l-grr", 3), np.array([0.6, 0.3, 0.1])
    permanent, fresh = listed_steps(create("l-grr", 3, 2.0, first=1.0))
    memos = shares @ permanent
    both, alone = fresh.T @ (memos[:, None] * fresh), memos @ fresh
    rng, crowds = np.random.default_rng(8), 4000
    pairs = rng.choice(both.size, size=crowds, p=both.reshape(-1))
    first, second = np.unravel_index(pairs, both.shape)
    others = rng.choice(len(alone), size=(crowds, people - 1), p=alone)
    fits = (both / np.outer(alone, alone)).round(9)
    right = fits[first, second][:, None]
    wrong = fits[first[:, None], others]
    won = (right >= wrong).all(axis=1) / (1 + np.isclose(right, wrong).sum(axis=1))
    found = found_among(asked, shares, people, times=1)
    assert found is not None
    assert abs(won.mean() - found) < 5 * won.std() / math.sqrt(crowds)


@pytest.mark.parametrize("name", ["l-grr", "l-sue", "l-osue", "l-oue"])
def test_the_ceiling_is_that_of_the_memos_themselves(name: str) -> None:
    shares = np.array([0.5, 0.3, 0.2])
    permanent, _ = listed_steps(create(name, 3, 2.0, first=1.0))
    ceiling = linking(longitudinal(name, 3), shares).ceiling
    assert ceiling == pytest.approx(1 - ((shares @ permanent) ** 2).sum(), abs=1e-12)


def test_more_reports_link_better_and_never_beyond_the_ceiling() -> None:
    asked = longitudinal("l-grr", 4)
    distances = [linking(asked, even(4), times=times).distance for times in (1, 2, 4, 8, 16)]
    assert distances == sorted(distances)
    assert distances[-1] <= 0.75
    assert linking(asked, even(4), times=5000).kind == "certified"


def test_a_response_sent_again_as_it_is_links_as_far_as_memos_differ() -> None:
    kept = release(4, "grr", 2.0, times=9, memory="kept")
    assert linking(kept, even(4)).distance == pytest.approx(0.75)
    bits = release(3, "sue", 2.0, times=9, memory="kept")
    law = create("sue", 3, 2.0).report_law(64)
    assert law is not None
    assert linking(bits, even(3)).distance == pytest.approx(1 - ((even(3) @ law) ** 2).sum())


def test_own_seeds_give_a_device_away() -> None:
    assert linking(longitudinal("loloha", 8), even(8)).distance == 1.0


def test_fresh_noise_links_by_the_value_alone() -> None:
    asked, shares = release(3, "grr", 1.0, times=2), np.array([0.5, 0.3, 0.2])
    law = create("grr", 3, 1.0).report_law(8)
    assert law is not None
    assert linking(asked, shares).distance == pytest.approx(brute(np.eye(3), law, shares, 2), abs=1e-9)
    many = linking(release(3, "grr", 1.0, times=100_000), shares)
    assert (many.kind, many.distance) == ("certified", pytest.approx(1 - (shares**2).sum()))


@pytest.mark.parametrize(
    ("name", "size", "parameters", "seen"),
    [
        ("grr", 2, {}, 0.607), ("grr", 4, {}, 0.773), ("grr", 16, {}, 0.938),
        ("l-grr", 4, {"first": 0.5}, 0.773), ("loloha", 64, {"first": 0.5, "g": 2}, 0.303),
        ("loloha", 64, {"first": 0.5, "g": 4}, 0.579), ("dbitflip", 16, {"d": 1}, 0.478),
        ("dbitflip", 16, {"d": 4}, 0.926), ("dbitflip", 16, {"d": 16}, 1.0),
    ],
)  # fmt: skip
def test_how_often_a_change_shows(name: str, size: int, parameters: dict[str, Any], seen: float) -> None:
    shown = seen_changes(create(name, size, 1.0, **parameters), kept=True)
    assert shown == pytest.approx(seen, abs=1e-3)


def test_a_plan_says_what_repetition_means() -> None:
    belief = sl.Belief.from_joint([0.4, 0.3, 0.2, 0.1], ["colour"])
    plan = sl.Plan((release(4, "l-grr", 2.0, times=5, parameters={"first": 1.0}),))
    (item,) = repetitions(belief, plan)
    assert (item.times, item.memory) == (5, "kept")
    assert (item.first, item.together, item.unlimited) == pytest.approx((1.0, 1.997, 2.0), abs=1e-3)
    assert item.instant == pytest.approx(1.573, abs=1e-3)
    fresh = sl.Plan((release(4, "l-grr", 2.0, times=5, parameters={"first": 1.0}, memory="fresh"),))
    (item,) = repetitions(belief, fresh)
    assert (item.memory, item.unlimited, item.change_seen) == ("fresh", math.inf, None)
    assert item.together == pytest.approx(5.0)
    assert repetitions(belief, sl.Plan((release(4, "grr", 1.0),))) == ()
    assert repetitions(belief, sl.Plan((release(4, "withheld", None, times=3),))) == ()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: linking(longitudinal("l-grr", 4), even(3)), "4"),
        (lambda: found_among(longitudinal("l-grr", 4), even(4), 1), "`people`"),
        (lambda: linking("colour", even(4)), "`release`"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_in_a_sentence(act: Any, message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        act()
