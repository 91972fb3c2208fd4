"""Protocols as plain data and as files: TOML or JSON, versioned, parsed strictly."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, is_toml, read_text, strict_json, write_text
from sidelight.foundation.strict import Strict, validated
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.register import protocol_class
from sidelight.schema import Attribute, Kind, Missing, Schema, file_version, read_edges, written_edges

PROTOCOL_VERSION = 2
"""Since version 2 there are dates and times; a protocol without any is written in version 1."""


class AttributeFile(Strict):
    """One attribute of a file's schema."""

    name: str
    kind: Kind
    values: list[str]
    edges: list[float | str] = Field(default_factory=list)
    missing: Missing = "absent"


class _HeadFile(Strict):
    protocol: str
    attribute: list[AttributeFile]


def protocol_data(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol with its schema as plain data."""
    stated = protocol.to_file()
    if taken := {"version", "attribute"} & stated.keys():
        raise InputError(f"the protocol {protocol.name!r} states {min(taken)!r}, a name that its file needs.")
    attributes = [attribute_data(attribute) for attribute in protocol.schema]
    version = file_version(protocol.schema, PROTOCOL_VERSION)
    return {"version": version, **stated, "attribute": attributes}


def attribute_data(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute as plain data."""
    head = {"name": attribute.name, "kind": attribute.kind, "values": list(attribute.values)}
    edges = written_edges(attribute.kind, attribute.edges)
    return {**head, "missing": attribute.missing, **({"edges": edges} if edges else {})}


def protocol_from(data: Mapping[str, Any], label: str = "the protocol") -> Protocol:
    """Return the protocol that `protocol_data` described."""
    check_kind(data, label, "protocol")
    check_version(data, label, PROTOCOL_VERSION, "protocol")
    rest = {key: value for key, value in data.items() if key not in ("version", "attribute")}
    head = validated(_HeadFile, {key: data[key] for key in ("protocol", "attribute") if key in data}, label)
    try:
        return protocol_class(head.protocol).from_file(rest, Schema(tuple(map(_attribute, head.attribute))))
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{label}: it is no {head.protocol!r} protocol: {error!r}.") from None


def _attribute(item: AttributeFile) -> Attribute:
    edges = read_edges(item.name, item.kind, item.edges)
    return Attribute(item.name, item.kind, tuple(item.values), edges, item.missing)


def write_protocol(protocol: Protocol, path: str | Path) -> Path:
    """Write a protocol to a .toml or .json file."""
    return write_data(protocol_data(protocol), path)


def read_protocol(path: str | Path) -> Protocol:
    """Read a protocol from a .toml or .json file."""
    return protocol_from(read_data(path), str(path))


def write_data(data: Mapping[str, Any], path: str | Path) -> Path:
    """Write plain data as TOML or JSON, by the file's ending; what is not of ours is not replaced."""
    toml = is_toml(path)
    check_overwrite(path)
    if toml:
        import tomli_w

        return write_text(path, tomli_w.dumps(data))
    return write_text(path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def read_data(path: str | Path) -> Mapping[str, Any]:
    """Read a TOML or JSON file as plain data."""
    parse = tomllib.loads if is_toml(path) else strict_json
    text = read_text(path, f"{path} is not UTF-8 text; it must be a TOML or JSON file.")
    return parsed_text(text, str(path), parse)


def parsed_text(text: str, label: str, parse: Callable[[str], Any]) -> Mapping[str, Any]:
    """Return the mapping that a text holds."""
    try:
        data = parse(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{label} cannot be parsed: {str(error).splitlines()[0]}.") from None
    if not isinstance(data, dict):
        raise InputError(f"{label} must hold a table of named values, got a {type(data).__name__}.")
    return data


KINDS = {"release": "plan", "protocol": "protocol", "second": "parameters"}
"""The part that only one kind of file has, and what it is called, also as an option."""


def check_kind(data: Mapping[str, Any], label: str, wanted: str) -> None:
    """Raise if the data are those of another kind of file."""
    kinds = [kind for part, kind in KINDS.items() if part in data]
    if kinds and wanted not in kinds:
        kind = kinds[0]
        noun = "a file of published parameters" if kind == "parameters" else f"a {kind}"
        raise InputError(f"{label} is {noun}, no {wanted} file; use --{kind}.")


def check_version(data: Mapping[str, Any], label: str, newest: int, noun: str) -> None:
    """Raise unless the data say a version that can be read."""
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"{label} is no {noun}: it must have `version = {newest}`, got {version!r}.")
    if version > newest:
        raise InputError(
            f"{label} is a {noun} of version {version}; this Sidelight reads up to version {newest}. "
            "Upgrade Sidelight."
        )
