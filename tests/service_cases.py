"""Small tasks, and devices' reports for them, that the tests of the service share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from postgres import cluster_fixture
from sidelight.protocols import TwoPhase, make_protocol
from sidelight.protocols.protocol import Protocol
from sidelight.service.batches import Batch, Submission, split
from sidelight.service.collector import Collector, submission
from sidelight.service.committing import Grouping
from sidelight.service.store import Store
from sidelight.service.stores import store_of
from sidelight.service.task import Task, Terms
from sidelight.transport.wire import Wire

__all__ = ["cluster_fixture"]
SCHEMA = sl.Schema(
    (sl.categorical("smokes", ("no", "yes")), sl.categorical("meal", ("soup", "fish", "rice")))
)
AT_ONCE = Grouping(seconds=0.0)
NOW = 1_000_000


def task(rounds: int = 1, **terms: object) -> Task:
    """One protocol, asked so often; a crowd of one by default."""
    terms = {"smallest_crowd": 1, **terms}
    return Task(make_protocol("spl", SCHEMA, 2.0), "To plan the canteen.", "canteen@example.org", rounds,
                Terms(**terms))  # fmt: skip


def two_phases(**terms: object) -> Task:
    terms = {"smallest_crowd": 1, **terms}
    design = TwoPhase(SCHEMA, 2.0, share=0.4)
    return Task(design, "To plan the canteen.", "canteen@example.org", 2, Terms(**terms))


def people(number: int, seed: int = 1) -> np.ndarray:
    """The records of so many people, whose meals go with their smoking."""
    rng = np.random.default_rng(seed)
    smokes = (rng.random(number) < 0.3).astype(np.uint8)
    meal = np.where(rng.random(number) < 0.6, smokes, rng.integers(0, 3, number)).astype(np.uint8)
    return np.column_stack([smokes, meal])


def sent(protocol: Protocol, records: np.ndarray, seed: int = 2) -> list[Submission]:
    """What devices upload for these records, with ids that follow from the seed."""
    rng = np.random.default_rng(seed)
    payloads = Wire(protocol).pack(protocol.randomise(records, seed=seed))
    return [submission(rng.bytes(16), payload) for payload in payloads]


STORES = ("sqlite", "postgresql")


@pytest.fixture(name="place", params=STORES)
def place_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of a new store of each kind."""
    return place_of(request, request.param, tmp_path)


_NUMBERS = count()


def place_of(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    """Return the name of a new store."""
    if kind == "sqlite":
        return str(folder / f"store-{next(_NUMBERS)}.db")
    return str(request.getfixturevalue("cluster").database())


def with_store(place: str, work: Callable[[Store], Awaitable[object]]) -> None:
    """Run something over a store that is opened for it."""

    async def run() -> None:
        store = store_of(place)
        await store.open()
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


def with_collector(place: str, work: Callable[[Collector], Awaitable[object]]) -> None:
    """Run something over a collector whose clock stands still."""
    with_store(place, lambda store: work(Collector(store, AT_ONCE, lambda: NOW)))


async def kept_ids(store: Store, key: int) -> list[bytes]:
    """Return all ids that a store has of a round, settled or not."""
    tables = ("id_blocks", "id_pages")
    return [
        name
        async for table, rows in store.dump(7) if table in tables
        for row in rows if row[0] == key for name in split(row[-1])
    ]  # fmt: skip


async def opened(collector: Collector, made: Task) -> str:
    """Make a task and open its first round; return the round's digest."""
    await collector.make(made)
    await collector.open(made.id, 1)
    return (await collector.asked(made.id, 1)).round.digest


async def statuses(
    collector: Collector, made: Task, items: Sequence[Submission], number: int = 1
) -> list[str]:
    """Upload reports, and return the answers' words."""
    digest = (await collector.asked(made.id, number)).round.digest
    return [answer.status for answer in await collector.upload(made.id, number, digest, Batch.of(items))]
