"""TOML as people write it, with comments: what a library that only writes data cannot do."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_WIDTH = 100


def toml_key(name: str) -> str:
    """Return a name as TOML writes a key.

    >>> toml_key("age"), toml_key("zip code")
    ('age', '"zip code"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it; a long list has one item on each line.

    >>> toml_value(("a", 1.0)), toml_value(math.inf), toml_value(True)
    ('["a", 1]', 'inf', 'true')
    """
    if isinstance(value, tuple | list):
        items = [toml_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= _WIDTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_comment(text: str) -> str:
    r"""Return a text as a comment, on one line whatever is in it.

    >>> toml_comment("two\nlines")
    '# two lines'
    """
    return "# " + "".join(sign if sign.isprintable() else " " for sign in text)
