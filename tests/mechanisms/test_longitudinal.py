"""Longitudinal oracles: section by section what T reports through one kept response say, and cost.

The first half walks the register: whatever keeps its response keeps this contract. The truth is enumerated
here from the four rates alone, without the package's own laws. The second half are published and refereed
numbers. Statistical tests have fixed seeds; each has a false-alarm rate below one in a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import sidelight as sl
from sidelight.foundation import compiled
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import MECHANISMS, Reports, create, make, mechanism_class
from sidelight.mechanisms.channel import DegradedChannel
from sidelight.mechanisms.longitudinal import sequences
from sidelight.mechanisms.longitudinal.device import simulate_rounds
from sidelight.mechanisms.longitudinal.oracle import Longitudinal, Remembers
from sidelight.mechanisms.longitudinal.rounds import Rounds

SIGMAS = 6.0  # two-sided 2e-9 each; fewer than 400 such comparisons are made
REMEMBERING = [name for name in MECHANISMS if issubclass(mechanism_class(name), Remembers)]
ORACLES = [name for name in REMEMBERING if issubclass(mechanism_class(name), Longitudinal)]
UNARY = ("l-sue", "l-oue", "l-osue", "rappor")


def examples(name: str, size: int, epsilon: float = 2.0) -> Iterator[Longitudinal]:
    for parameters in mechanism_class(name).examples(size):
        yield make(name, size, epsilon, parameters)


def steps_of(oracle: Longitudinal) -> tuple[np.ndarray, np.ndarray]:
    """Return P and I, from the rates alone: reports of bits are numbered as binary numbers."""
    p, q = map(float, oracle.permanent_rates)
    kept, made = map(float, oracle.instant_rates)
    size = oracle.size
    if oracle.name == "l-grr":
        same = np.eye(size) == 1
        return np.where(same, p, q), np.where(same, kept, made)
    bits = np.array(list(product([0, 1], repeat=size)))

    def chance(rates: np.ndarray, row: np.ndarray) -> float:
        return math.prod(rate if bit else 1 - rate for rate, bit in zip(rates, row, strict=True))

    true = [np.where(np.arange(size) == value, p, q) for value in range(size)]
    permanent = np.array([[chance(rates, row) for row in bits] for rates in true])
    fresh = np.array([[chance(np.where(memo, kept, made), row) for row in bits] for memo in bits])
    return permanent, fresh


def enumerated(oracle: Longitudinal, times: int) -> np.ndarray:
    """Return Pr(y_1..y_T | x) of all sequences of reports, shape (size, reports^T), by brute force."""
    permanent, fresh = steps_of(oracle)
    together = np.ones((len(fresh), 1))
    for _ in range(times):
        together = (together[:, :, None] * fresh[:, None, :]).reshape(len(fresh), -1)
    return permanent @ together


def epsilon_at(law: np.ndarray, delta: float) -> float:
    """Return the least epsilon at which no two rows have a larger hockey-stick divergence than delta."""
    low, high = 0.0, sup_ratio(law) + 1
    for _ in range(60):
        middle = (low + high) / 2
        gaps = law[:, None] - math.exp(middle) * law[None]
        low, high = (middle, high) if np.maximum(gaps, 0).sum(axis=2).max() > delta else (low, middle)
    return high


def sup_ratio(law: np.ndarray) -> float:
    return float(np.log(law.max(axis=0) / law.min(axis=0)).max())


# --- the contract of everything that keeps its response --------------------------------------------------


def test_the_register_has_every_longitudinal_oracle():
    assert set(REMEMBERING) == {"rappor", "l-grr", "l-sue", "l-oue", "l-osue", "loloha", "dbitflip"}


@pytest.mark.parametrize("name", ["l-grr", *UNARY])
@pytest.mark.parametrize(("size", "times"), [(2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3), (3, 4)])
def test_stated_budgets_and_channels_are_those_of_enumeration(name: str, size: int, times: int):
    rows = np.random.default_rng(size * times).dirichlet(np.ones(size), 4)
    for oracle in examples(name, size):
        law = enumerated(oracle, times)
        assert oracle.budget_of(times) == pytest.approx(sup_ratio(law), abs=1e-9)
        mechanism, count = oracle.together(times, kept=True)
        channel = mechanism.channel.repeated(count)
        assert channel.epsilon == pytest.approx(sup_ratio(law), abs=1e-9)
        assert channel.claim == "exact"
        for i, j in combinations(range(4), 2):
            truth = float(np.log((rows[i] @ law) / (rows[j] @ law)).max())
            assert channel.answers(rows[i], rows[j]) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("name", ["l-grr", *UNARY])
@pytest.mark.parametrize(("size", "times"), [(2, 1), (2, 4), (3, 2)])
def test_the_guess_and_the_law_of_counts_are_those_of_enumeration(name: str, size: int, times: int):
    for oracle in examples(name, size):
        rounds, law = Rounds(oracle, times), enumerated(oracle, times)
        listed = rounds.report_law(1 << 14)
        assert listed.sum(axis=1) == pytest.approx(np.ones(size))
        assert sup_ratio(listed) == pytest.approx(sup_ratio(law), abs=1e-9)
        assert listed.max(axis=0).sum() == pytest.approx(law.max(axis=0).sum())  # Bayes accuracy, even prior
        assert rounds.guess_rate == pytest.approx(law.max(axis=0).sum() / size)
        pair = oracle.pair_law(times)
        for factor in (1.0, 1.5, 3.0):
            truth = np.maximum(law[0] - factor * law[1], 0).sum()
            assert np.maximum(pair[0] - factor * pair[1], 0).sum() == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("name", ["l-grr", *UNARY])
def test_likelihoods_of_counts_are_those_of_enumeration(name: str):
    size, times = 3, 3
    for oracle in examples(name, size):
        permanent, fresh = steps_of(oracle)
        codes = np.arange(60) % size
        memos = oracle.permanent(codes, seed=1)
        sent = [oracle.report(memos, seed=10 + t) for t in range(times)]
        counts = sum(oracle.tallied(part).astype(np.int64) for part in sent)
        form = Rounds(oracle, times).form
        likely = Rounds(oracle, times).likelihoods(Reports(counts.astype(form.dtype)))
        for row in range(60):
            if name == "l-grr":
                numbers = [int(part.values[row]) for part in sent]
            else:
                marks = [oracle.marked(part)[row] for part in sent]
                numbers = [int("".join(str(int(bit)) for bit in mark), 2) for mark in marks]
            truth = permanent @ np.prod([fresh[:, y] for y in numbers], axis=0)
            assert likely[row] / likely[row].sum() == pytest.approx(truth / truth.sum())


@pytest.mark.parametrize("times", [1, 2, 3, 4])
@pytest.mark.parametrize("g", [2, 3])
def test_hashed_reports_are_those_of_a_response_over_buckets(times: int, g: int):
    """Whatever the seed; it is public, so that the channel is the worst over seeds."""
    oracle, response = create("loloha", 9, 2.0, g=g), create("l-grr", g, 2.0)
    law = enumerated(response, times)
    assert oracle.budget_of(times) == pytest.approx(sup_ratio(law), abs=1e-9)
    assert oracle.repeated(times).epsilon == oracle.budget_of(times)
    for seed in (0, 3 << 40, (1 << 64) - 1):
        buckets = oracle.hashed(np.arange(9), np.full(9, seed, dtype=np.uint64))
        for value in range(9):
            stated = sequences.sequence_law(oracle, [value] * times, seed).reshape(-1)
            assert stated == pytest.approx(law[buckets[value]])


def exponential(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 90
        return Fraction(Decimal(epsilon).exp().next_minus())


@pytest.mark.parametrize("name", REMEMBERING)
@pytest.mark.parametrize("size", [2, 3, 100, 65_536])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0, 20.0])
def test_realised_budgets_never_exceed_the_nominal_ones(name: str, size: int, epsilon: float):
    for oracle in examples(name, size, epsilon):
        before = 0.0
        for times in (1, 2, 7, 1000, 1_000_000):
            budget = oracle.budget_of(times)
            assert before <= budget * (1 + 1e-12)
            assert budget <= min(oracle.epsilon_unlimited, times * oracle.epsilon_instant * (1 + 1e-12))
            before = budget
        assert oracle.epsilon_unlimited <= epsilon
        assert oracle.budget_of(1) == pytest.approx(oracle.epsilon, rel=1e-9)
        if isinstance(oracle, Longitudinal):
            assert oracle.stored.factor <= exponential(epsilon)


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "rappor"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.6])
@pytest.mark.parametrize("size", [2, 5, 1000])
def test_the_first_report_spends_its_budget_and_never_more(name: str, share: float, size: int):
    for epsilon in (0.1, 1.0, 4.0):
        oracle = create(name, size, epsilon, share=share)
        assert oracle.factor <= exponential(share * epsilon)
        assert oracle.epsilon == pytest.approx(share * epsilon, rel=1e-9)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("times", [1, 3, 12])
def test_the_mean_of_rounds_is_unbiased_with_the_stated_variance(name: str, times: int):
    """2,000 collections of 100 new people; mean and mean square of 4 values at 6 standard errors."""
    runs, people, size = 2_000, 100, 4
    shares = np.array([0.6, 0.3, 0.1, 0.0])
    codes = np.random.default_rng(5).choice(size, runs * people, p=shares)
    for oracle in examples(name, size):
        rounds = Rounds(oracle, times)
        reports = rounds.randomise(codes, seed=29)
        marks = oracle.tally_marks(rounds.check(reports), reports.seeds).reshape(runs, people, size)
        p, q = map(float, oracle.mark_rates)
        estimates = (marks.mean(axis=1) / times - q) / (p - q)
        whole = rounds.estimate(rounds.aggregate(reports))
        assert whole == pytest.approx(estimates.mean(axis=0))
        stated = rounds.variance(people, shares)
        assert (np.abs(whole - shares) <= SIGMAS * np.sqrt(stated / runs)).all()
        squares = (estimates - shares) ** 2
        spread = squares.std(axis=0) / math.sqrt(runs)
        assert (np.abs(squares.mean(axis=0) - stated) <= SIGMAS * spread).all()


@pytest.mark.parametrize("name", ORACLES)
def test_one_round_of_the_mean_is_the_oracle_itself(name: str):
    for oracle in examples(name, 5):
        once, shares = Rounds(oracle, 1), np.array([0.5, 0.2, 0.2, 0.1, 0.0])
        assert once.variance(10, shares) == pytest.approx(oracle.variance(10, shares))
        assert once.channel == oracle.channel
        assert once.epsilon == pytest.approx(oracle.epsilon)


@pytest.mark.parametrize("name", ORACLES)
def test_rounds_refuse_what_no_device_can_have_sent(name: str):
    rounds = Rounds(next(examples(name, 3)), 4)
    reports = rounds.randomise(np.arange(30) % 3, seed=3)
    assert rounds.aggregate(reports).reports == 30
    values = reports.values.copy()
    values[7, 0] = 5
    with pytest.raises(InputError, match=r"1 of 30 are not \(row 7, counted from 0\)"):
        rounds.likelihoods(Reports(values, reports.seeds))
    if name in ("l-grr", "loloha"):
        values = reports.values.copy()
        values[7] = 0
        with pytest.raises(InputError, match=r"counts that add up to 4 reports; 1 of 30 are not \(row 7"):
            rounds.aggregate(Reports(values, reports.seeds))
    for bad in (0, -1, 2.5, 1_000_001):
        with pytest.raises(InputError, match="`times` must be a whole number"):
            Rounds(rounds.oracle, bad)
    with pytest.raises(InputError, match="`oracle` must be"):
        Rounds(create("grr", 3, 1.0), 2)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_chunks_of_devices_agree_with_the_whole(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled, "_least", path)
    rounds = Rounds(next(examples(name, 9)), 3)
    codes = np.random.default_rng(1).integers(0, 9, 50)
    whole = rounds.randomise(codes, seed=2)
    parts = [rounds.randomise(codes[at : at + 20], seed=2, offset=at) for at in range(0, 50, 20)]
    np.testing.assert_array_equal(whole.values, Reports.joined(parts).values)
    assert not rounds.randomise(codes).is_simulation


@pytest.mark.parametrize("name", ORACLES)
def test_a_seeded_memory_keeps_its_memo_and_an_epoch_makes_a_new_one(name: str):
    """Of 3,000 devices; two memos of one value agree by chance in fewer than 9 of 10."""
    oracle = next(examples(name, 4))
    codes = np.random.default_rng(3).integers(0, 4, 3_000)
    changed = (codes + 1) % 4
    same, again, other = oracle.memos(codes, seed=1), oracle.memos(codes, seed=1), oracle.memos(codes, seed=2)
    np.testing.assert_array_equal(same.values, again.values)
    assert (same.values != other.values).mean() > 0.1
    seen = (oracle.memos(changed, seed=1).values != same.values).reshape(3_000, -1).any(axis=1).mean()
    assert abs(seen - oracle.change_seen) <= SIGMAS * math.sqrt(0.25 / 3_000)
    mixed = np.where(np.arange(3_000) % 2, codes, changed)
    kept = oracle.memos(mixed, seed=1).values
    np.testing.assert_array_equal(kept[1::2], same.values[1::2])


@pytest.mark.parametrize("name", ORACLES)
def test_rounds_one_by_one_have_the_law_of_all_together(name: str):
    """Counts of 20,000 devices in 3 rounds: their mean and mean square, at 6 standard errors."""
    oracle, codes = next(examples(name, 3)), np.zeros(20_000, dtype=int)
    sent = list(simulate_rounds(oracle, codes, times=3, seed=8))
    one = sum(oracle.tallied(part).astype(float) for part in sent)
    other = Rounds(oracle, 3).randomise(codes, seed=9).values.astype(float)
    for power in (1, 2):
        gap = (one**power).mean(axis=0) - (other**power).mean(axis=0)
        spread = np.sqrt(((one**power).var(axis=0) + (other**power).var(axis=0)) / 20_000)
        assert (np.abs(gap) <= SIGMAS * spread).all()


def test_values_frozen_in_an_epoch_are_not_followed_and_others_are():
    oracle = create("l-grr", 3, 60.0)  # hardly any noise, so that reports show the value in use
    values = np.array([[0, 1, 1, 2], [2, 2, 0, 0]])
    frozen = [part.values.tolist() for part in simulate_rounds(oracle, values, epoch_rounds=2, seed=1)]
    assert frozen == [[0, 2], [0, 2], [1, 0], [1, 0]]
    followed = [part.values.tolist() for part in simulate_rounds(oracle, values, follow_changes=True, seed=1)]
    assert followed == values.T.tolist()
    with pytest.raises(InputError, match=r"`values` must be codes of shape \(people, rounds\)"):
        list(simulate_rounds(oracle, [0, 1], seed=1))


# --- refereed numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "budgets"),
    [
        ("l-grr", (1.678, 1.923, 1.997)),
        ("l-sue", (1.612, 1.870, 1.987)),
        ("l-oue", (1.629, 1.846, 1.959)),
        ("l-osue", (1.642, 1.899, 1.994)),
    ],
)
def test_the_budget_of_2_3_and_5_reports_at_2_and_1(name: str, budgets: tuple[float, ...]):
    oracle = create(name, 4, 2.0, first=1.0)
    assert [oracle.budget_of(times) for times in (2, 3, 5)] == pytest.approx(budgets, abs=5e-4)


def test_reports_may_cost_more_than_times_the_first():
    oracle = create("l-grr", 16, 2.0, first=0.2)
    assert oracle.budget_of(5) == pytest.approx(1.349, abs=5e-4)
    assert oracle.budget_of(5) > 5 * oracle.epsilon


@pytest.mark.parametrize(("times", "accuracy"), [(1, 0.731), (5, 0.839), (20, 0.880), (200, 0.881)])
def test_the_accuracy_of_a_guess_ends_at_that_of_the_memo(times: int, accuracy: float):
    oracle = create("l-grr", 2, 2.0, first=1.0)
    assert Rounds(oracle, times).guess_rate == pytest.approx(accuracy, abs=5e-4)
    fresh = oracle.repeated(20, kept=False).matrix()
    assert fresh.max(axis=0).sum() / 2 == pytest.approx(0.985, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "parameters", "value"),
    [
        ("l-oue", {}, 4.467),
        ("l-osue", {}, 3.683),
        ("l-sue", {}, 3.918),
        ("loloha", {"g": 4}, 3.692),
        ("loloha", {"g": 2}, 4.683),
        ("loloha", {}, 3.692),
    ],
)
def test_the_variance_of_a_rare_value_at_2_and_1(name: str, parameters: dict[str, int], value: float):
    assert float(create(name, 100, 2.0, first=1.0, **parameters).variance(1, 0.0)) == pytest.approx(
        value, abs=5e-4
    )


@pytest.mark.parametrize("first", [0.3, 1.0, 2.0])
def test_one_round_is_the_one_shot_mechanism_at_its_budget(first: float):
    for name, plain in (("l-grr", "grr"), ("l-sue", "sue"), ("l-osue", "oue")):
        for epsilon in (2.5, 6.0):
            rates = create(name, 7, epsilon, first=first).mark_rates
            assert [float(rate) for rate in rates] == pytest.approx(
                [float(rate) for rate in create(plain, 7, first).mark_rates], rel=1e-12
            )


def test_the_best_number_of_buckets_is_e_to_the_first_budget_and_one():
    for first in (0.5, 1.0, 2.0):
        chosen = create("loloha", 1000, 4.0, first=first)
        variances = {
            g: float(create("loloha", 1000, 4.0, first=first, g=g).variance(1, 0.0)) for g in range(2, 20)
        }
        assert variances[chosen.buckets] == min(variances.values())


@pytest.mark.parametrize(("size", "seen"), [(2, 0.607), (4, 0.773), (16, 0.938)])
def test_a_change_of_value_is_seen_in_the_memo(size: int, seen: float):
    assert create("l-grr", size, 1.0).change_seen == pytest.approx(seen, abs=6e-4)


def test_a_change_of_value_is_seen_less_in_buckets_and_more_in_many_bits():
    assert create("loloha", 50, 1.0, g=2).change_seen == pytest.approx(0.303, abs=6e-4)
    assert create("loloha", 50, 1.0, g=4).change_seen == pytest.approx(0.579, abs=6e-4)
    seen = [create("dbitflip", 16, 1.0, d=d).change_seen for d in (1, 4, 16)]
    assert seen == pytest.approx([0.478, 0.926, 1.000], abs=6e-4)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_bit_flips_spend_half_with_one_bit_and_are_never_worse_again(d: int):
    flips = create("dbitflip", 5, 1.0, d=d)
    assert flips.epsilon == pytest.approx(0.5 if d == 1 else 1.0)
    assert flips.budget_of(1000) == flips.epsilon
    assert flips.repeated(1000) is flips.channel
    assert flips.epsilon_instant == math.inf
    rate = math.exp(0.5)
    assert float(flips.variance(1, 0.0)) == pytest.approx(5 / d * rate / (rate - 1) ** 2)
    law = flips.report_law(1 << 12)
    assert law.sum(axis=1) == pytest.approx(np.ones(5))
    assert sup_ratio(law) == pytest.approx(flips.epsilon)
    guess = np.isclose(law, law.max(axis=0), rtol=1e-9)
    assert flips.guess_rate == pytest.approx(float((law[0] * guess[0] / guess.sum(axis=0)).sum()))


def test_the_profile_of_many_reports_is_that_of_the_memo():
    oracle = create("l-sue", 10, 2.0, first=1.0)
    many = oracle.pair_law(200)
    assert many.sum(axis=1) == pytest.approx(np.ones(2))
    memo = create("sue", 2, 2.0).report_law(8)
    for delta in (1e-3, 1e-2, 0.1):
        assert epsilon_at(many, delta) == pytest.approx(epsilon_at(memo, delta), abs=1e-4)


# --- values that change ----------------------------------------------------------------------------------


def changed_law(oracle: Longitudinal, sequence: tuple[int, ...]) -> np.ndarray:
    """Return the law of a sequence's reports by summing over one memo for each distinct value."""
    permanent, fresh = steps_of(oracle)
    law = np.zeros([fresh.shape[1]] * len(sequence))
    for reports in product(range(fresh.shape[1]), repeat=len(sequence)):
        chance = 1.0
        for value in set(sequence):
            mine = [y for y, x in zip(reports, sequence, strict=True) if x == value]
            chance *= float(permanent[value] @ np.prod([fresh[:, y] for y in mine], axis=0))
        law[reports] = chance
    return law


