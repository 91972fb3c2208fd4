"""The register of protocols: by which names they are made, and by which kind their files are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.modules import load_object

if TYPE_CHECKING:
    from sidelight.protocols.protocol import Design, Protocol
    from sidelight.schema import Schema

    Maker = Callable[..., Design]

PROTOCOLS: dict[str, str | Maker] = {
    "spl": "sidelight.protocols.direct:spl",
    "smp": "sidelight.protocols.direct:smp",
    "product": "sidelight.protocols.direct:product",
    "rs+fd": "sidelight.protocols.fake_data:rs_fd",
    "rs+rfd": "sidelight.protocols.fake_data:rs_rfd",
    "pairs": "sidelight.protocols.sets:pairs",
    "adaptive-pairs": "sidelight.protocols.two_phase:adaptive_pairs",
    "corr-rr": "sidelight.protocols.two_phase:corr_rr",
    "cond-rr": "sidelight.protocols.two_phase:cond_rr",
}
"""Every protocol's name and what makes it: a class or a function, called with the schema, the nominal budget
of a record and those options that it names; an address is loaded when it is asked for."""

KINDS: dict[str, str] = {
    "split": "sidelight.protocols.direct:Split",
    "sample": "sidelight.protocols.direct:Sample",
    "sets": "sidelight.protocols.sets:SetSample",
    "hidden": "sidelight.protocols.fake_data:FakeDataProtocol",
}
"""The classes that stand behind several names, by the `kind` in their files; that of others is their name."""


def make_protocol(name: str, schema: Schema, epsilon: float, **options: Any) -> Design:
    """Return the protocol called `name`, one of `PROTOCOLS`, at a nominal budget of a whole record.

    The options are those that it takes, see `options_of`: `mechanism` ("best" is the one with the least
    variance), `groups` of attributes that are reported together, `priors` of the fakes and their `origin`,
    the `share` of people in the first of two phases.
    """
    from sidelight.protocols.protocol import check_budget

    taken = options_of(name)
    for option in options:
        if option not in taken:
            known = ", ".join(taken) or "none"
            raise InputError(f"`{option}` says nothing about the protocol {name!r}; it takes {known}.")
    return _maker(name)(schema, check_budget(epsilon), **options)


def options_of(name: str) -> tuple[str, ...]:
    """Return the options that a protocol takes beside the schema and the budget.

    >>> options_of("rs+rfd")
    ('priors', 'origin')
    """
    return tuple(inspect.signature(_maker(name)).parameters)[2:]


def protocol_class(kind: str) -> type[Protocol]:
    """Return the class whose files state this kind."""
    kinds = KINDS | {name: entry for name, entry in PROTOCOLS.items() if _is_class(entry)}
    check_choice("protocol", kind, kinds)
    loaded: type[Protocol] = _loaded(kinds[kind])
    return loaded


def _is_class(entry: str | Maker) -> bool:
    from sidelight.protocols.protocol import Protocol

    loaded = _loaded(entry)
    return isinstance(loaded, type) and issubclass(loaded, Protocol)


def _maker(name: str) -> Maker:
    check_choice("protocol", name, PROTOCOLS)
    maker: Maker = _loaded(PROTOCOLS[name])
    return maker


def _loaded(entry: str | Maker) -> Any:
    return load_object(entry, "protocol") if isinstance(entry, str) else entry
