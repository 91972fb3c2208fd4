"""What all rounds of a task lead to: a panel over time, the model of a label collection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from sidelight.service.collector import Collector
from sidelight.service.errors import ConflictError, NotFoundError
from sidelight.service.figures import check_crowd


async def over_time(collector: Collector, name: str, confidence: float = 0.95) -> Mapping[str, Any]:
    """Return the figures of a panel: of all rounds that enough people have answered, and changes."""
    task, sums = await collector.task(name), {}
    if not task.course.is_panel:
        raise NotFoundError("the task is no panel; ask for the figures of its rounds, one by one.")
    for found in await collector.store.rounds(name):
        if found.state != "draft" and not found.is_retired:
            part = await collector.sums(name, found.number)
            if part.people >= task.terms.smallest_crowd:
                sums[found.number] = part
    if not sums:
        check_crowd(task, [])
    said = await asyncio.to_thread(task.course.over_time, sums, confidence)
    return {"task": name, **said}


async def model(collector: Collector, name: str) -> Mapping[str, Any]:
    """Return the model that a label collection has led to; refused before its last round is closed."""
    task, earlier = await collector.task(name), []
    for found in await collector.store.rounds(name):
        if found.state in ("draft", "open"):
            raise ConflictError(
                f"the model is not learnt yet: round {found.number} of {task.rounds} is {found.state}."
            )
        earlier.append(await collector.left(task, found))
    return await asyncio.to_thread(task.course.model, name, earlier)
