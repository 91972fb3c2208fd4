"""Noisy numbers in collections: the law of a cell, frequencies, means, budgets, files, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.estimation import estimate_joint, predicted_variances
from sidelight.estimation.joint import likeliest_numbers
from sidelight.estimation.unbiased import number_parts, sole_numbers, unbiased
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.mechanisms.numeric import gaussian_delta
from sidelight.protocols import (
    Sample,
    Split,
    planned,
    read_protocol,
    record_budget,
    rs_fd,
    smp,
    spl,
    write_protocol,
)
from sidelight.protocols.groups import make_group
from sidelight.protocols.records import fingerprint
from sidelight.report.collection import print_estimates
from sidelight.report.page import page_of, render
from sidelight.transport import Aggregator, read_checkpoint, write_batches, write_checkpoint

POINTS = (-1.0, 0.0, 0.5, 2.0)
SHARES = np.array([0.4, 0.1, 0.2, 0.3])
LEVELS = sl.categorical("level", ["low", "fair", "good", "high"], ordinal=True)
SCHEMA = sl.Schema((LEVELS, sl.categorical("sex", "fm")))
NOISES = {
    "laplace": {"lower": -1, "upper": 2, "points": list(POINTS)},
    "gaussian": {"lower": -1, "upper": 2, "points": list(POINTS), "delta": 1e-3},
    "discrete-laplace": {"lower": -1, "upper": 2, "points": list(POINTS), "grid": 0.25},
}


def protocol_of(kind: type[Split | Sample], name: str, epsilon: float = 4.0) -> Split | Sample:
    number = make_group(SCHEMA, ["level"], name, epsilon, NOISES[name])
    units = number, make_group(SCHEMA, ["sex"], "grr", 1.0)
    return kind(SCHEMA, units)


def people(count: int, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(4, count, p=SHARES), rng.integers(0, 2, count)], axis=1).astype(np.uint8)


def truth(records: np.ndarray) -> np.ndarray:
    return np.bincount(records[:, 0], minlength=4) / len(records)


# --- frequencies and means -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Split, Sample])
@pytest.mark.parametrize("name", NOISES)
def test_frequencies_and_means_are_unbiased_with_the_stated_errors(kind, name: str) -> None:
    """Over 200 collections: mean deviations within 5 standard errors (false alarm 6e-7 for each of 5
    figures), mean squares of the standardised errors within 5 of theirs.
    """
    protocol = protocol_of(kind, name)
    records = people(2000)
    frequencies, mean = truth(records), float(truth(records) @ POINTS)
    found = [
        sl.estimate(protocol.randomise(records, seed=seed).aggregate(), estimator="inversion")
        for seed in range(200)
    ]
    off = np.array([[*(item["level"] - frequencies), item.means["level"].mean - mean] for item in found])
    error = np.array([[*item.standard_errors["level"], item.means["level"].standard_error] for item in found])
    assert np.all(np.abs(off.mean(axis=0)) < 5 * off.std(axis=0) / math.sqrt(200))
    squares = (off / error) ** 2
    assert np.all(np.abs(squares.mean(axis=0) - 1) < 5 * squares.std(axis=0) / math.sqrt(200))


def test_the_mean_is_that_of_the_numbers_and_its_error_counts_who_was_not_asked() -> None:
    records = people(3000)
    split = protocol_of(Split, "laplace").randomise(records, seed=1)
    found = sl.estimate(split).means["level"]
    assert found.mean == pytest.approx(float(split.parts[0].values.mean()), abs=1e-9)
    noise = 2 * (3 / 4.0) ** 2
    assert found.standard_error == pytest.approx(math.sqrt(noise / 3000), rel=1e-6)
    spread = float(SHARES @ np.square(POINTS) - (SHARES @ POINTS) ** 2)
    whole = sl.estimate(split, about="population").means["level"]
    assert whole.standard_error == pytest.approx(math.sqrt((noise + spread) / 3000), rel=0.02)
    sample = protocol_of(Sample, "laplace").randomise(records, seed=1)
    asked = len(sample.parts[0])
    some = sl.estimate(sample).means["level"]
    expected = math.sqrt((noise + spread) / asked - spread / 3000)
    assert some.standard_error == pytest.approx(expected, rel=0.02)
    assert list(sl.estimate(sample).means) == ["level"]


def test_joints_of_numbers_are_estimated_from_their_cells() -> None:
    """The joint of two numbers that are always equal; each cell within 0.05, six standard errors or more."""
    schema = sl.Schema((sl.categorical("x", "ab"), sl.categorical("y", "ab")))
    protocol = spl(schema, 16.0, "laplace", {"lower": 0, "upper": 1})
    first = np.random.default_rng(3).integers(0, 2, 20_000)
    collected = protocol.randomise(np.stack([first, first], axis=1).astype(np.uint8), seed=4)
    joint = estimate_joint(collected, ["x", "y"])
    assert np.abs(joint - np.diag(np.bincount(first) / 20_000)).max() < 0.05


def unit_variances(units, sums) -> list[float]:
    """The summed variances of each unit's estimate alone, from the same reports."""
    number, group = (part.reports for part in sums.parts)
    none, full = units[1].moments["level"]
    return [
        float(units[0].randomiser.variance(number, SHARES).sum()),
        float(((none + (full - none) * SHARES - SHARES**2) / group).sum()),
    ]


