"""A seeded simulation: devices, workers and an operator, with every fault drawn at random.

A step is one thing that happens: a device sends or its message is lost, doubled or late; a worker crashes
before or after its commit; the store is away or its disk full; the clock jumps; a round is opened, closed or
published; the store is set back to a backup. After every step five invariants hold:

1. every report that a device saw accepted or repeated is in the sums once, and none that was only refused;
2. sums are the protocol's aggregate of the accepted reports, bit for bit, and estimates theirs;
3. a closed round's sums, and what was published, never change;
4. no device spends more than its ledger allows, and no question gets two noises;
5. the trail replays to the present state.

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
from service_cases import AT_ONCE, people, task, two_phases
from sidelight.ledger import Ledger, Limit
from sidelight.ledger.ledger import first_line
from sidelight.service.client import question_of, takes_first, upload_of
from sidelight.service.collector import Collector
from sidelight.service.committing import Answer
from sidelight.service.errors import ConflictError, NotShownError, StoreError
from sidelight.service.rounds import read_round
from sidelight.service.sql import Session
from sidelight.service.sqlite import SqliteStore
from sidelight.service.task import Task
from sidelight.service.uploads import _from_json as parsed

FINAL = ("accepted", "repeated", "closed", "over quota", "bad token", "malformed")


class CrashError(Exception):
    """The worker is gone: nobody hears what it did."""


class FaultyStore(SqliteStore):
    """A store whose next transactions fail as they are told to."""

    fault = ""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        fault, self.fault = self.fault, ""
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
    latest: int = 0


class World:
    """Everything there is, driven by one random generator."""

    def __init__(self, folder: Path, made: Task, seed: int, devices: int = 12) -> None:
        self.rng = np.random.default_rng(seed)
        self.task, self.folder, self.now, self.copies = made, folder, 1_000_000, 0
        self.path = folder / "store.db"
        self.devices = []
        for number, record in enumerate(people(devices, seed)):
            name = f"device {seed}/{number}"
            kept = MemoryStore(first_line(name, [Limit.of(made.epsilon)], now=1))
            self.devices.append(Device(name, record[None, :], Ledger(kept, name)))
        self.flying: list[tuple[Device, int, bytes]] = []
        self.closed: dict[int, bytes] = {}
        self.published: dict[int, bytes] = {}
        self.backup: bytes | None = None
        self.lost: set[tuple[str, int]] = set()

    async def start(self) -> None:
        self.workers = [await self.worker() for _ in range(2)]
        await self.workers[0].make(self.task)

    async def worker(self) -> Collector:
        store = FaultyStore(self.path)
        await store.open()
        return Collector(store, AT_ONCE, lambda: self.now)

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
                "restore": self.restore,
            }[kind](worker)  # fmt: skip
        except CrashError:
            await self.restart(worker)
        except (StoreError, ConflictError, NotShownError):
            pass

    async def answer(self, worker: Collector) -> None:
        """A device makes its report of an open round, or sends the same bytes again."""
        device = self.devices[int(self.rng.integers(len(self.devices)))]
        for found in await worker.store.rounds(self.task.id):
            phased = self.task.design.two_phase
            own = phased is None or takes_first(device.name, self.task.id, phased.share) == (
                found.number == 1
            )
            if found.state != "open" or not own or found.number in device.told:
                continue
            if found.number not in device.sent and any(later > found.number for later in device.sent):
                continue  # an operator may open rounds in any order; a ledger does not go back
            if self.now < device.latest:
                continue  # the clock was set back, and a ledger waits until it is right
            device.latest = self.now
            asked = read_round(self.task, found.number, found.document, found.digests[0])
            report = device.ledger.reserve(
                question_of(asked), lambda _, asked=asked: upload_of(asked, device.record), now=self.now
            )
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
        self.now += int(self.rng.integers(-200, 1000))

    async def operate(self, worker: Collector) -> None:
        """The operator takes a step that may or may not be possible."""
        number = int(self.rng.integers(1, self.task.rounds + 1))
        name = str(self.rng.choice(["open", "open", "open", "close", "publish"]))
        await {"open": worker.open, "close": worker.close, "publish": worker.publish}[name](
            self.task.id, number
        )

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
        await worker.trail(self.task.id)
        for device in self.devices:
            assert all(len(reports) == 1 for reports in device.sent.values())  # one noise a question
            left = device.ledger.remaining(now=max(self.now, device.latest, 1))
            assert all(item.left >= 0 for item in left)
        for store, fault in faults:
            store.fault = fault

    async def _check_round(self, worker: Collector, found) -> None:
        asked = await worker.asked(self.task.id, found.number)
        async with worker.store.snapshot() as session:
            rows = await session.fetch("SELECT id FROM ids WHERE round = $1", found.key)
        counted = {row[0] for row in rows}
        reports = {
            parsed(report)[1][0].id: parsed(report)[1][0].payload
            for device in self.devices for report in device.sent.get(found.number, ())
        }  # fmt: skip
        assert counted <= set(reports)
        row = await worker.store.sums(found.key)
        payloads = [reports[name] for name in sorted(counted)]
        wanted = asked.tally.row(asked.wire.unpack(payloads).reports) if payloads else asked.tally.nothing()
        assert np.array_equal(row, wanted)
        for device in self.devices:
            words = device.told.get(found.number, [])
            (name, *_), = [[item.id for item in parsed(report)[1]]
                           for report in device.sent.get(found.number, ())] or [[b""]]  # fmt: skip
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
                with suppress(NotShownError):  # nobody answered in the first phase
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
        await self._check_estimates()
        await self.stop()

    async def stop(self) -> None:
        for worker in self.workers:
            await worker.store.close()

    async def _check_estimates(self) -> None:
        parts = []
        for number in self.task.read_together(self.task.rounds):
            asked = await self.workers[0].asked(self.task.id, number)
            async with self.workers[0].store.snapshot() as session:
                counted = {
                    row[0] for row in await session.fetch("SELECT id FROM ids WHERE round = $1", asked.key)
                }
            items = [
                parsed(report)[1][0] for device in self.devices for report in device.sent.get(number, ())
            ]
            payloads = [item.payload for item in items if item.id in counted]
            parts.append(asked.wire.unpack(payloads).reports)
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
}


def _plain(cell: object) -> object:
    return {"bytes": cell.hex()} if isinstance(cell, bytes) else cell


def _cell(cell: object) -> object:
    return bytes.fromhex(cell["bytes"]) if isinstance(cell, dict) else cell


@pytest.mark.parametrize("made", [task(2), two_phases()], ids=["rounds", "phases"])
@pytest.mark.parametrize(
    ("seeds", "steps"),
    [(range(5), 60), pytest.param(range(100, 300), 150, marks=pytest.mark.deep)],
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
