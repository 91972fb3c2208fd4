"""The application over HTTP in one process, for the tests that need no socket."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from service_cases import AT_ONCE
from sidelight.service.app import make_app
from sidelight.service.batches import Submission
from sidelight.service.keys import hash_key
from sidelight.service.rates import Limits
from sidelight.service.store import Store
from sidelight.service.stores import store_of
from sidelight.service.task import Task

KEY = "an operator's key of the tests"
OPERATOR = {"Authorization": f"Bearer {KEY}"}


@asynccontextmanager
async def served(store: Store, limits: Limits | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """Start the application over a store, with one operator."""
    app = make_app(store, limits or Limits(rate=0), AT_ONCE)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    client = httpx.AsyncClient(transport=transport, base_url="http://service")
    async with app.router.lifespan_context(app), client:
        await store.add_key("tester", hash_key(KEY))
        yield client


def with_service(
    place: str, work: Callable[[httpx.AsyncClient], Awaitable[object]], limits: Limits | None = None
) -> None:
    """Run something against the application."""

    async def run() -> None:
        async with served(store_of(place), limits) as client:
            await work(client)

    asyncio.run(run())


async def opened(client: httpx.AsyncClient, made: Task, number: int = 1) -> str:
    """Make a task, open a round of it, and return the round's digest."""
    answer = await client.post("/v1/tasks", content=made.document, headers=OPERATOR)
    assert answer.status_code in (200, 201), answer.text
    return await step(client, made, "open", number)


async def step(client: httpx.AsyncClient, made: Task, name: str, number: int = 1) -> str:
    """Take a step of a round, and return the round's digest."""
    answer = await client.post(f"{path(made, number)}/{name}", headers=OPERATOR)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["digest"])


def path(made: Task, number: int = 1) -> str:
    return f"/v1/tasks/{made.id}/rounds/{number}"


def body(digest: str, items: Sequence[Submission]) -> dict[str, Any]:
    """An upload as JSON."""
    reports = [
        {"id": b64encode(item.id).decode(), "report": b64encode(item.payload).decode()} for item in items
    ]
    return {"round": digest, "reports": reports}
