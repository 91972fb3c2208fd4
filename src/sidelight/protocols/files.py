"""Protocols as plain data and as files: TOML or JSON, versioned, parsed strictly."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, strict_json, write_text
from sidelight.foundation.strict import Strict, validated
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.fake_data import WHOLE, FakeDataProtocol, Whole
from sidelight.protocols.groups import make_unit
from sidelight.protocols.protocol import Protocol
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


class UnitFile(Strict):
    """One unit of a file's protocol."""

    attributes: list[str]
    mechanism: str
    epsilon: float | None = None
    parameters: dict[str, int | float | str | list[int | float | str] | list[list[int | float]]] = Field(
        default_factory=dict
    )


class FakeFile(Strict):
    """One law of fakes of a file's protocol."""

    given: str
    of: str
    weights: list[list[int]]


class ProtocolFile(Strict):
    """A protocol of a file."""

    version: int
    protocol: Literal["split", "sample", "hidden"]
    attribute: list[AttributeFile]
    unit: list[UnitFile] = Field(default_factory=list)
    shares: list[int] = Field(default_factory=list)
    name: str = ""
    origin: str = ""
    epsilon: float | None = None
    groups: list[list[str]] = Field(default_factory=list)
    fake: list[FakeFile] = Field(default_factory=list)


def protocol_data(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol with its schema as plain data."""
    attributes = [attribute_data(attribute) for attribute in protocol.schema]
    version = file_version(protocol.schema, PROTOCOL_VERSION)
    return {"version": version, **protocol.to_file(), "attribute": attributes}


def attribute_data(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute as plain data."""
    entry: dict[str, Any] = {
        "name": attribute.name,
        "kind": attribute.kind,
        "values": list(attribute.values),
        "missing": attribute.missing,
    }
    edges = written_edges(attribute.kind, attribute.edges)
    return entry | ({"edges": edges} if edges else {})


def protocol_from(data: Mapping[str, Any], label: str = "the protocol") -> Protocol:
    """Return the protocol that `protocol_data` described."""
    check_kind(data, label, "protocol")
    check_version(data, label, PROTOCOL_VERSION, "protocol")
    parsed = validated(ProtocolFile, data, label)
    try:
        return _built(parsed)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None


def _built(parsed: ProtocolFile) -> Protocol:
    schema = Schema(
        tuple(
            Attribute(
                item.name,
                item.kind,
                tuple(item.values),
                read_edges(item.name, item.kind, item.edges),
                item.missing,
            )
            for item in parsed.attribute
        )
    )
    if parsed.protocol == "hidden":
        return _hidden(parsed, schema)
    units = tuple(
        make_unit(schema, unit.attributes, unit.mechanism, unit.epsilon, unit.parameters)
        for unit in parsed.unit
    )
    if not units:
        raise InputError("a protocol needs at least one `unit`.")
    return Split(schema, units) if parsed.protocol == "split" else Sample(schema, units, tuple(parsed.shares))


def _hidden(parsed: ProtocolFile, schema: Schema) -> FakeDataProtocol:
    if parsed.epsilon is None:
        raise InputError("a protocol that hides its choice needs an `epsilon`, got none.")
    if parsed.unit or parsed.shares:
        raise InputError("a protocol that hides its choice has no `unit` and no `shares`; leave them out.")
    fakes: dict[tuple[str, str], Whole] = {}
    for fake in parsed.fake:
        if len({len(row) for row in fake.weights}) != 1:
            raise InputError(f"the weights of {fake.of!r} given {fake.given!r} must be rows of one length.")
        if (fake.given, fake.of) in fakes:
            raise InputError(f"the fakes of {fake.of!r} given {fake.given!r} are listed twice.")
        if any(abs(weight) > WHOLE for row in fake.weights for weight in row):
            raise InputError(f"the fakes of {fake.of!r} given {fake.given!r} must be weights up to {WHOLE}.")
        fakes[fake.given, fake.of] = np.array(fake.weights, dtype=np.int64)
    groups = tuple(tuple(group) for group in parsed.groups)
    return FakeDataProtocol(schema, groups, parsed.epsilon, fakes, parsed.name, parsed.origin)


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
    toml = is_toml(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; it must be a TOML or JSON file.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return parsed_text(text, str(path), tomllib.loads if toml else strict_json)


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
    found = next((kind for part, kind in KINDS.items() if part in data), wanted)
    if found != wanted:
        noun = "a file of published parameters" if found == "parameters" else f"a {found}"
        raise InputError(f"{label} is {noun}, no {wanted} file; use --{found}.")


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


def is_toml(path: str | Path) -> bool:
    """Whether a file is TOML; else it must be JSON."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise InputError(f"{path} must end in .toml or .json.")
    return suffix == ".toml"
