"""A seeded simulation: devices, workers and an operator, with every fault drawn at random.

A step is one thing that happens: a device sends or its message is lost, doubled or late; a worker crashes
before or after its commit; the store is away or its disk full; the clock jumps; a round is opened, closed or
published, by the operator or by the service itself; the store is set back to a backup. After every step five
invariants hold:

1. every report that a device saw accepted or repeated is in the sums once, and none that was only refused;
2. sums are the protocol's aggregate of the accepted reports, bit for bit, and estimates theirs;
3. a closed round's sums, and what was published, never change;
4. no device spends more than its ledger allows, and no question gets two noises;
5. the trail replays to the present state, and no round is opened twice.

They hold for rounds of one protocol, two phases, panels whose devices remember, and label collections.

Every payload is a person's own random id besides its report, so a count of two would show.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from ledger_stores import MemoryStore
from service_cases import AT_ONCE, kept_ids, people, task, two_phases
from service_labels import ill_people, label_task, packed
from sidelight.estimation.second_phase import FirstSums
from sidelight.ledger import Ledger, Limit
from sidelight.ledger.ledger import first_line
from sidelight.plan import Plan, Release
from sidelight.protocols import Panel
from sidelight.protocols.records import RecordReports
from sidelight.service.advancing import Advancer
from sidelight.service.batches import Batch
from sidelight.service.client import sent_as
from sidelight.service.collector import Collector
from sidelight.service.committing import Answer
from sidelight.service.course import Earlier
from sidelight.service.errors import ConflictError, NotShownError, StoreError
from sidelight.service.json_uploads import from_json as parsed
from sidelight.service.label_design import LabelDesign
from sidelight.service.panels import PanelDesign
from sidelight.service.results import model
from sidelight.service.rounds import read_round
from sidelight.service.seen import Keeping
from sidelight.service.session import Session
from sidelight.service.sqlite import SqliteStore
from sidelight.service.task import Pace, Task, Terms

FINAL = ("accepted", "repeated", "closed", "over quota", "bad token", "malformed")


class CrashError(Exception):
    """The worker is gone: nobody hears what it did."""


class FaultyStore(SqliteStore):
    """A store whose next transactions fail as they are told to; a few ids are settled, and filters err."""

    keeping = Keeping(recent=3, page=2, filter_words=1, load=4)
    fault = ""
    fault_at = (0, "")
    """The transaction, counted from now, that fails, and how."""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        left, later = self.fault_at
        self.fault_at = (left - 1, later)
        fault, self.fault = later if left == 1 else self.fault, ""
        if fault == "away":
            raise StoreError("the store is away.")
        if fault == "crash before":
            async with super().session() as session:
                yield session
                raise CrashError
        async with super().session() as session:
            yield session
            if fault == "disk full":
                raise StoreError("the disk is full.")
        if fault == "crash after":
            raise CrashError


@dataclass
class Device:
    """A person's device: its record, its ledger, and what it was told about each round."""

    name: str
    record: np.ndarray
    ledger: Ledger
    told: dict[int, list[str]] = field(default_factory=dict)
    sent: dict[int, set[bytes]] = field(default_factory=dict)


