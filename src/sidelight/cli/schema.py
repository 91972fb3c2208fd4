"""The command `schema`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sidelight as sl
from sidelight.cli.common import check_writable, echo_json, progress, read_table
from sidelight.cli.options import Data, Json, Reading, flag, grouped
from sidelight.foundation.terminal import say


@dataclass(frozen=True)
class Draft:
    """Where a data dictionary is drafted."""

    output: Path | None = flag(
        None, "Write a data dictionary to this .toml file, to edit and to keep.", "--output", "-o"
    )
    force: bool = flag(False, "Replace the file if there is one.", "--force")


@grouped()
def schema(data: Data, draft: Draft, reading: Reading, json: Json = False) -> None:
    """Show what each column is taken for, or draft a data dictionary that says it.

    Edit the draft and give it to the other commands with --schema. For example:
    sidelight schema people.csv -o people.schema.toml
    """
    check_writable(draft.output, (".toml",), sources=(data,), force=draft.force)
    kinds = [*(reading.kinds or []), *(f"{name}=ignored" for name in reading.drop or [])]
    with progress(quiet=json):
        table = read_table(data, replace(reading, drop=None, kinds=kinds))
    before = sl.sources.Dictionary.read(reading.schema) if reading.schema else None
    dictionary = sl.sources.Dictionary.draft(table, before)
    dictionary = replace(dictionary, na=tuple(reading.na)) if reading.na else dictionary
    written = dictionary.write(draft.output, overwrite=draft.force) if draft.output else None
    if json:
        echo_json(_plain(table))
        return
    sl.report.print_schema(table)
    if written:
        say(f"The data dictionary is in {written}. It names values that occur in the table.")


def _plain(table: sl.Table) -> dict[str, Any]:
    """Return the schema as plain data."""
    from sidelight.schema import written_edges

    guesses = {item.column: item.reason for item in reversed(table.guesses)}
    attributes = [
        {
            "name": attribute.name, "kind": attribute.kind, "values": list(attribute.values),
            "edges": written_edges(attribute.kind, attribute.edges), "missing": attribute.missing,
            "guess": guesses.get(attribute.name),
        }
        for attribute in table.schema
    ]  # fmt: skip
    aside = [{"name": item.column, "reason": item.reason} for item in table.set_aside]
    return {"rows": table.rows, "attributes": attributes, "set_aside": aside, "notes": table.notes()}
