"""Report files, protocol files and phases: what is written is read back, and what is wrong is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.estimation.second_phase import dependence, learn_second_phase
from sidelight.protocols import product, read_protocol, rs_fd, rs_rfd, smp, spl, write_protocol
from sidelight.protocols.records import fingerprint
from sidelight.transport import collect_phase
from sidelight.transport.report_files import batch_to_arrow, from_arrow

SCHEMA = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "xyz"), sl.categorical("c", "pq")))
PRIORS = {"a": [0.7, 0.2, 0.1], "b": [0.2, 0.2, 0.6], "c": [0.35, 0.65]}
PROTOCOLS = {
    "spl": lambda: spl(SCHEMA, 1.0),
    "plan": lambda: spl(SCHEMA, 1.0, "oue"),
    "smp": lambda: smp(SCHEMA, 1.0, shares=(3, 2, 1)),
    "smp olh": lambda: smp(SCHEMA, 1.0, "olh"),
    "smp ss": lambda: smp(SCHEMA, 0.5, "sue"),
    "groups": lambda: product(SCHEMA, 0.5, [["a", "b"], ["c"]], "best"),
    "rs+fd": lambda: rs_fd(SCHEMA, 1.0),
    "rs+rfd": lambda: rs_rfd(SCHEMA, 1.0, PRIORS, "census of last year"),
}


@pytest.fixture
def records() -> np.ndarray:
    rng = np.random.default_rng(6)
    first = rng.integers(0, 3, 900)
    return np.stack([first, np.where(rng.random(900) < 0.8, first, 0), first % 2], axis=1).astype(np.uint8)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_reports_survive_a_file(name: str, records: np.ndarray, tmp_path: Path) -> None:
    collected = PROTOCOLS[name]().randomise(records, seed=2)
    path = sl.write_reports(collected, tmp_path / "reports.parquet")
    again = sl.read_reports(path)
    assert fingerprint(again.protocol) == fingerprint(collected.protocol)
    assert (again.people, again.is_simulation) == (900, True)
    for a, b in zip(sl.estimate(again), sl.estimate(collected), strict=True):
        assert a == b
    merged = again.aggregate() + collected.aggregate()
    assert merged.people == 1800


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_protocols_survive_a_file(name: str, suffix: str, tmp_path: Path) -> None:
    protocol = PROTOCOLS[name]()
    again = read_protocol(write_protocol(protocol, tmp_path / f"protocol.{suffix}"))
    assert fingerprint(again) == fingerprint(protocol)
    assert (again.epsilon, again.name, again.labels) == (protocol.epsilon, protocol.name, protocol.labels)


def rewritten(path: Path, change) -> Path:
    """The same file with its table and its head changed."""
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[b"sidelight"])
    table, head = change(table, head)
    pq.write_table(table.replace_schema_metadata({b"sidelight": json.dumps(head)}), path)
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, h: (t, h | {"version": 9}), "version 9; this Sidelight reads up to version 3"),
        (lambda t, h: (t, {k: v for k, v in h.items() if k != "version"}), "is no report file"),
        (lambda t, h: (t, h | {"extra": 1}), "extra"),
        (lambda t, h: (t, h | {"people": 7}), "has 900 reports, its metadata say 7"),
        (lambda t, h: (t, h | {"fingerprint": "0" * 24}), "was changed after the reports were made"),
        (lambda t, h: (t.drop_columns(["c"]), h), "its protocol reports a, b, c"),
        (lambda t, h: (t.rename_columns(["a", "b", "d"]), h), "its protocol reports a, b, c"),
        (lambda t, h: (t.set_column(2, "c", pa.array([0.5] * 900)), h), "holds double"),
        (
            lambda t, h: (t.set_column(2, "c", pa.array([None] * 900, pa.uint8())), h),
            "900 reports of 'c' are missing",
        ),
        (
            lambda t, h: (t.set_column(0, "a", pa.array([9] * 900, pa.uint8())), h),
            "codes from 0 to 2; 900 of 900",
        ),
        (lambda t, h: (t, h | {"protocol": h["protocol"] | {"unit": []}}), "at least one `unit`"),
    ],
)
def test_changed_files_are_refused(change, words: str, records: np.ndarray, tmp_path: Path) -> None:
    path = sl.write_reports(spl(SCHEMA, 1.0).randomise(records, seed=2), tmp_path / "reports.parquet")
    with pytest.raises(sl.InputError) as caught:
        sl.estimate(sl.read_reports(rewritten(path, change)))
    assert words in str(caught.value)


def test_a_batch_counts_once(records: np.ndarray, tmp_path: Path) -> None:
    protocol = spl(SCHEMA, 1.0)
    first = sl.write_reports(protocol.randomise(records, seed=2), tmp_path / "first.parquet", "monday")
    copy = sl.write_reports(sl.read_reports(first), tmp_path / "copy.parquet")
    second = sl.write_reports(protocol.randomise(records, seed=3), tmp_path / "second.parquet")
    read = [sl.read_reports(path) for path in (first, copy, second)]
    assert [reports.batch == "monday" for reports in read] == [True, True, False]
    with pytest.raises(sl.InputError, match="reports 1 and 2 of 3 are the same batch, 'monday'; name each"):
        sl.estimate(read)
    with pytest.raises(sl.InputError, match="reports 1 and 2 of 2 are the same batch"):
        _ = read[0] + read[1]
    assert sl.estimate(read[1:]).people == 1800
    assert sl.estimate([read[0][:400], read[0][400:]]).people == 900, "parts of a batch are no batch"


def test_reports_that_were_changed_after_they_were_sealed_are_refused(records, tmp_path: Path) -> None:
    path = sl.write_reports(spl(SCHEMA, 1.0).randomise(records, seed=2), tmp_path / "reports.parquet")
    table = pq.read_table(path)
    flipped = pa.array(2 - table.column("a").to_numpy())
    pq.write_table(table.set_column(0, "a", flipped).replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(sl.InputError, match=r"reports\.parquet: the reports are not those that were sealed"):
        sl.read_reports(path)


def test_files_that_are_no_reports_are_refused(records: np.ndarray, tmp_path: Path) -> None:
    whole = sl.write_reports(spl(SCHEMA, 1.0).randomise(records, seed=2), tmp_path / "reports.parquet")
    truncated = tmp_path / "truncated.parquet"
    truncated.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(sl.InputError, match="or it is truncated"):
        sl.read_reports(truncated)
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), plain)
    with pytest.raises(sl.InputError, match="name no protocol"):
        sl.read_reports(plain)
    with pytest.raises(sl.InputError, match="there is no file"):
        sl.read_reports(tmp_path / "none.parquet")
    with pytest.raises(sl.InputError, match="must end in .parquet"):
        sl.write_reports(spl(SCHEMA, 1.0).randomise(records, seed=2), tmp_path / "reports.csv")


def test_a_person_reports_one_unit_of_smp(records: np.ndarray, tmp_path: Path) -> None:
    path = sl.write_reports(smp(SCHEMA, 1.0).randomise(records, seed=2), tmp_path / "reports.parquet")

    def twice(table, head):
        return table.set_column(0, "a", pa.array([0] * 900, pa.uint8())), head

    with pytest.raises(sl.InputError, match="exactly one of a, b, c"):
        sl.read_reports(rewritten(path, twice))


def test_reports_of_two_plans_are_not_mixed(records: np.ndarray) -> None:
    first = spl(SCHEMA, 1.0).randomise(records, seed=1)
    other_budget = spl(SCHEMA, 1.1).randomise(records, seed=1)
    labels = sl.Schema((sl.categorical("a", "uvw"), *SCHEMA.attributes[1:]))
    other_schema = spl(labels, 1.0).randomise(records, seed=1)
    for other in (other_budget, other_schema, smp(SCHEMA, 1.0).randomise(records, seed=1)):
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            sl.estimate([first, other])
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            first + other
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            first.aggregate() + other.aggregate()
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            first.protocol.aggregate(other)
    assert sl.estimate([first, spl(SCHEMA, 1.0).randomise(records, seed=2)]).people == 1800


def test_the_very_same_reports_count_once(records: np.ndarray) -> None:
    reports = spl(SCHEMA, 1.0).randomise(records, seed=1)
    sums = reports.aggregate()
    for twice in ([reports, reports], [sums, sums], [reports[:10], sums, sums]):
        with pytest.raises(sl.InputError, match="are the very same; name each once"):
            sl.estimate(twice)
    with pytest.raises(sl.InputError, match="reports 1 and 2 of 2 are the very same"):
        _ = reports + reports


def test_nothing_is_estimated_from_no_reports(records: np.ndarray) -> None:
    empty = spl(SCHEMA, 1.0).randomise(records[:0], seed=1)
    for nothing in (empty, [], [empty, empty]):
        with pytest.raises(sl.InputError, match="there are no reports to estimate from"):
            sl.estimate(nothing)
    with pytest.raises(sl.InputError, match="nobody reported the attribute"):
        sl.estimate(smp(SCHEMA, 1.0).randomise(records[:1], seed=1))


@pytest.mark.parametrize(("method", "groups"), [("corr-rr", 1), ("cond-rr", 1), ("corr-rr", 2)])
def test_phases_are_files_and_resume_from_each(method: str, groups: int, records, tmp_path: Path) -> None:
    """Each step starts from the files alone and gives what one run in memory gives."""
    design = sl.protocols.TwoPhase(SCHEMA, 2.0, method, groups=groups, share=0.3)
    early = design.in_first(len(records))
    sl.write_reports(design.first.randomise(records[early], seed=5), tmp_path / "first.parquet")
    learnt = learn_second_phase(
        design, sl.read_reports(tmp_path / "first.parquet"), people=int((~early).sum())
    )
    learnt.write(tmp_path / "parameters.toml")
    published = sl.protocols.SecondPhase.read(tmp_path / "parameters.toml")
    assert published.design == design
    assert published.reports == int(early.sum())
    assert fingerprint(published.second) == fingerprint(learnt.second)
    sl.write_reports(published.second.randomise(records[~early], seed=6), tmp_path / "second.parquet")
    files = [sl.read_reports(tmp_path / f"{name}.parquet") for name in ("first", "second")]
    resumed = sl.estimate(files)
    memory = sl.estimate(
        [
            design.first.randomise(records[early], seed=5),
            learnt.second.randomise(records[~early], seed=6),
        ]
    )
    assert list(resumed) == list(memory)
    assert resumed.people == 900


def test_the_second_phase_without_the_first_is_refused(records: np.ndarray) -> None:
    design = sl.protocols.TwoPhase(SCHEMA, 2.0)
    first = design.first.randomise(records[:300], seed=1)
    second = learn_second_phase(design, first).second.randomise(records[300:], seed=1)
    with pytest.raises(
        sl.InputError, match="reports of the second phase of 'corr-rr'; add those of the first"
    ):
        sl.estimate(second)
    stranger = sl.protocols.TwoPhase(SCHEMA, 2.5).first.randomise(records[:300], seed=1)
    with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
        sl.estimate([stranger, second])
    with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
        learn_second_phase(design, stranger)
    with pytest.raises(sl.InputError, match="no reports to learn from"):
        learn_second_phase(design, [])


def test_rounds_learn_from_all_first_phases_and_are_estimated_together(records: np.ndarray) -> None:
    design = sl.protocols.TwoPhase(SCHEMA, 2.0, share=0.3)
    firsts = [design.first.randomise(records[i * 150 : (i + 1) * 150], seed=i) for i in range(2)]
    one = learn_second_phase(design, firsts[0])
    two = learn_second_phase(design, firsts, round_number=2)
    assert (one.round_number, two.round_number, two.reports) == (1, 2, 300)
    seconds = [
        one.second.randomise(records[300:600], seed=7),
        two.second.randomise(records[600:], seed=8),
    ]
    assert sl.estimate([*firsts, *seconds]).people == 900


def test_parameters_are_read_strictly(records: np.ndarray, tmp_path: Path) -> None:
    design = sl.protocols.TwoPhase(SCHEMA, 2.0)
    path = learn_second_phase(design, design.first.randomise(records, seed=1)).write(
        tmp_path / "parameters.json"
    )
    data = json.loads(path.read_text())
    for change, words in (
        ({"version": 5}, "version 5"),
        ({"round": "one"}, "round"),
        ({"design": data["design"] | {"share": 2.0}}, "`share` must be"),
        ({"second": data["second"] | {"protocol": "magic"}}, "second: `protocol` must be"),
        ({"second": data["second"] | {"fake": data["second"]["fake"][:1]}}, "there is no law"),
    ):
        path.write_text(json.dumps(data | change))
        with pytest.raises(sl.InputError) as caught:
            sl.protocols.SecondPhase.read(path)
        assert words in str(caught.value)
        assert "parameters.json" in str(caught.value)
    path.write_text('{"version": 1, "version": 1}')
    with pytest.raises(sl.InputError, match="given twice"):
        sl.protocols.SecondPhase.read(path)
    with pytest.raises(sl.InputError, match="cannot be read"):
        sl.protocols.SecondPhase.read(tmp_path / "none.toml")
    with pytest.raises(sl.InputError, match="must end in .toml or .json"):
        sl.protocols.SecondPhase.read(tmp_path / "none.yaml")


def test_groups_join_what_depends_on_each_other() -> None:
    schema = sl.Schema(tuple(sl.categorical(name, "uv") for name in "abcd"))
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 6000), rng.integers(0, 2, 6000)
    records = np.stack([a, b, a, b], axis=1).astype(np.uint8)
    design = sl.protocols.TwoPhase(schema, 12.0, groups=2)
    learnt = learn_second_phase(design, design.first.randomise(records, seed=1))
    assert set(learnt.second.partition) == {("a", "c"), ("b", "d")}
    assert learnt.second.epsilon == pytest.approx(12.0, abs=1e-6)
    assert dependence(np.full((2, 2), 0.25)) == 0


def test_a_table_is_collected_through_a_plan_a_protocol_and_two_phases() -> None:
    table = sl.example("titanic")
    plan = sl.Plan.uniform(table.schema, "oue", 1.0)
    reports = sl.collect(table, plan, seed=1)
    assert reports.people == table.rows
    assert reports.protocol.epsilon == pytest.approx(len(table.schema), abs=1e-6)
    found = sl.estimate(reports)
    assert found.to_arrow().column_names == [
        "attribute",
        "value",
        "frequency",
        "standard_error",
        "lower",
        "upper",
    ]
    phases = sl.collect(table, sl.protocols.TwoPhase(table.schema, 4.0), seed=1)
    assert sum(part.people for part in phases) == table.rows
    assert sl.estimate(phases).people == table.rows
    again = collect_phase(table, sl.protocols.TwoPhase(table.schema, 4.0), seed=1)
    assert again.people == phases[0].people
    other = sl.Schema((sl.categorical("sex", "uv"),))
    with pytest.raises(sl.InputError, match="the table codes 'sex' as"):
        sl.collect(table, smp(other, 1.0), seed=1)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_columns_that_start_inside_a_buffer_are_read_where_they_lie(name: str, records: np.ndarray) -> None:
    """A slice keeps the buffers of the whole, and its validity bits begin inside a byte."""
    made = PROTOCOLS[name]().randomise(records[:43], seed=1)
    table = batch_to_arrow(made)
    twice = pa.concat_tables([table, table]).combine_chunks()
    for part in (twice.slice(43), twice.slice(0, 43), pa.concat_tables([table.slice(0, 5), table.slice(5)])):
        read = from_arrow(part)
        for given, again in zip(made.parts, read.parts, strict=True):
            assert np.array_equal(given.values, again.values)
        for given, again in zip(made.senders, read.senders, strict=True):
            assert (given is None and again is None) or np.array_equal(given, again)
