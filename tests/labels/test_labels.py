"""Labels: exact leakage against plain enumeration, promises, omega, k, hashed domains, estimates."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.labels import (
    AttributeReports,
    BasicResponse,
    HeadsResponse,
    LabelLedger,
    LabelOnlyResponse,
    LabelSample,
    Omega,
    best_width,
    hashed_heads,
    heads_variance,
    learn_omegas,
    omegas_from_public,
    published_width,
    sample_response,
)
from sidelight.labels.hashed_heads import bucket_conditionals
from sidelight.labels.leakage import (
    LabelRound,
    adversarial_belief,
    belief_curve,
    correlation_excess,
    degraded_guarantee,
    label_conditionals,
    label_leakage,
    labeldp_leakage,
    naive_label_budget,
    published_rounds_bound,
    rounds_bound,
    rounds_leakage,
)
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.studies.clldp.records import FEVER, SYNTHETIC, synthetic_conditionals

ROUNDING = 1e-9


def random_conditionals(rng: np.random.Generator, labels: int, values: int) -> np.ndarray:
    """Random rows with zeros and with near-certain values."""
    cells = rng.gamma(rng.choice([0.2, 1.0, 5.0]), size=(labels, values)) + 1e-6
    cells[rng.random(cells.shape) < rng.choice([0.0, 0.3])] = 0
    cells[np.arange(labels), rng.integers(0, values, labels)] += 1e-3
    return cells / cells.sum(axis=1, keepdims=True)


def heads_law(pairs: int, width: int, p: float) -> np.ndarray:
    """Pr(set | pair) by its definition (CLLDP, Algorithm 1), every set of `width` pairs."""
    sets = list(combinations(range(pairs), width))
    inside, outside = p / math.comb(pairs - 1, width - 1), (1 - p) / math.comb(pairs - 1, width)
    return np.array([[inside if pair in chosen else outside for chosen in sets] for pair in range(pairs)])


def unary_law(pairs: int, p: float) -> np.ndarray:
    """Pr(bits | pair) of the basic solution, every row of bits."""
    law = np.empty((pairs, 1 << pairs))
    for pair, (number, bits) in product(range(pairs), enumerate(product((0, 1), repeat=pairs))):
        kept = sum(bit == (i == pair) for i, bit in enumerate(bits))
        law[pair, number] = p**kept * (1 - p) ** (pairs - kept)
    return law


def truth(conditionals: np.ndarray, laws: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The largest log-ratio of any reports under two labels, by plain loops.

    `laws` holds for each round which cell each combination is in, and Pr(report | cell * labels + label).
    """
    labels, values = conditionals.shape
    worst = 0.0
    for reports in product(*(range(law.shape[1]) for _, law in laws)):
        chances = []
        for label in range(labels):
            chances.append(
                math.fsum(
                    conditionals[label, value]
                    * math.prod(
                        law[cells[value] * labels + label, y]
                        for (cells, law), y in zip(laws, reports, strict=True)
                    )
                    for value in range(values)
                )
            )
        if min(chances) == 0 < max(chances):
            return math.inf
        if max(chances) > 0:
            worst = max(worst, math.log(max(chances) / min(chances)))
    return worst


def test_one_report_is_exact_and_never_above_the_budget(rng) -> None:
    for _ in range(60):
        labels, values = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        pairs, epsilon = labels * values, float(rng.choice([0.1, 1.0, 3.0]))
        rows = random_conditionals(rng, labels, values)
        whole = np.arange(values)
        width = int(rng.integers(1, pairs))
        heads = HeadsResponse(values, labels, epsilon, width, adversarial_belief(rows, width))
        law = heads_law(pairs, width, float(heads.mechanism.mark_if_true))
        found = heads.leakage(rows)
        assert found.value == pytest.approx(truth(rows, [(whole, law)]), abs=ROUNDING)
        assert found.value <= epsilon + ROUNDING
        assert heads.label_epsilon <= epsilon
        assert found.kind == "exact"
        if width <= values:
            assert found.value <= heads.label_epsilon + ROUNDING
        basic = BasicResponse(values, labels, epsilon)
        law = unary_law(pairs, float(basic.mechanism.mark_if_true))
        assert basic.leakage(rows).value == pytest.approx(truth(rows, [(whole, law)]), abs=ROUNDING)
        assert basic.leakage(rows).value <= epsilon + ROUNDING


