"""Modules that are loaded by name: optional dependencies, objects of the user's own, names when first used.

The latter are listed once, in a package's stub (`__init__.pyi`), which is what a type checker reads; reading
it here too leaves nothing to keep in step.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
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


@cache
def homes_of(file: str | Path, package: str) -> dict[str, str]:
    """Return the module that each name comes from, as the imports of an `__init__` or its stub say.

    A submodule's home is the package itself.
    """
    path = Path(file).with_suffix(".pyi")
    text = (path if path.exists() else path.with_suffix(".py")).read_text("utf-8")
    return {
        alias.asname or alias.name: node.module if node.module and not node.level else package
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package that loads what its stub lists (PEP 562).

    It is given by its `__name__` and its `__file__`; the stub lies beside it.
    """
    homes = homes_of(file, package)

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_hint(name)}")
        if home == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(home), name)

    @cache  # who looks through all that a package has asks for the same names again and again
    def _hint(name: str) -> str:
        """Say which subpackage has the name, for whoever looks for it one level too high."""
        parts = [part for part, home in homes.items() if home == package]
        files = {part: Path(file).parent / part / "__init__.py" for part in parts}
        holders = [part for part, path in files.items() if path.exists() and name in homes_of(path, part)]
        return f"; it is {package}.{holders[0]}.{name}" if holders else ""

    return load, lambda: sorted(homes), sorted(homes)
