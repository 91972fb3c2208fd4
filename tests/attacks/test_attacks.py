"""Results, posteriors and attackers on coded reports; the report file; the owner's side of numbers."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import sidelight as sl
from sidelight.attacks import (
    BayesAttacker,
    FloatingPointAttacker,
    Interval,
    LearntAttacker,
    Noise,
    Numbers,
    Released,
    attack,
    attack_naive,
    attack_plans,
    attack_release,
    effective_budget,
    fit_published,
    owner,
    posterior,
    protect,
    release,
)
from sidelight.attacks.numbers import read_numbers
from sidelight.attacks.reconstruction import fit_aware
from sidelight.attacks.released import face_value, is_reports_file
from sidelight.attacks.result import AttackResult
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.intervals import mean_interval, paired_interval
from sidelight.foundation.randomness import order_key
from sidelight.protocols import Split, product, rs_fd, rs_rfd, smp, spl
from sidelight.protocols.groups import make_group
from sidelight.sources import Records
from sidelight.transport import read_reports, write_reports

MECHANISMS = ("grr", "exp", "interval", "ss", "sue", "oue", "rappor", "the", "she", "blh", "olh", "hadamard")


def result(
    losses: list[float], control: list[float], measure: str = "mean distance", **further: object
) -> AttackResult:
    return AttackResult(
        "x", "an attack", "a release", measure, np.zeros(len(losses)), np.array(losses),
        np.array(control), **further,
    )  # fmt: skip


def draw(joint: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    flat = rng.choice(joint.size, count, p=joint.reshape(-1) / joint.sum())
    return np.stack(np.unravel_index(flat, joint.shape), axis=1).astype(np.uint16)


def brute_posterior(joint: np.ndarray, likelihoods: list[np.ndarray | None], secret: int) -> np.ndarray:
    """Multiply the whole joint by every attribute's likelihood and sum out all but the secret."""
    cells = joint.copy()
    for axis, likely in enumerate(likelihoods):
        if likely is not None:
            cells = cells * likely.reshape([-1 if i == axis else 1 for i in range(joint.ndim)])
    sums = cells.sum(axis=tuple(i for i in range(joint.ndim) if i != secret))
    return sums / sums.sum()


# results


def test_a_result_names_score_control_baseline_limit_and_shares() -> None:
    found = result(
        [0.1, 0.3] * 50, [0.5, 0.7] * 50, baseline_losses=np.full(100, 0.8), limit=Interval.exactly(0.1)
    )
    assert found.score.value == pytest.approx(0.2)
    assert found.gain.value == pytest.approx(0.4)
    assert found.noise_removed == pytest.approx(0.75)
    assert found.share_of_limit == pytest.approx(0.8)
    assert found.beats_control
    assert found.warning is None
    assert json.loads(found.to_json())["gain_over_control"]["value"] == pytest.approx(0.4)


def test_an_attack_that_does_not_beat_its_control_says_so() -> None:
    found = result([0.5, 0.6, 0.4] * 30, [0.4, 0.6, 0.5] * 30, baseline_losses=np.full(90, 10.0))
    assert found.noise_removed == pytest.approx(0.95)
    assert not found.beats_control
    assert "does not beat its control" in str(found.warning)
    same = result([0.0, 1.0], [0.0, 1.0])
    assert same.gain == Interval.exactly(0.0)
    assert same.warning


def test_a_few_records_prove_little() -> None:
    """Two records, both won: neither errors nor distances put the gain above 0 beyond doubt."""
    errors = result([0.0, 0.0], [1.0, 1.0], measure="error rate")
    assert errors.gain.value == 1
    assert not errors.beats_control
    assert result([0.0] * 20, [1.0] * 20, measure="error rate").beats_control
    apart = result([0.1, 0.2], [0.3, 0.5])
    assert apart.gain.upper - apart.gain.value == pytest.approx(12.7062 * np.std([0.2, 0.3], ddof=1) / 2**0.5)
    assert not apart.beats_control
    alone = json.loads(result([0.1], [0.3]).to_json())
    assert alone["gain_over_control"] == {"value": pytest.approx(0.2), "lower": None, "upper": None}


def test_there_is_no_way_to_a_limit_that_the_control_has_reached() -> None:
    control = [0.4, 0.6] * 50
    for limit in (0.5, 0.499, 0.6):
        assert result([0.3, 0.6] * 50, control, limit=Interval.exactly(limit)).share_of_limit is None
    assert result([0.3, 0.5] * 50, control, limit=Interval.exactly(0.3)).share_of_limit == pytest.approx(0.5)


def test_the_gains_interval_covers_as_often_as_it_says(rng) -> None:
    """Paired errors with a true gain of 0.05; false alarm below 1e-3: fewer than 360 of 400 cover, or all."""
    covered = 0
    for _ in range(400):
        difference = rng.choice([-1.0, 0.0, 1.0], size=60, p=[0.05, 0.85, 0.10])
        found = paired_interval(difference)
        covered += found.lower <= 0.05 <= found.upper
    assert 360 <= covered < 400


def test_intervals_cover_the_mean_as_often_as_they_say(rng) -> None:
    """False alarm below 1e-3: fewer than 358 of 400 cover, or all do; a skewed sample covers about 94 %."""
    for sample in (lambda: rng.exponential(size=200), lambda: (rng.random(200) < 0.3).astype(float)):
        mean = 1.0 if sample().max() > 1 else 0.3
        covered = sum(i.lower <= mean <= i.upper for i in (mean_interval(sample()) for _ in range(400)))
        assert 358 <= covered < 400
    assert mean_interval(np.zeros(10)).upper > 0.2