@pytest.mark.parametrize(("name", "size"), [("l-grr", 3), ("l-sue", 2), ("rappor", 2)])
def test_the_law_of_a_changing_sequence_is_that_of_enumeration(name: str, size: int):
    oracle = next(examples(name, size))
    order = [
        int(f"{number:0{size}b}"[::-1], 2) for number in range(1 << size)
    ]  # ours counts the first bit lowest
    for sequence in product(range(size), repeat=3):
        truth = changed_law(oracle, sequence)
        if name != "l-grr":
            truth = truth[np.ix_(order, order, order)]
        assert sequences.sequence_law(oracle, sequence) == pytest.approx(truth)


def test_changes_cost_more_than_the_budget_of_the_values_and_keep_their_bounds():
    oracle = create("l-grr", 2, 2.0, first=1.0)
    assert oracle.epsilon_instant == pytest.approx(1.408, abs=5e-4)
    every = list(product(range(2), repeat=6))
    laws = {sequence: sequences.sequence_law(oracle, sequence).reshape(-1) for sequence in every}
    worst, one_change = 0.0, 0.0
    for one, other in product(every, repeat=2):
        told = float(np.log(laws[one] / laws[other]).max())
        differ = sum(a != b for a, b in zip(one, other, strict=True))
        assert told <= sequences.change_budget(oracle, differ) + 1e-9
        worst, one_change = max(worst, told), max(one_change, told if differ == 1 else 0.0)
        if all((one[s] == one[t]) == (other[s] == other[t]) for s, t in combinations(range(6), 2)):
            assert told <= sequences.pattern_budget(oracle, [one.count(v) for v in set(one)]) + 1e-9
    assert worst == pytest.approx(4.754, abs=5e-4)
    assert worst > 2 * oracle.epsilon_unlimited
    assert one_change > oracle.epsilon


