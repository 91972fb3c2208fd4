"""The commands for a first look: `example`, `schema` and `doctor`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import check_writable, echo_json, progress, read_table
from sidelight.cli.options import Data, Force, Json, Reading, flag, grouped
from sidelight.foundation.errors import InputError
from sidelight.foundation.terminal import say

Name = Annotated[str, typer.Argument(help="'survey' or 'clinic' (drawn), 'titanic' or 'admissions'.")]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Write the table to this .csv or .parquet file.")
]
Rows = Annotated[int | None, typer.Option(help="Of the survey: how many people [20000].")]
Seed = Annotated[int | None, typer.Option(help="Of the survey: which people are drawn [1].")]
Service = Annotated[
    str | None, typer.Option(help="Look at a service too: the folder of its store, or its postgresql:// URL.")
]


def example(name: Name, output: Output, rows: Rows = None, seed: Seed = None, force: Force = False) -> None:
    """Write a bundled table to a file, to try the other commands on."""
    from sidelight.sources.table import write_table

    check_writable(output, (".csv", ".parquet"), force=force)
    drawn = {option: value for option, value in (("rows", rows), ("seed", seed)) if value is not None}
    if drawn and name != "survey":
        raise InputError(f"{name!r} is a real table: leave --rows and --seed out, or take 'survey'.")
    table = sl.sources.survey(**drawn) if drawn else sl.example(name)
    write_table(table, output)
    say(f"{len(table)} records of {len(table.schema)} attributes are in {output}.")


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


def doctor(json: Json = False, service: Service = None) -> None:
    """Check the installation: versions, extras, randomness, compiled kernels; a service's store if named."""
    from sidelight.doctor import diagnose, print_diagnosis

    findings = diagnose(service)
    if json:
        echo_json([vars(finding) for finding in findings])
    else:
        print_diagnosis(findings)
    if not all(finding.is_fine for finding in findings if finding.is_required):
        raise typer.Exit(3)
