"""Strict parsing of files that people write: nothing is guessed, and a misspelt key is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from sidelight.foundation.errors import InputError, unknown

T = TypeVar("T", bound=BaseModel)
Value = TypeVar("Value")


class Strict(BaseModel):
    """A part of a file in which nothing is guessed and nothing unknown is allowed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
    return list(model.model_fields)


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
