"""Node and the client's development tools, for tests; installed where that is allowed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[1] / "clients" / "typescript"
BUNDLE = CLIENT.parents[1] / "src" / "sidelight" / "service" / "assets" / "client.js"
_OLDEST_NODE = 20


@pytest.fixture(scope="session", name="node")
def node_fixture() -> str:
    """Node, by its path."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no node here; install version 20 or newer to test the TypeScript client")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < _OLDEST_NODE:
        pytest.skip(f"the TypeScript client is for node 20 or newer, and this is {version.strip()}")
    return program


@pytest.fixture(scope="session", name="tools")
def tools_fixture(node: str) -> Path:
    """The folder of the compiler and the bundler of the client."""
    del node
    return installed(CLIENT, "tsc", "esbuild")


def installed(package: Path, *programs: str) -> Path:
    """Return the folder of a package's development tools; one of several test processes installs them."""
    tools, npm = package / "node_modules" / ".bin", shutil.which("npm")
    with (Path(tempfile.gettempdir()) / f"sidelight-npm-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((tools / program).exists() for program in programs):
            if npm is None:
                pytest.skip("there is no npm here to install the TypeScript compiler with")
            command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=package, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"the TypeScript compiler could not be installed: {done.stderr.strip()[-300:]}")
    return tools