# posteriors


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "laplace", "gaussian", "discrete-laplace"])
def test_posteriors_of_a_single_report_are_calibrated(mechanism: str, rng) -> None:
    """On average the true value has the probability that the posterior itself expects it to have.

    40,000 reports of evenly drawn values, seeded; beyond 4 standard errors with a chance of 6e-5.
    """
    bounds = {"lower": 0.0, "upper": 4.0} if "lace" in mechanism or mechanism == "gaussian" else {}
    further = bounds | ({"delta": 1e-5} if mechanism == "gaussian" else {})
    made = sl.create(mechanism, 5, 2.0, **further)
    true = rng.integers(0, 5, size=40_000).astype(np.uint8)
    likely = made.likelihoods(made.randomise(true.astype(float) if bounds else true, seed=7)).T
    found = likely / likely.sum(axis=0)
    gap = found[true, np.arange(len(true))] - (found**2).sum(axis=0)
    assert abs(gap.mean()) < 4 * gap.std() / 200


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_likelihoods_are_those_of_the_sampler(mechanism: str) -> None:
    """Averaged over reports of value 0, likelihood ratios are 1 for any other value (importance sampling).

    40,000 reports, seeded; the ratios have a standard deviation below 4, so 0.1 is five standard errors.
    """
    made = sl.create(mechanism, 4, 1.0)
    reports = made.randomise(np.zeros(40_000, dtype=np.uint8), seed=5)
    likely = made.likelihoods(reports).T
    assert likely.shape == (4, 40_000)
    ratios = likely[1:] / likely[0]
    assert np.abs(ratios.mean(axis=1) - 1).max() < 0.1
    assert np.ptp(ratios) > 0.1


@pytest.mark.parametrize("mechanism", ["grr", "oue", "olh"])
@pytest.mark.parametrize("secret", [0, 2])
def test_the_posterior_of_a_joint_belief_is_bayes_rule(mechanism: str, secret: int, rng) -> None:
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    joint[0, 0, 0] = 0
    joint /= joint.sum()
    belief = sl.Belief.from_joint(joint, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, mechanism, 1.0).withholding(["b"])
    codes = draw(joint, 20, rng)
    reports = release(codes, belief.schema, plan, seed=3)
    found = posterior(belief, reports, belief.schema.names[secret])
    readers = {part.name: part.randomiser().likelihoods(reports[part.name]).T for part in plan.releases}
    for row in range(20):
        expected = brute_posterior(joint, [readers["a"][:, row], None, readers["c"][:, row]], secret)
        assert found.probabilities[row] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("secret", ["a", "b", "d"])
def test_message_passing_in_a_tree_is_the_posterior_of_its_joint(secret: str, rng) -> None:
    edges = {("a", "b"): (3, 4), ("b", "c"): (4, 2), ("b", "d"): (4, 3)}
    tree = sl.belief.Tree.from_conditionals(
        "a", rng.dirichlet(np.ones(3)), {e: rng.dirichlet(np.ones(k), size=m) for e, (m, k) in edges.items()}
    )
    names = tree.schema.names
    joint = tree.joint(list(names))
    plan = sl.Plan.uniform(tree.schema, "grr", 2.0).withholding(["c"])
    reports = release(draw(joint, 50, rng), tree.schema, plan, seed=1)
    by_tree = posterior(sl.Belief.from_tree(tree), reports, secret)
    by_joint = posterior(sl.Belief.from_joint(joint, tree.schema), reports, secret)
    assert by_tree.probabilities == pytest.approx(by_joint.probabilities, abs=1e-12)


def test_smoothing_is_part_of_the_belief_that_attacks() -> None:
    counts = sl.sources.titanic()
    belief = sl.Belief.from_counts(counts, smoothing=50.0)
    dense = sl.Belief.from_joint(belief.joint(list(counts.schema.names)), counts.schema)
    plan = sl.Plan.uniform(counts.schema, "grr", 1.5)
    codes = sl.example("titanic").codes()[::40]
    reports = release(codes, counts.schema, plan, seed=2)
    smooth, plain = (posterior(b, reports, "survived").probabilities for b in (belief, dense))
    assert smooth == pytest.approx(plain, abs=1e-12)


def test_smoothing_survives_reports_that_no_record_explains() -> None:
    """Twenty attributes of budget 43: every record's likelihood is below the least double."""
    names = [f"a{i}" for i in range(20)]
    schema = sl.Schema(tuple(sl.categorical(name, ["x", "y"]) for name in names))
    codes = np.zeros((2, 20), dtype=np.uint8)
    records = Records(schema, codes[:1], np.ones(1))
    belief = sl.Belief.from_records(records, smoothing=1.0)
    reports = release(1 - codes, schema, sl.Plan.uniform(schema, "grr", 43.0), seed=1)
    found = posterior(belief, reports, "a0").probabilities
    assert found == pytest.approx(np.array([[0.0, 1.0]] * 2), abs=1e-12)


def weighed(records: Records, plan: sl.Plan, reports: Released, secret: int) -> np.ndarray:
    """Weigh every record by itself, in logarithms; reports that nothing explains give a row of nan."""
    logs = np.log(records.weights)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        for part in plan.releases:
            likely = part.randomiser().likelihoods(reports[part.name]).T
            logs = logs + np.log(likely)[records.codes[:, records.schema.index(part.name)]]
        chances = np.exp(logs - logs.max(axis=0))
    size = records.schema.sizes[secret]
    sums = np.array([chances[records.codes[:, secret] == code].sum(axis=0) for code in range(size)])
    return (sums / sums.sum(axis=0)).T