def test_the_promise_of_heads_is_tight(rng) -> None:
    for _ in range(40):
        labels, values = 3, 4
        rows = random_conditionals(rng, labels, values)
        for width in range(1, values + 1):
            heads = HeadsResponse(values, labels, 1.0, width, adversarial_belief(rows, width))
            assert heads.leakage(rows).value == pytest.approx(heads.label_epsilon, abs=ROUNDING)


def test_omega_below_the_truth_degrades_the_promise_as_stated(rng) -> None:
    for _ in range(40):
        rows = random_conditionals(rng, 2, 5)
        right = adversarial_belief(rows, 1)
        wrong = max(0.6 * right, 0.2)
        heads = HeadsResponse(5, 2, 1.0, 1, wrong)
        assert heads.leakage(rows).value == pytest.approx(degraded_guarantee(1.0, wrong, right), abs=1e-8)
        if right > wrong:
            assert heads.leakage(rows).value > 1.0


def test_labeldp_leaks_its_excess(rng) -> None:
    for _ in range(30):
        labels, values = 2, int(rng.integers(2, 5))
        rows = random_conditionals(rng, labels, values)
        response = LabelOnlyResponse(values, labels, 1.0)
        p = float(response.mechanism.mark_if_true)
        law = np.zeros((values * labels, values * labels))
        for value, label, said in product(range(values), range(labels), range(labels)):
            law[value * labels + label, value * labels + said] = p if label == said else 1 - p
        found = response.leakage(rows).value
        assert found == pytest.approx(truth(rows, [(np.arange(values), law)]), abs=ROUNDING)
        assert found == pytest.approx(1.0 + correlation_excess(rows), abs=ROUNDING)
        assert found > 1.0


def test_table_1_and_table_4() -> None:
    assert adversarial_belief(FEVER, 1) == pytest.approx(0.77)
    assert adversarial_belief(FEVER, 2) == pytest.approx(0.99)
    excess = labeldp_leakage(FEVER, SubsetSelection(2, 1.0).channel).value - 1.0
    assert excess == pytest.approx(math.log(68))
    found = [round(adversarial_belief(synthetic_conditionals(name), 1), 4) for name in SYNTHETIC]
    assert found == [0.02, 0.3829, 0.6387, 1.0]


def test_a_zero_cell_makes_labeldp_infinite_and_heads_not() -> None:
    rows = synthetic_conditionals("D(25)")
    assert LabelOnlyResponse(50, 5, 0.1).leakage(rows).value == math.inf
    omega = Omega.known(rows)
    width = best_width(250, 0.1, omega.curve)
    assert HeadsResponse(50, 5, 0.1, width, omega.at(width)).leakage(rows).value <= 0.1 + ROUNDING


def test_the_naive_baseline_exists_only_where_something_is_left() -> None:
    rows = [[0.5, 0.5], [0.4, 0.6]]
    left = naive_label_budget(rows, 1.0)
    assert labeldp_leakage(rows, SubsetSelection(2, left).channel).value == pytest.approx(1.0)
    with pytest.raises(InputError, match="nothing is left for the label"):
        naive_label_budget(FEVER, 1.0)


