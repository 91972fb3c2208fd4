"""The contract of protocols: every entry of the register, and some from outside, go the whole way.

Randomise, write, read, add up in parts, merge, estimate, attack; the stated law, budget and estimates against
enumeration. Statistical tests have a fixed seed and a false-alarm rate below 10^-6 each.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from outside_protocols import LinearCounts, NearRecords, OneGroup, OnePart
from scipy.stats import chi2, norm

import sidelight as sl
from sidelight.estimation import predicted_error, predicted_variances
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.unbiased import unbiased
from sidelight.mechanisms import Aggregate, Reports
from sidelight.protocols import product, read_protocol, record_budget, spl, write_protocol
from sidelight.protocols.protocol import Protocol, every_record
from sidelight.protocols.records import RecordReports, RecordSums, fingerprint
from sidelight.protocols.register import KINDS, PROTOCOLS, make_protocol, options_of, protocol_class
from sidelight.transport import Aggregator, read_checkpoint, write_checkpoint
from sidelight.transport.report_files import to_arrow

SCHEMA = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv"), sl.categorical("c", "pq")))
OPTIONS = {
    "priors": {"a": [0.7, 0.2, 0.1], "b": [0.9, 0.1], "c": [0.35, 0.65]}, "origin": "made up", "share": 0.4,
    "groups": [["a", "b"]],
}  # fmt: skip
OUTSIDE = {outside.kind: outside for outside in (NearRecords, OnePart, OneGroup, LinearCounts)}
BUDGET = 1.3
PEOPLE = 3000
MANY = 10**9
JOINT = np.random.default_rng(8).dirichlet(np.ones(12)).reshape(SCHEMA.sizes)


@pytest.fixture(autouse=True)
def register(monkeypatch) -> None:
    for kind, outside in OUTSIDE.items():
        monkeypatch.setitem(PROTOCOLS, kind, outside)


def made(name: str):
    taken = {option: OPTIONS[option] for option in options_of(name) if option in OPTIONS}
    return make_protocol(name, SCHEMA, BUDGET, **taken)


def people(count: int = PEOPLE) -> np.ndarray:
    cells = np.random.default_rng(4).choice(12, size=count, p=JOINT.reshape(-1))
    return np.stack(np.unravel_index(cells, SCHEMA.sizes), axis=1).astype(np.uint8)


def phases(name: str) -> list:
    """The protocols of a design: one, or the first and the second that is learnt from it."""
    design = made(name)
    if design.two_phase is None:
        return [design.first]
    first = design.first.randomise(people(400), seed=3)
    return [design.first, learn_second_phase(design.two_phase, first).second]


def truths(records: np.ndarray) -> dict[str, np.ndarray]:
    columns = zip(SCHEMA, records.T, strict=True)
    return {one.name: np.bincount(column, minlength=one.size) / len(column) for one, column in columns}


each = pytest.mark.parametrize("name", [*PROTOCOLS, *OUTSIDE])


@each
def test_a_protocol_states_what_the_contract_names(name: str) -> None:
    for protocol in phases(name):
        assert 0 < protocol.epsilon <= BUDGET + 1e-9
        assert 0 <= protocol.delta < 1
        assert protocol.name
        assert len(protocol.proof) > 20
        assert len(protocol.proof.splitlines()) == 1
        assert len(set(protocol.labels)) == len(protocol.labels) == len(protocol.forms)
        assert len(protocol.part_shares) == len(protocol.labels)
        assert protocol.first is protocol


@each
def test_the_law_is_the_stated_one(name: str) -> None:
    """Chi-squared of 20,000 reports of one record; false alarms below 10^-6."""
    record = (2, 0, 1)
    for protocol in phases(name):
        law = protocol.matrix()
        assert law.min() >= 0
        np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
        reports = protocol.randomise(np.tile(np.array(record, dtype=np.uint8), (20_000, 1)), seed=11)
        expected = law[np.ravel_multi_index(record, SCHEMA.sizes)] * 20_000
        seen = np.bincount(protocol.columns_of(reports), minlength=len(expected))
        kept = expected > 0
        assert not seen[~kept].any()
        statistic = float(((seen - expected)[kept] ** 2 / expected[kept]).sum())
        assert statistic < chi2.isf(1e-6, int(kept.sum()) - 1)


@each
def test_the_budget_is_never_exceeded(name: str) -> None:
    for protocol in phases(name):
        assert record_budget(protocol).epsilon <= protocol.epsilon + 1e-9


@each
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_protocol_is_read_back_from_its_file(name: str, ending: str, tmp_path) -> None:
    for protocol in phases(name):
        again = read_protocol(write_protocol(protocol, tmp_path / f"{protocol.kind}.{ending}"))
        assert fingerprint(again) == fingerprint(protocol)
        assert type(again) is type(protocol)
        assert (again.epsilon, again.name, again.schema) == (protocol.epsilon, protocol.name, SCHEMA)


@each
def test_the_form_is_that_of_reports(name: str) -> None:
    for protocol in phases(name):
        real = protocol.randomise(people(50), seed=1)
        assert to_arrow(protocol.nobody()).schema.types == to_arrow(real).schema.types
        assert protocol.nobody().aggregate().people == 0
        assert not protocol.nobody().is_simulation


@each
def test_chunks_agree_and_sums_merge_in_any_order(name: str) -> None:
    records = people(500)
    for protocol in phases(name):
        whole = protocol.randomise(records, seed=3)
        pieces = [protocol.randomise(records[at : at + 200], seed=3, offset=at) for at in (0, 200, 400)]
        assert whole.is_simulation
        assert to_arrow(sum(pieces[1:], pieces[0])).equals(to_arrow(whole))
        for order in permutations([piece.aggregate() for piece in pieces]):
            total = sum(order[1:], order[0])
            assert total.people == 500
            for mine, theirs in zip(total.parts, whole.aggregate().parts, strict=True):
                assert (mine.reports, mine.sums.tolist()) == (theirs.reports, theirs.sums.tolist())


@each
def test_without_a_seed_noise_is_fresh(name: str) -> None:
    for protocol in phases(name):
        first, second = (protocol.randomise(people(400)) for _ in range(2))
        assert not first.is_simulation
        assert not to_arrow(first).equals(to_arrow(second))


def every_report(protocol) -> list[RecordReports]:
    """One person's report for each column of the matrix, in order."""
    reports = []
    counts = [form.count for form in protocol.forms]
    none, one = np.arange(0), np.arange(1)
    if protocol.sends_one_part:
        for chosen, count in enumerate(counts):
            for code in range(count):
                parts = tuple(
                    Reports(np.array([code][: place == chosen], dtype=form.dtype))
                    for place, form in enumerate(protocol.forms)
                )
                senders = tuple(one if place == chosen else none for place in range(len(parts)))
                reports.append(RecordReports(protocol, parts, senders, 1))
        return reports
    for codes in np.ndindex(*counts):
        parts = tuple(
            Reports(np.array([code], dtype=form.dtype))
            for code, form in zip(codes, protocol.forms, strict=True)
        )
        reports.append(RecordReports(protocol, parts, (None,) * len(parts), 1))
    return reports


