"""The OpenAPI description: FastAPI's own, with the lean route and the problems that every call may answer."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sidelight.service.json_uploads import UploadIn
from sidelight.service.uploads import ARROW, JSON, UploadOut

_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}  # fmt: skip
_REFUSED = {
    "description": "Refused, in words.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
TASK_BODY = {
    "requestBody": {"required": True, "content": {JSON: {"schema": {"type": "object", "title": "Task"}}}}
}
_UPLOAD = "/v1/tasks/{task}/rounds/{number}/reports"


def describe(app: FastAPI) -> None:
    """Let an application describe itself whole."""

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]


def _described(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = _PROBLEM
    (sent, answered), defined = msgspec.json.schema_components(
        [UploadIn, UploadOut], ref_template="#/components/schemas/{name}"
    )
    schemas.update(defined)
    for path in made["paths"].values():
        for call in path.values():
            call["responses"].pop("422", None)
            call["responses"]["default"] = _REFUSED
    sample = made["paths"]["/v1/tasks/{task}/rounds/{number}"]["get"]
    made["paths"][_UPLOAD] = {"post": _upload(sample["parameters"], sent, answered)}
    return made


def _upload(parameters: list[Any], sent: dict[str, Any], answered: dict[str, Any]) -> dict[str, Any]:
    return {
        "tags": ["devices"],
        "summary": "Upload reports; each is answered by itself; an id counts once in its round, for ever.",
        "operationId": "upload",
        "parameters": parameters,
        "requestBody": {"required": True, "content": {JSON: {"schema": sent}, ARROW: {"schema": {}}}},
        "responses": {
            "200": {"description": "What became of each.", "content": {JSON: {"schema": answered}}},
            "default": _REFUSED,
        },
    }
