"""How every row is measured and printed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DATA = Path(os.environ.get("SIDELIGHT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Row:
    """One step: seconds of a peer, of a good numpy version and of ours; None where there is none."""

    step: str
    peer: float | None
    plain: float | None
    ours: float


SHOWN: list[tuple[str, Row]] = []
"""Every row that this run has shown, with its table's title."""


SHORT = 0.01
"""Calls that take less are timed several at a time: the clock and cold caches would blur them."""


def fastest(runs: dict[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Return the least processor seconds of each contestant, in turns, so that a busy moment hits all alike.

    The first, unmeasured call compiles and warms up.
    """
    times = {}
    for name, run in runs.items():
        run()
        times[name] = 1 + int(SHORT / max(_taken(run, 1), 1e-6))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], _taken(run, times[name]))
    return best


def _taken(run: Callable[[], object], times: int) -> float:
    """Return the processor seconds of one call, the mean of several."""
    start = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - start) / times


def best_of(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the least of several wall times; the first, unmeasured call compiles and warms up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


_TELLING_ITS_PEAK = """
import sys
from sidelight.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as status:
        sys.stderr.write(next(line for line in status if line.startswith("VmHWM")))
"""


def command(*arguments: str) -> tuple[float, float]:
    """Return the wall seconds and the peak memory in MB of a second run of a command; on Linux.

    The command tells its peak itself: what `wait4` tells of a child holds what its parent had when it forked.
    """
    program = [sys.executable, "-c", _TELLING_ITS_PEAK, *arguments]
    seconds, peak = 0.0, 0.0
    for _ in range(2):
        start = time.perf_counter()
        done = subprocess.run(
            program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        seconds, peak = time.perf_counter() - start, int(done.stderr.split()[-2]) / 1024
    return seconds, peak


def show(title: str, rows: list[Row]) -> None:
    """Print a table of seconds and ratios."""
    print(f"\n{title}")
    print(f"{'step':<52}{'peer':>11}{'numpy':>11}{'ours':>11}{'x peer':>9}{'x numpy':>9}")
    for row in rows:
        SHOWN.append((title, row))
        cells = [_seconds(row.peer), _seconds(row.plain), _seconds(row.ours)]
        ratios = [_ratio(row.peer, row.ours), _ratio(row.plain, row.ours)]
        print(f"{row.step:<52}" + "".join(f"{c:>11}" for c in cells) + "".join(f"{r:>9}" for r in ratios))


def summary() -> None:
    """Print which of all rows are slower than numpy or than their peer, and the least ratios."""
    beside = [row for _, row in SHOWN if row.plain is not None]
    slower = [(title, row) for title, row in SHOWN if row.plain is not None and row.plain < row.ours]
    behind = [(title, row) for title, row in SHOWN if row.peer is not None and row.peer < row.ours]
    print(f"\n{len(SHOWN)} rows, {len(beside)} beside numpy: {len(slower)} BELOW it")
    print(f"{len(behind)} below a peer")
    for title, row in slower:
        print(f"  below numpy: {_ratio(row.plain, row.ours)} {row.step} ({title})")
    for title, row in behind:
        print(f"  below the peer: {_ratio(row.peer, row.ours)} {row.step} ({title})")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g} s"


def _ratio(other: float | None, ours: float) -> str:
    return "-" if other is None else f"{other / ours:.3g}"
