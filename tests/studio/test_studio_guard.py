"""Who may talk to the studio: its own page, on this machine, let in once by the token."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sidelight.studio.guard import HEADERS, Guard, Keys, cookie_of, hosts_of

HOME = "http://127.0.0.1:8765"


async def _welcome(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("inside")


INSIDE = Starlette(
    routes=[
        Route("/", _welcome),
        Route("/api/state", _welcome),
        Route("/api/changes", _welcome, methods=["POST"]),
    ]
)


def asked(keys: Keys, method: str, path: str, **headers: str) -> httpx.Response:
    guarded = Guard(INSIDE, keys, hosts_of("127.0.0.1", 8765))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=guarded)
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(ask())


@pytest.fixture
def keys() -> Keys:
    return Keys()


def pass_of(keys: Keys) -> dict[str, str]:
    return {"Cookie": f"{cookie_of(HOME)}={keys.key}"}


def test_the_token_is_exchanged_once_for_a_cookie_that_scripts_cannot_read(keys: Keys) -> None:
    token = keys.token
    first = asked(keys, "GET", f"/?token={token}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert all(flag in cookie for flag in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert str(token) not in cookie
    assert asked(keys, "GET", f"/?token={token}").status_code == 401
    assert asked(keys, "GET", "/", **pass_of(keys)).text == "inside"
    again = asked(keys, "GET", f"/?token={token}", **pass_of(keys))
    assert (again.status_code, again.headers["location"]) == (303, "/"), "the terminal's link works again"


@pytest.mark.parametrize("token", ["", "wrong", "%00", "ü"])
def test_a_wrong_token_opens_nothing_and_does_not_spend_the_right_one(keys: Keys, token: str) -> None:
    assert asked(keys, "GET", f"/?token={token}").status_code == 401
    assert asked(keys, "GET", f"/?token={keys.token}").status_code == 303


@pytest.mark.parametrize("cookie", ["", "wrong", "=", ";;"])
def test_without_the_cookie_nothing_is_answered(keys: Keys, cookie: str) -> None:
    found = asked(keys, "GET", "/api/state", Cookie=f"{cookie_of(HOME)}={cookie}")
    assert found.status_code == 401
    assert found.headers["content-type"] == "application/problem+json"
    assert "inside" not in found.text


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8765", ""]
)
def test_a_host_that_is_pointed_here_is_refused(keys: Keys, host: str) -> None:
    assert asked(keys, "GET", "/api/state", Host=host, **pass_of(keys)).status_code == 421
    assert asked(keys, "GET", f"/?token={keys.token}", Host=host).status_code == 421
    assert keys.token is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:80", HOME + "/"]
)
def test_requests_of_other_pages_are_refused(keys: Keys, origin: str) -> None:
    for method, path in (("POST", "/api/changes"), ("GET", "/api/state")):
        assert asked(keys, method, path, Origin=origin, **pass_of(keys)).status_code == 403


def test_a_change_says_which_page_it_comes_from(keys: Keys) -> None:
    assert asked(keys, "POST", "/api/changes", **pass_of(keys)).status_code == 403
    assert asked(keys, "POST", "/api/changes", Origin=HOME, **pass_of(keys)).text == "inside"
    local = {"Host": "localhost:8765", "Origin": "http://localhost:8765"}
    assert asked(keys, "POST", "/api/changes", **local, **pass_of(keys)).text == "inside"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_embeds_or_opens_is_refused(keys: Keys, site: str) -> None:
    assert asked(keys, "GET", "/", **{"Sec-Fetch-Site": site}, **pass_of(keys)).status_code == 403


def test_every_answer_forbids_code_of_others(keys: Keys) -> None:
    for found in (asked(keys, "GET", "/", **pass_of(keys)), asked(keys, "GET", "/api/state")):
        assert all(found.headers[name] == value for name, value in HEADERS.items())
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_a_named_host_is_let_in_beside_this_machine() -> None:
    assert "10.0.0.7:9000" in hosts_of("10.0.0.7", 9000)
    assert "[fd00::1]:9000" in hosts_of("fd00::1", 9000)
    assert hosts_of("127.0.0.1", 1) == {"127.0.0.1:1", "localhost:1", "[::1]:1"}


def test_studios_beside_each_other_have_cookies_of_their_own(keys: Keys) -> None:
    other = {"Cookie": f"{cookie_of('127.0.0.1:8766')}={Keys().key}; {cookie_of(HOME)}={keys.key}"}
    assert asked(keys, "GET", "/api/state", **other).status_code == 200
    assert "sidelight_studio_8765=" in asked(keys, "GET", f"/?token={keys.token}").headers["set-cookie"]
