"""One suite for both stores: an id counts once, sums and ids move together, closed stays closed."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import numpy as np
import pytest

import sidelight as sl
from postgres import Cluster
from service_cases import (
    AT_ONCE,
    NOW,
    STORES,
    cluster_fixture,
    kept_ids,
    opened,
    people,
    place_fixture,
    place_of,
    sent,
    statuses,
    task,
    two_phases,
    with_collector,
    with_store,
)
from sidelight.service.batches import Batch, Submission
from sidelight.service.collector import Collector, hash_token
from sidelight.service.committing import Answer, Committer, Grouping
from sidelight.service.errors import ConflictError, NotFoundError, NotShownError, StoreError
from sidelight.service.postgres import PostgresStore
from sidelight.service.sqlite import SqliteStore
from sidelight.service.store import Store
from sidelight.service.stores import store_of

__all__ = ["cluster_fixture", "place_fixture"]


async def _sums_are(collector: Collector, made, reports, number: int = 1) -> None:
    asked = await collector.asked(made.id, number)
    wanted = asked.tally.row(asked.wire.unpack([item.payload for item in reports]).reports)
    assert np.array_equal(await collector.store.sums(asked.key), wanted)


def test_reports_count_once_and_sums_are_theirs(place: str) -> None:
    made = task()

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        reports = sent(made.design.first, people(900))  # several blocks of ids, and some more
        assert set(await statuses(collector, made, reports[:600])) == {"accepted"}
        mixed = await statuses(collector, made, [*reports[300:], reports[899]])
        assert mixed == ["repeated"] * 300 + ["accepted"] * 300 + ["repeated"]
        await _sums_are(collector, made, reports)

    with_collector(place, work)


def test_what_is_no_report_is_refused_and_counts_nothing(place: str) -> None:
    made = task()

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        fine, *others = sent(made.design.first, people(4))
        bad = [
            Submission(others[0].id, b""), Submission(others[1].id, others[1].payload + b"\0"),
            Submission(others[2].id, b"\xff" * len(fine.payload)),
        ]  # fmt: skip
        assert await statuses(collector, made, [bad[0], fine, *bad[1:]]) == [
            "malformed", "accepted", "malformed", "malformed",
        ]  # fmt: skip
        assert await statuses(collector, made, others) == ["accepted"] * 3
        await _sums_are(collector, made, [fine, *others])

    with_collector(place, work)


def test_a_round_goes_its_way_and_its_trail_replays(place: str) -> None:
    made = task(2)

    async def work(collector: Collector) -> None:
        assert await collector.make(made)
        assert not await collector.make(made)
        with pytest.raises(ConflictError, match="cannot become closed"):
            await collector.close(made.id, 1)
        first = await collector.open(made.id, 1)
        assert await collector.open(made.id, 1) == first
        reports = sent(made.design.first, people(20))
        await statuses(collector, made, reports[:10])
        closed = await collector.close(made.id, 1)
        assert await collector.close(made.id, 1) == closed
        assert await statuses(collector, made, reports) == ["repeated"] * 10 + ["closed"] * 10
        await _sums_are(collector, made, reports[:10])
        with pytest.raises(ConflictError, match="never back"):
            await collector.open(made.id, 1)
        published = await collector.publish(made.id, 1)
        assert await collector.publish(made.id, 1) == published
        assert [item.data["kind"] for item in await collector.trail(made.id)] == [
            "made", "opened", "closed", "published",
        ]  # fmt: skip
        await collector.retire(made.id, 1)
        await collector.retire(made.id, 1)
        assert await statuses(collector, made, reports[:1]) == ["closed"]
        with pytest.raises(NotShownError, match="retention"):
            await collector.estimates(made.id, 1)
        assert (await collector.published(made.id, 1)).published == published.published
        assert [item.is_retired for item in await collector.store.rounds(made.id)] == [True, False]
        await collector.trail(made.id)
        await collector.open(made.id, 2)
        assert set(await statuses(collector, made, reports, 2)) == {"accepted"}

    with_collector(place, work)


def test_an_edited_store_is_noticed(place: str) -> None:
    made = task()

    async def work(store: Store) -> None:
        await opened(Collector(store, AT_ONCE, lambda: NOW), made)
        async with store.session() as session:
            await session.fetch("UPDATE rounds SET state = $1", "draft")
        with pytest.raises(sl.InputError, match="changed by hand"):
            await Collector(store).trail(made.id)

    with_store(place, work)


def test_a_quota_is_exact(place: str) -> None:
    made = task(most_reports=7)

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        reports = sent(made.design.first, people(20))
        await statuses(collector, made, reports[:5])
        assert await statuses(collector, made, reports[4:9]) == [
            "repeated", "accepted", "accepted", "over quota", "over quota",
        ]  # fmt: skip
        assert await statuses(collector, made, reports[:9]) == ["repeated"] * 7 + ["over quota"] * 2
        await _sums_are(collector, made, reports[:7])

    with_collector(place, work)


def test_a_token_is_good_for_one_report(place: str) -> None:
    made = task(needs_token=True)

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        first, second = map(hash_token, await collector.tokens(made.id, 1, 2))
        plain = sent(made.design.first, people(5))
        hashes = [first, first, None, hash_token("made up"), second]
        reports = [
            Submission(item.id, item.payload, token) for item, token in zip(plain, hashes, strict=True)
        ]
        wanted = ["accepted", "bad token", "bad token", "bad token", "accepted"]
        assert await statuses(collector, made, reports) == wanted
        again = await statuses(collector, made, reports)
        assert again == ["repeated", "bad token", "bad token", "bad token", "repeated"]
        await _sums_are(collector, made, [reports[0], reports[4]])

    with_collector(place, work)


def test_made_up_tokens_take_no_place_of_a_quota(place: str) -> None:
    made = task(needs_token=True, most_reports=2)

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        tokens = [hash_token(token) for token in await collector.tokens(made.id, 1, 3)]
        plain = sent(made.design.first, people(6))
        hashes = [hash_token("made up"), None, *tokens, tokens[2]]
        reports = [
            Submission(item.id, item.payload, token) for item, token in zip(plain, hashes, strict=True)
        ]
        wanted = ["bad token", "bad token", "accepted", "accepted", "over quota", "bad token"]
        assert await statuses(collector, made, reports) == wanted
        # Who was not counted has not used up a token.
        assert await statuses(collector, made, reports[4:5]) == ["over quota"]
        await _sums_are(collector, made, reports[2:4])

    with_collector(place, work)


def test_sums_that_were_edited_after_closing_are_not_shown(place: str) -> None:
    made = task()

    async def work(store: Store) -> None:
        collector = Collector(store, AT_ONCE, lambda: NOW)
        await opened(collector, made)
        await statuses(collector, made, sent(made.design.first, people(9)))
        await collector.close(made.id, 1)
        await collector.estimates(made.id, 1)
        async with store.session() as session:
            (size,) = (await session.fetch("SELECT max(length(cells)) FROM sums"))[0]
            await session.fetch("UPDATE sums SET cells = $1", (1).to_bytes(8, "little") * (size // 8))
        for look in (collector.estimates, collector.publish):
            with pytest.raises(StoreError, match="not those that it was closed with"):
                await look(made.id, 1)

    with_store(place, work)


def test_a_cancelled_caller_leaves_no_transaction_open(tmp_path) -> None:
    async def work(store: SqliteStore) -> None:
        held, free = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            free.wait()

        busy = asyncio.create_task(store._call(hold))
        await asyncio.to_thread(held.wait)
        cut = asyncio.create_task(store.ping())
        for _ in range(3):
            await asyncio.sleep(0)  # its BEGIN waits for the thread
        cut.cancel()
        await asyncio.sleep(0)
        free.set()
        await busy
        with pytest.raises(asyncio.CancelledError):
            await cut
        await store.ping()

    with_store(str(tmp_path / "store.db"), work)


def test_commits_wait_for_the_disk_whatever_the_database_is_used_to(cluster: Cluster) -> None:
    place = cluster.database()

    async def unlearn(store: PostgresStore) -> None:
        async with store.session() as session:
            name = (await session.fetch("SELECT current_database()"))[0][0]
            await session.fetch(f"ALTER DATABASE {name} SET synchronous_commit = off")

    async def look(store: PostgresStore) -> None:
        for _ in range(2):
            async with store.session() as session:
                assert (await session.fetch("SHOW synchronous_commit"))[0][0] == "on"

    with_store(place, unlearn)
    with_store(place, look)


def test_what_waits_shares_the_next_transactions() -> None:
    async def run() -> None:
        taken, free = [], asyncio.Event()

        async def accept(items: Batch) -> list[Answer]:
            taken.append(len(items))
            await free.wait()
            return [Answer("accepted")] * len(items)

        committer = Committer(accept, Grouping(most=50, seconds=0.0))
        upload = Batch.of([Submission(bytes(16), b"")] * 16)
        first = asyncio.create_task(committer.submit(upload))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rest = [asyncio.create_task(committer.submit(upload)) for _ in range(8)]
        await asyncio.sleep(0)
        assert taken == [16]
        free.set()
        assert all(len(each) == 16 for each in await asyncio.gather(first, *rest))
        await committer.drain()
        assert taken == [16, 48, 48, 32]

    asyncio.run(run())


def test_the_embedded_store_is_private_and_keeps_no_order(tmp_path) -> None:
    async def work(store: SqliteStore) -> None:
        assert (tmp_path / "store.db").stat().st_mode & 0o077 == 0
        async with store.session() as session:
            assert (await session.fetch("PRAGMA secure_delete"))[0][0] == 1
            for table in ("id_blocks", "reports", "tokens"):
                with pytest.raises(StoreError, match="no such column: rowid"):
                    await session.fetch(f"SELECT rowid FROM {table}")

    with_store(str(tmp_path / "store.db"), work)


def test_the_second_phase_is_computed_from_the_sums(place: str) -> None:
    made = two_phases()

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        with pytest.raises(ConflictError, match="close that"):
            await collector.open(made.id, 2)
        first = made.design.first.randomise(people(400), seed=1)
        await statuses(collector, made, sent(made.design.first, people(400), 1))
        await collector.close(made.id, 1)
        await collector.open(made.id, 2)
        second = (await collector.asked(made.id, 2)).round.protocol
        reports = second.randomise(people(600, 9), seed=2)
        assert set(await statuses(collector, made, sent(second, people(600, 9), 2), 2)) == {"accepted"}
        said = await collector.estimates(made.id, 2)
        wanted = sl.estimate([first, reports])
        assert [row["frequency"] for row in said["estimates"]] == [row.frequency for row in wanted]
        assert [row["upper"] for row in said["estimates"]] == [row.upper for row in wanted]

    with_collector(place, work)


def test_figures_of_a_small_crowd_are_shown_to_nobody(place: str) -> None:
    made = task(smallest_crowd=10)

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        reports = sent(made.design.first, people(10))
        await statuses(collector, made, reports[:9])
        with pytest.raises(NotShownError, match="fewer than 10 people"):
            await collector.estimates(made.id, 1)
        await collector.close(made.id, 1)
        with pytest.raises(NotShownError, match="fewer than 10 people"):
            await collector.publish(made.id, 1)

    with_collector(place, work)


def test_unknown_things_are_not_found(place: str) -> None:
    async def work(collector: Collector) -> None:
        with pytest.raises(NotFoundError):
            await collector.task("0" * 64)
        await collector.make(task())
        with pytest.raises(NotFoundError, match="no round 2"):
            await collector.asked(task().id, 2)
        with pytest.raises(ConflictError, match="draft"):
            await collector.asked(task().id, 1)

    with_collector(place, work)


def test_retention_drops_a_round_when_its_time_has_come(place: str) -> None:
    made, clock = task(retention_days=2), [NOW]

    async def work(store: Store) -> None:
        collector = Collector(store, AT_ONCE, lambda: clock[0])
        await opened(collector, made)
        await statuses(collector, made, sent(made.design.first, people(5)))
        await collector.close(made.id, 1)
        await collector.publish(made.id, 1)
        clock[0] += 2 * 86_400 - 1
        assert await collector.retire_due() == []
        clock[0] += 1
        assert await collector.retire_due() == [(made.id, 1)]
        assert await collector.retire_due() == []

    with_store(place, work)


def test_kept_reports_come_back_in_the_order_of_their_random_ids(place: str) -> None:
    made = task(keeps_reports=True)

    async def work(collector: Collector) -> None:
        await opened(collector, made)
        reports = sent(made.design.first, people(50))
        await statuses(collector, made, reports)
        key = (await collector.asked(made.id, 1)).key
        kept = [payload async for chunk in collector.store.reports(key, 7) for payload in chunk]
        assert kept == [item.payload for item in sorted(reports, key=lambda item: item.id)]

    with_collector(place, work)


@pytest.mark.parametrize("target", STORES)
def test_a_dump_of_one_store_is_loaded_into_another(place: str, target: str, request, tmp_path) -> None:
    made, there = task(keeps_reports=True), place_of(request, target, tmp_path)
    reports = sent(made.design.first, people(30))
    chunks = []

    async def save(collector: Collector) -> None:
        await opened(collector, made)
        await statuses(collector, made, reports[:20])
        await collector.store.add_key("ada", b"h" * 32)
        chunks.extend([chunk async for chunk in collector.store.dump(7)])

    async def restore(collector: Collector) -> None:
        async def rows():
            for chunk in chunks:
                yield chunk

        await collector.store.load(rows(), NOW + 1)
        assert await collector.store.keys() == {"ada": b"h" * 32}
        assert (await collector.trail(made.id))[-1].data["kind"] == "restored"
        # What came after the backup is counted again when its device sends it again; the rest is repeated.
        assert await statuses(collector, made, reports) == ["repeated"] * 20 + ["accepted"] * 10
        await _sums_are(collector, made, reports)
        await collector.make(task(2))
        await collector.open(task(2).id, 1)
        with pytest.raises(sl.InputError, match="restore into an empty one"):
            await collector.store.load(rows(), NOW)

    with_collector(place, save)
    with_collector(there, restore)


def test_an_id_counts_once_in_each_round(place: str) -> None:
    """Ids are random, so that rounds and tasks do not share them but by a sender's will."""
    tasks = [(task(2), 1), (task(2), 2), (task(), 1)]

    async def work(collector: Collector) -> None:
        reports = sent(tasks[0][0].design.first, people(30))
        for made, number in tasks:
            await collector.make(made)
            await collector.open(made.id, number)
            assert await statuses(collector, made, reports, number) == ["accepted"] * 30
            assert await statuses(collector, made, reports[::-1], number) == ["repeated"] * 30
            await _sums_are(collector, made, reports, number)
        keys = [(await collector.asked(made.id, number)).key for made, number in tasks]
        ids = [name for key in keys for name in await kept_ids(collector.store, key)]
        assert Counter(ids) == {item.id: 3 for item in reports}

    with_collector(place, work)