@pytest.mark.parametrize(("labels", "widest", "cases"), [(2, 2, 120), (3, 5, 40)])
def test_several_rounds_never_exceed_eq_13_nor_the_promise(labels, widest, cases, rng) -> None:
    above_the_sum = 0
    for _ in range(cases):
        rows = random_conditionals(rng, labels, 4)  # two binary attributes as four combinations
        questions = [np.array(cells) for cells in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3])]
        order = [questions[i] for i in rng.permutation(3)[: int(rng.integers(1, 4 if labels == 2 else 3))]]
        rule = str(rng.choice(["closed", "published"]))
        ledger = LabelLedger(float(rng.choice([0.5, 2.0])), len(order))
        parts, laws, factors, omegas = [], [], [], []
        for cells in order:
            count = int(cells.max()) + 1
            merged = np.zeros((labels, count))
            np.add.at(merged.T, cells, rows.T)
            width = int(rng.integers(1, min(widest, count * labels - 1) + 1))
            omega = adversarial_belief(merged, width)
            budget = ledger.budget(omega, rule)
            if budget <= 1e-9:
                ledger = ledger.silent()
                continue
            heads = HeadsResponse(count, labels, budget, width, omega)
            ledger = ledger.after(float(heads.factor), omega, budget)
            parts.append(LabelRound(cells, heads.channel))
            laws.append((cells, heads_law(count * labels, width, float(heads.mechanism.mark_if_true))))
            factors.append(float(heads.factor))
            omegas.append(omega)
        exact = rounds_leakage(rows, parts).value
        assert exact == pytest.approx(truth(rows, laws), abs=1e-8)
        assert exact <= rounds_bound(factors, omegas) + ROUNDING
        assert rounds_bound(factors, omegas) <= published_rounds_bound(factors, omegas) + ROUNDING
        assert ledger.label_epsilon == pytest.approx(rounds_bound(factors, omegas), abs=ROUNDING)
        assert exact <= ledger.epsilon + ROUNDING
        above_the_sum += exact > sum(ledger.spent) + 1e-6
    shows = above_the_sum > 0 or labels > 2
    assert shows, "the plain sum of the rounds' budgets is no bound, and this must show"


def test_eq_13_is_what_the_paper_prints() -> None:
    factors, omegas = [1.5, 1.2, 1.9], [0.8, 0.5, 0.3]
    printed = 1 - 0.8 + 0.3 * 1.5 * 1.2 * 1.9 + (0.8 - 0.5) * 1.5 + (0.5 - 0.3) * 1.5 * 1.2
    assert published_rounds_bound(factors, omegas) == pytest.approx(math.log(printed))


@given(st.floats(0.01, 8), st.integers(1, 6), st.lists(st.floats(0.01, 1), min_size=6, max_size=6))
def test_both_budget_rules_keep_the_promise_and_the_closed_form_spends_no_less(
    epsilon, depth, omegas
) -> None:
    ends = {}
    for rule in ("closed", "published"):
        ledger = LabelLedger(epsilon, depth)
        for omega in sorted(omegas, reverse=True)[:depth]:
            budget = ledger.budget(omega, rule)
            ledger = ledger.after(1 + math.expm1(budget) / omega, omega, budget)
        assert ledger.label_epsilon <= epsilon * (1 + 1e-9) + 1e-12
        ends[rule] = ledger
    assert ends["closed"].spent[:-1] == ends["published"].spent[:-1]
    assert ends["closed"].spent[-1] >= ends["published"].spent[-1] * (1 - 1e-9)
    assert ends["closed"].label_epsilon == pytest.approx(epsilon, rel=1e-6)


@given(st.floats(1e-6, 20), st.floats(0.05, 1), st.integers(1, 5), st.integers(2, 5))
def test_the_realised_promise_never_exceeds_the_budget(epsilon, omega, width, labels) -> None:
    values = 20
    heads = HeadsResponse(values, labels, epsilon, width, max(omega, width / values))
    limit = (Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**13)) - 1) / Fraction(heads.omega) + 1
    assert heads.factor <= limit
    assert heads.label_epsilon <= epsilon
    assert heads.label_epsilon == pytest.approx(epsilon, rel=1e-4)


def test_k_by_search_is_the_best_and_never_worse_than_the_published_rule(rng) -> None:
    better = 0
    for _ in range(60):
        labels, values = int(rng.integers(2, 5)), int(rng.integers(2, 30))
        curve = belief_curve(random_conditionals(rng, labels, values))
        epsilon, pairs = float(rng.choice([0.3, 1.0, 2.0, 5.0])), labels * values
        scores = {
            width: HeadsResponse(
                values, labels, epsilon, width, float(curve[width - 1]) if width <= values else 1.0
            ).total_variance(1000)
            for width in range(1, pairs)
        }
        searched, ruled = best_width(pairs, epsilon, curve), published_width(pairs, epsilon, curve)
        assert scores[searched] <= scores[ruled] * (1 + 1e-9)
        assert scores[searched] == pytest.approx(min(scores.values()), rel=1e-6)
        better += scores[searched] < scores[ruled] * 0.999
    assert better > 0
    assert heads_variance(250, [1], [math.e])[0] / 1000 == pytest.approx(
        HeadsResponse(50, 5, 1.0, 1, 1.0).total_variance(1000), rel=1e-6
    )


