"""Devices that answer label collections: their turn, what they check, what they pay, what they refuse."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from conftest import AT_MOST
from ledger_stores import MemoryStore
from service_cases import with_collector
from service_http import path
from service_labels import SCHEMA, ill_people, label_task, packed, tree_round
from service_process import Process
from sidelight.learning.decision_tree import DecisionTree
from sidelight.ledger import Ledger, Limit
from sidelight.ledger.ledger import first_line
from sidelight.mechanisms.longitudinal import StoredMemory
from sidelight.service.answering import record_codes
from sidelight.service.batches import Batch
from sidelight.service.canonical import canonical, digest_of
from sidelight.service.collector import submission
from sidelight.service.label_basis import Basis
from sidelight.service.rounds import Round, first_round, read_round
from sidelight.service.task import Pace, Task, task_from
from sidelight.transport.wire import Wire

RECORD = {"work": "farm", "region": "s", "age": "60 or more", "ill": "yes"}
MANY = [str(i) for i in range(20_000)]
ALMOST = DecisionTree.start(2).split(0, 0, 0, (np.array([0.1, 0.2]), np.array([0.6, 0.1])), last=False)


def ledger_of(name: str, limit: float = 2.5) -> Ledger:
    return Ledger(MemoryStore(first_line(name, [Limit.of(limit)], now=1)), name)


def record_of(rows, place: int) -> dict[str, int]:
    codes = [*rows.codes[place].tolist(), int(rows.labels[place])]
    return dict(zip(SCHEMA.names, codes, strict=True))


def second_round(made: Task) -> Round:
    """The second round of a tree that has grown so far."""
    return tree_round(made, 2, ALMOST)


@pytest.mark.parametrize(("devices", "workers"), [(24, 1), pytest.param(1500, 2, marks=pytest.mark.deep)])
def test_devices_grow_a_tree(tmp_path: Path, devices: int, workers: int) -> None:
    rows, service = ill_people(devices), Process(tmp_path, "--workers", str(workers))
    made, crowd = _divided(devices)
    counted = 0
    with service.client() as client:
        assert client.post("/v1/tasks", content=made.document).status_code == 201
        client.post(f"{path(made)}/open")
        for number in (1, 2):
            _wait(client, made, number, "open")
            for place in range(devices):
                ledger = ledger_of(f"device {place}")
                if not made.course.takes_part(ledger.person, made.id, number):
                    continue
                with sl.Client(service.url, ledger) as device:
                    word = device.answer(made.id, record_of(rows, place))
                assert word in ("accepted", "closed", None)  # it closes when its crowd is there
                counted += word == "accepted"
            _wait(client, made, number, "closed")
        answer = client.get(f"/v1/tasks/{made.id}/model")
        assert answer.json()["trained"] == counted >= 2 * crowd
        trail = client.get(f"/v1/tasks/{made.id}/trail").json()["trail"]
        assert [(item["kind"], item.get("round")) for item in trail] == [
            ("made", None), ("opened", 1), ("closed", 1), ("opened", 2), ("closed", 2),
        ]  # fmt: skip
    service.stop()


def _divided(devices: int) -> tuple[Task, int]:
    """A task whose rounds close when the smaller half of the devices has answered."""
    crowd = 1
    for _ in range(50):
        made = label_task("tree", Pace(reports=crowd), crowd, depth=2)
        own = [made.course.takes_part(f"device {place}", made.id, 1) for place in range(devices)]
        least = min(sum(own), devices - sum(own))
        if least == crowd or (crowd > devices // 3 and least >= crowd):
            return made, crowd
        crowd += 1
    return made, crowd


def _wait(client, made: Task, number: int, state: str) -> None:
    for _ in range(50 * AT_MOST):
        rounds = client.get(f"/v1/tasks/{made.id}/state").json()["rounds"]
        if rounds[number - 1]["state"] == state or (
            state == "open" and rounds[number - 1]["state"] == "closed"
        ):
            return
        time.sleep(0.02)
    raise AssertionError(rounds)


@pytest.mark.parametrize("settings", [{}, {"omega": "learnt", "share": 0.3}])
def test_everyone_answers_one_round_and_turns_are_even(settings: dict) -> None:
    made = label_task("tree", **settings)
    names = [f"person {i}" for i in range(3000)]
    turns = [
        [number for number in range(1, made.rounds + 1) if made.course.takes_part(name, made.id, number)]
        for name in names
    ]
    assert all(len(item) == 1 for item in turns)
    share = 0.3 if settings else 0.0
    wanted = np.array([*([share] if settings else []), *[(1 - share) / 3] * 3]) * len(names)
    counts = np.bincount([item[0] for item in turns], minlength=made.rounds + 1)[1:]
    # Six standard deviations, which chance exceeds about once in 10^8 runs.
    assert np.all(np.abs(counts - wanted) < 6 * np.sqrt(wanted))


def test_a_device_makes_the_cell_of_its_record_in_the_tree() -> None:
    made = label_task("tree", epsilon=30.0)  # so that reports are hardly ever noisy
    found = second_round(made)
    codes = record_codes(made.course.asked(found), RECORD)
    reports = made.course.report(found, codes, StoredMemory())
    (part,) = [place for place, senders in enumerate(reports.senders) if len(senders)]
    attribute = found.protocol.schema.attributes[part]
    pair = int(reports.parts[part].values.reshape(-1)[0])
    said = "node 1: " + RECORD[attribute.name]
    assert (attribute.values[pair // 2], pair % 2) == (said, 1)
    assert not Wire(found.protocol).unpack(Wire(found.protocol).pack(reports)).refused


def test_a_round_is_checked_against_the_task() -> None:
    made = label_task("tree")
    found = second_round(made)
    assert read_round(made, 2, found.document, found.digest).digest == found.digest
    omegas = label_task("tree", omega=0.6).design._given().omegas
    cheaper = replace(found, basis=Basis(omegas, ALMOST))
    with pytest.raises(sl.InputError, match="not those that the task says"):
        read_round(made, 2, cheaper.document)
    dearer = second_round(label_task("tree", epsilon=3.0))
    with pytest.raises(sl.InputError, match="two protocols"):
        read_round(made, 2, replace(dearer, task=made.id).document)
    with pytest.raises(sl.InputError, match="which omegas it rests on"):
        read_round(made, 2, replace(found, basis=None).document)
    with pytest.raises(sl.InputError, match="another task or round"):
        read_round(made, 1, found.document)
    foreign = DecisionTree.start(2).split(0, 9, 0, (np.ones(2) / 4, np.ones(2) / 4), last=False)
    with pytest.raises(sl.InputError, match="not about the task's attributes"):
        read_round(made, 2, replace(found, basis=Basis(found.basis.omegas, foreign)).document)
    closed = DecisionTree.start(2).split(0, 0, 0, (np.ones(2) / 4, np.ones(2) / 4), last=True)
    with pytest.raises(sl.InputError, match="no round left to ask"):
        read_round(made, 2, replace(found, basis=Basis(found.basis.omegas, closed)).document)
    data = json.loads(found.document)
    data["labels"]["tree"][0]["children"] = [0, 0]
    with pytest.raises(sl.InputError, match="make no tree"):
        read_round(made, 2, canonical(data), digest_of(canonical(data)))


@pytest.mark.parametrize(
    ("settings", "spent"),
    [
        ({}, 2.0), ({"protocol": "basic"}, 2.0), ({"secret": "label"}, 2.0),
        ({"omega": 0.5}, np.log1p(np.expm1(2.0) / 0.5)),
    ],
)  # fmt: skip
def test_an_answer_is_charged_what_it_says_about_the_whole_record(settings: dict, spent: float) -> None:
    made = label_task(**settings)
    (charge,) = made.course.question(first_round(made, 1)).charges
    assert charge.units / 1e9 == pytest.approx(spent, rel=0.2)
    assert charge.units / 1e9 <= made.epsilon + 1e-9


def test_labeldp_is_refused_by_a_ledger_unless_the_attributes_are_public() -> None:
    made = label_task(protocol="labeldp")
    with pytest.raises(sl.InputError, match="sends your attributes as they are"):
        made.course.question(first_round(made, 1))


def test_what_is_sent_without_noise_needs_the_persons_word_and_not_only_the_tasks(tmp_path: Path) -> None:
    made, ledger, service = label_task(secret="label"), ledger_of("me"), Process(tmp_path)
    with service.client() as client, sl.Client(service.url, ledger) as device:
        client.post("/v1/tasks", content=made.document)
        client.post(f"{path(made)}/open")
        assert device.offer(made.id).shown == ("work", "region", "age")
        for public in ((), ("work", "age")):
            with pytest.raises(
                sl.InputError, match=r"region.* as they are, without noise; if they are public"
            ):
                device.answer(made.id, RECORD, public=public)
        assert not ledger.answers
        assert client.get(f"{path(made)}/arrivals").json() == {"people": 0}
        assert device.answer(made.id, RECORD, public=("work", "region", "age")) == "accepted"
    service.stop()
    assert label_task().course.shown(first_round(label_task(), 1)) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "forest"}, "model"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": "2"}, "epsilon"),
        ({"omega": 0.01}, "at least 0.3333"),
        ({"omega": "auto"}, "omega"),
        ({"omega": [{"curve": [1.0], "source": "x", "confidence": None}]}, "one curve for each attribute"),
        ({"attribute": []}, "at least one attribute"),
        ({"label": {"name": "ill", "kind": "categorical", "values": ["no"]}}, "one value"),
        ({"label": {"name": "work", "kind": "categorical", "values": ["a", "b"]}}, "work"),
        ({"omega": [{"curve": "x", "source": "x", "confidence": None}]}, r"\(0.curve: Input .* list"),
        ({"omega": [{"curve": [1.0], "source": "x"}]}, r"\(0.confidence: Field required\)"),
        ({"omega": [{"curve": [1.0], "source": "x", "confidence": 7.0}]}, "confidence"),
        ({"omega": [{"curve": [1.0], "source": "x" * 1001, "confidence": None}]}, "source"),
        (
            {"label": {"name": "ill", "kind": "categorical", "values": MANY}},
            "cells of a question; merge values[.]",
        ),
        (
            {
                "label": {"name": "ill", "kind": "categorical", "values": MANY[:6000]},
                "model": "tree",
                "depth": 2,
            },
            "at up to 3 places of a tree of depth 2: .* or grow less deep",
        ),
        ({"depth": 0}, "depth"),
        ({"k": 900}, "k"),
        ({"k": "many"}, "labels.k: must be a whole number .* 'search' or 'published', got 'many'[.]$"),
        ({"omega": [1, 2]}, "labels.omega: must be a number above 0 .* for each attribute, got .1, 2.[.]$"),
        ({"omega": [None] * 9999}, r"for each attribute, got \[None, .{1,80}$"),
        ({"secret": "attributes"}, "label is public"),
        ({"colour": 1}, "there is no key 'colour'"),
    ],
)
def test_a_foreign_label_design_is_refused_in_words(change: dict[str, object], said: str) -> None:
    data = json.loads(label_task().document)
    data["labels"] |= change
    with pytest.raises(sl.InputError, match=said):
        task_from(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ill": "perhaps"}, "perhaps"),
        ({"ill": 2}, "a code from 0 to 1"),
        ({"ill": None}, "a label, or a code"),
        ({"colour": "red"}, "must have a value for work, region, age, ill"),
    ],
)
def test_a_label_outside_its_values_is_refused(change: dict[str, object], said: str) -> None:
    made = label_task()
    with pytest.raises(sl.InputError, match=said):
        record_codes(made.course.asked(first_round(made, 1)), RECORD | change)


def test_reports_of_another_round_or_label_touch_nothing(tmp_path: Path) -> None:
    made = label_task("tree")
    other = label_task("tree", epsilon=1.0)

    async def work(collector) -> None:
        for item in (made, other):
            await collector.make(item)
            await collector.open(item.id, 1)
        found = (await collector.asked(made.id, 1)).round
        foreign = (await collector.asked(other.id, 1)).round
        rows = ill_people(30)
        records = np.column_stack([rows.codes, rows.labels])
        items = packed(found.protocol.randomise(records, seed=1), 1)
        with pytest.raises(sl.InputError, match="reports were made for a round"):
            await collector.upload(made.id, 1, foreign.digest, Batch.of(items))
        with pytest.raises(sl.InputError, match="is a draft"):
            await collector.upload(made.id, 2, found.digest, Batch.of(items))
        # Part 3 of 3 parts, and sets that no selection makes.
        broken = [submission(item.id, bytes([1, 0xFF, 0xFF])) for item in items]
        answers = await collector.upload(made.id, 1, found.digest, Batch.of(broken))
        assert {answer.status for answer in answers} == {"malformed"}
        assert await collector.people(made.id, 1) == 0

    with_collector(str(tmp_path / "store.db"), work)