@pytest.mark.parametrize("withheld", [[], ["a3"], ["a0", "a5", "a8"]])
@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_records_that_share_their_parts_weigh_as_each_by_itself(mechanism: str, withheld, rng) -> None:
    sizes = (2, 3, 2, 7, 4, 2, 5, 3, 2)
    schema = sl.Schema(tuple(sl.categorical(f"a{i}", list("abcdefg"[:k])) for i, k in enumerate(sizes)))
    drawn = np.stack([rng.integers(0, k, 900) for k in sizes], axis=1).astype(np.uint8)
    drawn[:, 6] = (drawn[:, 3] + drawn[:, 4]) % 5
    codes = np.unique(drawn, axis=0)
    records = Records(schema, codes, rng.dirichlet(np.ones(len(codes))))
    plan = sl.Plan.uniform(schema, mechanism, 1.5).withholding(withheld)
    reports = release(drawn[:60], schema, plan, seed=2)
    for secret in (0, 3, 8):
        found = posterior(sl.Belief.from_records(records), reports, f"a{secret}")
        assert found.probabilities == pytest.approx(weighed(records, plan, reports, secret), abs=1e-12)


def test_products_below_the_least_double_and_impossible_reports_are_told_apart(rng) -> None:
    """Twenty attributes of budget 43 and one that is shown: common, hardly likely, impossible reports."""
    names = [f"a{i}" for i in range(21)]
    schema = sl.Schema(tuple(sl.categorical(name, ["x", "y", "z"]) for name in names))
    codes = np.unique(rng.integers(0, 2, size=(40, 21)).astype(np.uint8), axis=0)
    records = Records(schema, codes, rng.dirichlet(np.ones(len(codes))))
    parts = [sl.Release(schema[name], "grr", 43.0) for name in names[:-1]]
    plan = sl.Plan((*parts, sl.Release(schema["a20"], "identity")))
    true = np.concatenate([codes[:5], np.full((5, 21), 2, dtype=np.uint8), codes[5:10]])
    true[5:10, 20] = codes[:5, 20]
    true[10:, 20] = 2
    reports = release(true, schema, plan, seed=1)
    assert (reports["a0"].values[5:10] == 2).all(), "no record has it, each is a product of e^-860"
    found = posterior(sl.Belief.from_records(records), reports, "a1")
    assert found.impossible == 5
    expected = weighed(records, plan, reports, 1)
    assert np.isfinite(expected[:10]).all()
    assert found.probabilities[:10] == pytest.approx(expected[:10], abs=1e-12)
    prior = [records.weights[codes[:, 1] == code].sum() for code in range(3)]
    assert found.probabilities[10:] == pytest.approx(np.array([prior] * 5), abs=1e-12)


def test_reports_that_the_belief_holds_impossible_keep_the_prior() -> None:
    belief = sl.Belief.from_joint([[0.5, 0], [0, 0.5]], ["a", "b"])
    plan = sl.Plan.uniform(belief.schema, "identity")
    reports = release(np.array([[0, 1], [1, 1]], dtype=np.uint16), belief.schema, plan, seed=0)
    found = posterior(belief, reports, "a")
    assert found.impossible == 1
    assert found.probabilities.tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_mode_mean_and_median_of_a_posterior() -> None:
    found = sl.attacks.Posterior("x", np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]))
    points = np.array([10.0, 0.0, 20.0])
    assert found.mode().tolist() == [1, 0]
    assert found.mean(points) == pytest.approx([8.0, 8.0])
    assert found.median(points).tolist() == [0.0, 10.0]


def test_only_reports_of_values_are_taken_at_face_value() -> None:
    """Hadamard response reports a column of a matrix, even where its number is that of a value."""
    table = sl.example("titanic")
    for mechanism in ("grr", "exp", "hadamard", "olh", "oue"):
        plan = sl.Plan.uniform(table.schema, mechanism, 2.0)
        reports = release(table.codes(), table.schema, plan, seed=3)
        low = np.flatnonzero(reports["class"].values.reshape(2201, -1)[:, 0] < 4)[:1]
        few = Released(plan, {name: part[low[0] : low[0] + 1] for name, part in reports.columns.items()}, 1)
        assert (face_value(few, "class", None) is not None) == (mechanism in ("grr", "exp"))


@pytest.mark.parametrize("codes", [[7] * 2201, [-1] * 2201])
def test_true_codes_out_of_range_are_refused(codes: list[int]) -> None:
    table = sl.example("titanic")
    reports = release(table.codes(), table.schema, sl.Plan.uniform(table.schema), seed=1)
    attacker = BayesAttacker(sl.Belief.from_data(table), "median")
    with pytest.raises(sl.InputError, match="`truth of survived` must be codes from 0 to 1; 2201 of 2201"):
        sl.attack(reports, attacker, secret="survived", truth=np.array(codes))


def test_sets_with_values_that_do_not_exist_are_refused() -> None:
    made = sl.create("ss", 9, 0.5)
    reports = made.randomise(np.zeros(3, dtype=np.uint8), seed=1)
    reports.values[0, 0] = 9
    with pytest.raises(sl.InputError, match="must be codes from 0 to 8"):
        made.likelihoods(reports)


