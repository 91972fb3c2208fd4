"""The commands for a first look: `example` and `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import sidelight as sl
from sidelight.cli.common import check_writable, echo_json
from sidelight.cli.options import Force, Json
from sidelight.foundation.errors import InputError
from sidelight.foundation.terminal import say

Name = Annotated[str, typer.Argument(help="'survey' (drawn, 7 attributes), 'titanic' or 'admissions'.")]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Write the table to this .csv or .parquet file.")
]
Rows = Annotated[int | None, typer.Option(help="Of the survey: how many people [20000].")]
Seed = Annotated[int | None, typer.Option(help="Of the survey: which people are drawn [1].")]


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


def doctor(json: Json = False) -> None:
    """Check the installation: versions, extras, randomness, compiled kernels."""
    from sidelight.doctor import diagnose, print_diagnosis

    findings = diagnose()
    if json:
        echo_json([vars(finding) for finding in findings])
    else:
        print_diagnosis(findings)
    if not all(finding.is_fine for finding in findings if finding.is_required):
        raise typer.Exit(3)
