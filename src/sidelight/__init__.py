"""Sidelight: what the attributes of a private data collection reveal about each other.

The nouns and verbs of everyday work are here; the rest is in its room, as in `sl.leakage.profile_epsilon`.
`__init__.pyi` lists both. They are loaded when they are first used, so that `import sidelight` is instant.
"""

from __future__ import annotations

from typing import Any

from sidelight.foundation.modules import attach

_load, __dir__, __all__ = attach(__name__, __file__)
_RENAMED = {"Collected": "RecordReports", "Parameters": "protocols.SecondPhase"}
"""What names of 0.1 are called now, where another name took their place."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sidelight")
    if name in _RENAMED:
        raise AttributeError(
            f"module 'sidelight' has no attribute {name!r}; it is sidelight.{_RENAMED[name]}"
        )
    return _load(name)
