"""Hostile uploads: whatever is sent, no 5xx, and nothing of it in the sums."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from service_cases import people, sent, task
from service_http import OPERATOR, body, opened, path, with_service
from sidelight.service.rates import Limits

QUICK, DEEP = 2_000, 100_000


def uploads(digest: str, other: str, count: int, seed: int) -> Iterator[tuple[bytes, str, str]]:
    """Return hostile bodies, their type, and the round that they go to."""
    rng = np.random.default_rng(seed)
    made = task()
    fine = sent(made.design.first, people(20), 77)
    json_type = "application/json"
    whole = json.dumps(body(digest, fine)).encode()
    number = "1"
    for _ in range(count):
        kind = int(rng.integers(0, 12))
        content, kind_of, number = whole, json_type, "1"
        if kind == 0:
            content = whole[: int(rng.integers(0, len(whole)))]
        elif kind == 1:
            at = int(rng.integers(0, len(whole)))
            content = whole[:at] + rng.bytes(int(rng.integers(1, 9))) + whole[at + 1 :]
            content = content.replace(digest.encode(), b"0" * 64)  # a lucky hit would be a report
        elif kind == 2:
            content = rng.bytes(int(rng.integers(0, 300)))
        elif kind == 3:
            content = json.dumps(body(other, fine)).encode()
        elif kind == 4:
            report = b64encode(rng.bytes(int(rng.choice([0, 1, 3, 5, 40])))).decode()
            wrong = [{"id": b64encode(rng.bytes(16)).decode(), "report": report}]
            content = json.dumps({"round": digest, "reports": wrong}).encode()
        elif kind == 5:
            content = b"[" * int(rng.integers(1, 5000))
        elif kind == 6:
            content = b'{"round":"' + digest.encode() + b'","reports":[' + b"0" * int(rng.integers(1, 4000))
        elif kind == 7:
            kind_of = str(rng.choice(["text/plain", "", "application/vnd.apache.arrow.stream", "a/b;c"]))
        elif kind == 8:
            number = str(rng.choice(["0", "2", "-1", "1e3", "%00", "9" * 400, "1.0", "one", "１"]))
        elif kind == 9:
            content = whole.replace(b'"reports"', b'"round"', 1)
        elif kind == 10:
            ids = [{"id": b64encode(rng.bytes(int(rng.integers(0, 40)))).decode(), "report": "AQ=="}]
            if len(ids[0]["id"]) == 24:
                ids[0]["id"] += "A"
            content = json.dumps({"round": digest, "reports": ids}).encode()
        else:
            content = b'{"round":' + b"9" * 400 + b',"reports":[{"id":null}]}'
        yield content, kind_of, number


@pytest.mark.parametrize("count", [QUICK, pytest.param(DEEP, marks=pytest.mark.deep)], ids=["quick", "deep"])
def test_hostile_uploads_change_nothing(tmp_path: Path, count: int) -> None:
    made, another = task(), task(2)

    async def work(client) -> None:
        other = await opened(client, another)
        digest = await opened(client, made)
        answered = set()
        for content, kind, number in uploads(digest, other, count, 5):
            url = f"/v1/tasks/{made.id}/rounds/{number}/reports"
            answer = await client.post(url, content=content, headers={"Content-Type": kind})
            answered.add(answer.status_code)
            assert answer.status_code < 500, (answer.text, content[:200])
            if answer.status_code == 200:
                assert set(answer.json()["counts"]) <= {"malformed"}, (answer.text, content[:200])
        assert answered >= {200, 400, 404, 409, 415}
        arrivals = await client.get(f"{path(made)}/arrivals", headers=OPERATOR)
        assert arrivals.json() == {"people": 0}
        reports = sent(made.design.first, people(10))
        for words in ("accepted", "repeated", "repeated"):
            answer = await client.post(f"{path(made)}/reports", json=body(digest, reports))
            assert answer.json()["counts"] == {words: 10}

    with_service(str(tmp_path / "store.db"), work, Limits(rate=0))
