"""Streaming collection: batches are counted once, whatever happens; what is wrong is refused by name."""

from __future__ import annotations

import json
import os
import random
import shutil
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.protocols import product, rs_fd, rs_rfd, smp, spl
from sidelight.transport import (
    Aggregator,
    Follower,
    Pace,
    batch_to_arrow,
    read_checkpoint,
    write_batches,
    write_checkpoint,
)
from sidelight.transport import aggregator as streaming
from sidelight.transport import folder as following
from sidelight.transport.checkpoint import signature
from sidelight.transport.folder import Scan
from sidelight.transport.report_files import stamp
from streamed import SCHEMA, files, folder_fixture, records, reports_fixture, same_sums

__all__ = ["folder_fixture", "reports_fixture"]

PRIORS = {"a": [0.7, 0.2, 0.1], "b": [0.2, 0.2, 0.6], "c": [0.35, 0.65]}
MECHANISMS = ("grr", "sue", "oue", "olh", "blh", "ss", "she", "the", "hadamard", "exp", "rappor", "identity")
PROTOCOLS = {
    **{f"smp {name}": lambda name=name: smp(SCHEMA, 1.0, name) for name in MECHANISMS},
    "spl grr": lambda: spl(SCHEMA, 1.0),
    "spl olh": lambda: spl(SCHEMA, 3.0, "olh"),
    "product": lambda: product(SCHEMA, 1.0),
    "groups": lambda: product(SCHEMA, 0.5, [["a", "b"], ["c"]], "best"),
    "rs+fd": lambda: rs_fd(SCHEMA, 1.0),
    "rs+rfd": lambda: rs_rfd(SCHEMA, 1.0, PRIORS, "census of last year"),
}
EVERY_BATCH = Pace(batches=1, seconds=0.0, share=1.0)


def same_estimates(first, second) -> bool:
    """Whether two estimates are the same to the last bit, with all that is said about them."""
    said = [
        (list(found), found.protocol, found.people, found.epsilon, found.is_simulation, found.expected_error)
        for found in (first, second)
    ]
    return said[0] == said[1]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_estimates_are_exactly_those_of_all_files_at_once(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "ROWS", 37)
    collected = PROTOCOLS[name]().randomise(records(500), seed=2)
    paths = write_batches(collected, tmp_path / "in", 4)
    with Follower(tmp_path / "in") as follower:
        assert len(follower.scan().taken) == 4
    at_once = sl.estimate([sl.read_reports(path) for path in reversed(paths)])
    read, _ = read_checkpoint(tmp_path / "in" / "checkpoint.json")
    for aggregator in (follower.aggregator, read):
        assert same_sums(aggregator, collected)
        assert same_estimates(aggregator.estimate(), at_once)
        settings = {"estimator": "inversion", "about": "population"}
        assert same_estimates(aggregator.estimate(**settings), sl.estimate(collected, **settings))


@pytest.mark.parametrize("method", ["corr-rr", "cond-rr"])
def test_both_phases_come_in_any_order(method: str, tmp_path: Path) -> None:
    design = sl.protocols.TwoPhase(SCHEMA, 2.0, method, share=0.3)
    first = design.first.randomise(records(600), seed=1)
    second = learn_second_phase(design, first).second.randomise(records(900), seed=2)
    write_batches(second, tmp_path / "in", 3)
    with Follower(tmp_path / "in", pace=EVERY_BATCH) as follower:
        follower.scan()
        with pytest.raises(sl.InputError, match="add those of the first"):
            follower.aggregator.estimate()
        write_batches(first, tmp_path / "in", 2, append=True)
        foreign = sl.protocols.TwoPhase(SCHEMA, 2.5).first.randomise(records(50), seed=1)
        sl.write_reports(foreign, tmp_path / "in" / "foreign.parquet")
        scan = follower.scan()
        assert (len(scan.taken), [name for name, _ in scan.refused]) == (2, ["foreign.parquet"])
    read, _ = read_checkpoint(tmp_path / "in" / "checkpoint.json")
    assert same_sums(read, first, second)
    assert same_estimates(read.estimate(), sl.estimate([first, second]))
    with pytest.raises(sl.InputError, match="'em' needs the reports themselves"):
        read.estimate(estimator="em")


