"""The studio over HTTP: the page, the state, changes, work, exports, and the stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from html import escape
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from sidelight.foundation.errors import SidelightError
from sidelight.service.bodies import read_body
from sidelight.service.problems import ProblemError, problem
from sidelight.studio import messages as said
from sidelight.studio.exports import EXPORTS, exported
from sidelight.studio.guard import Guard, Keys
from sidelight.studio.history import LARGEST_STATE
from sidelight.studio.office import Office

M = TypeVar("M", bound=BaseModel)

JSON = "application/json"
_LARGEST_CHANGE = 2 << 20
_BEAT = 15.0
"""Seconds after which a quiet stream says that it is there."""
_ASSETS = {"studio.js": "text/javascript", "studio.css": "text/css", "icon.svg": "image/svg+xml"}
_ORDER: TypeAdapter[Any] = TypeAdapter(said.WorkOrder)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sidelight studio: {name}</title><link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/studio.css"></head>
<body><div id="studio"></div><script type="module" src="/assets/studio.js"></script></body></html>
"""
Answer = Callable[[Request], Awaitable[Response]]


def make_app(office: Office, keys: Keys, hosts: frozenset[str]) -> ASGIApp:
    """Return the application over an office."""
    routes = [
        Route("/", _answered(_page, office)),
        Route("/assets/{name}", _answered(_asset, office)),
        Route("/api/state", _answered(_state, office)),
        Route("/api/pair", _answered(_pair, office)),
        Route("/api/changes", _answered(_changes, office), methods=["POST"]),
        Route("/api/events", _answered(_events, office)),
        Route("/api/work", _answered(_order, office), methods=["POST"]),
        Route("/api/work/{work}", _answered(_cancel, office), methods=["DELETE"]),
        Route("/api/export/{kind}", _answered(_export, office)),
        Route("/api/import", _answered(_import, office), methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), keys, hosts)


def _answered(answer: Callable[[Request, Office], Awaitable[Response]], office: Office) -> Answer:
    """Return a route whose errors are problems in words."""

    async def call(request: Request) -> Response:
        try:
            return await answer(request, office)
        except ProblemError as error:
            return problem(error.status, error.detail)
        except SidelightError as error:
            return problem(400, str(error))

    return call


async def _body(request: Request, largest: int) -> bytes:
    """Return the body of a request that is JSON and not too large."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        raise ProblemError(415, f"the body must be {JSON}.")
    return await read_body(request, largest)


def _parsed(parse: Callable[[bytes], M], body: bytes) -> M:
    """Return what a body says, or refuse it in words."""
    try:
        return parse(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProblemError(400, f"{where}: {first['msg']}." if where else f"{first['msg']}.") from None


def _json(message: BaseModel) -> Response:
    return Response(message.model_dump_json(), media_type=JSON)


async def _page(_request: Request, office: Office) -> Response:
    return HTMLResponse(_PAGE.format(name=escape(office.session.place.name)))


async def _asset(request: Request, _office: Office) -> Response:
    name = request.path_params["name"]
    place = files("sidelight.studio") / "assets" / name
    if name not in _ASSETS or not place.is_file():
        raise ProblemError(404, "there is no such file.")
    return Response(place.read_bytes(), media_type=_ASSETS[name])


async def _state(_request: Request, office: Office) -> Response:
    return _json(await office.asked(lambda session: session.state()))


async def _pair(request: Request, office: Office) -> Response:
    given = {name: request.query_params.get(name, "") for name in ("plan", "secret", "through")}
    return _json(await office.asked(lambda session: session.pair(**given)))


async def _changes(request: Request, office: Office) -> Response:
    changes = _parsed(said.Changes.model_validate_json, await _body(request, _LARGEST_CHANGE))
    return _json(await office.change(changes))


async def _order(request: Request, office: Office) -> Response:
    order = _parsed(_ORDER.validate_json, await _body(request, _LARGEST_CHANGE))
    return _json(await office.order(order))


async def _cancel(request: Request, office: Office) -> Response:
    await office.cancel(request.path_params["work"])
    return Response(status_code=204)


async def _import(request: Request, office: Office) -> Response:
    body = await _body(request, LARGEST_STATE)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise ProblemError(400, "the file is not UTF-8 text.") from None
    return _json(await office.import_state(text))


async def _export(request: Request, office: Office) -> Response:
    kind, plan = request.path_params["kind"], request.query_params.get("plan")
    if kind not in EXPORTS:
        raise ProblemError(404, f"there is no export {kind!r}; there are {', '.join(EXPORTS)}.")
    snapshot = await office.asked(lambda session: session.snapshot(plan))
    made = await asyncio.to_thread(exported, snapshot, kind)
    headers = {"Content-Disposition": f'attachment; filename="{made.name}"'}
    return Response(made.content, headers=headers, media_type=made.media)


async def _events(_request: Request, office: Office) -> Response:
    queue = office.listen()

    async def stream() -> AsyncIterator[str]:
        try:
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _BEAT)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if event is None:
                    return
                yield f"event: {event.event}\ndata: {event.model_dump_json()}\n\n"
        finally:
            office.leave(queue)

    return StreamingResponse(stream(), media_type="text/event-stream")