def test_bayes_refuses_what_it_cannot_know() -> None:
    table = sl.example("titanic")
    pairwise = sl.Belief.from_data(table, "pairwise")
    reports = release(table.codes(), table.schema, sl.Plan.uniform(table.schema), seed=1)
    with pytest.raises(sl.InputError, match="pairwise one knows no joint"):
        posterior(pairwise, reports, "survived")
    unknown = sl.Plan.uniform(table.schema, "any", 1.0)
    with pytest.raises(sl.InputError, match="only the budget is known"):
        posterior(sl.Belief.from_data(table), Released(unknown, reports.columns, 2201), "survived")
    with pytest.raises(sl.InputError, match="2201 released records but 3 true ones"):
        attack(
            reports,
            BayesAttacker(sl.Belief.from_data(table)),
            secret="survived",
            truth=np.zeros(3, dtype=int),
        )


# attackers against the limit


def test_the_score_of_the_bayes_attack_is_what_its_posterior_expects(rng) -> None:
    """Score and limit are two estimates of one figure; their 99.9 % intervals overlap (fixed seed)."""
    schema, joint = sl.sources.survey_joint()
    belief = sl.Belief.from_joint(joint, schema)
    true = draw(joint, 4000, rng)
    for mechanism, rule in itertools.product(("grr", "oue"), ("mode", "median")):
        reports = release(true, schema, sl.Plan.uniform(schema, mechanism, 2.0), seed=4)
        attacker = BayesAttacker(belief, rule)
        found = sl.attack(reports, attacker, secret="education", truth=true, confidence=0.999)
        assert found.beats_control
        assert found.limit is not None
        assert found.score.lower <= found.limit.upper
        assert found.limit.lower <= found.score.upper


def test_the_best_learnt_attack_reaches_95_percent_of_the_way_to_the_limit(rng) -> None:
    """And is not beyond it by more than its interval; measured 0.997 at this seed."""
    schema, joint = sl.sources.survey_joint()
    belief = sl.Belief.from_joint(joint, schema)
    own, true = draw(joint, 30_000, rng), draw(joint, 20_000, rng)
    plan = sl.Plan.uniform(schema, "grr", 2.0)
    reports = release(true, schema, plan, seed=3)
    limit = sl.attack(reports, BayesAttacker(belief), secret="education", truth=true).limit
    learnt = LearntAttacker.fit(own, schema, plan, "education", copies=2, seed=1)
    found = sl.attack(reports, learnt, secret="education", truth=true, limit=limit)
    assert found.share_of_limit is not None
    assert limit is not None
    assert found.share_of_limit >= 0.95
    assert found.score.upper >= limit.lower
    with pytest.raises(sl.InputError, match="'education', what the attacker was trained for, got 'age'"):
        sl.attack(reports, learnt, secret="age", truth=true)


@pytest.mark.parametrize("common", [500, 5])
def test_a_learnt_attack_leaves_values_alone_that_hardly_occur(common: int, rng) -> None:
    schema = sl.Schema((sl.categorical("a", list("xyz")), sl.categorical("b", list("xy"))))
    codes = rng.integers(0, 2, size=(common, 2)).astype(np.uint8)
    codes[0, 0] = 2
    plan = sl.Plan.uniform(schema, "grr", 3.0)
    learnt = LearntAttacker.fit(codes, schema, plan, "a")
    found = sl.attack(release(codes, schema, plan, seed=1), learnt, secret="a", truth=codes)
    assert set(found.guesses.tolist()) <= {0, 1, 2}


def test_an_attacker_does_not_learn_from_codes_that_no_value_has() -> None:
    schema = sl.Schema((sl.categorical("a", list("xyz")), sl.categorical("b", list("xy"))))
    plan = sl.Plan.uniform(schema.select(["b"]), "grr", 3.0)
    with pytest.raises(sl.InputError, match="`records` of 'a' must be codes from 0 to 2, got 0 to 7"):
        LearntAttacker.fit(np.array([[0, 1], [7, 0]]), schema, plan, "a")


def test_a_numeric_secret_under_laplace_noise_has_a_limit_too(rng) -> None:
    points = np.linspace(0, 1, 9)
    near = np.exp(-4 * np.abs(points[:, None] - points))
    joint = near / near.sum()
    belief = sl.Belief.from_joint(joint, ["a", "b"])
    further = {"lower": 0.0, "upper": 1.0, "points": points.tolist()}
    plan = sl.Plan(tuple(sl.Release(a, "laplace", 4.0, parameters=further) for a in belief.schema))
    true = draw(joint, 3000, rng)
    reports = release(true, belief.schema, plan, seed=6)
    found = sl.attack(reports, BayesAttacker(belief, "median", tuple(points)), secret="a", truth=true)
    assert found.baseline is not None
    assert found.limit is not None
    assert found.limit.value < found.score.upper
    assert found.score.value < min(found.control.value, found.baseline.value)


def test_one_attack_on_two_plans_shows_what_a_calibration_takes_away() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plans = {
        "before": sl.Plan.uniform(table.schema, "grr", 3.0),
        "after": sl.calibrate(belief, limit=1.0).plan,
    }
    found = attack_plans(belief, plans, "survived", table.codes(), seed=1)
    assert list(found) == ["before", "after"]
    assert found["before"].gain.value > found["after"].gain.value
    assert found["before"].beats_control
    assert "before: all reports together leak" in found.notes[0]
    with pytest.raises(sl.InputError, match="at least one plan"):
        attack_plans(belief, {}, "survived", table.codes())
    with pytest.raises(sl.InputError, match="did you mean 'after'"):
        found["aftr"]


