"""Objects of the user's own, named as `module:object` on the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError, invalid


def load_object(name: str, noun: str) -> Any:
    """Import the object that `name` names; modules of the working folder are found too.

    Args:
        name: like "package.module:object".
        noun: what it is to be, for the message if it is not there.

    >>> load_object("math:sqrt", "function")(9)
    3.0
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute or module.startswith("."):
        raise invalid(noun, "of the form module:object", name)
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"there is no module {error.name!r} for the {noun} {name!r}; start where it is."
        ) from error
    finally:
        sys.path.remove(here)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(
                f"the module {module!r} has no {attribute!r} to be the {noun}; check its spelling."
            )
        found = getattr(found, part)
    if not callable(found):
        raise invalid(noun, "a function or a class", name)
    return found
