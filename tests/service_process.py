"""A service in processes of its own, as operators run it; stopped, or killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from conftest import AT_MOST, usual_signals


class Process:
    """`sidelight serve` on a free port; `key` is the first operator's, where the store is new."""

    def __init__(self, folder: Path, *options: str, database: str | None = None) -> None:
        named = [] if database is None else ["--database", database]
        command = [sys.executable, "-m", "sidelight", "serve", str(folder), "--port", "0", "--rate", "0"]
        self.process = subprocess.Popen(
            [*command, *named, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=usual_signals, start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.key, self.url = "", ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if key := re.search(r"slk_\S+", line):
                self.key = key.group()
            if found := re.search(r" on (http://\S+);", line):
                self.url = found.group(1)
                break
        # What it still has to say must not fill the pipe.
        self._rest = threading.Thread(target=self._drain)
        self._rest.start()

    def _drain(self) -> None:
        with self.process.stdout as stream:
            stream.read()

    def client(self) -> httpx.Client:
        """A connection that waits as long as need be."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.Client(base_url=self.url, timeout=AT_MOST, headers=headers)

    def kill(self) -> None:
        """Kill all its processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(AT_MOST)
        self._rest.join(AT_MOST)

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(AT_MOST)
        self._rest.join(AT_MOST)
        return code