def test_effective_budget_beside_the_two_theorems() -> None:
    cells = np.zeros((2, 2, 3))
    for a, b in itertools.product((0, 1), (0, 1)):
        cells[a, b, a + b] = 0.25
    belief = sl.Belief.from_joint(cells, ["a", "b", "c"])
    found = effective_budget(belief, sl.Plan.uniform(belief.schema, "grr", 1.0), "c")
    assert found.stated == pytest.approx(1.0)
    assert found.leakage.value == pytest.approx(3.0, abs=1e-9)
    assert found.independent.value == pytest.approx(2.0)
    assert found.interdependent.value > 3
    assert found.is_understated
    alone = sl.Plan.uniform(belief.schema, "grr", 1.0).withholding(["c"])
    assert effective_budget(belief, alone, "c").leakage.value == pytest.approx(2.0, abs=1e-9)


def test_effective_budgets_count_what_is_spent_alone() -> None:
    belief = sl.Belief.from_joint(np.full((2, 2, 2), 1 / 8), ["a", "b", "c"])
    a, b, c = belief.schema
    bounds = {"lower": 0.0, "upper": 1.0, "delta": 1e-5}
    noisy = sl.Release(a, "gaussian", 1.0, parameters=bounds)
    plan = sl.Plan((noisy, sl.Release(b, "withheld"), sl.Release(c, "grr", 1.0)))
    found = effective_budget(belief, plan, "c")
    alone = effective_budget(belief, plan.withholding(["b"]), "c")
    assert found.interdependent == alone.interdependent
    assert found.failure.value == pytest.approx(1e-5, rel=1e-3)
    open_plan = sl.Plan((sl.Release(a, "identity"), sl.Release(c, "grr", 1.0)))
    with pytest.raises(sl.InputError, match="sends 'a' as it is"):
        effective_budget(belief, open_plan, "c")


# collections


@pytest.mark.parametrize("mechanism", ["grr", "oue", "olh"])
def test_a_collection_by_a_plan_is_attacked_as_it_is(mechanism: str, tmp_path: Path) -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plan = sl.Plan.uniform(table.schema, mechanism, 2.0)
    collected = sl.collect(table, plan, seed=1)
    found = sl.attack(collected, BayesAttacker(belief), secret="survived", truth=table)
    assert found.beats_control
    path = write_reports(collected, tmp_path / "reports.parquet")
    again = sl.attack(read_reports(path), BayesAttacker(belief), secret="survived", truth=table)
    assert is_reports_file(path)
    assert np.array_equal(found.guesses, again.guesses)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    assert not is_reports_file(tmp_path / "broken.parquet")


def test_who_reports_one_attribute_says_nothing_of_the_others() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    collected = sl.collect(table, smp(table.schema, 3.0), seed=1)
    found = posterior(belief, collected, "survived").probabilities
    column = table.schema.names.index("sex")
    rows = collected.senders[column]
    likely = sl.create("grr", 2, 3.0).likelihoods(collected.parts[column]).T
    expected = (belief.conditional("survived", given="sex") * belief.prior("sex")[:, None]).T @ likely
    assert found[rows] == pytest.approx((expected / expected.sum(axis=0)).T, abs=1e-9)
    assert sl.attack(collected, BayesAttacker(belief), secret="survived", truth=table).baseline is None


def small_protocols(schema: sl.Schema) -> dict[str, object]:
    """Every protocol of a collection, over attributes a, b, c."""
    rng = np.random.default_rng(4)
    priors = {attribute.name: rng.dirichlet(np.ones(attribute.size)) for attribute in schema}
    codes = rng.integers(0, 2, size=(300, 3)).astype(np.uint8)
    second = {}
    for method, groups in (("corr-rr", 1), ("cond-rr", 1), ("cond-rr", 2)):
        design = sl.protocols.TwoPhase(schema, 2.0, method, groups=groups)
        first = design.first.randomise(codes, seed=1)
        second[f"{method} {groups}"] = learn_second_phase(design, first, people=1000).second
    units = (make_group(schema, ["a", "b"], "grr", 1.0), make_group(schema, ["c"], "oue", 1.0))
    return {
        "spl": spl(schema, 2.0),
        "smp": smp(schema, 2.0, shares=(1, 2, 3)),
        "product": product(schema, 2.0),
        "two groups": product(schema, 2.0, [["a", "b"], ["b", "c"]]),
        "group beside one": Split(schema, units),
        "rs+fd": rs_fd(schema, 2.0),
        "rs+rfd": rs_rfd(schema, 2.0, priors, "made up"),
        **second,
    }


PROTOCOLS = (
    "spl", "smp", "product", "two groups", "rs+fd", "rs+rfd", "corr-rr 1", "cond-rr 1", "cond-rr 2",
)  # fmt: skip


def report_columns(collected: sl.RecordReports) -> np.ndarray:
    """Return which column of the protocol's matrix each person's report is."""
    codes = [part.values.astype(int) for part in collected.parts]
    sizes = [group.size for group in collected.protocol.groups] or collected.protocol.schema.sizes
    if collected.senders[0] is None:
        return np.ravel_multi_index(tuple(codes), tuple(sizes))
    found = np.empty(collected.people, dtype=int)
    for start, rows, said in zip(np.cumsum([0, *sizes]), collected.senders, codes, strict=False):
        found[rows] = start + said
    return found


