"""Names that are loaded when they are first used, listed once in a package's stub.

The stub (`__init__.pyi`) is what a type checker reads; reading it here too leaves nothing to keep in step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


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

    def _hint(name: str) -> str:
        """Say which subpackage has the name, for whoever looks for it one level too high."""
        parts = [part for part, home in homes.items() if home == package]
        files = {part: Path(file).parent / part / "__init__.py" for part in parts}
        holders = [part for part, path in files.items() if path.exists() and name in homes_of(path, part)]
        return f"; it is {package}.{holders[0]}.{name}" if holders else ""

    return load, lambda: sorted(homes), sorted(homes)