def test_one_changed_report_of_eight_costs_nearly_what_a_report_says_about_the_memo():
    oracle = create("l-grr", 2, 2.0, first=1.0)
    first, other = ((x, *[0] * 4, *[1] * 3) for x in (0, 1))
    pairs = [((x, *rest), (1 - x, *rest)) for x in (0, 1) for rest in product(range(2), repeat=7)]
    pairs.append((first, other))
    told = max(sequences.sequence_channel(oracle, pair).epsilon for pair in pairs)
    assert told == pytest.approx(1.405, abs=5e-4)


def test_one_changed_report_of_three_costs_more_than_unlimited_ones_of_bits():
    oracle = create("l-sue", 3, 2.0, first=1.0)
    told = 0.0
    for rest in product(range(3), repeat=2):
        channel = sequences.sequence_channel(oracle, [(value, *rest) for value in range(3)])
        told = max(told, channel.epsilon)
    assert told == pytest.approx(2.398, abs=5e-4)
    assert create("l-sue", 16, 2.0, first=1.0).epsilon_instant == pytest.approx(18.9, abs=0.05)


@pytest.mark.parametrize(("name", "parameters"), [("l-grr", {}), ("l-osue", {}), ("loloha", {"g": 3})])
def test_likelihoods_of_sequences_are_those_of_their_law(name: str, parameters: dict[str, int]):
    size, times = 3, 3
    oracle = create(name, size, 2.0, **parameters)
    every = list(product(range(size), repeat=times))
    values = np.random.default_rng(1).integers(0, size, (6, times))
    sent = list(simulate_rounds(oracle, values, seed=4, follow_changes=True))
    logs = sequences.sequence_logs(oracle, every, sent)
    for device in range(6):
        seed = None if sent[0].seeds is None else int(sent[0].seeds[device])
        place = tuple(int(part.values[device].reshape(-1)[0]) for part in sent)
        truth = np.log([sequences.sequence_law(oracle, sequence, seed)[place] for sequence in every])
        assert np.ptp(logs[device] - truth) < 1e-9


