"""Followers that are killed: `python killed.py FOLDER STATE KILLS SEED` says what was found as JSON.

One process loads everything once and forks each follower, so that fifty kills take seconds. Every second
follower kills itself at a random line of its work, which no load of the machine can shift; the others are
killed after a random time, which may be in the middle of a line. FOLDER holds report files, and
`expected.json` with the sums of every batch by id.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from sidelight.transport.checkpoint import read_checkpoint
from sidelight.transport.folder import Follower, Pace

MOST_IN_A_ROW = 4
MODULES = ("aggregator.py", "checkpoint.py", "folder.py", "files.py", "batches.py")


def work(folder: Path, checkpoint: Path, last_line: int | None = None) -> int:
    """Follow, with a checkpoint after every batch; return the number of lines executed, or die at one."""
    executed = 0

    def count(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal executed
        executed += event == "line"
        if executed == last_line:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    def enter(frame: FrameType, _event: str, _argument: object) -> object:
        path = frame.f_code.co_filename
        return count if "sidelight" in path and path.endswith(MODULES) else None

    sys.settrace(enter)
    with Follower(folder, checkpoint, pace=Pace(batches=1, seconds=0.0, share=1.0)) as follower:
        follower.scan()
    sys.settrace(None)
    return executed


def follow(folder: Path, checkpoint: Path, last_line: int | None = None) -> int:
    """Start a follower; return its process id."""
    child = os.fork()
    if child:
        return child
    work(folder, checkpoint, last_line)
    os._exit(0)


def was_killed(child: int) -> bool:
    """Wait for a follower; return whether it was killed before it had finished."""
    _, status = os.waitpid(child, 0)
    if status and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        raise SystemExit(f"a follower failed with the status {status}")
    return status != 0


def is_exact(checkpoint: Path, expected: dict[str, list[list[int]]], complete: bool) -> bool:
    """Whether a checkpoint's sums are exactly those of the batches it names."""
    if not checkpoint.exists():
        return not complete
    aggregator, _ = read_checkpoint(checkpoint)
    sums = [[0] * len(part) for part in next(iter(expected.values()))]
    for name in aggregator.batches:
        pairs = zip(sums, expected[name], strict=True)
        sums = [[a + b for a, b in zip(mine, more, strict=True)] for mine, more in pairs]
    kept = [[part.sums.tolist() for part in item.parts] for item in aggregator.sums]
    whole = set(aggregator.batches) == set(expected)
    return kept in ([], [sums]) and (whole or not complete) and bool(kept) >= complete


def main(folder: Path, state: Path, kills: int, seed: int) -> dict[str, object]:
    """Kill followers at random moments; whenever some were killed, let one finish, and compare."""
    pa.array(np.zeros(1)).is_valid()  # what Arrow loads at the first use is loaded here, once
    moments = random.Random(seed)
    expected = json.loads((folder / "expected.json").read_text())
    started = time.monotonic()
    lines = work(folder, state / "unharmed.json")
    duration = time.monotonic() - started
    done, at_lines, finished, wrong, seen = 0, 0, 0, [], set()
    while done < kills:
        checkpoint = state / f"{finished}.json"
        for attempt in range(min(MOST_IN_A_ROW, kills - done)):
            at_line = attempt % 2 == 0
            child = follow(folder, checkpoint, moments.randrange(1, lines // 2) if at_line else None)
            if not at_line:
                time.sleep(moments.uniform(0, 0.9 * duration))
                os.kill(child, signal.SIGKILL)
            killed = was_killed(child)
            done += killed
            at_lines += killed and at_line
            if checkpoint.exists():
                seen.add(len(read_checkpoint(checkpoint)[0].batches))
            if not is_exact(checkpoint, expected, complete=False):
                wrong.append(f"{checkpoint.name} after kill {done}")
        if was_killed(follow(folder, checkpoint)) or not is_exact(checkpoint, expected, complete=True):
            wrong.append(f"{checkpoint.name} at the end")
        finished += 1
    left = [path.name for path in state.iterdir() if path.suffix not in (".json", ".lock")]
    return {
        "kills": done, "at lines": at_lines, "finished": finished, "wrong": wrong, "seen": sorted(seen),
        "left": left,
    }  # fmt: skip


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(found))