@pytest.mark.parametrize("secret", [0, 2])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_posterior_is_bayes_rule_for_every_protocol(name: str, secret: int, rng) -> None:
    """The belief is a tree, held as a tree, as its joint, and smoothed; the protocol's own law decides."""
    tree = sl.belief.Tree.from_conditionals(
        "a", rng.dirichlet(np.ones(3)),
        {("a", "b"): rng.dirichlet(np.ones(2), size=3), ("b", "c"): rng.dirichlet(np.ones(2), size=2)},
    )  # fmt: skip
    joint = tree.joint(["a", "b", "c"])
    protocol = small_protocols(tree.schema)[name]
    collected = protocol.randomise(draw(joint, 60, rng), seed=5)
    law = protocol.matrix()[:, report_columns(collected)]
    smooth = sl.Belief.from_counts(
        sl.Counts(tree.schema, rng.integers(0, 3, size=joint.shape) * (joint > 0.02)), smoothing=2.0
    )
    beliefs = (sl.Belief.from_tree(tree), sl.Belief.from_joint(joint, tree.schema), smooth)
    target = tree.schema.names[secret]
    rest = tuple(axis for axis in range(3) if axis != secret)
    for belief in beliefs:
        cells = belief.joint(["a", "b", "c"])[..., None] * law.reshape(*joint.shape, -1)
        expected = cells.sum(axis=rest) / cells.sum(axis=(0, 1, 2))
        assert posterior(belief, collected, target).probabilities == pytest.approx(expected.T, abs=1e-12)


def test_sets_of_cells_of_a_group_are_weighed_cell_by_cell(rng) -> None:
    joint = rng.dirichlet(np.ones(24)).reshape(4, 3, 2)
    belief = sl.Belief.from_joint(joint, ["a", "b", "c"])
    protocol = product(belief.schema, 0.5, mechanism="ss")
    collected = protocol.randomise(draw(joint, 40, rng), seed=2)
    channel = protocol.groups[0].randomiser.channel
    assert channel.width > 2
    likely = np.stack([channel.likelihood(row) for row in collected.parts[0].values.tolist()])
    cells = joint.reshape(-1) * likely
    expected = cells.reshape(-1, 4, 3, 2).sum(axis=(2, 3)) / cells.sum(axis=1)[:, None]
    assert posterior(belief, collected, "a").probabilities == pytest.approx(expected, abs=1e-12)
    tree = sl.Belief.from_tree(sl.Belief.tree_of(belief).tree)
    dense = sl.Belief.from_joint(tree.tree.joint(["a", "b", "c"]), belief.schema)
    by_tree, by_joint = (posterior(known, collected, "a").probabilities for known in (tree, dense))
    assert by_tree == pytest.approx(by_joint, abs=1e-12)