def test_an_attribute_reported_in_two_ways_combines_them() -> None:
    """A number, and a group that holds it too: within 6 standard errors (false alarm 2e-9, four times)."""
    units = (
        make_group(SCHEMA, ["level"], "laplace", 4.0, NOISES["laplace"]),
        make_group(SCHEMA, ["level", "sex"], "grr", 4.0),
    )
    records = people(6000)
    protocol = Sample(SCHEMA, units)
    sums = protocol.randomise(records, seed=6).aggregate()
    found = unbiased([sums])["level"]
    assert found.reports == 6000
    off = np.abs(found.estimate - truth(records))
    assert np.all(off < 6 * np.sqrt(found.variance(found.estimate)))
    both = unbiased([sums], "population")["level"].variance(SHARES).sum()
    for part in unit_variances(units, sums):
        assert both < part
    assert likeliest_numbers([sums]) == {}


# --- budgets ---------------------------------------------------------------------------------------------


def test_a_gaussian_record_states_a_delta_and_never_a_pure_budget() -> None:
    parameters = NOISES["gaussian"]
    schema = sl.Schema((LEVELS, sl.categorical("other", LEVELS.values)))
    split, sample = spl(schema, 4.0, "gaussian", parameters), smp(schema, 4.0, "gaussian", (), parameters)
    assert split.epsilon == pytest.approx(4.0)
    assert split.delta == pytest.approx(2e-3, rel=1e-6)
    assert sample.delta == pytest.approx(1e-3, rel=1e-6)
    assert "deltas" in split.proof
    assert "deltas" in sample.proof
    mixed = protocol_of(Sample, "gaussian")
    assert mixed.delta == pytest.approx(5e-4, rel=1e-6)
    uneven = Sample(SCHEMA, mixed.groups, (3, 1))
    assert uneven.delta == pytest.approx(7.5e-4, rel=1e-6)
    found = sl.estimate(split.randomise(np.zeros((500, 2), dtype=np.uint8), seed=1))
    assert found.delta == split.delta
    assert json.loads(found.to_json())["delta"] == split.delta


def test_the_stated_delta_of_a_split_holds_for_the_exact_one() -> None:
    """Two Gaussians compose to one, whose exact delta is known (Balle, Wang 2018, Theorem 8)."""
    schema = sl.Schema((LEVELS, sl.categorical("other", LEVELS.values)))
    protocol = spl(schema, 2.0, "gaussian", NOISES["gaussian"])
    multiples = [unit.randomiser.noise.scale / unit.randomiser.noise.range_steps for unit in protocol.groups]
    together = 1 / math.sqrt(sum(multiple**-2 for multiple in multiples))
    assert 0 < gaussian_delta(protocol.epsilon, together) <= protocol.delta


def test_pure_noise_has_no_delta_and_its_budgets_add_up() -> None:
    for name in ("laplace", "discrete-laplace"):
        protocol = protocol_of(Split, name)
        assert (protocol.delta, protocol.epsilon) == (0.0, pytest.approx(5.0, abs=1e-9))
        assert "both bounds" in protocol.proof
        assert protocol_of(Sample, name).epsilon == pytest.approx(4.0, abs=1e-9)
    assert sl.estimate(protocol_of(Split, "laplace").randomise(people(50), seed=1)).delta == 0.0
    assert (smp(SCHEMA, 1.0).delta, spl(SCHEMA, 1.0).delta, rs_fd(SCHEMA, 1.0).delta) == (0.0, 0.0, 0.0)


def test_the_stated_budget_is_the_largest_ratio_of_densities() -> None:
    protocol = protocol_of(Split, "laplace")
    logs = protocol.groups[0].randomiser.channel.log_density(np.linspace(-30, 30, 2001))
    assert float((logs.max(axis=1) - logs.min(axis=1)).max()) == pytest.approx(4.0, abs=1e-6)