def expected_sums(protocol) -> RecordSums:
    """The sums of very many reports of people as in `JOINT` that are exactly as expected."""
    shares = JOINT.reshape(-1) @ protocol.matrix()
    each = [
        report.aggregate().parts if share else None
        for report, share in zip(every_report(protocol), shares, strict=True)
    ]
    parts = []
    for place, shape in enumerate(protocol.nobody().aggregate().parts):
        sums, reports = np.zeros(shape.sums.shape), 0.0
        for share, one in zip(shares, each, strict=True):
            if one is not None:
                sums = sums + share * one[place].sums
                reports += share * one[place].reports
        parts.append(Aggregate(round(reports * MANY), np.rint(sums * MANY).astype(np.int64), shape.mechanism))
    return RecordSums(protocol, MANY, tuple(parts))


@each
def test_estimates_are_unbiased_by_enumeration(name: str) -> None:
    found = unbiased([expected_sums(protocol) for protocol in phases(name)])
    for axis, attribute in enumerate(SCHEMA):
        truth = JOINT.sum(axis=tuple(i for i in range(3) if i != axis))
        np.testing.assert_allclose(found[attribute.name].estimate, truth, atol=1e-6)


def collected(name: str, records: np.ndarray, seed: int | None = None) -> list[RecordReports]:
    """The reports of all phases, everyone in one of them."""
    design = made(name)
    if design.two_phase is None:
        return [design.first.randomise(records, seed=seed)]
    is_first = design.two_phase.in_first(len(records))
    first = design.first.randomise(records[is_first], seed=seed)
    second = learn_second_phase(design.two_phase, first).second
    return [first, second.randomise(records[~is_first], seed=seed)]


