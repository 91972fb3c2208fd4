"""The command `advise`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Column,
    Drop,
    Encoding,
    Json,
    Kinds,
    MaxValues,
    Missing,
    Na,
    RecordEpsilon,
    ReportFile,
    SaveProtocol,
    SchemaFile,
    Sql,
    check_writable,
    progress,
    read_table,
    refuse_several,
    stated,
)
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.schema import Schema
    from sidelight.sources import Table


def advise(
    data: Annotated[
        str | None, typer.Argument(help="A table whose schema is meant; or give its numbers below.")
    ] = None,
    epsilon: RecordEpsilon = None,
    people: Annotated[int | None, typer.Option(help="How many will report [the table's rows].")] = None,
    attributes: Annotated[int | None, typer.Option(help="Without a table: how many attributes.")] = None,
    values: Annotated[int | None, typer.Option(help="Without a table: how many values each has.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="The table is public: use its frequencies, not uniform ones.")
    ] = False,
    first: Annotated[
        list[Path] | None, typer.Option(help="Reports of a first phase to take frequencies from; repeatable.")
    ] = None,
    save_protocol: SaveProtocol = None,
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
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Compare protocols by the error to expect."""
    import sidelight as sl
    from sidelight.protocols import write_protocol

    check_writable(report, (".html", ".htm"))
    check_writable(save_protocol, (".toml", ".json"))
    budget = 1.0 if epsilon is None else epsilon
    with progress(quiet=json):
        rules: dict[str, Any] = {
            "bins": bins,
            "max_values": max_values,
            "missing": missing,
            "encoding": encoding,
        }
        rules |= {"columns": column, "na": na, "sql": sql, **stated(schema, kinds)}
        assumed = _assumed(data, attributes, values, public, first or [], drop or [], rules)
        count = people if people is not None else assumed.rows
        if count is None:
            raise sl.InputError("say how many people will report with --people, got none.")
        advice = sl.advise(assumed.schema, budget, count, assumed.known, assumed.origin)
        advice = replace(advice, notes=assumed.notes(save_protocol))
    if save_protocol:
        write_protocol(advice.choice, save_protocol)
    written = sl.write_report(advice, report) if report else None
    if json:
        say_json(advice.to_json())
        return
    from sidelight.report.collection import print_advice

    print_advice(advice)
    if written:
        say(f"The report is in {written}.")


@dataclass(frozen=True)
class _Assumed:
    """The schema that is meant, and what is assumed of it.

    Attributes:
        schema: the attributes.
        known: frequencies, or the estimates of a first phase; None where nothing is known.
        origin: where they came from.
        table: the table that the schema was inferred from, if any.
    """

    schema: Schema
    known: Any = None
    origin: str = ""
    table: Table | None = None

    @property
    def rows(self) -> int | None:
        return None if self.table is None else self.table.rows

    def notes(self, written: Path | None) -> tuple[str, ...]:
        """Say what the table's reading left out, and what a protocol that is written holds of it."""
        from sidelight.report.columns import publishing_notes

        if self.table is None:
            return ()
        published = publishing_notes(self.schema, "the protocol file, and every report made by it")
        return (*self.table.notes(), *(published if written else []))


def _assumed(
    data: str | None, attributes: int | None, values: int | None, public: bool, first: list[Path],
    drop: list[str], rules: dict[str, Any],
) -> _Assumed:  # fmt: skip
    """Return the schema, and the frequencies that are assumed, with their origin."""
    import sidelight as sl
    from sidelight.foundation.errors import check_whole
    from sidelight.foundation.files import file_name
    from sidelight.transport import true_frequencies

    numbers = None if attributes is None and values is None else "--attributes and --values"
    refuse_several({"a table": data, "--first": first or None, str(numbers): numbers})
    if public and data is None:
        raise sl.InputError("--public is said of a table; name it, or leave --public out.")
    if drop and data is None:
        raise sl.InputError(f"--drop {drop[0]} is a column of a table; name it, or leave --drop out.")
    if data is None and (rules["schema"] or rules["kinds"]):
        raise sl.InputError("--schema and --kind are said of a table; name it, or leave them out.")
    if first:
        found = sl.estimate([sl.read_reports(path) for path in first])
        return _Assumed(found.schema, found)
    if data is None:
        if attributes is None or values is None:
            raise sl.InputError("name a table, or give --attributes and --values.")
        labels = [str(value) for value in range(check_whole("values", values, at_least=2))]
        count = check_whole("attributes", attributes, at_least=1)
        named = tuple(sl.categorical(f"x{number + 1}", labels) for number in range(count))
        return _Assumed(sl.Schema(named))
    table = read_table(data, None, drop, [], **rules)
    if not public:
        return _Assumed(table.schema, table=table)
    return _Assumed(
        table.schema, true_frequencies(table, table.schema), f"public data: {file_name(data)}", table
    )
