"""Modules that are loaded by name: optional dependencies, and objects of the user's own."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from sidelight.foundation.errors import InputError, MissingExtraError, invalid


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of Sidelight brings it.

    >>> require("no_such_module", "numeric", "noise on real numbers")
    Traceback (most recent call last):
        ...
    sidelight.foundation.errors.MissingExtraError: noise on real numbers needs the package no_such_module: \
pip install "sidelight[numeric]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        message = f'{purpose} needs the package {module}: pip install "sidelight[{extra}]"'
        raise MissingExtraError(message) from error


def load_object(name: str, noun: str) -> Any:
    """Import the object that `name` names; modules of the working folder are found too.

    The `noun` says what it is to be, for the message if it is not there.

    >>> load_object("math:sqrt", "function")(9)
    3.0
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute or module.startswith("."):
        raise invalid(noun, "of the form module:object", name)
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        absent = f"there is no module {error.name!r} for the {noun} {name!r}"
        raise InputError(f"{absent}; start where it is.") from error
    finally:
        sys.path.remove(here)
    try:
        named = attrgetter(attribute)(loaded)
    except AttributeError:
        absent = f"the module {module!r} has no {attribute!r} to be the {noun}"
        raise InputError(f"{absent}; check its spelling.") from None
    if not callable(named):
        raise invalid(noun, "a function or a class", name)
    return named
