"""Strict parsing of files that people write: nothing is guessed, and a misspelt key is named."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from sidelight.foundation.errors import InputError, unknown
from sidelight.foundation.files import check_overwrite, is_toml, read_text, strict_json, write_text
from sidelight.foundation.toml_comments import carried_over

T = TypeVar("T", bound=BaseModel)
Value = TypeVar("Value")


class Strict(BaseModel):
    """A part of a file in which nothing is guessed and nothing unknown is allowed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def write_data(
    data: Mapping[str, Any], path: str | Path, *, like: str | Path | None = None, key: str = "name"
) -> Path:
    """Write plain data as TOML or JSON, by the file's ending; what is not of ours is not replaced.

    The comments of a TOML file that is replaced are kept, without one those of the TOML file `like`; `key`
    tells the entries of its lists apart (`carried_over`).
    """
    has_comments = is_toml(path)
    check_overwrite(path)
    if not has_comments:
        return write_text(path, json_text(data))
    text, said = toml_text(data), path if Path(path).exists() else like
    if said is not None and is_toml(said) and Path(said).exists():
        text = carried_over(read_text(said, f"{said} is not UTF-8 text."), text, key)
    return write_text(path, text)


def toml_text(data: Mapping[str, Any]) -> str:
    """Return plain data as TOML."""
    import tomli_w

    return tomli_w.dumps(data)


def json_text(data: Mapping[str, Any]) -> str:
    """Return plain data as JSON that people can read."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def read_data(path: str | Path) -> Mapping[str, Any]:
    """Read a TOML or JSON file as plain data."""
    parse = tomllib.loads if is_toml(path) else strict_json
    text = read_text(path, f"{path} is not UTF-8 text; it must be a TOML or JSON file.")
    return parsed_table(text, str(path), parse)


def parsed_table(text: str, label: str, parse: Callable[[str], Any] = strict_json) -> Mapping[str, Any]:
    """Return the mapping that a text holds."""
    data = parsed_text(text, label, parse)
    if not isinstance(data, dict):
        raise InputError(f"{label} must hold a table of named values, got a {type(data).__name__}.")
    return data


def parsed_text(
    text: str, label: str, parse: Callable[[str], Any], fault: str = "cannot be parsed: {}."
) -> Any:
    """Return what a text holds, or raise the fault with the parser's reason."""
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{label} {fault.format(str(error).splitlines()[0])}") from None


def check_version(data: Any, label: str, newest: int, noun: str, rule: str = "") -> None:
    """Raise unless the data say a version that can be read; the `rule` words what to do where they do not."""
    version = data.get("version") if isinstance(data, Mapping) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        wanted = rule or f"it must have `version = {newest}`, got {version!r}."
        raise InputError(f"{label} is no {noun}: {wanted}")
    if version > newest:
        raise InputError(
            f"{label} is a {noun} of version {version}; this Sidelight reads up to version {newest}. "
            "Upgrade Sidelight."
        )


def versioned(model: type[T], data: Any, label: str, newest: int, noun: str, rule: str = "") -> T:
    """Return data of a version that can be read as the model, or raise."""
    check_version(data, label, newest, noun, rule)
    return validated(model, data, label)


def validated(model: type[T], data: Mapping[str, Any], label: str) -> T:
    """Return the data as the model, or raise one line that names the place.

    An unknown key is reported first: the key that is missing is often the same one, spelt right.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        *table, key = place = [str(part) for part in fault["loc"]]
        got = f", got {fault['input']!r}" if fault["type"] == "literal_error" else ""
        said = f"{fault['msg']}{got}."
        if fault["type"] == "extra_forbidden":
            place, said = table, str(unknown("key", key, _keys(model, table)))
        where = f"{'.'.join(place)}: " if place else ""
        raise InputError(f"{label}: {where}{said}") from None


def _keys(model: type[BaseModel], table: Sequence[str]) -> list[str]:
    """Return the keys that a table somewhere in a file may have."""
    for part in table:
        if part in model.model_fields:
            model = _inner(model.model_fields[part].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside a type such as list[X]."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _inner(part))), None)


class FrozenMapping(Mapping[str, Value]):
    """Names and their values, copied from `items`; equal to any mapping with the same ones.

    >>> FrozenMapping({"width": 2}) == {"width": 2}
    True
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)
