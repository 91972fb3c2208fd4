"""How ids are kept, against a plain set: processes that lag, settle, forget, err and crash change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postgres import Cluster
from service_cases import cluster_fixture, kept_ids, place_fixture
from sidelight.service import sql_ids
from sidelight.service.batches import Batch, Submission, ordered, split
from sidelight.service.errors import ConflictError, StoreError
from sidelight.service.postgres import PostgresStore
from sidelight.service.seen import Keeping, Seen, among
from sidelight.service.session import Session
from sidelight.service.sql import TABLES, SqlStore
from sidelight.service.sqlite import SqliteStore
from sidelight.service.store import Step
from sidelight.service.task import Terms
from sidelight.service.trail import Change

__all__ = ["cluster_fixture", "place_fixture"]
TASK = "0" * 64
FREE = Terms()
SMALL = Keeping(recent=5, page=2, filter_words=4, load=2)
ERRING = Keeping(recent=3, page=3, filter_words=1, load=100)
"""One word of 64 bits for all ids: soon it takes everything for known."""


class LostError(Exception):
    """The connection broke; nobody heard whether the commit succeeded."""


class _Fails:
    """A store whose next commit fails, or succeeds unheard."""

    fault = ""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        fault, self.fault = self.fault, ""
        async with super().session() as session:  # type: ignore[misc]
            yield session
            if fault == "fails":
                raise LostError
        if fault == "unheard":
            raise LostError


class FailingSqlite(_Fails, SqliteStore):
    """In a file."""


class FailingPostgres(_Fails, PostgresStore):
    """In a database."""


def store_at(place: str, keeping: Keeping) -> SqlStore:
    store = FailingPostgres(place) if "://" in place else FailingSqlite(place)
    store.keeping = keeping
    return store


def names(places: list[int]) -> list[bytes]:
    """Ids that are alike but for one byte, or have a half in common: whoever makes them up may do so."""
    return [bytes(8) + place.to_bytes(2, "big") * 4 if place % 2 else place.to_bytes(2, "big") * 8
            for place in places]  # fmt: skip


async def opened(store: SqlStore) -> int:
    """A round that is open; each report is its own place in the sums."""
    await store.add_task(TASK, b"{}", 1, 1)
    step = Step("open", Change("opened", {"round": 1, "digest": ""}), cells=2)
    return (await store.change(TASK, 1, 1, lambda *_: step)).key


async def accept(store: SqlStore, key: int, ids: list[bytes], terms: Terms = FREE) -> list[str]:
    items = Batch.of([Submission(name, b"") for name in ids])
    return await store.accept(key, items, terms, lambda chosen: np.full(2, len(chosen)))


batches = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True),
        st.sampled_from(["", "", "", "fails", "unheard", "restart"]),
    ),
    max_size=25,
)


async def _check(place: str, keeping: Keeping, steps: list[tuple[int, list[int], str]]) -> None:
    stores = [store_at(place, keeping) for _ in range(2)]
    for store in stores:
        await store.open()
    key, counted = await opened(stores[0]), set()
    for who, chosen, fault in steps:
        if fault == "restart":
            await stores[who].close()
            stores[who] = store_at(place, keeping)
            await stores[who].open()
        ids = names(chosen)
        stores[who].fault = fault if fault in ("fails", "unheard") else ""
        wanted = ["repeated" if name in counted else "accepted" for name in ids]
        try:
            assert await accept(stores[who], key, ids) == wanted
        except LostError:
            if fault == "fails":
                continue
        else:
            assert stores[who]._memories[key].seen.recent <= keeping.recent
        counted.update(ids)
        assert sorted(await kept_ids(stores[1 - who], key)) == sorted(counted)
        assert (await stores[1 - who].sums(key)).tolist() == [len(counted)] * 2
    step = Step("closed", Change("closed", {"round": 1, "sums": "", "people": 0}))
    await stores[0].change(TASK, 1, 1, lambda *_: step)
    for store in stores:  # whatever it remembers
        told = await accept(store, key, names(list(range(42))))
        assert told == ["repeated" if name in counted else "closed" for name in names(list(range(42)))]
        await store.close()


@pytest.mark.parametrize("keeping", [SMALL, ERRING], ids=["small", "erring"])
@pytest.mark.parametrize("few", [64, 1])
def test_two_processes_keep_the_ids_of_a_plain_set(
    keeping: Keeping, few: int, tmp_path_factory, monkeypatch
) -> None:
    monkeypatch.setattr(sql_ids, "_FEW", few)

    @settings(max_examples=15, deadline=None)
    @given(batches)
    def check(steps: list[tuple[int, list[int], str]]) -> None:
        asyncio.run(_check(str(tmp_path_factory.mktemp("ids") / "store.db"), keeping, steps))

    check()


@pytest.mark.parametrize("few", [64, 1])
def test_so_it_is_with_postgresql(cluster: Cluster, few: int, monkeypatch) -> None:
    monkeypatch.setattr(sql_ids, "_FEW", few)
    rng = np.random.default_rng(few)
    steps = [
        (int(rng.integers(2)), rng.choice(60, int(rng.integers(1, 9)), replace=False).tolist(), str(fault))
        for fault in rng.choice(["", "", "", "fails", "unheard", "restart"], 60)
    ]
    asyncio.run(_check(cluster.database(), SMALL, steps))


def test_what_is_refused_is_not_kept_and_a_lost_block_is_noticed(place: str) -> None:
    async def run() -> None:
        store = store_at(place, SMALL)
        await store.open()
        key = await opened(store)
        assert await accept(store, key, names([1, 2, 3]), Terms(most_reports=2)) == [
            "accepted", "accepted", "over quota",
        ]  # fmt: skip
        assert sorted(await kept_ids(store, key)) == sorted(names([1, 2]))
        await accept(store, key, names([4]))
        async with store.session() as session:
            await session.fetch("DELETE FROM id_blocks WHERE place = (SELECT max(place) FROM id_blocks)")
        store._memories.clear()
        with pytest.raises(StoreError, match="3 people in a round, and has 2 ids"):
            await accept(store, key, names([9]))
        await store.close()

    asyncio.run(run())


async def _as_it_is(store: SqlStore) -> dict[str, list[list[object]]]:
    tables: dict[str, list[list[object]]] = {
        name: [] for name in ("sums", "id_blocks", "id_runs", "id_pages")
    }
    async for name, rows in store.dump():
        tables.get(name, []).extend(rows)
    return tables


async def _set_back(store: SqlStore, tables: dict[str, list[list[object]]]) -> None:
    """As a standby does that lacked the last transactions when it took over."""
    async with store.session() as session:
        for name, rows in tables.items():
            columns = TABLES[name]
            marks = ", ".join(f"${place}" for place in range(1, len(columns.split(", ")) + 1))
            await session.fetch(f"DELETE FROM {name}")
            await session.many(f"INSERT INTO {name} ({columns}) VALUES ({marks})", rows)


@pytest.mark.parametrize(
    ("kept", "lost", "since"), [(3, 2, 2), (3, 2, 4), (3, 14, 14), (14, 14, 14), (7, 1, 9)]
)
def test_who_remembers_what_a_database_has_lost_notices(kept: int, lost: int, since: int, place: str) -> None:
    async def run() -> None:
        stores = [store_at(place, SMALL) for _ in range(2)]
        for store in stores:
            await store.open()
        key = await opened(stores[0])
        told = names(list(range(kept + lost + since)))
        for name in told[:kept]:
            await accept(stores[0], key, [name])
        before = await _as_it_is(stores[0])
        for name in told[kept : kept + lost]:
            await accept(stores[0], key, [name])
        await _set_back(stores[1], before)
        for name in told[kept + lost :]:  # as many transactions, and as many ids, as were lost, or more
            assert await accept(stores[1], key, [name]) == ["accepted"]
        wanted = ["repeated"] * kept + ["accepted"] * lost + ["repeated"] * since
        assert await accept(stores[0], key, told) == wanted
        for store in stores:
            await store.close()

    asyncio.run(run())


def test_a_round_that_opens_meanwhile_is_not_called_closed(tmp_path: Path) -> None:
    async def run() -> None:
        store = store_at(str(tmp_path / "store.db"), SMALL)
        await store.open()
        key = await opened(store)
        async with store.session() as session:  # as PostgreSQL sees it that looked for sums a moment before
            await session.fetch("DELETE FROM sums")
        with pytest.raises(ConflictError, match="not open yet"):
            await accept(store, key, names([1]))
        await store.close()

    asyncio.run(run())


def test_a_process_forgets_the_round_that_it_met_longest_ago(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sidelight.service.sql.MOST_REMEMBERED", 0)

    async def run() -> None:
        store = store_at(str(tmp_path / "store.db"), SMALL)
        await store.open()
        await store.add_task(TASK, b"{}", 2, 1)
        step = Step("open", Change("opened", {"round": 1, "digest": ""}), cells=2)
        keys = [(await store.change(TASK, number, 1, lambda *_: step)).key for number in (1, 2)]
        for key in keys * 2:
            await accept(store, key, names([key]))
            assert list(store._memories) == [key]
        assert [await accept(store, key, names([key])) for key in keys] == [["repeated"]] * 2
        await store.close()

    asyncio.run(run())


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, min_size=1), st.data())
def test_ids_in_order_are_found(ids: list[bytes], data: st.DataObject) -> None:
    ids += names(list(range(5)))  # halves in common
    ids = sorted(set(ids))
    mixed = data.draw(st.permutations(ids))
    content = ordered(b"".join(mixed))
    assert split(content) == ids
    asked = [*mixed[: len(mixed) // 2], bytes(15) + b"\x01"]
    kept = ids[::2]
    assert among(asked, b"".join(kept)) == [name for name in asked if name in kept]


def test_filters_miss_nothing_and_seldom_err() -> None:
    rng, seen = np.random.default_rng(1), Seen(Keeping(filter_words=1 << 12))
    runs = [rng.bytes(16 * 4096) for _ in range(6)]
    for place, run in enumerate(runs):
        seen.add_run(run, place)
    assert len(seen) == 6 * 4096
    assert [each.count / each.most for each in seen._filters] == [1.0, 1.0]
    for run in runs:
        assert seen.perhaps(run) == split(run)
    # Two full filters err 5.4 times among 10^5 on average; 30 are fewer than one in 10^12 such tests has.
    assert len(seen.perhaps(rng.bytes(16 * 100_000))) < 30


def test_nobody_makes_up_ids_that_a_filter_takes_for_known_ones() -> None:
    seen, known = Seen(Keeping(filter_words=1 << 12)), np.random.default_rng(2).bytes(16 * 4096)
    seen.add_run(known, 1)
    words = np.frombuffer(known, dtype=np.uint64).reshape(-1, 2)
    for high in (60, 61, 62, 63):  # what an odd factor leaves as it is, or nearly
        for second in (1, 3):
            made = words + np.array([1, second], dtype=np.uint64) * np.uint64(1 << high)
            # Of 4,096 a filter errs about 0.1 times; 10 are fewer than one in 10^15 such tests has.
            assert len(seen.perhaps(made.tobytes())) < 10