class World:
    """Everything there is, driven by one random generator."""

    def __init__(self, folder: Path, made: Task, seed: int, devices: int = 12) -> None:
        self.rng = np.random.default_rng(seed)
        self.task, self.folder, self.now, self.copies = made, folder, 1_000_000, 0
        self.latest = self.now
        self.path = folder / "store.db"
        self.devices = []
        for number, record in enumerate(records_of(made, devices, seed)):
            name = f"device {seed}/{number}"
            kept = MemoryStore(first_line(name, [Limit.of(made.epsilon + 1e-6)], now=1))
            self.devices.append(Device(name, record[None, :], Ledger(kept, name)))
        self.flying: list[tuple[Device, int, bytes]] = []
        self.closed: dict[int, bytes] = {}
        self.published: dict[int, bytes] = {}
        self.advancers: dict[Collector, Advancer] = {}
        self.backup: bytes | None = None
        self.lost: set[tuple[str, int]] = set()

    async def start(self) -> None:
        self.workers = [await self.worker() for _ in range(2)]
        await self.workers[0].make(self.task)

    async def worker(self) -> Collector:
        store = FaultyStore(self.path)
        await store.open()
        made = Collector(store, AT_ONCE, lambda: self.now)
        self.advancers[made] = Advancer(made, lambda *_, **__: None)
        return made

    def any_worker(self) -> Collector:
        return self.workers[int(self.rng.integers(len(self.workers)))]

    async def restart(self, worker: Collector) -> None:
        await worker.store.close()
        self.workers[self.workers.index(worker)] = await self.worker()

    async def step(self) -> None:
        kind = str(
            self.rng.choice(list(STEPS), p=[weight / sum(STEPS.values()) for weight in STEPS.values()])
        )
        worker = self.any_worker()
        try:
            await {
                "answer": self.answer, "deliver": self.deliver, "fault": self.fault, "clock": self.clock,
                "operate": self.operate, "together": self.together, "save": self.save,
                "restore": self.restore, "advance": self.advance,
            }[kind](worker)  # fmt: skip
        except CrashError:
            await self.restart(worker)
        except (StoreError, ConflictError, NotShownError):
            pass

    async def answer(self, worker: Collector) -> None:
        """A device makes its report of an open round, or sends the same bytes again."""
        device = self.devices[int(self.rng.integers(len(self.devices)))]
        course = self.task.course
        for found in await worker.store.rounds(self.task.id):
            own = course.takes_part(device.name, self.task.id, found.number)
            if found.state != "open" or not own or found.number in device.told:
                continue
            asked = read_round(self.task, found.number, found.document, found.digests[0])
            try:
                report = device.ledger.reserve(
                    course.question(asked),
                    lambda memory, asked=asked: sent_as(asked, course.report(asked, device.record, memory)),
                    now=self.latest,
                )
            except sl.InputError as error:  # the device has left this round behind
                if "rounds go forward" not in str(error):
                    raise
                continue
            device.sent.setdefault(found.number, set()).add(report)
            copies = int(self.rng.choice([0, 1, 1, 2]))  # lost on the way, or doubled
            self.flying += [(device, found.number, report)] * copies

    async def deliver(self, worker: Collector) -> None:
        """A message arrives, in any order; its answer may be lost."""
        if not self.flying:
            return
        device, number, report = self.flying.pop(int(self.rng.integers(len(self.flying))))
        answers = await self.upload(worker, number, report)
        if self.rng.random() < 0.8:
            self.hear(device, number, answers)

    async def upload(self, worker: Collector, number: int, report: bytes) -> list[Answer]:
        digest, items = parsed(report)
        return list(await worker.upload(self.task.id, number, digest, items))

    def hear(self, device: Device, number: int, answers: list[Answer]) -> None:
        device.told.setdefault(number, []).append(answers[0].status)
        assert answers[0].status in FINAL

    async def together(self, _worker: Collector) -> None:
        """Two workers get the same message at once."""
        if not self.flying:
            return
        device, number, report = self.flying[int(self.rng.integers(len(self.flying)))]
        both = await asyncio.gather(
            *(self.upload(worker, number, report) for worker in self.workers), return_exceptions=True
        )
        for place, answers in enumerate(both):
            if isinstance(answers, CrashError):
                await self.restart(self.workers[place])
            elif isinstance(answers, list):
                self.hear(device, number, answers)

    async def fault(self, worker: Collector) -> None:
        """The next transaction of a worker fails."""
        worker.store.fault = str(self.rng.choice(["away", "disk full", "crash before", "crash after"]))

    async def clock(self, _worker: Collector) -> None:
        self.now += int(self.rng.integers(-200, 1000))  # the server's; devices' go forward
        self.latest = max(self.latest, self.now)

    async def operate(self, worker: Collector) -> None:
        """The operator takes a step that may or may not be possible."""
        number = int(self.rng.integers(1, self.task.rounds + 1))
        name = str(self.rng.choice(["open", "open", "open", "close", "publish"]))
        await {"open": worker.open, "close": worker.close, "publish": worker.publish}[name](
            self.task.id, number
        )

    async def advance(self, worker: Collector) -> None:
        """A worker, or both at once, looks what is due."""
        both = self.workers if self.rng.random() < 0.3 else [worker]
        done = await asyncio.gather(*(self.advancers[item].look() for item in both), return_exceptions=True)
        for item, outcome in zip(list(both), done, strict=True):
            if isinstance(outcome, CrashError):
                await self.restart(item)
            elif isinstance(outcome, Exception) and not isinstance(outcome, StoreError):
                raise outcome

    async def save(self, worker: Collector) -> None:
        worker.store.fault = ""
        self.backup = json.dumps(
            [
                [table, [[_plain(cell) for cell in row] for row in rows]]
                async for table, rows in worker.store.dump()
            ]
        ).encode()

    async def restore(self, _worker: Collector) -> None:
        """Everything is set back to a backup: what came after is lost, or counted when it comes again."""
        if self.backup is None:
            return
        for worker in self.workers:
            await worker.store.close()
        self.copies += 1
        self.path = self.folder / f"store-{self.copies}.db"
        self.workers = [await self.worker() for _ in range(2)]
        chunks = [
            (table, [[_cell(cell) for cell in row] for row in rows])
            for table, rows in json.loads(self.backup)
        ]

        async def rows():
            for chunk in chunks:
                yield chunk

        await self.workers[0].store.load(rows(), self.now)
        self.lost = {(device.name, number) for device in self.devices for number in device.told}
        self.backup = None
        self.closed.clear()  # a round may have been open then
        self.published.clear()

    async def check(self) -> None:
        """Assert all five invariants."""
        worker = self.workers[0]
        faults = [(item.store, item.store.fault) for item in self.workers]
        for store, _ in faults:
            store.fault = ""
        for found in await worker.store.rounds(self.task.id):
            if found.document is not None:
                await self._check_round(worker, found)
        entries = await worker.trail(self.task.id)
        opened = [entry.data["round"] for entry in entries if entry.data["kind"] == "opened"]
        assert len(set(opened)) == len(opened)
        for device in self.devices:
            assert all(len(reports) == 1 for reports in device.sent.values())  # one noise a question
            assert all(item.left >= 0 for item in device.ledger.remaining(now=self.latest))
        for store, fault in faults:
            store.fault = fault

    async def _check_round(self, worker: Collector, found) -> None:
        asked = await worker.asked(self.task.id, found.number)
        kept = await kept_ids(worker.store, found.key)
        counted = set(kept)
        assert len(kept) == len(counted)
        reports = {
            parsed(report)[1].names[0]: parsed(report)[1].listed[0]
            for device in self.devices for report in device.sent.get(found.number, ())
        }  # fmt: skip
        assert counted <= set(reports)
        row = await worker.store.sums(found.key)
        payloads = [reports[name] for name in sorted(counted)]
        wanted = asked.tally.row(asked.wire.unpack(payloads).reports) if payloads else asked.tally.nothing()
        assert np.array_equal(row, wanted)
        for device in self.devices:
            words = device.told.get(found.number, [])
            sent = device.sent.get(found.number, ())
            (name, *_), = [parsed(report)[1].names for report in sent] or [[b""]]  # fmt: skip
            if (device.name, found.number) not in self.lost and words:
                assert (name in counted) == bool({"accepted", "repeated"} & set(words)), words
        if found.state in ("closed", "published"):
            assert self.closed.setdefault(found.number, row.tobytes()) == row.tobytes()
        if found.published is not None:
            assert self.published.setdefault(found.number, found.published) == found.published

    async def finish(self) -> None:
        """Let everything arrive, close, and compare the estimates with those of the reports."""
        for worker in self.workers:
            worker.store.fault = ""
        for number in range(1, self.task.rounds + 1):
            if (await self.workers[0].stored(self.task.id, number)).state == "draft":
                with suppress(NotShownError, ConflictError):  # nobody answered before, or nothing is left
                    await self.workers[0].open(self.task.id, number)
            if (await self.workers[0].stored(self.task.id, number)).document is None:
                await self.stop()
                return
            for device, which, report in self.flying:
                if which == number:
                    with suppress(ConflictError):  # made for a round that a backup undid
                        self.hear(device, number, await self.upload(self.workers[1], number, report))
            if (await self.workers[0].stored(self.task.id, number)).state == "open":
                await self.workers[0].close(self.task.id, number)
            await self.check()
        await (self._check_model() if self.task.course.opens_itself else self._check_estimates())
        await self.stop()

    async def stop(self) -> None:
        for worker in self.workers:
            await worker.store.close()

    async def _counted(self, number: int) -> RecordReports:
        asked = await self.workers[0].asked(self.task.id, number)
        counted = set(await kept_ids(self.workers[0].store, asked.key))
        items = [parsed(report)[1] for device in self.devices for report in device.sent.get(number, ())]
        return asked.wire.unpack([item.listed[0] for item in items if item.names[0] in counted]).reports

    async def _check_model(self) -> None:
        """The model is the one of the reports that were accepted."""
        earlier = []
        for number in range(1, self.task.rounds + 1):
            reports = await self._counted(number)
            if not reports.people:  # fewer than the smallest crowd
                return
            earlier.append(Earlier(FirstSums(reports.aggregate(), {}), ""))
        said = await model(self.workers[0], self.task.id)
        assert said == self.task.course.model(self.task.id, earlier)

    async def _check_estimates(self) -> None:
        parts = [await self._counted(number) for number in self.task.read_together(self.task.rounds)]
        if all(part.people for part in parts):
            said = await self.workers[0].estimates(self.task.id, self.task.rounds, "inversion")
            wanted = sl.estimate(parts, estimator="inversion")
            assert [row["frequency"] for row in said["estimates"]] == [row.frequency for row in wanted]


