"""Use an installed Sidelight as a person would, and say what was seen: one line for each thing tried.

    python release/installed.py [EXTRA ...] [--only NAME ...]

It is run by the Python of an environment into which a wheel or an sdist was installed, with the extras that
were asked for. What belongs to an extra must work with it, and without it must end in one line that names it.
It needs the standard library alone, so that the environment stays as a person would have it. `--only` names
what to try besides the audit, whose table the others use.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

COMMAND = Path(sys.executable).with_name("sidelight")
AT_MOST = 600
OPTIONAL = ("excel", "neural", "numeric", "service", "spark")


class NotSeenError(Exception):
    """Something was not as it must be."""


def run(*arguments: str, code: int = 0) -> str:
    """Run a command to its end, and return what it said."""
    done = subprocess.run(
        [str(COMMAND), *arguments], capture_output=True, text=True, timeout=AT_MOST, check=False
    )
    said = done.stdout + done.stderr
    if done.returncode != code or "Traceback" in said:
        raise NotSeenError(f"sidelight {' '.join(arguments)}: exit code {done.returncode}: {said[-600:]}")
    return said


def evaluate(program: str, code: int = 0) -> str:
    """Run a few lines of Python to their end, and return what they said."""
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", program],
        capture_output=True, text=True, timeout=AT_MOST, check=False,
    )  # fmt: skip
    if done.returncode != code:
        raise NotSeenError(done.stdout + done.stderr[-600:])
    return done.stdout + done.stderr


def serve(pattern: str, path: str, *arguments: str) -> tuple[str, str]:
    """Start a command that serves, open a path of the address that it names, stop it; return both.

    A browser keeps the cookie that a first visit gives it.
    """
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    process = subprocess.Popen(
        [str(COMMAND), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = ""
    try:
        for line in process.stdout or ():
            said += line
            if found := re.search(pattern, line):
                with browser.open(found.group(1) + path, timeout=AT_MOST) as answer:
                    return found.group(1), answer.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=AT_MOST)[0]
    raise NotSeenError(f"sidelight {' '.join(arguments)} said {said[-600:]}")


def needs(extra: str, said: str) -> str:
    """Check that a message names the extra that is missing, in one line."""
    if f'pip install "sidelight[{extra}]"' not in said or len(said.strip().splitlines()) > 3:
        raise NotSeenError(f"no line names the extra {extra}: {said[-600:]}")
    return "one line names the extra"


def version() -> str:
    """Ask for the version."""
    return run("--version").strip()


def demo() -> str:
    """Run the demo, whose page carries its drawing library."""
    run("demo", "--report", "demo.html")
    return f"page of {Path('demo.html').stat().st_size >> 10} KiB"


def audit() -> str:
    """Audit an example against a limit that it breaks."""
    run("example", "survey", "-o", "people.csv", "--force")
    said = run("audit", "people.csv", "--secret", "diabetes=1", "--report", "audit.html", code=1)
    if "2.526" not in said:
        raise NotSeenError(said)
    return "diabetes 2.526 exact, exceeded"


def doctor() -> str:
    """Ask the doctor."""
    said = run("doctor")
    if "MISSING" in said:
        raise NotSeenError(said)
    return "nothing is missing"


def excel(has: bool) -> str:
    """Read a workbook."""
    if not has:
        Path("people.xlsx").write_bytes(b"PK")
        return needs("excel", run("schema", "people.xlsx", code=2))
    evaluate(
        "import csv, openpyxl; book = openpyxl.Workbook(write_only=True); sheet = book.create_sheet()\n"
        "for row in csv.reader(open('people.csv')): sheet.append(row)\n"
        "book.save('people.xlsx')"
    )
    return "a workbook is read" if "diabetes" in run("schema", "people.xlsx") else "?"


NUMBERS = """
import numpy as np
rng = np.random.default_rng(0)
first = rng.normal(50, 9, 600)
second = 2 * first + rng.normal(0, 3, 600)
np.savetxt("numbers.csv", np.c_[first, second], fmt="%.4f", delimiter=",", header="a,b", comments="")
"""


def neural(has: bool) -> str:
    """Attack a table of numbers by a network."""
    evaluate(NUMBERS)
    said = run("attack", "numbers.csv", "--secret", "b", code=0 if has else 2)
    return "a network attacks numbers" if has else needs("neural", said)


def numeric(has: bool) -> str:
    """Randomise a number with noise that is safe to send."""
    program = "import sidelight as sl; sl.create('laplace', 2, 1.0, lower=0.0, upper=1.0).randomise([0, 1])"
    said = evaluate(program, 0 if has else 1)
    if not has:
        return needs("numeric", said.strip().splitlines()[-1])
    return "noise by OpenDP"


def studio(has: bool) -> str:
    """Open the studio as its browser would."""
    arguments = ("studio", "people.csv", "--no-browser", "--port", "0", "--state", "people.studio.json")
    if not has:
        return needs("service", run(*arguments, code=2))
    address, page = serve(r" at (http://\S+/\?token=\S+) ", "", *arguments)
    if "<script" not in page:
        raise NotSeenError(f"{address} answers {page[:300]}")
    return "starts, its page comes"


def service(has: bool) -> str:
    """Serve from an empty folder."""
    Path("inbox").mkdir(exist_ok=True)
    if not has:
        return needs("service", run("serve", "inbox", code=2))
    serve(r" on (http://[^\s;]+);", "/v1/openapi.json", "serve", "inbox", "--port", "0")
    return "starts, answers"


def spark(has: bool) -> str:
    """Count a table through Spark."""
    arguments = ("audit", "people.csv", "--secret", "diabetes", "--engine", "spark")
    if not has:
        return needs("spark", run(*arguments, code=2))
    return "counts by Spark" if "2.526" in run(*arguments) else "?"


def main(extras: list[str], only: list[str]) -> int:
    """Try everything; the exit code says whether all of it was seen."""
    held = {name: name in extras for name in OPTIONAL}
    tries: list[tuple[str, Callable[[], str]]] = [
        ("version", version), ("demo", demo), ("audit", audit), ("doctor", doctor),
        ("studio", lambda: studio(held["service"])), ("serve", lambda: service(held["service"])),
        ("excel", lambda: excel(held["excel"])), ("numeric", lambda: numeric(held["numeric"])),
        ("neural", lambda: neural(held["neural"])), ("spark", lambda: spark(held["spark"])),
    ]  # fmt: skip
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, trial in tries:
            if only and name not in ("audit", *only):
                continue
            try:
                seen = trial()
            except (NotSeenError, OSError, subprocess.TimeoutExpired) as error:
                failures += 1
                seen = f"FAILED: {error}"
            sys.stdout.write(f"{name}\t{seen}\n")
            sys.stdout.flush()
        os.chdir("/")
    return min(failures, 1)


if __name__ == "__main__":
    given = " ".join(sys.argv[1:]).partition("--only")
    sys.exit(main(given[0].split(), given[2].split()))
