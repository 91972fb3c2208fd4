"""The file of a chain: its transitions as stated, or the tables of a panel from which they are counted."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.strict import Strict, read_data, versioned
from sidelight.leakage.over_time.chain import Chain
from sidelight.schema import Schema
from sidelight.sources import read

CHAIN_VERSION = 1


class _ChainFile(Strict):
    version: int
    values: dict[str, list[str]] = Field(default_factory=dict)
    transition: list[list[float]] | None = None
    start: list[float] | None = None
    attributes: list[str] = Field(default_factory=list)
    panel: list[str] | None = None
    smoothing: float = 0.0


def read_chain(path: str | Path, schema: Schema) -> Chain:
    """Read how values change, of attributes that the schema has.

    Args:
        path: a .toml or .json file. It has `values`, those of each attribute in the order of the states, and
            `transition`, perhaps with a `start`; or `attributes` and `panel`, the tables of the same people
            in the same order, one of each round, their paths beginning at the file's folder.
        schema: the attributes as they are released.
    """
    label, data = str(path), read_data(path)
    parsed = versioned(_ChainFile, data, label, CHAIN_VERSION, "chain")
    if (parsed.transition is None) == (parsed.panel is None):
        raise InputError(f"{label} must have either a `transition` or a `panel`.")
    with naming(label):
        if parsed.transition is not None:
            return _stated(parsed, schema)
        return _counted(parsed, schema, Path(path).parent)


def _stated(parsed: _ChainFile, schema: Schema) -> Chain:
    if not parsed.values or parsed.attributes or parsed.smoothing:
        raise InputError("a `transition` goes with the `values` of its attributes, and a `start` alone.")
    own = _selected(schema, list(parsed.values))
    for attribute in own:
        if tuple(parsed.values[attribute.name]) != attribute.values:
            raise InputError(
                f"the values of {attribute.name!r} must be {list(attribute.values)}, in this order, as in "
                f"the table; got {parsed.values[attribute.name]}."
            )
    rows = parsed.transition or []
    if any(len(row) != len(rows) for row in rows):
        raise InputError(f"`transition` must have {len(rows)} numbers in each of its {len(rows)} rows.")
    return Chain.stated(rows, parsed.start, own)


def _counted(parsed: _ChainFile, schema: Schema, folder: Path) -> Chain:
    if not parsed.attributes or parsed.values or parsed.start is not None:
        raise InputError("a `panel` goes with the `attributes` that change, and with a `smoothing` alone.")
    if len(parsed.panel or []) < 2:
        raise InputError("a `panel` has two tables or more, one of each round.")
    own = _selected(schema, parsed.attributes)
    tables = [read(folder / name, columns=list(own.names), schema=own) for name in parsed.panel or []]
    return Chain.from_panel(tables, smoothing=parsed.smoothing)


def _selected(schema: Schema, names: list[str]) -> Schema:
    for name in names:
        schema[name]  # names what is unknown
    return schema.select(names)
