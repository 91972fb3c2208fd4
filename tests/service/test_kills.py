"""Real kills under load: workers by SIGKILL, PostgreSQL by an immediate stop. Nothing lost, nothing doubled.

When something is killed is counted in uploads, never in seconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import httpx
import numpy as np
import pytest

from conftest import AT_MOST
from postgres import Cluster
from service_cases import cluster_fixture, people, place_fixture, sent
from service_farm import Farm, check_sums, prepared, send
from service_http import path
from sidelight.service.batches import Submission

__all__ = ["cluster_fixture", "place_fixture"]
SENDERS, BATCH, LANES = 4, 4, 3


async def _load(
    urls: Sequence[str], digest: str, reports: Sequence[Submission], between: Callable[[int], object]
) -> Counter[str]:
    """Send all reports from several senders at once; `between` is called after every upload."""
    words: Counter[str] = Counter()
    batches = iter([reports[start : start + BATCH] for start in range(0, len(reports), BATCH)])
    done, turn = 0, threading.Lock()

    def one_by_one(count: int) -> None:
        with turn:
            between(count)

    async def sender(url: str) -> None:
        nonlocal done
        async with httpx.AsyncClient(timeout=AT_MOST) as client:
            for batch in batches:
                words.update(await send(client, url, digest, batch))
                done += 1
                await asyncio.to_thread(one_by_one, done)

    await asyncio.gather(*(sender(urls[place % len(urls)]) for place in range(SENDERS)))
    return words


def _check_survived(place: str, times: int, every: int, strike: Callable[[Farm], object]) -> None:
    """Strike so often under load, after every few uploads: each report is answered, and counted once."""
    made, digest = prepared(place)
    reports = sent(made.design.first, people(BATCH * (times + 1) * every))
    farm = Farm(place)
    struck = []

    def between(done: int) -> None:
        if done % every == 0 and len(struck) < times:
            struck.append(done)
            strike(farm)

    try:
        farm.start()
        farm.start()
        words = asyncio.run(_load([f"{farm.urls[0]}{path(made)}/reports"], digest, reports, between))
    finally:
        farm.close()
    assert len(struck) == times
    assert set(words) <= {"accepted", "repeated"}
    assert words.total() == len(reports)
    check_sums(place, made, reports)


@pytest.mark.parametrize("kills", [20, pytest.param(500, marks=pytest.mark.deep)])
def test_killed_workers_lose_and_double_nothing(place: str, kills: int) -> None:
    rng = np.random.default_rng(kills)

    def kill(farm: Farm) -> None:
        farm.kill(int(rng.integers(2)))
        farm.start()

    _check_survived(place, kills, 3, kill)


@pytest.mark.parametrize("stops", [3, pytest.param(50, marks=pytest.mark.deep)])
def test_immediate_stops_of_postgresql_lose_and_double_nothing(cluster: Cluster, stops: int) -> None:
    _check_survived(cluster.database(), stops, 10, lambda _: cluster.crash())


@pytest.mark.parametrize("times", [50, pytest.param(10_000, marks=pytest.mark.deep)])
def test_two_processes_with_the_same_id_at_once_count_it_once(place: str, times: int) -> None:
    made, digest = prepared(place)
    reports = sent(made.design.first, people(times))
    farm = Farm(place, sockets=2)

    async def race() -> None:
        urls, waiting = [f"{url}{path(made)}/reports" for url in farm.urls], iter(reports)

        async def lane(client: httpx.AsyncClient) -> None:
            for report in waiting:
                both = await asyncio.gather(*(send(client, url, digest, [report]) for url in urls))
                assert sorted(word for words in both for word in words) == ["accepted", "repeated"]

        async with httpx.AsyncClient(timeout=AT_MOST) as client:
            await asyncio.gather(*(lane(client) for _ in range(LANES)))

    try:
        farm.start(0)
        farm.start(1)
        asyncio.run(race())
    finally:
        farm.close()
    check_sums(place, made, reports)