def test_epochs_cost_what_each_of_them_costs_whatever_changes():
    oracle = create("l-grr", 2, 2.0, first=1.0)
    once = enumerated(oracle, 2)
    frozen = {
        one: np.multiply.outer(once[one[0]], once[one[1]]).reshape(-1) for one in product(range(2), repeat=2)
    }
    worst = max(np.log(frozen[one] / frozen[other]).max() for one, other in product(frozen, repeat=2))
    assert worst == pytest.approx(sequences.epochs_budget(oracle, [2, 2]))
    assert worst <= 2 * oracle.epsilon_unlimited


# --- what a plan says of it ------------------------------------------------------------------------------


def test_totals_with_a_correlated_attribute_are_those_of_the_enumerated_release():
    joint = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    for name in ("l-grr", "l-sue", "loloha", "dbitflip"):
        release = sl.Release(belief.schema["u"], name, 2.0, times=3)
        found = sl.total_leakage(belief, {"u": release.channel()}, "x")
        if name in ("l-grr", "l-sue"):
            rows = joint / joint.sum(axis=1, keepdims=True) @ enumerated(release.randomiser(), 3)
            assert (found.value, found.upper.kind) == (pytest.approx(sup_ratio(rows)), "exact")
        assert found.value <= 2.0


def test_leakage_at_delta_of_kept_reports_is_that_of_all_of_them():
    joint = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    release = sl.Release(belief.schema["u"], "l-grr", 2.0, times=4)
    law = joint / joint.sum(axis=1, keepdims=True) @ enumerated(release.randomiser(), 4)
    delta = 0.05
    truth = epsilon_at(law, delta)
    plan = sl.Plan((release,))
    found = sl.leakage.leakage_at(belief, plan, "x", delta)
    assert found.value >= truth - 1e-9
    assert found.value == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("name", ["l-grr", "l-oue", "l-osue", "loloha"])