@pytest.mark.parametrize("name", ["khr", "khr-wide", "basic", "labeldp"])
def test_the_joint_is_unbiased_with_the_stated_variance(name, rng) -> None:
    """200 seeded repetitions: the mean error of each cell is within 4.5 standard errors (12 cells: the chance
    of a false alarm is below 1e-4), and the mean squared error within 15 % of the stated one (5 sigma)."""
    values, labels, people = 4, 3, 300
    rows = random_conditionals(rng, labels, values)
    response = {
        "khr": HeadsResponse(values, labels, 1.0, 1, adversarial_belief(rows, 1)),
        "khr-wide": HeadsResponse(values, labels, 1.0, 5, 1.0),
        "basic": BasicResponse(values, labels, 1.0),
        "labeldp": LabelOnlyResponse(values, labels, 1.0),
    }[name]
    marks = rng.integers(0, labels, people)
    codes = np.array([rng.choice(values, p=rows[mark]) for mark in marks])
    exact = np.zeros((values, labels))
    np.add.at(exact, (codes, marks), 1 / people)
    errors = np.array(
        [
            response.joint(response.aggregate(response.randomise(codes, marks, seed=seed))) - exact
            for seed in range(200)
        ]
    )
    spread = errors.std(axis=0, ddof=1) / math.sqrt(len(errors))
    assert np.all(np.abs(errors.mean(axis=0)) <= 4.5 * spread + 1e-12)
    squared = (errors**2).sum(axis=(1, 2))
    stated = response.total_variance(people)
    assert squared.mean() == pytest.approx(stated, rel=0.15)
    assert response.randomise(codes, marks, seed=1).is_simulation
    assert not response.randomise(codes, marks).is_simulation


def label_forgeries(name: str, row: np.ndarray):
    """Rows that the response cannot have sent: pairs or labels that do not exist, twice, or out of order."""
    if name == "basic":
        yield row | np.uint8(1 << 7)  # 12 pairs leave the last bits of two bytes free
        return
    yield np.full_like(row, row[-1])
    yield row[::-1]
    yield np.where(np.arange(len(row)) == len(row) - 1, 65_535, row)
    yield np.where(np.arange(len(row)) == 0, 60_000, row)


@pytest.mark.parametrize("name", ["khr", "basic", "labeldp", "hashed"])
def test_a_labelled_report_that_cannot_have_been_made_is_refused(name: str, rng) -> None:
    rows = rng.dirichlet(np.ones(4), 3)
    response = {
        "khr": lambda: HeadsResponse(4, 3, 1.0, 5, 1.0),
        "basic": lambda: BasicResponse(4, 3, 1.0),
        "labeldp": lambda: LabelOnlyResponse(4, 8, 0.1),
        "hashed": lambda: hashed_heads(1.0, rows, buckets=4, k=3),
    }[name]()
    reports = response.randomise(np.arange(40) % 4, np.arange(40) % 3, seed=1)
    assert response.aggregate(reports).reports == 40
    own = reports.values[:, 1:] if name == "labeldp" else reports.values
    for forged in label_forgeries(name, own[6].copy()):
        kept = own[6].copy()
        own[6] = forged
        with pytest.raises(InputError, match=r"1 of 40 are not \(row 6"):
            response.aggregate(reports)
        own[6] = kept


def test_padding_of_a_hashed_report_is_checked(rng) -> None:
    """Seeds whose sets are smaller than the largest are padded; anything else there is refused."""
    rows = rng.dirichlet(np.full(30, 0.3), 3)
    hashed = hashed_heads(0.5, rows, buckets=6)
    assert len({response.width for response in hashed.responses}) > 1
    reports = hashed.randomise(np.zeros(200, dtype=int), np.zeros(200, dtype=int), seed=1)
    padded = np.flatnonzero((reports.values == 65_535).any(axis=1))
    reports.values[padded[0], -1] = 17
    with pytest.raises(InputError, match=r"1 of 200 are not"):
        hashed.aggregate(reports)