@each
def test_the_stated_variance_is_that_of_the_estimates(name: str) -> None:
    """60 collections: no squared error, over its stated variance, beyond what is likely 10^-6 of the time.

    A stated variance may be an upper end, so that only too small ones are found; the prediction is near it.
    """
    records = people(1000)
    truth = truths(records)
    squares, stated = [], []
    for seed in range(60):
        found = sl.estimate(collected(name, records, seed), estimator="inversion")
        squares.append([(found[one] - truth[one]) ** 2 for one in ("a", "b", "c")])
        stated.append([found.standard_errors[one] ** 2 for one in ("a", "b", "c")])
    errors = [np.mean([row[i] for row in squares], axis=0) for i in range(3)]
    variances = [np.mean([row[i] for row in stated], axis=0) for i in range(3)]
    most = chi2.isf(1e-6, 60) / 60
    for error, variance in zip(errors, variances, strict=True):
        assert np.all(error <= most * variance)
    predicted = predicted_variances(made(name), 1000, truth)
    for one, variance in zip("abc", variances, strict=True):
        np.testing.assert_allclose(predicted[one], variance, rtol=0.5)
    assert np.isfinite(predicted_error(made(name), 1000, truth, shrinks=True))


def table(records: np.ndarray | None = None) -> sl.Table:
    import pandas as pd

    rows = people(6000) if records is None else records
    columns = zip(SCHEMA, rows.T, strict=True)
    frame = pd.DataFrame({one.name: np.array(one.values)[column] for one, column in columns})
    return sl.read(frame, schema=SCHEMA)


@each
def test_the_whole_way_from_records_to_an_attack(name: str, tmp_path) -> None:
    """Randomise, write, read, add up in parts, merge, estimate, attack; false alarms below 10^-6."""
    records = people()
    reports = collected(name, records, seed=5)
    halves = [part[at] for part in reports for at in (slice(0, 700), slice(700, None))]
    paths = [sl.write_reports(half, tmp_path / f"{i}.parquet") for i, half in enumerate(halves)]
    again = [sl.read_reports(path) for path in paths]
    for mine, theirs in zip(again, halves, strict=True):
        assert to_arrow(mine).equals(to_arrow(theirs))
    aggregators = [Aggregator(), Aggregator()]
    for place, path in enumerate(paths):
        aggregators[place % 2].take(path)
    merged = aggregators[1] + aggregators[0]
    restored, _ = read_checkpoint(write_checkpoint(merged, tmp_path / "state.json"))
    for estimator in ("best", "inversion"):
        direct = sl.estimate(reports, estimator=estimator)
        for other in (sl.estimate(again, estimator=estimator), restored.estimate(estimator=estimator)):
            for one in SCHEMA.names:
                np.testing.assert_allclose(other[one], direct[one], rtol=1e-12, atol=1e-12)
    truth = truths(records)
    reach = norm.isf(1e-7)
    for one in SCHEMA.names:
        assert np.all(np.abs(direct[one] - truth[one]) <= reach * direct.standard_errors[one])
    assert sl.estimate(again, estimator="em").people == PEOPLE
    attacker = sl.BayesAttacker(sl.Belief.from_data(table()))
    design = made(name)
    first = np.ones(PEOPLE, dtype=bool) if design.two_phase is None else design.two_phase.in_first(PEOPLE)
    result = sl.attack(again[0], attacker, secret="a", truth=records[first][: again[0].people])
    assert result.score.value < result.control.value + 0.05


@each
@pytest.mark.parametrize("kind", ["joint", "tree"])
def test_the_posterior_is_bayes_rule(name: str, kind: str) -> None:
    known = sl.Belief.from_data(table(), kind=kind)
    joint = np.asarray(known.joint(SCHEMA.names)).reshape(-1)
    every = every_record(SCHEMA)
    for protocol in phases(name):
        reports = protocol.randomise(people(60), seed=2)
        likely = protocol.matrix()[:, protocol.columns_of(reports)] * joint[:, None]
        for axis, secret in enumerate(SCHEMA.names):
            weights = np.stack(
                [likely[every[axis] == code].sum(axis=0) for code in range(SCHEMA.sizes[axis])]
            )
            posterior = sl.BayesAttacker(known).posterior(reports, secret)
            np.testing.assert_allclose(posterior.probabilities, (weights / weights.sum(axis=0)).T, atol=1e-9)
            taken = protocol.face_value(reports, secret)
            assert taken is None or (len(taken) == 60 and taken.max() < SCHEMA[secret].size)


