"""Followers that are killed: `python killed.py FOLDER STATE KILLS SEED` says what was found as JSON.

One process loads everything once and forks each follower, so that fifty kills take seconds. FOLDER holds
report files, and `expected.json` with the sums of every batch by id.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from sidelight.collection.checkpoint import read_checkpoint
from sidelight.collection.following import Follower, Pace

MOST_IN_A_ROW = 4


def follow(folder: Path, checkpoint: Path) -> int:
    """Start a follower that writes a checkpoint after every batch; return its process id."""
    child = os.fork()
    if child:
        return child
    with Follower(folder, checkpoint, pace=Pace(batches=1, seconds=0.0, share=1.0)) as follower:
        follower.scan()
    os._exit(0)


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
    os.waitpid(follow(folder, state / "unharmed.json"), 0)
    duration = time.monotonic() - started
    done, finished, wrong, seen = 0, 0, [], set()
    while done < kills:
        checkpoint = state / f"{finished}.json"
        for _ in range(min(MOST_IN_A_ROW, kills - done)):
            child = follow(folder, checkpoint)
            time.sleep(moments.uniform(0, 0.9 * duration))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            done += os.WIFSIGNALED(status)
            if checkpoint.exists():
                seen.add(len(read_checkpoint(checkpoint)[0].batches))
            if not is_exact(checkpoint, expected, complete=False):
                wrong.append(f"{checkpoint.name} after kill {done}")
        _, status = os.waitpid(follow(folder, checkpoint), 0)
        if status or not is_exact(checkpoint, expected, complete=True):
            wrong.append(f"{checkpoint.name} at the end")
        finished += 1
    left = [path.name for path in state.iterdir() if path.suffix not in (".json", ".lock")]
    return {"kills": done, "finished": finished, "wrong": wrong, "seen": sorted(seen), "left": left}


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(found))