def test_arrow_batches_are_taken_once(reports) -> None:
    aggregator = Aggregator()
    table = batch_to_arrow(reports[:300], "device-7")
    assert aggregator.take(table)
    assert not aggregator.take(table)
    assert aggregator.take(batch_to_arrow(reports[300:]).combine_chunks().to_batches()[0])
    assert next(iter(aggregator.batches)) == "device-7"
    assert same_sums(aggregator, reports)
    assert aggregator.is_simulation
    with pytest.raises(sl.InputError, match="id 'device-7' of a batch that was taken already"):
        aggregator.take(batch_to_arrow(reports[:200], "device-7"))
    with pytest.raises(sl.InputError, match="a file, an Arrow table or a record batch"):
        aggregator.take([1, 2])
    for bad in ("", "a b", "../x", "x" * 65, 7):
        with pytest.raises(sl.InputError, match="`batch` must be up to 64"):
            batch_to_arrow(reports, bad)
    assert same_sums(aggregator, reports)


@pytest.mark.parametrize("seed", [None, 3])
def test_every_way_of_reports_keeps_the_mark_of_a_simulation(seed: int | None, tmp_path: Path) -> None:
    collected = smp(SCHEMA, 1.0).randomise(records(90), seed=seed)
    path = sl.write_reports(collected, tmp_path / "reports.parquet")
    aggregator, real = Aggregator(), Aggregator()
    aggregator.take(path)
    real.take(batch_to_arrow(smp(SCHEMA, 1.0).randomise(records(30))))
    state = write_checkpoint(aggregator, tmp_path / "state.json")
    ways = [collected, sl.read_reports(path), collected[:5], collected + real_reports(), aggregator.sums[0]]
    ways += [aggregator, read_checkpoint(state)[0], read_checkpoint(state)[0].sums[0]]
    ways += [aggregator + real, real + aggregator, (real + aggregator).sums[0], aggregator.estimate()]
    ways += [sl.estimate(aggregator.sums), sl.estimate([collected, real.sums[0]])]
    assert [way.is_simulation for way in ways] == [seed is not None] * len(ways)
    assert not real.is_simulation


def real_reports():
    return smp(SCHEMA, 1.0).randomise(records(10))


def test_equal_reports_under_two_ids_are_two_batches() -> None:
    one = smp(SCHEMA, 1.0).randomise(records(1), seed=2)
    aggregator = Aggregator()
    for name in ("a", "b"):
        assert aggregator.take(batch_to_arrow(one, name))
    assert aggregator.people == 2


def test_a_seal_does_not_depend_on_the_pieces(reports) -> None:
    whole = stamp(reports, "x")
    sealer = streaming.Sealer()
    for start in range(0, 900, 70):
        sealer.add(reports[start : start + 70])
    made_by = streaming.fingerprint(reports.protocol)
    assert sealer.seal("x", made_by, is_simulation=True) == whole.seal
    assert sealer.seal("y", made_by, is_simulation=True) != whole.seal
    assert stamp(reports[:899], "x").seal != whole.seal
    assert stamp(reports).id != stamp(reports).id


def test_a_forged_report_decides_no_estimate(tmp_path: Path) -> None:
    """One histogram among 10,000 whose number no noise makes: refused from memory, a file and a stream."""
    collected = spl(SCHEMA, 3.0, "she").randomise(records(10_000), seed=1)
    collected.parts[1].values[4321, 0] = 8.5e9
    path = sl.write_reports(collected, tmp_path / "reports.parquet")
    words = r"the column 'b': .*; 1 of 10000 are not \(row 4321, counted from 0\)"
    for use in (sl.estimate, lambda _: sl.estimate(sl.read_reports(path)), lambda _: Aggregator().take(path)):
        with pytest.raises(sl.InputError, match=words):
            use(collected)


def test_a_refusal_says_where_in_a_long_file_to_look(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "ROWS", 100)
    collected = spl(SCHEMA, 3.0, "she").randomise(records(250), seed=1)
    collected.parts[1].values[207, 0] = 8.5e9
    with pytest.raises(sl.InputError, match=r"from row 200 on: .*; 1 of 50 are not \(row 7, counted"):
        Aggregator().take(sl.write_reports(collected, tmp_path / "reports.parquet"))