def test_a_first_budget_follows_where_budgets_are_searched(name: str):
    attribute = sl.categorical("colour", list("abc"))
    release = sl.Release(attribute, name, 2.0, times=5, parameters={"first": 1.5})
    for epsilon in (0.05, 1.0, 9.0):
        other = release.at(epsilon)
        assert (other.epsilon, other.times) == (epsilon, 5)
        budgets = other.randomiser().epsilon, release.randomiser().at(epsilon).epsilon
        most = math.log((2 * math.exp(epsilon) + 1) / 3) if name == "l-oue" else math.inf
        assert budgets == pytest.approx([min(0.75 * epsilon, most)] * 2, rel=1e-5)


def test_noise_that_is_given_gives_way_where_budgets_are_searched():
    colour = sl.categorical("colour", ["red", "green", "blue"])
    release = sl.Release(colour, "rappor", parameters={"f": 0.5, "q": 0.9}, memory="kept")
    for epsilon in (0.5, 5.0):
        moved = release.at(epsilon)
        assert moved.randomiser().epsilon_unlimited == pytest.approx(epsilon)
        assert moved.parameters == {"q": 0.9}
    belief = sl.Belief.from_joint(np.array([[0.3, 0.2], [0.1, 0.4]]), ["x", "u"])
    given = sl.Release(belief.schema["u"], "rappor", times=30, parameters={"f": 0.5}, memory="kept")
    found = sl.calibrate(belief, limit=1.0, plan=sl.Plan((given,)))
    assert found.plan["u"].channel().epsilon == pytest.approx(1.0, rel=1e-3)


