"""Panels over HTTP: devices that remember, and the estimates over time of the file path."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from ledger_stores import MemoryStore
from service_cases import AT_ONCE, SCHEMA, people, task, with_collector, with_store
from service_http import OPERATOR, body, opened, path, step, with_service
from service_labels import packed
from sidelight.ledger import Ledger, Limit, OverspentError
from sidelight.ledger.ledger import first_line
from sidelight.mechanisms.longitudinal import KeyedMemory, Memory, crowd_memos
from sidelight.plan import Plan, Release
from sidelight.protocols import Panel, PanelMemory
from sidelight.service.advancing import Advancer
from sidelight.service.batches import Batch
from sidelight.service.collector import Collector
from sidelight.service.panels import PanelDesign
from sidelight.service.rounds import first_round
from sidelight.service.store import StoredRound
from sidelight.service.task import Pace, Task, Terms, read_task, task_from
from sidelight.transport.panel_collection import panel_reports

SMOKES, MEAL = SCHEMA.attributes
SIZES = pytest.mark.parametrize("size", [400, pytest.param(10_000, marks=pytest.mark.deep)])
PANELS = {
    "kept": Panel(Plan((Release(SMOKES, "l-grr", 2.0, 5), Release(MEAL, "grr", 1.5, 5, memory="kept")))),
    "epochs": Panel(Plan((Release(SMOKES, "loloha", 2.0, 5), Release(MEAL, "grr", 0.4, 5))), epoch=2),
    "follow": Panel(Plan((Release(SMOKES, "l-grr", 2.0, 5),)), follow_changes=True),
    "people": Panel(Plan((Release(SMOKES, "grr", 1.0, 5), Release(MEAL, "oue", 1.0, 5))), "people"),
    "budget": Panel(Plan((Release(SMOKES, "grr", 2.0, 5), Release(MEAL, "grr", 2.0, 5))), "budget"),
}
KINDS = pytest.mark.parametrize("kind", PANELS)


def panel_task(kind: str, **terms: object) -> Task:
    design = PanelDesign(PANELS[kind])
    given = {"smallest_crowd": 1, **terms}
    return Task(design, "To plan the canteen.", "canteen@example.org", 5, Terms(**given))


def changed(table: np.ndarray, number: int) -> np.ndarray:
    """The people of a round: a few have changed their minds."""
    moved = table.copy()
    moved[: 20 * number, 0] ^= 1
    return moved


@KINDS
@SIZES
def test_five_rounds_are_those_of_the_file_path(tmp_path: Path, kind: str, size: int) -> None:
    made, panel, table, seed = panel_task(kind), PANELS[kind], people(size), 3
    columns = [SCHEMA.index(name) for name in made.course.schema.names]
    memory = PanelMemory.new(panel, seed=seed)
    filed = [
        panel_reports(panel, number, changed(table, number)[:, columns], memory=memory, seed=seed)
        for number in range(1, 6)
    ]

    async def work(client) -> None:
        for number, reports in enumerate(filed, start=1):
            digest = await opened(client, made, number)
            items = packed(reports, number)
            for start in range(0, len(items), 500):
                part = items[start : start + 500]
                answer = await client.post(f"{path(made, number)}/reports", json=body(digest, part))
                assert answer.json()["counts"] == {"accepted": len(part)}
            await step(client, made, "close", number)
            said = (await client.get(f"{path(made, number)}/estimates", headers=OPERATOR)).json()["estimates"]
            alone = sl.estimate(replace(reports, round=None))
            assert [row["frequency"] for row in said] == [row.frequency for row in alone]
        over = (await client.get(f"/v1/tasks/{made.id}/estimates", headers=OPERATOR)).json()
        wanted = json.loads(sl.estimate_rounds(filed).to_json())
        assert over["levels"] == wanted["levels"]
        assert over["means"][0]["frequency"] == wanted["means"][0]["frequency"]
        assert [row["change"] for row in over["changes"]] == [row["change"] for row in wanted["changes"]]
        # Nobody can tell who was there before, so errors of changes are not below those of the file path.
        for mine, theirs in zip(over["changes"], wanted["changes"], strict=True):
            assert mine["standard_error"] >= theirs["standard_error"] * (1 - 1e-12)
        unlinked = [replace(part, round=part.round.model_copy(update={"stayed": None})) for part in filed]
        assert over["changes"] == json.loads(sl.estimate_rounds(unlinked).to_json())["changes"]

    with_service(str(tmp_path / "store.db"), work)


def _device(limit: float = 100.0, name: str = "me") -> Ledger:
    return Ledger(MemoryStore(first_line(name, [Limit.of(limit)], secret=bytes(32), now=1)), name)


@pytest.mark.parametrize("kind", ["kept", "epochs", "follow"])
def test_a_device_reports_from_the_memos_of_its_own_memory(kind: str) -> None:
    made, panel = panel_task(kind), PANELS[kind]
    secrets = [bytes([i]) * 32 for i in range(40)]
    group = made.course.first.groups[0]
    for number in (1, 2, 3):
        found = made.course.made(made.id, number, ())
        codes = people(40)[:, : len(made.course.schema)]
        reports = [
            made.course.report(found, row[None, :], KeyedMemory(secret))
            for row, secret in zip(codes, secrets, strict=True)
        ]
        epoch = f"{made.id} {panel.epoch_of(number)}"
        memos = crowd_memos(group.randomiser, SMOKES, secrets, epoch, codes[:, 0])
        assert all(len(part.parts) == len(made.course.schema) for part in reports)
        if kind == "kept":  # the meal's response is sent as it is
            meal = made.course.first.groups[1]
            kept = crowd_memos(meal.randomiser, MEAL, secrets, f"{made.id} 0", codes[:, 1])
            assert [int(part.parts[1].values[0]) for part in reports] == kept.values.tolist()
        # A report agrees with its memo far more often than one of another epoch's would.
        if memos.seeds is not None:
            assert [int(part.parts[0].seeds[0]) for part in reports] == memos.seeds.tolist()


def test_a_device_pays_for_a_kept_response_once_in_its_epoch() -> None:
    made = panel_task("epochs")
    ledger = _device()
    for number in range(1, 6):
        found = made.course.made(made.id, number, ())
        question = made.course.question(found)
        epoch = f"{made.id} {PANELS['epochs'].epoch_of(number)}"
        assert [item.epoch for item in question.charges] == [epoch, None]
        ledger.reserve(question, lambda _: b"x", now=number + 1)
    spent = 100 - ledger.remaining(now=10)[0].left / 1e9
    stored = made.course.first.groups[0].randomiser.stored.epsilon
    assert spent == pytest.approx(3 * stored + 5 * made.course.first.groups[1].randomiser.epsilon, abs=1e-7)
    assert spent == pytest.approx(made.epsilon, abs=1e-7)


def _answered(ledger: Ledger, made: Task, number: int, code: int) -> int:
    """Return what a device reports of its value in a round, with hardly any noise."""
    found = made.course.made(made.id, number, ())

    def make(memory: Memory) -> bytes:
        return bytes(made.course.report(found, np.array([[code]]), memory).parts[0].values)

    return ledger.reserve(made.course.question(found), make, now=1)[0]


def test_whether_a_device_answers_does_not_depend_on_what_it_froze_for_another() -> None:
    def task_of(values: tuple[str, str]) -> Task:
        plan = Plan((Release(sl.categorical("smokes", values), "grr", 30.0, 4, memory="kept"),))
        return Task(PanelDesign(Panel(plan, epoch=2)), "To see who stops.", "clinic@example.org", 4)

    first, second = task_of(("no", "yes")), task_of(("yes", "other"))
    for truth in (0, 1):
        ledger = _device(limit=1e6)
        assert _answered(ledger, first, 1, truth) == truth
        left = ledger.remaining(now=1)[0].left
        own = 1 - truth  # "yes" comes first there
        # Frozen for this list too: another value later in the epoch changes nothing; the next has its own.
        assert [_answered(ledger, second, n, code) for n, code in ((1, own), (2, 1 - own))] == [own, own]
        assert _answered(ledger, second, 3, 1 - own) == 1 - own
        assert ledger.remaining(now=1)[0].left < left


def test_a_later_panel_asks_for_the_value_of_its_own_time_and_is_charged() -> None:
    plan = Plan((Release(SMOKES, "grr", 30.0, 2, memory="kept"),))
    ledger, left = _device(limit=1e6), []
    for year, code in (("2025", 0), ("2026", 1)):
        made = Task(PanelDesign(Panel(plan)), f"To see who smokes in {year}.", "clinic@example.org", 2)
        # Kept within the panel, whatever becomes of the value, and not beyond.
        assert [_answered(ledger, made, n, value) for n, value in ((1, code), (2, 1 - code))] == [code, code]
        left.append(ledger.remaining(now=1)[0].left / 1e9)
    assert left == pytest.approx([1e6 - 30, 1e6 - 60])


def test_figures_over_time_are_those_of_panels_alone(tmp_path: Path) -> None:
    made = task()

    async def work(client) -> None:
        await opened(client, made)
        answer = await client.get(f"/v1/tasks/{made.id}/estimates", headers=OPERATOR)
        assert (answer.status_code, answer.json()["detail"][:23]) == (404, "the task is no panel; a")

    with_service(str(tmp_path / "store.db"), work)


def test_a_panel_that_costs_more_than_is_left_is_not_answered() -> None:
    made = panel_task("kept")
    ledger = _device(limit=1.0)
    with pytest.raises(OverspentError):
        ledger.check(made.course.question(first_round(made, 1)))


def test_where_people_are_divided_a_device_reports_in_one_round() -> None:
    made = panel_task("people")
    rounds = [
        [number for number in range(1, 6) if made.course.takes_part(f"d{i}", made.id, number)]
        for i in range(500)
    ]
    assert all(len(item) == 1 for item in rounds)
    # 500 in 5 rounds: six standard deviations are 54, which chance exceeds once in 10^8 runs.
    assert np.all(np.abs(np.bincount([item[0] for item in rounds], minlength=6)[1:] - 100) < 54)


def test_the_rounds_of_a_panel_are_opened_in_order_and_answered_one_after_the_other(tmp_path: Path) -> None:
    made = replace(panel_task("kept"), pace=Pace(reports=1, seconds=60))

    async def work(collector) -> None:
        await collector.make(made)
        with pytest.raises(sl.InputError, match="round 1 is a draft; the rounds of a panel are opened in"):
            await collector.open(made.id, 2)
        await collector.open(made.id, 1)
        advancer = Advancer(collector, lambda *_, **__: None)
        for number in range(1, 6):
            found = (await collector.asked(made.id, number)).round
            assert await advancer.look() == 0
            items = packed(found.protocol.randomise(people(1), seed=number), number)
            await collector.upload(made.id, number, found.digest, Batch.of(items))
            assert await advancer.look() == 1 + (number < 5)
        assert {item.state for item in await collector.store.rounds(made.id)} == {"closed"}

    with_collector(str(tmp_path / "store.db"), work)


def test_a_round_ends_after_its_time_if_enough_people_are_there(tmp_path: Path) -> None:
    made = replace(panel_task("kept", smallest_crowd=2), pace=Pace(seconds=100))

    async def work(store) -> None:
        now = [1000]
        collector = Collector(store, AT_ONCE, lambda: now[0])
        advancer = Advancer(collector, lambda *_, **__: None)
        await collector.make(made)
        await collector.open(made.id, 1)
        found = (await collector.asked(made.id, 1)).round
        items = packed(found.protocol.randomise(people(2), seed=1), 1)
        await collector.upload(made.id, 1, found.digest, Batch.of(items[:1]))
        now[0] = 5000
        assert await advancer.look() == 0
        await collector.upload(made.id, 1, found.digest, Batch.of(items[1:]))
        now[0] = 1099
        assert await advancer.look() == 0
        now[0] = 1100
        assert await advancer.look() == 2

    with_store(str(tmp_path / "store.db"), work)


def test_a_task_that_cannot_go_on_holds_up_no_other_and_says_so_once(tmp_path: Path) -> None:
    broken, fine = panel_task("kept", smallest_crowd=1), panel_task("epochs", smallest_crowd=1)
    tasks = [replace(item, pace=Pace(seconds=5)) for item in (broken, fine)]

    async def work(store) -> None:
        clock, said = [0], []
        collector = Collector(store, AT_ONCE, lambda: clock[0])
        advancer = Advancer(collector, lambda event, **about: said.append((event, about)))
        for made in tasks:
            await collector.make(made)
            await collector.open(made.id, 1)
            found = (await collector.asked(made.id, 1)).round
            items = packed(found.protocol.randomise(people(3)[:, :2], seed=1), 1)
            await collector.upload(made.id, 1, found.digest, Batch.of(items))

        async def close_but_one(name: str, number: int) -> StoredRound:
            if name == tasks[0].id:
                raise ZeroDivisionError
            return await close(name, number)

        clock[0], close, collector.close = 100, collector.close, close_but_one
        assert [await advancer.look() for _ in range(3)] == [2, 0, 0]
        failed = ("advancing failed", {"task": tasks[0].id, "error": "ZeroDivisionError"})
        assert said.count(failed) == 1
        collector.close = close
        assert await advancer.look() == 2

    with_store(str(tmp_path / "store.db"), work)


@KINDS
def test_a_panel_is_its_document(kind: str) -> None:
    made = panel_task(kind)
    again = read_task(made.document, made.id)
    assert again.document == made.document
    assert again.epsilon == made.epsilon


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"division": "rooms"}, "division"),
        ({"epoch": 0}, "epoch"),
        ({"plan": {"version": 3}}, "release"),
        ({"colour": 1}, "there is no key 'colour'"),
    ],
)
def test_a_bad_panel_is_refused_in_words(change: dict[str, object], said: str) -> None:
    data = json.loads(panel_task("kept").document)
    data["panel"] |= change
    with pytest.raises(sl.InputError, match=said):
        task_from(data)


def test_attributes_that_are_asked_unequally_often_need_two_tasks() -> None:
    panel = Panel(Plan((Release(SMOKES, "l-grr", 2.0, 5), Release(MEAL, "l-grr", 1.5, 3))))
    with pytest.raises(sl.InputError, match="'smokes' 5 times, 'meal' 3 times; make a task for each"):
        PanelDesign(panel)
    with pytest.raises(sl.InputError, match="`rounds` must be 5, the rounds of its panel, got 2"):
        replace(panel_task("kept"), rounds=2)
    with pytest.raises(sl.InputError, match="at least the smallest crowd, 50"):
        replace(panel_task("kept", smallest_crowd=50), pace=Pace(reports=20))
