"""Rounds that go on by themselves: closed when the task's pace says so, the next one computed and opened.

Every step is a change of the store's own, so it is taken once, whoever takes it: several workers may look
after the same tasks, and what a crash left undone between two steps is done at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from sidelight.foundation.errors import SidelightError
from sidelight.service.collector import Collector
from sidelight.service.errors import NotShownError
from sidelight.service.store import StoredRound
from sidelight.service.task import Task

SECONDS = 1.0
"""How often a worker looks."""
Log = Callable[..., None]


class Advancer:
    """Looks after the tasks of a collector that go on by themselves; `log` is told every step."""

    def __init__(self, collector: Collector, log: Log) -> None:
        """Take a collector whose store is open."""
        self._collector, self._log = collector, log
        self._over: set[str] = set()
        self._opened: dict[int, int] = {}
        self._failed: dict[str, str] = {}

    async def look(self) -> int:
        """Take every step that is due, and return how many there were."""
        taken = 0
        for name in await self._collector.store.tasks():
            if name in self._over:
                continue
            try:
                task = await self._collector.task(name)
                async for number, state in self._steps(task):
                    self._log(f"round {state}", task=name, round=number)
                    taken += 1
                self._failed.pop(name, None)
            except Exception as error:  # noqa: BLE001 - one task holds up no other; it is due at the next look
                self._fail(name, type(error).__name__)
        return taken

    def _fail(self, name: str, error: str) -> None:
        """Say why a task does not go on: once, and not every second."""
        if self._failed.get(name) != error:
            self._log("advancing failed", task=name, error=error)
        self._failed[name] = error

    async def _steps(self, task: Task) -> AsyncIterator[tuple[int, str]]:
        """Take the steps of one task that are due."""
        is_led = task.pace is not None or task.course.opens_itself
        for found in await self._collector.store.rounds(task.id) if is_led else ():
            if found.state == "open":
                if not await self._is_due(task, found):
                    return
                await self._collector.close(task.id, found.number)
                yield found.number, "closed"
            elif found.state == "draft":
                if found.number == 1:  # an operator opens the first one
                    return
                try:
                    await self._collector.open(task.id, found.number)
                except NotShownError:
                    break  # closed by hand before the smallest crowd was there: nothing can follow
                yield found.number, "open"
                return
        self._over.add(task.id)

    async def _is_due(self, task: Task, found: StoredRound) -> bool:
        if task.pace is None:
            return False
        people = await self._collector.people(task.id, found.number)
        if task.pace.reports is not None and people >= task.pace.reports:
            return True
        if task.pace.seconds is None or people < task.terms.smallest_crowd:
            return False
        return self._collector.now >= await self._since(found) + task.pace.seconds

    async def _since(self, found: StoredRound) -> int:
        """Return when a round was opened, as the trail says."""
        if found.key not in self._opened:
            for entry in (item.data for item in await self._collector.store.trail(found.task)):
                if entry["kind"] == "opened" and entry["round"] == found.number:
                    self._opened[found.key] = int(entry["time"])
        return self._opened[found.key]


async def keep_looking(collector: Collector, log: Log) -> None:
    """Look again and again until it is cancelled."""
    advancer = Advancer(collector, log)
    while True:
        try:
            await advancer.look()
        except SidelightError as error:
            log("advancing failed", error=type(error).__name__)
        await asyncio.sleep(SECONDS)
