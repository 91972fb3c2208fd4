"""The command `schema`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Column,
    Data,
    Drop,
    Encoding,
    EngineName,
    Json,
    Kinds,
    Master,
    MaxValues,
    Missing,
    Na,
    SchemaFile,
    Sql,
    check_writable,
    echo_json,
    progress,
    read_table,
    stated,
)
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.sources import Table

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write a data dictionary to this .toml file, to edit and to keep."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")]


def schema(
    data: Data,
    output: Output = None,
    force: Force = False,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    schema: SchemaFile = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    column: Column = None,
    na: Na = None,
    sql: Sql = None,
    engine: EngineName = "local",
    master: Master = None,
    json: Json = False,
) -> None:
    """Show what each column is taken for, or draft a data dictionary that says it.

    Edit the draft and give it to the other commands with --schema. For example:
    sidelight schema people.csv -o people.schema.toml
    """
    import sidelight as sl

    check_writable(output, (".toml",), sources=(data,), force=force)
    rules = stated(schema, [*(kinds or []), *(f"{name}=ignored" for name in drop or [])])
    with progress(quiet=json):
        table = read_table(
            data, None, [], [],
            bins=bins, max_values=max_values, missing=missing, encoding=encoding,
            columns=column, na=na, sql=sql, engine=engine, master=master, **rules,
        )  # fmt: skip
    before = sl.sources.Dictionary.read(schema) if schema else None
    draft = sl.sources.Dictionary.draft(table, before)
    draft = replace(draft, na=tuple(na)) if na else draft
    written = draft.write(output, overwrite=force) if output else None
    if json:
        echo_json(_plain(table))
        return
    from sidelight.report.schema_terminal import print_schema

    print_schema(table)
    if written:
        say(f"The data dictionary is in {written}. It names values that occur in the table.")


def _plain(table: Table) -> dict[str, Any]:
    """Return the schema as plain data."""
    from sidelight.schema import written_edges

    return {
        "rows": table.rows,
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind,
                "values": list(attribute.values),
                "edges": written_edges(attribute.kind, attribute.edges),
                "missing": attribute.missing,
                "guess": next((item.reason for item in table.guesses if item.column == attribute.name), None),
            }
            for attribute in table.schema
        ],
        "set_aside": [{"name": item.column, "reason": item.reason} for item in table.set_aside],
        "notes": table.notes(),
    }