# --- plans, files, streams -------------------------------------------------------------------------------


def plan(name: str = "laplace") -> sl.Plan:
    return sl.Plan(
        (
            sl.Release(LEVELS, name, 4.0, parameters=NOISES[name]),
            sl.Release(SCHEMA["sex"], "grr", 1.0),
            sl.Release(sl.categorical("secret", "xy"), "withheld"),
        )
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    codes = people(2500)
    columns = {
        "level": np.array(LEVELS.values)[codes[:, 0]],
        "sex": np.array(["f", "m"])[codes[:, 1]],
        "secret": np.array(["x", "y"])[codes[:, 1]],
    }
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


def test_a_plan_with_numbers_is_collected_and_what_it_withholds_is_not(table: Path) -> None:
    collected = sl.collect(sl.read(str(table), schema=plan().schema), plan(), seed=1)
    assert collected.protocol.labels == ("level", "sex")
    found = sl.estimate(collected)
    assert found.schema.names == ("level", "sex")
    off = np.abs(found["level"] - truth(people(2500)))
    assert np.all(off < 6 * found.standard_errors["level"])
    with pytest.raises(sl.InputError, match="asks for 2 reports of 'level'"):
        planned(sl.Plan((sl.Release(LEVELS, "laplace", 1.0, 2, NOISES["laplace"]),)))


@pytest.mark.parametrize("name", NOISES)
def test_the_command_line_collects_and_estimates_numbers(
    name: str, run, table: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(plan(name).to_toml())
    shown = run("collect", table, "--plan", "plan.toml", "-o", "r.parquet", "--seed", 1)
    assert shown.code == 0
    assert ("with delta 0.001:" in shown.out) == (name == "gaussian")
    shown = run("estimate", "r.parquet", "--report", "r.html")
    assert shown.code == 0
    assert "Means of the numbers that stand for the values" in shown.out
    assert ("with delta 0.001" in shown.out) == (name == "gaussian")
    found = json.loads(run("estimate", "r.parquet", "--json").out)
    assert [item["attribute"] for item in found["means"]] == ["level"]
    assert found["means"][0]["lower"] < found["means"][0]["mean"] < found["means"][0]["upper"]
    page = Path("r.html").read_text()
    assert f"{found['means'][0]['mean']:.5g}" in page
    advised = run("advise", "--first", "r.parquet", "--people", 1000, "--epsilon", 1)
    assert advised.code == 0
    assert "estimates from 2500 reports" in advised.out


def test_the_true_mean_stands_beside_the_estimated_one(run, table: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(plan("laplace").to_toml())
    run("collect", table, "--plan", "plan.toml", "-o", "r.parquet", "--seed", 1)
    compared = ("estimate", "r.parquet", "--truth", table)
    found = json.loads(run(*compared, "--json").out)
    shares = [row["truth"] for row in found["estimates"] if row["attribute"] == "level"]
    mean = float(np.dot(shares, POINTS))
    assert found["means"][0]["truth"] == pytest.approx(mean)
    assert abs(found["means"][0]["mean"] - mean) < 5 * found["means"][0]["standard_error"]
    shown = run(*compared, "--report", "r.html").out.split("Means of the numbers")[1]
    assert "truth" in shown
    assert f"{mean:.5g}" in shown
    assert f'<td class="number">{mean:.5g}</td></tr>' in Path("r.html").read_text()


def test_means_are_shown_only_where_there_are_some(capsys) -> None:
    found = sl.estimate(smp(SCHEMA, 1.0).randomise(people(100), seed=1))
    print_estimates(found)
    assert "Means" not in capsys.readouterr().out
    assert 'id="means"' not in render(page_of(found))
    assert found.means == {}


@pytest.mark.parametrize("kind", [Split, Sample])
@pytest.mark.parametrize("name", NOISES)
def test_reports_protocols_and_checkpoints_of_numbers_survive_their_files(kind, name, tmp_path: Path) -> None:
    protocol = protocol_of(kind, name)
    collected = protocol.randomise(people(900), seed=2)
    again = sl.read_reports(sl.write_reports(collected, tmp_path / "reports.parquet"))
    assert fingerprint(again.protocol) == fingerprint(protocol)
    assert sl.estimate(again).to_json() == sl.estimate(collected).to_json()
    for suffix in ("toml", "json"):
        read = read_protocol(write_protocol(protocol, tmp_path / f"protocol.{suffix}"))
        assert (fingerprint(read), read.delta) == (fingerprint(protocol), protocol.delta)
    write_batches(collected, tmp_path / "in", 4)
    aggregator = Aggregator()
    for path in sorted((tmp_path / "in").glob("*.parquet")):
        assert aggregator.take(path)
    assert len(aggregator.batches) == 4
    assert aggregator.estimate().to_json() == sl.estimate(collected).to_json()
    kept, _ = read_checkpoint(write_checkpoint(aggregator, tmp_path / "state.json"))
    assert kept.estimate().to_json() == sl.estimate(collected).to_json()


def test_a_checkpoint_takes_a_negative_sum_of_numbers_but_no_negative_count() -> None:
    from sidelight.transport.checkpoint import SumsFile, sums_from_data, sums_to_data

    protocol = Split(SCHEMA, protocol_of(Split, "laplace").groups)
    low = protocol.randomise(np.zeros((40, 2), dtype=np.uint8), seed=1).aggregate()
    data = sums_to_data(low)
    data["parts"][0]["sums"][-1] = -12345
    key = fingerprint(protocol)
    assert sums_from_data(key, SumsFile.model_validate(data), "x").parts[0].sums[-1] == -12345
    data["parts"][0]["sums"][0] = -1
    with pytest.raises(sl.InputError, match="are not counts of 40 reports"):
        sums_from_data(key, SumsFile.model_validate(data), "x")


def test_reports_of_other_points_noise_or_bounds_are_not_mixed() -> None:
    first = protocol_of(Split, "laplace").randomise(people(60), seed=1)
    moved = {**NOISES["laplace"], "points": [-1, 0.1, 0.5, 2]}
    others = [
        Split(SCHEMA, (make_group(SCHEMA, ["level"], "laplace", 4.0, moved), first.protocol.groups[1])),
        protocol_of(Split, "discrete-laplace"),
        protocol_of(Split, "laplace", 3.9),
    ]
    for other in others:
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            sl.estimate([first, other.randomise(people(60), seed=1)])


@pytest.mark.parametrize("name", NOISES)
def test_chunks_of_records_give_the_same_sums(name: str) -> None:
    protocol = protocol_of(Sample, name)
    records = people(700)
    whole = protocol.randomise(records, seed=3).aggregate()
    parts = [protocol.randomise(records[i : i + 300], seed=3, offset=i).aggregate() for i in (0, 300, 600)]
    merged = parts[2] + (parts[0] + parts[1])
    for mine, theirs in zip(merged.parts, whole.parts, strict=True):
        assert (mine.reports, mine.sums.tolist()) == (theirs.reports, theirs.sums.tolist())


def test_predicted_variances_are_those_of_the_law() -> None:
    protocol = protocol_of(Sample, "laplace")
    frequencies = {"level": SHARES, "sex": np.array([0.5, 0.5])}
    found = predicted_variances(protocol, 1000, frequencies)["level"]
    single = protocol.groups[0].randomiser.variance(1, SHARES)
    np.testing.assert_allclose(found, single / 500 - SHARES * (1 - SHARES) / 1000, rtol=1e-9)


def test_an_attacker_reads_the_numbers_not_their_cells() -> None:
    collected = protocol_of(Split, "laplace").randomise(people(20), seed=1)
    _, factors = next(iter(collected.protocol.evidence(collected, 20)))
    channel = collected.protocol.groups[0].randomiser.noise.channel
    expected = np.stack([channel.likelihood(report) for report in collected.parts[0].values], axis=1)
    np.testing.assert_allclose(factors[0].parts["level"], expected, rtol=1e-9)


# --- what is refused -------------------------------------------------------------------------------------


def unit(name: str, epsilon: float = 1.0, **changes: object) -> object:
    return make_group(SCHEMA, ["level"], name, epsilon, {**NOISES[name], **changes})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: unit("laplace", points=[-1, 0, 0, 2]), "are one number on its grid"),
        (lambda: unit("discrete-laplace", points=[-1, 0.01, 0.02, 2]), "are one number on its grid"),
        (lambda: unit("gaussian", 0.001, delta=1e-9), "'level' could be estimated: the noise of 'gaussian'"),
        (lambda: unit("laplace", points=[-1, 0, 2]), "4 numbers, one for each value"),
        (lambda: unit("laplace", points=[-1, 0, 1, 2.5]), "between -1.0 and 2.0"),
        (lambda: unit("laplace", upper=-1), "`upper` must be"),
        (
            lambda: unit("laplace", lower=-4e307, upper=4e307, points=()),
            "that doubles hold a number with its",
        ),
        (lambda: unit("laplace", -1.0), "`epsilon` must be"),
        (lambda: unit("laplace", delta=0.1), "has no parameter 'delta'"),
        (lambda: unit("gaussian", delta=0.0), "`delta` must be"),
        (lambda: smp(SCHEMA, 1.0, "gaussian", (), {"lower": 0, "upper": 1}), "needs the parameter 'delta'"),
        (lambda: smp(SCHEMA, 1.0, "laplace", (), {"lower": 0}), "a plan or a protocol file can give it"),
        (lambda: make_group(SCHEMA, ["level", "sex"], "laplace", 1.0, NOISES["laplace"]), "one of grr, ss"),
        (lambda: record_budget(protocol_of(Split, "laplace")), "are numbers, too many to enumerate"),
        (lambda: protocol_of(Split, "laplace").randomise(np.full((2, 2), 4)), "codes from 0 to 3"),
        (lambda: BinnedNumbers.from_plan(2, 1.0, {}), "a plan names the noise"),
    ],
)
def test_bad_numbers_are_refused(make, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        make()
    assert words in str(caught.value)


def test_too_many_values_are_refused_and_many_are_not_slow() -> None:
    def of(size: int) -> sl.Schema:
        return sl.Schema((sl.categorical("x", [str(value) for value in range(size)]),))

    with pytest.raises(
        sl.TooLargeError, match="600 values through 'laplace' would need more than 1024 cells"
    ):
        spl(of(600), 1.0, "laplace", {"lower": 0, "upper": 599})
    mechanism = spl(of(400), 1.0, "laplace", {"lower": 0, "upper": 399}).groups[0].randomiser
    assert 400 < mechanism.law.shape[1] <= 1024


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300, -1e9])
@pytest.mark.parametrize(
    "use",
    [
        sl.estimate,
        lambda found: sl.estimate(found, estimator="em"),
        lambda found: estimate_joint(found, ["level"]),
    ],
)
def test_reports_that_no_noise_makes_are_refused(bad: float, use) -> None:
    """One of them would otherwise move the mean as far as it likes, or be put into the last cell."""
    collected = protocol_of(Split, "laplace").randomise(people(30), seed=1)
    collected.parts[0].values[3] = bad
    with pytest.raises(sl.InputError, match=r"`reports` must be numbers.*1 of 30 are not \(row 3,"):
        use(collected)


