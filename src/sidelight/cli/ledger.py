"""The command `ledger show`: what one person has spent, what is left, and when it returns."""

from __future__ import annotations

import json as plain
from pathlib import Path
from typing import Annotated

import typer

import sidelight as sl
from sidelight.cli.options import Json, grouped
from sidelight.foundation.terminal import say_json

app = typer.Typer(
    name="ledger",
    help="Read a person's ledger: what was spent over all who asked, and what is left.",
    rich_markup_mode=None,
)
LedgerFile = Annotated[Path, typer.Argument(help="The file of a ledger.")]


@app.command("show")
@grouped(project=False)
def show(ledger: LedgerFile, json: Json = False) -> None:
    """Show what a ledger has spent, what is left and when it returns; no value, no report and no secret."""
    statement = sl.ledger.read_statement(ledger)
    if json:
        say_json(plain.dumps(statement.to_dict(), indent=2, ensure_ascii=False))
    else:
        sl.report.print_statement(statement)
