"""The studio in a process of its own, as people start it; interrupted, or killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from conftest import AT_MOST, usual_signals


class Studio:
    """`sidelight studio` on a free port, and a browser's part: a cookie, an origin."""

    def __init__(self, table: Path, state: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "sidelight",
            "studio",
            str(table),
            "--no-browser",
            "--state",
            str(state),
        ]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=usual_signals, start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.state, self.url, self.said = state, "", ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r" at ((http://\S+)/\?token=\S+) ", line):
                self.opening, self.url = found.groups()
                break
        if not self.url:
            self.process.wait(AT_MOST)
            self.process.stdout.close()
            raise AssertionError(self.said)

    @contextmanager
    def browser(self, cookies: httpx.Cookies | None = None) -> Iterator[httpx.Client]:
        """Yield a browser that was let in, by its cookies or else by the token."""
        origin = {"Origin": self.url}
        with httpx.Client(base_url=self.url, headers=origin, timeout=AT_MOST, cookies=cookies) as client:
            if cookies is None:
                assert client.get(self.opening).status_code == 303
            yield client

    def kill(self) -> None:
        """Kill the server and whatever it started at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(AT_MOST)
        self.process.stdout.close()

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C, which every process of a terminal hears; return the exit code and the last words."""
        os.killpg(self.process.pid, signal.SIGINT)
        rest, _ = self.process.communicate(timeout=AT_MOST)
        return self.process.returncode, rest


@contextmanager
def events(client: httpx.Client) -> Iterator[Iterator[dict[str, Any]]]:
    """Open the stream as another window would, and yield its events after the first."""
    with (
        httpx.Client(base_url=client.base_url, cookies=client.cookies, timeout=AT_MOST) as other,
        other.stream("GET", "/api/events") as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = (
            json.loads(line.removeprefix("data: "))
            for line in stream.iter_lines()
            if line.startswith("data: ")
        )
        assert next(told)["event"] == "hello"
        yield told
