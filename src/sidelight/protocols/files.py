"""Protocols as plain data and as files: TOML or JSON, versioned, parsed strictly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.strict import Strict, check_version, read_data, validated, write_data
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.register import protocol_class
from sidelight.schema import (
    Attribute,
    Kind,
    Missing,
    Schema,
    alphabet_data,
    file_version,
    read_edges,
    read_merged,
)

PROTOCOL_VERSION = 3
"""Since version 2 there are dates and times, since version 3 merged values. A protocol is written in the
oldest version that has what it uses."""


class AttributeFile(Strict):
    """One attribute of a file's schema."""

    name: str
    kind: Kind
    values: list[str]
    edges: list[float | str] = Field(default_factory=list)
    missing: Missing = "absent"
    merged: dict[str, list[str]] = Field(default_factory=dict)


class _HeadFile(Strict):
    protocol: str
    attribute: list[AttributeFile]


def protocol_data(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol with its schema as plain data."""
    stated = protocol.to_file()
    if taken := {"version", "attribute"} & stated.keys():
        raise InputError(f"the protocol {protocol.name!r} states {min(taken)!r}, a name that its file needs.")
    attributes = [attribute_data(attribute) for attribute in protocol.schema]
    is_merged = any(attribute.merged for attribute in protocol.schema)
    version = PROTOCOL_VERSION if is_merged else file_version(protocol.schema, 2)
    return {"version": version, **stated, "attribute": attributes}


def attribute_data(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute as plain data."""
    return {"name": attribute.name, **alphabet_data(attribute)}


def protocol_from(data: Mapping[str, Any], label: str = "the protocol") -> Protocol:
    """Return the protocol that `protocol_data` described."""
    check_kind(data, label, "protocol")
    check_version(data, label, PROTOCOL_VERSION, "protocol")
    rest = {key: value for key, value in data.items() if key not in ("version", "attribute")}
    head = validated(_HeadFile, {key: data[key] for key in ("protocol", "attribute") if key in data}, label)
    with naming(label):
        try:
            made = protocol_class(head.protocol)
            return made.from_file(rest, Schema(tuple(map(attribute_from, head.attribute))))
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"it is no {head.protocol!r} protocol: {error!r}.") from None


def attribute_from(item: AttributeFile) -> Attribute:
    """Return the attribute that `attribute_data` described."""
    edges = read_edges(item.name, item.kind, item.edges)
    merged = read_merged(item.merged)
    return Attribute(item.name, item.kind, tuple(item.values), edges, item.missing, merged)


def write_protocol(protocol: Protocol, path: str | Path) -> Path:
    """Write a protocol to a .toml or .json file."""
    return write_data(protocol_data(protocol), path)


def read_protocol(path: str | Path) -> Protocol:
    """Read a protocol from a .toml or .json file."""
    return protocol_from(read_data(path), str(path))


KINDS = {"release": "plan", "protocol": "protocol", "second": "parameters"}
"""The part that only one kind of file has, and what it is called, also as an option."""


def check_kind(data: Mapping[str, Any], label: str, wanted: str) -> None:
    """Raise if the data are those of another kind of file."""
    kinds = [kind for part, kind in KINDS.items() if part in data]
    if kinds and wanted not in kinds:
        kind = kinds[0]
        noun = "a file of published parameters" if kind == "parameters" else f"a {kind}"
        raise InputError(f"{label} is {noun}, no {wanted} file; use --{kind}.")
