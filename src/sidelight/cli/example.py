"""The command `example`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import sidelight as sl
from sidelight.cli.common import check_writable
from sidelight.cli.options import Force
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
    table = _table(name, rows, seed)
    write_table(table, output)
    say(f"{len(table)} records of {len(table.schema)} attributes are in {output}.")


def _table(name: str, rows: int | None, seed: int | None) -> sl.Table:
    drawn = {option: value for option, value in (("rows", rows), ("seed", seed)) if value is not None}
    if not drawn:
        return sl.example(name)
    if name != "survey":
        raise InputError(f"{name!r} is a real table: leave --rows and --seed out, or take 'survey'.")
    return sl.sources.survey(**drawn)
