"""The OpenAPI description: checked in, and what the service does is what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service_cases import task
from service_http import path
from service_process import Process
from sidelight.service.app import make_app
from sidelight.service.stores import store_of

PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"
DESCRIPTION = make_app(store_of("never-opened.db")).openapi()
CHECKS = [
    not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance,
]  # fmt: skip


def test_the_description_in_the_docs_is_the_service_s_own() -> None:
    assert json.loads(PAGE.read_text("utf-8")) == DESCRIPTION, "docs/openapi.json must be written again"


@pytest.fixture(scope="module", name="service")
def service_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    service = Process(tmp_path_factory.mktemp("service"))
    with service.client() as client:
        client.post("/v1/tasks", content=task().document)
        client.post(f"{path(task())}/open")
    yield service
    service.stop()


@pytest.mark.parametrize("examples", [4, pytest.param(300, marks=pytest.mark.deep)])
def test_every_call_answers_as_described(service: Process, examples: int) -> None:
    headers = {"Authorization": f"Bearer {service.key}"}
    called = 0
    for found in schemathesis.openapi.from_dict(DESCRIPTION).get_all_operations():
        operation = found.ok()

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
        @given(case=operation.as_strategy())
        def check(case: schemathesis.Case) -> None:
            if "task" in case.path_parameters and case.path_parameters["task"][-1:] in "01234567":
                case.path_parameters |= {"task": task().id, "number": 1}  # half of the time one that is there
            case.call_and_validate(base_url=service.url, headers=headers, checks=CHECKS)

        check()
        called += 1
    assert called >= 15
