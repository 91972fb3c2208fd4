"""Panels: what each round sends, what is remembered, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.foundation.files import REPORTS_KEY, locked
from sidelight.mechanisms import create
from sidelight.mechanisms.longitudinal import (
    Device,
    KeyedMemory,
    crowd_memos,
    memo_mechanism,
    recalled_of_all,
)
from sidelight.protocols import Panel, PanelMemory
from sidelight.transport.panel_collection import panel_reports
from sidelight.transport.report_files import to_arrow

COLOUR = sl.categorical("colour", ["red", "green", "blue", "grey"])
SMOKES = sl.categorical("smokes", ["no", "yes"])
NAMES = [f"p{i}" for i in range(120)]
KEPT = ("grr", "sue", "oue", "olh", "l-grr", "l-sue", "l-osue", "l-oue", "loloha", "dbitflip", "rappor")


def plan(mechanism: str = "l-grr", times: int = 4, **changes: object) -> sl.Plan:
    return sl.Plan((
        sl.Release(COLOUR, mechanism, 1.0, times=times, memory="kept", **changes),  # type: ignore[arg-type]
        sl.Release(SMOKES, "grr", 0.5, times=times),
    ))  # fmt: skip


def people(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, 4, 120), rng.integers(0, 2, 120)]).astype(np.uint16)


def sent(reports: sl.RecordReports, part: int = 0) -> tuple[bytes, ...]:
    """Each person's report of a part, as bytes."""
    chosen = reports.parts[part]
    seeds = [b""] * len(chosen) if chosen.seeds is None else [seed.tobytes() for seed in chosen.seeds]
    return tuple(row.tobytes() + seed for row, seed in zip(chosen.values, seeds, strict=True))


@pytest.mark.parametrize("name", KEPT)
def test_a_crowds_memos_are_those_of_its_devices(name: str) -> None:
    mechanism, rng = create(name, 4, 1.0), np.random.default_rng(1)
    secrets, codes = [rng.bytes(32) for _ in range(30)], rng.integers(0, 4, 30).astype(np.uint16)
    ours = crowd_memos(mechanism, COLOUR, secrets, "3", codes)
    memories = [KeyedMemory(secret) for secret in secrets]
    theirs = recalled_of_all(memo_mechanism(mechanism), COLOUR, memories, "3", codes)
    assert np.array_equal(ours.values, theirs.values)
    assert (ours.seeds is None) == (theirs.seeds is None)
    assert ours.seeds is None or np.array_equal(ours.seeds, theirs.seeds)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "dbitflip"])
def test_a_response_that_is_sent_again_is_the_same_bytes_whatever_row_the_person_is_in(name: str) -> None:
    panel, records = Panel(plan(name)), people()
    memory = PanelMemory.new(panel, seed=1)
    first = panel_reports(panel, 1, records, NAMES, memory, seed=1)
    order = np.random.default_rng(3).permutation(120)[:80]
    second = panel_reports(panel, 2, records[order], [NAMES[i] for i in order], memory, seed=1)
    assert sent(second) == tuple(sent(first)[i] for i in order)
    assert sent(first, 1) != sent(second, 1)  # fresh noise of the other attribute
    assert second.round is not None
    assert second.round.stayed == [80]


def test_memos_are_those_that_each_persons_own_device_would_make() -> None:
    panel, records = Panel(plan("grr")), people()
    memory = PanelMemory.new(panel, seed=1)
    reports = panel_reports(panel, 1, records, NAMES, memory, seed=1)
    for i, secret in enumerate(memory.secrets(NAMES)[:20]):
        device = Device(create("grr", 4, 1.0), COLOUR, KeyedMemory(secret))
        assert device.report(int(records[i, 0]), 0).values[0] == reports.parts[0].values[i]