@pytest.mark.parametrize("name", [*PROTOCOLS, "group beside one"])
def test_every_file_of_reports_is_attacked(name: str, rng, tmp_path: Path) -> None:
    """No attack is beyond the limit by more than its interval (99.9 %, fixed seed)."""
    joint = np.zeros((3, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = joint[2, 0, 1] = 1 / 3
    belief = sl.Belief.from_joint(joint, ["a", "b", "c"])
    protocol = small_protocols(belief.schema)[name]
    true = draw(joint, 3000, rng)
    path = write_reports(protocol.randomise(true, seed=8), tmp_path / "reports.parquet")
    found = sl.attack(read_reports(path), BayesAttacker(belief), secret="a", truth=true, confidence=0.999)
    assert found.beats_control
    assert found.score.lower <= found.limit.upper
    assert found.limit.lower <= found.score.upper
    assert (found.baseline is None) == (name in ("smp", "two groups"))
    assert f"by {protocol.name}" in found.release


def test_what_no_bayes_attack_reads_is_named() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    with pytest.raises(sl.InputError, match="what `collect` or `release` returned, got .list"):
        posterior(belief, [1, 2], "survived")
    plan = sl.Plan.uniform(table.schema)
    learnt = LearntAttacker.fit(table.codes(), table.schema, plan, "survived")
    with pytest.raises(sl.InputError, match="got product. Take the Bayes attack"):
        sl.attack(
            sl.collect(table, product(table.schema, 1.0), seed=1), learnt, secret="survived", truth=table
        )
    with pytest.raises(sl.InputError, match="no reports of it"):
        Released(plan, {}, 3)
    reports = release(table.codes(), table.schema, plan, seed=1)
    with pytest.raises(sl.InputError, match="5 people reported 'class', but there are 2201"):
        Released(plan, reports.columns, 5)


def test_shuffled_reports_are_compared_with_nobody_in_either_form() -> None:
    table = sl.example("titanic")
    collected = sl.collect(table, sl.Plan.uniform(table.schema, epsilon=1.0), seed=1)
    shuffled = collected.shuffled(order_key(1))
    attacker = BayesAttacker(sl.Belief.from_data(table))
    for reports in (shuffled, Released.of(shuffled)):
        with pytest.raises(sl.InputError, match="the reports are shuffled"):
            attack(reports, attacker, secret="sex", truth=table)


# the floating-point attack


@pytest.mark.parametrize(
    ("candidates", "low", "high"),
    [((0, 1), 0.78, 0.93), (tuple(range(17, 90)), 0.004, 0.02), ((1000, 1001), 0.0, 0.004)],
)
def test_the_floating_point_attack_on_the_naive_sampler(candidates, low: float, high: float) -> None:
    """SCIENCE: 80-92 % for {0, 1}, 0.7 % for 73 ages, 0.1 % for {1000, 1001}; 5,000 reports, seeded."""
    found = attack_naive(candidates, 1.0, 5000, seed=1)
    assert found.feasible[np.arange(5000), found.truth].all(), "the true value is always feasible"
    assert low <= found.recovered <= high
    assert found.mean_size < len(candidates)
    assert found.attack.beats_control == (len(candidates) == 73 or candidates == (0, 1))


@pytest.mark.parametrize("candidates", [(0, 1), tuple(range(17, 90)), (1000, 1001)])
def test_our_release_excludes_no_candidate(candidates) -> None:
    """The noise is the operating system's: each case gives a false alarm at most once in a million runs."""
    pytest.importorskip("opendp", reason="secure noise needs the extra numeric")
    found = attack_release(candidates, 1.0, 500, seed=1)
    assert found.feasible.all(), "every report is possible under every value"
    assert found.recovered == 0
    assert np.array_equal(found.attack.losses, found.attack.control_losses)
    other = attack_release(candidates, 1.0, 2000, seed=1, test="naive").attack
    gains = other.control_losses - other.losses
    assert binom.sf((gains > 0).sum() - 1, np.count_nonzero(gains), 0.5) > 1e-6, "more wins than losses"


def test_candidates_come_in_order() -> None:
    with pytest.raises(sl.InputError, match="ascending order"):
        FloatingPointAttacker((1.0, 0.0), lambda *_: np.ones((1, 2), dtype=bool), "x")
    with pytest.raises(sl.InputError, match="`test` must be one of 'grid', 'naive'"):
        attack_release([0, 1], 1.0, 10, seed=1, secure=False, test="fine")


# the owner's side


def numbers(rows: int = 400) -> Numbers:
    rng = np.random.default_rng(7)
    parts = rng.lognormal(10, 1, size=(rows, 3))
    columns = {"a": parts[:, 0], "b": parts[:, 1], "c": parts[:, 2], "total": parts.sum(axis=1)}
    return Numbers.of(columns, entities=np.arange(rows) // 4, logarithmic=list(columns))


@pytest.mark.parametrize("family", ["laplace", "gaussian", "interval"])
def test_the_secret_gets_the_strictest_budget(family) -> None:
    noise = Noise(family, leniency=3.0)
    budgets = noise.budgets(("a", "b", "total"), ["total"], 2.0)
    assert budgets == {"a": 6.0, "b": 6.0, "total": 2.0}
    table = numbers(4000)
    noisy = protect(table, noise, 2.0, ["total"], seed=1)
    errors = np.abs(noisy.values - table.values).mean(axis=0)
    assert errors[3] > 1.5 * errors[:3].max()
    if family == "laplace":
        assert errors == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2], rel=0.1)
    assert noisy.is_simulation


def test_swaps_stay_within_an_entity_and_claim_no_budget() -> None:
    table = numbers()
    noise = Noise("swap")
    assert noise.budgets(table.names, ["total"], 0.5) == {}
    assert "no budget is claimed" in noise.describe(0.5)
    noisy = protect(table, noise, 1.0, ["total"], seed=1).values
    assert (noisy != table.values).mean() > 0.5
    for column in range(4):
        before, after = (v[:, column].reshape(-1, 4) for v in (table.values, noisy))
        assert np.array_equal(np.sort(before, axis=1), np.sort(after, axis=1))
    few = protect(table, noise, 0.3, ["total"], seed=1).values
    assert 0.05 < (few != table.values).mean() < 0.3
    alone = Numbers.of({"a": [1.0, 2, 3, 4], "b": [1.0, 2, 3, 5]})
    with pytest.raises(sl.InputError, match="whose record"):
        protect(alone, noise, 0.5, ["a"], seed=1)


def test_swaps_without_a_seed_use_secure_randomness(monkeypatch) -> None:
    asked = []
    secure = owner.randomness

    def listen(seed, stream):
        source = secure(seed, stream)
        asked.append(source.is_secure)
        return source

    monkeypatch.setattr(owner, "randomness", listen)
    table = numbers()
    noisy = protect(table, Noise("swap"), 1.0, ["total"])
    assert not noisy.is_simulation
    assert (noisy.values != table.values).mean() > 0.5
    assert asked
    assert all(asked)
    asked.clear()
    again = [protect(table, Noise("swap"), 0.5, ["total"], seed=4).values for _ in range(2)]
    assert np.array_equal(*again)
    assert not any(asked)


def test_the_records_of_one_entity_are_not_divided() -> None:
    table = numbers(401)
    for seed in range(3):
        own, target = table.halves(seed)
        assert set(own.entities.tolist()).isdisjoint(target.entities.tolist())
        assert abs(len(own) - len(target)) <= 5
        assert len(own) + len(target) == 401
    few = Numbers.of({"a": np.arange(40.0), "b": np.arange(40.0) ** 2}, entities=np.arange(40) % 2)
    own, target = few.halves(1)
    assert set(own.entities.tolist()) == set(target.entities.tolist()) == {0, 1}
    days = Numbers.of(
        {"a": np.arange(40.0), "b": np.arange(40.0) ** 2},
        entities=np.arange(40) % 2,
        blocks=np.arange(40) // 8,
    )
    own, target = days.halves(1)
    assert set(own.blocks.tolist()).isdisjoint(target.blocks.tolist())
    assert set(own.entities.tolist()) == set(target.entities.tolist()) == {0, 1}
    one = Numbers.of({"a": [1.0, 2, 3, 4], "b": [1.0, 2, 3, 5]}, blocks=[0, 0, 0, 1])
    assert sorted(len(half) for half in one.halves(2)) == [1, 3]
    with pytest.raises(sl.InputError, match="`entities` must be one label for each of 4 records"):
        Numbers.of({"a": [1.0, 2, 3, 4], "b": [1.0, 2, 3, 5]}, entities=[1, 2])
    with pytest.raises(sl.InputError, match="`seed` must be a whole number of at least 0"):
        table.halves(-1)


def test_the_attacker_judges_swaps_by_whole_entities() -> None:
    """His held-out tenth has all records of an entity: single ones would show no swap, hence no noise."""
    own, target = numbers(2000).halves(seed=1)
    noise = Noise("swap")
    aware = fit_aware(own, ["total"], noise, [1.0], "boosted")
    released = protect(target, noise, 1.0, ["total"], seed=2)
    found = sl.attack(released, aware, secret="total", truth=target)
    assert not np.array_equal(found.guesses, released.values[:, -1:])
    assert found.score.value < 0.95 * found.baseline.value


@pytest.mark.parametrize(
    ("noise", "level"),
    [(Noise(), 0.01), (Noise(), 30.0), (Noise("gaussian"), 2.0), (Noise(leniency=2.0), 2.0)],
)
def test_a_noise_aware_attacker_is_held_to_the_noise_he_knows(noise: Noise, level: float) -> None:
    own, target = numbers(200).halves(seed=1)
    aware = fit_aware(own, ["total"], Noise(), [1.0, 5.0], "boosted")
    between = protect(target, Noise(), 3.0, ["total"], seed=1)
    assert sl.attack(between, aware, secret="total", truth=target).score.value > 0
    with pytest.raises(sl.InputError, match="trained for 'laplace' noise at levels from 1 to 5, leniency 1"):
        sl.attack(protect(target, noise, level, ["total"], seed=1), aware, secret="total", truth=target)
    with pytest.raises(sl.InputError, match="`reports` must be numbers under noise"):
        sl.attack(target, aware, secret="total", truth=target)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noise("pink"), "`noise` must be one of 'laplace'"),
        (lambda: Noise(leniency=0.5), "`leniency` must be a finite number of at least 1"),
        (lambda: protect(numbers(), Noise(), -1.0, ["total"]), "`epsilon` must be a finite number above 0"),
        (lambda: protect(numbers(), Noise("swap"), 2.0, ["total"]), "a share of swapped values"),
        (lambda: protect(numbers(), Noise(), 1.0, ["totl"]), "did you mean 'total'"),
        (lambda: protect(numbers(), Noise("gaussian-classic"), 2.0, ["total"]), "below 1 for the classic"),
        (lambda: Numbers.of({"a": [1.0] * 5, "b": [1.0, 2, 3, 4, 5]}), "'a' is constant"),
        (lambda: Numbers.of({"a": [-1.0, 2, 3, 4], "b": [1.0, 2, 3, 4]}, logarithmic=["a"]), "negative"),
        (lambda: fit_published(numbers(), ["total"], "forest"), "`model` must be one of"),
        (
            lambda: fit_published(numbers(), ["a", "b", "c", "total"], "boosted"),
            "every attribute is a secret",
        ),
        (lambda: fit_aware(numbers(), ["total"], Noise(), [], "boosted"), "number of levels"),
    ],
)
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        make()