def test_copies_count_once_and_temporary_names_never(folder: Path, reports) -> None:
    shutil.copy(files(folder)[0], folder / "another name.parquet")
    for name in (".hidden.parquet", "_hidden.parquet", "x.parquet.part", "x.tmp"):
        shutil.copy(files(folder)[1], folder / name)
    (folder / "sub.parquet").mkdir()
    with Follower(folder) as follower:
        scan = follower.scan()
        assert (len(scan.taken), scan.repeated, scan.refused) == (9, ("another name.parquet",), ())
        assert not follower.scan().is_news
    with Follower(folder) as follower:
        assert not follower.scan().is_news
        assert same_sums(follower.aggregator, reports)


def rewritten(path: Path, change) -> None:
    """Write a report file again with its table and its metadata changed."""
    table = pq.read_table(path)
    table, metadata = change(table, dict(table.schema.metadata))
    pq.write_table(table.replace_schema_metadata(metadata), path)


def without(key: bytes):
    return lambda table, metadata: (table, {k: v for k, v in metadata.items() if k != key})


def other_id(table, metadata):
    data = json.loads(metadata[b"sidelight.batch"]) | {"id": "other"}
    return table, metadata | {b"sidelight.batch": json.dumps(data).encode()}


def other_value(table, metadata):
    column = table.column("c").to_pylist()
    place = next(i for i, value in enumerate(column) if value is not None)
    column[place] = 1 - column[place]
    return table.set_column(2, "c", pa.array(column, table.schema.field("c").type)), metadata


def bad_code(table, metadata):
    column = [None if value is None else 7 for value in table.column("c").to_pylist()]
    return table.set_column(2, "c", pa.array(column, table.schema.field("c").type)), metadata


