"""The application: the control plane by FastAPI, uploads by a lean route, both over one collector."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from asyncio import sleep as pause
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, params
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sidelight.foundation.errors import SidelightError
from sidelight.foundation.strict import parsed_table
from sidelight.service.advancing import keep_looking
from sidelight.service.bodies import read_body
from sidelight.service.canonical import digest_of, parsed_document
from sidelight.service.collector import MOST_TOKENS, Collector
from sidelight.service.committing import Grouping
from sidelight.service.exports import EXPORTS, PARQUET, export
from sidelight.service.figures import FIGURES
from sidelight.service.keys import operator_of
from sidelight.service.logs import log_event, start_logs
from sidelight.service.metrics import Metrics
from sidelight.service.openapi import TASK_BODY, describe
from sidelight.service.pages import add_pages
from sidelight.service.problems import ProblemError, add_handlers, problem, status_of
from sidelight.service.rates import Limits, Rates
from sidelight.service.results import model, over_time
from sidelight.service.store import Store, StoredRound
from sidelight.service.stores import store_of
from sidelight.service.task import task_from
from sidelight.service.uploads import Uploads

SETTINGS = "SIDELIGHT_SERVICE"
"""The environment variable that tells workers their settings."""
HOUR = 3600.0
UPLOAD = "/v1/tasks/{task}/rounds/{number}/reports"
TaskId = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="The SHA-256 of the task's document.")]
Number = Annotated[int, Path(ge=1, le=1_000_000, description="Of the round, from 1.")]
bearer = HTTPBearer(auto_error=False, description="An operator's key.")


@dataclass(frozen=True)
class Settings:
    """What a worker needs to know: where the store is, and its limits."""

    store: str
    limits: Limits = field(default_factory=Limits)
    grouping: Grouping = field(default_factory=Grouping)

    def to_text(self) -> str:
        """Return the settings for the environment of workers."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Return the settings that `to_text` wrote."""
        data = parsed_table(text, SETTINGS)
        return cls(data["store"], Limits(**data["limits"]), Grouping(**data["grouping"]))


def app_from_environment() -> FastAPI:
    """Return the application of a worker, for uvicorn."""
    start_logs()  # each worker is a process of its own
    settings = Settings.from_text(os.environ[SETTINGS])
    return make_app(store_of(settings.store), settings.limits, settings.grouping)


def make_app(store: Store, limits: Limits | None = None, grouping: Grouping | None = None) -> FastAPI:
    """Return the application over a store, which it opens when it starts and closes when it stops."""
    collector, metrics, bounds = Collector(store, grouping), Metrics(), limits or Limits()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await store.open()
        gc.freeze()  # what is there now stays: it need not be looked through for every few thousand reports
        log_event("started")
        working = [
            asyncio.create_task(_retire_hourly(collector)),
            asyncio.create_task(keep_looking(collector, log_event)),
        ]
        yield
        for item in working:
            item.cancel()
        await collector.drain()
        await store.close()
        log_event("stopped")

    app = FastAPI(
        title="Sidelight", version="1", lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/v1/openapi.json", separate_input_output_schemas=False,
    )  # fmt: skip
    add_handlers(app, metrics.failures)
    uploads = Uploads(collector, bounds, Rates(bounds), metrics)
    app.router.routes.append(Route(UPLOAD, _counted(uploads, metrics), methods=["POST"]))
    _add_public(app, collector)
    _add_operators(app, collector, bounds)
    _add_operations(app, collector, metrics)
    add_pages(app, collector)
    describe(app)
    return app


