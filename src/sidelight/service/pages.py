"""Pages for people: the questionnaire of a task, and the operator's page. All they load is from here.

A page may run scripts of this service and talk to it, and nothing else (Content-Security-Policy); what a
questionnaire sends is a report, made in the browser by the client in `assets/client.js`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sidelight.service.collector import Collector
from sidelight.service.errors import NotFoundError

_FOLDER = Path(__file__).parent / "assets"
_ASSETS = {
    "client.js": "text/javascript", "answer.js": "text/javascript", "operate.js": "text/javascript",
    "pages.css": "text/css", "icon.svg": "image/svg+xml",
}  # fmt: skip
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}  # fmt: skip


def add_pages(app: FastAPI, collector: Collector) -> None:
    """Add the pages and what they load."""

    async def questionnaire(request: Request) -> Response:
        await collector.task(request.path_params["task"])
        return _file("answer.html", "text/html")

    async def operate(_request: Request) -> Response:
        return _file("operate.html", "text/html")

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise NotFoundError(f"there is no asset {name!r}.")
        return _file(name, _ASSETS[name])

    app.router.routes += [
        Route("/t/{task}", questionnaire), Route("/operate", operate), Route("/assets/{name}", asset),
    ]  # fmt: skip


@lru_cache
def _content(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


def _file(name: str, kind: str) -> Response:
    return Response(_content(name), 200, _HEADERS, kind)
