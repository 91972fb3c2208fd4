"""Errors as one line, in the words of the command line: options for arguments."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import Any

from sidelight.foundation.errors import SidelightError
from sidelight.foundation.files import FULL
from sidelight.foundation.terminal import ClosedPipeError, kept_logs, say

_ALIASES = {"kind": "belief", "secrets": "secret", "synergies": "synergy"}
"""Arguments that are options by another name."""
_PARSED = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


def explain(error: Exception) -> int:
    """Print an error as one line and return the exit code: 2 for bad input, 3 for a fault of ours."""
    if os.environ.get("SIDELIGHT_TRACEBACK"):
        raise error
    said = message_of(error)
    fault = f"internal error ({type(error).__name__}): {error}."
    line = f"error: {said}" if said else f"{fault} Set SIDELIGHT_TRACEBACK=1 to see where, and report it."
    line += "".join(f" What Spark says itself is in {path}." for path in kept_logs())
    with suppress(OSError, ClosedPipeError):  # where nobody can be told, the exit code still tells
        say(" ".join(line.split()), err=True)  # one line, which scripts can read
    return 2 if said else 3


def message_of(error: Exception) -> str | None:
    """Return what to say about bad input; None if the error is a fault of ours."""
    if hasattr(error, "format_message"):
        return _unparsed(error) or str(error.format_message())
    if isinstance(error, OSError) and error.errno in FULL:
        return f"{error.filename or 'the output'} cannot be written: {error.strerror}; make room for it."
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return "a name or a value holds half a character (a lone surrogate), which no file can; mend it."
    return in_options(str(error), _options()) if isinstance(error, SidelightError) else None


def in_options(message: str, options: dict[str, str]) -> str:
    """Name the options of a command, by the names of its arguments, where a message names these arguments.

    An argument with the name of its option stays as it is.

    >>> in_options("`kind` must be one of 'joint', 'tree', got 'x'.", {"belief": "--belief"})
    "`--belief` must be one of 'joint', 'tree', got 'x'."
    >>> in_options("use kind='joint' or method='joint generic'.", {"method": "--method"})
    "use kind='joint' or --method 'joint generic'."
    """

    def option(argument: str) -> str | None:
        return options.get(argument) or options.get(_ALIASES.get(argument, ""))

    def setting(found: re.Match[str]) -> str:
        name, value = option(found[1]), found[2]
        return f"{name} {value if ' ' not in value else repr(value)}" if name else found[0]

    def subject(found: re.Match[str]) -> str:
        name = option(found[1])
        return f"`{name}`" if name and name != f"--{found[1]}" else found[0]

    return re.sub(r"\b([a-z_]+)='([^']+)'", setting, re.sub(r"^`([a-z_]+)`", subject, message))


def _options() -> dict[str, str]:
    """Return the options of the command that runs, by the names of their arguments."""
    from typer.main import get_command

    from sidelight.cli import app

    command: Any = get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    return {param.name: max(param.opts, key=len) for param in command.params if param.opts[0][0] == "-"}


def _unparsed(error: Any) -> str | None:
    """Return the message for a text that is not a number; None for any other usage error."""
    found: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not found or found[0]["type"] not in _PARSED or getattr(error, "param", None) is None:
        return None
    option = max(error.param.opts, key=len)
    return f"`{option}` must be {_PARSED[found[0]['type']]}, got {found[0]['input']!r}."