def test_a_plan_of_kept_responses_is_calibrated_and_keeps_its_memory():
    joint = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    release = sl.Release(belief.schema["u"], "l-grr", 2.0, times=30, parameters={"first": 1.0})
    bare = sl.Release(belief.schema["x"], "grr", 2.0, times=30, memory="kept")
    found = sl.calibrate(belief, limit=1.0, plan=sl.Plan((release, bare)))
    chosen = found.plan["u"]
    assert (chosen.times, dict(chosen.parameters)) == (30, {"share": 0.5})
    assert found.plan["x"].memory == "kept"
    assert chosen.channel().epsilon == pytest.approx(chosen.epsilon, rel=1e-3)
    assert all(item.total.value <= 1 + 1e-9 for item in sl.audit(belief, found.plan).secrets.values())
    values, saturated = sl.audit(belief, sl.Plan((release,)), ["x"]).curve("x", "u", [0.1, 1.0, 2.0])
    assert values == sorted(values)
    assert values[-1] <= saturated


@pytest.mark.parametrize(("size", "epsilon", "times"), [(2, 2.0, 3_000), (4, 60.0, 20), (2, 3.0, 16_000)])
def test_counts_too_rare_for_doubles_are_bounded_by_the_memo(size: int, epsilon: float, times: int):
    """They are no certainty: a column in which one value has rounded to 0 would say infinity."""
    rounds = Rounds(create("l-grr", size, epsilon, share=0.9), times)
    assert isinstance(rounds.channel, DegradedChannel)
    assert rounds.channel.epsilon == rounds.epsilon <= epsilon


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    ("epsilon", "count"),
    [(60.0, 15), (200.0, 5), *(pytest.param(budget, 30, marks=pytest.mark.deep) for budget in (60.0, 200.0))],
)
def test_many_rounds_at_a_large_budget_are_stated(name: str, epsilon: float, count: int):
    """A double cannot tell the rates from 1 there."""
    oracle = create(name, 4, epsilon)
    rounds = Rounds(oracle, count)
    assert oracle.epsilon <= rounds.channel.epsilon <= epsilon
    assert rounds.guess_rate is None or oracle.epsilon < 1 or 0.5 < rounds.guess_rate <= 1
    likely = rounds.likelihoods(rounds.randomise([0, 1, 2, 3], seed=1))
    assert np.isfinite(likely).all()
    assert (likely.max(axis=1) == 1).all()