STEPS = {
    "answer": 30,
    "deliver": 30,
    "fault": 8,
    "clock": 4,
    "operate": 6,
    "together": 6,
    "save": 2,
    "restore": 1,
    "advance": 8,
}


def _plain(cell: object) -> object:
    return {"bytes": cell.hex()} if isinstance(cell, bytes) else cell


def _cell(cell: object) -> object:
    return bytes.fromhex(cell["bytes"]) if isinstance(cell, dict) else cell


def records_of(made: Task, number: int, seed: int) -> np.ndarray:
    """The records of so many people, of what the task asks."""
    if isinstance(made.design, LabelDesign):
        rows = ill_people(number, seed)
        return np.column_stack([rows.codes, rows.labels])
    return people(number, seed)[:, : len(made.course.schema)]


def panel(rounds: int = 3) -> Task:
    """A panel of which one response is kept in epochs of two rounds, and one is fresh."""
    smokes, meal = task().design.schema.attributes
    plan = Plan((Release(smokes, "l-grr", 2.0, rounds), Release(meal, "grr", 0.5, rounds)))
    design = PanelDesign(Panel(plan, epoch=2))
    return Task(design, "To plan the canteen.", "canteen@example.org", rounds, Terms(1), Pace(seconds=900))


MADE = {
    "rounds": task(2), "phases": two_phases(), "panel": panel(),
    "tree": label_task("tree", Pace(reports=2), depth=2), "omega": label_task(omega="learnt", share=0.4),
}  # fmt: skip


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("seeds", "steps"),
    [(range(3), 60), pytest.param(range(100, 250), 150, marks=pytest.mark.deep)],
    ids=["quick", "deep"],
)
def test_whatever_happens_the_invariants_hold(tmp_path: Path, made: Task, seeds: range, steps: int) -> None:
    async def run(seed: int) -> None:
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, made, seed)
        await world.start()
        for _ in range(steps):
            await world.step()
            await world.check()
        await world.finish()

    for seed in seeds:
        asyncio.run(run(seed))


