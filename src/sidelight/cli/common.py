"""What the commands share: options, progress, checks before long work, one line for an error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.foundation.terminal import ClosedPipeError, say, say_json

if TYPE_CHECKING:
    from sidelight.plan import Plan
    from sidelight.sources import Table


def _given(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """Return an option only where somebody wrote it: a default beside a plan is no contradiction."""
    source = context.get_parameter_source(str(parameter.name))
    return None if source is None or source.name.startswith("DEFAULT") else value


Data = Annotated[
    str,
    typer.Argument(
        help="A CSV, TSV, JSON, Parquet, Arrow, Excel, DuckDB or SQLite file, a glob, a folder, or - for "
        "standard input."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")]
Bins = Annotated[int | None, typer.Option(callback=_given, help="Bins of a numeric column.")]
MaxValues = Annotated[
    int | None, typer.Option(callback=_given, help="Fold the rarest values above so many into one.")
]
Missing = Annotated[
    str | None, typer.Option(callback=_given, help="'value' (of its own) or 'drop' (the record).")
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="A data dictionary (.toml) that says what each column is; see `schema`."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="column=kind: 'categorical', 'ordinal', 'numeric', 'date', 'time', 'identifier', 'ignored'; "
        "repeatable.",
    ),
]
Column = Annotated[list[str] | None, typer.Option(help="A column to use; repeatable. All by default.")]
Na = Annotated[
    list[str] | None,
    typer.Option(
        help="A cell that is missing, in every column; repeatable. '?', 'NA' and the like are missing too "
        "in columns not of text, unless this is ''."
    ),
]
Sql = Annotated[
    str | None,
    typer.Option(help="Read the rows of this SELECT; a file's own table is called data."),
]
Encoding = Annotated[str, typer.Option(help="Of a text file.")]
Smoothing = Annotated[float, typer.Option(help="Evenly spread records added to the belief.")]
MinSupport = Annotated[int, typer.Option(help="Suppress figures that rest on fewer records.")]
Secret = Annotated[
    list[str] | None, typer.Option(help="A secret, or secret=limit; repeatable. All attributes by default.")
]

RecordEpsilon = Annotated[float | None, typer.Option("--epsilon", help="Budget of a whole record [1].")]
SaveProtocol = Annotated[Path | None, typer.Option(help="Write the protocol to this file (.toml or .json).")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]
EngineName = Annotated[str, typer.Option("--engine", help="What reads and counts: 'local' or 'spark'.")]
Master = Annotated[
    str | None, typer.Option(help="With --engine spark: its master, as 'local[2]' or 'sc://host'.")
]


def progress(*, quiet: bool) -> Any:
    """Show bars for the work inside, unless it must be quiet."""
    from sidelight.foundation.progress import progress_bars

    return nullcontext() if quiet else progress_bars()


def echo_json(value: object) -> None:
    """Print plain data as JSON that every program reads: an infinite number is the string "infinity"."""
    import json

    from sidelight.foundation.files import json_plain

    say_json(json.dumps(json_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def named_numbers(options: list[str]) -> tuple[list[str], dict[str, float]]:
    """Split options of the form name or name=number; a name may have an = itself."""
    from sidelight.foundation.errors import InputError

    names: list[str] = []
    numbers: dict[str, float] = {}
    for option in options:
        name, _, text = option.rpartition("=")
        number = _number(text) if name else None
        if number is not None:
            if name in numbers and numbers[name] != number:
                raise InputError(
                    f"{name!r} is given two numbers, {numbers[name]:g} and {number:g}; choose one."
                )
            numbers[name] = number
        names.append(name if number is not None else option)
    return names, numbers


def stated(schema: Path | None, kinds: Sequence[str] | None) -> dict[str, Any]:
    """Return what --schema and --kind state, as rules for `read_table`; a name may have an = itself."""
    from sidelight.foundation.errors import InputError

    found: dict[str, str] = {}
    for option in kinds or ():
        name, equals, kind = option.rpartition("=")
        if not equals or not name:
            raise InputError(
                f"--kind must be column=kind, got {option!r}; for example --kind zip=categorical."
            )
        if found.setdefault(name, kind) != kind:
            raise InputError(f"{name!r} is given two kinds, {found[name]!r} and {kind!r}; choose one.")
    return {"schema": schema, "kinds": found}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def check_limits(limit: float | None, limits: Mapping[str, float]) -> None:
    """Refuse before the work limits that no plan may have."""
    from sidelight.foundation.errors import check_number

    if limit is not None:
        check_number("limit", limit, at_least=0, infinite=True)
    for name, value in limits.items():
        check_number(f"limit of {name}", value, at_least=0, infinite=True)


def check_counts(*, smoothing: float, **counts: int) -> None:
    """Refuse before the work a count below 0: of evenly spread records, or of anything whole."""
    from sidelight.foundation.errors import check_number, check_whole

    check_number("smoothing", smoothing, at_least=0)
    for name, count in counts.items():
        check_whole(name, count, at_least=0)


def check_writable(
    path: Path | None,
    suffixes: tuple[str, ...],
    *,
    sources: Sequence[str | Path | None] = (),
    force: bool | None = None,
) -> None:
    """Refuse before the work what could not, or must not, be written after it.

    Args:
        path: of the file; None for none.
        suffixes: how its name may end.
        sources: what is read, and never written over.
        force: whether --force was said; None where there is no such option.
    """
    from sidelight.foundation.errors import InputError
    from sidelight.foundation.files import check_not_read, check_overwrite

    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path} must end in {' or '.join(suffixes)}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: its folder does not exist, or it is a folder itself.")
    check_not_read(path, *sources)
    fix = "name another file" + ("" if force is None else ", or say --force")
    check_overwrite(path, force=bool(force), fix=fix)


def first_given(options: Mapping[str, object]) -> str | None:
    """Return the first option that somebody wrote, or None."""
    return next((name for name, value in options.items() if value is not None), None)


def refuse_several(options: dict[str, object]) -> None:
    """Refuse options of which one at most can be meant."""
    from sidelight.foundation.errors import InputError

    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other; leave one out.")


def refuse_both(plan: Plan | None, options: dict[str, object]) -> None:
    """Refuse options that a plan already answers."""
    from sidelight.foundation.errors import InputError

    name = first_given(options)
    if plan is not None and name:
        raise InputError(f"{name} and --plan exclude each other; change the plan, or leave one out.")


def read_table(
    data: str,
    plan: Plan | None,
    drop: list[str],
    named: list[str],
    engine: str = "local",
    master: str | None = None,
    *,
    numbered: Sequence[str] = (),
    giver: str = "plan",
    **rules: Any,
) -> Table:
    """Open the table; columns that the plan releases are coded as the plan says.

    Args:
        data: where it is.
        plan: what is released, if that is known.
        drop: the columns to leave out.
        named: the columns that other options name.
        engine: what reads and counts.
        master: of Spark.
        numbered: those of `named` that may have been meant as name=number.
        giver: what the plan stands for in messages, as "protocol".
        rules: how columns become attributes, and the encoding.
    """
    import sidelight as sl

    source, options = _opened(data, engine, master, rules)
    if plan is not None or any(set(name) & set(",=") for name in (*drop, *named)):
        columns = _columns(source, rules["encoding"], rules.get("sql"))
        check_written(columns, [*drop, *named], numbered)
        _check_planned(data, plan, columns, drop, rules.get("kinds", {}), giver, rules.get("columns"))
    dictionary = options.pop("schema", None)
    if plan is None:
        return sl.read(source, drop=drop, require=named, schema=dictionary, **options)
    others = True if dictionary is None else dictionary
    table = sl.read(source, drop=drop, schema=plan.schema, rest=others, require=named, **options)
    _refuse_rules(table, plan, rules, giver)
    return table


def check_written(columns: Sequence[str], names: Iterable[str], numbered: Sequence[str] = ()) -> None:
    """Explain names that are no columns but lists of them, or columns with something that is no number."""
    from sidelight.foundation.errors import InputError

    for name in names:
        parts = [part.strip() for part in name.split(",")]
        if name not in columns and len(parts) > 1 and set(parts) & set(columns):
            raise InputError(f"there is no column {name!r}; to name several columns, repeat the option.")
        column, _, text = name.rpartition("=")
        if name not in columns and name in numbered and column in columns:
            raise InputError(f"the limit of {column!r} must be a number, got {text!r}.")


def _check_planned(
    data: str,
    plan: Plan | None,
    columns: Sequence[str],
    drop: list[str],
    kinds: Mapping[str, str],
    giver: str,
    chosen: Sequence[str] | None,
) -> None:
    """Refuse a plan that releases what is not there, is to be left out, or is said to be otherwise."""
    from sidelight.foundation.errors import InputError

    for name in plan.names if plan else ():
        if name in kinds:
            raise InputError(
                f"the {giver} releases {name!r} and says what its values are, so --kind cannot; change the "
                f"{giver}, or leave --kind out."
            )
        if name not in columns:
            raise InputError(
                f"the {giver} releases {name!r}, which is not a column of {data}; its columns are "
                f"{', '.join(columns[:20])}."
            )
        if chosen and name not in chosen:
            raise InputError(
                f"the {giver} releases {name!r}, which is not among the --column options; name it too, or "
                f"change the {giver}."
            )
        if name in drop:
            raise InputError(
                f"the {giver} releases {name!r}, so --drop {name} cannot leave it out; change the {giver}, "
                "or keep the column."
            )


def _refuse_rules(table: Table, plan: Plan, rules: Mapping[str, object], giver: str) -> None:
    """Refuse rules for columns that the plan says nothing about where there is no such column."""
    from sidelight.foundation.errors import InputError

    options = {"--bins": "bins", "--max-values": "max_values", "--missing": "missing"}
    for option, value in ((option, rules.get(name)) for option, name in options.items()):
        if value is not None and all(name in plan.names for name in table.schema.names):
            raise InputError(
                f"{option} {value} would change nothing: the {giver} releases every attribute and says "
                f"which values each has. Change the {giver}, or leave the option out."
            )


def _opened(data: str, engine: str, master: str | None, rules: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what an engine reads, and how it is read."""
    from sidelight.foundation.errors import InputError, check_choice

    if check_choice("engine", engine, ("local", "spark")) == "local":
        if master is not None:
            raise InputError(f"--master {master} is for --engine spark; add it, or leave the master out.")
        return data, dict(rules)
    from sidelight.sources.session import open_frame

    if rules.get("sql") is not None:
        raise InputError("--sql is for --engine local; leave one out.")
    others = {name: rule for name, rule in rules.items() if name not in ("encoding", "sql")}
    return open_frame(data, master, rules["encoding"]), others | {"label": data}


def _columns(source: Any, encoding: str, sql: str | None) -> list[str]:
    from sidelight.sources import column_names

    if isinstance(source, str):
        return column_names(source, encoding=encoding, sql=sql)
    return list(source.columns)


def explain(error: Exception) -> int:
    """Print an error as one line and return the exit code: 2 for bad input, 3 for a fault of ours."""
    from sidelight.cli.messages import message_of
    from sidelight.foundation.logs import kept_logs

    if os.environ.get("SIDELIGHT_TRACEBACK"):
        raise error
    said = message_of(error)
    fault = f"internal error ({type(error).__name__}): {error}."
    line = f"error: {said}" if said else f"{fault} Set SIDELIGHT_TRACEBACK=1 to see where, and report it."
    line += "".join(f" What Spark says itself is in {path}." for path in kept_logs())
    with suppress(OSError, ClosedPipeError):  # where nobody can be told, the exit code still tells
        say(" ".join(line.split()), err=True)
    return 2 if said else 3
