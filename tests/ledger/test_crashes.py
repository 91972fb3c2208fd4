"""Crashes at every point: nothing spent twice, nothing sent under two noises, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from conftest import AT_MOST
from ledger_stores import Crash, MemoryStore, opened
from sidelight.foundation.errors import InputError
from sidelight.ledger import Charge, Ledger, Limit, OverspentError, Question
from sidelight.ledger.units import UNITS

QUESTIONS = (
    Question("x", 0, (Charge.of("a", "grr", 0.3),)),
    Question("y", 0, (Charge.of("a", "memo", 0.4, "0"), Charge.of("b", "grr", 0.2))),
    Question("x", 1, (Charge.of("a", "grr", 0.3),)),
    Question("y", 1, (Charge.of("a", "memo", 0.4, "0"), Charge.of("b", "grr", 0.2))),
    Question("z", 0, (Charge.of("a", "grr", 0.3),)),  # overspends
)
LIMIT = Limit.of(1.5)
KILLED = Path(__file__).with_name("killed_ledger.py")


class Server:
    """What arrived, and whether the answer to it is lost."""

    def __init__(self, lose: int = -1) -> None:
        self.got: list[bytes] = []
        self.lose = lose

    def take(self, _: Question, report: bytes) -> None:
        self.got.append(report)
        if len(self.got) - 1 == self.lose:
            raise Crash


def noises() -> object:
    """Return what makes a report that no other one equals, so that a second noise cannot hide."""
    numbers = count()
    return lambda question: f"{question.task} {question.round} {next(numbers)}".encode()


def work(store: MemoryStore, server: Server, noise) -> None:
    """Do what a device does when it starts: send what is pending, then go on where it was."""
    ledger = Ledger(store, "ann")
    ledger.resume(server.take)
    for question in QUESTIONS:
        try:
            ledger.answer(question, lambda _, q=question: noise(q), server.take, now=5)
        except OverspentError:
            assert question.task == "z"


def check(store: MemoryStore, server: Server) -> None:
    """Check all invariants once everything is done."""
    ledger = Ledger(MemoryStore(store.durable), "ann")
    by_question: dict[str, set[bytes]] = {}
    for report in server.got:
        by_question.setdefault(report.rsplit(b" ", 1)[0].decode(), set()).add(report)
    assert all(len(reports) == 1 for reports in by_question.values()), "sent under two noises"
    assert set(by_question) == {"x 0", "y 0", "x 1", "y 1"}, "something is lost"
    assert [answer.state for answer in ledger.answers] == ["acknowledged"] * 4
    kinds = Counter(json.loads(line[74:])["kind"] for line in store.durable.decode().splitlines())
    assert kinds == {"open": 1, "reserve": 4, "send": 4, "acknowledge": 4}, "spent twice"
    assert ledger.remaining(now=5)[0].left == round(0.1 * UNITS)


def start() -> bytes:
    store = MemoryStore()
    opened(store, [LIMIT])
    return store.durable


def crashes_of(content: bytes, lose: int = -1) -> list[tuple[MemoryStore, Server, object]]:
    """Return the world after a crash before or after every operation of the work on a disk."""
    worlds = []
    for crash_at in count():
        store, server, noise = MemoryStore(content, crash_at), Server(lose), noises()
        try:
            work(store, server, noise)
            return worlds
        except Crash:
            worlds.append((store, server, noise))
    return worlds


def test_a_crash_at_every_point_and_every_part_of_a_line_loses_nothing():
    worlds = crashes_of(start())
    assert len(worlds) == 1 + 3 * 12  # reading; three points of each of twelve entries
    for store, server, noise in worlds:
        for remains in store.may_remain():
            seen = Server()
            seen.got = list(server.got)
            again = MemoryStore(remains)
            work(again, seen, noise)
            check(again, seen)


def test_two_crashes_at_every_two_points_lose_nothing():
    for store, server, noise in crashes_of(start()):
        for remains in {store.durable, store.cached}:
            for crash_at in count():
                seen, again = Server(), MemoryStore(remains, crash_at)
                seen.got = list(server.got)
                try:
                    work(again, seen, noise)
                except Crash:
                    last = MemoryStore(again.cached)
                    work(last, seen, noise)
                    check(last, seen)
                    continue
                check(again, seen)
                break


@pytest.mark.parametrize("lose", range(4))
def test_a_lost_answer_sends_the_same_bytes_again(lose: int):
    store, server, noise = MemoryStore(start()), Server(lose), noises()
    with pytest.raises(Crash):
        work(store, server, noise)
    work(store, server, noise)
    check(store, server)
    assert server.got[lose] == server.got[lose + 1]


def test_a_disk_that_fails_closes_the_ledger_before_anything_is_sent():
    class Full(MemoryStore):
        def append(self, line: bytes) -> None:
            self.cached += line[:50]
            raise OSError(28, "No space left on device")

    store, server = Full(start()), Server()
    ledger = Ledger(store, "ann")
    with pytest.raises(InputError, match="cannot be written: No space left on device; nothing was sent"):
        ledger.answer(QUESTIONS[0], lambda _: b"1", server.take, now=5)
    with pytest.raises(InputError, match="the ledger is closed; open it again"):
        ledger.answer(QUESTIONS[0], lambda _: b"2", server.take, now=5)
    assert server.got == []
    again = MemoryStore(store.cached)
    work(again, server, noises())
    check(again, server)


def killed(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill a process that works with a ledger so many times; return what was counted."""
    done = subprocess.run(
        [sys.executable, KILLED, folder, str(kills), str(seed)],
        capture_output=True, text=True, timeout=AT_MOST, check=False, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_killed(figures: dict[str, int], kills: int) -> None:
    assert figures["kills"] == kills
    assert (
        figures["two noises"] == figures["spent twice"] == figures["lost"] == figures["never reserved"] == 0
    )
    assert figures["questions"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signals, and forks")
def test_25_kills_spend_nothing_twice_and_lose_nothing(tmp_path: Path):
    check_killed(killed(tmp_path, 25, seed=1), 25)


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signals, and forks")
def test_1000_kills_spend_nothing_twice_and_lose_nothing(tmp_path: Path):
    figures = killed(tmp_path, 1000, seed=2)
    check_killed(figures, 1000)
    assert min(figures[f"died {state}"] for state in ("reserved", "sent", "acknowledged")) > 0
    assert figures["sent again"] > 0
