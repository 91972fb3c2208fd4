"""A private PostgreSQL cluster for the tests that need one: its own folder, reached by a socket alone.

It is never a server that happens to run. Debian's packages are installed where that is allowed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

_NAMES = count()


class Cluster:
    """A server of our own; `crash` stops it as a power failure would, but for what the disk has."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder, self.data = programs, folder, folder / "data"
        self.user = "postgres" if os.geteuid() == 0 else None  # initdb refuses root
        if self.user:
            shutil.chown(folder, self.user)
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c max_connections=60"
        version = self.programs.parent.name
        if version.isdigit() and int(version) >= 14:
            # After a crash all of the disk is synchronised at once, not a thousand files one by one.
            options += " -c recovery_init_sync_method=syncfs"
        self._run("pg_ctl", "-D", self.data, "-o", options, "-l", self.folder / "log", "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def crash(self) -> None:
        self.stop("immediate")
        self.start()

    def database(self) -> str:
        """Make a new database and return its URL."""
        name = f"sidelight_{next(_NAMES)}"
        self._run("createdb", "-h", self.folder, "-U", "postgres", name)
        return f"postgresql://postgres@/{name}?host={self.folder}"


@pytest.fixture(scope="session", name="cluster")
def cluster_fixture() -> Iterator[Cluster]:
    """A cluster that is thrown away; the first module that imports the fixture starts it for all."""
    if _SHARED:
        yield _SHARED[0]
        return
    programs = _find_or_install()
    folder = Path(tempfile.mkdtemp(prefix="sidelight-postgres-"))
    made = Cluster(programs, folder)
    made.start()
    _SHARED.append(made)
    yield made
    _SHARED.clear()
    made.stop("immediate")
    shutil.rmtree(folder)


_SHARED: list[Cluster] = []


def _find_or_install() -> Path:
    found = _find()
    if found is None and _may_install():
        _install()
        found = _find()
    if found is None:
        pytest.skip("no PostgreSQL here, and it is installed only as root on Debian")
    return found


def _find() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if folders:
        return folders[-1].parent
    program = shutil.which("initdb")
    return Path(program).parent if program else None


def _may_install() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def _install() -> None:
    """Install the server; one of several test processes does, the others wait."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "sidelight-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _find() is not None:
            return
        for command in ("update", "install --yes --no-install-recommends postgresql"):
            done = subprocess.run(
                ["apt-get", "--quiet", *command.split()], env=environment, capture_output=True, text=True
            )
            if done.returncode:
                pytest.skip(f"PostgreSQL could not be installed: {done.stderr.strip()[-300:]}")
