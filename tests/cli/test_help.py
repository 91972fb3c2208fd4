"""What every user meets first: -h, examples that run, `python -m sidelight`, completion in the shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from sidelight.cli import app
from sidelight.cli.examples import EXAMPLES
from sidelight.ledger import Ledger, Limit

ONLY_PARSED = (
    "study run", "study clean", "study", "serve", "studio", "service", "service key", "service backup",
    "service restore",
)  # fmt: skip
"""Their examples run for minutes or until stopped, remove what the user has computed, or need a service."""


def _commands(command: Any, path: str = "") -> dict[str, Any]:
    """Every command and group by the words after `sidelight`."""
    found = {path: command}
    for name, inner in getattr(command, "commands", {}).items():
        found |= _commands(inner, f"{path} {name}".strip())
    return found


COMMANDS = _commands(typer.main.get_command(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_h_is_help_and_ends_with_examples(run, name: str) -> None:
    short, long = run(*name.split(), "-h"), run(*name.split(), "--help")
    assert short.code == long.code == 0
    assert short.out == long.out
    assert "-h, --help" in short.out
    shown = short.out.partition("Examples:\n")[2].splitlines()
    assert [line.strip() for line in shown if line.strip()] == list(EXAMPLES[name])
    assert 2 <= len(EXAMPLES[name]) <= 3


@pytest.mark.parametrize("line", sorted({line for name in COMMANDS for line in EXAMPLES[name]}))
def test_the_options_of_every_example_exist(line: str) -> None:
    words = shlex.split(line)
    assert words[0] == "sidelight"
    name = max((name for name in COMMANDS if words[1:][: len(name.split())] == name.split()), key=len)
    arguments = words[1 + len(name.split()) :]
    with COMMANDS[name].make_context(name, arguments) as context:
        assert not context.args


def test_every_example_runs(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIDELIGHT_TRACEBACK", "1")
    Ledger.create("ann.ledger", "ann", [Limit.of(1.0)]).close()  # a device's, which no command makes
    lines = dict.fromkeys(line for name in COMMANDS if name not in ONLY_PARSED for line in EXAMPLES[name])
    for line in lines:
        shown = run(*_small(shlex.split(line)[1:]))
        assert shown.code in (0, 1), (line, shown.err)  # 1 says that a limit is exceeded
    made = {path.name for path in tmp_path.iterdir()}
    assert {"plan.toml", "reports.parquet", "estimates.csv", "model.json", "audit.html", "inbox"} <= made


def _small(words: list[str]) -> list[str]:
    """The table of the examples has 20,000 people; 400 are enough to see that they run."""
    is_large = words[:2] == ["example", "survey"] and "--rows" not in words
    return [*words, "--rows", "400"] if is_large else words


def test_the_package_is_the_command(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "sidelight", "example", "titanic"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert shown.returncode == 2
    assert "Missing option '-o'" in shown.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "sidelight", "audit", "-h"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("Usage: sidelight audit [OPTIONS]")


@pytest.mark.parametrize(
    ("typed", "offered"), [("sidelight cal", {"calibrate"}), ("sidelight audit --eps", {"--epsilon"})]
)
def test_a_shell_completes_commands_and_options(typed: str, offered: set[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    shown = subprocess.run(
        [sys.executable, "-m", "sidelight"],
        capture_output=True, text=True, env=os.environ | words | {"_SIDELIGHT_COMPLETE": "complete_bash"},
    )  # fmt: skip
    assert set(shown.stdout.split()) == offered


def test_help_loads_nothing_heavier_than_typer() -> None:
    script = (
        "import sys; sys.argv = ['sidelight', '-h']; from sidelight.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'numba', 'scipy', 'pydantic', 'rich', 'jinja2')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_nothing_of_the_working_folder(tmp_path: Path) -> None:
    for name in ("html", "json", "numpy", "typer"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    shown = subprocess.run(
        [sys.executable, "-m", "sidelight", "example", "titanic", "-o", "titanic.csv"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