def test_upper_limits_of_omega_are_not_below_the_truth(rng) -> None:
    """60 trials at 95 %: limits that failed 5 % of the time would fail more than 9 times with probability
    0.0009; the point estimate fails far more often."""
    rows = random_conditionals(rng, 2, 6)
    exact = belief_curve(rows)
    low, public_low, point_low = 0, 0, 0
    response, selection = sample_response(6, 2, 2.0), SubsetSelection(2, 2.0)
    for seed in range(60):
        draw = np.random.default_rng(seed)
        marks = draw.integers(0, 2, 3000)
        codes = (draw.random((3000, 1)) > np.cumsum(rows, axis=1)[marks]).sum(axis=1).clip(0, 5)
        sample = AttributeReports(0, response, response.randomise(codes, marks, seed=seed))
        many = draw.integers(0, 2, 100_000)  # so many that the limits of the cells alone decide
        about = LabelSample.of(selection, selection.randomise(many, seed=seed))
        counts = np.zeros((2, 6))
        np.add.at(counts, (marks, codes), 1.0)
        low += bool((learn_omegas([sample], about)[0].curve < exact - ROUNDING).any())
        point_low += bool(learn_omegas([sample], about, confidence=None)[0].at(1) < exact[0])
        public_low += bool((omegas_from_public([counts])[0].curve < exact - ROUNDING).any())
    assert low <= 9
    assert public_low <= 9
    assert point_low > 9


def test_a_learnt_limit_tightens_with_more_people() -> None:
    rows = np.full((2, 10), 0.1)
    found = []
    for people in (2_000, 200_000):
        draw = np.random.default_rng(1)
        marks, codes = draw.integers(0, 2, people), draw.integers(0, 10, people)
        response, selection = sample_response(10, 2, 1.0), SubsetSelection(2, 1.0)
        half = people // 2
        sample = AttributeReports(0, response, response.randomise(codes[:half], marks[:half], seed=1))
        about = LabelSample.of(selection, selection.randomise(marks[half:], seed=2))
        found.append(learn_omegas([sample], about)[0].at(1))
    assert belief_curve(rows)[0] < found[1] < 0.3 < found[0]


def test_hashing_needs_the_omega_of_the_buckets(rng) -> None:
    rows = rng.dirichlet(np.full(60, 0.5), 3)
    hashed = hashed_heads(1.0, rows, buckets=4)
    assert hashed.leakage(rows).value <= 1.0 + ROUNDING
    assert hashed.label_epsilon <= 1.0
    raw = HeadsResponse(4, 3, 1.0, 1, max(adversarial_belief(rows, 1), 0.25))
    worst = max(
        label_leakage(bucket_conditionals(rows, place, 4), raw.channel).value for place in hashed.places
    )
    assert worst > 1.2


def test_the_joint_over_a_hashed_domain_is_unbiased(rng) -> None:
    """40 seeded repetitions over 24 cells at 5 standard errors: a false alarm below 1e-3."""
    rows = random_conditionals(rng, 2, 12)
    hashed = hashed_heads(2.0, rows, buckets=3)
    marks = rng.integers(0, 2, 3000)
    codes = (rng.random((3000, 1)) > np.cumsum(rows, axis=1)[marks]).sum(axis=1).clip(0, 11)
    exact = np.zeros((12, 2))
    np.add.at(exact, (codes, marks), 1 / 3000)
    errors = np.array(
        [
            hashed.joint(hashed.aggregate(hashed.randomise(codes, marks, seed=seed))) - exact
            for seed in range(40)
        ]
    )
    spread = errors.std(axis=0, ddof=1) / math.sqrt(40)
    assert np.all(np.abs(errors.mean(axis=0)) < 5 * spread)
    few = hashed_heads(2.0, rows, buckets=3, seeds=2)
    with pytest.raises(InputError, match="do not tell all 12 values apart"):
        few.joint(few.aggregate(few.randomise(codes, marks, seed=1)))
    other = hashed_heads(2.0, rows, buckets=3, pool=2)
    with pytest.raises(InputError, match="published pool"):
        other.aggregate(hashed.randomise(codes, marks, seed=1))