@each
def test_a_protocol_is_collected_by_its_name(name: str) -> None:
    reports = sl.collect(table(people(800)), made(name), seed=1)
    assert sl.estimate(reports).people == 800


def test_a_report_that_no_record_leads_to_is_refused() -> None:
    reports = NearRecords(SCHEMA, BUDGET).randomise(people(20), seed=1)
    reports.parts[0].values[3] = 7
    with pytest.raises(sl.InputError, match="the column 'a'.*1 of 20 are not"):
        reports.aggregate()


def test_whoever_sends_one_part_sends_exactly_one() -> None:
    reports = OnePart(SCHEMA, BUDGET).randomise(people(20), seed=1)
    senders = (reports.senders[0], reports.senders[1], reports.senders[2] * 0)
    with pytest.raises(sl.InputError, match="everyone must report exactly one of part a, part b, part c"):
        replace(reports, senders=senders).aggregate()


class Later(LinearCounts):
    """A second phase, learnt from a first that reports the attributes as one value."""

    kind = "later"

    @property
    def first_phase(self):
        return fingerprint(product(self.schema, self.nominal_budget))


class LaterNear(NearRecords):
    """A second phase whose reports are counted whole."""

    @property
    def first_phase(self):
        return fingerprint(spl(self.schema, self.nominal_budget))


def test_two_phases_that_do_not_fit_an_estimator_are_refused() -> None:
    phases = product(SCHEMA, BUDGET), Later(SCHEMA, BUDGET)
    reports = [phase.randomise(people(100), seed=1) for phase in phases]
    with pytest.raises(sl.InputError, match="first phase of 'later' must report every attribute by itself"):
        sl.estimate(reports)
    phases = spl(SCHEMA, BUDGET), LaterNear(SCHEMA, BUDGET)
    reports = [phase.randomise(people(100), seed=1) for phase in phases]
    assert sl.estimate(reports).people == 200
    with pytest.raises(sl.InputError, match="the estimator 'published' is Corr-RR's"):
        sl.estimate(reports, estimator="published")


