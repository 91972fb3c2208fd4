"""What a request holds, read no further than it may go."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request

from sidelight.service.problems import ProblemError


async def read_body(request: Request, most: int) -> bytes:
    """Return what a request holds, refused as soon as it is known to be too much."""
    too_large = ProblemError(413, f"A request has at most {most} bytes; send less at once.")
    stated = request.headers.get("content-length", "0")
    if not (stated.isascii() and stated.isdigit()) or int(stated) > most:
        raise too_large
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
    except ClientDisconnect:
        raise ProblemError(400, "The request ended before its last byte.") from None
    return b"".join(parts)