def test_more_values_than_pairs_can_be_listed_are_hashed(rng) -> None:
    """40,000 values, one of which has half of label 1: its estimate within 7 of its standard errors, about
    0.003 (a false alarm below 1e-9)."""
    values, people = 40_000, 20_000
    rows = np.full((2, values), 1 / values)
    rows[1] = 0.5 / (values - 1)
    rows[1, 7] = 0.5
    hashed = hashed_heads(6.0, rows, buckets=4096, seeds=40)
    assert hashed.leakage(rows).value <= 6.0 + ROUNDING
    marks = rng.integers(0, 2, people)
    codes = np.where((marks == 1) & (rng.random(people) < 0.5), 7, rng.integers(0, values, people))
    joint = hashed.joint(hashed.aggregate(hashed.randomise(codes, marks, seed=1)))
    assert joint[7, 1] == pytest.approx(np.mean((codes == 7) & (marks == 1)), abs=0.02)
    assert abs(joint[7, 0]) < 0.02


def test_conditionals_come_from_a_belief() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    rows = label_conditionals(belief, "survived", ["class", "sex"])
    assert rows.shape == (2, 8)
    assert np.allclose(rows.sum(axis=1), 1)
    with pytest.raises(InputError, match="listed among the attributes"):
        label_conditionals(belief, "survived", ["survived"])


def test_bad_input_says_what_to_change() -> None:
    for omega in (0, -0.1, 1.5, math.nan, "x"):
        with pytest.raises(InputError, match="`omega` must be"):
            HeadsResponse(5, 2, 1.0, 1, omega)
    with pytest.raises(InputError, match="at least 0.2"):
        HeadsResponse(5, 2, 1.0, 1, 0.1)
    with pytest.raises(InputError, match="at least 0.2"):
        Omega.given(0.1, 5)
    with pytest.raises(InputError, match="`labels` must be"):
        BasicResponse(5, 1, 1.0)
    for budget in (0, -1, 101, math.inf, math.nan):
        with pytest.raises(InputError, match="`epsilon` must be"):
            HeadsResponse(5, 2, budget)
        with pytest.raises(InputError, match="`epsilon` must be"):
            best_width(10, budget, [1.0])
    with pytest.raises(InputError, match="must sum to at least 1, got 0.2"):
        hashed_heads(1.0, np.full((2, 20), 0.01), buckets=4)
    with pytest.raises(InputError, match="must hold counts"):
        omegas_from_public([np.full((2, 4), 0.25)])
    with pytest.raises(InputError, match="would leak up to 1.48988.* above the promised 1"):
        LabelLedger(1.0, 1).after(1 + 2 * math.expm1(1.0), 1.0, 1.0)
    with pytest.raises(TooLargeError, match="hashed domain"):
        HeadsResponse(40_000, 2, 1.0)
    with pytest.raises(InputError, match="one label for each value"):
        HeadsResponse(5, 2, 1.0).randomise([1, 2], [0])
    with pytest.raises(InputError, match="codes from 0 to 1"):
        BasicResponse(5, 2, 1.0).randomise([1], [2])
    with pytest.raises(InputError, match="64 random bits"):
        HeadsResponse(5, 2, 1e-30)
    with pytest.raises(InputError, match="at least two labels must occur"):
        adversarial_belief([[0.5, 0.5], [math.nan, math.nan]], 1)
    with pytest.raises(InputError, match="sum to 1"):
        belief_curve([[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(InputError, match="channel is for"):
        label_leakage(FEVER, BasicResponse(4, 2, 1.0).channel)
    with pytest.raises(InputError, match="all 1 rounds are over"):
        LabelLedger(1.0, 1).after(2.0, 1.0, 1.0).budget(0.5)
    with pytest.raises(InputError, match="`budgets` must be one of"):
        LabelLedger(1.0, 2).budget(0.5, "most")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one omega for each factor"):
        rounds_bound([1.5], [])