def test_a_million_rounds_of_many_bits_have_a_guess():
    accuracy = Rounds(create("l-sue", 1_000, 4.0), 10**6).guess_rate
    memo = create("sue", 1_000, 4.0).guess_rate
    assert accuracy == pytest.approx(memo, rel=1e-6)
    assert create("l-sue", 1_000, 4.0).pair_law(10**6) is None


@pytest.mark.parametrize("name", [*ORACLES, "dbitflip"])
def test_it_is_said_whether_estimates_add_up(name: str):
    oracle = create(name, 4, 2.0)
    one = Rounds(oracle, 3) if isinstance(oracle, Longitudinal) else oracle
    estimate = one.estimate(one.aggregate(one.randomise(np.arange(200) % 4, seed=3)))
    assert one.adds_up == math.isclose(estimate.sum(), 1, abs_tol=1e-9)


def test_too_many_counts_to_list_are_bounded_by_the_memo():
    oracle = create("l-grr", 100, 2.0, first=1.0)
    channel = oracle.repeated(10)
    assert isinstance(channel, DegradedChannel)
    assert channel.epsilon == pytest.approx(oracle.budget_of(10))
    assert channel.attained.epsilon == pytest.approx(oracle.epsilon)
    rows = np.random.default_rng(0).dirichlet(np.ones(100), 3)
    assert channel.worst_ratio(rows).value <= oracle.stored.channel.worst_ratio(rows).value
    assert channel.worst_ratio(rows).value >= oracle.channel.worst_ratio(rows).value
    with pytest.raises(InputError, match="at most that of the known channel"):
        DegradedChannel(oracle.channel, 3.0)
    for refused in (channel.matrix, lambda: channel.likelihood(0)):
        with pytest.raises(InputError, match="only bounds are known"):
            refused()


# --- the attack on a memory that is none -----------------------------------------------------------------


def recovered(oracle: Longitudinal, sent: Iterator[Reports], codes: np.ndarray) -> float:
    """Return how often the value whose bit was set most often is the true one."""
    counts = sum(oracle.marked(part).astype(np.int64) for part in sent)
    return float((counts.argmax(axis=1) == codes).mean())


def test_a_thousand_collections_recover_values_unless_the_bits_are_kept():
    """RAPPOR at 0.5 over 4 values, 1,000 people: 83 % of values without memory, 31 % with it.

    Both shares are stated beforehand; 6 standard errors of 1,000 guesses are 0.071 and 0.092. Ties, which
    `argmax` gives to the first value, are rare among a thousand reports.
    """
    attribute = sl.categorical("page", list("abcd"))
    rappor = create("rappor", 4, 0.5)
    codes = np.random.default_rng(11).integers(0, 4, 1_000)
    fresh = sl.Release(attribute, "rappor", 0.5, times=1000)
    kept = sl.Release(attribute, "rappor", 0.5, times=1000, memory="kept")

    anew = (rappor.randomise(codes, seed=1000 + number) for number in range(1000))
    stated = fresh_accuracy(rappor, 1000)
    assert stated == pytest.approx(0.83, abs=0.005)
    assert abs(recovered(rappor, anew, codes) - stated) <= 0.071

    mechanism, _ = kept.sent()
    remembered = simulate_rounds(rappor, codes, times=1000, seed=3)
    assert abs(recovered(rappor, remembered, codes) - mechanism.guess_rate) <= 0.092
    assert mechanism.guess_rate == pytest.approx(0.308, abs=5e-4)

    # The audit says so beforehand: odds may move by far more than anybody's limit, or by half a nat.
    belief = sl.Belief.from_joint(np.full(4, 0.25), sl.Schema((attribute,)))
    leaks = [sl.audit(belief, sl.Plan((release,)), ["page"])["page"].total.value for release in (fresh, kept)]
    assert leaks == pytest.approx([1000 * rappor.epsilon, 0.5], rel=1e-6)


def fresh_accuracy(rappor: Longitudinal, times: int) -> float:
    """Return how often the largest of four binomial counts is the true one's, ties at random."""
    from scipy.stats import binom

    p, q = map(float, rappor.mark_rates)
    ones = np.arange(times + 1)
    true, other = binom.pmf(ones, times, p), binom.pmf(ones, times, q)
    below = np.concatenate([[0.0], np.cumsum(other)[:-1]])
    size = rappor.size
    won = sum(
        math.comb(size - 1, ties) * other**ties * below ** (size - 1 - ties) / (ties + 1)
        for ties in range(size)
    )
    return float(true @ won)


# --- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"first": 2.0}, "must be below the `epsilon` of unlimited reports, 2.0; got 2.0"),
        ({"first": 0}, "`first` must be"),
        ({"share": 1.0}, "`share` must be"),
        ({"share": math.nan}, "`share` must be"),
        ({"first": 1.0, "share": 0.5}, "`first` and `share` both say"),
        ({"nonsense": 1}, "has no parameter 'nonsense'"),
    ],
)
@pytest.mark.parametrize("name", ["l-grr", "l-sue", "loloha"])
def test_bad_parameters_are_refused(name: str, parameters: dict[str, float], message: str):
    with pytest.raises(InputError, match=message):
        create(name, 4, 2.0, **parameters)


