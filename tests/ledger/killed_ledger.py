"""A process that works with a ledger, killed again and again at random points (SIGKILL), then checked.

Usage: killed_ledger.py FOLDER KILLS SEED. Prints what was counted, as JSON. The worker answers one question
after another as fast as it can; the server is a file to which every report is appended. Each report holds
bytes from the operating system, so that a second noise for a question cannot hide.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from sidelight.ledger import Charge, Ledger, Limit, Question, Window
from sidelight.ledger.windows import DAY

LIMITS = [Limit.of(50.0, Window.sliding(days=30)), Limit.of(1e6, delta=1e-6)]
LONGEST = 0.04  # seconds that a worker lives at most
WAY = 0.002  # seconds that a report travels, and its answer too, so that some are killed meanwhile


def question(number: int) -> Question:
    """Return the question of a day: a fresh report and one through a memo of the week."""
    charges = Charge.of("a", "grr", 0.5), Charge.of("b", "grr 4 7", 1.0, str(number // 7))
    return Question("daily", number, charges)


def work(folder: Path) -> None:
    """Send what is pending, then answer one question a day, and compact the file at times, until killed."""
    arrived = os.open(folder / "arrived", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def send(_: Question, report: bytes) -> None:
        time.sleep(WAY)
        os.write(arrived, report + b"\n")
        time.sleep(WAY)

    with Ledger.open(folder / "ledger", "ann") as ledger:
        ledger.resume(send)
        number = len(ledger.answers)
        while True:
            noise = os.urandom(8).hex()
            ledger.answer(
                question(number), lambda _, n=number, x=noise: f"{n} {x}".encode(), send, now=number * DAY
            )
            number += 1
            if number % 4 == 0:
                ledger.compact()


def kill_once(folder: Path, wait: float) -> None:
    """Start a worker, and kill it after a while."""
    child = os.fork()
    if not child:
        try:
            work(folder)
        finally:
            os._exit(1)  # only an error ends the work
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        sys.exit("the worker stopped by itself")


def last_state(folder: Path) -> str:
    """Return the state of the newest question."""
    with Ledger.open(folder / "ledger", "ann") as ledger:
        answers = ledger.answers
    return answers[-1].state if answers else "none"


def checked(folder: Path) -> dict[str, int]:
    """Send what is pending, then compare what arrived with what was spent."""
    with Ledger.open(folder / "ledger", "ann") as ledger:
        with (folder / "arrived").open("ab") as arrived:
            ledger.resume(lambda _, report: arrived.write(report + b"\n"))
        reserved = [answer.question.round for answer in ledger.answers]
    arrivals = (folder / "arrived").read_text().splitlines()
    reports = set(arrivals)
    noises = Counter(int(report.split()[0]) for report in reports)
    lines = [json.loads(line[74:]) for line in (folder / "ledger").read_text().splitlines()]
    spent = Counter(line["round"] for line in lines if line["kind"] in ("reserve", "settled"))
    return {
        "questions": len(reserved),
        "sent again": len(arrivals) - len(reports),
        "two noises": sum(number > 1 for number in noises.values()),
        "spent twice": sum(number > 1 for number in spent.values()),
        "lost": len(set(reserved) - set(noises)) + (reserved != list(range(len(reserved)))),
        "never reserved": len(set(noises) - set(reserved)),
    }


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill so many workers, and print what was counted."""
    waits, states = random.Random(seed), Counter[str]()
    Ledger.create(folder / "ledger", "ann", LIMITS, now=0).close()
    for _ in range(kills):
        kill_once(folder, waits.uniform(0, LONGEST))
        states[f"died {last_state(folder)}"] += 1
    json.dump({"kills": kills, **checked(folder), **states}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
