"""Options in groups: a frozen dataclass whose fields a command takes as options of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sidelight.cli.from_project import PROJECT_PARAMETERS, call_with_project
from sidelight.foundation.errors import InputError

Command = Callable[..., None]
Names = list[str] | None


def flag(default: Any, text: str, *names: str, callback: Callable[..., Any] | None = None) -> Any:
    """Return a field of a group: an option with this help text, and names unlike its own if need be."""
    return field(default=default, metadata={"option": typer.Option(*names, help=text, callback=callback)})


def grouped(
    *, without: Collection[str] = (), project: bool = True, cached: bool = False
) -> Callable[[Command], Command]:
    """Put the fields of a command's groups in their place in its signature, which typer reads.

    A parameter whose type is a dataclass is a group; the command is handed an instance of it. It has no
    option for the fields in `without`, which keep their defaults. What is not said on the command line comes
    from the `project` file, if there is one; then what a `cached` command printed and wrote is kept for the
    next time, as long as nothing that it read has changed.
    """

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
        parameters = [
            option
            for parameter in inspect.signature(command).parameters.values()
            for option in _options(parameter.replace(annotation=hints[parameter.name]), without)
        ]
        parameters += PROJECT_PARAMETERS if project else []

        def run(**given: Any) -> None:
            if project:
                call_with_project(given, call, cached=cached)
            else:
                call(given)

        def call(given: dict[str, Any]) -> None:
            made = {}
            for name, kind in groups.items():
                own = {part.name: given.pop(part.name) for part in fields(kind) if part.name in given}
                made[name] = kind(**own)
            command(**given, **made)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _options(parameter: Parameter, without: Collection[str]) -> Iterator[Parameter]:
    """Yield the parameters that stand for one: the fields of a group, or itself."""
    kind = parameter.annotation
    if not is_dataclass(kind):
        # keyword-only, so that one without a default may follow one that has it
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(kind, include_extras=True)
    for part in fields(kind):
        if part.name not in without:
            default = Parameter.empty if part.default is MISSING else part.default
            hint = hints[part.name]
            said = Annotated[hint, part.metadata["option"]] if part.metadata else hint
            yield Parameter(part.name, Parameter.KEYWORD_ONLY, default=default, annotation=said)


def _given(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """Return an option only where somebody wrote it: a default beside a plan is no contradiction."""
    source = context.get_parameter_source(str(parameter.name))
    return None if source is None or source.name == "DEFAULT" else value


Data = Annotated[
    str,
    typer.Argument(
        help="A CSV, TSV, JSON, Parquet, Arrow, Excel, DuckDB or SQLite file, a glob, a folder, or - for "
        "standard input."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="A data dictionary (.toml) that says what each column is; see `schema`."),
]
Kinds = Annotated[
    Names,
    typer.Option(
        "--kind",
        help="column=kind: 'categorical', 'ordinal', 'numeric', 'date', 'time', 'identifier', 'ignored'; "
        "repeatable.",
    ),
]
Encoding = Annotated[str, typer.Option(help="Of a text file.")]
Smoothing = Annotated[float, typer.Option(help="Evenly spread records added to the belief.")]
MinSupport = Annotated[int, typer.Option(help="Suppress figures that rest on fewer records.")]
RecordEpsilon = Annotated[float | None, typer.Option("--epsilon", help="Budget of a whole record [1].")]
SaveProtocol = Annotated[Path | None, typer.Option(help="Write the protocol to this file (.toml or .json).")]
Withhold = Annotated[Names, typer.Option(help="An attribute that is not released; repeatable.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]


@dataclass(frozen=True)
class Reading:
    """How a table is read, and how its columns become attributes."""

    drop: Names = flag(None, "A column to leave out; repeatable.")
    bins: int | None = flag(10, "Bins of a numeric column.", callback=_given)
    max_values: int | None = flag(50, "Fold the rarest values above so many into one.", callback=_given)
    missing: str | None = flag("value", "'value' (of its own) or 'drop' (the record).", callback=_given)
    schema: SchemaFile = None
    kinds: Kinds = None
    encoding: Encoding = "utf-8"
    column: Names = flag(None, "A column to use; repeatable. All by default.")
    na: Names = flag(
        None,
        "A cell that is missing, in every column; repeatable. '?', 'NA' and the like are missing "
        "too in columns not of text, unless this is ''.",
    )
    sql: str | None = flag(None, "Read the rows of this SELECT; a file's own table is called data.")
    engine: str = flag("local", "What reads and counts: 'local' or 'spark'.", "--engine")
    master: str | None = flag(None, "With --engine spark: its master, as 'local[2]' or 'sc://host'.")

    @property
    def stated(self) -> dict[str, str]:
        """The kinds of columns that --kind states; a name may have an = itself."""
        return stated_kinds(self.kinds)

    @property
    def rules(self) -> dict[str, Any]:
        """The arguments of `sl.read`, except the columns to drop."""
        return {
            "bins": self.bins, "max_values": self.max_values, "missing": self.missing, "na": self.na,
            "encoding": self.encoding, "columns": self.column, "sql": self.sql, "schema": self.schema,
            "kinds": self.stated,
        }  # fmt: skip


WITHOUT_ENGINE = ("engine", "master")


def stated_kinds(options: Collection[str] | None) -> dict[str, str]:
    """Return the kinds of columns that options of the form column=kind state."""
    kinds: dict[str, str] = {}
    for option in options or ():
        name, _, kind = option.rpartition("=")
        if not name:
            raise InputError(
                f"--kind must be column=kind, got {option!r}; for example --kind zip=categorical."
            )
        if kinds.setdefault(name, kind) != kind:
            raise InputError(f"{name!r} is given two kinds, {kinds[name]!r} and {kind!r}; choose one.")
    return kinds
