"""Refusals over HTTP: application/problem+json (RFC 9457), and which error of ours is which status."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sidelight.foundation.errors import InputError
from sidelight.service.errors import BusyError, ConflictError, NotFoundError, NotShownError, StoreError

PROBLEM = "application/problem+json"
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404), (ConflictError, 409), (NotShownError, 403), (BusyError, 503), (StoreError, 503),
    (InputError, 400),
)  # fmt: skip
_WAIT = 1
"""Seconds after which a sender may come back when the store is busy or away."""
_log = logging.getLogger("sidelight.service")


class ProblemError(Exception):
    """A refusal with its status, in words, and after how many seconds to come back."""

    def __init__(self, status: int, detail: str, wait: int = 0) -> None:
        """Take what is answered."""
        super().__init__(detail)
        self.status, self.detail, self.wait = status, detail, wait


def problem(status: int, detail: str, wait: int = 0) -> Response:
    """Return the response of a refusal."""
    title = HTTPStatus(status).phrase
    content = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})
    headers = {"Retry-After": str(wait)} if wait else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(content, status, headers, PROBLEM)


def status_of(error: Exception) -> int:
    """Return the status that one of our errors is answered with."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def add_handlers(app: FastAPI, failed: Any) -> None:
    """Let every refusal of an application be a problem; `failed` counts those of the store."""

    async def ours(_request: Request, error: Exception) -> Response:
        if isinstance(error, ProblemError):
            return problem(error.status, error.detail, error.wait)
        status = status_of(error)
        if isinstance(error, StoreError):
            failed.inc()
            _log.error("the store failed", extra={"said": {"error": str(error)}})
            return problem(status, "The store does not answer; come back later.", _WAIT)
        return problem(status, str(error), _WAIT if isinstance(error, BusyError) else 0)

    async def framework(_request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return problem(error.status_code, str(error.detail))
        return problem(500, "Something went wrong on our side.")

    async def invalid(_request: Request, error: Exception) -> Response:
        faults = error.errors() if isinstance(error, RequestValidationError) else []
        said = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:3])
        return problem(400, said or "The request cannot be read.")

    async def unforeseen(_request: Request, error: Exception) -> Response:
        # What a sender sent may be in the error's words, so only its kind is written down.
        _log.error("an internal error", extra={"said": {"error": type(error).__name__}})
        return problem(500, "Something went wrong on our side.")

    kinds: list[type[Exception]] = [ProblemError, *(kind for kind, _ in _STATUS)]
    for kind in kinds:
        app.add_exception_handler(kind, ours)
    app.add_exception_handler(HTTPException, framework)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unforeseen)