def test_a_first_budget_that_bits_cannot_spend_is_refused():
    with pytest.raises(InputError, match=r"spends less than ln\(\(2 e\^epsilon \+ 1\) / 3\) = 1.66001"):
        create("l-oue", 4, 2.0, first=1.7)
    assert create("l-oue", 4, 2.0, first=1.65).epsilon == pytest.approx(1.65)


def test_bad_sequences_are_refused():
    oracle = create("l-grr", 3, 2.0)
    for bad in ([0, 3], [-1], [[0]], [0.5], []):
        with pytest.raises(InputError, match="`sequences` must be"):
            sequences.sequence_law(oracle, bad)
    with pytest.raises(InputError, match="`reports` must be those of 2 rounds"):
        sequences.sequence_logs(oracle, [[0, 1]], [oracle.randomise([0], seed=1)])
    with pytest.raises(sl.TooLargeError, match="too many to list"):
        sequences.sequence_law(oracle, [0] * 40)
    with pytest.raises(sl.TooLargeError, match="too many to list"):
        sequences.sequence_law(create("l-sue", 20, 2.0), [0])
    with pytest.raises(InputError, match="give it as `seed`"):
        sequences.sequence_law(create("loloha", 4, 2.0), [0])
    with pytest.raises(InputError, match="`d` must be"):
        create("dbitflip", 3, 1.0, d=4)


def test_a_memory_that_is_lost_costs_a_second_one():
    """Five reports from each of two memories of one value: their laws multiply."""
    oracle = create("l-grr", 2, 2.0, first=1.0)
    law = enumerated(oracle, 5)
    both = (law[:, :, None] * law[:, None, :]).reshape(2, -1)
    assert sup_ratio(both) == pytest.approx(3.987, abs=5e-4)
    assert sup_ratio(both) == pytest.approx(sequences.epochs_budget(oracle, [5, 5]))
    assert oracle.budget_of(10) == pytest.approx(2.0, abs=5e-4)


@pytest.mark.parametrize("name", ["l-grr", "l-sue", "l-oue", "l-osue", "loloha"])
def test_counts_drawn_at_once_have_the_law_of_reports_one_by_one(name: str):
    """A chi-squared test for each counter's law; one of a million sound runs fails, and the seed is fixed."""
    oracle, times, people = create(name, 3, 2.0, first=1.0), 9, 20_000
    memos = oracle.permanent(np.full(people, 1), seed=5)
    drawn = oracle.tallies(memos, times, seed=7)
    oracle.check_tally(drawn, times)
    one_by_one = sum(oracle.tallied(oracle.report(memos, seed=seed)).astype(int) for seed in range(times))
    for counter in range(oracle.tally_width):
        table = np.array([np.bincount(part[:, counter], minlength=times + 1) for part in (drawn, one_by_one)])
        table = table[:, table.sum(axis=0) >= 20]
        assert chi2_contingency(table).pvalue > 1e-7
    for first, second in ((0, 1), (1, 2)):  # and together, not only each alone
        both = [np.bincount(part[:, first] * (times + 1) + part[:, second]) for part in (drawn, one_by_one)]
        width = max(map(len, both))
        table = np.array([np.pad(part, (0, width - len(part))) for part in both])
        table = table[:, table.sum(axis=0) >= 20]
        assert chi2_contingency(table).pvalue > 1e-7


@pytest.mark.parametrize("name", ["l-grr", "l-sue", "loloha"])
def test_counts_drawn_at_once_depend_on_the_seed_and_the_place_alone(name: str):
    rounds = Rounds(create(name, 4, 2.0), 12)
    values = np.arange(40) % 4
    whole = rounds.randomise(values, seed=3)
    parts = [rounds.randomise(values[start : start + 10], seed=3, offset=start) for start in range(0, 40, 10)]
    assert np.array_equal(whole.values, np.concatenate([part.values for part in parts]))
    rounds.check(whole)


@pytest.mark.deep
@pytest.mark.parametrize("name", [*ORACLES, "dbitflip"])
@pytest.mark.parametrize("times", [1, 5])
def test_the_error_of_every_oracle_is_that_of_its_formula_to_two_percent(name: str, times: int):
    """6,000 collections of 100 people: a standard error of 2 % at most.

    At 5 standard errors one of 100,000 sound runs of all 14 fails; the seed is fixed.
    """
    runs, people, size = 6_000, 100, 5
    shares = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    mechanism, _ = create(name, size, 2.0).together(times, kept=True)
    reports = mechanism.randomise(np.random.default_rng(11).choice(size, runs * people, p=shares), seed=13)
    errors = np.empty(runs)
    for run in range(runs):
        part = slice(run * people, (run + 1) * people)
        seeds = None if reports.seeds is None else reports.seeds[part]
        own = Reports(reports.values[part], seeds, is_simulation=True)
        errors[run] = ((mechanism.estimate(mechanism.aggregate(own)) - shares) ** 2).sum()
    stated = mechanism.variance(people, shares).sum()
    ratio, spread = errors.mean() / stated, errors.std() / stated / math.sqrt(runs)
    assert spread <= 0.02
    assert abs(ratio - 1) <= 5 * spread, (ratio, spread)