SPOILT = {
    "empty": (lambda path: path.write_bytes(b""), "is not a Parquet file"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is not a Parquet file"),
    "noise": (lambda path: path.write_bytes(bytes(range(256)) * 9), "is not a Parquet file"),
    "no reports": (lambda path: pq.write_table(pa.table({"a": [1]}), path), "name no protocol"),
    "no id": (lambda path: rewritten(path, without(b"sidelight.batch")), "carries no batch id"),
    "other id": (lambda path: rewritten(path, other_id), "not those that were sealed"),
    "other value": (lambda path: rewritten(path, other_value), "not those that were sealed"),
    "bad code": (lambda path: rewritten(path, bad_code), "codes from 0 to 1"),
    "bad stamp": (
        lambda path: rewritten(path, lambda t, m: (t, m | {b"sidelight.batch": b'{"id": 3, "seal": ""}'})),
        "the batch id",
    ),
    "rows lost": (lambda path: rewritten(path, lambda t, m: (t.slice(1), m)), "its metadata say 100"),
    "other protocol": (
        lambda path: sl.write_reports(smp(SCHEMA, 1.1).randomise(records(20), seed=1), path, overwrite=True),
        "holds reports of 'smp'",
    ),
    "other schema": (
        lambda path: sl.write_reports(
            smp(sl.Schema((sl.categorical("a", "xy"),)), 1.0).randomise(records(20)[:, 2:], seed=1),
            path,
            overwrite=True,
        ),
        "holds reports of 'smp'",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_wrong_is_refused_by_name_and_the_rest_is_kept(name: str, folder: Path, reports) -> None:
    spoil, words = SPOILT[name]
    path = files(folder)[4]
    whole = path.read_bytes()
    spoil(path)
    with Follower(folder) as follower:
        scan = follower.scan()
        assert [refused for refused, _ in scan.refused] == [path.name]
        assert words in scan.refused[0][1]
        assert path.name in scan.refused[0][1]
        assert follower.aggregator.people == 800
        assert not follower.scan().is_news
    assert read_checkpoint(folder / "checkpoint.json")[1][path.name].refused == scan.refused[0][1]
    with Follower(folder) as follower:
        assert follower.scan() == Scan((), (), scan.refused), "a new start tries it again"
        assert list(follower.refused) == [path.name]
        path.write_bytes(whole)
        assert follower.scan().taken == (path.name,)
        assert follower.refused == {}
        assert same_sums(follower.aggregator, reports)


def test_any_damaged_byte_is_refused_or_harmless(folder: Path, reports, tmp_path: Path) -> None:
    """Every file with one byte changed is refused, or holds the very same reports under the same id."""
    whole = files(folder)[0].read_bytes()
    original = Aggregator()
    original.take(files(folder)[0])
    rng = random.Random(3)
    refused: list[str] = []
    for _ in range(300):
        place = rng.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.randrange(8)
        path = tmp_path / "damaged.parquet"
        path.write_bytes(changed)
        aggregator = Aggregator()
        try:
            aggregator.take(path)
        except sl.InputError as error:
            refused.append(str(error))
        assert aggregator.batches in ({}, original.batches)
        assert same_sums(aggregator, *([reports[:100]] if aggregator.batches else []))
    assert len(refused) > 100
    assert all("damaged.parquet" in reason for reason in refused)


def test_a_name_that_gets_another_batch_is_taken_again(folder: Path, reports) -> None:
    with Follower(folder) as follower:
        follower.scan()
        more = smp(SCHEMA, 1.0).randomise(records(70, 1), seed=9)
        sl.write_reports(more, files(folder)[0], overwrite=True)
        assert follower.scan().taken == (files(folder)[0].name,)
        assert same_sums(follower.aggregator, reports + more)


def denied(*_: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_file_that_vanishes_or_cannot_be_read(folder: Path, monkeypatch) -> None:
    with Follower(folder) as follower:
        names = follower.new_names()
        gone = files(folder)[0]
        content = gone.read_bytes()
        gone.unlink()
        monkeypatch.setattr(follower, "new_names", lambda: names)
        assert len(follower.scan().taken) == 8
        monkeypatch.undo()
        files(folder)[0].unlink()
        assert not follower.scan().is_news
        assert follower.aggregator.people == 800
        gone.write_bytes(content)
        monkeypatch.setattr(Path, "open", denied)
        assert "Permission denied" in follower.scan().refused[0][1]
        monkeypatch.undo()


def test_what_cannot_be_opened_is_tried_at_every_look(folder: Path, reports, monkeypatch) -> None:
    with Follower(folder) as follower:
        monkeypatch.setattr(Path, "open", denied)
        assert len(follower.scan().refused) == 9
        assert not follower.scan().is_news, "told once"
        monkeypatch.undo()
        assert len(follower.scan().taken) == 9, "though no file has changed"
        assert same_sums(follower.aggregator, reports)


def test_links_that_lead_nowhere_are_refused_by_name(folder: Path, reports, tmp_path: Path) -> None:
    (folder / "loop.parquet").symlink_to(folder / "loop.parquet")
    (folder / "link.parquet").symlink_to(tmp_path / "later.parquet")
    (folder / "sub.parquet").symlink_to(tmp_path)
    with Follower(folder) as follower:
        scan = follower.scan()
        assert (len(scan.taken), [name for name, _ in scan.refused]) == (9, ["link.parquet", "loop.parquet"])
        more = smp(SCHEMA, 1.0).randomise(records(70, 1), seed=9)
        sl.write_reports(more, tmp_path / "later.parquet")
        assert follower.scan().taken == ("link.parquet",)
        assert same_sums(follower.aggregator, reports + more)


@pytest.mark.parametrize("when", [4e9, 1.0])
def test_a_file_is_looked_at_again_whatever_time_its_sender_sets(folder: Path, when: float) -> None:
    path = files(folder)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    os.utime(path, (when, when))
    with Follower(folder) as follower:
        assert len(follower.scan().refused) == 1
        with path.open("r+b") as handle:
            handle.write(whole)
        os.utime(path, (when, when))
        assert follower.scan().taken == (path.name,)


def test_a_file_that_changes_within_one_tick_of_the_clock_is_looked_at_again(
    folder: Path, monkeypatch
) -> None:
    path = files(folder)[0]
    changed = signature(path.stat())[1]
    monkeypatch.setattr(following.time, "time_ns", lambda: changed + 1_000_000)
    with Follower(folder) as follower:
        follower.scan()
        assert path.name in follower.new_names()
        monkeypatch.setattr(following.time, "time_ns", lambda: changed + 10**12)
        assert not follower.scan().is_news
        assert follower.new_names() == []


def test_a_file_that_was_only_touched_is_no_news(folder: Path) -> None:
    with Follower(folder) as follower:
        follower.scan()
        os.utime(files(folder)[0], (5, 5))
        assert not follower.scan().is_news


def test_a_file_cannot_fill_the_checkpoint_with_what_it_says(folder: Path) -> None:
    long = json.dumps({"id": "x" * 100_000, "seal": ""}).encode()
    rewritten(files(folder)[0], lambda table, metadata: (table, metadata | {b"sidelight.batch": long}))
    with Follower(folder) as follower:
        assert len(follower.scan().refused[0][1]) < 600
    assert follower.path.stat().st_size < 10_000


def test_a_full_disk_is_told_in_one_line(reports, tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(sl.InputError, match="x.parquet cannot be written: No space left on device"):
        sl.write_reports(reports, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text_are_kept(folder: Path) -> None:
    shutil.copy(files(folder)[0], os.fsencode(folder) + b"/\xff\x1b.parquet")
    with Follower(folder) as follower:
        assert len(follower.scan().repeated) == 1
    with Follower(folder) as follower:
        assert not follower.scan().is_news


def test_only_expected_protocols_are_taken(folder: Path, reports) -> None:
    wanted = smp(SCHEMA, 1.1)
    with Follower(folder, expected=[wanted]) as follower:
        assert len(follower.scan().refused) == 9
        sl.write_reports(wanted.randomise(records(20), seed=1), folder / "wanted.parquet")
        assert follower.scan().taken == ("wanted.parquet",)
    with pytest.raises(sl.InputError, match=r"checkpoint.json: .* holds reports of 'smp'.*takes 'smp'"):
        read_checkpoint(folder / "checkpoint.json", [reports.protocol])


def test_two_aggregators_are_merged_unless_they_share_batches(folder: Path, reports) -> None:
    first, second, third = Aggregator(), Aggregator(), Aggregator()
    for number, path in enumerate(files(folder)):
        (first if number < 5 else second).take(path)
    whole = first + second
    assert same_sums(whole, reports)
    assert len(whole.batches) == 9
    assert (first.people, second.people) == (500, 400)
    third.take(files(folder)[4])
    with pytest.raises(sl.InputError, match=f"took the batches {next(iter(third.batches))}; merged"):
        _ = first + third
    foreign = Aggregator()
    foreign.take(batch_to_arrow(smp(SCHEMA, 1.1).randomise(records(20), seed=1)))
    with pytest.raises(sl.InputError, match="the other aggregator holds reports of 'smp'"):
        _ = first + foreign
    assert same_sums(Aggregator() + whole, reports)
    merged = Aggregator() + Aggregator([reports.protocol])
    with pytest.raises(sl.InputError, match="this collection takes 'smp'"):
        merged.take(batch_to_arrow(smp(SCHEMA, 1.1).randomise(records(20), seed=1)))


def test_memory_does_not_grow_with_the_reports(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "ROWS", 1000)
    arrow: list[int] = []
    add = streaming.Sealer.add

    def measured(self, collected) -> None:
        arrow.append(pa.total_allocated_bytes())
        add(self, collected)

    monkeypatch.setattr(streaming.Sealer, "add", measured)
    peaks = {}
    for people in (4000, 80_000):
        reports = smp(SCHEMA, 1.0, "oue").randomise(records(people), seed=1)
        write_batches(reports, tmp_path / str(people), 2)
        with Follower(tmp_path / str(people)) as follower:
            arrow.clear()
            tracemalloc.start()
            follower.scan()
            peaks[people] = tracemalloc.get_traced_memory()[1], max(arrow) - min(arrow)
            tracemalloc.stop()
        assert follower.aggregator.people == people
    for small, large in zip(peaks[4000], peaks[80_000], strict=True):
        assert large < small + 100_000, "twenty times the reports, a few pages more"


def test_an_empty_batch_is_a_batch(reports, tmp_path: Path) -> None:
    path = sl.write_reports(reports[:0], tmp_path / "nobody.parquet")
    aggregator = Aggregator()
    assert aggregator.take(path)
    assert (aggregator.people, len(aggregator.batches)) == (0, 1)
    with pytest.raises(sl.InputError, match="there are no reports to estimate from"):
        aggregator.estimate()
    with pytest.raises(sl.InputError, match="`batches` must be"):
        write_batches(reports, tmp_path / "in", 901)
    with pytest.raises(sl.InputError, match="cannot be made"):
        write_batches(reports, tmp_path / "none" / "in", 2)