def _counted(uploads: Uploads, metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            response = await uploads.answer(request)
        except ProblemError as error:
            metrics.uploads.labels(str(error.status)).inc()
            return problem(error.status, error.detail, error.wait)
        except SidelightError as error:
            metrics.uploads.labels(str(status_of(error))).inc()
            raise
        metrics.uploads.labels("200").inc()
        return response

    return answer


async def _retire_hourly(collector: Collector) -> None:
    while True:
        try:
            for task, number in await collector.retire_due():
                log_event("retired", task=task, round=number)
        except SidelightError as error:  # what is due is still due in an hour
            log_event("retiring failed", error=type(error).__name__)
        await pause(HOUR)


def _document(request: Request, content: bytes, digest: str, age: str) -> Response:
    """Return a document that never changes, under a strong ETag."""
    headers = {"ETag": f'"{digest}"', "Cache-Control": age}
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    if headers["ETag"] in known or "*" in known:
        return Response(None, 304, headers)
    return Response(content, 200, headers, "application/json")


_FOR_EVER = "public, max-age=31536000, immutable"


def _add_public(app: FastAPI, collector: Collector) -> None:
    """Add what devices, and everybody, may ask."""

    @app.get("/v1/tasks/{task}", tags=["devices"])
    async def get_task(request: Request, task: TaskId) -> Response:
        """Return a task's document; its SHA-256 is the task's id."""
        return _document(request, (await collector.task(task)).document, task, _FOR_EVER)

    @app.get("/v1/tasks/{task}/state", tags=["devices"])
    async def get_state(task: TaskId) -> Response:
        """Return the state of every round, and the digests of their documents."""
        await collector.task(task)
        rounds = [_public(item) for item in await collector.store.rounds(task)]
        return _json({"task": task, "rounds": rounds})

    @app.get("/v1/tasks/{task}/rounds/{number}", tags=["devices"])
    async def get_round(request: Request, task: TaskId, number: Number) -> Response:
        """Return the document of a round that was opened."""
        asked = await collector.asked(task, number)
        return _document(request, asked.round.document, asked.round.digest, _FOR_EVER)

    @app.get("/v1/tasks/{task}/rounds/{number}/published", tags=["public"])
    async def get_published(request: Request, task: TaskId, number: Number) -> Response:
        """Return what was published of a round."""
        found = await collector.published(task, number)
        content = found.published or b""
        return _document(request, content, digest_of(content), _FOR_EVER)


def _add_operators(app: FastAPI, collector: Collector, limits: Limits) -> None:
    """Add what operators may do."""
    only = [Depends(_operator(collector))]
    _add_tasks(app, collector, limits, only)
    _add_figures(app, collector, only)
    _add_results(app, collector, only)


def _operator(collector: Collector) -> Callable[..., Awaitable[None]]:
    """Return the check that whoever asks has an operator's key."""

    async def operator(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
    ) -> None:
        name = None if given is None else operator_of(given.credentials, await collector.store.keys())
        if name is None:
            raise ProblemError(401, "This needs an operator's key: Authorization: Bearer KEY.")
        request.state.operator = name  # for the trail

    return operator


def _add_tasks(app: FastAPI, collector: Collector, limits: Limits, only: Sequence[params.Depends]) -> None:
    """Add what makes tasks, takes their rounds a step on, and lets people in."""

    @app.get("/v1/tasks", tags=["operators"], dependencies=only)
    async def list_tasks() -> Response:
        """Return the ids of all tasks."""
        return _json({"tasks": await collector.store.tasks()})

    @app.post("/v1/tasks", tags=["operators"], dependencies=only, status_code=201, openapi_extra=TASK_BODY)
    async def make_task(request: Request) -> Response:
        """Make a task; the same one twice is made once."""
        body = await read_body(request, limits.body)
        # A large design takes a while to be worked out; uploads go on.
        made = await asyncio.to_thread(lambda: task_from(parsed_document(body, "the task")))
        is_new = await collector.make(made, request.state.operator)
        if is_new:
            log_event("task made", task=made.id)
        return _json({"task": made.id}, 201 if is_new else 200)

    steps = {"open": collector.open, "close": collector.close, "publish": collector.publish}

    def add_step(name: str) -> None:
        @app.post(f"/v1/tasks/{{task}}/rounds/{{number}}/{name}", tags=["operators"], dependencies=only,
                  name=name, summary=f"{name.title()} a round; doing it twice changes nothing.")  # fmt: skip
        async def take(request: Request, task: TaskId, number: Number) -> Response:
            found = await steps[name](task, number, request.state.operator)
            log_event(f"round {found.state}", task=task, round=number)
            return _json(_round_data(found))

    for name in steps:
        add_step(name)

    @app.post("/v1/tasks/{task}/rounds/{number}/tokens", tags=["operators"], dependencies=only)
    async def make_tokens(
        request: Request, task: TaskId, number: Number, count: Annotated[int, Query(ge=1, le=MOST_TOKENS)]
    ) -> Response:
        """Return new one-time tokens; they are shown once."""
        return _json({"tokens": await collector.tokens(task, number, count, request.state.operator)})


def _add_figures(app: FastAPI, collector: Collector, only: Sequence[params.Depends]) -> None:
    """Add what shows a round: figures, arrivals, the trail, files."""

    @app.get("/v1/tasks/{task}/rounds/{number}/estimates", tags=["operators"], dependencies=only)
    async def get_estimates(
        task: TaskId, number: Number,
        estimator: Annotated[str, Query(pattern=f"^({'|'.join(FIGURES)})$")] = "best",
        confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    ) -> Response:  # fmt: skip
        """Return the figures of a round as they are now; refused below the smallest crowd."""
        return _json(await collector.estimates(task, number, estimator, confidence))

    @app.get("/v1/tasks/{task}/rounds/{number}/arrivals", tags=["operators"], dependencies=only)
    async def get_arrivals(task: TaskId, number: Number) -> Response:
        """Return how many reports a round has counted."""
        return _json({"people": await collector.people(task, number)})

    @app.get("/v1/tasks/{task}/trail", tags=["operators"], dependencies=only)
    async def get_trail(task: TaskId) -> Response:
        """Return every change of a task, after checking that they replay to its state."""
        entries = await collector.trail(task)
        return _json({"trail": [{**entry.data, "chain": entry.digest.hex()} for entry in entries]})

    @app.get(
        "/v1/tasks/{task}/rounds/{number}/export", tags=["operators"], dependencies=only,
        response_class=Response, responses={200: {"content": {PARQUET: {}, "application/json": {}}}},
    )  # fmt: skip
    async def get_export(
        task: TaskId, number: Number,
        form: Annotated[str, Query(pattern=f"^({'|'.join(EXPORTS)})$")] = "sums",
    ) -> Response:  # fmt: skip
        """Return sums, or kept reports, as a file that `sidelight estimate` or Spark reads."""
        made = await export(collector, task, number, form)
        headers = {"Content-Disposition": f'attachment; filename="{made.name}"'}
        return Response(made.content, 200, headers, made.kind)


def _add_results(app: FastAPI, collector: Collector, only: Sequence[params.Depends]) -> None:
    """Add what all rounds of a task lead to."""

    @app.get("/v1/tasks/{task}/estimates", tags=["operators"], dependencies=only)
    async def get_over_time(task: TaskId, confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95) -> Response:
        """Return the figures of a panel over its rounds: levels, and changes from round to round."""
        return _json(await over_time(collector, task, confidence))

    @app.get("/v1/tasks/{task}/model", tags=["operators"], dependencies=only)
    async def get_model(task: TaskId) -> Response:
        """Return the model that a label collection led to, as a file that `read_model` reads."""
        made = _json(await model(collector, task))
        made.headers["Content-Disposition"] = f'attachment; filename="{task[:12]}-model.json"'
        return made


def _add_operations(app: FastAPI, collector: Collector, metrics: Metrics) -> None:
    """Add what whoever runs the service looks at."""

    @app.get("/health", tags=["operations"])
    async def health() -> Response:
        """Say that the process lives."""
        return _json({"status": "alive"})

    @app.get("/ready", tags=["operations"])
    async def ready() -> Response:
        """Say whether the store answers."""
        await collector.store.ping()
        return _json({"status": "ready"})

    @app.get("/metrics", tags=["operations"], response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        """Return the figures that Prometheus reads."""
        return Response(metrics.text(), media_type=metrics.type)


def _round_data(found: StoredRound) -> dict[str, Any]:
    digest, published = found.digests
    return {
        "round": found.number, "state": found.state, "digest": digest, "sums": found.sums,
        "published": published, "is_retired": found.is_retired,
    }  # fmt: skip


def _public(found: StoredRound) -> dict[str, Any]:
    """Return what everybody may know of a round.

    Whoever has the digest of a few people's sums finds the sums by trying. It is told when they are public.
    """
    data = _round_data(found)
    return data if found.state == "published" else {**data, "sums": None}


def _json(data: Any, status: int = 200) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return Response(text, status, {"Cache-Control": "no-store"}, "application/json")