@pytest.mark.parametrize(
    "fault",
    [
        "crash before",
        "crash after",
        *(pytest.param(x, marks=pytest.mark.deep) for x in ("disk full", "away")),
    ],
)
def test_a_crash_between_closing_and_opening_is_made_good_once(tmp_path: Path, fault: str) -> None:
    """The fault strikes each in turn of the transactions in which a round is closed and the next opened."""
    made = label_task("tree", Pace(reports=30))
    items = packed(made.course.first.randomise(records_of(made, 30, 1), seed=1), 1)
    documents = set()

    async def run(step: int) -> bool:
        folder = tmp_path / str(step)
        folder.mkdir()
        world = World(folder, made, 3, devices=1)
        await world.start()
        first, second = world.workers
        await first.open(made.id, 1)
        await first.upload(made.id, 1, (await first.asked(made.id, 1)).round.digest, Batch.of(items))
        first.store.fault_at = (step, fault)
        with suppress(CrashError, StoreError):
            await world.advancers[first].look()
        was_struck = first.store.fault_at[0] <= 0
        await world.restart(first)
        for _ in range(2):
            await asyncio.gather(*(world.advancers[item].look() for item in world.workers))
        entries = await second.trail(made.id)
        taken = [(entry.data["kind"], entry.data.get("round")) for entry in entries]
        assert taken == [("made", None), ("opened", 1), ("closed", 1), ("opened", 2)]
        documents.update([(await item.asked(made.id, 2)).round.document for item in world.workers])
        await world.stop()
        return was_struck

    struck = 0
    while asyncio.run(run(struck + 1)):
        struck += 1
    assert struck >= 4  # at least to read, to close, to compute and to open
    assert len(documents) == 1