@pytest.mark.parametrize(("family", "level"), [("laplace", 2.0), ("interval", 2.0), ("swap", 1.0)])
def test_boosted_trees_that_know_the_noise_beat_those_that_do_not(family, level: float) -> None:
    own, target = numbers(3000).halves(seed=1)
    noise = Noise(family)
    released = protect(target, noise, level, ["total"], seed=2)
    published = sl.attack(released, fit_published(own, ["total"], "boosted"), secret="total", truth=target)
    aware = sl.attack(
        released, fit_aware(own, ["total"], noise, [level], "boosted"), secret="total", truth=target
    )
    filled = sl.attack(released, fit_published(own, ["total"], "imputation"), secret="total", truth=target)
    assert aware.score.value < min(published.score.value, filled.score.value)
    assert aware.score.value < aware.control.value * 1.02


def test_without_torch_everything_else_works_and_the_error_names_the_extra() -> None:
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Absent())
import numpy as np, sidelight as sl
from sidelight.attacks import Noise, Numbers, fit_aware, fit_published, protect, release
table = sl.example("titanic")
reports = release(table.codes(), table.schema, sl.Plan.uniform(table.schema), seed=1)
found = sl.attack(reports, sl.BayesAttacker(sl.Belief.from_data(table)), secret="survived", truth=table)
print(found.beats_control)
x = np.random.default_rng(0).random((60, 2))
numbers = Numbers.of({"a": x[:, 0], "b": x[:, 0] + x[:, 1]})
print(fit_published(numbers, ["b"], "imputation").attack)
published = lambda: fit_published(numbers, ["b"], "mlp")
aware = lambda: fit_aware(numbers, ["b"], Noise(), [1.0], "cnn")
for make in (published, aware):
    try:
        make()
    except sl.MissingExtraError as error:
        print(error)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    assert lines[:2] == ["True", "imputation"]
    assert len(lines) == 4
    assert all('pip install "sidelight[neural]"' in line for line in lines[2:])


# files of numbers


def test_numbers_are_read_from_a_file_by_lenient_names(tmp_path: Path) -> None:
    rows = [f"{i},{i * i},x{i % 3},7,{'' if i % 2 else i}" for i in range(1, 41)]
    path = tmp_path / "sheet.csv"
    path.write_text("Some Part,Grand Total,who,same,holes\n" + "\n".join(rows) + "\n")
    found = read_numbers(str(path), "grand_total", entity="WHO")
    assert found.secret == "Grand Total"
    assert found.numbers.names == ("Grand Total", "Some Part")
    assert set(found.numbers.entities.tolist()) == {0, 1, 2}
    assert [note.split("'")[1] for note in found.notes] == ["same", "holes"]
    with pytest.raises(sl.InputError, match="there is no column 'grnd' of .*sheet.csv"):
        read_numbers(str(path), "grnd")
    with pytest.raises(sl.InputError, match="'who' of .* is not numeric"):
        read_numbers(str(path), "grand_total", through=["who"])