def test_a_round_that_is_made_again_from_the_same_memory_and_seed_is_the_same_bytes() -> None:
    panel = Panel(plan())
    memory = PanelMemory.new(panel, seed=4)
    panel_reports(panel, 1, people(), NAMES, memory, seed=4)
    twin = copy.deepcopy(memory)
    tables = [to_arrow(panel_reports(panel, 2, people(), NAMES, one, seed=4)) for one in (memory, twin)]
    assert tables[0].equals(tables[1])
    assert tables[0].schema.metadata == tables[1].schema.metadata


def test_a_new_epoch_has_new_responses_and_takes_new_values() -> None:
    panel = Panel(plan("grr"), epoch=2)
    memory, records = PanelMemory.new(panel, seed=1), people()
    changed = ((records + np.array([1, 0])) % np.array([4, 2])).astype(np.uint16)
    made = [panel_reports(panel, t, records if t == 1 else changed, NAMES, memory, seed=1) for t in (1, 2, 3)]
    assert sent(made[0]) == sent(made[1])  # the value is frozen
    assert sent(made[0]) != sent(made[2])
    fresh = PanelMemory.new(panel, seed=1)
    again = panel_reports(panel, 3, changed, NAMES, fresh, seed=1)
    assert sent(again) == sent(made[2])  # nothing of the first epoch is left in it


def test_changes_are_followed_where_that_is_asked_for() -> None:
    panel = Panel(plan("grr"), follow_changes=True)
    memory, records = PanelMemory.new(panel, seed=1), people()
    changed = records.copy()
    changed[:60, 0] = (changed[:60, 0] + 1) % 4
    first, second, third = (
        panel_reports(panel, t, given, NAMES, memory, seed=1)
        for t, given in ((1, records), (2, changed), (3, records))
    )
    assert sent(first)[60:] == sent(second)[60:]
    assert sent(first)[:60] != sent(second)[:60]
    assert sent(first) == sent(third)  # the old value has its old response
    assert panel.spent == math.inf


def test_people_are_divided_evenly_and_everyone_reports_once() -> None:
    """20 of 4,000 is five standard deviations of a round's share: false alarms below 10^-6."""
    panel = Panel(sl.Plan((sl.Release(SMOKES, "grr", 1.0, times=5),)), division="people")
    memory = PanelMemory.new(panel, seed=2)
    names = [f"n{i}" for i in range(4000)]
    records = np.zeros((4000, 1), dtype=np.uint16)
    rounds = [panel_reports(panel, t, records, names, memory, seed=2) for t in range(1, 6)]
    assert sum(item.people for item in rounds) == 4000
    assert all(abs(item.people - 800) < 5 * math.sqrt(640) for item in rounds)
    assert [item.round.stayed for item in rounds if item.round] == [[0] * t for t in range(5)]
    assert panel.sent_plan()["smokes"].times == 1
    assert panel.spent == pytest.approx(1.0, abs=1e-9)


def test_a_divided_budget_is_never_exceeded() -> None:
    panel = Panel(sl.Plan((sl.Release(SMOKES, "grr", 1.0, times=7),)), division="budget")
    assert panel.protocol(3).epsilon <= 1 / 7
    assert panel.spent <= 1.0
    reports = panel_reports(panel, 3, people()[:, 1:], seed=1)
    assert reports.round is not None
    assert reports.round.stayed is None
    assert reports.round.division == "budget"


def test_what_all_rounds_spend() -> None:
    oracle = create("l-grr", 4, 1.0)
    whole, epochs = Panel(plan(times=5)), Panel(plan(times=5), epoch=2)
    fresh = 5 * create("grr", 2, 0.5).epsilon
    assert whole.spent == pytest.approx(oracle.budget_of(5) + fresh)
    assert epochs.spent == pytest.approx(2 * oracle.budget_of(2) + oracle.budget_of(1) + fresh)
    followed = Panel(plan(times=5), follow_changes=True)
    assert followed.spent == pytest.approx(5 * oracle.epsilon_instant + fresh)


