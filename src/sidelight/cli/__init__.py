"""The command line: thin, since every command is a few calls of the library.

Exit codes: 0 fine, 1 a limit is exceeded (or not certified to be kept), 2 bad input, 3 internal error.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from sidelight.cli.advise import advise
from sidelight.cli.attack import attack
from sidelight.cli.audit import audit, demo
from sidelight.cli.bench import app as bench
from sidelight.cli.calibrate import calibrate
from sidelight.cli.collect import collect
from sidelight.cli.estimate import estimate
from sidelight.cli.examples import epilog
from sidelight.cli.first import doctor, example, schema
from sidelight.cli.knowledge import knowledge
from sidelight.cli.learn import learn
from sidelight.cli.ledger import app as ledger
from sidelight.cli.messages import explain
from sidelight.cli.plan import app as plan
from sidelight.cli.project import init, run
from sidelight.cli.serve import app as service
from sidelight.cli.serve import serve
from sidelight.cli.studio import studio
from sidelight.cli.study import app as study
from sidelight.foundation.terminal import ClosedPipeError, say

_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_UNREAD = 141
"""The exit code that a shell gives a program whose output pipe was closed (128 + SIGPIPE)."""
app = typer.Typer(
    name="sidelight",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog(""),
)


def _version(wanted: bool) -> None:
    if wanted:
        from sidelight import __version__

        typer.echo(f"sidelight {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Tell what the attributes of a private data collection reveal about each other."""
    _overview(context)


def _overview(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_COMMANDS = (
    demo, example, init, run, schema, audit, calibrate, knowledge, advise, collect, estimate, attack, learn,
    serve, studio, doctor,
)  # fmt: skip
for command in _COMMANDS:
    app.command(epilog=epilog(command.__name__))(command)
for group in (plan, ledger, service, study, bench):
    group.callback(invoke_without_command=True, epilog=epilog(str(group.info.name)))(_overview)
    for entry in group.registered_commands:
        entry.epilog = epilog(f"{group.info.name} {entry.name}")
    app.add_typer(group)


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    _open_streams()
    with _sigterm_interrupts() as received:
        code = _code()
    if code == _INTERRUPTED:
        code = _TERMINATED if received else _INTERRUPTED
        with suppress(OSError, ClosedPipeError):
            say("interrupted; nothing was left half written.", err=True)
    sys.exit(code)


def _open_streams() -> None:
    """Give a command that was started with closed streams (`>&-`) some that lead nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - till the end


def _code() -> int:
    """Run the command that the arguments name; return the exit code."""
    try:
        code = app(prog_name="sidelight", standalone_mode=False)  # errors are ours to word
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ClosedPipeError, BrokenPipeError):
        _forget_output()
        return _UNREAD
    except Exception as error:  # noqa: BLE001 - the last line of defence turns everything into an exit code
        if _came_from_interruption(error):
            return _INTERRUPTED
        code = explain(error)
        try:
            sys.stdout.flush()
        except OSError:
            _forget_output()
    return code if isinstance(code, int) else 0


def _came_from_interruption(error: BaseException | None) -> bool:
    """Whether an error arose while an interruption was handled, as when Spark stops first."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _forget_output() -> None:
    """Discard what could not be written, so that the interpreter does not try again when it ends."""
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def _sigterm_interrupts() -> Iterator[list[int]]:
    """Let SIGTERM stop a command as SIGINT does; yield a list that collects received SIGTERMs.

    A SIGTERM that is already ignored or handled stays so.
    """
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield received
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