class Silent(NearRecords):
    """Reports any record, whatever the true one."""

    @property
    def weights(self):
        return np.full((12, 12), -(-(1 << 32) // 12))


def test_frequencies_that_reports_do_not_determine_are_refused() -> None:
    reports = Silent(SCHEMA, BUDGET).randomise(people(100), seed=1)
    with pytest.raises(sl.InputError, match="reports of 'near' do not determine the frequencies"):
        sl.estimate(reports)
    with pytest.raises(sl.InputError, match="nobody reported a, b, c together"):
        sl.estimate_joint(reports, SCHEMA.names)


def test_the_joint_is_estimated_where_whole_reports_tell_it() -> None:
    """20,000 people at a large budget: each cell within 6 standard deviations of reports without noise."""
    records = people(20_000)
    joint = sl.estimate_joint(NearRecords(SCHEMA, 12.0).randomise(records, seed=1), SCHEMA.names)
    cells = np.bincount(np.ravel_multi_index(tuple(records.T), SCHEMA.sizes), minlength=12) / 20_000
    np.testing.assert_allclose(joint.reshape(-1), cells, atol=6 * 0.5 / np.sqrt(20_000))


def wide(attributes: int, base: type = LinearCounts, **members: object):
    """A protocol over many attributes of 4 values whose matrix must not be asked for."""

    def fails(_self):
        raise AssertionError

    schema = sl.Schema(tuple(sl.categorical(f"x{place}", "pqrs") for place in range(attributes)))
    return type("Wide", (base,), {"matrix": fails, **members})(schema, BUDGET)


@pytest.mark.parametrize("attributes", [12, 40])
def test_a_law_that_is_too_large_is_refused_before_it_is_begun(attributes: int) -> None:
    """A domain of 40 attributes has more cells than numpy can number, too."""
    protocol = wide(attributes, is_linear=False)
    reports = protocol.randomise(np.zeros((5, attributes), dtype=np.uint8), seed=1)
    even = dict.fromkeys(protocol.schema.names, np.full(4, 0.25))
    for ask in (
        lambda: record_budget(protocol),
        lambda: every_record(protocol.schema),
        lambda: protocol.determines_joint,
        lambda: protocol.factors(reports),
        lambda: protocol.columns_of(reports),
        reports.aggregate,
        lambda: sl.estimate(reports),
        lambda: predicted_variances(protocol, 100, even),
    ):
        with pytest.raises(sl.TooLargeError, match=rf"{4**attributes} x \d+ cells.* take fewer attributes"):
            ask()


@pytest.mark.parametrize("base", [LinearCounts, OneGroup])
def test_what_a_protocol_states_is_not_enumerated(base: type) -> None:
    protocol = wide(12, base)
    reports = protocol.randomise(np.zeros((500, 12), dtype=np.uint8), seed=1)
    for estimator in ("best", "inversion"):
        assert sl.estimate(reports.aggregate(), estimator=estimator).people == 500
    with pytest.raises(sl.TooLargeError, match="cells"):
        record_budget(protocol)


def test_reports_of_one_part_stand_side_by_side_in_a_law_that_may_be_written_out() -> None:
    """4^9 records and 9 parts of 4 codes are few cells too many; of 8 parts they are not."""
    with pytest.raises(sl.TooLargeError, match="262144 x 36 cells"):
        record_budget(wide(9, OnePart))
    assert record_budget(wide(8, OnePart, matrix=OnePart.matrix)).epsilon == pytest.approx(BUDGET)


def test_what_lacks_a_member_is_no_protocol() -> None:
    class Unfinished(NearRecords):
        from_file = None
        matrix = Protocol.matrix

    with pytest.raises(TypeError, match="abstract method"):
        Unfinished(SCHEMA, 1.0)
    with pytest.raises(sl.InputError, match="`plan` must be a `Plan`, a protocol or a `TwoPhase` design"):
        sl.collect(table(people(20)), object())


def test_names_kinds_and_options_are_checked(tmp_path) -> None:
    with pytest.raises(sl.InputError, match=r"`protocol` must be one of .*'spl'.*Did you mean 'smp'"):
        make_protocol("smpp", SCHEMA, 1.0)
    with pytest.raises(
        sl.InputError, match="`share` says nothing about the protocol 'spl'; it takes mechanism"
    ):
        make_protocol("spl", SCHEMA, 1.0, share=0.1)
    with pytest.raises(
        sl.InputError, match="`protocol` must be one of 'split', 'sample', 'sets', 'hidden', "
    ):
        protocol_class("spl")
    path = write_protocol(NearRecords(SCHEMA, 1.0), tmp_path / "near.json")
    path.write_text(path.read_text().replace('"epsilon"', '"budget"'))
    with pytest.raises(sl.InputError, match="it is no 'near' protocol: KeyError"):
        read_protocol(path)


def test_a_file_that_could_not_be_read_back_is_not_written(tmp_path) -> None:
    class Versioned(NearRecords):
        def to_file(self):
            return super().to_file() | {"version": 7}

    with pytest.raises(sl.InputError, match="'near' states 'version', a name that its file needs"):
        write_protocol(Versioned(SCHEMA, 1.0), tmp_path / "near.json")


@pytest.mark.parametrize("error", [IndexError, AttributeError, ZeroDivisionError])
def test_what_a_protocol_cannot_be_made_of_is_refused(error, monkeypatch, tmp_path) -> None:
    def fails(_data, _schema):
        raise error

    path = write_protocol(NearRecords(SCHEMA, 1.0), tmp_path / "near.json")
    monkeypatch.setattr(NearRecords, "from_file", fails)
    with pytest.raises(sl.InputError, match=f"it is no 'near' protocol: {error.__name__}"):
        read_protocol(path)


def test_every_kind_is_that_of_its_class() -> None:
    assert [protocol_class(kind).kind for kind in KINDS] == list(KINDS)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), "one"])
def test_a_budget_that_is_none_is_refused_whatever_the_protocol(epsilon: object) -> None:
    for name in PROTOCOLS:
        with pytest.raises(sl.InputError, match="`epsilon` must be"):
            make_protocol(name, SCHEMA, epsilon)


def test_the_command_line_offers_every_protocol(run) -> None:
    shown = " ".join(run("collect", "--help").out.split())
    registered = [name for name in PROTOCOLS if name not in OUTSIDE]
    assert all(f"'{name}'" in shown for name in registered)


def test_a_file_without_attributes_says_that_they_are_missing(tmp_path) -> None:
    path = tmp_path / "protocol.toml"
    path.write_text('version = 1\nprotocol = "split"\n')
    with pytest.raises(sl.InputError, match="attribute: Field required"):
        read_protocol(path)
