"""Who may talk to the studio: a page of this server, opened by whoever started it.

A web page elsewhere cannot: its origin is refused, and so is a host name that somebody points at this machine
(DNS rebinding). The token in the first address is good for one use; a cookie takes its place.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidelight.service.problems import problem
from sidelight.service.server import bracketed

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_READS = ("GET", "HEAD")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(eq=False)
class Keys:
    """The token of the first address, and the key that cookies hold."""

    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(24))

    def spend(self, given: str) -> bool:
        """Whether this is the token; then it is one no more."""
        is_right = self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())
        if is_right:
            self.token = None
        return is_right

    def opens(self, given: str) -> bool:
        """Whether a cookie holds the key."""
        return hmac.compare_digest(given.encode(), self.key.encode())


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Return what the Host header may say: the names of this machine to itself, and the one it was given."""
    names = {*_LOOPBACK, bracketed(host)}
    return frozenset(f"{name}:{port}" for name in names)


def cookie_of(host: str) -> str:
    """Return the name of the cookie for an address: browsers tell hosts apart, but not the ports of one."""
    return f"sidelight_studio_{host.rpartition(':')[2]}"


class Guard:
    """Lets requests through to an application that may come in; adds headers to every answer."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: frozenset[str]) -> None:
        """Take what is guarded, its keys, and the names under which it answers."""
        self._app, self._keys, self._hosts = app, keys, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application answer it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to who may not come in, or who comes in by the token; None for all others."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return problem(421, "this server answers on this machine only, by the address that it shows.")
        origin, method = headers.get("origin"), scope["method"]
        if origin is not None and origin != f"http://{host}":
            return problem(403, "requests of other pages are refused.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return problem(403, "requests of other pages are refused.")
        if origin is None and method not in _READS:
            return problem(403, "a change must say which page it comes from (Origin).")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        is_in = self._keys.opens(cookie_parser(headers.get("cookie", "")).get(cookie_of(host), ""))
        if scope["path"] == "/" and method in _READS and given:
            return self._admission(given[0], host, is_in=is_in)
        if not is_in:
            return problem(401, "open the address that the terminal shows; each works once, in one browser.")
        return None

    def _admission(self, given: str, host: str, *, is_in: bool) -> Response:
        """Let in who brings the token; who was let in before may open the same address again."""
        if not self._keys.spend(given) and not is_in:
            return problem(401, "this address was used, or is another session's; start the studio again.")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(cookie_of(host), self._keys.key, httponly=True, samesite="strict", path="/")
        return answer