def test_impossible_reports_do_not_stop_a_stream(tmp_path: Path) -> None:
    protocol = protocol_of(Split, "discrete-laplace")
    bad, good = (protocol.randomise(people(1024), seed=seed) for seed in (1, 2))
    bad.parts[0].values[:] = 2.0**50
    aggregator = Aggregator()
    with pytest.raises(sl.InputError, match="the column 'level': .*1024 of 1024 are not"):
        aggregator.take(sl.write_reports(bad, tmp_path / "bad.parquet"))
    assert aggregator.take(sl.write_reports(good, tmp_path / "good.parquet"))
    assert aggregator.estimate().people == 1024


def test_a_tiny_delta_is_still_stated_and_said_in_the_proof() -> None:
    for kind in (Split, Sample):
        units = (unit("gaussian", 60.0, delta=5e-324), make_group(SCHEMA, ["sex"], "grr", 1.0))
        assert "deltas" in kind(SCHEMA, units).proof
    assert Split(SCHEMA, units).delta == 5e-324


def test_what_is_alone_is_found_once_for_each_part(monkeypatch) -> None:
    asked = []
    counted = lambda one: asked.append(1) or sole_numbers(one)  # noqa: E731
    monkeypatch.setattr("sidelight.estimation.unbiased.sole_numbers", counted)
    schema = sl.Schema(tuple(sl.categorical(f"x{place}", "abc") for place in range(20)))
    sums = spl(schema, 20.0, "laplace", {"lower": 0, "upper": 2}).randomise(
        np.zeros((9, 20), dtype=np.uint8), seed=1
    )
    assert len(number_parts([sums.aggregate()], alone=True)) == 20
    assert len(asked) == 1


def test_tiny_budgets_have_finite_and_honest_errors() -> None:
    """Laplace noise of 33 times the range: errors far above 1, intervals that say so, nothing broken."""
    collected = protocol_of(Split, "laplace", 0.03).randomise(people(500), seed=1)
    found = sl.estimate(collected)
    assert np.all(np.isfinite(found.standard_errors["level"]))
    assert found.standard_errors["level"].min() > 3
    assert np.all((found.lower["level"] == 0) | (found.upper["level"] == 1))
    assert found["level"].sum() == pytest.approx(1)
    json.loads(found.to_json())
