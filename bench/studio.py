"""The studio in a browser: from the slider to figures on screen, and until drawn ones have settled.

It needs Chromium and its driver, and stands beside the tests, whose hand it borrows. Figures that are exact
or certified are timed from the slider's event to the frame that shows them, with 40 attributes of which each
is a secret. Drawn ones, of adult at delta 0.001, are timed from the change to their last digit: those that
decide the verdict, then all of them; first as soon as a page can ask, and once more after a budget was moved.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.timing import DATA

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

_MOVES = 120
_SECRETS = ("income", "sex", "race")


@contextmanager
def _opened(table: str) -> Iterator[Any]:
    """Yield a hand on a studio of its own."""
    from browser import new_browser
    from studio_browser import Hand
    from studio_process import Studio

    with tempfile.TemporaryDirectory() as folder:
        studio = Studio(DATA / f"{table}.parquet", Path(folder) / "state.json")
        browser = new_browser(Path(folder) / "browser")
        try:
            yield Hand(browser, studio)
        finally:
            browser.quit()
            studio.interrupt()


def _settle(hand: Any, change: str) -> str:
    """Make a change in the page's name, and return the seconds until figures have settled."""
    ask = (
        "const [body, done] = arguments, headers = {'content-type': 'application/json'};"
        "fetch('/api/changes', {method: 'POST', headers, body}).then((answer) => done(answer.status))"
    )
    started, decided = time.perf_counter(), 0.0
    assert hand.browser.execute_async_script(ask, f'{{"changes": [{change}], "window": "bench"}}') == 200
    while True:
        (shown,) = hand.state()["figures"]
        if not decided and not any(item["decisive"]["stale"] for item in shown["secrets"]):
            decided = time.perf_counter() - started
        if not shown["pending"]:
            return f"{decided:.1f} s to decide, {time.perf_counter() - started:.1f} s in all"
        time.sleep(0.1)


def _drawn(secrets: tuple[str, ...]) -> None:
    with _opened("adult") as hand:
        listed = ", ".join(f'{{"name": "{name}", "limit": 3.0}}' for name in secrets)
        _settle(hand, f'{{"change": "secrets", "secrets": [{listed}], "limit": null}}')
        adversary = '{"change": "adversary", "adversary": {"view": "report"}, "delta": 0.001}'
        print(f"  {', '.join(secrets)}: the first time {_settle(hand, adversary)}", flush=True)
        moved = '{"change": "budget", "plan": "plan-1", "attributes": ["age"], "epsilon": 0.9}'
        print(f"  {', '.join(secrets)}: after a slider {_settle(hand, moved)}", flush=True)


def main() -> None:
    """Print the times of both."""
    from studio_browser import latencies

    print(f"the studio in a browser; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with _opened("celeba_attr") as hand:
        hand.settled()
        hand.go("budgets")
        hand.revision()
        latencies(hand, 10)
        times = latencies(hand, _MOVES)
        middle, late = times[len(times) // 2], times[int(0.95 * len(times))]
        print(
            f"  slider to screen, 40 attributes, {_MOVES} moves: median {middle:.0f} ms, 95 % {late:.0f} ms"
        )
    print("sampled figures of adult at delta 0.001")
    _drawn(_SECRETS[:1])
    _drawn(_SECRETS)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
