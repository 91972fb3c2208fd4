"""Optional dependencies: loaded where they are needed, named when they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sidelight.foundation.errors import MissingExtraError


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