@pytest.mark.parametrize("name", KEPT[:-1])
@pytest.mark.parametrize("epoch", [1, 2, 4, 9])
def test_the_plan_to_be_audited_says_no_less_than_all_epochs_send(name: str, epoch: int) -> None:
    """A response for each epoch: audited as one for all rounds, the panel would seem to leak less."""
    panel = Panel(sl.Plan((sl.Release(COLOUR, name, 2.0, times=4, memory="kept"),)), epoch=epoch)
    (sent,) = panel.sent_plan().releases
    assert sent.spent >= panel.spent - 1e-12
    assert sent.channel().epsilon >= panel.spent - 1e-9
    if epoch < 4:
        kept = panel.plan["colour"].randomiser()
        assert memo_mechanism(sent.randomiser()).identity == memo_mechanism(kept).identity
        assert sent.times == -(-4 // epoch)


def test_epochs_that_no_plan_can_name_are_not_audited_as_if_there_were_none() -> None:
    panel = Panel(sl.Plan((sl.Release(COLOUR, "rappor", 2.0, times=4, memory="kept"),)), epoch=2)
    assert panel.protocol(1).labels == ("colour",)
    with pytest.raises(sl.InputError, match="its epochs have no plan to be audited"):
        panel.sent_plan()


def test_an_attribute_is_asked_in_as_many_rounds_as_the_plan_says() -> None:
    mixed = sl.Plan((sl.Release(COLOUR, "grr", 1.0), sl.Release(SMOKES, "grr", 0.5, times=3)))
    panel = Panel(mixed)
    assert panel.protocol(1).labels == ("colour", "smokes")
    assert panel.protocol(3).labels == ("smokes",)
    assert panel.rounds == 3


def test_names_are_in_no_file_and_a_memory_is_its_owners(tmp_path: Path) -> None:
    panel = Panel(plan())
    memory = PanelMemory.new(panel)
    names = [f"unmistakable-name-{i}" for i in range(120)]
    reports = panel_reports(panel, 1, people(), names, memory)
    assert not reports.is_simulation
    path = memory.write(tmp_path / "panel.memory")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = sl.write_reports(reports, tmp_path / "r1.parquet")
    for file in (path, written):
        assert b"unmistakable-name" not in file.read_bytes()
    assert all("unmistakable" not in str(column) for column in pq.read_table(written).to_pydict().values())


def test_a_memory_goes_on_from_its_file_as_if_it_had_never_been_away(tmp_path: Path) -> None:
    panel = Panel(plan(), epoch=3)
    here, away = PanelMemory.new(panel, seed=1), PanelMemory.new(panel, seed=1)
    for number in (1, 2, 4):
        rows = np.arange(number, 120)
        names = [NAMES[i] for i in rows]
        mine = panel_reports(panel, number, people(number)[rows], names, here, seed=1)
        theirs = panel_reports(panel, number, people(number)[rows], names, away, seed=1)
        assert to_arrow(mine).equals(to_arrow(theirs))
        assert mine.round == theirs.round
        away = PanelMemory.read(away.write(tmp_path / "panel.memory"))
        assert (away.made, len(away), away.name) == (here.made, len(here), here.name)


def test_report_files_say_their_round_and_a_changed_round_is_seen(tmp_path: Path) -> None:
    panel = Panel(plan())
    reports = panel_reports(panel, 1, people(), NAMES, PanelMemory.new(panel, seed=1), seed=1)
    path = sl.write_reports(reports, tmp_path / "r1.parquet")
    assert sl.read_reports(path).round == reports.round
    table = pq.read_table(path)
    head = table.schema.metadata[REPORTS_KEY]
    assert b'"version": 3' in head
    for old, new, words in (
        (b'"number": 1', b'"number": 2', "stayed must have a number"),
        (b'"rounds": 4', b'"rounds": 5', "not those that were sealed"),
        (b'"number": 1', b'"number": 9', "round 9 of 4 cannot be"),
    ):
        changed = table.replace_schema_metadata(table.schema.metadata | {REPORTS_KEY: head.replace(old, new)})
        pq.write_table(changed, tmp_path / "changed.parquet")
        with pytest.raises(sl.InputError, match=words):
            sl.read_reports(tmp_path / "changed.parquet")
    once = sl.protocols.smp(panel.plan.schema, 1.0).randomise(people(), seed=1)
    assert b'"version": 2' in to_arrow(once).schema.metadata[REPORTS_KEY]


def begun(**changes: object) -> tuple[Panel, PanelMemory]:
    panel = Panel(plan(), **changes)  # type: ignore[arg-type]
    memory = PanelMemory.new(panel, seed=1)
    panel_reports(panel, 2, people(), NAMES, memory, seed=1)
    return panel, memory


@pytest.mark.parametrize(
    ("number", "other", "words"),
    [
        (2, {}, "round 2 was collected already.*go on with round 3"),
        (1, {}, "round 1 comes before round 2"),
        (5, {}, "`round` must be a whole number of at least 1 and at most 4, got 5"),
        (0, {}, "`round` must be a whole number"),
        (3, {"plan": plan("l-osue")}, "another mechanism of 'colour', 'l-grr', and it is 'l-osue'"),
        (3, {"plan": plan(times=5)}, "another times of 'colour', 4, and it is 5"),
        (3, {"plan": plan().withholding(["smokes"])}, "began with 'smokes', and the plan is without it"),
        (3, {"epoch": 2}, "began with epoch None, and it is 2"),
        (3, {"follow_changes": True}, "began with follow_changes False"),
    ],
)
def test_rounds_and_plans_that_do_not_follow_are_refused(number: int, other: dict, words: str) -> None:
    panel, memory = begun()
    with pytest.raises(sl.InputError, match=words) as caught:
        panel_reports(replace(panel, **other), number, people(), NAMES, memory, seed=1)
    assert "\n" not in str(caught.value)
    assert memory.made == [2]


def test_budgets_and_alphabets_that_differ_between_rounds_are_refused() -> None:
    panel, memory = begun()
    dearer = tuple(r.at(1.5) if r.name == "colour" else r for r in panel.plan.releases)
    with pytest.raises(sl.InputError, match=r"another budget of 'colour', 1\.0, and it is 1\.5"):
        panel_reports(Panel(replace(panel.plan, releases=dearer)), 3, people(), NAMES, memory, seed=1)
    turned = sl.categorical("colour", ["green", "red", "blue", "grey"])
    coded = tuple(replace(r, attribute=turned) if r.name == "colour" else r for r in panel.plan.releases)
    with pytest.raises(sl.InputError, match="another alphabet of 'colour'"):
        panel_reports(Panel(replace(panel.plan, releases=coded)), 3, people(), NAMES, memory, seed=1)


def test_other_bad_input_is_refused_before_anything_is_remembered() -> None:
    panel, memory = begun()
    twice = [*NAMES[:-1], NAMES[0]]
    cases = [
        ((panel, 3, people(), NAMES, None), {"seed": 1}, "needs its `memory`"),
        ((panel, 3, people(), NAMES, memory), {}, "came from a seed; give one"),
        ((panel, 3, people(), NAMES[1:], memory), {"seed": 1}, "a name for each of 120 records"),
        ((panel, 3, people(), twice, memory), {"seed": 1}, "'p0' is named 2 times"),
        ((panel, 3, people(), ["\ud800", *NAMES[1:]], memory), {"seed": 1}, "holds half a character"),
        ((panel, 3, people()[:0], [], memory), {"seed": 1}, "nobody reports in round 3"),
        ((panel, 3, people()[:, :1], NAMES, memory), {"seed": 1}, "`records` must be"),
    ]
    for arguments, options, words in cases:
        with pytest.raises(sl.InputError, match=words):
            panel_reports(*arguments, **options)
    assert memory.made == [2]
    real = PanelMemory.new(panel)
    with pytest.raises(sl.InputError, match="protects people; leave `seed` out"):
        panel_reports(panel, 1, people(), NAMES, real, seed=1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Panel(plan(), division="people"), "response of 'colour' is kept, and the people"),
        (lambda: Panel(plan(), division="days"), "`division` must be"),
        (lambda: Panel(plan(), epoch=0), "`epoch` must be"),
        (lambda: Panel(sl.Plan((sl.Release(SMOKES, "grr", 1.0, times=2),)), epoch=2), "keeps none"),
        (lambda: Panel(sl.Plan((sl.Release(COLOUR, "ss", 1.0, 2, memory="kept"),))), "no response that can"),
        (lambda: Panel("plan"), "`plan` must be"),
        (lambda: Panel(sl.Plan((sl.Release(SMOKES, "identity", times=2),)), "budget"), "no budget of it to"),
    ],
)
def test_panels_that_make_no_sense_are_refused(make, words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        make()


def test_damaged_memories_and_those_of_other_panels_are_refused(tmp_path: Path) -> None:
    panel, memory = begun()
    path = memory.write(tmp_path / "panel.memory")
    stranger = PanelMemory.new(panel, seed=9)
    with pytest.raises(sl.InputError, match="the memory of another panel"):
        stranger.write(path)
    older = PanelMemory.new(panel, seed=1)
    with pytest.raises(sl.InputError, match="knows rounds that this one does not"):
        older.write(path)
    assert PanelMemory.read(path).made == [2]
    one, other = PanelMemory.read(path), PanelMemory.read(path)  # two collections of one round at once
    for both in (one, other):
        panel_reports(panel, 3, people(), NAMES, both, seed=1)
    one.write(path)
    with pytest.raises(sl.InputError, match="knows rounds that this one does not"):
        other.write(path)
    memory.write(tmp_path / "copy.memory")
    table = pq.read_table(tmp_path / "copy.memory")
    head = table.schema.metadata[b"sidelight.panel"]
    for damaged, words in (
        (table.replace_schema_metadata({}), "it is no memory of a panel"),
        (table.drop_columns(["round 2"]), "its columns are not those"),
        (table.replace_schema_metadata({b"sidelight.panel": head.replace(b'"version": 1', b'"version": 2')}),
         "version 2"),
        (table.replace_schema_metadata({b"sidelight.panel": head[:-5]}), "damaged.memory"),
    ):  # fmt: skip
        pq.write_table(damaged, tmp_path / "damaged.memory")
        with pytest.raises(sl.InputError, match=words):
            PanelMemory.read(tmp_path / "damaged.memory")
    (tmp_path / "text.memory").write_text("nothing")
    with pytest.raises(sl.InputError, match="no memory of a panel, or it is truncated"):
        PanelMemory.read(tmp_path / "text.memory")
    with pytest.raises(sl.InputError, match="there is no file"):
        PanelMemory.read(tmp_path / "absent.memory")


def test_a_memory_with_a_changed_byte_is_refused_wherever_it_is(tmp_path: Path) -> None:
    """One bit of the secret would make all responses others, and one of a held value would send a new one."""
    _, memory = begun()
    memory.write(tmp_path / "panel.memory")
    table = pq.read_table(tmp_path / "panel.memory")
    head = json.loads(table.schema.metadata[b"sidelight.panel"])
    held = table.column("held colour").to_pylist()
    other = pa.array([1 - held[0] if held[0] < 2 else 0, *held[1:]], type=pa.int64())
    twice = pa.array([False, *table.column("round 2").to_pylist()[1:]])
    changed = [
        (table.set_column(table.schema.get_field_index(name), name, column), head)
        for name, column in (("held colour", other), ("round 2", twice))
    ]
    secret = ("B" if head["secret"][0] == "A" else "A") + head["secret"][1:]
    changed += [(table, head | {"secret": secret}), (table, head | {"held_epoch": "7"})]
    for rows, told in changed:
        marked = rows.replace_schema_metadata({b"sidelight.panel": json.dumps(told)})
        pq.write_table(marked, tmp_path / "damaged.memory")
        with pytest.raises(sl.InputError, match="its content is not what was written"):
            PanelMemory.read(tmp_path / "damaged.memory")


def test_only_one_of_two_processes_writes_a_memory(tmp_path: Path) -> None:
    _, memory = begun()
    path = tmp_path / "panel.memory"
    busy = "is in use by another process; wait for it"  # another memory would have other noise
    with locked(path, "memory", "wait"), pytest.raises(sl.InputError, match=busy):
        memory.write(path)
    assert not path.exists()
    link = tmp_path / "link.memory"
    link.symlink_to(path)
    memory.write(link)  # goes on in the file, so that both names know the round
    assert link.is_symlink()
    assert PanelMemory.read(path).made == [2]


def test_collect_takes_a_plan_of_several_rounds_one_by_one() -> None:
    panel = sl.simulate_panel(300, 3, [0.3, 0.7], seed=1)
    asked = sl.Plan((sl.Release(panel.schema["x1"], "grr", 1.0, times=3),))
    reports = sl.collect(panel.table(2), asked, seed=1, round=2)
    assert reports.round is not None
    assert reports.round.number == 2
    with pytest.raises(sl.InputError, match="asks for 3 reports of 'x1'.*--round"):
        sl.collect(panel.table(1), asked)
    with pytest.raises(sl.InputError, match="say which `round`"):
        sl.collect(panel.table(1), sl.Plan.uniform(panel.schema), people=["a"])
    with pytest.raises(sl.InputError, match="a `Plan` or a `Panel`"):
        sl.collect(panel.table(1), sl.protocols.smp(panel.schema, 1.0), round=1)
    with pytest.raises(sl.InputError, match="asks once, so there is no round 2"):
        sl.collect(panel.table(1), sl.Plan.uniform(panel.schema), round=2)
    first = sl.collect(panel.table(1), asked, seed=1, round=1)
    with pytest.raises(sl.InputError, match="different rounds of a panel are mixed, 1, 2"):
        sl.estimate([first, reports])
    with pytest.raises(sl.InputError, match="different rounds"):
        _ = first + reports


def test_an_aggregator_takes_no_rounds(tmp_path: Path) -> None:
    panel, _ = begun()
    reports = panel_reports(panel, 1, people(), NAMES, PanelMemory.new(panel, seed=1), seed=1)
    path = sl.write_reports(reports, tmp_path / "r1.parquet")
    with pytest.raises(sl.InputError, match="is round 1 of a panel"):
        sl.transport.Aggregator().take(path)


@pytest.mark.parametrize("name", KEPT)
def test_rounds_go_the_whole_way_through_files_shuffled_and_in_batches(name: str, tmp_path: Path) -> None:
    panel = Panel(plan(name, times=2))
    memory = PanelMemory.new(panel, seed=1)
    rounds = [panel_reports(panel, t, people(t), NAMES, memory, seed=1) for t in (1, 2)]
    whole = sl.estimate_rounds(rounds)
    files = []
    for number, reports in enumerate(rounds, start=1):
        folder = tmp_path / str(number)
        folder.mkdir()
        sl.transport.write_batches(reports, folder, 3, records="", order=bytes(32))
        files += sorted(folder.glob("*.parquet"))
    again = sl.estimate_rounds([sl.read_reports(path) for path in files])
    assert all(item.is_simulation for item in (whole, again))
    assert [vars(row) for row in again.changes()] == [vars(row) for row in whole.changes()]
    assert [vars(row) for row in again.means()] == [vars(row) for row in whole.means()]
    with pytest.raises(sl.InputError, match=r"round 2 has \d+ of its 120 reports"):
        sl.estimate_rounds([sl.read_reports(path) for path in files[:-1]])