def test_two_stores_at_once_count_each_id_once(place: str) -> None:
    """Two connections, as two workers have, send the same ids at the same moment."""
    made, times = task(), 30

    async def work(store: Store) -> None:
        other = store_of(place)
        await other.open()
        collectors = [Collector(store, AT_ONCE, lambda: NOW), Collector(other, AT_ONCE, lambda: NOW)]
        await opened(collectors[0], made)
        reports = sent(made.design.first, people(10 * times))
        for start in range(0, len(reports), 10):
            batch = reports[start : start + 10]
            both = await asyncio.gather(
                statuses(collectors[0], made, batch), statuses(collectors[1], made, batch[::-1])
            )
            assert Counter([*both[0], *both[1]]) == {"accepted": 10, "repeated": 10}
        await _sums_are(collectors[0], made, reports)
        await other.close()

    with_store(place, work)


def test_closing_leaves_no_upload_behind(place: str) -> None:
    """Uploads race with the closing of their round: what was accepted is in its sums, and nothing later."""
    made = task()

    async def work(store: Store) -> None:
        other = store_of(place)
        await other.open()
        senders, closer = Collector(store, AT_ONCE), Collector(other, AT_ONCE)
        await opened(senders, made)
        reports = sent(made.design.first, people(400))
        uploads = [statuses(senders, made, reports[i : i + 10]) for i in range(0, 400, 10)]

        async def close() -> np.ndarray:
            for _ in range(20):
                await asyncio.sleep(0)
            found = await closer.close(made.id, 1)
            return await other.sums(found.key)

        *answers, row = await asyncio.gather(*uploads, close())
        accepted = sum(words.count("accepted") for words in answers)
        assert int(row[0]) == accepted == await senders.people(made.id, 1)
        assert sum(words.count("closed") for words in answers) == 400 - accepted
        await other.close()

    with_store(place, work)


def test_a_store_that_cannot_be_opened_says_why(tmp_path) -> None:
    async def nothing(_store: Store) -> None:
        pass

    with pytest.raises(sl.InputError, match="does not exist; create it"):
        with_store(str(tmp_path / "no" / "store.db"), nothing)
    with pytest.raises(sl.InputError, match="give a postgresql:// URL"):
        store_of("mysql://localhost/x")
